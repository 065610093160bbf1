// The time line of a job: how long each epoch took, or each barrier of a live job, by phase; what was read; checkpoints;
// and why one was slow.

import { get } from "../api.js";
import { room, ticks } from "../chart.js";
import { h, s } from "../dom.js";
import { median, merged, partClass, partName, totalOf } from "../epoch_parts.js";
import * as format from "../format.js";
import { vertexModels } from "../graph_view.js";
import { levelsOf } from "../graph_layout.js";
import { chip, empty, figure, figures, panel, table } from "../parts.js";
import { go } from "../router.js";
import { jobView } from "./job.js";

const HEIGHT = 250;
const LEFT = 58;
const TOP = 22;
const BOTTOM = 64;

// What the columns of a job are called. A live job has no epochs: a column is the way of a barrier from its trigger until
// all subtasks have acknowledged it, and its records are those that were read since the barrier before.
const EPOCHS = { one: "epoch", One: "Epoch", many: "epochs", Many: "Epochs", rest: "In Spark", restHint: "scheduling and shuffling" };
const BARRIERS = { one: "barrier", One: "Barrier", many: "barriers", Many: "Barriers", rest: "Acknowledging", restHint: "on the way to the driver" };

export const timeline = jobView("timeline", {
  tab: "epochs",
  title: "time line",

  async load(params, signal, state) {
    const known = state.epochs ?? [];
    // The last two again: what came behind an epoch is known when there is a next one.
    const since = known.length > 2 ? known.at(-2).epoch : 0;
    const answer = await get(`/jobs/${params.job}/epochs?since=${since}`, signal);
    state.epochs = merged(known, answer.epochs, 120);
    return { restarts: answer.restarts, rescales: answer.rescales, scaling: answer.scaling ?? [], isLive: answer["is-live"] };
  },

  body({ job, restarts, rescales, scaling, isLive }, params, state, ctx) {
    const epochs = state.epochs ?? [];
    const words = isLive ? BARRIERS : EPOCHS;
    if (!epochs.length) return empty(`No ${words.one} is complete yet.`);
    const totals = epochs.map(totalOf);
    const usual = median(totals);
    const slow = epochs.filter((each) => each["is-slow"]);
    const picked = epochs.find((each) => String(each.epoch) === params.epoch) ?? slow.at(-1) ?? epochs.at(-1);
    const names = levelNames(job);
    const spent = epochs.reduce((sum, each) => sum + totalOf(each), 0);
    const of = (kind) => epochs.flatMap((each) => each.parts).filter((part) => part.kind === kind).reduce((sum, part) => sum + part.duration, 0);
    return h("div", { class: "stack" },
      figures(
        figure(`Median ${words.one}`, format.duration(usual), `last ${format.count(epochs.length)} ${words.many}`),
        figure(`Records per ${words.one}`, format.short(median(epochs.map((each) => each.records))), "median"),
        figure("In operators", format.percent(of("level") / spent), "of the time"),
        figure(words.rest, format.percent(of("spark") / spent), words.restHint),
        figure("Publishing", format.percent(of("publishing") / spent), `checkpoints ${format.percent(of("checkpoint") / spent)}`),
        figure(`Slow ${words.many}`, format.count(slow.length), `${format.count(restarts)} restarts, ${format.count(rescales)} rescales`)),
      panel(words.Many, h("div", { class: "body scroll" }, chart(epochs, totals, usual, picked, job, words)), legend(epochs, words)),
      details(picked, names, slow, job, words),
      scaling.length > 0 && autoscaling(scaling));
  },
});

function autoscaling(decisions) {
  return panel("Autoscaling", table([
    { name: "Time", of: (row) => format.time(row.timestamp) },
    { name: "Parallelism", of: (row) => `${format.count(row.before)} → ${format.count(row.after)}` },
    { name: "Utilization", class: "number", of: (row) => format.percent(row.utilization) },
    { name: "Reason", of: (row) => row.reason },
  ], [...decisions].reverse(), { key: (row) => String(row.timestamp), label: "Decisions of the autoscaler" }));
}

function levelNames(job) {
  const models = vertexModels(job);
  const levels = levelsOf(models);
  const names = [];
  for (const model of models) (names[levels.get(model.id)] ??= []).push(format.clip(model.chain[0]?.name ?? model.name, 40));
  return names.map((each) => (each.length > 3 ? [...each.slice(0, 2), `${each.length - 2} more`] : each));
}

function legend(epochs, words) {
  const shown = epochs.at(-1).parts;
  return h("div", { class: "legend right" },
    shown.filter((part) => part.kind !== "level" || part.level < 4).map((part) => h("span", {}, h("i", { class: `key ${partClass(part)}` }), part.kind === "level" ? `level ${part.level}` : part.kind === "spark" ? (words === EPOCHS ? "Spark" : "acknowledging") : part.kind)),
    h("span", {}, "◆ checkpoint"), h("span", {}, "▲ slow"));
}

function chart(epochs, totals, usual, picked, job, words) {
  const width = Math.max(560, room());
  const scale = ticks(Math.max(...totals));
  const most = scale.at(-1);
  const slot = (width - LEFT - 8) / Math.max(epochs.length, 24);
  const plot = HEIGHT - TOP - BOTTOM;
  const toY = (ms) => TOP + (1 - ms / most) * plot;
  const mostRecords = Math.max(1, ...epochs.map((each) => each.records));
  return s("svg", { class: "chart epochs-chart", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "group", "aria-label": `Time line of the last ${epochs.length} ${words.many}. Arrow keys go from ${words.one} to ${words.one}.` },
    scale.map((value) => [
      s("line", { class: "axis", x1: LEFT, x2: width - 8, y1: toY(value), y2: toY(value) }),
      s("text", { x: LEFT - 6, y: toY(value) + 4, "text-anchor": "end" }, format.duration(value)),
    ]),
    s("line", { class: "median", x1: LEFT, x2: width - 8, y1: toY(usual), y2: toY(usual) }),
    s("text", { x: LEFT - 6, y: HEIGHT - BOTTOM + 34, "text-anchor": "end" }, "records"),
    epochs.map((epoch, index) => column(epoch, { x: LEFT + index * slot, slot, toY, isPicked: epoch === picked, records: epoch.records / mostRecords, previous: epochs[index - 1], next: epochs[index + 1], job, words })),
    s("text", { x: LEFT, y: HEIGHT - 4 }, `#${format.count(epochs[0].epoch)}, ${format.clock(epochs[0]["start-time"])}`),
    s("text", { x: LEFT + epochs.length * slot, y: HEIGHT - 4, "text-anchor": epochs.length * slot > 300 ? "end" : "start" }, epochs.length > 8 ? `#${format.count(epochs.at(-1).epoch)}, ${format.clock(epochs.at(-1)["end-time"])}` : ""));
}

function column(epoch, { x, slot, toY, isPicked, records, previous, next, job, words }) {
  const width = Math.max(1, slot * 0.78);
  const left = x + (slot - width) / 2;
  let below = 0;
  const stacked = epoch.parts.filter((part) => part.duration > 0).map((part) => {
    const [y0, y1] = [toY(below), toY(below + part.duration)];
    below += part.duration;
    return s("rect", { class: partClass(part), x: left.toFixed(2), width: width.toFixed(2), y: y1.toFixed(2), height: Math.max(0, y0 - y1).toFixed(2) });
  });
  const center = x + slot / 2;
  const base = HEIGHT - BOTTOM;
  const pick = (other) => go("jobs", job.jid, "epochs", String(other.epoch));
  return s("g", {
    class: isPicked ? "bar-slot picked" : "bar-slot", key: epoch.epoch, tabindex: isPicked ? "0" : "-1", role: "button", "aria-pressed": String(isPicked), "data-epoch": epoch.epoch,
    "aria-label": `${words.One} ${epoch.epoch}: ${format.duration(totalOf(epoch))}, ${format.count(epoch.records)} records${epoch["is-slow"] ? ", slow" : ""}${epoch.checkpoints.length ? ", checkpoint behind it" : ""}`,
    on: {
      click: () => pick(epoch),
      keydown: (event) => {
        const other = { ArrowLeft: previous, ArrowRight: next }[event.key];
        if (event.key === "Enter" || event.key === " ") pick(epoch);
        else if (other) {
          pick(other);
          requestAnimationFrame(() => document.querySelector(`[data-epoch="${other.epoch}"]`)?.focus());
        } else return;
        event.preventDefault();
      },
    },
  },
    s("title", {}, `${words.one} ${epoch.epoch}: ${format.duration(totalOf(epoch))}, ${format.count(epoch.records)} records`),
    s("rect", { class: "hit", x: x.toFixed(2), width: slot.toFixed(2), y: 4, height: HEIGHT - BOTTOM + 36 }),
    stacked,
    epoch["is-slow"] && s("path", { class: "slow-mark", d: `M${center} 8l5 9h-10z` }),
    s("rect", { class: "part-planning", opacity: 0.55, x: left.toFixed(2), width: width.toFixed(2), y: (base + 38 - 20 * records).toFixed(2), height: (20 * records).toFixed(2) }),
    epoch.checkpoints.map((each) => s("path", { class: each.status === "FAILED" ? "failed-mark" : each["is-savepoint"] ? "savepoint-mark" : "checkpoint-mark", d: `M${center} ${base + 4}l4 5l-4 5l-4 -5z` })));
}

function details(epoch, names, slow, job, words) {
  const total = totalOf(epoch);
  const isLive = words === BARRIERS;
  const parts = epoch.parts.filter((part) => part.duration > 0);
  return panel(`${words.One} ${format.count(epoch.epoch)}: where ${format.duration(total)} went`,
    h("div", { class: "body stack" },
      h("p", { class: "why", "data-why": "" }, h("bdi", {}, epoch.why || "Nothing stands out.")),
      gantt(epoch, names, isLive),
      table([
        { name: "Part", of: (part) => h("span", { class: "row" }, h("i", { class: `key ${partClass(part)}` }), h("bdi", {}, partName(part, names, isLive))) },
        { name: "Time", class: "number", of: (part) => format.duration(part.duration) },
        { name: "Share", class: "number", of: (part) => format.percent(part.share) },
      ], parts, { key: (part) => `${part.kind}-${part.level}`, label: `Parts of the ${words.one}` }),
      epoch.operators?.length > 0 && table([
        { name: "Operator", of: (row) => h("bdi", {}, row.name) },
        { name: "Work", of: (row) => row.part },
        { name: "Time", class: "number", of: (row) => format.duration(row.duration) },
      ], epoch.operators, { key: (row) => `${row.vertex}-${row.part}`, label: "Work of operators, all subtasks together" }),
      h("p", { class: "soft" },
        `${format.count(epoch.records)} records${isLive ? "" : `, ${format.rate(total ? (epoch.records * 1000) / total : 0, " records/s")}`}; began at ${format.time(epoch["start-time"])} (${format.ago(epoch["start-time"])})`,
        epoch.watermark === null ? "" : `; watermark ${format.watermark(epoch.watermark)}`,
        epoch.waited > 1 && !isLive ? `; then there was nothing to do for ${format.duration(epoch.waited)}` : "",
        epoch.tries > 1 ? `; it was run ${epoch.tries} times` : "")),
    epoch["is-slow"] ? chip("slow", "bad") : chip("usual", "ok"),
    epoch.checkpoints.map((each) => chip(`${each["is-savepoint"] ? "savepoint" : "checkpoint"} ${each.id}: ${each.status.toLowerCase()}`, each.status === "FAILED" ? "bad" : "note")),
    slow.length > 0 && h("span", { class: "row right" }, h("span", { class: "soft" }, "slow ones:"), slow.slice(-6).map((each) => h("a", { href: `#/jobs/${job.jid}/epochs/${each.epoch}` }, `#${format.count(each.epoch)}`))));
}

// The phases on a real clock: levels overlap where they did.
function gantt(epoch, names, isLive) {
  const start = epoch["start-time"] - partOf(epoch, "planning");
  const end = Math.max(epoch["end-time"] + partOf(epoch, "checkpoint"), start + 1);
  const rows = [
    { text: "planning", from: start, to: epoch["start-time"], part: "part-planning" },
    // Subtasks of a live job have worked since the barrier before; what counts is when this one has passed them.
    ...epoch.levels.map(([from, to], level) => ({ text: partName({ kind: "level", level }, names), from: isLive ? start : from, to, part: `part-level-${level % 4}` })),
    { text: "publishing", from: epoch["end-time"] - partOf(epoch, "publishing"), to: epoch["end-time"], part: "part-publishing" },
    { text: "checkpoint", from: epoch["end-time"], to: epoch["end-time"] + partOf(epoch, "checkpoint"), part: "part-checkpoint" },
  ].filter((row) => row.to - row.from > 0.5);
  const rowHeight = 20;
  const width = room();
  const left = width > 700 ? 250 : 120;
  const toX = (ms) => left + (Math.min(Math.max(ms, start), end) - start) / (end - start) * (width - left - 70);
  return h("div", { class: "scroll" }, s("svg", { class: "chart", viewBox: `0 0 ${width} ${rows.length * rowHeight + 4}`, role: "img", "aria-label": "Phases on a clock" },
    rows.map((row, index) => [
      s("text", { x: 0, y: index * rowHeight + 14 }, format.clip(row.text, width > 700 ? 40 : 17)),
      s("line", { class: "axis", x1: left, x2: width - 70, y1: index * rowHeight + 18, y2: index * rowHeight + 18 }),
      s("rect", { class: row.part, x: toX(row.from).toFixed(1), width: Math.max(1.5, toX(row.to) - toX(row.from)).toFixed(1), y: index * rowHeight + 4, height: 12, rx: 2 }),
      s("text", { x: width, y: index * rowHeight + 14, "text-anchor": "end" }, format.duration(row.to - row.from)),
    ])));
}

function partOf(epoch, kind) {
  return epoch.parts.find((part) => part.kind === kind)?.duration ?? 0;
}

// One vertex: its subtasks and how even they are, its metrics over time, watermarks, accumulators, a flame graph.

import { get, getOr } from "../api.js";
import { byteTicks, lines, room, ticks } from "../chart.js";
import { h, named } from "../dom.js";
import { flamePanel, loadFlame } from "../flame_view.js";
import * as format from "../format.js";
import { chip, copyable, empty, figure, figures, filterBox, shares, table, tabs, when } from "../parts.js";
import { link } from "../router.js";
import { isOver } from "./job.js";

const SAMPLES_KEPT = 400;
const MOST_PLOTS = 6;
const FIRST_METRICS = ["numRecordsInPerSecond", "numRecordsOutPerSecond"];

export async function loadVertex(params, signal, state, job) {
  const at = `/jobs/${params.job}/vertices/${params.vertex}`;
  const tab = params.tab ?? "subtasks";
  const [details, pressure, watermarks] = await Promise.all([
    get(at, signal), getOr(`${at}/backpressure`, { subtasks: [] }, signal), getOr(`${at}/watermarks`, [], signal),
  ]);
  const more = {
    metrics: () => loadMetrics(at, params.vertex, state, signal, isOver(job)),
    flame: () => loadFlame(params, state, signal),
    accumulators: () => getOr(`${at}/subtasks/accumulators`, { subtasks: [] }, signal),
    place: async () => ({
      managers: await getOr(`${at}/taskmanagers`, { taskmanagers: [] }, signal),
      spark: isOver(job) ? { url: null, hint: "not kept of a job that has ended.", stages: [] } : await get(`/jobs/${params.job}/headrace/spark`, signal),
    }),
  }[tab];
  return { details, pressure, watermarks, tab, more: more ? await more() : null };
}

// Metrics are asked for by name, over all subtasks; their history is what this page has seen.
async function loadMetrics(at, vertex, state, signal, over) {
  const samples = ((state.samples ??= {})[vertex] ??= { chosen: null, seen: new Map(), agg: "sum" });
  if (over) return lastValues(at, samples, signal);
  const names = (await get(`${at}/subtasks/metrics`, signal)).map((each) => each.id).sort();
  samples.chosen ??= FIRST_METRICS.filter((name) => names.includes(name));
  if (samples.chosen.length) {
    const found = await getOr(`${at}/subtasks/metrics?get=${samples.chosen.map(encodeURIComponent).join(",")}`, [], signal);
    const now = Date.now();
    for (const metric of found) {
      const history = samples.seen.get(metric.id) ?? [];
      history.push({ at: now, ...metric });
      if (history.length > SAMPLES_KEPT) history.shift();
      samples.seen.set(metric.id, history);
    }
  }
  return { names, samples };
}

// Of a job that has ended there are the last values of each subtask: "0.numRecordsIn".
async function lastValues(at, samples, signal) {
  const ids = (await get(`${at}/metrics`, signal)).map((each) => each.id);
  const names = [...new Set(ids.map((id) => id.slice(id.indexOf(".") + 1)))].sort();
  samples.chosen ??= FIRST_METRICS.filter((name) => names.includes(name));
  const wanted = ids.filter((id) => samples.chosen.includes(id.slice(id.indexOf(".") + 1)));
  const found = wanted.length ? await get(`${at}/metrics?get=${wanted.map(encodeURIComponent).join(",")}`, signal) : [];
  for (const name of samples.chosen) {
    const values = found.filter((each) => each.id.slice(each.id.indexOf(".") + 1) === name).map((each) => Number(each.value)).filter((value) => !Number.isNaN(value));
    const sum = values.reduce((total, value) => total + value, 0);
    if (values.length) samples.seen.set(name, [{ at: Date.now(), id: name, sum, avg: sum / values.length, min: Math.min(...values), max: Math.max(...values) }]);
  }
  return { names, samples };
}

export function vertexPanel(vertex, { job, params, state, ctx, model, pulse }) {
  const { details, tab } = vertex;
  const at = (...parts) => link("jobs", job.jid, "vertices", params.vertex, ...parts);
  const body = {
    subtasks: () => subtasks(vertex, state, ctx),
    metrics: () => metrics(vertex.more, state, ctx),
    flame: () => flamePanel(vertex.more, { params, state, ctx, subtasks: details.parallelism }),
    accumulators: () => accumulators(vertex.more),
    place: () => place(vertex.more, params),
  }[tab] ?? (() => empty("This tab does not exist."));
  return h("section", { class: "panel drawer", "aria-label": `Vertex ${format.clip(details.name, 100)}`, key: "drawer" },
    h("header", {},
      h("h2", { title: format.clip(details.name, 500) }, named(format.clip(details.name, 240))),
      h("a", { class: "plain", href: link("jobs", job.jid), "aria-label": "Close this vertex", title: "Close" }, "✕")),
    tabs([["subtasks", "Subtasks", at()], ["metrics", "Metrics", at("metrics")], ["flame", "Flame graph", at("flame")], ["accumulators", "Accumulators", at("accumulators")], ["place", "Executors", at("place")]], tab, "Vertex"),
    h("div", { class: "body stack" },
      tab === "subtasks" && head(details, pulse, model),
      body()));
}

function head(details, pulse, model) {
  return h("div", { class: "stack" },
    figures(
      figure("Parallelism", format.count(details.parallelism), `max ${format.count(details.maxParallelism)}`),
      figure("Records in", format.rate(pulse?.["records-in-per-second"]), `${format.short(details.aggregated.metrics["read-records"].sum)} in all`),
      figure("Records out", format.rate(pulse?.["records-out-per-second"]), `${format.short(details.aggregated.metrics["write-records"].sum)} in all`),
      figure("Bytes in", pulse ? `${format.bytes(pulse["bytes-in-per-second"])}/s` : format.NONE, `${format.bytes(details.aggregated.metrics["read-bytes"].sum)} in all`)),
    model && model.chain.length > 1 && h("details", { class: "soft" }, h("summary", {}, `${model.chain.length} chained operators`),
      h("ul", {}, model.chain.map((each) => h("li", { style: { "padding-inline-start": `${12 + 14 * each.depth}px` } }, named(format.clip(each.name, 300)))))));
}

// How evenly the work is spread: the largest against the middle. Pure.
export function skewOf(values) {
  if (values.length < 2) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length % 2 ? sorted[(sorted.length - 1) / 2] : (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2;
  const most = sorted.at(-1);
  return { most, middle, factor: middle > 0 ? most / middle : most > 0 ? Infinity : 1, worst: values.indexOf(most) };
}

function subtasks({ details, pressure, watermarks }, state, ctx) {
  state.subtasks ??= {};
  const ratios = new Map(pressure.subtasks.map((each) => [each.subtask, each]));
  const marks = new Map(watermarks.map((each) => [Number(each.id.split(".")[0]), each.value]));
  const records = details.subtasks.map((each) => Math.max(each.metrics["read-records"], each.metrics["write-records"]));
  const most = Math.max(1, ...records);
  const columns = [
    { name: "#", class: "tight", sort: (row) => row.subtask, of: (row) => format.count(row.subtask) },
    { name: "State", class: "tight", sort: (row) => row.status, of: (row) => chip(row.status) },
    { name: "Time", title: "busy, back-pressured, idle", of: (row) => { const each = ratios.get(row.subtask); return each ? shares(Number(each.busyRatio) || 0, each.ratio) : format.NONE; } },
    { name: "Pressure", class: "tight", sort: (row) => ratios.get(row.subtask)?.ratio ?? 0, of: (row) => pressureChip(ratios.get(row.subtask)) },
    { name: "Records in", class: "number", sort: (row) => row.metrics["read-records"], of: (row) => format.count(row.metrics["read-records"]) },
    { name: "Records out", class: "number", sort: (row) => row.metrics["write-records"], of: (row) => format.count(row.metrics["write-records"]) },
    { name: "Bytes in", class: "number", sort: (row) => row.metrics["read-bytes"], of: (row) => format.bytes(row.metrics["read-bytes"]) },
    { name: "Bytes out", class: "number", sort: (row) => row.metrics["write-bytes"], of: (row) => format.bytes(row.metrics["write-bytes"]) },
    { name: "Watermark", class: "tight", sort: (row) => Number(marks.get(row.subtask) ?? 0), of: (row) => format.watermark(marks.get(row.subtask)) },
    { name: "Where", class: "tight", of: (row) => h("span", { class: "mono" }, format.clip(row["taskmanager-id"], 40)) },
    { name: "Attempt", class: "number", of: (row) => format.count(row.attempt) },
    { name: "Runs for", class: "number", of: (row) => format.duration(row.duration) },
  ];
  return h("div", { class: "stack" },
    skewBars(records, most),
    table(columns, details.subtasks, { key: (row) => row.subtask, label: "Subtasks", state: state.subtasks, ctx }));
}

export function pressureChip(each) {
  if (!each) return format.NONE;
  return h("span", { class: "line-up" }, chip(each.backpressureLevel.toUpperCase(), { ok: "ok", low: "warn", high: "bad" }[each.backpressureLevel]), h("span", { class: "soft" }, format.percent(each.ratio)));
}

function skewBars(records, most) {
  const skew = skewOf(records);
  if (!skew) return null;
  const even = skew.factor < 1.5;
  const text = even ? "Records are spread evenly over the subtasks." : skew.factor === Infinity ? `Subtask ${skew.worst} has all the records.` : `Subtask ${skew.worst} has ${skew.factor.toFixed(1)} times the median number of records.`;
  return h("div", {},
    h("div", { class: "row" }, h("h3", {}, "Skew"), h("span", { class: even ? "soft" : "" }, text)),
    h("div", { class: "skew", role: "img", "aria-label": text }, records.slice(0, 256).map((value, index) => h("i", { class: !even && index === skew.worst ? "worst" : "", title: `subtask ${index}: ${format.count(value)} records`, style: { height: `${((value / most) * 100).toFixed(1)}%` } }))));
}

function metrics({ names, samples }, state, ctx) {
  const wanted = (state.filter ?? "").toLowerCase();
  const offered = names.filter((name) => name.toLowerCase().includes(wanted));
  const toggle = (name) => {
    samples.chosen = samples.chosen.includes(name) ? samples.chosen.filter((each) => each !== name) : [...samples.chosen, name].slice(-MOST_PLOTS);
    ctx.reload();
    ctx.repaint();
  };
  return h("div", { class: "stack" },
    h("div", { class: "row" },
      filterBox(state, ctx, "Find a metric"),
      h("label", { class: "row soft" }, "over subtasks", h("select", { "aria-label": "Aggregate over subtasks", value: samples.agg, on: { change: (event) => { samples.agg = event.target.value; ctx.repaint(); } } }, ["sum", "avg", "min", "max"].map((each) => h("option", { value: each, selected: each === samples.agg }, each))))),
    h("div", { class: "choices", role: "group", "aria-label": "Metrics" }, offered.slice(0, 60).map((name) => h("button", { key: name, "aria-pressed": String(samples.chosen.includes(name)), "data-metric": name, title: format.clip(name, 300), on: { click: () => toggle(name) } }, named(format.clip(name, 48)))),
      offered.length > 60 && h("span", { class: "faint" }, `and ${offered.length - 60} more: type to find them`)),
    samples.chosen.length === 0 && empty("Choose a metric to plot it."),
    samples.chosen.map((name) => plot(name, samples)));
}

function plot(name, samples) {
  const history = samples.seen.get(name) ?? [];
  const points = history.map((each) => [each.at, each[samples.agg] ?? null]);
  const last = points.at(-1)?.[1];
  return h("div", { key: `plot-${name}`, "data-plot": name },
    h("div", { class: "row" }, h("h3", {}, named(format.clip(name, 90))), h("span", { class: "right nowrap" }, valueOf(name, last)), skewNote(history.at(-1))),
    points.length ? lines([{ name, points }], { label: `${format.clip(name, 90)}, now ${valueOf(name, last)}`, format: /bytes/i.test(name) ? format.bytes : format.short, formatX: format.clock, height: 120, width: drawerRoom(), scaled: /bytes/i.test(name) ? byteTicks : ticks }) : empty("No value yet."));
}

function drawerRoom() {
  return Math.max(280, (document.querySelector(".drawer")?.clientWidth ?? room(0.42)) - 30);
}

function skewNote(last) {
  return last?.skew > 0 ? h("span", { class: "faint nowrap" }, `skew ${Math.round(last.skew)} %`) : null;
}

function valueOf(name, value) {
  if (value === undefined || value === null) return format.NONE;
  if (/bytes/i.test(name)) return `${format.bytes(value)}${/PerSecond$/.test(name) ? "/s" : ""}`;
  if (/watermark$/i.test(name)) return format.watermark(value);
  return `${format.short(value)}${/PerSecond$/.test(name) ? "/s" : ""}`;
}

function accumulators({ subtasks: rows }) {
  const found = rows.flatMap((row) => (row["user-accumulators"] ?? []).map((each) => ({ ...each, subtask: row.subtask })));
  return table([
    { name: "Subtask", class: "tight", of: (row) => format.count(row.subtask) },
    { name: "Name", of: (row) => named(format.clip(row.name, 200)) },
    { name: "Type", of: (row) => row.type },
    { name: "Value", of: (row) => named(format.clip(row.value, 300)) },
  ], found, { key: (row) => `${row.subtask}/${row.name}`, label: "Accumulators", none: "No function of this vertex has registered an accumulator. Counters and gauges are under Metrics." });
}

function place({ managers, spark }, params) {
  const stage = spark.stages.find((each) => each.id === params.vertex);
  return h("div", { class: "stack" },
    table([
      { name: "Executor", of: (row) => h("a", { href: link("executors", row["taskmanager-id"]) }, named(format.clip(row["taskmanager-id"], 60))) },
      { name: "Host", of: (row) => copyable(row.endpoint) },
      { name: "State", class: "tight", of: (row) => chip(row.status) },
      { name: "Records in", class: "number", of: (row) => format.count(row.metrics["read-records"]) },
      { name: "Records out", class: "number", of: (row) => format.count(row.metrics["write-records"]) },
      { name: "Since", class: "tight", of: (row) => when(row["start-time"]) },
    ], managers.taskmanagers, { key: (row) => `${row.endpoint}/${row["taskmanager-id"]}`, label: "Executors of this vertex" }),
    h("p", { class: "soft" }, "In Spark's own user interface: ",
      stage ? h("a", { href: safeUrl(stage.url), target: "_blank", rel: "noopener noreferrer" }, "the stage that ran this vertex last") : spark.url ? h("a", { href: safeUrl(spark.url), target: "_blank", rel: "noopener noreferrer" }, "Spark") : spark.hint));
}

function safeUrl(url) {
  return /^https?:\/\//.test(url) ? url : "#/";
}

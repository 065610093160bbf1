// Checkpoints: how long they take and how large they are, their history down to the subtask, state by operator.

import { get, getOr } from "../api.js";
import { byteTicks, lines, room, ticks } from "../chart.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { chip, copyable, figure, figures, meter, pairs, panel, table, when } from "../parts.js";
import { isOver, jobView, savepoint, stop } from "./job.js";

const NEVER = 2 ** 62;

export const checkpoints = jobView("checkpoints", {
  tab: "checkpoints",
  title: "checkpoints",

  async load(params, signal, state) {
    const at = `/jobs/${params.job}`;
    const [all, config, states, details, subtasks] = await Promise.all([
      get(`${at}/checkpoints`, signal),
      getOr(`${at}/checkpoints/config`, null, signal),
      getOr(`${at}/headrace/state`, { operators: [] }, signal),
      state.open ? getOr(`${at}/checkpoints/details/${state.open}`, null, signal) : null,
      state.open && state.vertex ? getOr(`${at}/checkpoints/details/${state.open}/subtasks/${state.vertex}`, null, signal) : null,
    ]);
    return { all, config, states, details, subtasks };
  },

  body({ job, all, config, states, details, subtasks }, params, state, ctx) {
    const { counts, latest, history } = all;
    const completed = history.filter((each) => each.status === "COMPLETED").reverse();
    return h("div", { class: "stack" },
      h("div", { class: "row" },
        !isOver(job) && h("button", { class: "primary", on: { click: () => savepoint(job, ctx) } }, "Take a savepoint …"),
        !isOver(job) && h("button", { on: { click: () => stop(job, ctx) } }, "Stop with a savepoint …")),
      figures(
        figure("Completed", format.count(counts.completed), `${format.count(counts.total)} in all`),
        figure("In progress", format.count(counts.in_progress), "now"),
        figure("Failed", format.count(counts.failed), latest.failed ? format.ago(latest.failed.failure_timestamp) : "none"),
        figure("Latest", latest.completed ? format.duration(latest.completed.end_to_end_duration) : format.NONE, latest.completed ? `#${latest.completed.id}, ${format.ago(latest.completed.trigger_timestamp)}` : "none yet"),
        figure("State", latest.completed ? format.bytes(latest.completed.state_size) : format.NONE, latest.completed ? `${format.bytes(latest.completed.checkpointed_size)} written` : ""),
        figure("Restored", format.count(counts.restored), latest.restored ? `from #${latest.restored.id}` : "never")),
      latest.failed && h("div", { class: "notice warn" }, h("div", {}, h("strong", {}, `Checkpoint ${latest.failed.id} failed ${format.ago(latest.failed.failure_timestamp)}`), h("p", {}, named(format.clip(latest.failed.failure_message, 600))))),
      completed.length > 1 && h("div", { class: "grid-2" }, plot("Duration", completed, (each) => each.end_to_end_duration, format.duration), plot("Size", completed, (each) => each.state_size, format.bytes, (each) => each.checkpointed_size)),
      panel("History", historyTable(history, { details, subtasks, job, state, ctx })),
      h("div", { class: "grid-2" },
        panel("State by operator", stateTable(states.operators)),
        config && panel("Configuration", h("div", { class: "body" }, configuration(config)))),
      retained(history, latest));
  },
});

function plot(name, completed, value, written, second) {
  const points = (of) => completed.map((each) => [each.trigger_timestamp, of(each)]);
  const series = [{ name, points: points(value) }, ...(second ? [{ name: "written", points: points(second) }] : [])];
  return panel(second ? `${name}: whole state, and what was written` : name, h("div", { class: "body" }, lines(series, { label: `${name} of the last ${completed.length} checkpoints`, format: written, formatX: format.clock, height: 140, width: room(innerWidth > 920 ? 0.47 : 1), scaled: second ? byteTicks : ticks, dots: completed.length < 40 })));
}

function historyTable(history, { details, subtasks, job, state, ctx }) {
  state.history ??= {};
  const open = (row) => {
    state.open = state.open === row.id ? null : row.id;
    state.vertex = null;
    ctx.reload();
    ctx.repaint();
  };
  return table([
    { name: "Id", class: "tight", sort: (row) => row.id, of: (row) => h("button", { class: "link", "aria-expanded": String(state.open === row.id), on: { click: () => open(row) } }, `${state.open === row.id ? "▾" : "▸"} ${format.count(row.id)}`) },
    { name: "State", class: "tight", of: (row) => chip(row.status) },
    { name: "Kind", class: "tight", of: (row) => (row.is_savepoint ? chip("savepoint", "note") : "checkpoint") },
    { name: "Taken", class: "tight", sort: (row) => row.trigger_timestamp, of: (row) => when(row.trigger_timestamp) },
    { name: "Duration", class: "number", sort: (row) => row.end_to_end_duration, of: (row) => format.duration(row.end_to_end_duration) },
    { name: "Written", class: "number", sort: (row) => row.checkpointed_size, of: (row) => format.bytes(row.checkpointed_size) },
    { name: "State size", class: "number", sort: (row) => row.state_size, of: (row) => format.bytes(row.state_size) },
    { name: "In flight", class: "number", sort: (row) => row.persisted_data, of: (row) => format.bytes(row.persisted_data) },
    { name: "Subtasks", class: "number", of: (row) => `${format.count(row.num_acknowledged_subtasks)} of ${format.count(row.num_subtasks)}` },
    { name: "Where", of: (row) => pathOf(row) },
  ], history, {
    key: (row) => row.id, label: "History of checkpoints", state: state.history, ctx, pick: open, none: "No checkpoint has been taken.",
    nested: (row) => (row.id === state.open && details ? vertices(details, { subtasks, job, state, ctx }) : null),
  });
}

function pathOf(row) {
  if (row.failure_message) return h("span", { class: "soft" }, named(format.clip(row.failure_message, 160)));
  if (!row.external_path) return format.NONE;
  return row.discarded ? h("span", { class: "faint" }, "discarded") : copyable(row.external_path, format.clip(row.external_path, 90));
}

function vertices(details, { subtasks, job, state, ctx }) {
  const names = new Map(job.vertices.map((vertex) => [vertex.id, vertex.name]));
  const rows = Object.entries(details.tasks).map(([id, task]) => ({ ...task, vertex: id }));
  const open = (row) => {
    state.vertex = state.vertex === row.vertex ? null : row.vertex;
    ctx.reload();
    ctx.repaint();
  };
  return table([
    { name: "Vertex", class: "name-cell", of: (row) => h("button", { class: "link", "aria-expanded": String(state.vertex === row.vertex), on: { click: () => open(row) } }, `${state.vertex === row.vertex ? "▾" : "▸"} `, named(format.clip(names.get(row.vertex) ?? row.vertex, 100))) },
    { name: "Written", class: "number", of: (row) => format.bytes(row.checkpointed_size) },
    { name: "State size", class: "number", of: (row) => format.bytes(row.state_size) },
    { name: "Duration", class: "number", of: (row) => format.duration(row.end_to_end_duration) },
    { name: "Subtasks", class: "number", of: (row) => `${format.count(row.num_acknowledged_subtasks)} of ${format.count(row.num_subtasks)}` },
  ], rows, {
    key: (row) => row.vertex, label: "Vertices of the checkpoint", none: "No more details are available.",
    nested: (row) => (row.vertex === state.vertex && subtasks ? subtaskTable(subtasks.subtasks) : null),
  });
}

function subtaskTable(rows) {
  const most = Math.max(1, ...rows.map((row) => row.state_size));
  return table([
    { name: "Subtask", class: "tight", of: (row) => format.count(row.index) },
    { name: "State", of: (row) => meter(row.state_size / most, format.bytes(row.state_size), 2) },
    { name: "State size", class: "number", of: (row) => format.bytes(row.state_size) },
    { name: "Written", class: "number", of: (row) => format.bytes(row.checkpointed_size) },
    { name: "Sync", class: "number", of: (row) => format.duration(row.checkpoint?.sync) },
    { name: "Async", class: "number", of: (row) => format.duration(row.checkpoint?.async) },
    { name: "Start delay", class: "number", of: (row) => format.duration(row.start_delay) },
    { name: "Alignment", class: "number", of: (row) => format.duration(row.alignment?.duration) },
    { name: "Processed", class: "number", of: (row) => format.bytes(row.alignment?.processed) },
    { name: "In flight", class: "number", of: (row) => (row.unaligned_checkpoint ? format.bytes(row.alignment?.persisted) : format.NONE) },
    { name: "Acknowledged", class: "tight", of: (row) => when(row.ack_timestamp) },
  ], rows, { key: (row) => row.index, label: "Subtasks of the checkpoint" });
}

function stateTable(operators) {
  const most = Math.max(1, ...operators.map((row) => row["keyed-size"] + row["operator-size"]));
  return table([
    { name: "Operator", class: "name-cell", of: (row) => named(format.clip(row.operator, 90), { title: format.clip(row.operator, 400) }) },
    { name: "Size", class: "number", of: (row) => format.bytes(row["keyed-size"] + row["operator-size"]) },
    { name: "", of: (row) => meter((row["keyed-size"] + row["operator-size"]) / most, format.bytes(row["keyed-size"] + row["operator-size"]), 2) },
    { name: "Largest subtask", class: "number", of: (row) => format.bytes(row["largest-subtask"]) },
    { name: "Files", class: "number", of: (row) => format.count(row.files) },
  ], operators, { key: (row) => row["operator-id"], label: "State by operator", none: "No operator has state." });
}

function configuration(config) {
  const never = (ms) => (ms >= NEVER ? "on request only" : format.duration(ms));
  return pairs([
    ["Mode", config.mode.replaceAll("_", " ")],
    ["Unaligned", config.unaligned_checkpoints ? (config.aligned_checkpoint_timeout ? `after ${format.duration(config.aligned_checkpoint_timeout)}` : "yes") : "no"],
    ["Interval", never(config.interval)],
    ["Timeout", format.duration(config.timeout)],
    ["Least pause", format.duration(config.min_pause)],
    ["At once", format.count(config.max_concurrent)],
    ["Failures tolerated", format.count(config.tolerable_failed_checkpoints)],
    ["Kept when the job ends", config.externalization.enabled ? (config.externalization.delete_on_cancellation ? "yes, unless it is cancelled" : "yes") : "no"],
    ["State backend", config.state_backend],
    ["Storage", config.checkpoint_storage],
  ]);
}

function retained(history, latest) {
  const kept = history.filter((each) => each.status === "COMPLETED" && !each.discarded && each.external_path);
  const restored = latest.restored;
  return panel("Retained: checkpoints the job can be restored from", table([
    { name: "Id", class: "tight", of: (row) => format.count(row.id) },
    { name: "Kind", class: "tight", of: (row) => (row.is_savepoint ? chip("savepoint", "note") : "checkpoint") },
    { name: "Size", class: "number", of: (row) => format.bytes(row.state_size) },
    { name: "Taken", class: "tight", of: (row) => when(row.trigger_timestamp, { both: true }) },
    { name: "Where", of: (row) => copyable(row.external_path) },
  ], kept, { key: (row) => row.id, label: "Retained checkpoints", none: "No checkpoints are retained." }),
  restored && h("span", { class: "soft right" }, `the job came from #${restored.id}, ${format.ago(restored.restore_timestamp)}`));
}

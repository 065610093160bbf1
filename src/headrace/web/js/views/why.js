// Why a row was emitted: a question, and the answer step by step. Nothing is asked for until somebody asks.

import { send } from "../api.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { chip, empty, panel, table } from "../parts.js";
import { jobView } from "./job.js";

const MOST = 200;

export const why = jobView("why", {
  tab: "why",
  title: "why",
  load: async () => ({}),
  body({ job }, params, state, ctx) {
    return h("div", { class: "stack" }, question(job, state, ctx), state.problem && h("div", { class: "notice warn", role: "alert" }, named(format.clip(state.problem, 1500))), state.answer && answer(state.answer));
  },
});

function question(job, state, ctx) {
  const field = (name, label, hint) => h("label", { class: "stack" }, h("span", { class: "soft" }, label),
    h("input", { type: "text", name, placeholder: hint, value: state[name] ?? "", "data-own": "", on: { input: (event) => { state[name] = event.target.value; } } }));
  return panel("Which row?", h("form", { class: "body row why-question", on: { submit: (event) => { event.preventDefault(); ask(job, state, ctx); } } },
    field("row", "Row, or a part of it", "('ann', 12)"),
    field("key", "or the last row of a key", "ann"),
    field("epoch", "in epoch", "any"),
    h("button", { type: "submit", disabled: Boolean(state.asking) }, state.asking ? "Replaying …" : "Explain")));
}

async function ask(job, state, ctx) {
  Object.assign(state, { asking: true, problem: "", answer: null });
  ctx.repaint();
  const epoch = Number.parseInt(state.epoch, 10);
  const body = state.row ? { by: "row", text: state.row } : { by: "key", text: state.key ?? "" };
  try {
    state.answer = await send("POST", `/jobs/${job.jid}/headrace/why`, Number.isNaN(epoch) ? body : { ...body, epoch });
  } catch (error) {
    state.problem = error.message;
  }
  state.asking = false;
  ctx.repaint();
}

function answer(found) {
  const where = `epoch ${found.epoch}, ${format.clip(found.sink, 100)}:${found.subtask}`;
  return h("div", { class: "stack" },
    panel("Row", h("div", { class: "body stack" },
      h("p", { class: "why mono", "data-row": "" }, named(format.clip(found.row, 600))),
      h("p", { class: "soft" }, named(where), found.matches > 1 ? `, the last of ${format.count(found.matches)} such rows in this epoch` : ""),
      endings(found).map((text) => h("p", { class: "soft" }, named(text))))),
    groups(found.steps).map(([name, steps]) => panel(name, steps.length > MOST ? h("div", {}, empty(`${format.count(steps.length - MOST)} earlier steps are not shown.`), stepTable(name, steps.slice(-MOST))) : stepTable(name, steps))),
    panel(`Computed from ${format.count(found.inputs.length)} input ${found.inputs.length === 1 ? "record" : "records"}`, inputTable(found.inputs.slice(-MOST)),
      found.inputs.length > MOST && h("span", { class: "soft" }, `the last ${format.count(MOST)}`)));
}

// Steps by operator and key, in the order of the answer.
function groups(steps) {
  const found = new Map();
  for (const step of steps) {
    const name = step.key === null ? step.operator : `${step.operator}, key ${step.key}`;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(step);
  }
  return [...found].map(([name, own]) => [format.clip(name, 200), own]);
}

function stepTable(name, steps) {
  return table([
    { name: "Epoch", class: "number tight", of: (row) => format.count(row.epoch) },
    { name: "What came", class: "mono", of: (row) => named(format.clip(came(row), 300)) },
    { name: "State of the key", class: "mono", of: (row) => named(format.clip(row.state.filter(isTelling).map(change).join(", "), 600)) },
    { name: "", class: "tight", of: (row) => (row.emits_row ? chip("emitted the row", "ok") : "") },
  ], steps, { key: (row) => `${name}/${row.epoch}/${steps.indexOf(row)}`, label: name });
}

function inputTable(inputs) {
  return table([
    { name: "Epoch", class: "number tight", of: (row) => format.count(row.epoch) },
    { name: "Source", of: (row) => named(row.number ? `${format.clip(row.source, 100)}:${row.subtask}` : format.clip(row.source, 100)) },
    { name: "Record of the epoch", class: "number tight", of: (row) => (row.number ? format.count(row.number) : "") },
    { name: "Record", class: "mono", of: (row) => named(format.clip(row.record, 600)) },
  ], inputs, { key: (row) => `${row.epoch}/${row.source}/${row.subtask}/${row.number}/${inputs.indexOf(row)}`, label: "Input records", none: "No input is recorded." });
}

function came(step) {
  if (step.kind === "timer") return `timer ${step.what}`;
  if (step.kind === "window") return `window ${step.what} ends`;
  return step.what;
}

function isTelling(each) {
  return each.before !== null || (each.is_written && each.after !== null);
}

function change({ state, part, before, after, is_written: isWritten }) {
  const name = part === null ? state : `${state} ${part}`;
  if (state === "timer") return isWritten ? `timer set for ${after}` : "timer";
  if (!isWritten || before === after) return `${name} ${before}`;
  if (after === null) return `${name} ${before}, then removed`;
  if (before === null || after.startsWith("+")) return `${name} ${after}`;
  return `${name} ${before} → ${after}`;
}

function endings(found) {
  const texts = found.unknown.map((each) => `The history ends before epoch ${each.oldest_epoch}, the oldest one that is recorded: ${each.state} of ${each.operator}, key ${each.key}, was ${each.value} at state version ${each.version}.`);
  if (!texts.length) texts.push("This is the whole history of the row.");
  for (const operator of found.with_fields) texts.push(`${operator} also keeps values in fields or operator state of its function, which are not followed.`);
  if (found.is_upper_bound) texts.push("An asynchronous function may have used only some of these records.");
  if (found.differences.length) texts.push(`The replay differs from the original run, so this explains the replay: ${found.differences.slice(0, 3).join("; ")}`);
  return texts.map((text) => format.clip(text, 600));
}

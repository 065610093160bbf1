// Spark's executors: slots, memory, tasks; and one of them with its metrics.

import { get, getOr } from "../api.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { figure, figures, meter, pairs, panel, table } from "../parts.js";
import { link } from "../router.js";

export const executors = {
  name: "executors",
  title: () => "Executors – headrace",

  async load(params, signal, state) {
    const { taskmanagers } = await get("/taskmanagers", signal);
    const more = await Promise.all(taskmanagers.slice(0, 64).map((each) => getOr(`/taskmanagers/${encodeURIComponent(each.id)}/metrics?get=${CPU.concat(HEAP).join(",")}`, [], signal)));
    const values = new Map(taskmanagers.map((each, index) => [each.id, valuesOf(more[index])]));
    for (const each of taskmanagers) noteTaskTime(state, each, values.get(each.id));
    return { taskmanagers, values };
  },

  render({ taskmanagers, values }, params, state, ctx) {
    state.sort ??= {};
    const slots = taskmanagers.reduce((sum, each) => sum + each.slotsNumber, 0);
    const free = taskmanagers.reduce((sum, each) => sum + each.freeSlots, 0);
    return h("div", { class: "stack" },
      h("h1", {}, "Executors"),
      figures(
        figure("Executors", format.count(taskmanagers.length), "of Spark"),
        figure("Slots", format.count(slots), `${format.count(free)} free`),
        figure("Tasks", format.count(taskmanagers.reduce((sum, each) => sum + each.assignedTasks, 0)), "at work now")),
      panel("Executors", table([
        { name: "Executor", sort: (row) => row.id, of: (row) => h("a", { href: link("executors", row.id) }, named(format.clip(row.id, 80))) },
        { name: "Where", class: "mono nowrap", of: (row) => named(format.clip(row.path, 120)) },
        { name: "Slots", class: "tight", of: (row) => h("div", { class: "line-up" }, meter((row.slotsNumber - row.freeSlots) / Math.max(1, row.slotsNumber), "slots taken", 2), `${format.count(row.slotsNumber - row.freeSlots)} of ${format.count(row.slotsNumber)}`) },
        { name: "Tasks", class: "number", sort: (row) => row.assignedTasks, of: (row) => format.count(row.assignedTasks) },
        { name: "Memory", class: "tight", of: (row) => memory(row, values.get(row.id)) },
        { name: "CPU", class: "tight", title: "the part of its cores that tasks had, as tasks end", of: (row) => cpu(state.loads?.get(row.id)) },
        { name: "Cores", class: "number", of: (row) => format.count(row.hardware.cpuCores) },
        { name: "Heard of", class: "number", of: (row) => (row.timeSinceLastHeartbeat > 0 ? format.ago(row.timeSinceLastHeartbeat) : "now") },
        { name: "", class: "tight", of: (row) => h("a", { href: link("logs", row.id) }, "Logs") },
      ], taskmanagers, { key: (row) => row.id, label: "Executors", state: state.sort, ctx, none: "No executors yet. Spark starts with the first job." })));
  },
};

const CPU = ["taskTime"];
const HEAP = ["Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.Heap.Max"];

function valuesOf(metrics) {
  return new Map(metrics.filter((each) => each.value !== undefined && each.value !== "null").map((each) => [each.id, Number(each.value)]));
}

function memory(row, values) {
  const most = values?.get(HEAP[1]) ?? row.memoryConfiguration.taskHeap;
  const used = values?.get(HEAP[0]) ?? most - row.hardware.freeMemory;
  return h("div", { class: "line-up" }, meter(used / Math.max(1, most), "memory used"), h("span", { class: "nowrap" }, `${format.bytes(used)} of ${format.bytes(most)}`));
}

// How busy its cores were between two looks: Spark adds the time of a task up when the task ends.
function noteTaskTime(state, { id, hardware }, values) {
  state.taskTimes ??= new Map();
  state.loads ??= new Map();
  const [now, spent] = [Date.now(), values.get(CPU[0])];
  const before = state.taskTimes.get(id);
  if (spent === undefined) return;
  if (before && spent !== before.spent && now - before.at > 1500) {
    state.loads.set(id, Math.min(1, (spent - before.spent) / (now - before.at) / Math.max(1, hardware.cpuCores)));
  } else if (before && now - before.at > 20_000) {
    state.loads.set(id, 0);
  }
  if (!before || spent !== before.spent) state.taskTimes.set(id, { at: now, spent });
}

function cpu(load) {
  if (load === undefined) return h("span", { class: "faint" }, "…");
  return h("div", { class: "line-up" }, meter(load, `cores at work: ${format.percent(load)}`), format.percent(load));
}

export const executor = {
  name: "executor",
  title: (data, params) => `${params.executor} – headrace`,

  async load(params, signal) {
    const at = `/taskmanagers/${encodeURIComponent(params.executor)}`;
    const [details, names] = await Promise.all([get(at, signal), getOr(`${at}/metrics`, [], signal)]);
    const wanted = names.map((each) => each.id);
    const values = wanted.length ? await getOr(`${at}/metrics?get=${wanted.map(encodeURIComponent).join(",")}`, [], signal) : [];
    return { details, values };
  },

  render({ details, values }, params) {
    const collectors = details.metrics.garbageCollectors ?? [];
    return h("div", { class: "stack" },
      h("div", { class: "row" }, h("h1", {}, named(`Executor ${format.clip(details.id, 80)}`)), h("a", { class: "right", href: link("logs", details.id) }, "Logs")),
      figures(
        figure("Slots", `${format.count(details.slotsNumber - details.freeSlots)} of ${format.count(details.slotsNumber)}`, "taken"),
        figure("Heap", format.bytes(details.metrics.heapUsed), `of ${format.bytes(details.metrics.heapMax)}`),
        figure("Garbage collection", format.duration(collectors.reduce((sum, each) => sum + each.time, 0)), "so far"),
        figure("Cores", format.count(details.hardware.cpuCores), `${format.bytes(details.hardware.physicalMemory)} of memory`)),
      h("div", { class: "grid-2" },
        panel("About", h("div", { class: "body" }, pairs([
          ["Address", named(details.path)],
          ["Free memory", format.bytes(details.hardware.freeMemory)],
          ["Task heap", format.bytes(details.memoryConfiguration.taskHeap)],
          ["Managed memory", format.bytes(details.memoryConfiguration.managedMemory)],
          ["Non-heap", format.bytes(details.metrics.nonHeapUsed)],
        ]))),
        panel("Slots", table([
          { name: "Job", of: (row) => h("a", { class: "mono", href: link("jobs", row.jobId) }, row.jobId) },
          { name: "Tasks", class: "number", of: (row) => format.count(row.assignedTasks) },
          { name: "CPU", class: "number", of: (row) => format.count(row.resource.cpuCores) },
        ], (details.allocatedSlots ?? []).map((each, index) => ({ ...each, index })), { key: (row) => row.index, label: "Used slots", none: "All slots are free." }))),
      panel("Metrics", table([
        { name: "Metric", class: "mono", of: (row) => named(format.clip(row.id, 140)) },
        { name: "Value", class: "number", of: (row) => valueOf(row) },
      ], values, { key: (row) => row.id, label: "Metrics of the executor", none: "No metrics." })));
  },
};

function valueOf({ id, value }) {
  const number = Number(value);
  if (value === undefined || Number.isNaN(number)) return named(format.clip(value ?? format.NONE, 80));
  if (id === "taskTime" || /GarbageCollector.*Time$/.test(id)) return format.duration(number);
  if (/Memory|Bytes/.test(id) && !/Count$/.test(id)) return format.bytes(number);
  return Number.isInteger(number) ? format.count(number) : format.short(number);
}

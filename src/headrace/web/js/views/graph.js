// The job graph with live numbers; a vertex that is picked opens beside it.

import { getOr } from "../api.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import { drawGraph, laidOut, neighbour, vertexModels } from "../graph_view.js";
import { figure, figures, sharesLegend } from "../parts.js";
import { lines, room } from "../chart.js";
import { go } from "../router.js";
import { jobView } from "./job.js";
import { loadVertex, vertexPanel } from "./vertex.js";

// From this width on a vertex opens beside the graph; see views.css.
const BESIDE = 1180;
const ZOOMS = [0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5];

export const graph = jobView("graph", {
  tab: "graph",
  title: "headrace",

  async load(params, signal, state, job) {
    const at = `/jobs/${params.job}`;
    const [pulse, throughput, vertex] = await Promise.all([
      getOr(`${at}/headrace/vertices`, { vertices: [] }, signal),
      getOr(`${at}/headrace/throughput`, { step: 5000, jobs: [] }, signal),
      params.vertex ? loadVertex(params, signal, state, job) : null,
    ]);
    return { pulse, throughput, vertex };
  },

  body({ job, pulse, throughput, vertex }, params, state, ctx) {
    const models = vertexModels(job);
    const placed = laidOut(models, state);
    const pulses = new Map(pulse.vertices.map((each) => [each.id, each]));
    const beside = Boolean(params.vertex && vertex) && innerWidth >= BESIDE;
    const zoom = state.zoom ?? fittingZoom(placed, beside);
    // What is drawn may stay for long: it must not hold on to what is picked now.
    state.picked = params.vertex;
    const pick = (id) => go("jobs", job.jid, ...(id === state.picked ? [] : ["vertices", id]));
    const svg = drawGraph(models, pulses, placed, {
      id: job.jid, drawn: (state.drawn ??= new Map()), picked: params.vertex, zoom, onPick: pick,
      onMove: (id, key) => focusVertex(neighbour(id, key, models, placed)),
    });
    const step = (by) => () => {
      const index = ZOOMS.findIndex((each) => each >= zoom - 1e-9);
      state.zoom = ZOOMS[Math.min(ZOOMS.length - 1, Math.max(0, (index < 0 ? ZOOMS.length - 1 : index) + by))];
      ctx.repaint();
    };
    const open = params.vertex && vertex;
    revealDrawer(open ? params.vertex : null, state);
    return h("div", { class: open ? "split open" : "split" },
      h("div", { class: "stack" },
        summary(job, pulse, throughput, models),
        h("section", { class: "panel", "aria-label": "Job graph" },
          h("header", {}, h("h2", {}, "Graph"), sharesLegend(),
            h("span", { class: "row right" },
              h("button", { "aria-label": "Smaller", title: "Smaller", on: { click: step(-1) } }, "−"),
              h("button", { title: "Fit to width", on: { click: () => { state.zoom = null; ctx.repaint(); } } }, "Fit"),
              h("button", { "aria-label": "Larger", title: "Larger", on: { click: step(1) } }, "+"))),
          h("div", { class: "graph-frame" }, svg)),
        throughputPanel(throughput, beside, job)),
      open && vertexPanel(vertex, { job, params, state, ctx, model: models.find((each) => each.id === params.vertex), pulse: pulses.get(params.vertex) }));
  },
});

// Until somebody chooses another, the graph is as wide as there is room; on a phone it must be read, and is scrolled.
function fittingZoom(placed, beside) {
  const least = innerWidth < 640 ? 0.65 : ZOOMS[0];
  return Math.min(1, Math.max(least, (room(beside ? 0.57 : 1) + 20) / Math.max(1, placed.width)));
}

// Where the vertex opens below the graph, go there; once, so that nobody is pulled back.
function revealDrawer(vertex, state) {
  if (state.revealed !== vertex && vertex && innerWidth < BESIDE) {
    requestAnimationFrame(() => document.querySelector(".drawer")?.scrollIntoView({ block: "start" }));
  }
  state.revealed = vertex;
}

function focusVertex(id) {
  if (id === null) return false;
  document.querySelector(`[data-vertex="${id}"]`)?.focus();
  return true;
}

function summary(job, pulse, throughput, models) {
  const sources = new Set(models.filter((model) => !model.inputs.length).map((model) => model.id));
  const read = job.vertices.filter((vertex) => sources.has(vertex.id)).reduce((sum, vertex) => sum + Math.max(vertex.metrics["read-records"], vertex.metrics["write-records"]), 0);
  const busiest = pulse.vertices.reduce((best, each) => (best && best.busy >= each.busy ? best : each), null);
  const nameOf = (id) => format.clip(job.vertices.find((vertex) => vertex.id === id)?.name ?? "", 60);
  const marks = pulse.vertices.map((each) => each.watermark).filter((each) => each !== null);
  const running = job.vertices.reduce((sum, vertex) => sum + (vertex.tasks.RUNNING ?? 0), 0);
  const all = job.vertices.reduce((sum, vertex) => sum + vertex.parallelism, 0);
  const rates = throughput.jobs[0]?.["records-per-second"] ?? [];
  return figures(
    figure("Throughput", format.rate(rates.at(-1) ?? 0), `${format.count(read)} records in all`),
    figure("Subtasks", `${format.count(running)} of ${format.count(all)}`, "running"),
    figure("Busiest", busiest ? format.percent(busiest.busy) : format.NONE, busiest ? nameOf(busiest.id) : ""),
    watermarkFigure(marks));
}

function watermarkFigure(marks) {
  if (!marks.length) return figure("Lowest watermark", format.NONE, "no event time");
  const lowest = Math.min(...marks);
  // Where event time is a date, what counts is how far it is behind.
  const isDate = lowest > 1e11 && lowest < 1e14;
  const lag = Date.now() - lowest;
  if (!isDate) return figure("Lowest watermark", format.watermark(lowest), "event time");
  return figure(lag < 0 ? "Watermark ahead by" : "Watermark behind by", format.duration(Math.abs(lag)), format.time(lowest));
}

function throughputPanel({ step, jobs }, open, job) {
  const values = jobs[0]?.["records-per-second"] ?? [];
  if (values.length < 2) return null;
  // Of a job that has ended, the last value is of its last moment.
  const now = job["end-time"] > 0 ? job["end-time"] : Date.now();
  const points = values.map((value, index) => [now - (values.length - 1 - index) * step, value]);
  return h("section", { class: "panel", "aria-label": "Throughput" },
    h("header", {}, h("h2", {}, "Throughput"), h("span", { class: "faint" }, "records that sources read per second")),
    h("div", { class: "body" }, lines([{ name: "records/s", points }], { label: `Throughput, lately ${format.rate(values.at(-1))}`, format: format.short, formatX: format.clock, width: room(open ? 0.56 : 1), height: 130 })));
}

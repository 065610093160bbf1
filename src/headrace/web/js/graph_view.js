// Draws the job graph: boxes with the operators chained in them, live numbers, edges with their ship strategy.

import { s, unchanged } from "./dom.js";
import * as format from "./format.js";
import { curve, layout } from "./graph_layout.js";

const WIDTH = 236;
const LINE = 16;
const MOST_OPERATORS = 6;
const HEAD_CHARS = 30;

// What a vertex is, as drawn: from the plan and the details of the job. Pure.
export function vertexModels(job) {
  const lines = new Map(job.vertices.map((vertex) => [vertex.id, vertex]));
  return job.plan.nodes.map((node) => {
    const chain = format.chainOf(node.description);
    const shown = chain.length > MOST_OPERATORS ? chain.slice(0, MOST_OPERATORS - 1) : chain;
    const hidden = chain.length - shown.length;
    const inputs = node.inputs ?? [];
    return {
      id: node.id, chain, shown, hidden, inputs: inputs.map((each) => each.id), ships: inputs.map((each) => each.ship_strategy),
      name: lines.get(node.id)?.name ?? chain.map((each) => each.name).join(" -> "),
      parallelism: node.parallelism, status: lines.get(node.id)?.status ?? "",
      width: WIDTH, height: 62 + LINE * (shown.length + (hidden ? 1 : 0)),
    };
  });
}

// How loud a vertex should be: held (HIGH back pressure), hot, busy or calm. Pure.
export function moodOf(model, pulse) {
  if (model.status === "FAILED") return "failed";
  if (!pulse) return "";
  if (pulse.backpressured > 0.5) return "held";
  if (pulse.busy > 0.8) return "hot";
  return pulse.busy > 0.25 ? "busy" : "";
}

export function pressureWord(ratio) {
  return ratio > 0.5 ? "HIGH" : ratio > 0.1 ? "LOW" : "OK";
}

// The layout is made once for a shape of the graph: it is kept with the view's state.
export function laidOut(models, state) {
  const shape = JSON.stringify(models.map((model) => [model.id, model.inputs, model.height]));
  if (state.shape !== shape) {
    state.shape = shape;
    state.layout = layout(models);
  }
  return state.layout;
}

// `drawn` remembers what each part looks like: of a large graph only what has changed is made anew.
export function drawGraph(models, pulses, placed, { id, drawn, picked, zoom, onPick, onMove }) {
  if (!document.querySelector(`svg[data-graph="${id}"]`)) drawn.clear();
  const once = (key, looks, draw) => {
    const before = drawn.get(key);
    drawn.set(key, looks);
    return before === looks ? unchanged("g", key) : draw();
  };
  const byId = new Map(models.map((model) => [model.id, model]));
  // In the order they are read, so that Tab goes that way.
  const at = (model) => placed.nodes.get(model.id);
  const inOrder = [...models].sort((a, b) => at(a).level - at(b).level || at(a).y - at(b).y);
  return s("svg", {
    "data-graph": id, width: Math.round(placed.width * zoom), height: Math.round(placed.height * zoom), viewBox: `0 0 ${placed.width} ${placed.height}`,
    role: "group", "aria-label": `Job graph: ${models.length} vertices on ${placed.levels} levels. Arrow keys go from vertex to vertex.`,
  },
    placed.edges.map((edge) => {
      const near = Boolean(picked) && (edge.source === picked || edge.target === picked);
      const key = `${edge.source}>${edge.target}#${edge.index}`;
      return once(key, `${near} ${edge.points}`, () => drawEdge(key, edge, byId.get(edge.target), near));
    }),
    inOrder.map((model) => {
      const [pulse, place, isPicked] = [pulses.get(model.id), placed.nodes.get(model.id), picked === model.id];
      const looks = JSON.stringify([model.status, model.parallelism, place, isPicked, pulse && shownOf(pulse)]);
      return once(model.id, looks, () => drawVertex(model, pulse, place, { isPicked, onPick, onMove }));
    }));
}

// What of a pulse can be seen.
function shownOf(pulse) {
  const rates = [pulse["records-in-per-second"], pulse["records-out-per-second"]].map(format.short);
  return [...rates, Math.round(pulse.busy * 100), Math.round(pulse.backpressured * 100)];
}

function drawEdge(key, edge, target, near) {
  const ship = target.ships[edge.index] ?? "";
  const [x, y] = edge.points.at(-1);
  const [[x0, y0], [x1, y1]] = edge.points;
  return s("g", { class: near ? "edge near" : "edge", key, "aria-hidden": "true" },
    s("path", { d: curve([...edge.points.slice(0, -1), [x - 6, y]]) }),
    s("path", { class: "arrow", d: `M${x} ${y}l-8 -4v8z` }),
    s("text", { x: (x0 + x1) / 2, y: (y0 + y1) / 2 - 5 }, format.clip(ship, 14)));
}

function drawVertex(model, pulse, place, { isPicked, onPick, onMove }) {
  const mood = moodOf(model, pulse);
  const inner = place.width - 24;
  const [busy, held] = [pulse?.busy ?? 0, pulse?.backpressured ?? 0];
  const barY = place.height - 14;
  return s("g", {
    class: ["vertex", mood, isPicked && "picked"].filter(Boolean).join(" "), key: model.id, "data-vertex": model.id,
    transform: `translate(${place.x} ${place.y})`, tabindex: "0", role: "button", "aria-pressed": String(isPicked), "aria-label": describe(model, pulse),
    on: {
      click: () => onPick(model.id),
      keydown: (event) => {
        if (event.key === "Enter" || event.key === " ") onPick(model.id);
        else if (!event.key.startsWith("Arrow") || !onMove(model.id, event.key)) return;
        event.preventDefault();
      },
    },
  },
    s("title", {}, format.clip(model.name, 500)),
    s("rect", { class: "box", width: place.width, height: place.height, rx: 7 }),
    s("rect", { class: "band", width: 4, height: place.height - 12, x: 4, y: 6, rx: 2 }),
    model.shown.map((operator, index) => s("text", { class: index ? "chain" : "head", x: 16 + 10 * Math.min(operator.depth, 4), y: 22 + LINE * index },
      format.clip(index ? `↳ ${operator.name}` : operator.name, HEAD_CHARS - Math.min(operator.depth, 4)))),
    model.hidden > 0 && s("text", { class: "chain", x: 26, y: 22 + LINE * model.shown.length }, `… ${model.hidden} more`),
    s("text", { class: "figure-text", x: 16, y: place.height - 34 }, `×${format.count(model.parallelism)}`),
    s("text", { class: "figure-text", x: 16 + inner, y: place.height - 34, "text-anchor": "end" }, flow(model, pulse)),
    s("text", { class: "figure-text", x: 16, y: place.height - 20 }, pulse ? `busy ${format.percent(busy)}` : ""),
    s("text", { class: "figure-text", x: 16 + inner, y: place.height - 20, "text-anchor": "end" }, pulse ? `pressure ${pressureWord(held)} ${format.percent(held)}` : ""),
    s("rect", { class: "track", x: 16, y: barY, width: inner, height: 5, rx: 2.5 }),
    s("rect", { class: "track-busy", x: 16, y: barY, width: (inner * Math.min(1, busy)).toFixed(1), height: 5, rx: 2.5 }),
    s("rect", { class: "track-held", x: (16 + inner * Math.min(1, busy)).toFixed(1), y: barY, width: (inner * Math.max(0, Math.min(1 - busy, held))).toFixed(1), height: 5, rx: 2.5 }));
}

function flow(model, pulse) {
  if (!pulse) return model.status.toLowerCase();
  const [into, out] = [pulse["records-in-per-second"], pulse["records-out-per-second"]];
  return model.inputs.length ? `${format.short(into)} → ${format.short(out)} rec/s` : `${format.short(out || into)} rec/s`;
}

function describe(model, pulse) {
  const state = pulse ? `, busy ${format.percent(pulse.busy)}, back pressure ${pressureWord(pulse.backpressured)}, ${format.short(pulse["records-out-per-second"])} records out per second` : "";
  return `${format.clip(model.name, 200)}, parallelism ${model.parallelism}, ${model.status.toLowerCase()}${state}`;
}

// The vertex that an arrow key leads to: left an input, right a consumer, up and down on the level. Pure.
export function neighbour(id, key, models, placed) {
  const own = placed.nodes.get(id);
  const middle = (other) => placed.nodes.get(other).y + placed.nodes.get(other).height / 2;
  const nearest = (ids) => ids.reduce((best, each) => (best === null || Math.abs(middle(each) - middle(id)) < Math.abs(middle(best) - middle(id)) ? each : best), null);
  if (key === "ArrowLeft") return nearest(models.find((model) => model.id === id).inputs.filter((each) => placed.nodes.has(each)));
  if (key === "ArrowRight") return nearest(models.filter((model) => model.inputs.includes(id)).map((model) => model.id));
  const column = models.map((model) => model.id).filter((each) => placed.nodes.get(each).level === own.level).sort((a, b) => placed.nodes.get(a).y - placed.nodes.get(b).y);
  return column[column.indexOf(id) + (key === "ArrowDown" ? 1 : -1)] ?? null;
}

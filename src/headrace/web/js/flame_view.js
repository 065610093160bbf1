// A flame graph of the workers that run a vertex: what they are doing, from samples.

import { getOr } from "./api.js";
import { h, named } from "./dom.js";
import { flameRows, nodeAt } from "./flame_layout.js";
import * as format from "./format.js";
import { empty } from "./parts.js";

const ROW = 20;
const TYPES = [["full", "all"], ["on_cpu", "on the CPU"], ["off_cpu", "waiting"]];

export async function loadFlame(params, state, signal) {
  const chosen = (state.flame ??= { type: "full", subtask: "", path: "0" });
  const query = `type=${chosen.type}${chosen.subtask === "" ? "" : `&subtaskindex=${chosen.subtask}`}`;
  return getOr(`/jobs/${params.job}/vertices/${params.vertex}/flamegraph?${query}`, { endTimestamp: -2 }, signal);
}

export function flamePanel(answer, { state, ctx, subtasks }) {
  const chosen = state.flame;
  const change = (name) => (event) => {
    chosen[name] = event.target.value;
    chosen.path = "0";
    ctx.reload();
  };
  return h("div", { class: "stack" },
    h("div", { class: "row" },
      h("label", { class: "row soft" }, "threads", h("select", { "aria-label": "Which samples", value: chosen.type, on: { change: change("type") } }, TYPES.map(([id, text]) => h("option", { value: id, selected: id === chosen.type }, text)))),
      h("label", { class: "row soft" }, "subtask", h("select", { "aria-label": "Which subtask", value: chosen.subtask, on: { change: change("subtask") } }, h("option", { value: "" }, "all"), Array.from({ length: Math.min(subtasks, 512) }, (_, index) => h("option", { value: String(index), selected: chosen.subtask === String(index) }, String(index))))),
      answer.endTimestamp > 0 && h("span", { class: "faint right" }, `sampled ${format.ago(answer.endTimestamp)}`)),
    answer.data?.value ? flame(answer.data, chosen, ctx) : empty(whyEmpty(answer)));
}

function whyEmpty({ endTimestamp }) {
  if (endTimestamp === -2) return "Flame graphs are disabled. Set rest.flamegraph.enabled to true to enable them.";
  if (endTimestamp === -3) return "This vertex has finished and can no longer be sampled.";
  if (endTimestamp > 0) return "No samples of this kind.";
  return "Samples are being taken; they appear here within a few seconds.";
}

function flame(root, chosen, ctx) {
  const top = nodeAt(root, chosen.path);
  const { boxes, depth } = flameRows(top);
  const zoom = (path) => () => {
    chosen.path = path === "0" ? parentOf(chosen.path) : `${chosen.path}${path.slice(1)}`;
    ctx.repaint();
  };
  return h("div", {},
    chosen.path !== "0" && h("button", { class: "link", on: { click: () => { chosen.path = "0"; ctx.repaint(); } } }, "Show all"),
    h("div", { class: "flame", role: "group", "aria-label": "Flame graph", style: { height: `${depth * ROW}px` } },
      boxes.map(({ node, left, width, level, path }) => {
        const share = node.value / root.value;
        const label = `${node.name}: ${format.count(node.value)} samples, ${format.percent(share)}`;
        return h("button", {
          key: path, class: `warm-${warmth(node.name)}`, title: format.clip(label, 400), "aria-label": format.clip(label, 400), tabindex: width > 0.02 ? "0" : "-1",
          style: { left: `${(left * 100).toFixed(3)}%`, width: `calc(${(width * 100).toFixed(3)}% - 1px)`, top: `${level * ROW}px` }, on: { click: zoom(path) },
        }, width > 0.03 ? named(format.clip(shortName(node.name), 120)) : "");
      })));
}

// Of "headrace.runtime.task.stream_task.StreamTask.process:115" what is worth the room.
function shortName(name) {
  return /^[\w.<>]+:\d+$/.test(name) ? name.split(".").slice(-2).join(".") : name;
}

function parentOf(path) {
  return path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "0";
}

function warmth(name) {
  let hash = 0;
  for (let index = 0; index < Math.min(name.length, 60); index += 1) hash = (hash * 31 + name.charCodeAt(index)) >>> 0;
  return hash % 4;
}

// Back pressure of all vertices, OK, LOW or HIGH; a chosen one by subtask, with a flame graph of its workers.

import { get, getOr } from "../api.js";
import { h, named } from "../dom.js";
import { flamePanel, loadFlame } from "../flame_view.js";
import * as format from "../format.js";
import { pressureWord } from "../graph_view.js";
import { chip, panel, shares, sharesLegend, table } from "../parts.js";
import { go, link } from "../router.js";
import { jobView } from "./job.js";
import { pressureChip } from "./vertex.js";

const TONES = { OK: "ok", LOW: "warn", HIGH: "bad" };

export const backPressure = jobView("back-pressure", {
  tab: "back-pressure",
  title: "back pressure",

  async load(params, signal, state) {
    const at = `/jobs/${params.job}`;
    const [pulse, pressure, flame] = await Promise.all([
      get(`${at}/headrace/vertices`, signal),
      params.vertex ? getOr(`${at}/vertices/${params.vertex}/backpressure`, null, signal) : null,
      params.vertex ? loadFlame(params, state, signal) : null,
    ]);
    return { pulse, pressure, flame };
  },

  body({ job, pulse, pressure, flame }, params, state, ctx) {
    state.vertices ??= {};
    const lines = new Map(job.vertices.map((vertex) => [vertex.id, vertex]));
    const rows = [...pulse.vertices].sort((a, b) => a.level - b.level);
    const at = (row) => link("jobs", job.jid, "back-pressure", ...(row.id === params.vertex ? [] : [row.id]));
    const chosen = params.vertex && lines.get(params.vertex);
    return h("div", { class: "stack" },
      panel("Vertices", table([
        { name: "Level", class: "tight", sort: (row) => row.level, of: (row) => format.count(row.level) },
        { name: "Vertex", class: "name-cell", of: (row) => h("a", { href: at(row), "aria-expanded": String(row.id === params.vertex) }, named(format.clip(lines.get(row.id)?.name ?? row.id, 160))) },
        { name: "Pressure", class: "tight", sort: (row) => row.backpressured, of: (row) => h("span", { class: "line-up" }, chip(pressureWord(row.backpressured), TONES[pressureWord(row.backpressured)]), h("span", { class: "soft" }, format.percent(row.backpressured))) },
        { name: "Busy", class: "number", sort: (row) => row.busy, of: (row) => format.percent(row.busy) },
        { name: "Time", title: "busy, back-pressured, idle", of: (row) => shares(row.busy, row.backpressured) },
        { name: "Skew", class: "number", title: "the busiest subtask against the mean", sort: (row) => row.skew, of: (row) => `${row.skew.toFixed(1)}×` },
        { name: "Parallelism", class: "number", of: (row) => format.count(lines.get(row.id)?.parallelism) },
      ], rows, { key: (row) => row.id, label: "Back pressure by vertex", state: state.vertices, ctx, pick: (row) => go("jobs", job.jid, "back-pressure", ...(row.id === params.vertex ? [] : [row.id])) }), sharesLegend()),
      chosen && pressure && panel("Subtasks", table([
        { name: "Subtask", class: "tight", of: (row) => format.count(row.subtask) },
        { name: "Pressure", class: "tight", of: pressureChip },
        { name: "Busy", class: "number", of: (row) => format.percent(Number(row.busyRatio) || 0) },
        { name: "Idle", class: "number", of: (row) => format.percent(row.idleRatio) },
        { name: "Time", of: (row) => shares(Number(row.busyRatio) || 0, row.ratio) },
      ], pressure.subtasks, { key: (row) => row.subtask, label: "Back pressure by subtask" }), named(format.clip(chosen.name, 120), { class: "soft" })),
      chosen && flame && panel("Flame graph", h("div", { class: "body" }, flamePanel(flame, { state, ctx, subtasks: chosen.parallelism })), h("span", { class: "soft" }, "what the workers of this vertex do, from samples")),
      !chosen && h("p", { class: "soft" }, "Pick a vertex to see its subtasks and a flame graph of its workers. Up to 10 % is OK, up to 50 % LOW, more is HIGH."));
  },
});

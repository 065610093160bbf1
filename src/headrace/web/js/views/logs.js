// Logs: of the driver, and of the executors where they are to be had. Follows the end unless somebody reads further up.

import { ApiError, get, getOr, text } from "../api.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { empty, filterBox } from "../parts.js";
import { link } from "../router.js";

const MOST_LINES = 3000;
const LEVEL = /\b(WARNING|WARN|ERROR|CRITICAL|FATAL)\b/;

export const logs = {
  name: "logs",
  title: () => "Logs – headrace",

  async load(params, signal, state) {
    const base = params.executor ? `/taskmanagers/${encodeURIComponent(params.executor)}` : "/jobmanager";
    const [managers, files] = await Promise.all([getOr("/taskmanagers", { taskmanagers: [] }, signal), getOr(`${base}/logs`, { logs: [] }, signal)]);
    const chosen = files.logs.find((each) => each.name === state.file) ?? files.logs[0];
    let content = "", problem = "";
    try {
      if (chosen) content = await text(`${base}/logs/${encodeURIComponent(chosen.name)}`, signal);
      else problem = params.executor ? "The logs of this executor are stored by Spark's cluster manager." : "No log.";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem = error.message;
    }
    return { managers: managers.taskmanagers, files: files.logs, chosen: chosen?.name, content, problem };
  },

  render({ managers, files, chosen, content, problem }, params, state, ctx) {
    const wanted = (state.filter ?? "").toLowerCase();
    const all = content.split("\n").filter((line) => line && (!wanted || line.toLowerCase().includes(wanted)));
    const lines = all.slice(-MOST_LINES);
    const frame = document.querySelector(".log");
    const atEnd = !frame || frame.scrollHeight - frame.scrollTop - frame.clientHeight < 40;
    if (atEnd) requestAnimationFrame(() => { const now = document.querySelector(".log"); if (now) now.scrollTop = now.scrollHeight; });
    const who = [["", "driver"], ...managers.map((each) => [each.id, `executor ${each.id}`])];
    return h("div", { class: "stack" },
      h("div", { class: "row" },
        h("h1", {}, "Logs"),
        h("label", { class: "row soft" }, "of", h("select", { "aria-label": "Whose log", value: params.executor ?? "", on: { change: (event) => { location.hash = event.target.value ? link("logs", event.target.value) : "#/logs"; } } }, who.map(([id, name]) => h("option", { value: id, selected: id === (params.executor ?? "") }, format.clip(name, 60))))),
        files.length > 1 && h("label", { class: "row soft" }, "file", h("select", { "aria-label": "Which file", value: chosen, on: { change: (event) => { state.file = event.target.value; ctx.reload(); } } }, files.map((each) => h("option", { value: each.name, selected: each.name === chosen }, `${format.clip(each.name, 60)} (${format.bytes(each.size)})`)))),
        h("span", { class: "right row" }, h("span", { class: "faint" }, all.length > lines.length ? `the last ${format.count(lines.length)} of ${format.count(all.length)} lines` : `${format.count(lines.length)} lines`), filterBox(state, ctx, "Filter lines"))),
      problem ? h("div", { class: "notice warn" }, named(format.clip(problem, 800))) : lines.length === 0 ? empty(wanted ? "No lines match." : "The log is empty.") :
        h("pre", { class: "panel log", tabindex: "0", "aria-label": "Log" }, lines.map((line) => h("span", { class: LEVEL.exec(line)?.[1].replace(/^WARN$/, "WARNING").replace("FATAL", "CRITICAL") ?? "" }, `${format.clip(line, 4000)}\n`))));
  },
};

// Why a job failed: the root cause and the user's traceback first, then what failed before.

import { get } from "../api.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { empty, panel, when } from "../parts.js";
import { markedLines, rootCause } from "../traceback.js";
import { jobView } from "./job.js";

export const exceptions = jobView("exceptions", {
  tab: "exceptions",
  title: "exceptions",

  async load(params, signal) {
    const answer = await get(`/jobs/${params.job}/exceptions?maxExceptions=50`, signal);
    return { history: answer.exceptionHistory };
  },

  body({ history }) {
    const [newest, ...older] = history.entries;
    if (!newest) return empty("Nothing has failed.");
    return h("div", { class: "stack" },
      panel("Root cause", h("div", { class: "body stack" },
        h("p", { class: "why", "data-root-cause": "" }, named(format.clip(rootCause(newest.stacktrace), 2000))),
        h("p", { class: "soft" }, h("code", {}, shortName(newest.exceptionName)), newest.taskName ? [" in ", named(format.clip(newest.taskName, 200))] : "", ", ", when(newest.timestamp, { both: true })),
        trace(newest.stacktrace))),
      newest.concurrentExceptions?.length > 0 && panel("Failed at the same time", h("div", {}, newest.concurrentExceptions.map((entry, index) => folded(entry, `with ${index}`, named(format.clip(entry.taskName ?? "", 200)))))),
      panel("Before that", older.length
        ? h("div", {}, older.map((entry) => folded(entry, `${entry.timestamp}`, when(entry.timestamp))))
        : empty("This is the only failure."),
      history.truncated && h("span", { class: "soft" }, "older ones are forgotten")));
  },
});

// One failure in a line, which opens to its traceback.
function folded(entry, key, place) {
  return h("details", { key },
    h("summary", {}, place, " ", h("code", {}, shortName(entry.exceptionName)), " ", named(format.clip(rootCause(entry.stacktrace), 160))),
    h("div", { class: "body" }, trace(entry.stacktrace)));
}

function shortName(name) {
  return format.clip(name.split(".").at(-1), 120);
}

function trace(text) {
  return h("pre", { class: "trace", tabindex: "0", "aria-label": "Traceback" }, markedLines(format.clip(text, 100_000)).map(({ line, own }) => h("span", { class: own ? "own" : "" }, `${line}\n`)));
}

// Options with their values and where each value came from: of a job, and of the process.

import { get, getOr } from "../api.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { chip, filterBox, pairs, panel, table } from "../parts.js";
import { jobView } from "./job.js";

const TONES = { default: "", file: "note", environment: "note", cli: "warn", code: "ok" };
const NAMES = { default: "default", file: "file", environment: "environment", cli: "command line", code: "code" };

export const configuration = jobView("configuration", {
  tab: "configuration",
  title: "configuration",

  async load(params, signal) {
    const at = `/jobs/${params.job}`;
    const [origins, config] = await Promise.all([get(`${at}/headrace/configuration`, signal), getOr(`${at}/config`, null, signal)]);
    return { origins, config };
  },

  body({ origins, config }, params, state, ctx) {
    const execution = config?.["execution-config"];
    const user = Object.entries(execution?.["user-config"] ?? {});
    return h("div", { class: "stack" },
      execution && panel("Execution", h("div", { class: "body" }, pairs([
        ["Restart strategy", named(format.clip(execution["restart-strategy"], 300))],
        ["Parallelism", format.count(execution["job-parallelism"])],
        ["Objects are reused", execution["object-reuse-mode"] ? "yes" : "no"],
        ...user.map(([key, value]) => [named(format.clip(key, 100)), named(format.clip(value, 300))]),
      ]))),
      options(origins.options, state, ctx));
  },
});

export const clusterConfiguration = {
  name: "cluster-configuration",
  title: () => "Configuration – headrace",
  async load(params, signal) {
    const [origins, environment] = await Promise.all([get("/headrace/configuration", signal), get("/jobmanager/environment", signal)]);
    return { origins, environment };
  },
  render({ origins, environment }, params, state, ctx) {
    return h("div", { class: "stack" },
      h("h1", {}, "Configuration of this process"),
      panel("Environment", h("div", { class: "body" }, pairs([["Python", environment.jvm.version], ["Machine", environment.jvm.arch], ["Import path", h("details", {}, h("summary", {}, `${format.count(environment.classpath.length)} places`), h("pre", {}, environment.classpath.join("\n")))]]))),
      options(origins.options, state, ctx));
  },
};

// Whether the place says no more than the layer does.
function isPlain({ layer, place }) {
  return layer === "default" || place.replace(/^the /, "") === NAMES[layer];
}

function options(all, state, ctx) {
  const wanted = (state.filter ?? "").toLowerCase();
  const set = all.filter((each) => each.layer !== "default");
  const shown = (state.all || wanted ? all : set).filter((each) => `${each.key} ${each.value}`.toLowerCase().includes(wanted));
  return panel("Options", table([
    { name: "Option", class: "mono", of: (row) => named(format.clip(row.key, 120)) },
    { name: "Value", class: "config-value mono", of: (row) => named(format.clip(row.value, 600)) },
    { name: "From", class: "tight", of: (row) => chip(NAMES[row.layer] ?? row.layer, TONES[row.layer]) },
    { name: "Where", of: (row) => h("span", { class: "soft" }, named(format.clip([isPlain(row) ? "" : row.place, row.note].filter(Boolean).join("; "), 300))) },
  ], shown, { key: (row) => row.key, label: "Options", none: wanted ? "No options match." : "No option is set: all have their defaults." }),
  h("span", { class: "soft" }, `${format.count(set.length)} set, ${format.count(all.length)} in all`),
  h("span", { class: "row right" },
    h("label", { class: "row" }, h("input", { type: "checkbox", checked: Boolean(state.all), on: { change: (event) => { state.all = event.target.checked; ctx.repaint(); } } }), "with defaults"),
    filterBox(state, ctx, "Find an option")));
}

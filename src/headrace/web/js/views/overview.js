// All jobs: running ones with their throughput, ended ones, slots; and the form that submits programs.

import { get, getOr, operate } from "../api.js";
import { sparkline } from "../chart.js";
import { askUser, toast } from "../dialog.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { chip, figure, figures, filterBox, panel, table, when } from "../parts.js";
import { link } from "../router.js";

const OVER = new Set(["FINISHED", "FAILED", "CANCELED", "SUSPENDED"]);
const NAME_MOST = 200;

export const overview = {
  name: "overview",
  title: () => "Jobs – headrace",

  async load(params, signal) {
    const [cluster, jobs, throughput] = await Promise.all([
      get("/overview", signal), get("/jobs/overview", signal), getOr("/headrace/throughput", { step: 1, jobs: [] }, signal),
    ]);
    return { cluster, jobs: jobs.jobs, throughput };
  },

  render({ cluster, jobs, throughput }, params, state, ctx) {
    state.running ??= {};
    state.ended ??= { by: 3, down: true };
    const wanted = (state.filter ?? "").toLowerCase();
    const shown = jobs.filter((job) => !wanted || job.name.toLowerCase().includes(wanted) || job.jid.startsWith(wanted));
    const running = shown.filter((job) => !OVER.has(job.state));
    const ended = shown.filter((job) => OVER.has(job.state));
    const rates = new Map(throughput.jobs.map((each) => [each.jid, each["records-per-second"]]));
    const total = [...rates.values()].reduce((sum, each) => sum + (each.at(-1) ?? 0), 0);
    const taken = cluster["slots-total"] - cluster["slots-available"];
    return h("div", { class: "stack" },
      h("div", { class: "row" },
        h("h1", {}, "Jobs"),
        h("span", { class: "right" }, filterBox(state, ctx, "Filter by name or id")),
        ctx.config.about["takes-programs"] && h("button", { class: "primary", on: { click: () => submit(ctx) } }, "Submit a program")),
      figures(
        figure("Running", format.count(cluster["jobs-running"]), jobsLine(cluster)),
        figure("Throughput", format.rate(total), "records of all sources"),
        figure("Slots taken", `${format.count(taken)} of ${format.count(cluster["slots-total"])}`, `${format.count(cluster["slots-available"])} free`),
        figure("Executors", format.count(cluster.taskmanagers), "Spark"),
        figure("Failed", format.count(cluster["jobs-failed"]), `${format.count(cluster["jobs-cancelled"])} cancelled`)),
      panel("Running", jobTable(running, state.running, ctx, rates, "No job runs.")),
      panel("Ended", jobTable(ended, state.ended, ctx, null, "No job has ended yet.")));
  },
};

function jobsLine(cluster) {
  return `${format.count(cluster["jobs-finished"])} finished`;
}

function jobTable(jobs, state, ctx, rates, none) {
  const now = Date.now();
  const columns = [
    { name: "Name", class: "name-cell", sort: (job) => job.name, of: (job) => h("a", { href: link("jobs", job.jid), title: format.clip(job.name, 500) }, named(format.clip(job.name, NAME_MOST))) },
    { name: "State", class: "tight", sort: (job) => job.state, of: (job) => chip(job.state) },
    rates && { name: "Records/s, last 10 min", class: "tight", sort: (job) => rates.get(job.jid)?.at(-1) ?? 0, of: (job) => sparklineOf(rates.get(job.jid)) },
    { name: "Started", class: "tight", sort: (job) => job["start-time"], of: (job) => when(job["start-time"], { now }) },
    !rates && { name: "Ended", class: "tight", sort: (job) => job["end-time"], of: (job) => when(job["end-time"], { now }) },
    { name: "Duration", class: "number", sort: (job) => job.duration, of: (job) => format.duration(job.duration) },
    { name: "Tasks", class: "number", of: (job) => format.count(job.tasks.total) },
    { name: "Id", class: "tight", of: (job) => h("span", { class: "mono faint" }, job.jid.slice(0, 8)) },
  ].filter(Boolean);
  return table(columns, jobs, { key: (job) => job.jid, label: "Jobs", state, ctx, none });
}

function sparklineOf(values) {
  const last = values?.at(-1) ?? 0;
  return h("div", { class: "line-up" }, sparkline(values ?? [], `${format.short(last)} records per second lately`), h("span", { class: "nowrap" }, format.rate(last)));
}

async function submit(ctx) {
  const read = async (input, inputs) => {
    const file = input.files[0];
    if (!file) return;
    inputs.get("source").value = await file.text();
    inputs.get("name").value = file.name;
  };
  const answer = await askUser({
    title: "Submit a program",
    message: "A Python program that submits its jobs with execute(). It runs in this cluster, as the user of the cluster.",
    fields: [
      { name: "file", label: "From a file", type: "file", accept: ".py", onInput: read },
      { name: "name", label: "Name", value: "program.py", required: true },
      { name: "source", label: "Program", type: "textarea", required: true },
      { name: "arguments", label: "Arguments, separated by spaces" },
      { name: "parallelism", label: "Parallelism", type: "number", min: 1, placeholder: "as configured" },
      { name: "savepoint", label: "Start from this savepoint", placeholder: "none" },
    ],
    action: "Submit",
  });
  if (!answer) return;
  toast(`${answer.name} is being submitted …`);
  try {
    const ended = await operate("/headrace/programs", {
      name: answer.name,
      source: answer.source,
      arguments: answer.arguments.split(/\s+/).filter(Boolean),
      parallelism: answer.parallelism ? Number(answer.parallelism) : null,
      "savepoint-path": answer.savepoint || null,
    }, "/headrace/programs");
    if (ended["exit-code"] === 0) toast(`${answer.name} was submitted.`);
    else showOutput(answer.name, ended);
  } catch (error) {
    toast(error.message, "bad");
  }
  ctx.reload();
}

function showOutput(name, ended) {
  const close = () => dialog.remove();
  const dialog = h("dialog", { "aria-labelledby": "output-title", on: { close } },
    h("form", { on: { submit: (event) => { event.preventDefault(); dialog.close(); } } },
      h("h2", { id: "output-title" }, `${name} ended with exit code ${ended["exit-code"]}`),
      h("pre", { class: "trace" }, ended.output ?? ""),
      h("div", { class: "actions" }, h("button", { type: "submit" }, "Close"))));
  document.body.append(dialog);
  dialog.showModal();
}

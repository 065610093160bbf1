// What all pages of a job have in common: its head with the buttons that steer it, and the tabs.

import { ApiError, get, operate, send } from "../api.js";
import { askUser, toast } from "../dialog.js";
import { h, named } from "../dom.js";
import * as format from "../format.js";
import { chip, copyable, tabs, when } from "../parts.js";
import { link } from "../router.js";

const OVER = new Set(["FINISHED", "FAILED", "CANCELED", "SUSPENDED"]);

// A view of a job: `load` is given the job's details, `body` renders what is below the tabs.
export function jobView(name, { tab, title, load, body }) {
  return {
    name,
    title: ({ job }) => `${format.clip(job.name, 60)} – ${title}`,
    async load(params, signal, state) {
      const job = await get(`/jobs/${params.job}`, signal);
      // It stays what it is for as long as the job runs.
      state.exchange ??= await get(`/jobs/${params.job}/headrace/exchange`, signal);
      return { job, exchange: state.exchange, ...(await load(params, signal, state, job)) };
    },
    render(data, params, state, ctx) {
      return h("div", { class: "stack" }, head(data.job, data.exchange, ctx), tabs(jobTabs(data.job), tab, "Job"), body(data, params, state, ctx));
    },
  };
}

function jobTabs(job) {
  const at = (...parts) => link("jobs", job.jid, ...parts);
  return [
    ["graph", "Graph", at()],
    ["epochs", "Time line", at("epochs")],
    ["checkpoints", "Checkpoints", at("checkpoints")],
    ["back-pressure", "Back pressure", at("back-pressure")],
    ["exceptions", "Exceptions", at("exceptions")],
    ["why", "Why", at("why")],
    ["configuration", "Configuration", at("configuration")],
  ];
}

export function isOver(job) {
  return OVER.has(job.state);
}

function head(job, exchange, ctx) {
  const over = isOver(job);
  return h("div", { class: "job-head" },
    h("div", { class: "title" },
      h("h1", { title: format.clip(job.name, 500) }, named(format.clip(job.name, 300))),
      chip(job.state),
      h("span", { class: "row right" },
        !over && h("button", { on: { click: () => savepoint(job, ctx) } }, "Savepoint …"),
        !over && h("button", { on: { click: () => stop(job, ctx) } }, "Stop …"),
        !over && ctx.config.features["web-cancel"] && h("button", { class: "danger", on: { click: () => cancel(job, ctx) } }, "Cancel …"))),
    h("div", { class: "meta" },
      h("span", {}, "id ", copyable(job.jid)),
      h("span", {}, "started ", when(job["start-time"], { both: true })),
      over ? h("span", {}, "ended ", when(job["end-time"], { both: true })) : null,
      h("span", {}, `${over ? "ran" : "runs"} for ${format.duration(job.duration)}`),
      h("span", {}, `${job["job-type"].toLowerCase()}, ${format.count(job.vertices.length)} ${job.vertices.length === 1 ? "vertex" : "vertices"}`),
      h("span", { title: "headrace.exchange.kind" }, `${exchange.kind === "pipelined" ? "live" : "in epochs"}: `, named(format.clip(exchange.reason, 200)))));
}

async function cancel(job, ctx) {
  const answer = await askUser({ title: "Cancel this job?", message: "The job ends at once, without a savepoint. Output that its sinks have not published yet is discarded.", action: "Cancel the job", tone: "danger" });
  if (!answer) return;
  try {
    await send("PATCH", `/jobs/${job.jid}?mode=cancel`);
    toast("The job is being cancelled.");
  } catch (error) {
    toast(error.message, "bad");
  }
  ctx.reload();
}

const TARGET = { name: "target", label: "Directory", placeholder: "execution.checkpointing.savepoint-dir", hint: "If empty, the directory in the configuration is used." };

export async function savepoint(job, ctx) {
  const answer = await askUser({ title: "Take a savepoint", message: "The job keeps running.", fields: [TARGET], action: "Take it" });
  if (answer) await trigger(`/jobs/${job.jid}/savepoints`, { "target-directory": answer.target || null, "cancel-job": false }, job, ctx);
}

export async function stop(job, ctx) {
  const answer = await askUser({
    title: "Stop this job with a savepoint",
    message: "You can restart the job from the savepoint.",
    fields: [TARGET, { name: "drain", label: "Drain: advance event time to the end first, so that all windows fire", type: "checkbox" }],
    action: "Stop the job",
    tone: "danger",
  });
  if (answer) await trigger(`/jobs/${job.jid}/stop`, { targetDirectory: answer.target || null, drain: answer.drain }, job, ctx);
}

async function trigger(path, body, job, ctx) {
  toast("The savepoint is being taken …");
  try {
    const done = await operate(path, body, `/jobs/${job.jid}/savepoints`);
    toast(`Savepoint at ${done.location}`);
  } catch (error) {
    toast(error instanceof ApiError ? format.clip(error.message, 600) : String(error), "bad");
  }
  ctx.reload();
}

// Where the page begins: finds the view of the address, asks REST for what it shows, shows it, asks again.

import { ApiError, get, rememberToken } from "./api.js";
import { askUser } from "./dialog.js";
import { h, render } from "./dom.js";
import { Poller } from "./poll.js";
import { compile, match } from "./router.js";
import * as theme from "./theme.js";
import { backPressure } from "./views/back_pressure.js";
import { checkpoints } from "./views/checkpoints.js";
import { clusterConfiguration, configuration } from "./views/configuration.js";
import { exceptions } from "./views/exceptions.js";
import { executor, executors } from "./views/executors.js";
import { graph } from "./views/graph.js";
import { logs } from "./views/logs.js";
import { overview } from "./views/overview.js";
import { timeline } from "./views/timeline.js";
import { why } from "./views/why.js";

// A view: { name, load(params, signal, state) -> data, render(data, params, state, ctx) -> nodes, title(data, params) }.
const ROUTES = compile([
  ["", overview],
  ["overview", overview], // as in Flink's bookmarks
  ["jobs/:job", graph],
  ["jobs/:job/vertices/:vertex", graph],
  ["jobs/:job/vertices/:vertex/:tab", graph],
  ["jobs/:job/epochs", timeline],
  ["jobs/:job/epochs/:epoch", timeline],
  ["jobs/:job/checkpoints", checkpoints],
  ["jobs/:job/exceptions", exceptions],
  ["jobs/:job/why", why],
  ["jobs/:job/back-pressure", backPressure],
  ["jobs/:job/back-pressure/:vertex", backPressure],
  ["jobs/:job/configuration", configuration],
  ["executors", executors],
  ["executors/:executor", executor],
  ["configuration", clusterConfiguration],
  ["logs", logs],
  ["logs/:executor", logs],
]);
const NAVIGATION = [["", "Jobs"], ["executors", "Executors"], ["logs", "Logs"], ["configuration", "Configuration"]];

const app = { config: null, poller: null, view: null, params: {}, data: null, states: new Map(), status: "ok" };

const ctx = {
  get config() { return app.config; },
  repaint: paint,
  reload: () => app.poller?.now(),
};

async function start() {
  theme.apply();
  for (;;) {
    try {
      const [config, about] = await Promise.all([get("/config"), get("/headrace/about")]);
      app.config = { ...config, about };
      break;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) await askForToken();
      else {
        showError(error);
        await new Promise((resolve) => setTimeout(resolve, 3000));
      }
    }
  }
  window.addEventListener("hashchange", navigate);
  document.addEventListener("visibilitychange", paintBar);
  let resized;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(paint, 150);
  });
  navigate();
}

async function askForToken() {
  const answer = await askUser({
    title: "This server requires a token",
    message: "Enter the value of headrace.rest.token. The browser forgets it when you close this tab.",
    fields: [{ name: "token", label: "Token", type: "password", required: true }],
    action: "Go on",
  });
  if (answer) rememberToken(answer.token.trim());
}

function stateOf(view, params) {
  const key = `${view.name}/${params.job ?? params.executor ?? ""}`;
  if (!app.states.has(key)) {
    if (app.states.size > 40) app.states.clear();
    app.states.set(key, {});
  }
  return app.states.get(key);
}

function navigate() {
  const found = match(ROUTES, location.hash);
  app.poller?.stop();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  if (!found) {
    app.view = null;
    render(document.getElementById("main"), h("p", { class: "empty" }, "Page not found. ", h("a", { href: "#/" }, "All jobs")));
    paintBar();
    return;
  }
  const sameView = app.view === found.view && app.params.job === found.params.job;
  app.view = found.view;
  app.params = found.params;
  if (!sameView) {
    app.data = null;
    window.scrollTo(0, 0);
    render(document.getElementById("main"), h("p", { class: "loading" }, "Loading …"));
  } else if (app.data) {
    paint();
  }
  const state = stateOf(found.view, found.params);
  app.poller = new Poller((signal) => found.view.load(found.params, signal, state), {
    interval: app.config["refresh-interval"],
    onAnswer: (data) => {
      app.status = "ok";
      app.data = data;
      paint();
      // Which address the page shows now; before this it may still be the one before.
      document.getElementById("main").dataset.shown = location.hash;
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 401) {
        app.poller.stop();
        askForToken().then(navigate);
      } else if (app.data) {
        app.status = "lost";
        paintBar();
      } else {
        showError(error);
      }
    },
  });
  paintBar();
}

function paint() {
  if (!app.view || !app.data) return;
  document.title = `${app.view.title?.(app.data, app.params) ?? "headrace"}`.slice(0, 120);
  render(document.getElementById("main"), app.view.render(app.data, app.params, stateOf(app.view, app.params), ctx));
  paintBar();
}

function paintBar() {
  const place = location.hash.replace(/^#?\/?/, "").split("/")[0];
  const here = place === "jobs" ? "" : place;
  const status = document.hidden ? ["paused", "paused"] : app.status === "lost" ? ["lost", "no answer"] : ["", "live"];
  const next = { system: "light", light: "dark", dark: "system" }[theme.current()];
  const sign = { system: "◐", light: "☀", dark: "☾" }[theme.current()];
  render(document.getElementById("bar"), [
    h("a", { class: "brand", href: "#/", "aria-label": "headrace" }, h("img", { src: "web/icon.svg", alt: "" }), h("span", {}, "headrace")),
    h("nav", { "aria-label": "Cluster" }, NAVIGATION.map(([path, text]) => h("a", { href: `#/${path}`, "aria-current": path === here ? "page" : undefined }, text))),
    h("div", { class: `pulse right ${status[0]}`, role: "status" }, h("span", { title: `headrace ${app.config?.about.version ?? ""}` }, status[1])),
    h("button", { class: "plain", title: `Colours: ${theme.current()}; change to ${next}`, "aria-label": `Colours: ${theme.current()}. Change to ${next}.`, on: { click: () => { theme.choose(next); paintBar(); } } }, sign),
  ]);
}

function showError(error) {
  app.status = error.status === 0 ? "lost" : "ok";
  const gone = error.status === 404;
  render(document.getElementById("main"), h("div", { class: "notice bad" }, h("div", {},
    h("strong", {}, gone ? "Page not found." : "This page could not be loaded."),
    h("p", {}, error.message),
    h("p", {}, h("a", { href: "#/" }, "All jobs")))));
  paintBar();
}

start();

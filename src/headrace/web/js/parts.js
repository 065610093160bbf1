// Parts that several views use: chips, figures, bars, tables.

import { h, named } from "./dom.js";
import * as format from "./format.js";

const TONES = {
  RUNNING: "ok", FINISHED: "note", COMPLETED: "ok", FAILED: "bad", FAILING: "bad", CANCELED: "", CANCELLING: "warn",
  CANCELING: "warn", RESTARTING: "warn", SUSPENDED: "warn", INITIALIZING: "warn", CREATED: "", SCHEDULED: "", DEPLOYING: "warn",
  IN_PROGRESS: "warn", ok: "ok", low: "warn", high: "bad",
};

export function chip(text, tone = TONES[text] ?? "") {
  return h("span", { class: `chip ${tone}` }, text);
}

export function figure(name, value, more, title) {
  return h("div", { class: "figure", title }, h("div", { class: "name" }, name), h("div", { class: "value" }, value), h("div", { class: "more" }, more ?? "\u00a0"));
}

export function figures(...each) {
  return h("div", { class: "figures" }, each);
}

export function panel(title, body, ...more) {
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title), more), body);
}

export function empty(text) {
  return h("p", { class: "empty" }, text);
}

// Relative, with the absolute time beside or as a title.
export function when(ms, { both = false, now = Date.now() } = {}) {
  if (!(ms > 0)) return format.NONE;
  const absolute = format.time(ms);
  const props = { datetime: new Date(ms).toISOString(), title: absolute, class: "nowrap" };
  return h("time", props, both ? `${absolute} (${format.ago(ms, now)})` : format.ago(ms, now));
}

// How time was spent: busy, held up, the rest idle; each from 0 to 1.
export function shares(busy, held, label) {
  const text = label ?? `busy ${format.percent(busy)}, back-pressured ${format.percent(held)}, idle ${format.percent(1 - busy - held)}`;
  const part = (name, share) => h("i", { class: `${name} fade`, style: { width: `${Math.min(100, share * 100).toFixed(1)}%` } });
  return h("div", { class: "shares", role: "img", "aria-label": text, title: text }, part("busy", busy), part("held", held));
}

export function meter(share, label, high = 0.85) {
  const part = Math.min(1, Math.max(0, share || 0));
  return h("div", { class: part >= high ? "meter high" : "meter", role: "img", "aria-label": label, title: label }, h("i", { class: "fade", style: { width: `${(part * 100).toFixed(1)}%` } }));
}

export function sharesLegend() {
  return h("div", { class: "legend" },
    h("span", {}, h("i", { class: "key busy" }), "busy"),
    h("span", {}, h("i", { class: "key held" }), "back-pressured"),
    h("span", {}, h("i", { class: "key" }), "idle"));
}

// columns: [{ name, of(row), class, sort(row), title }]; rows need a key(row).
export function table(columns, rows, { key, label, state, ctx, pick, nested, none = "Nothing to show." }) {
  const sorted = sortRows(columns, rows, state);
  const head = columns.map((column, index) => h("th", { class: column.class, scope: "col", title: column.title, "aria-sort": ariaSort(state, index) },
    column.sort && state
      ? h("button", { class: "link", on: { click: () => { toggleSort(state, index); ctx.repaint(); } } }, column.name, state.by === index ? (state.down ? " ↓" : " ↑") : "")
      : column.name));
  const body = sorted.flatMap((row) => {
    const under = nested?.(row);
    const cells = columns.map((column) => h("td", { class: column.class }, column.of(row)));
    const line = h("tr", { key: key(row), class: pick ? (under ? "pick picked" : "pick") : undefined, on: pick ? { click: (event) => { if (!event.target.closest("a, button")) pick(row); } } : undefined }, cells);
    return under ? [line, h("tr", { key: `${key(row)}/more`, class: "nested" }, h("td", { colspan: columns.length }, under))] : [line];
  });
  if (!rows.length) return empty(none);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

function ariaSort(state, index) {
  if (!state || state.by !== index) return undefined;
  return state.down ? "descending" : "ascending";
}

function toggleSort(state, index) {
  state.down = state.by === index ? !state.down : true;
  state.by = index;
}

function sortRows(columns, rows, state) {
  const by = state && columns[state.by]?.sort;
  if (!by) return rows;
  const direction = state.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    return (x < y ? -1 : x > y ? 1 : 0) * direction;
  });
}

export function pairs(entries) {
  return h("dl", { class: "pairs" }, entries.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function tabs(entries, current, label) {
  return h("nav", { class: "tabs", "aria-label": label }, entries.map(([id, text, href]) => h("a", { href, "aria-current": id === current ? "page" : undefined }, text)));
}

export function copyable(text, shown = text) {
  return h("button", { class: "link mono", title: `Copy ${text}`, on: { click: () => navigator.clipboard?.writeText(text) } }, named(shown));
}

export function filterBox(state, ctx, label) {
  return h("input", { type: "search", placeholder: label, "aria-label": label, value: state.filter ?? "", "data-own": "", on: { input: (event) => { state.filter = event.target.value; ctx.repaint(); } } });
}

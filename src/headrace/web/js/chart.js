// Plots as SVG: a sparkline, and lines over time with an axis. The geometry is pure; only `draw...` makes elements.

import { s } from "./dom.js";

// Round values for an axis: [0, 20, 40, ...] up to the first one at or above `most`.
export function ticks(most, wanted = 4) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough - 1e-12);
  const values = [];
  for (let index = 0; index * step < most + step - 1e-9; index += 1) values.push(Number((index * step).toPrecision(10)));
  return values;
}

// The same for bytes: round in the unit that people read.
export function byteTicks(most, wanted = 4) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024)));
  return ticks(most / unit, wanted).map((value) => value * unit);
}

// How wide a plot may be: a share of the page, in pixels, so that its letters are as large as all others.
export function room(share = 1) {
  const page = document.getElementById("main").clientWidth - 62;
  return Math.max(280, Math.round(page * share));
}

// Points of a line: [[x, y]] for values, with a gap (null) where there is none.
export function linePath(points) {
  let path = "";
  let pen = false;
  for (const point of points) {
    if (point === null) {
      pen = false;
      continue;
    }
    path += `${pen ? "L" : "M"}${Math.round(point[0] * 10) / 10} ${Math.round(point[1] * 10) / 10}`;
    pen = true;
  }
  return path;
}

// No more values than can be told apart: neighbours become their mean.
export function thinned(values, most) {
  const step = Math.ceil(values.length / most);
  if (step <= 1) return values;
  const found = [];
  for (let end = values.length; end > 0; end -= step) {
    const part = values.slice(Math.max(0, end - step), end);
    found.unshift(part.reduce((sum, value) => sum + value, 0) / part.length);
  }
  return found;
}

export function sparkline(all, label, { width = 130, height = 26 } = {}) {
  const values = thinned(all, 48);
  const most = Math.max(1e-9, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, index) => [index * step, height - 2 - (value / most) * (height - 4)]);
  const line = linePath(points);
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    values.length > 1 && s("path", { class: "area", d: `${line}L${width} ${height}L0 ${height}Z` }),
    values.length > 1 && s("path", { class: "line", d: line }));
}

// series: [{ name, points: [[x, value]] }]; format(value) writes the axis, formatX(x) its ends.
export function lines(series, { label, format, formatX, width = room(), height = 150, dots = false, scaled = ticks }) {
  const left = 58, right = 10, top = 8, bottom = 20;
  const all = series.flatMap((each) => each.points);
  const values = all.map(([, value]) => value).filter((value) => value !== null);
  const scale = scaled(Math.max(0, ...values));
  const most = scale[scale.length - 1];
  const xs = all.map(([x]) => x);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const toX = (x) => left + (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5) * (width - left - right);
  const toY = (value) => top + (1 - Math.max(0, value) / most) * (height - top - bottom);
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    scale.map((value) => [
      s("line", { class: "axis", x1: left, x2: width - right, y1: toY(value), y2: toY(value) }),
      s("text", { x: left - 6, y: toY(value) + 4, "text-anchor": "end" }, format(value)),
    ]),
    all.length > 0 && x1 > x0 && [
      s("text", { x: left, y: height - 4 }, formatX(x0)),
      s("text", { x: width - right, y: height - 4, "text-anchor": "end" }, formatX(x1)),
    ],
    series.map((each, tone) => {
      const points = each.points.map(([x, value]) => (value === null ? null : [toX(x), toY(value)]));
      const line = linePath(points);
      const known = points.filter((point) => point !== null);
      return [
        series.length === 1 && known.length > 1 && s("path", { class: "area", d: `${line}L${known.at(-1)[0].toFixed(1)} ${toY(0)}L${known[0][0].toFixed(1)} ${toY(0)}Z` }),
        s("path", { class: `line tone-${tone % 8}`, d: line }),
        (dots || known.length === 1) && known.map(([x, y]) => s("circle", { class: "dot", cx: x.toFixed(1), cy: y.toFixed(1), r: 2.4 })),
      ];
    }));
}

// Unit tests of the page's pure modules; run with `node --test`, from tests/unit/web/test_modules.py.

import assert from "node:assert/strict";
import { test } from "node:test";

const JS = new URL("../../../src/headrace/web/js/", import.meta.url);
const load = (name) => import(new URL(name, JS));
const { curve, layout, levelsOf } = await load("graph_layout.js");
const format = await load("format.js");
const { match, compile } = await load("router.js");
const { flameRows, nodeAt } = await load("flame_layout.js");
const { merged, totalOf } = await load("epoch_parts.js");
const { markedLines, rootCause } = await load("traceback.js");
const { byteTicks, linePath, thinned, ticks } = await load("chart.js");
const { nextDelay } = await load("poll_delay.js");

const node = (id, ...inputs) => ({ id, inputs, width: 100, height: 40 });
const overlap = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

test("levels are the longest way from a source", () => {
  const levels = levelsOf([node("sink", "join", "source"), node("join", "source", "map"), node("map", "other"), node("source"), node("other")]);
  assert.deepEqual(Object.fromEntries(levels), { source: 0, other: 0, map: 1, join: 2, sink: 3 });
});

test("levels go from left to right, and no two vertices overlap", () => {
  const nodes = [node("a"), node("b"), node("c", "a", "b"), node("d", "a"), node("e", "c", "d", "b")];
  const placed = layout(nodes);
  const boxes = [...placed.nodes.values()];
  for (const each of nodes) for (const input of each.inputs) assert.ok(placed.nodes.get(input).x + 100 < placed.nodes.get(each.id).x);
  boxes.forEach((box, index) => boxes.slice(index + 1).forEach((other) => assert.ok(!overlap(box, other))));
  for (const box of boxes) {
    assert.ok(box.x >= 0 && box.y >= 0);
    assert.ok(box.x + box.width <= placed.width && box.y + box.height <= placed.height);
  }
});

test("an edge over several levels keeps clear of the vertices between", () => {
  const placed = layout([node("a"), node("b", "a"), node("c", "b"), node("d", "c", "a")]);
  const edge = placed.edges.find((each) => each.source === "a" && each.target === "d");
  assert.equal(edge.points.length, 6);
  for (const id of ["b", "c"]) {
    const box = placed.nodes.get(id);
    const inside = edge.points.filter(([x]) => x >= box.x && x <= box.x + box.width);
    assert.ok(inside.length > 0 && inside.every(([, y]) => y < box.y || y > box.y + box.height), id);
  }
});

test("edges that need not cross do not", () => {
  const placed = layout([node("s1"), node("s2"), node("s3"), node("t3", "s3"), node("t1", "s1"), node("t2", "s2")]);
  const order = (ids) => ids.map((id) => placed.nodes.get(id).y);
  const rank = (ids) => [...ids].sort((a, b) => placed.nodes.get(a).y - placed.nodes.get(b).y).map((id) => id.slice(1));
  assert.deepEqual(rank(["s1", "s2", "s3"]), rank(["t1", "t2", "t3"]), order(["s1", "t1"]).join());
});

test("a graph of two hundred vertices is always laid out alike", () => {
  const nodes = Array.from({ length: 200 }, (_, index) => node(`v${index}`, ...(index < 20 ? [] : [`v${index - 20}`, `v${Math.max(0, index - 37)}`])));
  const first = layout(nodes);
  assert.equal(first.nodes.size, 200);
  assert.deepEqual(first, layout(nodes));
});

test("odd graphs do no harm", () => {
  assert.equal(layout([]).nodes.size, 0);
  assert.equal(layout([node("a", "gone")]).edges.length, 0);
  assert.equal(layout([node("a", "b"), node("b", "a")]).nodes.size, 2);
  assert.equal(curve([[0, 0], [10, 0]]), "M0 0L10 0");
});

test("numbers have units and separators", () => {
  assert.equal(format.count(1234567), "1,234,567");
  assert.equal(format.short(1234567), "1.23 M");
  assert.equal(format.short(83123), "83.1 k");
  assert.equal(format.short(1234), "1,234");
  assert.equal(format.bytes(0), "0 B");
  assert.equal(format.bytes(1536), "1.50 KB");
  assert.equal(format.bytes(3 * 1024 ** 3), "3.00 GB");
  assert.equal(format.percent(0.004), "<1 %");
  assert.equal(format.percent(0.5), "50 %");
  assert.equal(format.duration(950), "950 ms");
  assert.equal(format.duration(61_000), "1 min 1 s");
  assert.equal(format.duration(90_061_000), "1 d 1 h");
  assert.equal(format.count(undefined), "–");
  assert.equal(format.count("NaN"), "–");
  assert.equal(format.ago(1000, 61_000), "1 min 0 s ago");
  assert.equal(format.watermark("-9223372036854775808"), "none yet");
  assert.equal(format.watermark("9223372036854775807"), "end of time");
  assert.equal(format.watermark("4200"), "4,200");
});

test("the operators of a chain are read from the plan, whatever they are called", () => {
  const chain = format.chainOf("Source: a &lt;b&gt;&amp;amp;<br/>:- Map<br/>:  +- Filter: x<br/>+- +- odd<br/>");
  assert.deepEqual(chain, [
    { depth: 0, name: "Source: a <b>&amp;" }, { depth: 1, name: "Map" }, { depth: 2, name: "Filter: x" }, { depth: 1, name: "+- odd" },
  ]);
});

test("a long name is cut between characters", () => {
  assert.equal(format.clip("abcdef", 4), "abc…");
  assert.equal(format.clip("ab", 4), "ab");
  assert.equal(format.clip("a".repeat(10_000), 100).length, 100);
  assert.ok(!/[\ud800-\udbff]…/.test(format.clip("ab😀😀", 4)));
});

test("addresses find their view", () => {
  const routes = compile([["", "all"], ["jobs/:job", "job"], ["jobs/:job/vertices/:vertex", "vertex"]]);
  assert.equal(match(routes, "").view, "all");
  assert.deepEqual(match(routes, "#/jobs/ab%2Fc"), { view: "job", params: { job: "ab/c" } });
  assert.equal(match(routes, "#/jobs/a/nothing"), null);
  assert.equal(match(routes, "#/jobs/%E0%A4%A"), null);
});

test("a flame graph is as wide as its samples", () => {
  const root = { name: "root", value: 10, children: [{ name: "a", value: 6, children: [] }, { name: "b", value: 4, children: [{ name: "c", value: 4 }] }] };
  const { boxes, depth } = flameRows(root);
  assert.equal(depth, 3);
  const at = Object.fromEntries(boxes.map((box) => [box.node.name, [box.left, box.width, box.level]]));
  assert.deepEqual(at, { root: [0, 1, 0], a: [0, 0.6, 1], b: [0.6, 0.4, 1], c: [0.6, 0.4, 2] });
  assert.equal(nodeAt(root, "0.1.0").name, "c");
  assert.equal(nodeAt(root, "0.7").name, "root");
});

test("epochs that were sent again replace what was known", () => {
  const epoch = (number, ms) => ({ epoch: number, parts: [{ duration: ms }] });
  const known = merged([epoch(1, 5), epoch(2, 5)], [epoch(2, 9), epoch(3, 1)], 2);
  assert.deepEqual(known.map((each) => [each.epoch, totalOf(each)]), [[2, 9], [3, 1]]);
});

test("the root cause is what the traceback ends with, and own frames are told from a library's", () => {
  const text = 'Traceback (most recent call last):\n  File "/jobs/job.py", line 7, in map\n    return 10 // value\n  File "/venv/site-packages/x.py", line 1, in y\n    z()\nZeroDivisionError: by zero\n  in job \'division\'\n  record: 0\n';
  assert.equal(rootCause(text), "ZeroDivisionError: by zero");
  assert.equal(rootCause("Something broke.\nmore"), "Something broke.");
  assert.deepEqual(markedLines(text).map(({ own }) => own), [false, true, true, false, false, false, false, false, false]);
});

test("axes have round values, also of bytes", () => {
  assert.deepEqual(ticks(73), [0, 20, 40, 60, 80]);
  assert.deepEqual(ticks(0), [0, 1]);
  assert.deepEqual(byteTicks(12_000).map((value) => value / 1024), [0, 5, 10, 15]);
  assert.equal(linePath([[0, 1], null, [2, 3], [4, 5.25]]), "M0 1M2 3L4 5.3");
  assert.deepEqual(thinned([1, 3, 5, 7, 9], 3), [1, 4, 8]);
  assert.deepEqual(thinned([1, 2], 3), [1, 2]);
});

test("a hidden page asks seldom, and a server that does not answer is left alone ever longer", () => {
  assert.equal(nextDelay(3000, { hidden: false, failures: 0 }), 3000);
  assert.equal(nextDelay(3000, { hidden: true, failures: 0 }), 30_000);
  assert.equal(nextDelay(3000, { hidden: false, failures: 2 }), 12_000);
  assert.equal(nextDelay(3000, { hidden: false, failures: 50 }), 30_000);
  assert.equal(nextDelay(60_000, { hidden: true, failures: 0 }), 60_000);
});

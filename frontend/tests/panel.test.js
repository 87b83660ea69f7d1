// What the panel tells of an operator and its golden partner, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heights, marks } from "../src/bars.js";
import { axisStarts, cellSize, numbered, shareOf } from "../src/heatmap.js";
import { apart, attributeRows, callsOf, commandsOf, goldenTensor, linesAround } from "../src/panel/model.js";
import { bounded } from "../src/panel/panel.js";
import { openOperator, panelLink, parsed, place } from "../src/state.js";

test("an operator opens on the page that is shown, and goes on with its query", () => {
  place.value = parsed("#/operators/0/1/2?q=conv");
  assert.deepEqual(parsed(panelLink(["0", "1", "2"], 7)), { ...parsed("#/operators/0/1/2?q=conv"), query: { q: "conv", op: "0/1/2/7" }, fragment: panelLink(["0", "1", "2"], 7) });
  assert.deepEqual(openOperator(parsed("#/overview?op=-/1/2/7")), ["-", "1", "2", "7"]);
  place.value = parsed("#/operator/0/1/2/3");
  assert.equal(panelLink(["0", "1", "2"], 7), "#/operator/0/1/2/7");
  assert.deepEqual(openOperator(place.value), ["0", "1", "2", "3"]);
  assert.ok(["#/overview?op=0/1/x", "#/overview?op=0/1/2/x", "#/overview", "#/tensor/0/1/2/3"].every((one) => openOperator(parsed(one)) === null));
  place.value = parsed("");
});

test("the panel leaves room for the page", () => {
  assert.deepEqual([[620, 1440], [50, 1440], [5000, 1440], [620, 500]].map(([wanted, all]) => bounded(wanted, all)), [620, 360, 1080, 360]);
});

test("an identical partner has the numbers of mine, and none is null", () => {
  const golden = { tensors: { status: ["differs", "identical", null], max: [2, null, null], reason: ["r", "", null] } };
  const mine = { max: 1, min: 0 };
  assert.equal(goldenTensor(golden, mine, 0).max, 2);
  assert.deepEqual([goldenTensor(golden, mine, 1).max, goldenTensor(golden, mine, 1).min], [1, 0]);
  assert.equal(goldenTensor(golden, mine, 2), null);
  assert.equal(goldenTensor(null, mine, 0), null);
  assert.deepEqual([apart(3, 1), apart("nan", 1), apart(1, null)], [2, null, null]);
});

test("attributes that differ come first", () => {
  const rows = attributeRows([["a", "1"], ["b", "2"], ["c", "3"]], [["a", "1"], ["b", "9"], ["d", "4"]]);
  assert.deepEqual(rows.map(({ name, differs }) => [name, differs]), [["b", true], ["c", true], ["d", true], ["a", false]]);
  assert.deepEqual(attributeRows([["a", "1"]], null), [{ name: "a", mine: "1", golden: null, differs: false }]);
  assert.deepEqual(attributeRows(null, null), []);
});

test("lines around one are those of its file that the dump knows", () => {
  const lines = [["a.py", 7, "x"], ["b.py", 8, "other"], ["a.py", 9, "z"], ["a.py", 20, "far"], ["a.py", 8, "y"]];
  assert.deepEqual(linesAround(lines, 4), [{ number: 7, code: "x", isOwn: false }, { number: 8, code: "y", isOwn: true }, { number: 9, code: "z", isOwn: false }]);
  const step = { lines, traces: [[3, 0, 4]], operators: { line: [4, null], trace: [0, null] } };
  assert.deepEqual(callsOf(step, 0), [lines[3], lines[0]]);
  assert.deepEqual(callsOf(step, 1), []);
});

test("commands are quoted for a shell", () => {
  const texts = commandsOf({ path: "/tmp/my dump", golden_path: "g" }, "net/it's", ["0", "-", "2"], { line: ["a b.py", 3, ""] }).map(([, text]) => text);
  assert.equal(texts[0], "msdump show '/tmp/my dump' 'net/it'\\''s' --rank 0 --iteration 2");
  assert.deepEqual(texts.slice(3), ["msdump where '/tmp/my dump' 'a b.py:3'", "msdump compare '/tmp/my dump' g"]);
  assert.equal(commandsOf({ path: "d" }, "n", ["-", "-", "-"], { hasElements: false }).length, 1);
});

test("rows and columns have the numbers of the tensor", () => {
  assert.deepEqual(axisStarts({ index: "3, 100:200, ::2", axes: [1, 2] }), { rows: [100, 1], columns: [0, 2] });
  assert.deepEqual(axisStarts({ index: "7:", axes: [0] }), { rows: [0, 1], columns: [7, 1] });
  assert.deepEqual(axisStarts({ index: "-5:, :", axes: [0, 1] }).rows, [0, 1]);
  assert.deepEqual(numbered(10, 44, 44), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(numbered(512, 2, 44), Array.from({ length: 11 }, (_, at) => 50 * at));
});

test("cells fill their room and stay recognisable", () => {
  assert.deepEqual(cellSize(6, 10, { width: 1000, height: 600 }), { high: 72, wide: 72 });
  assert.deepEqual(cellSize(100, 100, { width: 200, height: 400 }), { high: 4, wide: 2 });
  assert.deepEqual(cellSize(1, 1000, { width: 500, height: 400 }), { high: 2, wide: 0.5 });
});

test("a scale of powers of ten shows small values", () => {
  assert.deepEqual([1, -1, 0].map((one) => shareOf(one, 1, true)), [1, -1, 0]);
  assert.ok(Math.abs(shareOf(-1e-3, 1, true) + 0.5) < 1e-12);
  assert.equal(Math.abs(shareOf(1e-9, 1, true)), 0);
  assert.equal(shareOf(0.5, 1, false), 0.5);
});

test("one element of many is a bar that is seen", () => {
  const { share, ticks } = heights(1e6);
  assert.ok(share(1) > 0.03 && Math.abs(share(1e6) - 1) < 1e-12 && share(0) === 0);
  assert.deepEqual(ticks, [1, 100, 1e4, 1e6]);
  assert.deepEqual(marks([1e-3, 0.5, 20], true), [1e-3, 1e-2, 1e-1, 1, 10].map((one) => 10 ** Math.round(Math.log10(one))));
  assert.deepEqual(marks([0, 1, 2], false), [0, 1, 2]);
});

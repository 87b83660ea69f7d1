// The order of a comparison, its chart, curves of a training, and the field that leads everywhere, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decades, drawn, isWide } from "../src/chart.js";
import { matching } from "../src/palette.js";
import { comparedOrder, commonTolerance, errorPoints, rangeOf } from "../src/pages/compare.js";
import { typesOf } from "../src/pages/lines.js";
import { magnitudes, shares } from "../src/pages/series.js";
import { brief } from "../src/pages/tensor.js";
import { withoutCommonParts } from "../src/view.js";

const tensors = {
  operator: [0, 1, 1, 2, 3], io: ["output", "input", "output", "output", "output"], status: ["not compared", "agrees", "differs", "identical", "differs"],
  error: [null, 1e-6, 0.5, 0, "inf"], cosine: [null, 1, 0.75, null, "nan"], max_abs_error: [null, 1, 2, null, "inf"], golden: ["a", "b", "b", "c", "d"],
  reason: ["unset", "", "too far", "", "NaN"], tolerance: [1e-9, 1e-4, 1e-4, 1e-4, 5e-3],
};
const names = ["net/Empty", "net/Add", "net/Mul", "net/Log"];

test("what differs comes first, and what was not compared is shown when it is asked for", () => {
  assert.deepEqual(comparedOrder(tensors, names, {}), [2, 4, 1, 3]);
  assert.deepEqual(comparedOrder(tensors, names, { isWhole: true }), [2, 4, 1, 3, 0]);
  assert.deepEqual(comparedOrder(tensors, names, { isBadOnly: true }), [2, 4]);
  assert.deepEqual(comparedOrder(tensors, names, { range: [1, 2] }), [2, 1, 3]);
  assert.deepEqual(comparedOrder(tensors, names, { q: "LOG nan" }), [4]);
  assert.deepEqual(comparedOrder(tensors, names, { value: (index) => -index, way: 1 }), [4, 3, 2, 1]);
});

test("a range comes back from the address", () => {
  assert.deepEqual(["3-17", "", undefined, "x-3", "3"].map(rangeOf), [[3, 17], null, null, null, null]);
});

test("one point for each operator, with its largest error", () => {
  assert.deepEqual(errorPoints(tensors, "error"), [[1, 0.5, true], [2, 0, false], [3, "inf", true]]);
  assert.deepEqual(errorPoints(tensors, "angle"), [[1, 0.25, true], [2, 0, false], [3, "nan", true]]);
  assert.equal(commonTolerance(tensors), 1e-4);
  assert.equal(commonTolerance({ ...tensors, tolerance: [0, 0, 0, 0, 0] }), null);
});

test("a scale of powers of ten has few marks, and no place for what is not above 0", () => {
  assert.deepEqual(decades(1e-3, 100), [1e-3, 1e-2, 1e-1, 1, 10, 100].map((one) => 10 ** Math.round(Math.log10(one))));
  assert.ok(decades(1e-30, 1e30).length <= 7);
  assert.deepEqual(decades(2, 5), [2, 5]);
  assert.deepEqual(drawn([1, 0, -1, "nan", null], true), [1, null, null, null, null]);
  assert.deepEqual(drawn([1, 0, -1, "nan", null], false), [1, 0, -1, null, null]);
  assert.deepEqual([[[1, 100]], [[1, 2]], [[-1, 100]], [["nan"]]].map((rows) => isWide(rows.map((values) => ({ values })))), [true, false, false, false]);
});

test("rows share a scale of colours", () => {
  assert.deepEqual(magnitudes([[1, -100, 0], [null, "nan", 10]]), [0, 2]);
  assert.equal(magnitudes([[0, null]]), null);
  assert.deepEqual(shares([1, 10, 100, 0, "nan"], [0, 2]), [0, 0.5, 1, null, null]);
  assert.deepEqual(shares([5, 5.01], null), [0.5, 0.5]);
});

test("names without what most of them share", () => {
  const label = withoutCommonParts(["aten_mm_default", "aten_add_Tensor", "aten_t_default", "aten_relu_default"]);
  assert.deepEqual(["aten_mm_default", "aten_add_Tensor", "other"].map(label), ["mm", "add_Tensor", "other"]);
  assert.equal(withoutCommonParts(["MatMul", "Add"])("MatMul"), "MatMul");
  const clash = withoutCommonParts(["a_x", "b_x", "c_x", "a"]);
  assert.equal(clash("a_x"), "a_x");
});

test("a type of a line is there once, with its worst operator first", () => {
  const operators = { type: ["Add", "Mul", "Add"], health: ["ok", "ok", "differs"] };
  assert.deepEqual(typesOf(operators, [0, 1, 2]), [["Add", [2, 0]], ["Mul", [1]]]);
});

test("elements have four digits, and keep what is no number", () => {
  assert.deepEqual(["0.5", "0.12345678901234567", "-1.0000000000000002e-10", "nan", "(1.23456789+2j)", "True"].map(brief),
    ["0.5", "0.1235", "-1e-10", "nan", "(1.23456789+2j)", "True"]);
});

test("entries have all words, and those that begin with them are first", () => {
  const entries = ["net/conv1", "Compare", "conv", "net/fc"].map((label) => ({ label, kind: "operator" }));
  assert.deepEqual(matching(entries, "conv").map(({ label }) => label), ["conv", "net/conv1"]);
  assert.deepEqual(matching(entries, " FC  operator").map(({ label }) => label), ["net/fc"]);
  assert.equal(matching(entries, "", 3).length, 3);
});

test("a tolerance that what agrees exceeds is not the one that judges", () => {
  const one = { status: ["agrees", "differs"], error: [0.04, 0.06], tolerance: [1e-4, 1e-4] };
  assert.equal(commonTolerance(one), null);
  assert.equal(commonTolerance({ ...one, error: [5e-5, 0.06] }), 1e-4);
});

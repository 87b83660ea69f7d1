// What is told of a tensor over iterations and ranks, and of a dtype that it might have, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../src/exponents.js";
import { headRoom, headRoomOf, lossOf } from "../src/pages/overflow.js";
import { alike, firstNotFinite, growth, spread } from "../src/pages/series.js";

test("growth is the last value over the first", () => {
  assert.deepEqual([[2, null, -6], [0, 0], [0, 1], [null, 3, 3]].map(growth), [3, 1, Infinity, 1]);
  assert.equal(growth([1, "nan"]), Infinity);
  assert.ok([[1], [null, null], []].every((values) => Number.isNaN(growth(values))));
});

test("spread is the largest distance from the median", () => {
  assert.deepEqual([[4, 4, 4], [4, 4, 6], [0, 0, 1], [1, "nan"], ["nan", "nan"]].map(spread), [0, 0.5, Infinity, Infinity, 0]);
  assert.ok(Number.isNaN(spread([null, null])));
});

test("head-room in bits", () => {
  assert.equal(headRoom([-3, [1, 1], [0, 0]], limits.float16), 17); // largest element below 2^-1
  assert.equal(headRoom([16, [1], [0]], limits.float16), -1);
  assert.equal(headRoom([0, [], []], limits.float16), Infinity);
  assert.deepEqual([0.3, 65504, 70000, 0, "inf", null].map((most) => headRoomOf(most, limits.float16)), [17, 0, -1, Infinity, null, null]);
});

test("what no rank has is not alike", () => {
  assert.equal(alike([[1, 1], [null, null], [1, 2], [null, 3]]), "1 of 3");
});

/** A table of one tensor of four elements. */
const tensor = (min, max, exponents = null, zero = 0) => ({ min: [min], max: [max], exponents: [exponents], zero: [zero], count: [4] });
const loss = (one) => lossOf(one, 0, limits.float16);

test("minimum and maximum tell what overflows, and not what underflows", () => {
  assert.deepEqual(loss(tensor(-1e6, 1)), { isOver: true, over: null, under: null });
  assert.deepEqual(loss(tensor(-1, 65504)), { isOver: false, over: null, under: null });
  assert.equal(loss(tensor(-1, 65505)).isOver, true);
});

test("what nothing was measured of is not judged", () => {
  for (const one of [tensor(null, null), tensor("nan", "nan"), tensor(0, "inf"), tensor("nan", "nan", [0, [], []])]) {
    assert.deepEqual(loss(one), { isOver: null, over: null, under: null });
  }
  assert.equal(loss(tensor(-1e6, "inf")).isOver, true);
});

test("counts of exponents tell both", () => {
  assert.deepEqual(loss(tensor(0, 2, [0, [1, 1], [0, 0]], 2)), { isOver: false, over: 0, under: 0 });
  assert.deepEqual(loss(tensor(0, 0, [0, [], []], 4)), { isOver: false, over: 0, under: 0 });
  assert.equal(loss(tensor(0, 1e-9, [-30, [4], [0]])).under, 1);
});

test("where a tensor goes bad first", () => {
  const one = (nan, l2norm, max) => ({ nan: [nan], l2norm: [l2norm], max: [max], min: [[null, null, null]] });
  assert.equal(firstNotFinite(one([0, 1, 1], [1, 2, 3], [1, 1, 1]), 0), 1);
  assert.equal(firstNotFinite(one([0, 0, 0], [1, 2, "inf"], [1, 1, "inf"]), 0), 2);
  assert.equal(firstNotFinite(one([null, 0, 0], [null, 2, 3], [1, 1, 1]), 0), 3);
});

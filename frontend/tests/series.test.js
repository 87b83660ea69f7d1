// What is told of a tensor over iterations and ranks, and of a dtype that it might have, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../src/exponents.js";
import { headRoom } from "../src/pages/overflow.js";
import { growth, spread } from "../src/pages/series.js";

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
});

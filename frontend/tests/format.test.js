// What the page says of numbers, states and dtypes, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits, lost } from "../src/exponents.js";
import { bytes, number, shape, sortable } from "../src/format.js";
import { ordered } from "../src/pages/operators.js";
import { link, parsed } from "../src/state.js";

test("numbers", () => {
  assert.deepEqual([null, "nan", 3, 0.5, 1e-7, 123456.7].map(number), ["–", "nan", "3", "0.5", "1e-7", "1.235e+5"]);
  assert.deepEqual([0, 1536, 5 * 2 ** 30, null].map(bytes), ["0 B", "1.5 KiB", "5 GiB", "–"]);
  assert.equal(shape([2, 3]), "(2, 3)");
});

test("what is not finite has its place in an order", () => {
  const values = ["nan", null, 2, "-inf", "inf"].map(sortable);
  assert.deepEqual([...values].sort((one, other) => one - other), [values[1], values[3], values[2], values[4], values[0]]);
});

test("a state comes back from its link", () => {
  const [page, parts, query] = ["operator", ["0", "-", "5", "17"], { q: "a/b?c&d #%", sort: "-max" }];
  const fragment = link(page, parts, query);
  assert.deepEqual(parsed(fragment), { page, parts, query, fragment });
  assert.deepEqual(parsed(""), { page: "overview", parts: [], query: {}, fragment: "" });
  assert.equal(parsed("#/operators/%").parts[0], "%");
});

test("what a narrower dtype would lose", () => {
  // 1 element at 2^20, 3 at 2^0, one of them negative, 4 at 2^-12.
  const counts = [-12, Object.assign(new Array(33).fill(0), { 0: 4, 12: 2, 32: 1 }), Object.assign(new Array(33).fill(0), { 12: 1 })];
  assert.deepEqual(lost(counts, limits.float16), [1 / 8, 0]);
  assert.deepEqual(lost(counts, limits.float8_e4m3fn), [1 / 8, 4 / 8]);
  assert.deepEqual(lost(counts, limits.bfloat16), [0, 0]);
});

test("search, filter and order", () => {
  const operators = { name: ["net/conv1/A", "net/fc/B", "net/fc/C"], type: ["Conv2D", "MatMul", "Add"], scope: ["conv1", "fc", "fc"],
    health: ["ok", "differs", "ok"] };
  const columns = [{ name: "max", value: (index) => [3, 9, 5][index] }];
  const order = (some) => ordered(operators, columns, { q: "", sort: "", bad: "", ...some });
  assert.deepEqual(order({}), [0, 1, 2]);
  assert.deepEqual(order({ q: "FC add" }), [2]);
  assert.deepEqual(order({ bad: "1" }), [1]);
  assert.deepEqual(order({ sort: "max" }), [1, 2, 0]);
  assert.deepEqual(order({ sort: "-max" }), [0, 2, 1]);
});

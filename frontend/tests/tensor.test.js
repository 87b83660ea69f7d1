// Pictures of tensors and the way through them, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { colourOf, pixels, scaleOf } from "../src/heatmap.js";
import { neighbours, ownerOf, zoomed } from "../src/pages/tensor.js";

const cells = (values, flags) => ({ least: Float32Array.from(values), largest: Float32Array.from(values),
  mean: Float32Array.from(values), flags: Uint8Array.from(flags) });

test("zero is the middle of the colours", () => {
  assert.deepEqual(colourOf(0), [247, 247, 247]);
  assert.deepEqual(colourOf(1), colourOf(5));
  assert.notDeepEqual(colourOf(1), colourOf(-1));
});

test("a cell with a NaN shows it, whatever its mean", () => {
  const picture = cells([1, -4, 2, NaN], [0, 0, 1, 0]);
  assert.equal(scaleOf(picture), 4);
  const data = pixels(picture, 4);
  assert.deepEqual([...data.slice(8, 12)], [255, 0, 255, 255]);
  assert.deepEqual([...data.slice(12, 15)], [128, 128, 128]);
  assert.deepEqual([...data.slice(4, 7)], colourOf(-1));
});

test("a tensor belongs to the last operator that begins before it", () => {
  const operators = { name: ["a", "b", "c"], first: [0, 2, 5] };
  assert.deepEqual([0, 1, 2, 4, 5, 9].map((number) => ownerOf(operators, number)), [0, 0, 1, 1, 2, 2]);
});

test("iterations before and after, of the same rank and graph", () => {
  const overview = { steps: { rank: [0, 0, 1, 0], graph: [0, 0, 0, 1], iteration: [4, 1, 2, 3] } };
  assert.deepEqual(neighbours(overview, ["0", "0", "1"]), [null, ["0", "0", "4"]]);
  assert.deepEqual(neighbours(overview, ["0", "0", "4"]), [["0", "0", "1"], null]);
  assert.deepEqual(neighbours(overview, ["1", "0", "2"]), [null, null]);
});

test("a click into cells takes the elements around it", () => {
  const about = { index: "3, 100:1100, :", axes: [1, 2], rows: 1000, columns: 40, row_step: 2, column_step: 1,
    cell_rows: 500, cell_columns: 40 };
  assert.equal(zoomed(about, 250, 7), "3, 538:662, :");
  assert.equal(zoomed(about, 0, 7), "3, 100:162, :");
  assert.equal(zoomed({ ...about, index: "3, ::2, :" }, 0, 0), "3, ::2, :");
});

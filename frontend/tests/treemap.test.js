import assert from "node:assert/strict";
import test from "node:test";
import { bytesTree } from "../src/treemap.js";

const step = (names, sizes) => ({
  operators: {
    name: names, type: names.map((name) => name.split("/").at(-1).split("-")[0]), first: names.map((_, at) => at),
    scope: names.map((name) => name.split("/").slice(-2, -1)[0] ?? ""), health: names.map(() => "ok"), is_parameter: names.map(() => false),
  },
  tensors: { io: names.map(() => "output"), size_bytes: sizes },
});
const leaves = (node) => (node.children ? node.children.flatMap(leaves) : [node]);

test("every byte has one place", () => {
  const tree = bytesTree(step(["a/x/Mul-1", "a/x/Mul-2", "a/y/Add-3", "a/Sub-4"], [8, 4, 2, 1]));
  assert.deepEqual(tree.children.map(({ name }) => name), ["x", "y", "a"]);
  assert.deepEqual(leaves(tree).map(({ size, index }) => [size, index]), [[8, 0], [4, 1], [2, 2], [1, 3]]);
});

test("small operators of a type are one rectangle with the health of the worst", () => {
  const all = step(["a/x/Mul-1", "a/x/Mul-2", "a/x/Mul-3"], [100000, 1, 2]);
  all.operators.health[2] = "differs";
  const [, rest] = leaves(bytesTree(all));
  assert.deepEqual(rest, { name: "Mul × 2", size: 3, index: null, health: "differs" });
});

test("a step without bytes is empty", () => {
  assert.deepEqual(bytesTree(step(["a"], [null])).children, []);
});

// What is near an operator, and where boxes stand, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { laidOut } from "../src/layout.js";
import { neighbourhood } from "../src/scopes.js";
import { stepOf } from "./steps.js";

const step = stepOf([["Default/net/a/Conv-op0", [null]], ["Default/net/a/Add-op1", [0]], ["Default/net/Relu-op2", [1], "differs"],
  ["Default/net/b/Mul-op3", [2, 0]], ["weight", [], "ok", true]]);

test("what is near an operator", () => {
  assert.deepEqual(neighbourhood(step, 3, 1).boxes.map(({ operators: [one] }) => one), [0, 2, 3]);
  assert.deepEqual(neighbourhood(step, 3, 2).edges.length, 4);
  assert.equal(neighbourhood(step, 3, 2, 2).boxes.length, 2);
});

test("each box and each edge has a place", () => {
  const layout = laidOut({ nodes: [{ id: "a", width: 60, height: 30 }, { id: "b", width: 60, height: 30 }, { id: "c", width: 60, height: 30 }],
    edges: [["a", "b"], ["b", "a"]] });
  assert.equal(Object.keys(layout.nodes).length, 3);
  assert.ok(layout.edges.every((points) => points.length >= 2 && points.flat().every(Number.isFinite)));
});

// Operators by their scopes, and what flows between them, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { laidOut } from "../src/layout.js";
import { level, MAX_BOXES, neighbourhood, start } from "../src/scopes.js";

/** A step of operators [name, sources of its inputs, health]; each has an output. */
function stepOf(rows) {
  const [operators, tensors] = [{ name: [], type: [], health: [], first: [], is_parameter: [] }, { source: [], io: [] }];
  for (const [name, sources, health = "ok", isParameter = false] of rows) {
    operators.name.push(name);
    operators.type.push(name.split("/").at(-1).replace(/-op[0-9]+$/, ""));
    operators.health.push(health);
    operators.is_parameter.push(isParameter);
    operators.first.push(tensors.source.length);
    tensors.source.push(...sources, null);
    tensors.io.push(...sources.map(() => "input"), "output");
  }
  return { operators, tensors };
}

const step = stepOf([["Default/net/a/Conv-op0", [null]], ["Default/net/a/Add-op1", [0]], ["Default/net/Relu-op2", [1], "differs"],
  ["Default/net/b/Mul-op3", [2, 0]], ["weight", [], "ok", true]]);

test("the first level has more than one box, and parameters are none", () => {
  assert.deepEqual(start(step.operators), ["Default", "net"]);
  const { boxes, edges, leftOut } = level(step, start(step.operators));
  assert.deepEqual(boxes.map(({ label, operators, health }) => [label, operators, health]),
    [["a", [0, 1], "ok"], ["Relu-op2", [2], "differs"], ["b", [3], "ok"]]);
  assert.deepEqual(edges, [["scope a", "operator 2"], ["operator 2", "scope b"], ["scope a", "scope b"]]);
  assert.equal(leftOut, 0);
  assert.deepEqual(level(step, ["Default", "net", "a"]).edges, [["operator 0", "operator 1"]]);
  assert.deepEqual(level(step, ["nowhere"]).boxes, []);
});

test("too many boxes become one for each type", () => {
  const many = stepOf(Array.from({ length: 3 * MAX_BOXES }, (_, index) => [`net/${index % 2 ? "Add" : "Mul"}-op${index}`, index ? [index - 1] : []]));
  const { boxes, edges } = level(many, ["net"]);
  assert.deepEqual(boxes.map(({ label, operators }) => [label, operators.length]), [["Mul", 225], ["Add", 225]]);
  assert.equal(edges.length, 2);
});

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

import assert from "node:assert/strict";
import { test } from "node:test";
import { openingStep } from "../src/view.js";

const steps = { rank: [0, 0, 1], graph: [0, 0, 0], iteration: [1, 2, 1] };

test("pages open with the step of the verdict", () => {
  const at = { step: [1, 0, 2], operator: 5, name: "Div" };
  assert.deepEqual(openingStep({ steps, verdict: { kind: "nan", at } }), ["1", "0", "2"]);
});

test("pages of a healthy dump open with the first step", () => {
  assert.deepEqual(openingStep({ steps, verdict: { kind: "ok", at: null } }), ["0", "0", "1"]);
});

test("what folders do not tell is a dash, and a dump without steps has none", () => {
  const unknown = { rank: [null], graph: [0], iteration: [3] };
  assert.deepEqual(openingStep({ steps: unknown, verdict: { at: null } }), ["-", "0", "3"]);
  assert.equal(openingStep({ steps: { rank: [], graph: [], iteration: [] }, verdict: { at: null } }), undefined);
});

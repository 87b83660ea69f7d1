// Scopes, chains of views, repeated blocks and edges of the graph, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arranged } from "../src/graph/arrange.js";
import { boxesOf, known, measured, paired, pairsOf, share } from "../src/graph/faces.js";
import { flowOf, isView, leftOut, preparedOf } from "../src/graph/flow.js";
import { ghostsOf } from "../src/graph/ghosts.js";
import { edgeText, firstOpen, inSight, isRed, openFrom, openText, OUT, toggled } from "../src/graph/levels.js";
import { matches } from "../src/graph/search.js";
import { byId, common, MAX_BOXES, pathTo, treeOf } from "../src/graph/tree.js";
import { stepOf } from "./steps.js";

const say = (text) => text;
const graphOf = (step, options) => {
  const flow = flowOf(step, options);
  const tree = treeOf(step, flow.hidden);
  return { ...tree, ...flow, nodes: byId(tree.root) };
};
const shown = ({ root }) => root.children.map(({ kind, label, operators }) => [kind, label, operators]);

const step = stepOf([["Default/net/a/Conv-op0", [null]], ["Default/net/a/Add-op1", [0]], ["Default/net/Relu-op2", [1], "differs"],
  ["Default/net/b/Mul-op3", [2, 0]], ["weight", [], "ok", true]]);

test("the first level has more than one box, scopes of one operator are it, and parameters are none", () => {
  const graph = graphOf(step);
  assert.equal(graph.root.id, "/Default/net");
  assert.deepEqual(shown(graph), [["scope", "a", [0, 1]], ["operator", "Relu-op2", [2]], ["operator", "b", [3]]]);
  assert.deepEqual(graph.root.children.map(({ health }) => health), ["ok", "differs", "ok"]);
  const sight = inSight(graph, graph.edges, new Set([graph.root.id]));
  const ids = graph.root.children.map(({ id }) => id);
  assert.deepEqual(sight.edges.map(({ from, to }) => [from, to]), [[ids[0], ids[1]], [ids[1], ids[2]], [ids[0], ids[2]]]);
});

test("an open scope has edges of its own, and stubs of what leads out", () => {
  const graph = graphOf(step);
  const [scope, relu, mul] = graph.root.children;
  const sight = inSight(graph, graph.edges, toggled(new Set([graph.root.id]), scope));
  const [conv, add] = scope.children;
  assert.deepEqual(sight.children[0].edges.map(({ from, to }) => [from, to]), [[conv.id, add.id], [add.id, OUT], [conv.id, OUT]]);
  assert.deepEqual(sight.edges.map(({ from, to }) => [from, to]), [[scope.id, relu.id], [relu.id, mul.id], [scope.id, mul.id]]);
  const { box, texts } = boxesOf(sight, step, { statistic: null, pairs: null, say, isOrdered: false });
  const layout = arranged(box);
  for (const one of [scope, relu, mul, conv, add]) assert.ok(layout.boxes[one.id].every(Number.isFinite));
  const [[x, y, width, height], [innerX, innerY, innerWidth, innerHeight]] = [layout.boxes[scope.id], layout.boxes[conv.id]];
  assert.ok(innerX > x && innerY > y && innerX + innerWidth < x + width && innerY + innerHeight < y + height);
  assert.equal(Object.keys(layout.edges).length, 6);
  assert.equal(texts.get(sight.edges[0].id), "f32 2");
});

test("chains of views are part of an edge, but for one that makes what is not finite", () => {
  assert.ok(["aten_view_default", "aten.transpose.int", "aten__to_copy_default", "aten_t_default", "Reshape", "Cast", "Transpose", "Flatten"].every(isView));
  assert.ok(!["aten_mm_default", "aten_viewport_default", "aten_add_Tensor", "Gather", "Conv", "aten_select_int"].some(isView));
  const rows = [["n/Conv-op0", [null]], ["n/Reshape-op1", [0]], ["n/Cast-op2", [1]], ["n/Add-op3", [2]], ["n/Cast-op4", [2]]];
  const { edges, hidden } = flowOf(stepOf(rows));
  assert.deepEqual(edges.map(({ from, to, views }) => [from, to, views]), [[0, 3, [1, 2]]]);
  assert.deepEqual([...hidden], [1, 2, 4]);
  assert.equal(edgeText({ flows: edges }, stepOf(rows).tensors, say), "f32 2, 2 views");
  assert.equal(flowOf(stepOf(rows), { shownViews: true }).edges.length, 4);
  rows[2] = ["n/Cast-op2", [1], "not finite made here"];
  assert.deepEqual([...flowOf(stepOf(rows)).hidden], [1, 4]);
});

test("what makes numbers of a weight's codes is left out of tables, but for what is not well", () => {
  const rows = [["n/DequantizeLinear-op0", [null]], ["n/DequantizeLinear-op1", [null], "differs"], ["n/QuantizeLinear-op2", [null]],
    ["n/DequantizeLinear-op3", [2]], ["n/Gemm-op4", [3, 0, 1]]];
  const step = stepOf(rows);
  assert.deepEqual([...preparedOf(step)], [0, 1]);
  assert.deepEqual([...leftOut(step, false)], [0]);
  assert.equal(leftOut(step, true).size, 0);
  assert.equal(preparedOf(stepOf(rows.map(([name]) => [name, [null]]))).size, 0, "nothing is known of what flows");
});

test("a view that reads two operators is a box: folded, one of them would be lost", () => {
  const { hidden } = flowOf(stepOf([["n/Conv-op0", [null]], ["n/Shape-op1", [null]], ["n/Reshape-op2", [0, 1]], ["n/Add-op3", [2]]]));
  assert.equal(hidden.size, 0);
});

test("operators whose inputs were not dumped have the edges that the graph file tells", () => {
  const outputs = stepOf([["n/Conv-op0", []], ["n/Add-op1", []]]);
  outputs.operators.reads[1] = [0];
  const { edges } = flowOf(outputs);
  assert.deepEqual(edges.map(({ from, to, tensors }) => [from, to, tensors]), [[0, 1, [0]]]);
});

const layers = (times, scope = "net") => Array.from({ length: times }, (_, layer) => [
  [`${scope}/layers.${layer}/Mul-op${2 * layer + 1}`, [2 * layer]], [`${scope}/layers.${layer}/Add-op${2 * layer + 2}`, [2 * layer + 1]]]).flat();

test("blocks of one structure are one box that opens", () => {
  const rows = [["net/In-op0", [null]], ...layers(12)];
  rows[9][2] = "not finite made here";
  const graph = graphOf(stepOf(rows));
  const [, block] = graph.root.children;
  assert.deepEqual([block.kind, block.label, block.children.length, block.operators.length], ["repeat", "layers.*", 12, 24]);
  assert.deepEqual(block.children.map(({ health }) => health === "ok"), Array.from({ length: 12 }, (_, layer) => layer !== 4));
  const open = firstOpen(graph.root, [graph.leaves.get(9)], 1);
  assert.ok(open.has(block.id) && open.has(block.children[4].id) && !open.has(block.children[3].id));
});

test("operators whose names have no scopes stand in the modules around them", () => {
  const own = stepOf([["Module.Linear.0", [null]], ["Module.ReLU.1", [0]], ["Module.Tanh.2", [1]]]);
  own.operators.scope = ["net.body", "net.body", "net"];
  assert.deepEqual(shown(graphOf(own)).map(([kind, label]) => [kind, label]), [["scope", "body"], ["operator", "Module.Tanh.2"]]);
});

test("a scope of alike blocks alone has their cells, and does not open by itself", () => {
  const graph = graphOf(stepOf([["net/In-op0", [null]], ...layers(12, "net/body")]));
  const [, body] = graph.root.children;
  assert.deepEqual([body.kind, body.label, body.alike, body.children.length], ["scope", "body", "layers.*", 12]);
  assert.deepEqual([...firstOpen(graph.root, [], 100)], [graph.root.id]);
  const { faces } = boxesOf(inSight(graph, graph.edges, new Set([graph.root.id])), step, { statistic: null, pairs: null, say, isOrdered: false });
  assert.equal(faces.get(body.id).title, "body × 12");
});

test("another structure, or two of them, is no repeated block", () => {
  const rows = [["net/In-op0", [null]], ...layers(5)];
  rows[5][0] = "net/layers.2/Sub-op5";
  assert.deepEqual(graphOf(stepOf(rows)).root.children.map(({ kind }) => kind), ["operator", "scope", "scope", "scope", "scope", "scope"]);
});

test("operators that repeat together are steps of one box, named by their parameter", () => {
  const rows = Array.from({ length: 40 }, (_, at) => [`net/opt/${["Mul", "Add", "Sqrt", "Div"][at % 4]}-op${at}`, at % 4 ? [at - 1] : [null]]);
  const training = stepOf([["net/In-op9", [null]], ...rows.map(([name, sources]) => [name, sources.map((one) => (one === null ? null : one + 1))])]);
  for (let at = 0; at < 10; at += 1) training.tensors.parameter[training.operators.first[4 * at + 1]] = `layer${at}.weight`;
  const scope = graphOf(training).root.children[1];
  assert.deepEqual([scope.children.length, scope.children[0].label], [10, "layer0.weight"]);
});

test("a module that is called again and again is a box for each call", () => {
  const graph = graphOf(stepOf([["n/conv1/Conv-op0", [null]], ["n/relu/ReLU-op1", [0]], ["n/conv2/Conv-op2", [1]], ["n/relu/ReLU-op3", [2]]]));
  assert.deepEqual(shown(graph).map(([, label]) => label), ["conv1", "relu", "conv2", "relu"]);
});

test("no level has more boxes than can be drawn, and every operator is below one", () => {
  for (const many of [MAX_BOXES + 1, 3000, 20000]) {
    const graph = graphOf(stepOf(Array.from({ length: many }, (_, index) => [`net/${"ABCDEFGHIJK"[(index * index) % 11]}-op${index}`, index ? [index - 1] : []])));
    for (const one of graph.nodes.values()) assert.ok(one.kind === "repeat" || one.children.length <= MAX_BOXES);
    assert.equal(graph.leaves.size, many);
    assert.ok([...graph.leaves.values()].every((leaf) => pathTo(leaf)[0] === graph.root && graph.nodes.get(leaf.id) === leaf));
  }
});

test("what is open is a text, and the text is what is open", () => {
  const graph = graphOf(stepOf([["n|%/a/b/Mul-op0", [null]], ["n|%/a/b/Add-op1", [0]], ["n|%/a/Sub-op2", [1]], ["n|%/Div-op3", [2]], ["Log-op4", [3]]]));
  const open = firstOpen(graph.root, [], 100);
  assert.deepEqual([...openFrom(openText(open, graph.nodes), graph.nodes)].sort(), [...open].sort());
  const closed = toggled(open, graph.root.children[0]);
  assert.deepEqual([...closed], [graph.root.id]);
  assert.deepEqual([...openFrom("/nowhere|", graph.nodes)], [graph.root.id]);
});

test("edges along which a NaN flows are red", () => {
  const graph = graphOf(stepOf([["Log-op0", [null], "not finite made here"], ["Mul-op1", [0], "not finite came in"], ["Exp-op2", [null]], ["Add-op3", [2]]]));
  const sight = inSight(graph, graph.edges, new Set([graph.root.id]));
  assert.deepEqual(sight.edges.map((edge) => isRed(edge, stepOf([["Log-op0", [null], "not finite made here"], ["Mul-op1", [0]], ["Exp-op2", [null]], ["Add-op3", [2]]]).tensors)), [true, false]);
});

test("a statistic of a scope is that of the worst in it", () => {
  const own = stepOf([["n/a/Mul-op0", [null]], ["n/a/Add-op1", [0]], ["n/Log-op2", [1]]]);
  own.tensors.max[3] = "nan";
  own.tensors.nan[3] = 2;
  const { root } = graphOf(own);
  assert.deepEqual(known(own), ["max", "l2norm", "nan", "inf", "zero"]);
  const largest = measured(root, own, "max");
  assert.ok(Number.isNaN(largest.of.get(root.children[0].id)));
  assert.equal(largest.of.get(root.children[1].id), 3);
  assert.equal(measured(root, own, "nan").of.get(root.id), 2);
  assert.deepEqual([share(largest, NaN), share(largest, 0), share(null, 3)], [1, 0, 0]);
});

test("pairs of a node: the worst status, the largest error, and who has no partner", () => {
  const compare = { tensors: { operator: [0, 0, 1], status: ["agrees", "differs", "identical"], error: [0.25, "inf", 0], golden: ["a", "a", "b"] } };
  const sum = paired(pairsOf(compare), { operators: [0, 1, 2] });
  assert.deepEqual(sum, { differs: 1, agrees: 1, unknown: 0, missing: 1, error: Infinity });
});

test("operators of the golden dump alone are boxes in the scope of their name", () => {
  const graph = graphOf(step);
  const ghosts = ghostsOf(["Default/net/a/Gelu-op7", "Other/Exp-op8", ...Array.from({ length: 30 }, (_, at) => `Default/net/Log-op${at}`)], graph);
  const scope = graph.root.children[0];
  assert.deepEqual(ghosts.of.get(scope.id).map(({ label }) => label), ["Gelu-op7"]);
  assert.deepEqual([ghosts.counts.get(scope.id), ghosts.counts.get(graph.root.id)], [1, 32]);
  assert.deepEqual([ghosts.of.get(graph.root.id).length, ghosts.of.get(graph.root.id).at(-1).label], [12, "+ 20"]);
  const sight = inSight(graph, graph.edges, toggled(new Set([graph.root.id]), scope), ghosts);
  assert.deepEqual(sight.children[0].children.map(({ at }) => at.label), ["Conv-op0", "Add-op1", "Gelu-op7"]);
  const { faces } = boxesOf(sight, step, { statistic: null, pairs: new Map(), ghosts, say, isOrdered: false });
  assert.deepEqual(faces.get(`${scope.id}/?0`).lines, ["only in golden", ""]);
});

test("without edges boxes stand in their order", () => {
  const own = stepOf(Array.from({ length: 10 }, (_, index) => [`${"ABCDEFGHIJ"[index]}-op0`, [null]]));
  const graph = graphOf(own);
  assert.ok(!graph.isKnown);
  const { box } = boxesOf(inSight(graph, [], new Set([graph.root.id])), own, { statistic: null, pairs: null, say, isOrdered: true });
  const layout = arranged(box);
  const places = graph.root.children.map(({ id }) => layout.boxes[id]);
  for (let at = 1; at < places.length; at += 1) assert.ok(places[at][1] > places[at - 1][1] || places[at][0] > places[at - 1][0]);
  assert.equal(Object.keys(layout.edges).length, 9);
});

test("a long chain stands in columns, and boxes of a level never overlap", () => {
  for (const [many, skip] of [[30, 0], [30, 7], [90, 0], [120, 3]]) {
    const children = Array.from({ length: many }, (_, at) => ({ id: `${at}`, width: 100 + (at % 3) * 20, height: 50 }));
    const edges = children.slice(1).map((_, at) => ({ id: `e${at}`, from: `${at}`, to: `${at + 1}`, width: 40 }));
    if (skip) for (let at = skip; at < many; at += skip) edges.push({ id: `s${at}`, from: `${at - skip}`, to: `${at}`, width: 0 });
    const { boxes, width, height, edges: routes } = arranged({ id: "all", width: 10, height: 0, children, edges });
    assert.ok(width / height > 0.4, `${many} ${skip}: ${width} x ${height}`);
    assert.ok(Object.values(routes).every(({ points }) => points.flat().every(Number.isFinite)));
    const places = children.map(({ id }) => boxes[id]);
    places.forEach(([x, y, w, h], one) => places.slice(0, one).forEach(([ox, oy, ow, oh]) =>
      assert.ok(x >= ox + ow || ox >= x + w || y >= oy + oh || oy >= y + h)));
  }
});

test("names of repeated blocks", () => {
  assert.equal(common(["layers.0-Layer", "layers.11-Layer"]), "layers.*-Layer");
  assert.equal(common(["0", "1", "12"]), "*");
  assert.equal(common(["relu", "relu"]), "relu");
});

test("search finds by name and type, and no parameters", () => {
  assert.deepEqual(matches(step.operators, "net add"), [1]);
  assert.deepEqual(matches(step.operators, "weight"), []);
  assert.deepEqual(matches(step.operators, " "), []);
});

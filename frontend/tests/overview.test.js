// The health map without a browser: layers, pooling, the brush, and the three controls of a step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hit, layoutOf } from "../src/overview/drawing.js";
import { curvesOf, legendOf, openingView } from "../src/overview/map.js";
import { arranged, bucketOf, decodedHealth, decodedLogs, domainOf, labelsOf, layersOf, MEANT, NO_CELL, NOTHING, pooled, rangeOf, zoomed, rangeText, valueOf, worstOf, ZERO } from "../src/overview/model.js";
import { shade } from "../src/overview/palette.js";
import { choices, nearest, stepsOf } from "../src/overview/where.js";

const names = ["Default/a-Dense/x-op0", "Default/b-Dense/x-op1", "Default/a-Dense/y-op2", "Default/loss-op3", "Gradients/Default/b-Dense/x-op0", "Gradients/Default/a-Dense/x-op1"];
const frame = {
  ranks: [0], iterations: [0, 1, 2, 3], parts: ["forward", "backward"], statistics: ["l2"], first: null, outvoted: [],
  rows: { part: [0, 0, 0, 0, 1, 1], graph: [0, 0, 0, 0, 1, 1], name: names },
};
const random = (seed) => () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648; };

test("operators of a scope stand together, each scope where its first operator ran", () => {
  const { order, part } = arranged(frame);
  assert.deepEqual([...order].map((row) => names[row].split("/").at(-1)), ["x-op0", "y-op2", "x-op1", "loss-op3", "x-op0", "x-op1"]);
  assert.deepEqual([...part], [0, 0, 0, 0, 1, 1]);
});

test("layers cover all lines once, in order, and are as many as there is room for", () => {
  const next = random(7);
  for (let round = 0; round < 40; round += 1) {
    const rows = Array.from({ length: 5 + Math.floor(next() * 200) }, () => ({ part: Math.floor(next() * 3), name: ["Default", ...Array.from({ length: Math.floor(next() * 4) }, () => `s${Math.floor(next() * 4)}`), `op${Math.floor(next() * 1e6)}`].join("/") }));
    const some = { parts: ["forward", "backward", "optimizer"], rows: { part: rows.map(({ part }) => part), graph: rows.map(() => 0), name: rows.map(({ name }) => name) } };
    const arrangement = arranged(some);
    assert.deepEqual([...arrangement.order].sort((one, other) => one - other), rows.map((_, at) => at));
    const most = 4 + Math.floor(next() * 30);
    for (const isByOperator of [false, true]) {
      const layers = layersOf(arrangement, 0, rows.length, most, isByOperator);
      assert.equal(layers[0].from, 0);
      assert.equal(layers.at(-1).to, rows.length);
      layers.slice(1).forEach((layer, at) => assert.equal(layer.from, layers[at].to));
      layers.forEach(({ from, to, part }) => assert.ok(arrangement.part.slice(from, to).every((one) => one === part)));
      assert.ok(layers.length <= most + 3, `${layers.length} of ${most}`);
    }
  }
});

test("a pooled cell is the worst of all that it stands for", () => {
  const next = random(3);
  const arrangement = arranged(frame);
  for (let round = 0; round < 30; round += 1) {
    const width = 1 + Math.floor(next() * 30);
    const codes = Uint8Array.from({ length: 6 * width }, () => (next() < 0.2 ? NO_CELL : Math.floor(next() * 7)));
    const logs = Float32Array.from({ length: 6 * width }, () => [NaN, Infinity, -Infinity, next()][Math.floor(next() * 4)]);
    const first = Math.floor(next() * width);
    const end = first + 1 + Math.floor(next() * (width - first));
    const buckets = 1 + Math.floor(next() * (end - first));
    const layers = layersOf(arrangement, 0, 6, 3);
    const [health, values] = [pooled(codes, width, arrangement, layers, [first, end], buckets), pooled(logs, width, arrangement, layers, [first, end], buckets)];
    layers.forEach((layer, number) => {
      for (let bucket = 0; bucket < buckets; bucket += 1) {
        const range = bucketOf(bucket, buckets, first, end - first);
        assert.equal(health[number * buckets + bucket], worstOf(codes, width, arrangement, layer, range)?.value ?? NO_CELL);
        assert.equal(values[number * buckets + bucket], worstOf(logs, width, arrangement, layer, range)?.value ?? NaN);
      }
    });
  }
});

test("buckets share the columns", () => {
  for (const [columns, buckets] of [[10, 3], [7, 7], [1000, 720]]) {
    const ends = Array.from({ length: buckets }, (_, bucket) => bucketOf(bucket, buckets, 5, columns));
    assert.equal(ends[0][0], 5);
    assert.equal(ends.at(-1)[1], 5 + columns);
    ends.slice(1).forEach(([begin], at) => assert.equal(begin, ends[at][1]));
  }
});

test("cells come as digits and as logarithms", () => {
  assert.deepEqual([...decodedHealth("06.4")], [0, 6, NO_CELL, 4]);
  const bytes = Buffer.from(Float32Array.from([NaN, Infinity, -Infinity, 2]).buffer).toString("base64");
  assert.deepEqual([...decodedLogs(bytes)].map(valueOf), [null, "not finite", 0, 100]);
});

test("a range of values", () => {
  assert.deepEqual(domainOf([NaN, Infinity, -Infinity, 1, 3]), [1, 3]);
  assert.deepEqual(domainOf([2, 2]), [1.975, 2.025]);
  assert.equal(domainOf([NaN, -Infinity]), null);
});

test("a few extremes do not take the colours of all", () => {
  const values = Float32Array.from({ length: 100 }, (_, at) => (at === 0 ? -30 : at === 99 ? 30 : at / 100));
  const [low, high] = domainOf(values);
  assert.ok(low >= 0.01 && low < 0.1 && high > 0.9 && high < 1);
  const [, most] = domainOf(new Float32Array(1_000_000).fill(2));
  assert.ok(most < 2.1);
});

test("each colour of a map has its entry in the legend", () => {
  const health = Uint8Array.from([0, 1, 2, 3, 4, 5, 6, NO_CELL]);
  const whole = ["not finite made here", "not finite came in", "differs", "suspicious", "ok", "not written yet", "not measured"];
  assert.deepEqual(legendOf("health", health, null), whole);
  const finite = Float32Array.from({ length: 8 }, () => 1);
  assert.deepEqual(legendOf("l2", health, finite), whole.slice(0, 2)); // their signs stand on the scale
  assert.deepEqual(legendOf("l2", health, Float32Array.from([1, 1, Infinity, Infinity, Infinity, NaN, -Infinity, Infinity])), [...whole.slice(0, 4), NOTHING, ZERO, MEANT]);
});

test("an operator stands with its module, and as a whole where another one is called alike", () => {
  const name = ["Default/0-Linear/mm-op0", "Default/2-Sequential/0-Linear/t-op1", "Default/3-Sequential/0-Linear/t-op1", "Default/loss-op2", "Gradients/Default/loss-op2", "/blocks.0/fc/MatMul", "/blocks.1/fc/MatMul"];
  const some = { parts: ["forward", "backward"], rows: { name, part: [0, 0, 0, 0, 1, 1, 1], graph: name.map(() => 0) } };
  const arrangement = arranged(some);
  const labels = labelsOf(layersOf(arrangement, 0, name.length, 40), some, arrangement);
  assert.deepEqual(labels, ["0-Linear/mm-op0", name[1], name[2], "loss-op2", "loss-op2", name[5], name[6]]);
  const layers = [{ from: 1, to: 2, part: 0, path: ["Default", "2-Sequential", "0-Linear"], shared: 1, isOperator: false }];
  assert.deepEqual(labelsOf(layers, some, arrangement), ["2-Sequential/0-Linear"]);
});

test("a range in the address", () => {
  assert.deepEqual([rangeOf("2-4", 10), rangeOf("", 10), rangeOf("4-2", 10), rangeOf("2-40", 10), rangeOf("x", 3)], [[2, 5], [0, 10], [0, 10], [0, 10], [0, 3]]);
  assert.deepEqual([rangeText([2, 5], 10), rangeText([0, 10], 10)], ["2-4", ""]);
  assert.deepEqual(rangeOf(rangeText([2, 5], 10), 10), [2, 5]);
});

test("what is at a point is what was drawn there", () => {
  const layers = layersOf(arranged(frame), 0, 6, 40);
  const at = layoutOf({ width: 900, frame, layers, range: [0, 4], curves: curvesOf({ loss: null, gradient_norm: null, largest: [1, 2, 3, 4] }) });
  at.placed.forEach(({ y, height }, row) => {
    for (let bucket = 0; bucket < 4; bucket += 1) {
      assert.deepEqual(hit(at, at.left + ((bucket + 0.5) * at.plot) / 4, y + height / 2), { kind: "cell", row, bucket });
    }
    assert.deepEqual(hit(at, 5, y + height / 2), { kind: "layer", row });
  });
  assert.equal(hit(at, at.left + 5, 10).kind, "curve");
});

test("the map opens with the outvoted rank, and with a picture where nothing is wrong", () => {
  assert.deepEqual(openingView(frame), { rank: 0, by: "l2" });
  assert.deepEqual(openingView({ ...frame, first: [0, 2, 1] }), { rank: 0, by: "health" });
  assert.deepEqual(openingView({ ...frame, ranks: [0, 1, 2], first: [1, 0, 0], outvoted: [[1, 0, 1], [2, 0, 3], [2, 1, 3]] }), { rank: 2, by: "health" });
});

test("shades go from dark to light", () => {
  const lightness = (share) => { const [red, green, blue] = shade(share); return 0.2126 * red + 0.7152 * green + 0.0722 * blue; };
  for (let share = 0; share < 1; share += 0.05) assert.ok(lightness(share) < lightness(share + 0.05));
  assert.deepEqual([shade(-1), shade(2)], [shade(0), shade(1)]);
});

const steps = stepsOf({ steps: { rank: [0, 0, 0, 1, 1], graph: [0, 0, 1, 0, 0], iteration: [0, 4, 4, 0, 4], part: ["forward", "forward", "backward", "forward", "forward"], health: ["ok", "ok", "ok", "ok", "ok"] } });

test("three controls offer what is there", () => {
  const { ranks, graphs, iterations } = choices(steps, ["0", "0", "4"]);
  assert.deepEqual([ranks, graphs.map(({ part }) => part), iterations], [["0", "1"], ["forward", "backward"], ["0", "4"]]);
});

test("a step that is not there leads to the nearest one", () => {
  assert.deepEqual(nearest(steps, ["0", "1", "0"]), ["0", "1", "4"]);
  assert.deepEqual(nearest(steps, ["1", "1", "4"]), ["1", "0", "4"]);
  assert.deepEqual(nearest(steps, ["0", "0", "3"]), ["0", "0", "4"]);
  assert.equal(nearest([], ["0", "0", "0"]), undefined);
});

test("a wheel zooms a range around the pointer and never leaves it", () => {
  assert.deepEqual(zoomed([0, 10], 9.5, 0.5, 10), [5, 10]);
  assert.deepEqual(zoomed([0, 10], null, 0.5, 10), [0, 10]);
  assert.deepEqual(zoomed([4, 5], 4.5, 0.8, 10), [4, 5]);
  assert.deepEqual(zoomed([4, 5], 4.5, 1.25, 10), [4, 6]);
  assert.deepEqual(zoomed([0, 10], 3, 1.25, 10), [0, 10]);
  for (let from = 0; from < 20; from += 3) {
    for (const factor of [0.1, 0.8, 1.25, 7]) {
      const [first, last] = zoomed([from, from + 9], from + 2.5, factor, 30);
      assert.ok(first >= 0 && last <= 30 && last > first);
      if (first > 0 && last < 30) assert.ok(first <= from + 3 && from + 2 <= last);
    }
  }
});

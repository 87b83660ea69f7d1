// Where boxes within boxes stand: each open scope is laid out by itself, from the innermost on.
import dagre from "@dagrejs/dagre";
import { inColumns } from "./columns.js";

export const HEAD = 26; // px of an open scope's title
const PAD = 14;
const GAP = 26; // between parts of a level that nothing connects
const STUB = 14; // of what leads out of a level
const MAX_LABELS = 60; // that a level has room for
const SLOW = 800; // boxes, and rows that edges pass, that take dagre longer than anybody waits
const WIDE = 3; // width over height of what is packed: most graphs are tall enough

/**
 * box: {id, width, height, children, edges: [{id, from, to, width}], isOrdered}; an open one has children, and its size
 * comes from them below `height`, that of its title; `from` "in" and `to` "out" are what lies outside; `width` of an edge is that of its text.
 * Returns {boxes: {id: [x, y, width, height]}, edges: {id: {points, label}}, width, height}; x, y are the upper left.
 */
export function arranged(box, memory = new Map()) {
  const boxes = {};
  const edges = {};
  const place = (one, layout, left, top) => {
    boxes[one.id] = [left, top, layout.width, layout.height];
    for (const [id, points, label] of layout.edges) {
      edges[id] = { points: points.map(([x, y]) => [x + left, y + top]), label: label === null ? null : [label[0] + left, label[1] + top] };
    }
    one.children?.forEach((child, at) => place(child, layout.inner[at], left + layout.at[at][0], top + layout.at[at][1]));
  };
  const whole = sized(box, memory);
  place(box, whole, 0, 0);
  return { boxes, edges, width: whole.width, height: whole.height };
}

function sized(box, memory) {
  if (!box.children || box.children.length === 0) return { width: box.width, height: box.height, edges: [], inner: [], at: [] };
  const inner = box.children.map((child) => sized(child, memory));
  const key = JSON.stringify([box.id, box.width, box.height, box.isOrdered, inner.map(({ width, height }, at) => [box.children[at].id, width, height]), box.edges]);
  if (!memory.has(key)) memory.set(key, level(box, inner));
  return { ...memory.get(key), inner };
}

/** One level: parts that are connected by dagre, those and what stands alone beside each other. */
function level(box, inner) {
  const numbers = new Map(box.children.map(({ id }, at) => [id, at]));
  const parts = connected(box, numbers);
  const laid = parts.map((part) => (cost(part, numbers) > SLOW ? byRank : byDagre)(part, inner, numbers)).map((one) => inColumns(one, inner));
  const area = laid.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0);
  const limit = Math.max(...laid.map(({ width }) => width), Math.sqrt(area * WIDE), box.width - 2 * PAD);
  const at = new Array(inner.length);
  const edges = [];
  let [x, y, row, width] = [0, 0, 0, 0];
  for (const one of laid) {
    if (x > 0 && x + one.width > limit) [x, y, row] = [0, y + row + GAP, 0];
    const [left, top] = [PAD + x, box.height + PAD + y];
    for (const [number, cx, cy] of one.at) at[number] = [left + cx, top + cy];
    for (const [id, points, label] of one.edges) {
      edges.push([id, points.map(([px, py]) => [px + left, py + top]), label === null ? null : [label[0] + left, label[1] + top]]);
    }
    x += one.width + GAP;
    width = Math.max(width, x - GAP);
    row = Math.max(row, one.height);
  }
  for (const { id, from, to } of box.edges) {
    if (numbers.has(from) && numbers.has(to)) continue;
    const one = numbers.get(from) ?? numbers.get(to);
    const [[x0, y0], size] = [at[one], inner[one]];
    edges.push(numbers.has(to) ? [id, [[x0 + 14, y0 - STUB], [x0 + 14, y0]], null]
      : [id, [[x0 + size.width - 14, y0 + size.height], [x0 + size.width - 14, y0 + size.height + STUB]], null]);
  }
  if (box.isOrdered) for (let one = 1; one < inner.length; one += 1) edges.push([`${box.id}\n>${one}`, between(at, inner, one), null]);
  return { width: Math.max(box.width, width + 2 * PAD), height: box.height + 2 * PAD + y + row, at, edges };
}

/** From one box to the next, where only the order is known. */
function between(at, inner, one) {
  const [[x, y], [nextX, nextY]] = [at[one - 1], at[one]];
  const [size, nextSize] = [inner[one - 1], inner[one]];
  if (nextX > x) return [[x + size.width, y + size.height / 2], [nextX, nextY + nextSize.height / 2]];
  const middle = nextY - GAP / 2;
  return [[x + size.width / 2, y + size.height], [x + size.width / 2, middle], [nextX + nextSize.width / 2, middle], [nextX + nextSize.width / 2, nextY]];
}

function connected({ children, edges }, numbers) {
  const roots = children.map((_, at) => at);
  const root = (at) => {
    while (roots[at] !== at) at = roots[at] = roots[roots[at]];
    return at;
  };
  const isIn = (edge) => !numbers.has(edge.from);
  const isOut = (edge) => !numbers.has(edge.to);
  const inside = edges.filter((edge) => !isIn(edge) && !isOut(edge));
  for (const edge of inside) {
    const [one, other] = [root(numbers.get(edge.from)), root(numbers.get(edge.to))];
    roots[Math.max(one, other)] = Math.min(one, other);
  }
  const parts = new Map();
  children.forEach((_, at) => {
    if (!parts.has(root(at))) parts.set(root(at), { nodes: [], edges: [] });
    parts.get(root(at)).nodes.push(at);
  });
  for (const edge of inside) parts.get(root(numbers.get(edge.from))).edges.push(edge);
  return [...parts.values()];
}

function byDagre({ nodes, edges }, inner, numbers) {
  if (edges.length === 0 && nodes.length === 1) return { width: inner[nodes[0]].width, height: inner[nodes[0]].height, at: [[nodes[0], 0, 0]], edges: [] };
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: edges.length > MAX_LABELS ? 36 : 18, edgesep: 12 });
  for (const at of nodes) graph.setNode(String(at), { width: inner[at].width, height: inner[at].height });
  const end = (id) => String(numbers.get(id));
  for (const { id, from, to, width } of edges) {
    const text = width > 0 && edges.length <= MAX_LABELS ? { width, height: 14, labelpos: "c" } : {};
    graph.setEdge(end(from), end(to), text, id);
  }
  dagre.layout(graph);
  const place = (at) => {
    const { x, y, width, height } = graph.node(String(at));
    return [at, x - width / 2, y - height / 2];
  };
  return framed({
    at: nodes.map(place),
    edges: edges.map(({ id, from, to }) => {
      const { points, x, y } = graph.edge(end(from), end(to), id);
      return [id, points.map((point) => [point.x, point.y]), x === undefined ? null : [x, y]];
    }),
  }, inner);
}

/** With a width and a height: dagre's leave out edges that run around all boxes. */
function framed({ at, edges }, inner) {
  const xs = [...at.flatMap(([number, x]) => [x, x + inner[number].width]), ...edges.flatMap(([, points]) => points.map(([x]) => x))];
  const ys = [...at.flatMap(([number, , y]) => [y, y + inner[number].height]), ...edges.flatMap(([, points]) => points.map(([, y]) => y))];
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  return {
    width: Math.max(...xs) - left,
    height: Math.max(...ys) - top,
    at: at.map(([number, x, y]) => [number, x - left, y - top]),
    edges: edges.map(([id, points, label]) => [id, points.map(([x, y]) => [x - left, y - top]), label === null ? null : [label[0] - left, label[1] - top]]),
  };
}

/** Each box one row below the last one that it reads: {ranks, into: box -> those that it reads}. */
function ranksOf({ nodes, edges }, numbers) {
  const ranks = new Map();
  const into = new Map(nodes.map((at) => [at, []]));
  for (const { from, to } of edges) {
    const [one, other] = [numbers.get(from), numbers.get(to)];
    if (one < other) into.get(other).push(one);
  }
  for (const at of nodes) ranks.set(at, Math.max(0, ...into.get(at).map((one) => ranks.get(one) + 1)));
  return { ranks, into };
}

/** What dagre has to place: it puts something into each row that an edge passes. */
function cost({ nodes, edges }, numbers) {
  const { ranks } = ranksOf({ nodes, edges }, numbers);
  const rank = (id) => ranks.get(numbers.get(id));
  return edges.reduce((sum, { from, to }) => sum + Math.abs(rank(to) - rank(from)), nodes.length);
}

/** For what dagre is too slow for: each box one row below the last one that it reads, what it reads above it. */
function byRank({ nodes, edges }, inner, numbers) {
  const { ranks, into } = ranksOf({ nodes, edges }, numbers);
  const rows = [];
  for (const at of nodes) (rows[ranks.get(at)] ??= []).push(at);
  const places = new Map();
  const middle = (at) => {
    const makers = into.get(at).map((one) => places.get(one)).filter((one) => one !== undefined);
    return makers.length === 0 ? 0 : makers.reduce((sum, [x, , size]) => sum + x + size.width / 2, 0) / makers.length;
  };
  const widest = Math.max(...rows.map((row) => row.reduce((sum, at) => sum + inner[at].width + 22, -22)));
  let y = 0;
  for (const row of rows) {
    row.sort((one, other) => middle(one) - middle(other) || one - other);
    let x = (widest - row.reduce((sum, at) => sum + inner[at].width + 22, -22)) / 2;
    for (const at of row) {
      places.set(at, [x, y, inner[at]]);
      x += inner[at].width + 22;
    }
    y += Math.max(...row.map((at) => inner[at].height)) + 46;
  }
  const top = ([x, edge, size]) => [x + size.width / 2, edge];
  const bottom = ([x, edge, size]) => [x + size.width / 2, edge + size.height];
  return {
    width: widest,
    height: y - 46,
    at: nodes.map((at) => [at, places.get(at)[0], places.get(at)[1]]),
    edges: edges.map(({ id, from, to }) => {
      const [one, other] = [places.get(numbers.get(from)), places.get(numbers.get(to))];
      return [id, [bottom(one), top(other)], null];
    }),
  };
}

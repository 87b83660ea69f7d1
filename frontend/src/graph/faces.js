// What stands on a box: its lines of text, its statistic, and how large that makes it.
import { number } from "../format.js";
import { count, isBad, marks } from "../view.js";
import { firstOutput } from "./flow.js";
import { HEAD } from "./arrange.js";
import { edgeText, tensorText } from "./levels.js";

export const [LETTER, SMALL] = [8.1, 6.9]; // px of a letter, of titles and of other lines
const [LEAST, MOST, LINES, CLOSED] = [104, 330, 56, 62];
const healths = Object.keys(marks);

// Name -> what it is of one tensor, and how several make one.
const largest = (one, other) => Math.max(one, other);
export const statistics = {
  max: { title: "largest", of: ({ max, min, nan }, at) => (max[at] === null ? (nan[at] > 0 ? NaN : null) : largest(Math.abs(value(max[at])), Math.abs(value(min[at])))), join: worse },
  l2norm: { title: "L2", of: ({ l2norm }, at) => value(l2norm[at]), join: worse },
  nan: { title: "NaN", of: ({ nan }, at) => value(nan[at]), join: (one, other) => one + other },
  inf: { title: "Inf", of: ({ positive_inf: above, negative_inf: below }, at) => (above[at] === null ? null : value(above[at]) + value(below[at] ?? 0)), join: (one, other) => one + other },
  zero: { title: "zeros, %", of: ({ zero, count: all }, at) => (zero[at] === null || !all[at] ? null : (100 * zero[at]) / all[at]), join: worse },
  error: { title: "error", of: ({ error }, at) => value(error[at]), join: worse },
};

/** NaN is worse than any number. */
function worse(one, other) {
  return Number.isNaN(one) || Number.isNaN(other) ? NaN : largest(one, other);
}

const value = (text) => (text === null || text === undefined ? null : typeof text === "string" ? { nan: NaN, inf: Infinity, "-inf": -Infinity }[text] : text);

/** Statistics that a step has numbers for. */
export const known = ({ tensors }) => Object.keys(statistics).filter((name) => tensors[name === "inf" ? "positive_inf" : name].some((one) => one !== null));

/** The value of a statistic of each node by its id, of outputs where there are some; {of: Map, least, most}. */
export function measured(root, { operators, tensors }, name) {
  const { of, join } = statistics[name];
  const found = new Map();
  const joined = (values) => values.filter((one) => one !== null).reduce((one, other) => (one === null ? other : join(one, other)), null);
  let [least, most] = [Infinity, -Infinity];
  const visit = (at) => {
    let result;
    if (at.kind === "operator") {
      const [index] = at.operators;
      const end = operators.first[index + 1] ?? count(tensors);
      const [own, outputs] = [[], []];
      for (let row = operators.first[index]; row < end; row += 1) (tensors.io[row] === "output" ? outputs : own).push(of(tensors, row));
      result = joined(outputs.length > 0 ? outputs : own);
      if (result !== null && Number.isFinite(result) && result > 0) [least, most] = [Math.min(least, result), largest(most, result)];
    } else result = joined(at.children.map(visit));
    found.set(at.id, result);
    return result;
  };
  visit(root);
  return { name, of: found, least, most };
}

/** The golden side of a step's tensors in the same columns: those of an identical tensor are mine. */
export function goldenTensors(mine, golden) {
  const named = Object.keys(golden).filter((name) => name in mine && Array.isArray(mine[name]));
  return { ...mine, ...Object.fromEntries(named.map((name) => [name, golden[name].map((one, at) => (golden.status[at] === "identical" ? mine[name][at] : one))])) };
}

/** Where a value stands between the least and the largest one of a graph, from 0 to 1, on a logarithmic scale. */
export function share(statistic, result) {
  if (statistic === null || result === null || result === 0) return 0;
  const { least, most } = statistic;
  if (!Number.isFinite(result)) return 1;
  if (most <= least) return 0.5;
  return Math.min(1, Math.max(0.04, (Math.log(result) - Math.log(least)) / (Math.log(most) - Math.log(least))));
}

const shortened = (text, letters) => (text.length > letters ? `…${text.slice(1 - letters)}` : text);
const readable = (label) => label.replace(/^aten\./, "").replace(/\.default(?=-op[0-9]+$|$)/, "");

/** Whether all that is in a node is alike: it has a cell for each. */
export const isAlike = (at) => at.kind === "repeat" || (at.alike !== undefined && at.kind !== "operator");

/** {title, lines: [text], value, shown, right, width, height}: what a node in sight shows; right is the golden dump's side. */
function face({ at, isOpen }, step, { statistic, other, pairs, ghosts, say }) {
  if (at.kind === "ghost") {
    const [title, line] = [shortened(readable(at.label), 34), say("only in golden")];
    return { title, lines: [line, ""], value: null, shown: "", right: null, width: Math.max(LEAST, title.length * LETTER + 20, line.length * SMALL + 20), height: LINES };
  }
  const result = statistic === null ? null : statistic.of.get(at.id) ?? null;
  const shown = result === null ? "" : `${say(statistics[statistic.name].title)} ${figure(result)}`;
  const bad = at.counts.reduce((sum, some, rank) => sum + (isBad(healths[rank]) ? some : 0), 0);
  // What has no letters of its own is told by what it is in.
  const label = /\p{L}/u.test(at.label) || !at.parent?.label ? at.label : `${at.parent.label}/${at.label}`;
  const title = `${isBad(at.health) ? `${marks[at.health][1]} ` : ""}${shortened(readable(label || "/"), 34)}${isAlike(at) ? ` × ${at.children.length}` : ""}`;
  const lines = [];
  if (at.kind === "operator") {
    const [index] = at.operators;
    const row = firstOutput(step, index);
    const type = shortened(readable(step.operators.type[index]).replace(/^aten_/, "").replace(/_default$/, ""), 26);
    const isSaid = title.replace(/[^a-z0-9]/gi, "").toLowerCase().includes(type.replace(/[^a-z0-9]/gi, "").toLowerCase());
    lines.push(row === null ? "" : tensorText(step.tensors, row), isSaid ? "" : type);
  } else lines.push(`${at.operators.length} ${say("operators")}${bad > 0 ? `, ${bad} ${say("not well")}` : ""}`, ghosts?.counts.has(at.id) ? `+ ${ghosts.counts.get(at.id)} ${say("only in golden")}` : "");
  const golden = other?.of.get(at.id) ?? null;
  const right = pairs === null ? null : [...pairText(pairs, at, say), golden === null ? "" : figure(golden)];
  const widest = Math.max((title.length + (at.kind === "operator" ? 0 : 2)) * LETTER, lines[0].length * SMALL, (lines[1].length + shown.length + 2) * SMALL);
  const width = Math.min(MOST, Math.max(LEAST, Math.ceil(widest) + 20)) + (right === null ? 0 : sideOf(right));
  return { title, lines, value: result, shown, right, width, height: isOpen ? (at.parent === null ? 0 : HEAD) : at.kind === "operator" ? LINES : CLOSED };
}

const figure = (result) => (Number.isInteger(result) ? String(result) : number(Number.isFinite(result) ? result : Number.isNaN(result) ? "NaN" : "inf"));

/** Operator -> how it fares against the golden dump: {status, error, golden}. */
export function pairsOf(compare) {
  const pairs = new Map();
  const { operator, status, error, golden } = compare.tensors;
  const order = ["differs", "not compared", "agrees", "identical"];
  for (let at = 0; at < operator.length; at += 1) {
    if (operator[at] === null) continue;
    const before = pairs.get(operator[at]);
    const own = value(error[at]);
    if (before === undefined) pairs.set(operator[at], { status: status[at], error: own, golden: golden[at] });
    else {
      if (order.indexOf(status[at]) < order.indexOf(before.status)) before.status = status[at];
      before.error = before.error === null ? own : own === null ? before.error : worse(before.error, own);
    }
  }
  return pairs;
}

/** How the pairs of a node fare: {differs, agrees, missing, error}. */
export function paired(pairs, at) {
  const sum = { differs: 0, agrees: 0, unknown: 0, missing: 0, error: null };
  for (const index of at.operators) {
    const pair = pairs.get(index);
    if (pair === undefined) sum.missing += 1;
    else if (pair.status === "differs") sum.differs += 1;
    else if (pair.status === "not compared") sum.unknown += 1;
    else sum.agrees += 1;
    if (pair !== undefined && pair.error !== null) sum.error = sum.error === null ? pair.error : worse(sum.error, pair.error);
  }
  return sum;
}

/** The side of the golden dump on a box: a sign, and a number or a word. */
function pairText(pairs, at, say) {
  const { differs, missing, agrees, error } = paired(pairs, at);
  if (missing === at.operators.length) return ["–", say("no partner")];
  if (differs === 0 && agrees === 0) return ["–", say("not compared")];
  return [differs > 0 ? "≠" : error === 0 || error === null ? "=" : "≈", error === null || error === 0 ? "" : number(error === Infinity ? "inf" : error)];
}

/** Width of that side. */
export const sideOf = (right) => Math.max(36, Math.max(right[1].length, right[2].length) * SMALL + 14);

/** Boxes for `arranged`, with what stands at edges and on boxes: {box, faces: id -> face, texts: edge -> text}. */
export function boxesOf(sight, step, { statistic, other = null, pairs, ghosts = null, say, isOrdered }) {
  const [faces, texts] = [new Map(), new Map()];
  const visit = (one) => {
    const own = face(one, step, { statistic, other, pairs, ghosts, say });
    faces.set(one.at.id, { ...one, ...own });
    for (const edge of one.edges) texts.set(edge.id, ["in", "out"].includes(edge.from) || edge.to === "out" ? "" : edgeText(edge, step.tensors, say));
    return {
      id: one.at.id,
      width: own.width,
      height: own.height,
      isOrdered: isOrdered && one.isOpen,
      children: one.children.map(visit),
      edges: one.isOpen ? one.edges.map(({ id, from, to }) => ({ id, from, to, width: texts.get(id).length * 6 + (texts.get(id) === "" ? 0 : 10) })) : [],
    };
  };
  return { box: visit(sight), faces, texts };
}

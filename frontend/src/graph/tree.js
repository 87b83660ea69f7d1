// Operators by their scopes: a tree whose levels are short enough to be drawn.
//
// A node is {id, kind, label, parent, children, operators, counts, health}; kind is "operator", "scope", "repeat" (alike
// parts that follow each other) or "part" (one of these, or some of too many). `operators` are numbers, in order; `alike` is
// what the children of a scope have in common where all of them are alike.
import { count, marks } from "../view.js";

export const MAX_BOXES = 150;
const MAX_PARTS = 100;
const LEAST_ALIKE = 3; // that become one
const LEAST_HIDDEN = 8; // operators that they save from sight, where they are no scopes
const LONGEST = 24; // operators that repeat together
const healths = Object.keys(marks);

/** The tree of a step's operators but for hidden ones; {root, leaves: operator -> its node}. */
export function treeOf({ operators, tensors }, hidden = new Set()) {
  const root = node("scope", "", "", null);
  const leaves = new Map();
  for (let index = 0; index < count(operators); index += 1) {
    if (hidden.has(index)) continue;
    const parts = pathOf(operators, index);
    let at = root;
    for (const part of parts.slice(0, -1)) {
      at.scopes ??= new Map();
      if (!at.scopes.has(part)) {
        const scope = node("scope", `${at.id}/${part}`, part, at);
        at.scopes.set(part, scope);
        at.children.push(scope);
      }
      at = at.scopes.get(part);
    }
    const leaf = node("operator", `${at.id}/#${index}`, parts.at(-1) ?? operators.type[index], at);
    leaf.operators = [index];
    leaf.type = operators.type[index];
    leaf.ends = [leaves.size, leaves.size];
    at.children.push(leaf);
    leaves.set(index, leaf);
  }
  delete root.scopes;
  filled(root);
  const parameterOf = parameters({ operators, tensors });
  arranged(root, parameterOf);
  summed(root, operators);
  return { root: first(root), leaves };
}

/** Scopes of an operator and its name; where the name has no scopes, the modules around it. */
function pathOf({ name, scope }, index) {
  const parts = name[index].split("/").filter(Boolean);
  return parts.length === 1 && scope?.[index] ? [...scope[index].split(".").filter(Boolean), parts[0]] : parts;
}

/** The first level of more than one box: names of most dumps begin with the same scopes. */
function first(root) {
  let at = root;
  while (at.children.length === 1 && at.children[0].kind === "scope") [at] = at.children;
  at.parent = null;
  return at;
}

// ends: places of its first and its last operator among those that are shown
const node = (kind, id, label, parent) => ({ kind, id, label, parent, children: [], operators: [], ends: [0, 0] });

function adopt(parent, children) {
  for (const child of children) child.parent = parent;
  parent.children = children;
  parent.ends = [children[0]?.ends[0] ?? 0, children.reduce((last, { ends }) => Math.max(last, ends[1]), 0)];
  return parent;
}

/** Operators of all scopes, in order. */
function filled(at) {
  if (at.kind === "operator") return at.operators;
  at.operators = at.children.flatMap(filled).sort((one, other) => one - other);
  adopt(at, at.children);
  return at.operators;
}

/** Levels from the leaves up: scopes of one operator are it, alike neighbours become one, long levels are cut. */
function arranged(at, parameterOf) {
  if (at.kind === "operator") {
    at.shape = at.type;
    return;
  }
  delete at.scopes;
  for (const child of at.children) arranged(child, parameterOf);
  adopt(at, at.children.flatMap(calls).map(alone));
  at.children.sort((one, other) => one.operators[0] - other.operators[0]);
  at.shape = `(${at.children.map(({ shape }) => shape).join(" ")})`;
  if (at.shape.length > 400) at.shape = `${at.shape.length}:${hashed(at.shape)}`;
  adopt(at, repeated(at, parameterOf));
  cut(at);
}

/** A module that was called several times, each time alike, is one scope for each call. */
function calls(scope) {
  if (scope.kind !== "scope" || scope.children.length < 2) return [scope];
  const runs = [];
  for (const child of scope.children) {
    const before = runs.at(-1)?.at(-1)?.ends[1];
    if (before !== undefined && child.ends[0] === before + 1) runs.at(-1).push(child);
    else runs.push([child]);
  }
  const shapes = new Set(runs.map((run) => run.map(({ shape }) => shape).join(" ")));
  if (runs.length < 2 || shapes.size > 1) return [scope];
  return runs.map((run, place) => {
    const one = adopt(node("scope", `${scope.id}@${place}`, scope.label, scope.parent), run);
    one.shape = `(${run.map(({ shape }) => shape).join(" ")})`;
    one.operators = run.flatMap(({ operators }) => operators);
    return one;
  });
}

/** A scope that holds one operator is that operator, under the name of the scope. */
function alone(scope) {
  if (scope.kind !== "scope" || scope.children.length !== 1 || scope.children[0].kind !== "operator") return scope;
  const [leaf] = scope.children;
  leaf.label = scope.label;
  leaf.within = scope.label;
  leaf.shape = `(${leaf.shape})`;
  return leaf;
}

const pattern = (label) => label.replace(/[0-9]+/g, "#");

/** Neighbours that are alike, alone or several together, become one node. */
function repeated(at, parameterOf) {
  const all = at.children;
  const signs = all.map(({ kind, label, shape, within }) => (kind === "operator" && within === undefined ? shape : `${pattern(label)}${shape}`));
  const children = [];
  for (let place = 0; place < all.length;) {
    const [period, times] = alike(signs, place, all);
    if (times === 0) {
      children.push(all[place]);
      place += 1;
      continue;
    }
    const group = node("repeat", `${at.id}/~${all[place].operators[0]}`, "", at);
    const ones = Array.from({ length: times }, (_, time) => {
      const some = all.slice(place + time * period, place + (time + 1) * period);
      return period === 1 ? some[0] : together(`${group.id}.${time}`, some, parameterOf);
    });
    adopt(group, ones);
    group.operators = ones.flatMap(({ operators }) => operators);
    group.label = common(ones.map(({ label }) => label));
    children.push(group);
    place += period * times;
  }
  if (children.length !== 1 || children[0].kind !== "repeat") return children;
  at.alike = children[0].label; // all of a level is the level
  return children[0].children;
}

/** [how many repeat together, how often] from a place on; [0, 0] where nothing does. */
function alike(signs, place, all) {
  for (let period = 1; period <= Math.min(LONGEST, (signs.length - place) / LEAST_ALIKE); period += 1) {
    let end = place + period;
    while (end < signs.length && signs[end] === signs[end - period]) end += 1;
    const times = Math.floor((end - place) / period);
    const isWorth = all[place].kind !== "operator" || all[place].within !== undefined || period * (times - 1) >= LEAST_HIDDEN;
    if (times >= LEAST_ALIKE && isWorth) return [period, times];
  }
  return [0, 0];
}

function together(id, some, parameterOf) {
  const part = adopt(node("part", id, "", null), some);
  part.operators = some.flatMap(({ operators }) => operators);
  part.shape = some.map(({ shape }) => shape).join(" ");
  const parameter = part.operators.map(parameterOf).find((name) => name !== null);
  part.label = parameter ?? `${some[0].label} … ${some.at(-1).label}`;
  return part;
}

/** Names with their differences left out: layers.0-Layer, layers.1-Layer -> layers.*-Layer. */
export function common(labels) {
  const [first] = labels;
  const shortest = Math.min(...labels.map(({ length }) => length));
  let begin = 0;
  while (begin < shortest && labels.every((label) => label[begin] === first[begin])) begin += 1;
  if (labels.every((label) => label === first)) return first;
  while (begin > 0 && /[0-9]/.test(first[begin - 1])) begin -= 1; // numbers differ as a whole
  let end = 0;
  while (end < shortest - begin && labels.every((label) => label.at(-1 - end) === first.at(-1 - end))) end += 1;
  while (end > 0 && /[0-9]/.test(first.at(-end))) end -= 1;
  return `${first.slice(0, begin)}*${end > 0 ? first.slice(-end) : ""}`;
}

/** A level of too many boxes: neighbours share one. */
function cut(at) {
  const all = at.children;
  if (all.length <= MAX_BOXES) return;
  const size = Math.ceil(all.length / Math.min(MAX_PARTS, Math.ceil(Math.sqrt(all.length))));
  const parts = [];
  for (let place = 0; place < all.length; place += size) {
    const some = all.slice(place, place + size);
    const part = adopt(node("part", `${at.id}/=${some[0].operators[0]}`, `${some[0].label} … ${some.at(-1).label}`, at), some);
    part.operators = some.flatMap(({ operators }) => operators).sort((one, other) => one - other);
    part.shape = "part";
    cut(part);
    parts.push(part);
  }
  adopt(at, parts);
}

/** Operator -> name of a parameter that it reads, or makes the gradient of; null without one. */
function parameters({ operators, tensors }) {
  return (index) => {
    const end = operators.first[index + 1] ?? count(tensors);
    for (let at = operators.first[index]; at < end; at += 1) {
      const name = tensors.parameter?.[at] ?? null;
      if (name !== null && !/^(value [0-9]+|self|end|other)(_[0-9]+)?$/.test(name)) return name;
    }
    return null;
  };
}

/** How many operators of each health a node has, and the worst of them. */
function summed(at, operators) {
  if (at.kind === "operator") at.counts = healths.map((name) => Number(operators.health[at.operators[0]] === name));
  else {
    for (const child of at.children) summed(child, operators);
    at.counts = healths.map((_, rank) => at.children.reduce((sum, child) => sum + child.counts[rank], 0));
  }
  at.health = healths[at.counts.findIndex((some) => some > 0)] ?? "not measured";
}

function hashed(text) {
  let [one, other] = [0x811c9dc5, 0x1000193];
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    other = Math.imul(other + text.charCodeAt(at), 0x85ebca6b) ^ (other >>> 13);
  }
  return `${(one >>> 0).toString(36)}${(other >>> 0).toString(36)}`;
}

/** A node and those around it, the outermost first. */
export function pathTo(at) {
  const path = [];
  for (let one = at; one !== null; one = one.parent) path.unshift(one);
  return path;
}

/** All nodes by their ids. */
export function byId(root) {
  const found = new Map();
  const visit = (at) => {
    found.set(at.id, at);
    at.children.forEach(visit);
  };
  visit(root);
  return found;
}

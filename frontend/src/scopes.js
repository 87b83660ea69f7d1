// Operators by their scopes: one level of the tree as boxes, and what flows between them.
import { count, marks } from "./view.js";

export const MAX_BOXES = 150;
const ranks = Object.keys(marks);

/**
 * The boxes of one level: scopes and operators that begin with `prefix` (parts of a name), edges between them, and how many
 * tensors come from outside and go there. {boxes: [{id, label, scope, operators: [number], counts, health}], edges, left_out}
 */
export function level({ operators, tensors }, prefix) {
  const of = new Array(count(operators)).fill(null);
  const boxes = new Map();
  const depth = prefix.length;
  for (let index = 0; index < count(operators); index += 1) {
    if (operators.is_parameter[index]) continue; // nothing flows into them, and they are many
    const parts = operators.name[index].split("/");
    if (parts.length <= depth || prefix.some((part, at) => parts[at] !== part)) continue;
    const isScope = parts.length > depth + 1;
    add(boxes, of, index, isScope ? `scope ${parts[depth]}` : `operator ${index}`, parts[depth], isScope ? [...prefix, parts[depth]] : null);
  }
  if (boxes.size > MAX_BOXES) merge(boxes, of, operators);
  const leftOut = Math.max(0, boxes.size - MAX_BOXES);
  const kept = new Map([...boxes].slice(0, MAX_BOXES));
  for (const box of kept.values()) {
    box.counts = ranks.map((name) => box.operators.filter((index) => operators.health[index] === name).length);
    box.health = ranks[box.counts.findIndex((some) => some > 0)];
  }
  return { boxes: [...kept.values()], edges: edgesBetween({ operators, tensors }, of, kept), leftOut };
}

function add(boxes, of, index, id, label, scope) {
  if (!boxes.has(id)) boxes.set(id, { id, label, scope, operators: [] });
  boxes.get(id).operators.push(index);
  of[index] = id;
}

/** Operators of one type become one box, where there are too many boxes. */
function merge(boxes, of, operators) {
  const single = [...boxes.values()].filter(({ scope }) => scope === null);
  for (const { id, operators: [index] } of single) {
    boxes.delete(id);
    add(boxes, of, index, `type ${operators.type[index]}`, operators.type[index], null);
  }
}

function edgesBetween({ operators, tensors }, of, kept) {
  const edges = new Map();
  for (let index = 0; index < count(operators); index += 1) {
    const end = operators.first[index + 1] ?? count(tensors);
    for (let at = operators.first[index]; at < end; at += 1) {
      const source = tensors.source[at];
      if (source === null || !kept.has(of[index]) || !kept.has(of[source]) || of[index] === of[source]) continue;
      edges.set(`${of[source]}\n${of[index]}`, [of[source], of[index]]);
    }
  }
  return [...edges.values()];
}

/** The first level that has more than one box: names of most dumps begin with the same scopes. */
export function start(operators) {
  const names = operators.name.filter((_, index) => !operators.is_parameter[index]).map((name) => name.split("/"));
  const first = names[0] ?? [];
  let depth = 0;
  while (depth < first.length - 1 && names.every((parts) => parts.length > depth + 1 && parts[depth] === first[depth])) depth += 1;
  return first.slice(0, depth);
}

/** Operators at most `hops` edges away from one, as boxes of their own; the nearest ones when there are too many. */
export function neighbourhood({ operators, tensors }, index, hops = 2, most = 60) {
  const [into, out] = [new Map(), new Map()];
  const put = (map, key, value) => (map.has(key) ? map.get(key).add(value) : map.set(key, new Set([value])));
  for (let one = 0; one < count(operators); one += 1) {
    const end = operators.first[one + 1] ?? count(tensors);
    for (let at = operators.first[one]; at < end; at += 1) {
      if (tensors.source[at] === null) continue;
      put(into, one, tensors.source[at]);
      put(out, tensors.source[at], one);
    }
  }
  const near = new Set([index]);
  let edge = [index];
  for (let hop = 0; hop < hops; hop += 1) {
    edge = edge.flatMap((one) => [...(into.get(one) ?? []), ...(out.get(one) ?? [])]).filter((one) => !near.has(one));
    for (const one of edge) if (near.size < most) near.add(one);
    edge = [...new Set(edge)].filter((one) => near.has(one));
  }
  const boxes = [...near].sort((one, other) => one - other).map((one) => ({ id: `operator ${one}`, label: operators.type[one], scope: null,
    operators: [one], counts: ranks.map((name) => Number(operators.health[one] === name)), health: operators.health[one] }));
  const edges = boxes.flatMap(({ operators: [one] }) => [...(into.get(one) ?? [])].filter((from) => near.has(from)).map((from) => [`operator ${from}`, `operator ${one}`]));
  return { boxes, edges, leftOut: 0 };
}

/** Numbers of the operators that read what one made. */
export function readersOf({ operators, tensors }, index) {
  const found = [];
  for (let one = 0; one < count(operators); one += 1) {
    const end = operators.first[one + 1] ?? count(tensors);
    for (let at = operators.first[one]; at < end; at += 1) {
      if (tensors.source[at] === index) {
        found.push(one);
        break;
      }
    }
  }
  return found;
}

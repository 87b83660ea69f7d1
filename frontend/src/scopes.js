// What is near an operator: those that made what it reads, and those that read what it made.
import { count, marks } from "./view.js";

const ranks = Object.keys(marks);

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

// What of the tree is in sight: open scopes with the boxes in them, and the edges of each level.
import { isBad } from "../view.js";
import { pathTo } from "./tree.js";

export const [IN, OUT] = ["in", "out"];

/**
 * Which nodes are open at first: levels of one box, the way to `targets`, then scopes in order while there is room.
 * Returns a set of ids.
 */
export function firstOpen(root, targets, room = 40) {
  const open = new Set();
  let boxes = 1;
  const unfold = (at) => {
    if (open.has(at.id) || at.kind === "operator") return;
    open.add(at.id);
    boxes += at.children.length;
  };
  unfold(root);
  for (const target of targets) pathTo(target).slice(0, -1).forEach(unfold);
  const queue = [root];
  while (queue.length > 0) {
    const at = queue.shift();
    if (!open.has(at.id)) {
      if (at.kind === "repeat" || at.alike !== undefined || boxes + at.children.length > room) continue;
      unfold(at);
    }
    queue.push(...at.children.filter(({ kind }) => kind !== "operator"));
  }
  return open;
}

/** Open or close a node; what is in a closed one is closed as well. */
export function toggled(open, at) {
  const now = new Set(open);
  if (now.has(at.id)) {
    const close = (one) => {
      now.delete(one.id);
      one.children.forEach(close);
    };
    close(at);
  } else {
    now.add(at.id);
    // A level of one box tells nothing: go on to the first that has more.
    for (let one = at; one.children.length === 1 && one.children[0].kind !== "operator"; [one] = one.children) now.add(one.children[0].id);
  }
  return now;
}

const escaped = (id) => id.replaceAll("%", "%25").replaceAll("|", "%7C");
const plain = (id) => id.replaceAll("%7C", "|").replaceAll("%25", "%");

/** Open nodes as a text: the innermost ones tell of the others. */
export function openText(open, nodes) {
  const around = new Set();
  for (const id of open) for (const one of pathTo(nodes.get(id)).slice(0, -1)) around.add(one.id);
  return [...open].filter((id) => !around.has(id)).map(escaped).join("|");
}

/** The set that a text stands for; ids that are not there are left out. */
export function openFrom(text, nodes) {
  const open = new Set();
  for (const one of nodes.values()) if (one.parent === null) open.add(one.id);
  for (const id of text.split("|").map(plain)) {
    const at = nodes.get(id);
    if (at !== undefined && at.kind !== "operator") for (const one of pathTo(at)) open.add(one.id);
  }
  return open;
}

/**
 * The nodes in sight, as a tree: {at, isOpen, children, edges}. Edges of a level lead from one of its boxes to another,
 * or to what is outside: {id, from, to, flows}, where ends are ids, IN or OUT, and flows are those of flowOf. ghosts: of ghostsOf.
 */
export function inSight({ root, leaves }, flows, open, ghosts = null) {
  const levels = new Map();
  const view = (at) => {
    const isOpen = open.has(at.id) && at.children.length > 0;
    const own = ghosts?.of.get(at.id) ?? [];
    const one = { at, isOpen, children: isOpen ? [...at.children, ...own].map(view) : [], edges: new Map() };
    if (isOpen) levels.set(at.id, one);
    return one;
  };
  const top = view(root);
  const add = (level, from, to, flow) => {
    const id = `${from}\n${to}`;
    if (!level.edges.has(id)) level.edges.set(id, { id: `${level.at.id}\n${id}`, from, to, flows: [] });
    level.edges.get(id).flows.push(flow);
  };
  const paths = new Map();
  const path = (index) => {
    if (!paths.has(index)) paths.set(index, pathTo(leaves.get(index)));
    return paths.get(index);
  };
  for (const flow of flows) {
    if (!leaves.has(flow.from) || !leaves.has(flow.to)) continue;
    const [from, to] = [path(flow.from), path(flow.to)];
    let depth = 0;
    while (from[depth + 1] === to[depth + 1]) depth += 1;
    const level = levels.get(from[depth].id);
    if (level === undefined) continue;
    add(level, from[depth + 1].id, to[depth + 1].id, flow);
    for (let at = depth + 1; at + 1 < from.length && levels.has(from[at].id); at += 1) add(levels.get(from[at].id), from[at + 1].id, OUT, flow);
    for (let at = depth + 1; at + 1 < to.length && levels.has(to[at].id); at += 1) add(levels.get(to[at].id), IN, to[at + 1].id, flow);
  }
  for (const level of levels.values()) level.edges = [...level.edges.values()];
  return top;
}

/** Whether a NaN, an Inf or an error flows along an edge. */
export const isRed = (edge, tensors) => edge.flows.some((flow) => flow.tensors.some((row) => row !== null && isBad(tensors.health[row]) && tensors.health[row] !== "suspicious"));

/** Bytes that flow along an edge; each tensor counts once for each operator that made it. */
export function bytesOf(edge, tensors) {
  let sum = 0;
  const seen = new Set();
  for (const flow of edge.flows) {
    for (const row of flow.tensors) {
      const key = row === null ? null : `${flow.from} ${tensors.dtype[row]} ${tensors.shape[row]}`;
      if (key === null || seen.has(key)) continue;
      seen.add(key);
      sum += tensors.size_bytes[row] ?? 0;
    }
  }
  return sum;
}

const SHORT = { float64: "f64", float32: "f32", float16: "f16", bfloat16: "bf16", int64: "i64", int32: "i32", int16: "i16", int8: "i8", uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64" };

/** A dtype and a shape, short: f32 8×96×55×55. */
export function tensorText(tensors, row) {
  const shape = tensors.shape[row];
  const dtype = SHORT[tensors.dtype[row]] ?? tensors.dtype[row];
  return shape === null || shape.length === 0 ? `${dtype}${shape === null ? "" : " ·"}` : `${dtype} ${shape.join("×")}`;
}

/** What stands at an edge: its tensor, or how many there are, and how many views it passes. */
export function edgeText(edge, tensors, say) {
  const texts = new Set();
  const views = new Set();
  let tensorsOf = 0;
  for (const flow of edge.flows) {
    for (const row of flow.tensors) {
      tensorsOf += 1;
      if (row !== null) texts.add(tensorText(tensors, row));
    }
    for (const one of flow.views) views.add(one);
  }
  const text = texts.size === 1 ? `${[...texts][0]}${edge.flows.length > 1 && tensorsOf > 1 ? ` (${tensorsOf})` : ""}` : texts.size === 0 ? "" : `${tensorsOf} ${say("tensors")}`;
  const way = views.size === 0 ? "" : `${views.size} ${say(views.size === 1 ? "view" : "views")}`;
  return [text, way].filter(Boolean).join(", ");
}

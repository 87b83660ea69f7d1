// What flows between the operators of a step: an edge for each tensor that one makes and another reads.
import { place, setQuery } from "../state.js";
import { count, html, isBad } from "../view.js";
import { say } from "../words.js";

// Operators that hand on the elements that they read: their chains become part of an edge.
const VIEWS = new Set(("view _unsafe_view view_as reshape _reshape_alias flatten unflatten t transpose permute expand expanddims expand_dims squeeze unsqueeze "
  + "detach alias lift_fresh lift_fresh_copy clone contiguous _to_copy to cast castlike identity transdata broadcast_to").split(" "));

/** Whether operators of a type only hand on what they read, in another shape, order or dtype. */
export function isView(type) {
  const [, base] = /^(?:aten[._])?(_*[A-Za-z]+(?:_[a-z]+)*)/.exec(type) ?? [];
  if (base === undefined) return false;
  const name = base.toLowerCase();
  // aten_transpose_int, aten.view.default: the overload is no part of the name.
  return VIEWS.has(name) || (/^aten[._]/.test(type) && VIEWS.has(name.replace(/_(default|int|dim|dims|dtype|scalar|tensor|dimname|memory_format)$/, "")));
}

/** Operators that make numbers of the codes of a weight: no operator of the step has made these. None where nothing is known of what flows. */
export function preparedOf(step) {
  const { operators, tensors } = step;
  const isMade = (maker) => maker !== null && !operators.is_parameter[maker];
  const isRead = (index) => (operators.reads?.[index] ?? []).some(isMade)
    || tensors.source.slice(operators.first[index], operators.first[index + 1]).some(isMade);
  const isKnown = tensors.source.some(isMade) || operators.reads?.some((all) => all.some(isMade));
  return step.prepared ??= new Set(isKnown ? operators.type.flatMap((type, index) => (/dequantize/i.test(type) && !isRead(index) ? [index] : [])) : []);
}

/** Those of `preparedOf` that tables leave out: not what went wrong. */
export const leftOut = (step, isShown) => (isShown ? new Set() : new Set([...preparedOf(step)].filter((index) => !isBad(step.operators.health[index]))));

/** The switch of a table that shows them. */
export const Prepared = ({ step }) => preparedOf(step).size > 0 && html`<label><input type="checkbox" checked=${place.value.query.weights === "1"}
  onChange=${(event) => setQuery({ weights: event.currentTarget.checked ? "1" : "" })} /> ${say("Dequantize of weights")} (${preparedOf(step).size})</label>`;

const madeHere = "not finite made here";

/**
 * {edges: [{from, to, tensors: [rows], views: [operators]}], hidden: set of operators that are not shown}. Parameters are
 * hidden; `shownViews` false folds views into edges, and leaves out what makes numbers of a weight's codes, but for those that made what is not finite and those of `kept`.
 */
export function flowOf(step, { shownViews = false, kept = new Set() } = {}) {
  const { operators, tensors } = step;
  const all = count(operators);
  const hidden = new Set();
  for (let index = 0; index < all; index += 1) if (operators.is_parameter[index]) hidden.add(index);
  const into = Array.from({ length: all }, () => []); // [maker, row of the tensor]
  const isRead = new Uint8Array(all);
  let isKnown = false;
  const add = (maker, reader, tensor) => {
    if (hidden.has(maker) || hidden.has(reader) || maker === reader) return;
    into[reader].push([maker, tensor]);
    isRead[maker] = 1;
    isKnown = true;
  };
  for (let index = 0; index < all; index += 1) {
    const end = operators.first[index + 1] ?? count(tensors);
    for (let at = operators.first[index]; at < end; at += 1) if (tensors.source[at] !== null) add(tensors.source[at], index, at);
    for (const maker of operators.reads?.[index] ?? []) add(maker, index, firstOutput({ operators, tensors }, maker));
  }
  const [folded, prepared] = [new Set(), preparedOf(step)];
  if (!shownViews && isKnown) {
    for (let index = 0; index < all; index += 1) {
      if (!kept.has(index) && prepared.has(index)) folded.add(index);
      const isOne = new Set(into[index].map(([maker]) => maker)).size <= 1;
      if (isOne && !hidden.has(index) && !kept.has(index) && operators.health[index] !== madeHere && isView(operators.type[index])) folded.add(index);
    }
    if (folded.size + hidden.size === all) folded.clear();
  }
  const edges = new Map();
  for (let reader = 0; reader < all; reader += 1) {
    if (folded.has(reader)) continue;
    for (const [first, tensor] of into[reader]) {
      let maker = first;
      const views = [];
      while (folded.has(maker) && views.length <= all) {
        views.unshift(maker);
        maker = into[maker][0]?.[0];
      }
      if (maker === undefined) continue; // a view of what came from outside
      const key = maker * all + reader;
      const edge = edges.get(key) ?? { from: maker, to: reader, tensors: [], views: [] };
      edge.tensors.push(tensor);
      edge.views.push(...views.filter((one) => !edge.views.includes(one)));
      edges.set(key, edge);
    }
  }
  for (const one of folded) hidden.add(one);
  return { edges: [...edges.values()], hidden, isKnown, folded };
}

/** Row of the first output of an operator; null where none was dumped. */
export function firstOutput({ operators, tensors }, index) {
  const end = operators.first[index + 1] ?? count(tensors);
  for (let at = operators.first[index]; at < end; at += 1) if (tensors.io[at] === "output") return at;
  return null;
}

// What a narrower dtype would lose of each tensor, from the counts of exponents, or without them from minimum and maximum: no
// tensor is read for it.
import { limits, lost } from "../exponents.js";
import { number, sortable } from "../format.js";
import { follow, isOpen, panelLink, place, setQuery } from "../state.js";
import { Table } from "../table.js";
import { Health, html, Num, shortened } from "../view.js";
import { say } from "../words.js";
import { ownerOf } from "./tensor.js";

/** Bits between the largest element and the limit of a dtype; negative where it does not fit. */
export function headRoom([first, positive], [largest]) {
  return positive.length === 0 ? Infinity : largest - (first + positive.length - 1);
}

/** The same from the largest magnitude; null where that is no number. */
export const headRoomOf = (most, [largest]) => (Number.isFinite(most) ? largest - Math.floor(Math.log2(most)) : null);

/**
 * What a dtype would lose of a tensor: {isOver (null where nothing tells), over, under (shares; null where no exponents tell)}.
 * Minimum and maximum tell that some element overflows, but neither how many do, nor what underflows.
 */
export function lossOf(tensors, index, limit) {
  const { exponents, min, max, zero, count: elements } = tensors;
  const ends = [min[index], max[index]];
  const isOver = ends.some((one) => typeof one === "number" && Math.abs(one) > limit[3]);
  const counts = exponents[index];
  // What holds NaN and Inf alone has counts of nothing.
  if (counts !== null && (counts[1].length > 0 || zero[index] === elements[index])) {
    const [over, under] = lost(counts, limit);
    return { isOver: isOver || over > 0, over, under };
  }
  return { isOver: isOver || (ends.every((one) => typeof one === "number") ? false : null), over: null, under: null };
}

export function Overflow({ step, parts }) {
  const { operators, tensors } = step;
  const { dtype = "float16", sort = "", bad: asked = "" } = place.value.query;
  const limit = limits[dtype] ?? limits.float16;
  const owner = tensors.exponents.map((_, index) => ownerOf(operators, index));
  const floats = owner.map((_, index) => index).filter((index) => /float/.test(tensors.dtype[index]) && tensors.health[index] !== "not written yet");
  const losses = new Map(floats.map((index) => [index, lossOf(tensors, index, limit)]));
  const loss = (index) => losses.get(index);
  const room = (index) => (loss(index).over === null ? headRoomOf(largest(tensors, index), limit) : headRoom(tensors.exponents[index], limit));
  const isUnder = (index) => loss(index).under > 0.01;
  const fails = (index) => loss(index).isOver === true || isUnder(index);
  // Good in and bad out is the worst that can be: the operator itself needs the wider dtype.
  const over = floats.filter((index) => loss(index).isOver === true);
  const spoiled = new Set(over.filter((index) => tensors.io[index] === "input").map((index) => owner[index]));
  const made = new Set(over.filter((index) => tensors.io[index] === "output" && !spoiled.has(owner[index])));
  const level = (index) => (made.has(index) ? "critical" : loss(index).isOver === true ? "high" : isUnder(index) ? "medium" : "");
  const percent = (share) => (share === null ? "–" : share === 0 ? "0" : `${number(100 * share)} %`);
  const overflow = (index) => (loss(index).over > 0 || loss(index).isOver === null ? percent(loss(index).over) : loss(index).isOver ? say("yes") : "0");
  const name = (index) => operators.name[owner[index]];
  const isThat = isOpen(parts);
  const ranks = { critical: 3, high: 2, medium: 1, "": 0 };
  const columns = [
    { name: "number", title: "#", end: true, value: (index) => owner[index], cell: (index) => owner[index] },
    { name: "level", title: say("level"), value: (index) => ranks[level(index)], cell: (index) => html`<span class="level ${level(index)}">${say(level(index))}</span>` },
    { name: "name", title: say("name"), value: name, cell: (index) => html`<a class="name" title=${name(index)} href=${panelLink(parts, owner[index])}>${shortened(name(index))}</a>` },
    { name: "io", title: say("tensor"), value: (index) => tensors.io[index], cell: (index) => `${say(tensors.io[index])} ${tensors.slot[index]}` },
    { name: "dtype", title: say("dtype"), value: (index) => tensors.dtype[index], cell: (index) => tensors.dtype[index] },
    { name: "most", title: say("largest"), end: true, value: (index) => sortable(largest(tensors, index)), cell: (index) => html`<${Num} value=${largest(tensors, index)} />` },
    { name: "room", title: say("head-room, bits"), end: true, value: (index) => -(room(index) ?? Infinity), cell: (index) => (room(index) === null ? "–" : Number.isFinite(room(index)) ? room(index) : "∞") },
    { name: "over", title: say("overflow"), end: true, value: (index) => loss(index).over ?? Number(loss(index).isOver), cell: overflow },
    { name: "under", title: say("underflow"), end: true, value: (index) => loss(index).under ?? -1, cell: (index) => percent(loss(index).under) },
    { name: "health", title: say("health"), value: (index) => tensors.health[index], cell: (index) => html`<${Health} health=${tensors.health[index]} />` },
  ];
  // What does not fit is what one looks for here.
  const bad = asked === "" ? (floats.some(fails) ? "1" : "") : asked;
  let order = bad === "1" ? floats.filter(fails) : [...floats];
  const column = columns.find((one) => one.name === sort.replace(/^-/, ""));
  if (column !== undefined) {
    const way = sort.startsWith("-") ? 1 : -1;
    order.sort((one, other) => way * (column.value(one) < column.value(other) ? -1 : column.value(one) > column.value(other) ? 1 : 0) || one - other);
  }
  return html`<main class="full">
    <div class="tools"><span role="group" aria-label=${say("what if")}>${say("what if")} ${Object.keys(limits).map((one) => html`<button key=${one}
        aria-pressed=${one === dtype} onClick=${() => setQuery({ dtype: one })}>${one}</button> `)}</span>
      <label><input type="checkbox" checked=${bad === "1"} onChange=${(event) => setQuery({ bad: event.currentTarget.checked ? "1" : "0" })} /> ${say("bad only")}</label></div>
    <p>${verdictOf(floats.map(loss), dtype)}</p>
    <${Table} columns=${columns} order=${order} label=${say("Overflow")} sort=${sort} onSort=${(key) => setQuery({ sort: key })}
      health=${(index) => ({ critical: "not finite made here", high: "not finite came in", medium: "suspicious" })[level(index)] ?? (loss(index).isOver === null ? "not measured" : "ok")}
      isCurrent=${(index) => isThat(owner[index])} onOpen=${(index) => follow(panelLink(parts, owner[index]))} />
  </main>`;
}

/** What is true of all tensors of floats, and of how many of them it cannot be told. */
function verdictOf(losses, dtype) {
  if (losses.length === 0) return say("No tensor of this step has floating-point numbers.");
  const judged = losses.filter(({ isOver }) => isOver !== null);
  const counted = losses.filter(({ under }) => under !== null);
  if (judged.length === 0) return `– ${say("nothing to judge by: no tensor of this step has a minimum and a maximum")} (${losses.length} ${say("tensors")})`;
  const over = judged.filter(({ isOver }) => isOver).length;
  const under = counted.filter((one) => one.under > 0.01).length;
  if (over === 0 && under === 0 && counted.length === losses.length) return `✔ ${say("all tensors fit")}: ${dtype}`;
  const [bounded, unknown] = [judged.length - counted.length, losses.length - judged.length];
  const limits = [bounded > 0 && `${bounded} ${say("judged by minimum and maximum alone: without counts of exponents, underflow is not known")}`,
    unknown > 0 && `${unknown} ${say("without a finite minimum and maximum")}`].filter(Boolean);
  return html`${over} ${say("of")} ${judged.length} ${say("tensors overflow")}: ${dtype}${counted.length > 0 && html`, ${under} ${say("lose more than 1 % of their elements to underflow")}`}
    ${limits.length > 0 && html` <span class="quiet">(${limits.join("; ")})</span>`}`;
}

function largest(tensors, index) {
  const [low, high] = [tensors.min[index], tensors.max[index]];
  if (typeof low !== "number" || typeof high !== "number") return high ?? low;
  return Math.max(Math.abs(low), Math.abs(high));
}

// What a narrower dtype would lose of each tensor, from the counts of exponents alone: no tensor is read for it.
import { limits, lost } from "../exponents.js";
import { number, sortable } from "../format.js";
import { follow, isOpen, panelLink, place, setQuery } from "../state.js";
import { Table } from "../table.js";
import { count, Health, html, Num, shortened } from "../view.js";
import { say } from "../words.js";
import { ownerOf } from "./tensor.js";

/** Bits between the largest element and the limit of a dtype; negative where it does not fit. */
export function headRoom([first, positive], [largest]) {
  return positive.length === 0 ? Infinity : largest - (first + positive.length - 1);
}

export function Overflow({ step, parts }) {
  const { operators, tensors } = step;
  const { dtype = "float16", sort = "", bad: asked = "" } = place.value.query;
  const limit = limits[dtype] ?? limits.float16;
  const owner = tensors.exponents.map((_, index) => ownerOf(operators, index));
  const measured = owner.map((_, index) => index).filter((index) => tensors.exponents[index] !== null && /float/.test(tensors.dtype[index])
    && tensors.health[index] !== "not written yet");
  const shares = new Map(measured.map((index) => [index, lost(tensors.exponents[index], limit)]));
  const room = (index) => headRoom(tensors.exponents[index], limit);
  const fails = (index) => shares.get(index)[0] > 0 || shares.get(index)[1] > 0.01;
  // Good in and bad out is the worst that can be: the operator itself needs the wider dtype.
  const over = measured.filter((index) => shares.get(index)[0] > 0);
  const spoiled = new Set(over.filter((index) => tensors.io[index] === "input").map((index) => owner[index]));
  const made = new Set(over.filter((index) => tensors.io[index] === "output" && !spoiled.has(owner[index])));
  const level = (index) => (made.has(index) ? "critical" : shares.get(index)[0] > 0 ? "high" : shares.get(index)[1] > 0.01 ? "medium" : "");
  const percent = (part) => (index) => (shares.get(index)[part] === 0 ? "0" : `${number(100 * shares.get(index)[part])} %`);
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
    { name: "room", title: say("head-room, bits"), end: true, value: (index) => -room(index), cell: (index) => (Number.isFinite(room(index)) ? room(index) : "∞") },
    { name: "over", title: say("overflow"), end: true, value: (index) => shares.get(index)[0], cell: percent(0) },
    { name: "under", title: say("underflow"), end: true, value: (index) => shares.get(index)[1], cell: percent(1) },
    { name: "health", title: say("health"), value: (index) => tensors.health[index], cell: (index) => html`<${Health} health=${tensors.health[index]} />` },
  ];
  // What does not fit is what one looks for here.
  const bad = asked === "" ? (measured.some(fails) ? "1" : "") : asked;
  let order = bad === "1" ? measured.filter(fails) : [...measured];
  const column = columns.find((one) => one.name === sort.replace(/^-/, ""));
  if (column !== undefined) {
    const way = sort.startsWith("-") ? 1 : -1;
    order.sort((one, other) => way * (column.value(one) < column.value(other) ? -1 : column.value(one) > column.value(other) ? 1 : 0) || one - other);
  }
  const under = measured.filter((index) => shares.get(index)[1] > 0.01).length;
  return html`<main class="full">
    <div class="tools"><span role="group" aria-label=${say("what if")}>${say("what if")} ${Object.keys(limits).map((one) => html`<button key=${one}
        aria-pressed=${one === dtype} onClick=${() => setQuery({ dtype: one })}>${one}</button> `)}</span>
      <label><input type="checkbox" checked=${bad === "1"} onChange=${(event) => setQuery({ bad: event.currentTarget.checked ? "1" : "0" })} /> ${say("bad only")}</label></div>
    <p>${over.length === 0 && under === 0 ? html`✔ ${say("all tensors fit")}: ${dtype}` : html`${over.length} ${say("of")} ${measured.length} ${say("tensors overflow")}, ${under} ${say("lose more than 1 % of their elements to underflow")}`}
      ${measured.length < count(tensors) && html` <span class="quiet">(${count(tensors) - measured.length} ${say("without counts")})</span>`}</p>
    <${Table} columns=${columns} order=${order} label=${say("Overflow")} sort=${sort} onSort=${(key) => setQuery({ sort: key })}
      health=${(index) => ({ critical: "not finite made here", high: "not finite came in", medium: "suspicious" })[level(index)] ?? "ok"}
      isCurrent=${(index) => isThat(owner[index])} onOpen=${(index) => follow(panelLink(parts, owner[index]))} />
  </main>`;
}

function largest(tensors, index) {
  const [low, high] = [tensors.min[index], tensors.max[index]];
  if (typeof low !== "number" || typeof high !== "number") return high ?? low;
  return Math.max(Math.abs(low), Math.abs(high));
}

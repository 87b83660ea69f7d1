// A table of any length: only the rows in sight are in the document. A strip beside it shows the health of all rows.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, marks } from "./view.js";

const ROW = 26; // px, as app.css has it
const SPARE = 8; // rows above and below those in sight

/**
 * columns: [{name, title, cell: (index) => what, end: whether it is aligned to the end}], order: indices of rows,
 * health: index -> its health, start: place in the order that is in sight at first, onOpen: what a click or Enter does, isCurrent: whether a row is that of the open operator
 */
export function Table({ columns, order, health, onOpen, sort, onSort, label, isCurrent = () => false, start = 0 }) {
  const frame = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    // What stands above may come, go and grow.
    const sized = new ResizeObserver(() => setHeight(frame.current?.clientHeight ?? 600));
    sized.observe(frame.current);
    return () => sized.disconnect();
  }, []);
  useEffect(() => {
    if (start > 0) frame.current.scrollTop = Math.max(0, start * ROW - frame.current.clientHeight / 3);
  }, [start]);
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(order.length, Math.ceil((top + height) / ROW) + SPARE);
  const shown = order.slice(first, last);
  const titles = columns.map(({ name, title, end }) => html`<th key=${name} class=${end ? "end" : ""} scope="col"
    aria-sort=${sort === name ? "descending" : sort === `-${name}` ? "ascending" : "none"}>
    <button onClick=${() => onSort(sort === name ? `-${name}` : sort === `-${name}` ? "" : name)}>${title}${
      sort === name ? " ↓" : sort === `-${name}` ? " ↑" : ""}</button></th>`);
  return html`<div class="sheet">
    <${Strip} order=${order} health=${health} onPick=${(share) => {
      frame.current.scrollTop = share * order.length * ROW - height / 2;
    }} />
    <div class="rows" ref=${frame} onScroll=${(event) => setTop(event.currentTarget.scrollTop)} tabindex="0">
      <table aria-label=${label} aria-rowcount=${order.length + 1}>
        <thead><tr>${titles}</tr></thead>
        <tbody>
          <tr style=${{ height: `${first * ROW}px` }} aria-hidden="true"></tr>
          ${shown.map((index, place) => html`<tr key=${index} aria-rowindex=${first + place + 2} class=${isCurrent(index) ? "row current" : "row"} aria-current=${isCurrent(index) ? "true" : null} tabindex="0"
            onKeyDown=${(event) => event.key === "Enter" && onOpen(index)} onClick=${() => onOpen(index)}>${columns.map(({ name, cell, end }) =>
              html`<td key=${name} class=${end ? "end" : ""}>${cell(index)}</td>`)}</tr>`)}
          <tr style=${{ height: `${(order.length - last) * ROW}px` }} aria-hidden="true"></tr>
        </tbody>
      </table>
    </div>
  </div>`;
}

/** Rows that lie beside each other and fare alike are one mark; of 1,000 lines each shows its worst row. */
function Strip({ order, health, onPick }) {
  const ranks = Object.keys(marks);
  const lines = Math.min(order.length, 1000);
  const worst = new Array(lines).fill(ranks.length - 1);
  order.forEach((index, at) => {
    const line = Math.floor((at * lines) / order.length);
    worst[line] = Math.min(worst[line], ranks.indexOf(health(index)));
  });
  const runs = [];
  worst.forEach((rank, line) => {
    if (runs.at(-1)?.rank === rank) runs.at(-1).size += 1;
    else runs.push({ rank, line, size: 1 });
  });
  return html`<svg class="strip" viewBox="0 0 1 ${lines || 1}" preserveAspectRatio="none" shape-rendering="crispEdges" aria-hidden="true" onClick=${(event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onPick((event.clientY - box.top) / box.height);
  }}>${runs.map(({ rank, line, size }) => html`<rect key=${line} class="fill-${marks[ranks[rank]][0]}" y=${line} width="1" height=${size} />`)}</svg>`;
}

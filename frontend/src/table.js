// A table of any length: only the rows in sight are in the document. A strip beside it shows the health of all rows.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, marks } from "./view.js";

const ROW = 26; // px, as app.css has it
const SPARE = 8; // rows above and below those in sight

/**
 * columns: [{name, title, cell: (index) => what, end: whether it is aligned to the end}], order: indices of rows,
 * health: index -> its health, onOpen: what a click or Enter does
 */
export function Table({ columns, order, health, onOpen, sort, onSort, label }) {
  const frame = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const measure = () => setHeight(frame.current?.clientHeight ?? 600);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
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
          ${shown.map((index, place) => html`<tr key=${index} aria-rowindex=${first + place + 2} class="row"
            onClick=${() => onOpen(index)}>${columns.map(({ name, cell, end }) =>
              html`<td key=${name} class=${end ? "end" : ""}>${cell(index)}</td>`)}</tr>`)}
          <tr style=${{ height: `${(order.length - last) * ROW}px` }} aria-hidden="true"></tr>
        </tbody>
      </table>
    </div>
  </div>`;
}

function Strip({ order, health, onPick }) {
  const canvas = useRef(null);
  useEffect(() => {
    const [element, lines] = [canvas.current, Math.min(order.length, 1000) || 1];
    [element.width, element.height] = [1, lines];
    const context = element.getContext("2d");
    const styles = getComputedStyle(element);
    const ranks = Object.keys(marks);
    const worst = new Array(lines).fill(ranks.length - 1);
    order.forEach((index, place) => {
      const line = Math.floor((place * lines) / order.length);
      worst[line] = Math.min(worst[line], ranks.indexOf(health(index)));
    });
    worst.forEach((rank, line) => {
      context.fillStyle = styles.getPropertyValue(`--${marks[ranks[rank]][0]}`);
      context.fillRect(0, line, 1, 1);
    });
  });
  return html`<canvas class="strip" ref=${canvas} aria-hidden="true" onClick=${(event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onPick((event.clientY - box.top) / box.height);
  }}></canvas>`;
}

// Boxes and edges as a picture: each box has the health of all that is in it.
import { useEffect, useState } from "preact/hooks";
import { layoutOf } from "./layout.js";
import { html, isBad, marks } from "./view.js";
import { say } from "./words.js";

const [HEIGHT, LETTER] = [34, 7.2];
const ranks = Object.keys(marks);
const text = (label) => (label.length > 30 ? `…${label.slice(-29)}` : label);

/** boxes and edges as scopes.js has them; href: box -> address; current: id of the box that is looked at */
export function Drawing({ boxes, edges, href, current }) {
  const [state, setState] = useState({});
  const titled = boxes.map((box) => ({ ...box, title: `${text(box.label)}${box.operators.length > 1 ? ` × ${box.operators.length}` : ""}` }));
  const key = JSON.stringify([titled.map(({ id, title }) => [id, title]), edges]);
  useEffect(() => {
    let isWanted = true;
    const nodes = titled.map(({ id, title }) => ({ id, width: Math.max(60, title.length * LETTER + 16), height: HEIGHT }));
    layoutOf({ nodes, edges }).then((layout) => isWanted && setState({ key, layout }), (error) => isWanted && setState({ key, error }));
    return () => { isWanted = false; };
  }, [key]);
  if (state.key !== key) return html`<p aria-busy="true">…</p>`;
  if (state.error) return html`<p role="alert">${state.error.message}</p>`;
  const { layout } = state;
  const path = (points) => `M${points.map((point) => point.map((one) => one.toFixed(1)).join(" ")).join("L")}`;
  return html`<div class="drawing"><svg width=${layout.width} height=${layout.height} viewBox="0 0 ${layout.width} ${layout.height}" role="group" aria-label=${say("Graph")}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${layout.edges.map((points, at) => html`<path key=${at} class=${edges[at].includes(current) ? "edge near" : "edge"} d=${path(points)} marker-end="url(#arrow)" />`)}
    ${titled.map((box) => {
      const [x, y] = layout.nodes[box.id];
      const width = Math.max(60, box.title.length * LETTER + 16);
      const all = box.operators.length;
      let before = 0;
      return html`<a key=${box.id} href=${href(box)}><g class=${`box ${box.scope === null ? "leaf" : "scope"} ${box.id === current ? "current" : ""}`}>
        <title>${box.label}: ${ranks.map((name, rank) => (box.counts[rank] ? `${box.counts[rank]} ${say(name)}` : "")).filter(Boolean).join(", ")}</title>
        <rect x=${x - width / 2} y=${y - HEIGHT / 2} width=${width} height=${HEIGHT} rx="5" />
        <text x=${x} y=${y + 1}>${isBad(box.health) ? `${marks[box.health][1]} ` : ""}${box.title}</text>
        ${box.counts.map((some, rank) => {
          const left = x - width / 2 + (before / all) * width;
          before += some;
          return some > 0 && html`<rect key=${rank} class=${`fill-${marks[ranks[rank]][0]}`} x=${left} y=${y + HEIGHT / 2 - 6} width=${(some / all) * width} height="6" />`;
        })}</g></a>`;
    })}</svg></div>`;
}

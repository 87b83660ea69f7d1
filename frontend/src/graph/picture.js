// Boxes within boxes and what flows between them, as SVG.
import { bytes } from "../format.js";
import { html, isBad, marks } from "../view.js";
import { say } from "../words.js";
import { HEAD } from "./arrange.js";
import { isAlike, paired, share, sideOf } from "./faces.js";
import { bytesOf, IN, isRed, OUT } from "./levels.js";
import { pathTo } from "./tree.js";

const healths = Object.keys(marks);
const MAX_CELLS = 40; // of a strip; more are worst of some
const BAR = 6;
const MAX_REACH = 60;

/** faces, texts: of boxesOf; layout: of arranged; view: {step, statistic, pairs, current, href, onToggle, onFocus} */
export function Picture({ sight, faces, texts, layout, view }) {
  const parts = [];
  const visit = (one) => {
    if (layout.boxes[one.at.id] === undefined) return;
    parts.push(html`<${Box} key=${one.at.id} face=${faces.get(one.at.id)} place=${layout.boxes[one.at.id]} view=${view} />`);
    if (one.isOpen) {
      for (const edge of one.edges) {
        if (layout.edges[edge.id] !== undefined) parts.push(html`<${Edge} key=${edge.id} edge=${edge} route=${layout.edges[edge.id]} text=${texts.get(edge.id)} view=${view} />`);
      }
      const next = Object.keys(layout.edges).length > 0 && view.isOrdered ? layout.edges[`${one.at.id}\n>1`] : undefined;
      for (let at = 1; next !== undefined && at < one.children.length; at += 1) {
        parts.push(html`<path key=${`${one.at.id}>${at}`} class="flow order" d=${path(layout.edges[`${one.at.id}\n>${at}`].points)} marker-end="url(#flow-end)" />`);
      }
      one.children.forEach(visit);
    }
  };
  visit(sight);
  return [...parts, html`<${Reach} key="reach" layout=${layout} view=${view} />`];
}

/** What the current box reads from other levels, and what there reads it: edges that would clutter the picture for all. */
function Reach({ layout, view }) {
  const at = view.nodes.get(view.current);
  if (at === undefined || layout.boxes[at.id] === undefined) return null;
  const own = new Set(at.operators);
  const inSight = (index) => pathTo(view.leaves.get(index)).findLast(({ id }) => layout.boxes[id] !== undefined);
  const found = new Map();
  for (const flow of view.edges) {
    if (own.has(flow.from) === own.has(flow.to)) continue;
    const other = inSight(own.has(flow.from) ? flow.to : flow.from);
    if (other === undefined || other.parent === at.parent || pathTo(at).includes(other)) continue;
    found.set(`${other.id}\n${own.has(flow.from)}`, [other, own.has(flow.from), flow]);
  }
  return [...found].slice(0, MAX_REACH).map(([key, [other, isOut, flow]]) => {
    const [from, to] = (isOut ? [at, other] : [other, at]).map(({ id }) => layout.boxes[id]);
    const [x0, y0, x1, y1] = [from[0] + from[2] / 2, from[1] + from[3], to[0] + to[2] / 2, to[1]];
    const bend = Math.max(40, Math.abs(y1 - y0) / 2);
    return html`<path key=${key} class=${`flow reach ${isRed({ flows: [flow] }, view.step.tensors) ? "red" : ""}`} d=${`M${fixed([x0, y0])}C${fixed([x0, y0 + bend])} ${fixed([x1, y1 - bend])} ${fixed([x1, y1])}`} marker-end="url(#flow-end)" />`;
  });
}

const fixed = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

const ROUND = 16; // px that a corner begins before its point

/** Through points, with round corners. */
function path(points) {
  let text = `M${fixed(points[0])}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    const toward = (other) => {
      const [dx, dy] = [other[0] - points[at][0], other[1] - points[at][1]];
      const part = Math.min(0.5, ROUND / (Math.hypot(dx, dy) || 1));
      return [points[at][0] + dx * part, points[at][1] + dy * part];
    };
    text += `L${fixed(toward(points[at - 1]))}Q${fixed(points[at])} ${fixed(toward(points[at + 1]))}`;
  }
  return `${text}L${fixed(points.at(-1))}`;
}

function Edge({ edge, route, text, view }) {
  const { tensors, operators } = view.step;
  const size = bytesOf(edge, tensors);
  const isBadOne = isRed(edge, tensors);
  const isStub = edge.from === IN || edge.to === OUT;
  const width = Math.min(isStub ? 2 : 6, 1.2 + Math.log2(1 + size / 4096) / 2.4);
  const isNear = view.current !== undefined && (edge.from === view.current || edge.to === view.current);
  const views = [...new Set(edge.flows.flatMap((flow) => flow.views))];
  const about = `${edge.flows.slice(0, 8).map(({ from, to }) => `${operators.name[from]} → ${operators.name[to]}`).join("\n")}${edge.flows.length > 8 ? `\n… ${edge.flows.length}` : ""}\n${
    text}${text && ", "}${bytes(size)}${views.length > 0 ? `\n${views.slice(0, 8).map((one) => operators.name[one]).join("\n")}` : ""}`;
  return html`<g class=${`flow ${isBadOne ? "red" : ""} ${isNear ? "near" : ""}`}>
    <path d=${path(route.points)} stroke-width=${width.toFixed(1)} marker-end=${isBadOne ? "url(#flow-end-red)" : "url(#flow-end)"}><title>${about}</title></path>
    ${text && route.label !== null && html`<text x=${route.label[0]} y=${route.label[1]}>${text}<title>${about}</title></text>`}
  </g>`;
}

/** What screen readers say of a box. */
function aria({ at, isOpen, title, lines, shown, right }, view) {
  const kinds = at.counts.map((some, rank) => (some && (at.operators.length > 1 || isBad(healths[rank])) ? `${some} ${say(healths[rank])}` : "")).filter(Boolean);
  const name = at.kind === "operator" ? view.step.operators.name[at.operators[0]] : title;
  return [name, ...lines.filter(Boolean), shown, ...(right === null ? [] : [`${say("golden")} ${right.filter(Boolean).join(" ")}`]), ...kinds, at.kind === "operator" ? "" : say(isOpen ? "opened" : "closed")].filter(Boolean).join(", ");
}

function Box({ face, place: [x, y, width, height], view }) {
  const { at, isOpen, title, lines, value, shown, right } = face;
  if (at.kind === "ghost") {
    return html`<g class="placed" style=${{ transform: `translate(${x}px, ${y}px)` }}><g class="node alone" role="img" tabindex="0" data-id=${at.id} aria-label=${`${title}, ${lines[0]}`}>
      <title>${at.label}</title><rect class="face" width=${width} height=${height} rx="5" /><text class="title" x="11" y="15">${title}</text><text class="more" x="11" y="29">${lines[0]}</text></g></g>`;
  }
  const isLeaf = at.kind === "operator";
  const isCurrent = at.id === view.current;
  const sum = view.pairs === null ? null : paired(view.pairs, at);
  const isAlone = sum !== null && sum.missing === at.operators.length;
  const name = `node ${at.kind} ${isOpen ? "open" : ""} ${isCurrent ? "current" : ""} ${isAlone ? "alone" : ""} ${view.way?.has(at.operators[0]) && isLeaf ? "way" : ""}`;
  const split = sum === null ? width : width - sideOf(right);
  const tall = share(view.statistic, value) * (height - BAR - 4);
  const inner = html`<title>${isLeaf ? view.step.operators.name[at.operators[0]] : at.id.replace(/^\//, "") || "/"}</title>
    ${isAlike(at) && !isOpen && html`<rect class="behind" x="5" y="-5" width=${width} height=${height} rx="5" />`}
    <rect class="face" width=${width} height=${isOpen ? HEAD : height} rx="5" />
    ${isOpen ? html`<text class="title" x="10" y=${HEAD / 2 + 1}>▾ ${title}</text>` : html`
      <rect class="value" width="4" x="1" y=${height - BAR - 1 - tall} height=${tall} />
      <text class="title" x="11" y="15">${isLeaf ? "" : "▸ "}${title}</text>
      <text class="more" x="11" y="29">${lines[0]}</text><text class="more" x="11" y="42">${lines[1]}</text>
      <text class=${`more end ${value !== null && !Number.isFinite(value) ? "red" : ""}`} x=${split - 8} y="42">${shown}</text>
      ${isAlike(at) ? html`<${Strip} children=${at.children} width=${split} y=${height - BAR} />`
        : html`<${Bar} counts=${at.counts} width=${split} y=${height - BAR} />`}
      ${sum !== null && html`<g class="golden" transform="translate(${split} 0)"><line y2=${height} />
        <text class=${sum.differs > 0 ? "red" : ""} x=${(width - split) / 2} y="15">${right[0]}</text><text class="more" x=${(width - split) / 2} y="29">${right[1]}</text>
        <text class="more" x=${(width - split) / 2} y="42">${right[2]}</text>
        <${Bar} counts=${[0, 0, sum.differs, 0, sum.agrees, sum.missing, sum.unknown]} width=${width - split} y=${height - BAR} /></g>`}`}`;
  const common = { class: name, "data-id": at.id, "aria-label": aria(face, view), onFocus: () => view.onFocus(at.id) };
  if (isOpen && at.parent === null) return null; // all of the window is its room
  return html`<g class="placed" style=${{ transform: `translate(${x}px, ${y}px)` }}>
    ${isOpen && html`<rect class=${`room depth-${at.id.split("/").length % 2} ${isBad(at.health) ? "bad" : ""}`} width=${width} height=${height} rx="7" />`}
    ${isLeaf ? html`<a ...${common} href=${view.href(at.operators[0])}>${inner}</a>`
      : html`<g ...${common} role="button" tabindex="0" aria-expanded=${isOpen} onClick=${() => view.onToggle(at)}
        onKeyDown=${(event) => [" ", "Enter"].includes(event.key) && (event.preventDefault(), view.onToggle(at))}>${inner}</g>`}
  </g>`;
}

function Bar({ counts, width, y }) {
  const all = counts.reduce((sum, some) => sum + some, 0);
  let before = 0;
  return counts.map((some, rank) => {
    const left = (before / all) * width;
    before += some;
    return some > 0 && html`<rect key=${rank} class=${`fill-${marks[healths[rank]][0]}`} x=${left} y=${y} width=${(some / all) * width} height=${BAR} />`;
  });
}

/** A cell for each of some alike parts, with the health of the worst in it. */
function Strip({ children, width, y }) {
  const cells = Math.min(MAX_CELLS, children.length);
  const worst = new Array(cells).fill(healths.length - 1);
  children.forEach(({ health }, at) => {
    const cell = Math.floor((at * cells) / children.length);
    worst[cell] = Math.min(worst[cell], healths.indexOf(health));
  });
  return worst.map((rank, at) => html`<rect key=${at} class=${`cell fill-${marks[healths[rank]][0]}`} x=${(at * width) / cells + 0.5} y=${y - 3} width=${width / cells - 1} height=${BAR + 3} />`);
}

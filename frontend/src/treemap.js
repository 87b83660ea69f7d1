// A step as rectangles whose areas are bytes: scopes, in them types of operators, in these the operators.
import { hierarchy, treemap } from "d3-hierarchy";
import { bytes } from "./format.js";
import { link, panelLink } from "./state.js";
import { count, html, marks, withoutCommonParts } from "./view.js";
import { say } from "./words.js";

const [WIDTH, HEIGHT, TITLE] = [960, 420, 15];
const LEAST = 1 / 4000; // share of all bytes below which an operator has no rectangle of its own

/** The tree for a treemap: {name, children | size, index, health}; small operators of a type are one leaf. */
export function bytesTree({ operators, tensors }) {
  const sizes = operators.name.map((_, index) => {
    let sum = 0;
    for (let at = operators.first[index]; at < (operators.first[index + 1] ?? count(tensors)); at += 1) sum += tensors.size_bytes[at] ?? 0;
    return sum;
  });
  const least = sizes.reduce((one, other) => one + other, 0) * LEAST;
  const scopes = new Map();
  sizes.forEach((size, index) => {
    if (size === 0) return;
    const scope = operators.scope[index] ?? "";
    if (!scopes.has(scope)) scopes.set(scope, new Map());
    const types = scopes.get(scope);
    const type = operators.type[index] ?? "";
    if (!types.has(type)) types.set(type, { leaves: [], small: [] });
    types.get(type)[size >= least ? "leaves" : "small"].push({ name: operators.name[index], size, index, health: operators.health[index] });
  });
  const typeNode = ([name, { leaves, small }]) => {
    const size = small.reduce((sum, one) => sum + one.size, 0);
    const rest = small.length > 1 ? [{ name: `${name} × ${small.length}`, size, index: null, health: worst(small) }] : small;
    return { name, children: [...leaves, ...rest] };
  };
  return { name: "", children: [...scopes].map(([name, types]) => ({ name, children: [...types].map(typeNode) })) };
}

function worst(some) {
  const ranks = Object.keys(marks);
  return ranks[Math.min(...some.map(({ health }) => ranks.indexOf(health)))];
}

export function Treemap({ step, parts }) {
  const root = hierarchy(bytesTree(step)).sum(({ size = 0 }) => size).sort((one, other) => other.value - one.value);
  treemap().size([WIDTH, HEIGHT]).paddingTop(({ depth }) => (depth === 1 ? TITLE : 0)).paddingInner(1)(root);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `10.5px ${getComputedStyle(document.body).fontFamily}`;
  const short = (text, width, isEnd = false) => {
    let some = text.length;
    const shown = () => (some === text.length ? text : isEnd ? `…${text.slice(-some)}` : `${text.slice(0, some)}…`);
    while (some > 0 && pen.measureText(shown()).width > width) some -= 1;
    return some > Math.min(1, text.length - 1) ? shown() : "";
  };
  const label = withoutCommonParts(step.operators.type);
  return html`<svg class="treemap" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="group" aria-label=${say("bytes")}>
    ${(root.children ?? []).map(({ data, x0, x1, y0, y1, value }) => html`<a key=${`scope ${data.name}`} href=${link("operators", parts, { q: data.name, sort: "bytes" })}><g class="scope">
      <title>${data.name || "–"}: ${bytes(value)}</title><rect x=${x0} y=${y0} width=${x1 - x0} height=${y1 - y0} />
      <text x=${x0 + 3} y=${y0 + 11}>${short(data.name || "–", x1 - x0 - 6, true)}</text></g></a>`)}
    ${root.leaves().filter(({ depth, x0, x1, y0, y1 }) => depth === 3 && x1 - x0 > 0.3 && y1 - y0 > 0.3).map(({ data, parent, x0, x1, y0, y1, value }) => html`<a key=${data.name}
      href=${data.index === null ? link("operators", parts, { q: parent.data.name, sort: "bytes" }) : panelLink(parts, data.index)}><g>
      <title>${data.name}: ${bytes(value)}, ${say(data.health)}</title>
      <rect class=${`fill-${marks[data.health]?.[0] ?? "unmeasured"}`} x=${x0} y=${y0} width=${x1 - x0} height=${y1 - y0} />
      ${y1 - y0 > 14 && html`<text x=${x0 + 3} y=${y0 + 11}>${short(label(parent.data.name), x1 - x0 - 6)}</text>`}</g></a>`)}
  </svg>`;
}

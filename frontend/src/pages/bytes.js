// Where the bytes of a step are: by scope, by type, and the largest tensors.
import { bytes, shape } from "../format.js";
import { link, panelLink } from "../state.js";
import { Treemap } from "../treemap.js";
import { count, html, shortened, withoutCommonParts } from "../view.js";
import { say } from "../words.js";

export function Bytes({ step, parts }) {
  const { operators, tensors } = step;
  const owner = [];
  operators.first.forEach((first, index) => {
    const end = operators.first[index + 1] ?? count(tensors);
    for (let at = first; at < end; at += 1) owner[at] = index;
  });
  const groups = (key) => {
    const sums = new Map();
    tensors.size_bytes.forEach((size, at) => {
      const name = key(owner[at]) || "–";
      sums.set(name, (sums.get(name) ?? 0) + (size ?? 0));
    });
    return [...sums].sort((one, other) => other[1] - one[1]);
  };
  const all = tensors.size_bytes.reduce((one, other) => one + (other ?? 0), 0) || 1;
  const bars = (some, label = (name) => name) => html`<table class="plain bars"><tbody>${some.slice(0, 30).map(([name, size]) => html`<tr key=${name}>
    <th scope="row"><a href=${link("operators", parts, { q: name === "–" ? "" : name, sort: "bytes" })} title=${name}>${label(name)}</a></th><td class="end">${bytes(size)}</td>
    <td class="wide"><svg viewBox="0 0 100 8" preserveAspectRatio="none"><rect class="fill-bytes" width=${(100 * size) / all} height="8" /></svg></td></tr>`)}</tbody></table>`;
  const largest = tensors.size_bytes.map((size, at) => [at, size ?? 0]).sort((one, other) => other[1] - one[1]).slice(0, 20);
  return html`<main><h1>${bytes(all)}</h1><${Treemap} step=${step} parts=${parts} />
    <section><h2>${say("by scope")}</h2>${bars(groups((index) => operators.scope[index]))}</section>
    <section><h2>${say("by type")}</h2>${bars(groups((index) => operators.type[index]), withoutCommonParts(operators.type))}</section>
    <section><h2>${say("largest")}</h2><table class="plain"><tbody>${largest.map(([at, size]) => html`<tr key=${at}>
      <td><a class="name" title=${operators.name[owner[at]]} href=${panelLink(parts, owner[at])}>${shortened(operators.name[owner[at]])}</a></td>
      <td>${say(tensors.io[at])} ${tensors.slot[at]}</td><td>${tensors.dtype[at]} ${shape(tensors.shape[at])}</td><td class="end">${bytes(size)}</td></tr>`)}</tbody></table></section>
  </main>`;
}

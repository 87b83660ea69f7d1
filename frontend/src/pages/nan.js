// Where values that are not finite came from and where they went: the graph of a step, with that way in red.
import { useEffect, useState } from "preact/hooks";
import { Graph } from "../graph/graph.js";
import { get } from "../source.js";
import { place, setQuery, stepParts } from "../state.js";
import { At, html, Line } from "../view.js";
import { say } from "../words.js";

export function NanPath({ nan }) {
  const { query } = place.value;
  if (nan.found.length === 0) return html`<main><p>${say(nan.text)}</p></main>`;
  const chosen = nan.found.find(({ step }) => stepParts(step).join("/") === query.step) ?? nan.found[0];
  return html`<${Way} key=${stepParts(chosen.step).join("/")} found=${nan.found} one=${chosen} />`;
}

const lists = [["sources"], ["also made", "also_made"], ["infected"], ["stopped"]];
const titleOf = ({ step, kind }) => `${kind} · ${["rank", "graph", "iteration"].map((name, part) => (step[part] === null ? "" : `${say(name)} ${step[part]} `)).join("")}`;

/** One step: its graph, and the same as lists for those who read. */
function Way({ found, one }) {
  const parts = stepParts(one.step);
  const [{ step, isAsked }, setState] = useState({ step: null, isAsked: true });
  useEffect(() => {
    let isWanted = true;
    get(`step/${parts.join("/")}`).then((answer) => isWanted && setState({ step: answer }),
      () => isWanted && setState({ step: null })); // a report may have had no room for it
    return () => { isWanted = false; };
  }, [one]);
  const all = [one.origin, ...lists.flatMap(([title, name = title]) => one[name])];
  const way = new Set(all.map(({ operator }) => operator).filter((operator) => operator !== null));
  const head = html`<div class="origin"><h1>${titleOf(one)}</h1>
    ${found.length > 1 && html`<label>${say("iteration")} <select onChange=${(event) => setQuery({ step: stepParts(found[event.currentTarget.selectedIndex].step).join("/"), open: undefined, sel: undefined })}>${
      found.map((other) => html`<option key=${other.step.join()} selected=${other === one}>${titleOf(other)}</option>`)}</select></label>`}
    <span>${say("origin")}: <${At} at=${one.origin} /> (${say(one.how)}${one.parameter === null ? "" : `, ${one.parameter}`})</span></div>
    <${Line} line=${one.line} />`;
  const text = html`<details open=${step === null}><summary>${say("the way as a list")} (${all.length})</summary>
    ${lists.map(([title, name = title]) => one[name].length > 0 && html`<h2>${say(title)} (${one[name].length})</h2>
      <ol class="chain">${one[name].slice(0, 500).map((at, index) => html`<li key=${index}><${At} at=${at} /></li>`)}</ol>`)}
    ${one.parameters.length > 0 && html`<h2>${say("parameters hit")} (${one.parameters.length})</h2>
      <ul class="chain">${one.parameters.map((name) => html`<li key=${name}>${name}</li>`)}</ul>`}</details>`;
  if (step === null) return html`<main aria-busy=${isAsked ? "true" : null}>${head}${text}</main>`;
  const { operator } = one.origin;
  return html`<${Graph} step=${step} parts=${parts} targets=${operator === null ? [...way].slice(0, 1) : [operator]} way=${way} first=${one.kind.toLowerCase()} head=${head}>${text}<//>`;
}

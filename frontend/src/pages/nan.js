// Where values that are not finite came from and where they went, step by step.
import { At, html, Line } from "../view.js";
import { say } from "../words.js";

export function NanPath({ nan }) {
  if (nan.found.length === 0) return html`<main><p>${say("nothing found")}</p></main>`;
  return html`<main>${nan.found.map((one, place) => html`<section key=${place}>
    <h1>${one.kind} · ${["rank", "graph", "iteration"].map((name, part) => one.step[part] === null ? "" : `${say(name)} ${one.step[part]} `)}</h1>
    <h2>${say("origin")}</h2><p><${At} at=${one.origin} /> (${one.how}${one.parameter === null ? "" : `, ${one.parameter}`})</p>
    <${Line} line=${one.line} />
    ${[["sources"], ["also made", "also_made"], ["infected"], ["stopped"]].map(([title, name = title]) =>
      one[name].length > 0 && html`<h2>${say(title)} (${one[name].length})</h2>
        <ol class="chain">${one[name].slice(0, 500).map((at, index) => html`<li key=${index}><${At} at=${at} /></li>`)}</ol>`)}
    ${one.parameters.length > 0 && html`<h2>${say("parameters hit")} (${one.parameters.length})</h2>
      <ul class="chain">${one.parameters.map((name) => html`<li key=${name}>${name}</li>`)}</ul>`}
  </section>`)}</main>`;
}

// One level of the scopes of a step: boxes of scopes and operators, and what flows between them.
import { Drawing } from "../drawing.js";
import { level, start } from "../scopes.js";
import { link, place } from "../state.js";
import { html } from "../view.js";
import { say } from "../words.js";

export function Graph({ step, parts }) {
  const { at } = place.value.query;
  const first = start(step.operators);
  const prefix = at === undefined ? first : at.split("/").filter(Boolean);
  const { boxes, edges, leftOut } = level(step, prefix);
  const to = (scope) => link("graph", parts, { at: scope.join("/") || "/" });
  const href = (box) => (box.scope !== null ? to(box.scope)
    : box.operators.length === 1 ? link("operator", [...parts, box.operators[0]]) : link("operators", parts, { q: box.label }));
  return html`<main>
    <nav class="crumbs" aria-label=${say("scope")}><a href=${to([])}>/</a>${prefix.map((part, place) => html`<span key=${place}> › <a href=${to(prefix.slice(0, place + 1))}>${part}</a></span>`)}</nav>
    ${boxes.length === 0 ? html`<p class="quiet">${say("nothing found")}</p>` : html`<${Drawing} boxes=${boxes} edges=${edges} href=${href} />`}
    ${edges.length === 0 && boxes.length > 1 && html`<p class="quiet">${say("Nothing is known of what flows between these.")}</p>`}
    ${leftOut > 0 && html`<p>${leftOut} ${say("left out")}</p>`}
  </main>`;
}

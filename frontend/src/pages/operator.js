// One operator: its line, numbers, attributes, pictures, who made and who reads its tensors. A page, and the panel beside others.
import { useOptional } from "../answers.js";
import { bookmarks, toggled } from "../bookmarks.js";
import { Drawing } from "../drawing.js";
import { Attributes, Commands, SourceLine } from "../panel/about.js";
import { Operands } from "../panel/operands.js";
import { Pictures } from "../panel/pictures.js";
import { neighbourhood, readersOf } from "../scopes.js";
import { panelLink, setQuery } from "../state.js";
import { count, Health, html, row } from "../view.js";
import { say } from "../words.js";

const MAX_PICTURES = 4; // that are drawn unasked
const MAX_READERS = 50;

/** The page of an operator, which a link may lead to. */
export const Operator = (props) => html`<main><${OperatorView} ...${props} /></main>`;

/** What the page and the panel show. Links in it open where it stands. */
export function OperatorView({ step, parts, index, overview, isPanel = false }) {
  const { operators, tensors, lines } = step;
  const path = `golden/${parts.join("/")}`;
  const golden = useOptional(overview.pages.includes(path) ? path : null);
  if (golden === undefined) return html`<p aria-busy="true">…</p>`;
  const operator = row(operators, index);
  const partner = golden?.operators.name[index] ?? null;
  const end = operators.first[index + 1] ?? count(tensors);
  const own = Array.from({ length: end - operator.first }, (_, place) => ({ at: operator.first + place, ...row(tensors, operator.first + place) }));
  // What an operator made is looked at before what it was given.
  const pictured = [...own.filter(({ io }) => io === "output"), ...own.filter(({ io }) => io !== "output")].filter((one) => one.exponents !== null || one.has_elements);
  const readers = readersOf(step, index);
  const to = (number) => html`<a class="name" href=${panelLink(parts, number)}>${operators.name[number]}</a>`;
  const guessed = step.flow === "recovered" && html` <span class="quiet" title=${say("No graph file is beside this dump: what flows was recovered from equal tensors.")}>(${say("by equal values")})</span>`;
  const place = [...parts, String(index)];
  const isMarked = bookmarks().some((one) => one.join() === place.join());
  const line = operator.line === null ? null : lines[operator.line];
  return html`<article class="one">
    <header class="operator">${isPanel ? html`<h2>${operator.name}</h2>` : html`<h1>${operator.name}</h1>`}
      <p>${operator.type} · #${index} <${Health} health=${operator.health} />${partner !== null && partner !== operator.name && html` <span class="quiet">${say("golden")}: <span class="name">${partner}</span></span>`}</p>
      <nav>
        <a id="previous" title=${`${say("previous")} (k)`} class=${index === 0 ? "off" : ""} href=${panelLink(parts, Math.max(0, index - 1))}>← ${say("previous")}</a>
        <a id="next" title=${`${say("next")} (j)`} class=${index + 1 >= count(operators) ? "off" : ""}
          href=${panelLink(parts, Math.min(count(operators) - 1, index + 1))}>${say("next")} →</a>
        <button title=${`${say("bookmark")} (b)`} aria-pressed=${isMarked} aria-label=${say("bookmark")} onClick=${() => setQuery({ b: toggled(bookmarks(), place) })}>★</button>
      </nav>
      <${SourceLine} step=${step} index=${index} golden=${golden} />
    </header>
    ${own.length > 0 && html`<section><h2>${say("Numbers")}</h2><${Operands} own=${own} golden=${golden} madeBy=${({ source }) => (source === null ? null : html`${to(source)}${guessed}`)} /></section>`}
    <${Attributes} mine=${operator.attrs} golden=${golden === null || partner === null ? null : golden.operators.attrs[index]} />
    ${readers.length > 0 && html`<section><h2>${say("read by")}${guessed}</h2><ul class="readers">${readers.slice(0, MAX_READERS).map(
      (one) => html`<li key=${one}>${to(one)}</li>`)}${readers.length > MAX_READERS && html`<li class="quiet">… ${readers.length}</li>`}</ul></section>`}
    ${pictured.length > 0 && html`<section><h2>${say("Tensors")}</h2>${pictured.map((tensor, place) => html`<${Pictures} key=${tensor.at} tensor=${tensor} parts=${parts} golden=${golden} isShown=${place < MAX_PICTURES} />`)}</section>`}
    <${Nearby} step=${step} parts=${parts} index=${index} />
    <${Commands} overview=${overview} name=${operator.name} parts=${parts} line=${line} hasElements=${own.some((one) => one.has_elements)} />
  </article>`;
}

/** The operators around this one, two steps in each direction. */
function Nearby({ step, parts, index }) {
  const around = neighbourhood(step, index);
  if (around.edges.length === 0) return null;
  return html`<section><h2>${say("Graph")}</h2><${Drawing} ...${around} current=${`operator ${index}`}
    href=${({ operators: [one] }) => panelLink(parts, one)} /></section>`;
}

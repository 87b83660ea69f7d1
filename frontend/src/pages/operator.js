// One operator: its tensors with their numbers, who made and who reads them, its line and its attributes.
import { neighbourhood, readersOf } from "../scopes.js";
import { Drawing } from "../drawing.js";
import { Copy } from "../copy.js";
import { Thumbnail } from "../heatmap.js";
import { Exponents } from "../exponents.js";
import { bytes, number, shape } from "../format.js";
import { progress } from "../source.js";
import { link, panelLink } from "../state.js";
import { count, Health, html, Line, row } from "../view.js";
import { say } from "../words.js";

const MAX_PICTURES = 12; // that one page asks for

/** The page of an operator, which a link may lead to. */
export const Operator = (props) => html`<main><${OperatorView} ...${props} /></main>`;

/** What the page and the panel show. Links in it open where it stands. */
export function OperatorView({ step, parts, index, overview, isPanel = false }) {
  const { operators, tensors, lines } = step;
  const operator = row(operators, index);
  const end = operators.first[index + 1] ?? count(tensors);
  const own = Array.from({ length: end - operator.first }, (_, place) => ({ at: operator.first + place, ...row(tensors, operator.first + place) }));
  const readers = readersOf(step, index);
  const to = (number) => html`<a class="name" href=${panelLink(parts, number)}>${operators.name[number]}</a>`;
  const side = (title, io) => {
    const some = own.filter((one) => one.io === io);
    return some.length > 0 && html`<section><h2>${say(title)}</h2>${some.map((one) => html`<${Tensor} key=${one.at} tensor=${one}
      of=${one.source === null ? null : to(one.source)} parts=${parts} first=${operator.first} />`)}</section>`;
  };
  return html`<article class="one">
    <header class="operator">${isPanel ? html`<h2>${operator.name}</h2>` : html`<h1>${operator.name}</h1>`}
      <p>${operator.type} · #${index} <${Health} health=${operator.health} /></p>
      <nav>
        <a id="previous" class=${index === 0 ? "off" : ""} href=${panelLink(parts, Math.max(0, index - 1))}>← ${say("previous")}</a>
        <a id="next" class=${index + 1 >= count(operators) ? "off" : ""}
          href=${panelLink(parts, Math.min(count(operators) - 1, index + 1))}>${say("next")} →</a>
        <${Copy} text=${`msdump show ${quoted(overview.path)} ${quoted(operator.name)}`} />
      </nav>
      <${Line} line=${operator.line === null ? null : lines[operator.line]} />
    </header>
    ${side("Inputs", "input")}${side("Outputs", "output")}
    <${Nearby} step=${step} parts=${parts} index=${index} />
    ${readers.length > 0 && html`<section><h2>${say("read by")}</h2><ul>${readers.slice(0, 50).map(
      (one) => html`<li key=${one}>${to(one)}</li>`)}</ul></section>`}
    ${operator.attrs !== null && operator.attrs.length > 0 && html`<section><h2>${say("Attributes")}</h2><table class="plain"><tbody>${
      operator.attrs.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td>${value}</td></tr>`)}</tbody></table></section>`}
  </article>`;
}

/** The operators around this one, two steps in each direction. */
function Nearby({ step, parts, index }) {
  const around = neighbourhood(step, index);
  if (around.edges.length === 0) return null;
  return html`<section><h2>${say("Graph")}</h2><${Drawing} ...${around} current=${`operator ${index}`}
    href=${({ operators: [one] }) => panelLink(parts, one)} /></section>`;
}

function Tensor({ tensor, of, parts, first }) {
  const numbers = [["max", "max"], ["min", "min"], ["mean", "avg"], ["L2", "l2norm"], ["NaN", "nan"], ["−Inf", "negative_inf"],
    ["+Inf", "positive_inf"], ["zero", "zero"], ["error", "error"]];
  return html`<article class="tensor">
    <h3>${say(tensor.io)} ${tensor.slot} <span class="quiet">${tensor.dtype} ${shape(tensor.shape)} ${bytes(tensor.size_bytes)}</span>
      ${" "}<${Health} health=${tensor.health} /></h3>
    ${tensor.parameter !== null && html`<p>${tensor.is_gradient ? "∂ " : ""}${tensor.parameter}</p>`}
    ${of !== null && html`<p>${say("made by")} ${of}</p>`}
    <dl>${numbers.filter(([, name]) => tensor[name] !== null).map(([title, name]) => html`<div key=${name}
      class=${["nan", "negative_inf", "positive_inf"].includes(name) && tensor[name] > 0 ? "bad" : ""}>
      <dt>${say(title)}</dt><dd data-value=${name}>${number(tensor[name])}</dd></div>`)}</dl>
    <div class="pictures"><${Exponents} counts=${tensor.exponents} />
      ${tensor.has_elements && progress.value !== null && tensor.at - first < MAX_PICTURES && html`<${Thumbnail} parts=${parts} number=${tensor.at} />`}</div>
    <p class="quiet">${say("file")} <code>${tensor.file}</code>${tensor.has_elements && progress.value !== null
      && html` <a class="elements-link" href=${link("tensor", [...parts, tensor.at])}>${say("elements")}</a>`}</p>
  </article>`;
}

/** For a shell of POSIX. */
const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// What is known of an operator besides its tensors: the line that made it, its attributes, what to do next.
import { Copy } from "../copy.js";
import { html } from "../view.js";
import { say } from "../words.js";
import { attributeRows, callsOf, commandsOf, linesAround } from "./model.js";

const SHOWN_CALLS = 1; // that are shown unasked

/** The operator's line among those around it that the dump holds, the calls that led to it, and golden's line if it is another one. */
export function SourceLine({ step, index, golden }) {
  const at = step.operators.line[index];
  if (at === null) return null;
  const [path] = step.lines[at];
  const calls = callsOf(step, index);
  const other = golden ? golden.operators.line[index] : null;
  const isOther = other !== null && String(golden.lines[other]) !== String(step.lines[at]);
  const one = ([file, number, code], key) => html`<li key=${key}><span class="where" title=${file}>${file.split(/[/\\]/).slice(-2).join("/")}:${number}</span><code>${code}</code></li>`;
  return html`<div class="source">
    ${calls.length > 0 && html`<details class="calls" open=${calls.length <= SHOWN_CALLS}><summary class="quiet">${say("called from")} (${calls.length})</summary><ol>${calls.map(one)}</ol></details>`}
    <div class="listing" role="group" aria-label=${say("Source line")}><div class="quiet">${path}</div>${linesAround(step.lines, at).map(({ number, code, isOwn }) => html`<div key=${number}
      class=${isOwn ? "own" : ""} aria-current=${isOwn ? "true" : null}><span class="where end">${number}</span><code>${code}</code></div>`)}</div>
    ${isOther && html`<p class="differs">≠ ${say("golden")}: <span class="where">${golden.lines[other][0]}:${golden.lines[other][1]}</span><code>${golden.lines[other][2]}</code></p>`}
  </div>`;
}

/** Attributes, those that differ from the golden side first. */
export function Attributes({ mine, golden }) {
  const rows = attributeRows(mine, golden);
  if (rows.length === 0) return null;
  const differing = rows.filter(({ differs }) => differs).length;
  return html`<section><h2>${say("Attributes")} ${golden !== null && html`<span class=${differing ? "differs" : "quiet"}>${
    differing ? `≠ ${say("other than golden")}: ${differing}` : say("the same as golden")}</span>`}</h2>
    <table class="plain attributes">${differing > 0 && html`<thead><tr><td></td><th scope="col">${say("mine")}</th><th scope="col">${say("golden")}</th></tr></thead>`}
      <tbody>${rows.map((one) => html`<tr key=${one.name} class=${one.differs ? "differs" : ""}><th scope="row">${one.name}</th><td>${one.mine ?? "–"}</td>${
        differing > 0 && html`<td>${one.differs ? one.golden ?? "–" : html`<span class="quiet">${say("same")}</span>`}</td>`}</tr>`)}</tbody></table></section>`;
}

/** Commands of a terminal that go on from here. */
export function Commands({ overview, name, parts, line, hasElements }) {
  return html`<section class="commands"><h2>${say("Commands")}</h2>${commandsOf(overview, name, parts, { line, hasElements }).map(([what, text]) => html`<div key=${what}>
    <span>${say(what)}</span><code>${text}</code><${Copy} text=${text} label="copy" /></div>`)}</section>`;
}

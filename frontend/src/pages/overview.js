// The verdict, what was found, the steps, and what could not be read.
import { bytes } from "../format.js";
import { link, stepParts } from "../state.js";
import { At, count, Health, html, Line, marks, Outvoted, row } from "../view.js";
import { say } from "../words.js";

export function Overview({ overview }) {
  const { verdict, findings, steps, healths } = overview;
  const sum = (values) => values.reduce((one, other) => one + other, 0);
  const cards = [
    ["Steps", count(steps)], ["operators", sum(steps.operators)], ["tensors", sum(steps.tensors)],
    ["bytes", bytes(sum(steps.size_bytes))],
  ];
  return html`<main>
    <section class="verdict ${verdict.kind === "ok" ? "good" : "bad"}" aria-label=${say("verdict")}>
      <h1>${verdict.kind === "ok" ? "✔" : "✖"} ${verdict.text}</h1>
      ${findings.map((one) => html`<article key=${one.kind}>
        <h2>${one.title.split(":")[0]}: <${At} at=${one.at} /></h2><pre>${one.text}</pre><${Line} line=${one.line} />
      </article>`)}
    </section>
    <section class="cards">${cards.map(([name, value]) =>
      html`<div key=${name}><b>${value}</b><span>${say(name)}</span></div>`)}</section>
    ${overview.notes?.map((one) => html`<p class="note" key=${one}>${one}</p>`)}
    <section><h2>${say("Steps")}</h2>
      <table class="plain"><thead><tr>${["rank", "graph", "iteration", "operators", "tensors", "bytes", "health"].map(
        (name) => html`<th key=${name} scope="col">${say(name)}</th>`)}</tr></thead>
        <tbody>${Array.from({ length: count(steps) }, (_, index) => {
          const one = row(steps, index);
          const parts = stepParts([one.rank, one.graph, one.iteration]);
          return html`<tr key=${index}>${parts.map((part, at) => html`<td>${part}${at === 0 && html` <${Outvoted} overview=${overview} rank=${part} />`}</td>`)}
            <td><a href=${link("operators", parts)}>${one.operators}</a></td><td>${one.tensors}</td>
            <td>${bytes(one.size_bytes)}</td><td><${Health} health=${one.health} /> <${Counts} counts=${one.counts} healths=${healths} /></td></tr>`;
        })}</tbody></table>
    </section>
    <${Problems} title="damaged files" problems=${overview.damaged} />
    <${Problems} title="foreign files" problems=${overview.foreign} />
    ${overview.left_out.length > 0 && html`<section><h2>${say("left out")}</h2><ul>${overview.left_out.map(
      (one) => html`<li key=${one}>${one}</li>`)}</ul></section>`}
  </main>`;
}

function Counts({ counts, healths }) {
  const all = counts.reduce((one, other) => one + other, 0) || 1;
  const title = healths.map((name, place) => `${say(name)}: ${counts[place]}`).filter((_, place) => counts[place]);
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${title.join(", ")}>
    <title>${title.join(", ")}</title>${counts.map((some, place) => {
      const before = counts.slice(0, place).reduce((one, other) => one + other, 0);
      return html`<rect key=${place} class="fill-${marks[healths[place]]?.[0]}" x=${(100 * before) / all} width=${(100 * some) / all} height="8" />`;
    })}</svg>`;
}

function Problems({ title, problems }) {
  if (problems.length === 0) return null;
  return html`<section><h2>${say(title)} (${problems.length})</h2><ul class="problems">${problems.slice(0, 200).map(
    ([file, reason], place) => html`<li key=${place}><code>${file}</code> ${reason}</li>`)}</ul></section>`;
}

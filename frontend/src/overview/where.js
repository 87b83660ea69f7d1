// Which step is looked at, as three controls with words: rank, part of a training step, iteration.
import { follow, link, place, stepParts } from "../state.js";
import { count, Health, html, outvotedRanks, row } from "../view.js";
import { say } from "../words.js";

/** All steps: [{parts: [rank, graph, iteration] of a link, part: word, health}]. */
export const stepsOf = (overview) => Array.from({ length: count(overview.steps) }, (_, index) => {
  const one = row(overview.steps, index);
  return { parts: stepParts([one.rank, one.graph, one.iteration]), part: one.part, health: one.health };
});

/** What the three controls offer beside a step: ranks, graphs of its rank [{graph, word}], and iterations of its graph. */
export function choices(steps, chosen) {
  const [rank, graph] = chosen;
  const ranks = [...new Set(steps.map(({ parts }) => parts[0]))];
  const graphs = new Map();
  for (const { parts, part } of steps) if (parts[0] === rank && !graphs.has(parts[1])) graphs.set(parts[1], part);
  const order = ["construction", "forward", "backward", "optimizer", "step", "parameters"];
  const words = [...graphs].map(([number, part]) => ({ graph: number, part, isOne: [...graphs.values()].filter((one) => one === part).length === 1 }))
    .sort((one, other) => order.indexOf(one.part) - order.indexOf(other.part));
  const own = steps.filter(({ parts }) => parts[0] === rank && parts[1] === graph);
  return { ranks, graphs: words, iterations: own.map(({ parts }) => parts[2]), steps: own };
}

/** The step of a wanted rank, graph and iteration, or the nearest one: the same rank before the same graph before the iteration. */
export function nearest(steps, [rank, graph, iteration]) {
  const among = (some, at, value) => {
    const same = some.filter(({ parts }) => parts[at] === value);
    return same.length > 0 ? same : some;
  };
  const found = among(among(steps, 0, rank), 1, graph);
  const distance = ({ parts }) => (parts[2] === iteration ? 0 : Math.abs(Number(parts[2]) - Number(iteration)) || 1e9);
  return found.reduce((best, one) => (distance(one) < distance(best) ? one : best), found[0])?.parts;
}

/** Pages that show one step; others have no use for the controls. */
const pageOf = (page) => (["operator", "tensor"].includes(page) ? "operators" : page);

export function Where({ overview, chosen: asked }) {
  const { page, query } = place.value;
  const steps = stepsOf(overview);
  if (asked === undefined || steps.length < 2 || page === "overview" || page === "nan") return null;
  // An address that was typed may name a step that is not there: the nearest one has a way on.
  const chosen = steps.some(({ parts }) => parts.join() === asked.join()) ? asked : nearest(steps, asked);
  const { ranks, graphs, iterations, steps: own } = choices(steps, chosen);
  const outvoted = outvotedRanks(overview);
  const [rank, graph, iteration] = chosen;
  const at = iterations.indexOf(iteration);
  const to = (parts) => link(pageOf(page), nearest(steps, parts), pageOf(page) === page ? query : {});
  const go = (parts) => follow(to(parts));
  const word = ({ graph: number, part, isOne }) => `${say(part)}${isOne ? "" : ` ${number}`}`;
  const isTrend = page === "trend";
  return html`<div class="where-now" role="group" aria-label=${say("Step")}>
    ${ranks.length > 1 && page !== "ranks" && html`<label>${say("rank")} <select onChange=${(event) => go([ranks[event.currentTarget.selectedIndex], graph, iteration])}>${ranks.map(
      (one) => html`<option key=${one} selected=${one === rank}>${one}${outvoted.has(one) ? ` ≠ ${say("outvoted")}` : ""}</option>`)}</select></label>`}
    ${graphs.length > 1 && (graphs.length > 6
      ? html`<label>${say("part")} <select onChange=${(event) => go([rank, graphs[event.currentTarget.selectedIndex].graph, iteration])}>${graphs.map(
        (one) => html`<option key=${one.graph} selected=${one.graph === graph}>${word(one)}</option>`)}</select></label>`
      : html`<span role="group" aria-label=${say("part")}>${graphs.map((one) => html`<button key=${one.graph} aria-pressed=${one.graph === graph}
        onClick=${() => go([rank, one.graph, iteration])}>${word(one)}</button>`)}</span>`)}
    ${!isTrend && iterations.length > 1 && html`<span class="iteration"><button disabled=${at <= 0} aria-label=${say("iteration before")} title="[" onClick=${() => go([rank, graph, iterations[at - 1]])}>‹</button>
      <label> ${say("iteration")} <input type="number" list="iterations" min=${iterations[0]} max=${iterations.at(-1)} value=${iteration}
        onChange=${(event) => go([rank, graph, String(Math.trunc(Number(event.currentTarget.value)))])} /></label> <span class="quiet">${say("of")} ${iterations[0]}–${iterations.at(-1)}</span>
      <button disabled=${at < 0 || at >= iterations.length - 1} aria-label=${say("iteration after")} title="]" onClick=${() => go([rank, graph, iterations[at + 1]])}>›</button></span>`}
    ${!isTrend && own[at] !== undefined && html`<${Health} health=${own[at].health} />`}
  </div>`;
}

/** A page that is not there, with a way back. */
export function NotFound({ message }) {
  return html`<main><section class="headline bad"><h1>${say("There is no such page in this dump.")}</h1><p role="alert">${message}</p>
    <div class="next"><a class="go" href=${link("overview")}>← ${say("Overview")}</a></div></section></main>`;
}

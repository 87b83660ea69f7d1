// The lines of the user's script that made operators, with the worst health of what they made.
import { useEffect } from "preact/hooks";
import { panelLink } from "../state.js";
import { count, Health, html, isBad, marks, withoutCommonParts } from "../view.js";
import { say } from "../words.js";

const MOST_JUMPS = 8;

export function Lines({ step, parts }) {
  const { operators, lines } = step;
  const ranks = Object.keys(marks);
  const made = lines.map(() => []);
  for (let index = 0; index < count(operators); index += 1) {
    if (operators.line[index] !== null) made[operators.line[index]].push(index);
  }
  // Lines that only call others made nothing.
  const order = lines.map((_, place) => place).filter((place) => made[place].length > 0).sort((one, other) =>
    lines[one][0] === lines[other][0] ? lines[one][1] - lines[other][1] : lines[one][0] < lines[other][0] ? -1 : 1);
  const label = withoutCommonParts(operators.type);
  const worst = (some) => ranks[Math.min(...some.map((index) => ranks.indexOf(operators.health[index])))];
  const bad = order.filter((place) => isBad(worst(made[place])));
  const jump = (place) => document.getElementById(`line-${place}`)?.scrollIntoView({ block: "center" });
  // Where something is wrong the page opens there.
  useEffect(() => { if (bad.length > 0) jump(bad[0]); }, [step]);
  if (order.length === 0) return html`<main><p class="quiet">${say("This dump does not tell which lines of a script made its operators.")}</p></main>`;
  return html`<main>${bad.length > 0 && html`<div class="tools jumps" role="group" aria-label=${say("lines that are not well")}>${bad.slice(0, MOST_JUMPS).map((place) => html`<button key=${place}
      onClick=${() => jump(place)}><${Health} health=${worst(made[place])} /> ${lines[place][0].split(/[/\\]/).at(-1)}:${lines[place][1]}</button>`)}${bad.length > MOST_JUMPS && html`<span class="quiet">… ${bad.length}</span>`}</div>`}
    <table class="plain code"><tbody>${order.map((place, at) => html`
    ${(at === 0 || lines[order[at - 1]][0] !== lines[place][0]) && html`<tr><th colspan="4" scope="rowgroup">${lines[place][0]}</th></tr>`}
    <tr key=${place} id=${`line-${place}`}><td><${Health} health=${worst(made[place])} /></td><td class="end">${lines[place][1]}</td><td><code>${lines[place][2]}</code></td>
      <td>${typesOf(operators, made[place]).map(([type, some]) => html`<span key=${type} class="type"><a href=${panelLink(parts, some[0])} title=${type}>${label(type)}</a>${some.length > 1 && html`<span class="quiet"> × ${some.length}</span>`}</span>${" "}`)}</td></tr>`)}</tbody></table></main>`;
}

/** Each type once, with its operators, the worst of them first. */
export function typesOf({ type, health }, numbers) {
  const ranks = Object.keys(marks);
  const groups = new Map();
  for (const number of numbers) groups.set(type[number], [...(groups.get(type[number]) ?? []), number]);
  return [...groups].map(([name, some]) => [name, some.sort((one, other) => ranks.indexOf(health[one]) - ranks.indexOf(health[other]) || one - other)]);
}

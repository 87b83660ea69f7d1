// The lines of the user's script that made operators, with the worst health of what they made.
import { panelLink } from "../state.js";
import { count, Health, html, marks } from "../view.js";
import { say } from "../words.js";

export function Lines({ step, parts }) {
  const { operators, lines } = step;
  const ranks = Object.keys(marks);
  const made = lines.map(() => []);
  for (let index = 0; index < count(operators); index += 1) {
    if (operators.line[index] !== null) made[operators.line[index]].push(index);
  }
  const order = lines.map((_, place) => place).sort((one, other) =>
    lines[one][0] === lines[other][0] ? lines[one][1] - lines[other][1] : lines[one][0] < lines[other][0] ? -1 : 1);
  const worst = (some) => ranks[Math.min(...some.map((index) => ranks.indexOf(operators.health[index])))];
  if (lines.length === 0) return html`<main><p class="quiet">${say("This dump does not tell which lines of a script made its operators.")}</p></main>`;
  return html`<main><table class="plain code"><tbody>${order.map((place, at) => html`
    ${(at === 0 || lines[order[at - 1]][0] !== lines[place][0]) && html`<tr><th colspan="4" scope="rowgroup">${lines[place][0]}</th></tr>`}
    <tr key=${place}><td><${Health} health=${worst(made[place])} /></td><td class="end">${lines[place][1]}</td><td><code>${lines[place][2]}</code></td>
      <td>${made[place].slice(0, 8).map((index) => html`<a key=${index} href=${panelLink(parts, index)}>${operators.type[index]}</a>${" "}`)}${
        made[place].length > 8 ? `… ${made[place].length}` : ""}</td></tr>`)}</tbody></table></main>`;
}

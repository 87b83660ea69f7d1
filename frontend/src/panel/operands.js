// The numbers of all tensors of an operator in one table: of this dump, of the golden one, and what is between them.
import { bytes, number, shape } from "../format.js";
import { Health, html, Num } from "../view.js";
import { say } from "../words.js";
import { apart, goldenTensor } from "./model.js";

const COLUMNS = [["max", "max"], ["min", "min"], ["mean", "avg"], ["L2", "l2norm"], ["NaN", "nan"], ["−Inf", "negative_inf"],
  ["+Inf", "positive_inf"], ["zero", "zero"]];
const RARE = ["negative_inf", "positive_inf"];
const BAD = ["nan", ...RARE];

/** own: rows of the step's tensors with their number `at`; madeBy: tensor -> a link or null */
export function Operands({ own, golden, madeBy }) {
  const pairs = own.map((mine) => [mine, goldenTensor(golden, mine, mine.at)]);
  const columns = COLUMNS.filter(([, name]) => !RARE.includes(name) || pairs.some((sides) => sides.some((side) => side?.[name] > 0)));
  const cells = (side, change = (name) => side[name]) => columns.map(([, name]) => {
    const value = change(name);
    return html`<td key=${name} class=${BAD.includes(name) && value > 0 ? "bad end" : value === 0 ? "nought end" : "end"} data-value=${side === null ? undefined : name}><${Num} value=${value} /></td>`;
  });
  return html`<div class="scrolled" tabindex="0" role="group" aria-label=${say("Numbers")}><table class="operands"><thead><tr><td></td>${columns.map(
    ([title, name]) => html`<th key=${name} class="end" scope="col">${say(title)}</th>`)}</tr></thead>
    ${pairs.map(([mine, other]) => html`<tbody key=${mine.at} class="operand">
      <tr class="operand-head"><th scope="rowgroup" colspan=${columns.length + 1}><b>${say(mine.io)} ${mine.slot}</b> ${mine.dtype} ${shape(mine.shape)}${" "}
        <span class="quiet">${bytes(mine.size_bytes)}</span> ${" "}<${Health} health=${mine.health} />
        ${mine.parameter !== null && html` <span class="quiet">${mine.is_gradient ? "∂ " : ""}${mine.parameter}</span>`}
        ${madeBy(mine) !== null && html`<div class="from">← ${madeBy(mine)}</div>`}
        ${other !== null && html`<${Result} mine=${mine} golden=${other} />`}</th></tr>
      <tr>${other === null ? html`<td></td>` : html`<th scope="row">${say("mine")}</th>`}${cells(mine)}</tr>
      ${other !== null && other.max !== null && html`<tr class="golden"><th scope="row">${say("golden")}</th>${cells(null, (name) => other[name])}</tr>
        <tr class="between"><th scope="row">${say("difference")}</th>${cells(null, (name) => apart(mine[name], other[name]))}</tr>`}
    </tbody>`)}</table></div>`;
}

/** What the comparison says of a pair. */
function Result({ mine, golden }) {
  const isBad = golden.status === "differs";
  const others = [golden.dtype !== mine.dtype && golden.dtype, String(golden.shape) !== String(mine.shape) && shape(golden.shape)].filter(Boolean);
  const text = isBad ? `≠ ${say(golden.reason)}` : `${say(golden.status)}${golden.reason ? `: ${say(golden.reason)}` : ""}`;
  return html`<div class=${isBad ? "differs" : "quiet"}>${text}${golden.status === "agrees" && golden.error !== null
    && html`, ${say("relative error")} <${Num} value=${golden.error} />${golden.tolerance > 0 && ` ≤ ${number(golden.tolerance)}`}`}${
    others.length > 0 && ` · ${say("golden")}: ${others.join(" ")}`}</div>`;
}

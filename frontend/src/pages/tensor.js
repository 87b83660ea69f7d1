// The elements of one tensor, a part at a time: as a picture, as text, as a file. From a server only.
import { useEffect, useState } from "preact/hooks";
import { number, shape } from "../format.js";
import { axisStarts, HeatMap, LinePlot } from "../heatmap.js";
import { getPicture, getText, isFramed, partAddress } from "../source.js";
import { link, place, setQuery } from "../state.js";
import { Copy } from "../copy.js";
import { Histogram, isDistance, Sides } from "../panel/pictures.js";
import { count, Health, html, row } from "../view.js";
import { say } from "../words.js";

export function Tensor({ step, parts, number: id, overview }) {
  const { operators, tensors } = step;
  const tensor = row(tensors, id);
  const owner = ownerOf(operators, id);
  const { index = "", what = "", h = "" } = place.value.query;
  const [state, setState] = useState({});
  const asked = { index, what };
  const address = partAddress("picture", parts, id, asked);
  useEffect(() => {
    const stop = new AbortController();
    Promise.all([getPicture(address, stop.signal), getText(partAddress("text", parts, id, asked), stop.signal)]).then(
      ([picture, text]) => setState({ address, picture, text }),
      (error) => error.name !== "AbortError" && setState({ address, error }),
    );
    return () => stop.abort();
  }, [address]);
  const shown = state.address === address ? state : { picture: state.picture, text: state.text };
  const current = shown.picture?.about.index ?? index;
  const other = (part, way) => html`<a class=${part === null ? "off" : ""} href=${link("tensor", [...(part ?? parts), id], asked)}>${way}</a>`;
  return html`<main>
    <header class="operator"><h1><a class="name" href=${link("operator", [...parts, owner])}>${operators.name[owner]}</a> ${say(tensor.io)} ${tensor.slot}</h1>
      <p>${tensor.dtype} ${shape(tensor.shape)} <${Health} health=${tensor.health} /></p>
      <nav>
        ${neighbours(overview, parts).map((part, place) => other(part, place === 0 ? `[ ${say("iteration")} −` : `${say("iteration")} + ]`))}
        ${overview.golden !== null && html`<${Sides} shown=${what || "mine"} onPick=${(side) => setQuery({ what: side === "mine" ? "" : side })} />`}
        <${Copy} text=${python(overview.path, tensor, operators.name[owner], current)} label="copy Python" />
        ${!isFramed() && html`<a href=${partAddress("npy", parts, id, { ...asked, index: current })} download=${`part.npy`}>npy</a>`}
      </nav>
    </header>
    <${Axes} sizes=${tensor.shape} index=${current} />
    ${shown.error && html`<p role="alert">${shown.error.message}</p>`}
    ${!shown.error && !shown.picture && html`<p aria-busy="true">…</p>`}
    ${!shown.error && shown.picture && html`<div aria-busy=${state.address !== address}>
      <div class="both"><div>${shown.picture.about.rows === 1 && shown.picture.about.columns > 1 ? html`<${LinePlot} picture=${shown.picture} />`
        : html`<${HeatMap} key=${what} picture=${shown.picture} mostHigh=${512} isDistance=${isDistance(what || "mine")} onZoom=${(down, across) => setQuery({ index: zoomed(shown.picture.about, down, across) })} />`}</div>
      <details class="spread" open=${h !== "0"} onToggle=${(event) => event.currentTarget.open !== (h !== "0") && setQuery({ h: event.currentTarget.open ? "" : "0" })}><summary>${say("histogram")}</summary>
        ${h !== "0" && html`<${Histogram} parts=${parts} number=${id} query=${{ ...asked, index: current }} />`}</details></div>
      <${Elements} text=${shown.text} axes=${shown.picture.about.axes} />
    </div>`}
  </main>`;
}

/** A field for the whole index, and a slider for each axis that is a number. */
function Axes({ sizes, index }) {
  const items = index === "" ? [] : index.split(",").map((item) => item.trim());
  const change = (axis, value) => setQuery({ index: items.map((item, at) => (at === axis ? value : item)).join(", ") });
  return html`<div class="axes"><label>[ <input id="index" aria-label=${say("index")} value=${index} size=${Math.max(16, index.length + 2)}
      onChange=${(event) => setQuery({ index: event.currentTarget.value })} /> ]</label>
    <button onClick=${() => setQuery({ index: "" })}>${say("first matrix")}</button>
    ${items.map((item, axis) => /^-?\d+$/.test(item) && sizes[axis] > 1 && html`<label key=${axis}>${say("axis")} ${axis}
      <input type="range" min="0" max=${sizes[axis] - 1} value=${item < 0 ? Number(item) + sizes[axis] : item}
        onInput=${(event) => change(axis, event.currentTarget.value)} /></label>`)}</div>`;
}

/** The first elements as text, with the numbers that their rows and columns have in the tensor; axes: of the tensor, that are shown. */
function Elements({ text, axes }) {
  const { rows, columns } = text;
  const shown = text.text[0]?.length ?? 0;
  const isWhole = text.text.length === rows && shown === columns;
  const starts = axisStarts({ index: text.index, axes });
  const name = ([start, stride], at) => start + at * stride;
  return html`<section><h2>${say("elements")} <span class="quiet">${text.text.length} × ${shown}${isWhole ? "" : ` ${say("of")} ${rows} × ${columns}`}</span></h2>
    <div class="elements" tabindex="0" role="group" aria-label=${say("elements")}><table>
      <thead><tr><td></td>${Array.from({ length: shown }, (_, column) => html`<th key=${column} scope="col">${name(starts.columns, column)}</th>`)}</tr></thead>
      <tbody>${text.text.map((line, at) => html`<tr key=${at}><th scope="row">${name(starts.rows, at)}</th>${line.map(
        (one, column) => html`<td key=${column} title=${one} class=${/nan|inf/.test(one) ? "bad" : ""}>${brief(one)}</td>`)}</tr>`)}</tbody></table></div></section>`;
}

const LONG = 9; // letters of a number that is shown as it is

/** An element in four digits where it has many more; complex numbers, booleans and what is not finite as they are. */
export function brief(text) {
  return text.length <= LONG || !Number.isFinite(Number(text)) ? text : number(Number(text));
}

/** The number of the operator that a tensor belongs to. */
export function ownerOf(operators, number) {
  let [low, high] = [0, count(operators) - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (operators.first[middle] <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The same graph one iteration before and after, as parts of a link; null where there is none. */
export const neighbours = ({ steps }, parts) => beside(steps, parts, 2, "iteration");

/** The same graph and iteration of the rank before and after, as parts of a link; null where there is none. */
export const ranksBeside = ({ steps }, parts) => beside(steps, parts, 0, "rank");

/** The steps before and after that differ in one part only. */
function beside(steps, parts, part, name) {
  const same = (value, text) => (value === null ? "-" : String(value)) === text;
  const others = ["rank", "graph", "iteration"].map((one, at) => [steps[one], parts[at], at]).filter(([, , at]) => at !== part);
  const all = steps[name].filter((one, at) => one !== null && others.every(([values, text]) => same(values[at], text)));
  const sorted = all.sort((one, another) => one - another);
  const at = sorted.findIndex((one) => same(one, parts[part]));
  return [sorted[at - 1], at < 0 ? undefined : sorted[at + 1]].map((one) => (one === undefined ? null : [...parts.slice(0, part), String(one), ...parts.slice(part + 1)]));
}

/** An index of the elements of one cell and those around it: an eighth of what is shown now, in each direction. */
export function zoomed({ index, axes, rows, columns, row_step: down, column_step: across, cell_rows: height, cell_columns: width }, row, column) {
  const items = index.split(",").map((item) => item.trim());
  const sizes = axes.length === 2 ? [[rows, down, height, row], [columns, across, width, column]] : [[columns, across, width, column]];
  axes.forEach((axis, place) => {
    const [size, step, cells, at] = sizes[place];
    if (step === 1) return;
    const [begin, , stride] = items[axis].split(":");
    if (stride) return; // a part with a step of its own has no simple middle
    const half = Math.max(step, Math.floor((cells * step) / 16));
    const middle = at * step;
    const from = Math.max(0, middle - half) + Number(begin || 0);
    items[axis] = `${from}:${Math.min(size, middle + half) + Number(begin || 0)}`;
  });
  return items.join(", ");
}

function python(path, { io, slot }, name, index) {
  const quoted = JSON.stringify;
  return `import msdump\nfor tensor in msdump.open(${quoted(path)}).tensors(io=${quoted(io)}):\n`
    + `    if (tensor.full_name or tensor.op_name) == ${quoted(name)} and tensor.slot_text == ${quoted(String(slot))}:\n`
    + `        print(tensor.load_host()[${index || "..."}])`;
}

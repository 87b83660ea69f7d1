// One statistic of all tensors over the iterations of a graph, or over the ranks of a step; rows that are picked are lines.
import { useOptional } from "../answers.js";
import { Chart, isWide } from "../chart.js";
import { number, sortable } from "../format.js";
import { curvesOf } from "../overview/map.js";
import { get } from "../source.js";
import { follow, panelLink, place, setQuery } from "../state.js";
import { Table } from "../table.js";
import { count, Health, html, isBad, Num, shortened } from "../view.js";
import { say } from "../words.js";

const statistics = ["l2norm", "max", "min", "avg", "nan", "zero"];
const titles = { avg: "mean", l2norm: "L2", nan: "NaN" };
const MAX_LINES = 8;

/** kind: trend or ranks; group: the two parts that all columns share; marked: outvoted ranks -> tensors */
export function Series({ series, kind, group, marked, headline = null }) {
  const { columns, tensors, left_out: leftOut } = series;
  const { s = "l2norm", q = "", sort = "", bad: asked = "", lines = "", log = "", scale = "" } = place.value.query;
  const statistic = statistics.includes(s) ? s : "l2norm";
  const values = series.statistics[statistic];
  const picked = lines.split(",").filter(Boolean).map(Number).filter((index) => index < count(tensors));
  const label = (index) => `${tensors.name[index]} ${say(tensors.io[index])} ${tensors.slot[index]}`;
  const measure = kind === "trend" ? growth : spread;
  const step = (column) => (kind === "trend" ? [...group, String(column)] : [String(column), ...group]);
  // An operator may have another number in another step.
  const open = async (column, index) => {
    const { operators } = await get(`step/${step(column).join("/")}`);
    const number = operators.name.indexOf(tensors.name[index]);
    if (number >= 0) follow(panelLink(step(column), number));
  };
  const shared = scale === "row" ? null : magnitudes(values);
  const title = say(titles[statistic] ?? statistic);
  const shownColumns = [
    { name: "number", title: "#", end: true, value: (index) => tensors.operator[index], cell: (index) => tensors.operator[index] },
    { name: "health", title: say("health"), value: (index) => (isBad(tensors.health[index]) ? 1 : 0), cell: (index) => html`<${Health} health=${tensors.health[index]} />` },
    { name: "name", title: say("tensor"), value: label, cell: (index) => html`<a class="name" title=${tensors.name[index]}
        href=${panelLink(step(columns[0]), tensors.operator[index])}>${shortened(tensors.name[index])}</a> ${say(tensors.io[index])} ${tensors.slot[index]}` },
    { name: "cells", title: `${say(kind === "trend" ? "iteration" : "rank")} ${columns[0]} … ${columns.at(-1)}`, value: (index) => measure(values[index]),
      cell: (index) => html`<${Cells} values=${values[index]} columns=${columns} marked=${marked} shared=${shared} onPick=${(column) => open(column, index)} />` },
    { name: "measure", title: say(kind === "trend" ? "last / first" : "largest deviation"), end: true, value: (index) => measure(values[index]),
      cell: (index) => { const value = measure(values[index]); return Number.isFinite(value) ? html`<${Num} value=${value} />` : value === Infinity && (kind === "ranks" || typeof values[index].at(-1) === "number") ? "∞" : "–"; } },
    { name: "last", title: `${title}${say(kind === "trend" ? " of iteration" : " of rank")} ${columns.at(-1)}`, end: true, value: (index) => sortable(values[index].at(-1)), cell: (index) => html`<${Num} value=${values[index].at(-1)} />` },
    { name: "parameter", title: say("parameter"), value: (index) => tensors.parameter[index] ?? "", cell: (index) => html`<span title=${tensors.parameter[index]}>${tensors.is_gradient[index] ? "∂ " : ""}${shortened(tensors.parameter[index] ?? "", 22)}</span>` },
  ];
  // What is wrong is what one looks for here: over the iterations what went wrong first is on top.
  const bads = tensors.health.map(isBad);
  const bad = asked === "" ? (kind === "ranks" && bads.includes(true) ? "1" : "") : asked;
  const firstBad = (index) => (bads[index] ? (kind === "trend" ? firstNotFinite(series.statistics, index) : 0) : Infinity);
  let order = Array.from({ length: count(tensors) }, (_, index) => index).filter((index) => (bad !== "1" || bads[index])
    && q.toLowerCase().split(/\s+/).every((word) => `${label(index)} ${tensors.parameter[index] ?? ""}`.toLowerCase().includes(word)));
  const column = shownColumns.find(({ name }) => name === sort.replace(/^-/, ""));
  if (column !== undefined) {
    const way = sort.startsWith("-") ? 1 : -1;
    const keys = new Map(order.map((index) => [index, column.value(index)]));
    order = order.sort((one, other) => way * (keys.get(one) < keys.get(other) ? -1 : keys.get(one) > keys.get(other) ? 1 : 0) || one - other);
  }
  else order.sort((one, other) => firstBad(one) - firstBad(other) || one - other);
  const pick = (index) => setQuery({ lines: (picked.includes(index) ? picked.filter((one) => one !== index) : [...picked, index].slice(-MAX_LINES)).join(",") });
  const drawn = picked.map((index) => ({ label: label(index), values: values[index] }));
  const isLog = log === "" ? isWide(drawn) : log === "1";
  const outvoted = columns.filter((one) => marked.has(String(one))).map((one) => ({ x: one, label: `≠ ${say("outvoted")}` }));
  return html`<main class="full">
    ${headline !== null && html`<section class="verdict bad"><h1>${headline}</h1></section>`}
    ${kind === "trend" && html`<${Training} group=${group} />`}
    <div class="tools">
      <input id="search" type="search" value=${q} placeholder=${say("search name, type or scope")} title="/" aria-label=${say("search name, type or scope")}
        onInput=${(event) => setQuery({ q: event.currentTarget.value })} />
      <label>${say("statistic")} <select onChange=${(event) => setQuery({ s: statistics[event.currentTarget.selectedIndex] })}>${statistics.map(
        (name) => html`<option key=${name} selected=${name === statistic}>${say(titles[name] ?? name)}</option>`)}</select></label>
      <label><input type="checkbox" checked=${bad === "1"} onChange=${(event) => setQuery({ bad: event.currentTarget.checked ? "1" : "0" })} /> ${say("bad only")}</label>
      <label><input type="checkbox" checked=${scale !== "row"} onChange=${(event) => setQuery({ scale: event.currentTarget.checked ? "" : "row" })} /> ${say("one colour scale")}</label>
      ${shared !== null && html`<${Legend} shared=${shared} title=${`|${title}|`} />`}
      <span>${order.length} ${say("of")} ${count(tensors)}${leftOut > 0 ? `, ${leftOut} ${say("left out")}` : ""}</span>
      ${kind === "ranks" && html`<span>${say("alike on all ranks")}: ${alike(values)}</span>`}
      ${[...marked].map(([rank, some]) => html`<b key=${rank} class="outvoted">≠ ${say("outvoted")}: ${say("rank")} ${rank}, ${some} ${say("tensors")}</b>`)}
    </div>
    ${picked.length > 0 ? html`<section class="picked"><div class="tools"><label><input type="checkbox" checked=${isLog} onChange=${(event) => setQuery({ log: event.currentTarget.checked ? "1" : "0" })} /> ${say("log scale")}</label>
        <button onClick=${() => setQuery({ lines: "" })}>${say("no lines")} ✕</button><span class="quiet">✖ NaN, Inf · ○ ${say("not dumped")}</span></div>
        <${Chart} x=${columns} lines=${drawn} xTitle=${say(kind === "trend" ? "iteration" : "rank")} yTitle=${title} isLog=${isLog} height=${220} marked=${outvoted}
          onPick=${(at) => open(columns[at], picked[0])} /></section>`
      : html`<p class="quiet">${say("a click on a row draws its line")}</p>`}
    <${Table} columns=${shownColumns} order=${order} health=${(index) => tensors.health[index]} label=${say(kind === "trend" ? "Trend" : "Ranks")}
      isCurrent=${(index) => picked.includes(index)} sort=${sort} onSort=${(name) => setQuery({ sort: name })} onOpen=${pick} />
  </main>`;
}

/** The first column in which a tensor is not finite; as many as there are where it never is. */
export function firstNotFinite({ l2norm, max, min, nan }, index) {
  const found = l2norm[index].findIndex((_, at) => nan[index][at] > 0 || [l2norm, max, min].some((all) => typeof all[index][at] === "string"));
  return found < 0 ? l2norm[index].length : found;
}

/** How many rows have one number on all ranks, of those that have a number at all: "3 of 8". */
export function alike(values) {
  const measured = values.filter((row) => row.some((one) => one !== null));
  return `${measured.filter((row) => row.every((one) => one === row[0])).length} ${say("of")} ${measured.length}`;
}

/** The curves of a rank over its iterations, as they stand above the map of the first page. */
function Training({ group: [rank] }) {
  const map = useOptional("map");
  const { t = "1" } = place.value.query;
  if (map === undefined) return html`<p aria-busy="true">…</p>`;
  const number = map?.ranks.findIndex((one) => String(one ?? "-") === rank) ?? -1;
  if (number < 0) return null;
  const curves = curvesOf(map.curves[number]).filter(({ title }) => title !== "largest value");
  if (curves.length === 0) return null;
  const x = map.iterations.map((one, at) => one ?? at);
  const loss = map.curves[number].loss?.name;
  const openLoss = async (at) => {
    const step = [rank, String(map.rows.graph[map.rows.name.indexOf(loss)] ?? "-"), String(map.iterations[at] ?? "-")];
    const found = (await get(`step/${step.join("/")}`)).operators.name.indexOf(loss);
    if (found >= 0) follow(panelLink(step, found));
  };
  return html`<details class="training" open=${t === "1"} onToggle=${(event) => event.currentTarget.open !== (t === "1") && setQuery({ t: event.currentTarget.open ? "" : "0" })}>
    <summary>${curves.map(({ title }) => say(title)).join(", ")}</summary>
    <div class="curves">${curves.map(({ title, values }) => html`<${Chart} key=${title} x=${x} lines=${[{ label: say(title), values }]} xTitle=${say("iteration")} yTitle=${say(title)} sync="training"
      isLog=${isWide([{ values }])} height=${130} onPick=${title === "loss" ? openLoss : null} />`)}</div></details>`;
}

/** How often the last value is the first one; NaN where one of them is not there or not finite. */
export function growth(values) {
  const present = values.filter((one) => one !== null);
  const [first, last] = [present[0], present.at(-1)];
  if (typeof first !== "number" || typeof last !== "number" || present.length < 2) return present.some((one) => typeof one === "string") ? Infinity : NaN;
  return first === 0 ? (last === 0 ? 1 : Infinity) : Math.abs(last / first);
}

/** Largest distance from the median, as a share of it; Infinity where some ranks are not finite and others are. */
export function spread(values) {
  const present = values.filter((one) => one !== null);
  const finite = present.filter((one) => typeof one === "number").sort((one, other) => one - other);
  if (finite.length < present.length) return finite.length === 0 ? 0 : Infinity;
  if (finite.length === 0) return NaN;
  const median = finite[Math.floor(finite.length / 2)];
  const most = Math.max(Math.abs(finite[0] - median), Math.abs(finite.at(-1) - median));
  return most === 0 ? 0 : median === 0 ? Infinity : most / Math.abs(median);
}

const logOf = (one) => (typeof one === "number" && one !== 0 ? Math.log10(Math.abs(one)) : null);

/** Logarithms of the smallest and the largest magnitude of rows, at most twelve decades apart; null where all are 0. */
export function magnitudes(rows) {
  let [low, high] = [Infinity, -Infinity];
  for (const row of rows) {
    for (const one of row) {
      const log = logOf(one);
      if (log !== null) [low, high] = [Math.min(low, log), Math.max(high, log)];
    }
  }
  return low > high ? null : [Math.max(low, high - 12), high];
}

/** A value's place on a scale of magnitudes, from 0 to 1, that of all rows or its own; null for what has none. */
export function shares(values, shared) {
  const logs = values.map(logOf);
  const range = shared ?? magnitudes([values]);
  if (range === null) return logs;
  const [low, high] = range;
  // Less than a tenth of a decade apart is one colour: rounding must not look like a trend.
  return logs.map((one) => (one === null ? null : high - low < 0.1 ? 0.5 : Math.max(0, (one - low) / (high - low))));
}

const opacity = (share) => 0.08 + 0.92 * share;

/** A click on a cell opens the operator there; the keyboard has the name and the keys for the next iteration. */
function Cells({ values, columns, marked, shared, onPick }) {
  const width = 240 / values.length;
  const places = shares(values, shared);
  return html`<svg class="cells" viewBox="0 0 240 16" preserveAspectRatio="none" aria-hidden="true">${values.map((value, at) => html`<rect key=${at}
    x=${at * width} width=${Math.max(1, width - 0.5)} height="16" onClick=${(event) => { event.stopPropagation(); onPick(columns[at]); }} class=${typeof value === "string" ? "not-finite" : places[at] === null ? "none" : ""}
    fill-opacity=${places[at] === null ? 1 : opacity(places[at])}><title>${columns[at]}: ${value ?? "–"}</title></rect>
    ${marked.has(String(columns[at])) && html`<rect class="outvoted" x=${at * width} y="13" width=${Math.max(1, width - 0.5)} height="3" />`}`)}</svg>`;
}

/** The colours of the scale that all rows share. */
function Legend({ shared: [low, high], title }) {
  return html`<span class="cells-legend">${number(10 ** low)} <svg class="cells" viewBox="0 0 80 16" aria-hidden="true">${Array.from({ length: 16 }, (_, at) => html`<rect key=${at} x=${at * 5} width="5" height="16" fill-opacity=${opacity(at / 15)} />`)}</svg> ${number(10 ** high)} <span class="quiet">${title}</span></span>`;
}

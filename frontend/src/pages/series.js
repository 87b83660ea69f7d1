// One statistic of all tensors over the iterations of a graph, or over the ranks of a step; rows that are picked are lines.
import { number, sortable } from "../format.js";
import { panelLink, place, setQuery } from "../state.js";
import { Table } from "../table.js";
import { count, Health, html, isBad, shortened } from "../view.js";
import { say } from "../words.js";

const statistics = ["l2norm", "max", "min", "avg", "nan", "zero"];
const titles = { avg: "mean", l2norm: "L2", nan: "NaN" };
const MAX_LINES = 8;

/** kind: trend or ranks; group: the two parts that all columns share; marked: outvoted ranks -> tensors */
export function Series({ series, kind, group, marked }) {
  const { columns, tensors, left_out: leftOut } = series;
  const { s = "l2norm", q = "", sort = "", bad = "", lines = "" } = place.value.query;
  const statistic = statistics.includes(s) ? s : "l2norm";
  const values = series.statistics[statistic];
  const picked = lines.split(",").filter(Boolean).map(Number).filter((index) => index < count(tensors));
  const label = (index) => `${tensors.name[index]} ${say(tensors.io[index])} ${tensors.slot[index]}`;
  const measure = kind === "trend" ? growth : spread;
  const step = (column) => (kind === "trend" ? [...group, String(column)] : [String(column), ...group]);
  const shownColumns = [
    { name: "number", title: "#", end: true, value: (index) => tensors.operator[index], cell: (index) => tensors.operator[index] },
    { name: "health", title: say("health"), value: (index) => (isBad(tensors.health[index]) ? 1 : 0), cell: (index) => html`<${Health} health=${tensors.health[index]} />` },
    { name: "name", title: say("tensor"), value: label, cell: (index) => html`<a class="name" title=${tensors.name[index]}
        href=${panelLink(step(columns[0]), tensors.operator[index])}>${shortened(tensors.name[index])}</a> ${say(tensors.io[index])} ${tensors.slot[index]}` },
    { name: "parameter", title: say("parameter"), value: (index) => tensors.parameter[index] ?? "", cell: (index) => `${tensors.is_gradient[index] ? "∂ " : ""}${tensors.parameter[index] ?? ""}` },
    { name: "cells", title: `${say(kind === "trend" ? "iteration" : "rank")} ${columns[0]} … ${columns.at(-1)}`, value: (index) => measure(values[index]),
      cell: (index) => html`<${Cells} values=${values[index]} columns=${columns} marked=${marked} />` },
    { name: "measure", title: say(kind === "trend" ? "last / first" : "largest deviation"), end: true, value: (index) => measure(values[index]),
      cell: (index) => { const value = measure(values[index]); return Number.isFinite(value) ? number(value) : value === Infinity ? "∞" : "–"; } },
    { name: "last", title: `${columns.at(-1)}`, end: true, value: (index) => sortable(values[index].at(-1)), cell: (index) => number(values[index].at(-1)) },
  ];
  let order = Array.from({ length: count(tensors) }, (_, index) => index).filter((index) => (bad !== "1" || isBad(tensors.health[index]))
    && q.toLowerCase().split(/\s+/).every((word) => `${label(index)} ${tensors.parameter[index] ?? ""}`.toLowerCase().includes(word)));
  const column = shownColumns.find(({ name }) => name === sort.replace(/^-/, ""));
  if (column !== undefined) {
    const way = sort.startsWith("-") ? 1 : -1;
    const keys = new Map(order.map((index) => [index, column.value(index)]));
    order = order.sort((one, other) => way * (keys.get(one) < keys.get(other) ? -1 : keys.get(one) > keys.get(other) ? 1 : 0) || one - other);
  }
  const pick = (index) => setQuery({ lines: (picked.includes(index) ? picked.filter((one) => one !== index) : [...picked, index].slice(-MAX_LINES)).join(",") });
  return html`<main class="full">
    <div class="tools">
      <input id="search" type="search" value=${q} placeholder=${say("search name, type or scope")} aria-label=${say("search name, type or scope")}
        onInput=${(event) => setQuery({ q: event.currentTarget.value })} />
      <label>${say("statistic")} <select onChange=${(event) => setQuery({ s: statistics[event.currentTarget.selectedIndex] })}>${statistics.map(
        (name) => html`<option key=${name} selected=${name === statistic}>${say(titles[name] ?? name)}</option>`)}</select></label>
      <label><input type="checkbox" checked=${bad === "1"} onChange=${(event) => setQuery({ bad: event.currentTarget.checked ? "1" : "" })} /> ${say("bad only")}</label>
      <span>${order.length} ${say("of")} ${count(tensors)}${leftOut > 0 ? `, ${leftOut} ${say("left out")}` : ""}</span>
      ${kind === "ranks" && html`<span>${say("alike on all ranks")}: ${values.filter((row) => row.every((one) => one === row[0])).length}</span>`}
      ${[...marked].map(([rank, tensors]) => html`<b key=${rank} class="outvoted">≠ ${say("outvoted")}: ${say("rank")} ${rank}, ${tensors} ${say("tensors")}</b>`)}
    </div>
    ${picked.length > 0 ? html`<${Lines} rows=${picked.map((index) => [label(index), values[index]])} columns=${columns} />`
      : html`<p class="quiet">${say("a click on a row draws its line")}</p>`}
    <${Table} columns=${shownColumns} order=${order} health=${(index) => tensors.health[index]} label=${say(kind === "trend" ? "Trend" : "Ranks")}
      sort=${sort} onSort=${(name) => setQuery({ sort: name })} onOpen=${pick} />
  </main>`;
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

/** A value's place on a scale of magnitudes of its row, from 0 to 1; null for what has none. */
function shares(values) {
  const logs = values.map((one) => (typeof one === "number" && one !== 0 ? Math.log10(Math.abs(one)) : null));
  const present = logs.filter((one) => one !== null);
  const [low, high] = [Math.min(...present), Math.max(...present)];
  // Less than a tenth of a decade apart is one colour: rounding must not look like a trend.
  return logs.map((one) => (one === null ? null : high - low < 0.1 ? 0.5 : (one - low) / (high - low)));
}

function Cells({ values, columns, marked }) {
  const width = 240 / values.length;
  const places = shares(values);
  return html`<svg class="cells" viewBox="0 0 240 16" preserveAspectRatio="none" aria-hidden="true">${values.map((value, at) => html`<rect key=${at}
    x=${at * width} width=${Math.max(1, width - 0.5)} height="16" class=${typeof value === "string" ? "not-finite" : places[at] === null ? "none" : ""}
    fill-opacity=${places[at] === null ? 1 : 0.12 + 0.88 * places[at]}><title>${columns[at]}: ${number(value)}</title></rect>
    ${marked.has(String(columns[at])) && html`<rect class="outvoted" x=${at * width} y="13" width=${Math.max(1, width - 0.5)} height="3" />`}`)}</svg>`;
}

/** Lines over the columns, on a scale of magnitudes when the values have one sign. */
function Lines({ rows, columns }) {
  const [width, height, left] = [900, 170, 64];
  const all = rows.flatMap(([, values]) => values.filter((one) => typeof one === "number"));
  if (all.length === 0) return html`<p class="quiet">${say("nothing found")}</p>`;
  const isLog = all.every((one) => one > 0) && Math.max(...all) > 20 * Math.min(...all);
  const scaled = (one) => (isLog ? Math.log10(one) : one);
  const [low, high] = [Math.min(...all.map(scaled)), Math.max(...all.map(scaled))];
  const x = (at) => left + (at / Math.max(1, columns.length - 1)) * (width - left - 10);
  const y = (one) => 8 + (1 - (high === low ? 0.5 : (scaled(one) - low) / (high - low))) * (height - 30);
  return html`<figure class="lines"><svg viewBox="0 0 ${width} ${height}" role="img" aria-label=${say("plot")}>
    <text x="0" y="14">${number(isLog ? 10 ** high : high)}</text><text x="0" y=${height - 20}>${number(isLog ? 10 ** low : low)}</text>
    <text x=${left} y=${height - 4}>${columns[0]}</text><text class="end" x=${width - 10} y=${height - 4}>${columns.at(-1)}</text>
    ${rows.map(([name, values], line) => html`<g key=${name} class="line-${line}"><title>${name}</title>
      <polyline points=${values.map((one, at) => (typeof one === "number" ? `${x(at)},${y(one)}` : null)).filter(Boolean).join(" ")} />
      ${values.map((one, at) => (typeof one === "number" ? html`<circle key=${at} cx=${x(at)} cy=${y(one)} r="2.5"><title>${columns[at]}: ${number(one)}</title></circle>`
        : one !== null && html`<text key=${at} class="mark" x=${x(at)} y="10">✖</text>`))}</g>`)}
  </svg><figcaption>${rows.map(([name], line) => html`<span key=${name} class="line-${line}">— ${name}</span>`)}</figcaption></figure>`;
}

// A step beside that of the golden dump: error over execution order, and all tensors that were compared.
import { number, sortable } from "../format.js";
import { Chart } from "../chart.js";
import { leftOut, Prepared } from "../graph/flow.js";
import { follow, isOpen, panelLink, place, setQuery, stepParts } from "../state.js";
import { Pairing } from "../pairing.js";
import { Table } from "../table.js";
import { count, html, Num, shortened } from "../view.js";
import { say } from "../words.js";

const measures = { error: "relative error", max_abs_error: "max |Δ|", angle: "1 − cosine" };
const FLOOR = 1e-9; // what is below it is drawn there
const looks = { agrees: "good", differs: "bad" }; // what is incomplete is neither
const RANKS = { differs: 0, "not compared": 2 };

/** Rows in the order that is asked for, those that differ first and what was not compared last; see the tests. */
export function comparedOrder(tensors, names, { q = "", isBadOnly = false, isWhole = false, range = null, value = null, way = 1, hidden = new Set() }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (index) => RANKS[tensors.status[index]] ?? 1;
  const isShown = (index) => !hidden.has(tensors.operator[index]) && (rank(index) === 2 ? isWhole : !isBadOnly || rank(index) === 0)
    && (range === null || (tensors.operator[index] >= range[0] && tensors.operator[index] <= range[1]))
    && words.every((word) => `${names[tensors.operator[index]] ?? ""} ${tensors.golden[index]} ${tensors.reason[index]}`.toLowerCase().includes(word));
  const order = tensors.status.map((_, index) => index).filter(isShown);
  const compare = (one, other) => (value === null ? rank(one) - rank(other) : way * (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0));
  return order.sort((one, other) => compare(one, other) || one - other);
}

/** The picked range of execution order: [first, last], or null. */
export function rangeOf(text) {
  const match = /^(\d+)-(\d+)$/.exec(text ?? "");
  return match === null ? null : [Number(match[1]), Number(match[2])];
}

/** The tolerance that most tensors have; null where none has one, and where others decide: what is above it agrees all the same. */
export function commonTolerance(tensors) {
  if (tensors.tolerance?.some((one, index) => tensors.status[index] === "agrees" && tensors.error[index] > one)) return null;
  const counts = new Map();
  tensors.tolerance?.forEach((one, index) => { if (one > 0 && tensors.status[index] !== "not compared") counts.set(one, (counts.get(one) ?? 0) + 1); });
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0] ?? null;
}

export function Compare({ compare, step, parts }) {
  const { tensors, finding } = compare;
  const names = step.operators.name;
  const { sort = "", bad = "", q = "", range: picked, nc = "", m = "error", weights = "" } = place.value.query;
  const some = (status) => tensors.status.filter((one) => one === status).length;
  const [differing, skipped] = [some("differs"), some("not compared")];
  const isBadOnly = bad === "" ? differing > 0 : bad === "1";
  const range = rangeOf(picked);
  const name = (index) => names[tensors.operator[index]] ?? "";
  const columns = [
    { name: "number", title: "#", end: true, value: (index) => tensors.operator[index], cell: (index) => tensors.operator[index] },
    { name: "status", title: say("status"), value: (index) => tensors.status[index],
      cell: (index) => html`<span class=${tensors.status[index] === "differs" ? "differs" : "quiet"}>${tensors.status[index] === "differs" ? "≠ " : ""}${say(tensors.status[index])}</span>` },
    { name: "name", title: say("name"), value: name, cell: (index) => html`<span class="name" title=${name(index)}>${shortened(name(index))}</span>` },
    { name: "io", title: say("tensor"), value: (index) => tensors.io[index], cell: (index) => `${say(tensors.io[index])} ${tensors.slot[index]}` },
    ...[["error", "error"], ["cosine", "cosine"], ["max_abs_error", "max |Δ|"]].map(([key, title]) => ({ name: key, title: say(title),
      end: true, value: (index) => sortable(tensors[key][index]), cell: (index) => html`<${Num} value=${tensors[key][index]} />` })),
    { name: "reason", title: say("reason"), value: (index) => tensors.reason[index], cell: (index) => html`<span title=${say(tensors.reason[index])}>${say(tensors.reason[index])}</span>` },
  ];
  const column = columns.find((one) => one.name === sort.replace(/^-/, ""));
  const order = comparedOrder(tensors, names, { q, isBadOnly, isWhole: nc === "1", range, value: column?.value ?? null, way: sort.startsWith("-") ? 1 : -1, hidden: leftOut(step, weights === "1") });
  const health = (index) => ({ differs: "differs", "not compared": "not measured" })[tensors.status[index]] ?? "ok";
  const isThat = isOpen(parts);
  const reasons = [...new Set(tensors.reason.filter((_, index) => tensors.status[index] === "not compared"))].filter(Boolean).slice(0, 5);
  const look = `verdict ${looks[compare.outcome] ?? ""}`, isShort = compare.headline.length <= 6 && innerWidth >= 700;
  const rest = compare.headline.slice(finding === null ? 1 : 0).filter((line) => !finding?.why.includes(line)).map(say).join("\n");
  return html`<main class="full">
    ${finding === null ? html`<details class=${look} open=${isShort}><summary>${say(compare.headline[0])}</summary><pre>${rest}</pre></details>`
      : html`<div class=${look}><p class="answer"><a href=${panelLink(stepParts(finding.at.step), finding.at.operator)}>${say(finding.title)}</a>${finding.why.map((one) => html` <span class="why" key=${one}>${say(one)}</span>`)}</p>
        <details open=${isShort}><summary>${say("details")}</summary><pre>${rest}</pre></details></div>`}
    <${Errors} tensors=${tensors} parts=${parts} names=${names} measure=${m in measures ? m : "error"} range=${range} />
    <div class="tools">
      <input id="search" type="search" value=${q} placeholder=${say("search")} title="/" aria-label=${say("search")} onInput=${(event) => setQuery({ q: event.currentTarget.value })} />
      <label><input type="checkbox" checked=${isBadOnly} onChange=${(event) => setQuery({ bad: event.currentTarget.checked ? "1" : "0" })} /> ${say("bad only")} (${differing})</label>
      ${skipped > 0 && html`<label title=${reasons.map(say).join("\n")}><input type="checkbox" checked=${nc === "1"} onChange=${(event) => setQuery({ nc: event.currentTarget.checked ? "1" : "" })} /> ${say("not compared")} (${skipped})</label>`}
      <${Prepared} step=${step} />
      ${range !== null && html`<button onClick=${() => setQuery({ range: "" })}># ${range[0]}–${range[1]} ✕</button>`}
      <span aria-live="polite">${order.length} ${say("of")} ${count(tensors)}</span>
    </div>
    <${Pairing} mine=${compare.only_mine} golden=${compare.only_golden} />
    <${Table} columns=${columns} order=${order} health=${health} label=${say("Compare")} sort=${sort} isCurrent=${(index) => isThat(tensors.operator[index])}
      onSort=${(key) => setQuery({ sort: key })} onOpen=${(index) => follow(panelLink(parts, tensors.operator[index]))} />
  </main>`;
}

/** Largest error of the outputs of each operator, on a scale of powers of ten: [[number, error, whether it differs]]. */
export function errorPoints(tensors, measure) {
  const points = new Map();
  const valueOf = { angle: (index) => (typeof tensors.cosine[index] === "number" ? 1 - tensors.cosine[index] : tensors.cosine[index]) }[measure] ?? ((index) => tensors[measure][index]);
  tensors.operator.forEach((at, index) => {
    if (tensors.io[index] !== "output" || at === null) return;
    const isBad = tensors.status[index] === "differs";
    const value = tensors.status[index] === "identical" ? 0 : valueOf(index);
    if (value === null) return;
    const [, most, wasBad] = points.get(at) ?? [at, 0, false];
    points.set(at, [at, sortable(value) > sortable(most) ? value : most, wasBad || isBad]);
  });
  return [...points.values()].sort(([one], [other]) => one - other);
}

function Errors({ tensors, parts, names, measure, range }) {
  const points = errorPoints(tensors, measure);
  if (points.length === 0) return null;
  const x = points.map(([at]) => at);
  const values = (isWanted) => points.map(([, error, isBad]) => (isWanted !== isBad ? null : typeof error === "number" ? Math.max(FLOOR, error) : "inf"));
  const first = points.find(([, , isBad]) => isBad)?.[0];
  const tolerance = measure === "error" ? commonTolerance(tensors) : null;
  return html`<section class="errors"><div class="tools"><label>${say("measure")} <select onChange=${(event) => setQuery({ m: Object.keys(measures)[event.currentTarget.selectedIndex] })}>${
      Object.entries(measures).map(([key, title]) => html`<option key=${key} selected=${key === measure}>${say(title)}</option>`)}</select></label>
      <span class="quiet">${say("drag over the chart to filter the table; click a point to open the operator")}</span></div>
    <${Chart} x=${x} label=${say("error")} xTitle=${`${say("execution order")} (#)`} yTitle=${say(measures[measure])} isLog=${true} height=${230} lines=${[
      { label: say("ok"), values: values(false), points: true }, { label: say("differs"), values: values(true), points: true, stroke: 5 }]}
      limit=${tolerance === null ? null : { value: tolerance, label: `${say("tolerance")} ${number(tolerance)}` }}
      marked=${first === undefined ? [] : [{ x: first, label: shortened(names[first]) }]} range=${range}
      onRange=${(from, to) => setQuery({ range: `${Math.max(0, Math.ceil(from))}-${Math.max(0, Math.floor(to))}` })}
      onPick=${(index) => follow(panelLink(parts, x[index]))} /></section>`;
}

// A step beside that of the golden dump: error over execution position, and all tensors that were compared.
import { number, sortable } from "../format.js";
import { Chart } from "../chart.js";
import { follow, panelLink, place, setQuery } from "../state.js";
import { Pairing } from "../pairing.js";
import { Table } from "../table.js";
import { count, html, shortened } from "../view.js";
import { say } from "../words.js";

export function Compare({ compare, step, parts }) {
  const { tensors } = compare;
  const { sort = "", bad = "" } = place.value.query;
  const name = (index) => step.operators.name[tensors.operator[index]] ?? "";
  const columns = [
    { name: "number", title: "#", end: true, value: (index) => tensors.operator[index], cell: (index) => tensors.operator[index] },
    { name: "name", title: say("name"), value: name, cell: (index) => html`<span class="name" title=${name(index)}>${shortened(name(index))}</span>` },
    { name: "io", title: say("tensor"), value: (index) => tensors.io[index], cell: (index) => `${say(tensors.io[index])} ${tensors.slot[index]}` },
    { name: "status", title: say("status"), value: (index) => tensors.status[index],
      cell: (index) => html`<span class=${tensors.status[index] === "differs" ? "bad" : ""}>${tensors.status[index]}</span>` },
    ...[["error", "error"], ["cosine", "cosine"], ["max_abs_error", "max |Δ|"]].map(([key, title]) => ({ name: key, title: say(title),
      end: true, value: (index) => sortable(tensors[key][index]), cell: (index) => number(tensors[key][index]) })),
    { name: "reason", title: say("reason"), value: (index) => tensors.reason[index], cell: (index) => tensors.reason[index] },
  ];
  const all = Array.from({ length: count(tensors) }, (_, index) => index);
  let order = bad === "1" ? all.filter((index) => tensors.status[index] === "differs") : all;
  const column = columns.find((one) => one.name === sort.replace(/^-/, ""));
  if (column !== undefined) {
    const way = sort.startsWith("-") ? 1 : -1;
    order = [...order].sort((one, other) => way * (column.value(one) < column.value(other) ? -1 : column.value(one) > column.value(other) ? 1 : 0) || one - other);
  }
  const health = (index) => ({ differs: "differs", "not compared": "not measured" })[tensors.status[index]] ?? "ok";
  return html`<main class="full">
    <section class=${compare.headline.length ? "verdict bad" : "verdict good"}><pre>${compare.headline.join("\n")}</pre></section>
    <${Errors} tensors=${tensors} parts=${parts} names=${step.operators.name} />
    <div class="tools"><label><input type="checkbox" checked=${bad === "1"} onChange=${(event) =>
      setQuery({ bad: event.currentTarget.checked ? "1" : "" })} /> ${say("bad only")}</label>
      <span>${order.length} ${say("of")} ${all.length}</span>
    </div>
    <${Pairing} mine=${compare.only_mine} golden=${compare.only_golden} />
    <${Table} columns=${columns} order=${order} health=${health} label=${say("Compare")} sort=${sort}
      onSort=${(key) => setQuery({ sort: key })} onOpen=${(index) => follow(panelLink(parts, tensors.operator[index]))} />
  </main>`;
}

/** Largest error of the outputs of each operator, on a scale of powers of ten. */
function Errors({ tensors, parts, names }) {
  const points = new Map();
  const differing = new Set(tensors.operator.filter((_, index) => tensors.io[index] === "output" && tensors.status[index] === "differs"));
  tensors.operator.forEach((at, index) => {
    const error = sortable(tensors.error[index]);
    if (tensors.io[index] === "output" && at !== null && error >= 0) points.set(at, Math.max(points.get(at) ?? 0, error));
  });
  if (points.size === 0) return null;
  const x = [...points.keys()].sort((one, other) => one - other);
  const errors = (isBad) => x.map((at) => (differing.has(at) === isBad ? Math.max(1e-9, Math.min(1, points.get(at))) : null));
  const first = x.find((at) => differing.has(at));
  return html`<${Chart} x=${x} label=${say("error")} xTitle=${say("execution order")} yTitle=${say("error")} isLog=${true} lines=${[
    { label: say("ok"), values: errors(false), points: true }, { label: say("differs"), values: errors(true), points: true, stroke: "#d55e00" }]}
    marked=${first === undefined ? [] : [{ x: first, label: shortened(names[first]) }]} onPick=${(index) => follow(panelLink(parts, x[index]))} />`;
}

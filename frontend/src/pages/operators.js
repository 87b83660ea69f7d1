// All operators of a step in execution order, with the numbers of their worst output.
import { bytes, shape, sortable } from "../format.js";
import { leftOut, Prepared } from "../graph/flow.js";
import { firstBad } from "../graph/graph.js";
import { follow, isOpen, panelLink, place, setQuery } from "../state.js";
import { Table } from "../table.js";
import { count, Health, html, isBad, Num, shortened, withoutCommonParts } from "../view.js";
import { say } from "../words.js";

export function Operators({ step, parts }) {
  const { operators, tensors } = step;
  const { q = "", sort = "", bad = "", weights = "" } = place.value.query;
  const shown = step.shownTensor ??= Array.from({ length: count(operators) }, (_, index) => worstTensor(step, index));
  const of = (name) => (index) => (shown[index] === null ? null : tensors[name][shown[index]]);
  const numbers = [["max", "max"], ["min", "min"], ["avg", "mean"], ["l2norm", "L2"], ["nan", "NaN"]];
  const type = step.shownType ??= withoutCommonParts(operators.type);
  const all = [
    { name: "number", title: "#", end: true, value: (index) => index, cell: (index) => index },
    { name: "health", title: say("health"), value: (index) => isBad(operators.health[index]) ? 1 : 0,
      cell: (index) => html`<${Health} health=${operators.health[index]} />` },
    { name: "name", title: say("name"), value: (index) => operators.name[index],
      cell: (index) => html`<a class="name" title=${operators.name[index]} href=${panelLink(parts, index)}>${shortened(operators.name[index])}</a>` },
    { name: "type", title: say("type"), value: (index) => operators.type[index], cell: (index) => html`<span title=${operators.type[index]}>${type(operators.type[index])}</span>` },
    { name: "dtype", title: say("dtype"), value: of("dtype"), cell: (index) => of("dtype")(index) ?? "–" },
    { name: "shape", title: say("shape"), value: (index) => of("size_bytes")(index), cell: (index) => shape(of("shape")(index)) },
    ...numbers.map(([name, title]) => ({ name, title: say(title), end: true, value: (index) => sortable(of(name)(index)),
      cell: (index) => html`<${Num} value=${of(name)(index)} />` })),
    ...(tensors.error.some((one) => one !== null) ? [{ name: "error", title: say("error"), end: true,
      value: (index) => sortable(of("error")(index)), cell: (index) => html`<${Num} value=${of("error")(index)} />` }] : []),
    { name: "bytes", title: say("bytes"), end: true, value: of("size_bytes"), cell: (index) => bytes(of("size_bytes")(index)) },
  ];
  // In a narrow window the numbers are in sight, and not what the name tells already.
  const columns = globalThis.innerWidth < 700 ? all.filter(({ name }) => !["type", "dtype", "shape"].includes(name)) : all;
  const order = ordered(operators, columns, { q, sort, bad, hidden: leftOut(step, weights === "1") });
  const start = q === "" && sort === "" ? order.indexOf(firstBad(step)) : 0;
  return html`<main class="full">
    <div class="tools">
      <input id="search" type="search" placeholder=${say("search name, type or scope")} value=${q}
        aria-label=${say("search name, type or scope")} onInput=${(event) => setQuery({ q: event.currentTarget.value })} />
      <label><input type="checkbox" checked=${bad === "1"} onChange=${(event) =>
        setQuery({ bad: event.currentTarget.checked ? "1" : "" })} /> ${say("bad only")}</label>
      <${Prepared} step=${step} />
      <span aria-live="polite">${order.length} ${say("of")} ${count(operators)}</span>
    </div>
    <${Table} columns=${columns} order=${order} health=${(index) => operators.health[index]} label=${say("Operators")} start=${start}
      isCurrent=${isOpen(parts)} sort=${sort} onSort=${(name) => setQuery({ sort: name })} onOpen=${(index) => follow(panelLink(parts, index))} />
  </main>`;
}

/** Rows that match, in the order that was asked for; execution order without one. */
export function ordered(operators, columns, { q, sort, bad, hidden = new Set() }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const order = [];
  for (let index = 0; index < operators.name.length; index += 1) {
    if (hidden.has(index)) continue;
    if (bad === "1" && !isBad(operators.health[index])) continue;
    const text = `${operators.name[index]} ${operators.type[index]} ${operators.scope[index]}`.toLowerCase();
    if (words.every((word) => text.includes(word))) order.push(index);
  }
  const column = columns.find(({ name }) => name === sort.replace(/^-/, ""));
  if (column === undefined) return order;
  const way = sort.startsWith("-") ? 1 : -1;
  const values = new Map(order.map((index) => [index, column.value(index)]));
  const compare = (one, other) => (one === other ? 0 : one === null || one === undefined ? -1 : one < other ? -1 : 1);
  return order.sort((one, other) => way * compare(values.get(one), values.get(other)) || one - other);
}

/** The output that is worst, else the first output, else the first input; null for an operator without tensors. */
function worstTensor({ operators, tensors }, index) {
  const [begin, end] = [operators.first[index], operators.first[index + 1] ?? count(tensors)];
  const all = Array.from({ length: end - begin }, (_, place) => begin + place);
  const outputs = all.filter((one) => tensors.io[one] === "output");
  const candidates = outputs.length ? outputs : all;
  return candidates.find((one) => isBad(tensors.health[one])) ?? candidates[0] ?? null;
}

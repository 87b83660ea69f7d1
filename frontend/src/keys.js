// Keys of the page, what they do, and the list of them that "?" opens.
import { signal } from "@preact/signals";
import { bookmarks, toggled } from "./bookmarks.js";
import { neighbours, ownerOf, ranksBeside } from "./pages/tensor.js";
import { sides } from "./panel/pictures.js";
import { openPalette } from "./palette.js";
import { closePanel } from "./panel/panel.js";
import { readersOf } from "./scopes.js";
import { get, progress } from "./source.js";
import { follow, link, openOperator, panelLink, place, setQuery } from "./state.js";
import { count, html, isBad } from "./view.js";
import { say } from "./words.js";

const isHelpShown = signal(false);
const rows = [
  ["/", "search"], ["j k", "next and previous operator"], ["n N", "next and previous operator that is not well"],
  ["i o", "the operator that made an input, the one that reads an output"], ["[ ]", "iteration before and after"],
  ["{ }", "rank before and after"], ["Enter", "open what has the focus"], ["Esc", "close the panel, or up"], ["g t h", "graph, table, elements"],
  ["+ - 0", "move, zoom and show all of a graph"], ["← → ↑ ↓", "next box in a direction"],
  ["d", "mine, golden, difference"], ["c", "copy the command"], ["y", "copy the link"], ["b", "bookmark"], [".", "theme"], ["Ctrl+K", "go to a page, a step or an operator"], ["?", "these keys"],
];

export function KeyHelp() {
  if (!isHelpShown.value) return null;
  return html`<div class="keys" role="dialog" aria-modal="true" aria-label=${say("keys")} onClick=${() => { isHelpShown.value = false; }}>
    <h2>${say("keys")}</h2><table class="plain"><tbody>${rows.map(([keys, text]) => html`<tr key=${keys}><th scope="row">${
      keys.split(" ").map((key) => html`<kbd key=${key}>${key}</kbd>`)}</th><td>${say(text)}</td></tr>`)}</tbody></table></div>`;
}

/** Listen to the keys of the page; switchTheme: what "." does. */
export function listen(switchTheme) {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      return openPalette();
    }
    if (event.target.closest?.("dialog")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    if (isHelpShown.value && event.key !== "Shift") {
      isHelpShown.value = false;
      if (event.key === "Escape" || event.key === "?") return;
    }
    const action = { ".": switchTheme, "?": () => { isHelpShown.value = true; } }[event.key] ?? actions[event.key];
    if (action !== undefined) action(where(), event);
  });
}

/** What the keys are about: the page that is shown, a step, and the number of an operator or tensor if one is looked at. */
function where() {
  const { page, parts, query } = place.value;
  const open = openOperator(place.value);
  const isTensor = page === "tensor";
  return { page, query, parts, isPanel: open !== null && page !== "operator", step: (open ?? parts).slice(0, 3), number: open !== null || isTensor ? Number((open ?? parts)[3]) : null };
}

async function answersFor({ page, step, number }) {
  const answers = await get(`step/${step.join("/")}`);
  const operator = page === "tensor" ? ownerOf(answers.operators, number) : number;
  return { ...answers, operator, end: answers.operators.first[operator + 1] ?? count(answers.tensors) };
}

const actions = {
  "/": search,
  j: (at) => walk(at, 1, false),
  k: (at) => walk(at, -1, false),
  n: (at) => walk(at, 1, true),
  N: (at) => walk(at, -1, true),
  i: producer,
  o: consumer,
  "[": (at) => beside(at, neighbours, 0),
  "]": (at) => beside(at, neighbours, 1),
  "{": (at) => beside(at, ranksBeside, 0),
  "}": (at) => beside(at, ranksBeside, 1),
  Escape: up,
  g: ({ step, query }) => step.length === 3 && follow(link("graph", step, { op: query.op })),
  t: ({ step, query }) => step.length === 3 && follow(link("operators", step, { op: query.op })),
  h: elements,
  d: otherSide,
  c: () => document.querySelector(".commands button.copy")?.click(),
  y: copyLink,
  b: bookmark,
};

function search({ page, step }, event) {
  event.preventDefault();
  const isHere = document.getElementById("search") !== null;
  if (!isHere && page !== "operators" && step.length === 3) follow(link("operators", step));
  setTimeout(() => document.getElementById("search")?.focus(), 50);
}

async function walk(at, way, isBadOnly) {
  if (at.number === null || at.page === "tensor") return;
  const { operators } = await answersFor(at);
  for (let one = at.number + way; one >= 0 && one < count(operators); one += way) {
    if (!isBadOnly || isBad(operators.health[one])) return follow(panelLink(at.step, one));
  }
}

async function producer(at) {
  if (at.number === null) return;
  const { operators, tensors, operator, end } = await answersFor(at);
  const made = tensors.source.slice(operators.first[operator], end).find((one) => one !== null);
  if (made !== undefined) follow(panelLink(at.step, made));
}

async function consumer(at) {
  if (at.number === null) return;
  const answers = await answersFor(at);
  const [reader] = readersOf(answers, answers.operator);
  if (reader !== undefined) follow(panelLink(at.step, reader));
}

/** The same page of another iteration or rank, and the operator of that number there. */
async function beside({ page, parts, step, number, query, isPanel }, stepsBeside, side) {
  if (step.length < 3) return;
  const target = stepsBeside(await get("overview"), step)[side];
  if (target === null) return;
  if (isPanel) follow(link(page, parts.length >= 3 ? target : parts, { ...query, op: [...target, number].join("/") }));
  else follow(link(page, number === null ? target : [...target, number], query));
}

async function up(at) {
  if (at.isPanel) return closePanel();
  if (at.page === "tensor") return follow(link("operator", [...at.step, (await answersFor(at)).operator]));
  follow(at.page === "operator" ? link("operators", at.step) : link("overview"));
}

async function elements(at) {
  if (at.number === null || at.page === "tensor" || progress.value === null) return; // a report holds no elements
  const { operators, tensors, operator, end } = await answersFor(at);
  for (let one = end - 1; one >= operators.first[operator]; one -= 1) {
    if (tensors.has_elements[one]) return follow(link("tensor", [...at.step, one]));
  }
}

async function otherSide({ page, query }) {
  if (page !== "tensor" || (await get("overview")).golden === null) return;
  const next = sides[(sides.indexOf(query.what ?? "mine") + 1) % sides.length];
  setQuery({ what: next === "mine" ? "" : next });
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    // No clipboard outside of a secure page; the address bar has the link.
  }
}

async function bookmark(at) {
  if (at.number === null) return;
  setQuery({ b: toggled(bookmarks(), [...at.step, (await answersFor(at)).operator]) });
}

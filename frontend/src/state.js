// What is looked at is in the URL's fragment and nowhere else: "#/operators/0/0/5?q=conv&sort=max".
import { signal } from "@preact/signals";

/** @typedef {{page: string, parts: string[], query: Record<string, string>, fragment: string}} Place */
export const place = signal(parsed(globalThis.location?.hash ?? ""));

/** @returns {Place} */
export function parsed(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { page: parts[0] ?? "overview", parts: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)), fragment };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

/** The link to a page; empty values of the query are left out. Bookmarks go along. */
export function link(page, parts = [], query = {}) {
  const kept = Object.entries({ b: place.value.query.b, ...query }).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(kept).toString();
  return `#/${[page, ...parts].map((part) => encodeURIComponent(part ?? "-")).join("/")}${search && `?${search}`}`;
}

/** The link that opens an operator beside the page that is shown; of an operator's own page, that of the other one. */
export function panelLink(parts, operatorNumber) {
  const { page, parts: shown, query } = place.value;
  const all = [...parts, operatorNumber].map((part) => part ?? "-");
  return isOneOperator(page) ? link("operator", all) : link(page, shown, { ...query, op: all.join("/") });
}

const isOneOperator = (page) => page === "operator" || page === "tensor";

/** The operator that the panel shows or the page is about: [rank, graph, iteration, number]; null without one. */
export function openOperator({ page, parts, query }) {
  const all = page === "operator" ? parts : isOneOperator(page) ? [] : (query.op ?? "").split("/");
  return all.length === 4 && /^\d+$/.test(all[3]) ? all : null;
}

/** Tells whether the operator of a number, in a step, is the one that is open. */
export function isOpen(step) {
  const open = openOperator(place.value);
  const isHere = open !== null && open.slice(0, 3).join() === step.join();
  return (number) => isHere && Number(open[3]) === number;
}

/** Change the query of the page that is shown, without a new entry in the history. */
export function setQuery(change) {
  const { page, parts, query } = place.value;
  history.replaceState(null, "", link(page, parts, { ...query, ...change }));
  place.value = parsed(location.hash);
}

let push = (target) => { location.hash = target; };

export function follow(target) {
  push(target);
}

/** In a frame without an origin, as a notebook has one, no link leads anywhere: what is followed is only noted. */
export function followByHand() {
  push = (target) => {
    history.pushState(null, "", target);
    place.value = parsed(location.hash);
  };
  addEventListener("popstate", () => { place.value = parsed(location.hash); });
  addEventListener("click", (event) => {
    const target = event.target.closest?.("a[href^='#']")?.getAttribute("href");
    if (!target || event.defaultPrevented) return;
    event.preventDefault();
    push(target);
  });
}

/** A step as parts of a link; what folders do not tell is "-". */
export const stepParts = (step) => step.map((part) => (part === null ? "-" : String(part)));


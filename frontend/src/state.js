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

/** Change the query of the page that is shown, without a new entry in the history. */
export function setQuery(change) {
  const { page, parts, query } = place.value;
  history.replaceState(null, "", link(page, parts, { ...query, ...change }));
  place.value = parsed(location.hash);
}

export function follow(target) {
  location.hash = target;
}

/** A step as parts of a link; what folders do not tell is "-". */
export const stepParts = (step) => step.map((part) => (part === null ? "-" : String(part)));

/** The link that shows an operator of a step; parts: rank, graph and iteration. */
export const panelLink = (parts, operatorNumber) => link("operator", [...parts, operatorNumber]);

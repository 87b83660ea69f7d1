// Operators that are marked, kept in the URL: "b" is "rank/graph/iteration/operator", several with "|" between.
import { useEffect, useState } from "preact/hooks";
import { get } from "./source.js";
import { panelLink, place } from "./state.js";
import { html } from "./view.js";
import { say } from "./words.js";

/** The marked operators: [rank, graph, iteration, number] of each. */
export function bookmarks() {
  return (place.value.query.b ?? "").split("|").map((one) => one.split("/").map(decodeURIComponent)).filter((one) => one.length === 4);
}

/** The value of "b" with an operator added, or taken out when it was there. */
export function toggled(all, parts) {
  const text = (one) => one.map(encodeURIComponent).join("/");
  const others = all.map(text).filter((one) => one !== text(parts));
  return (others.length < all.length ? others : [...others, text(parts)]).join("|");
}

/** Links to the marked operators. */
export function Bookmarks() {
  const all = bookmarks();
  const key = place.value.query.b ?? "";
  const [names, setNames] = useState({ key: "", of: [] });
  useEffect(() => {
    let isWanted = true;
    const nameOf = (parts) => get(`step/${parts.slice(0, 3).join("/")}`).then(({ operators }) => operators.name[Number(parts[3])], () => undefined);
    Promise.all(all.map(nameOf)).then((of) => isWanted && setNames({ key, of }));
    return () => { isWanted = false; };
  }, [key]);
  if (all.length === 0) return null;
  const name = (at, parts) => (names.key === key ? names.of[at] : undefined) ?? `#${parts[3]}`;
  return html`<nav class="bookmarks" aria-label=${say("bookmarks")}>${all.map((parts, at) => html`<a key=${parts.join("/")} class="name"
    href=${panelLink(parts.slice(0, 3), parts[3])}>★ ${name(at, parts)}</a>`)}</nav>`;
}

// What all pages share: the template tag, health marks, links to operators.
import { h } from "preact";
import htm from "htm";
import { number } from "./format.js";
import { panelLink, stepParts } from "./state.js";
import { say } from "./words.js";

export const html = htm.bind(h);

// Health -> class of its colour, and a sign of its own for those who do not see colours.
export const marks = {
  "not finite made here": ["made", "✖"],
  "not finite came in": ["came", "▼"],
  "differs": ["differs", "≠"],
  "suspicious": ["suspicious", "?"],
  "ok": ["ok", "·"],
  "not written yet": ["unmeasured", "○"],
  "not measured": ["unmeasured", "–"],
};
export const isBad = (health) => !["ok", "not written yet", "not measured"].includes(health);

/** What a health means, where its name does not say it. */
export const meanings = { suspicious: "all elements alike, or near the largest value of the dtype" };

export function Health({ health }) {
  const [name, sign] = marks[health] ?? ["unmeasured", "–"];
  return html`<span class="health ${name}" title=${say(meanings[health] ?? health)}><b aria-hidden="true">${sign}</b> ${say(health)}</span>`;
}

/** A link to an operator where its number is known, else its name. */
export function At({ at }) {
  if (at.operator === null) return html`<span class="name">${at.name}</span>`;
  return html`<a class="name" href=${panelLink(stepParts(at.step), at.operator)}>${at.name}</a>`;
}

/** A number in four digits, all of its digits where the pointer rests. */
export function Num({ value }) {
  const text = number(value);
  const exact = typeof value === "number" ? String(value) : text;
  return exact === text ? text : html`<span title=${exact}>${text}</span>`;
}

export function Line({ line }) {
  if (line === null || line === undefined) return null;
  const [path, at, code] = line;
  return html`<div class="line"><span class="where">${path}:${at}</span><code>${code}</code></div>`;
}

/** Ranks that the others outvote -> in how many tensors. */
export const outvotedRanks = (overview) => new Map((overview.outvoted ?? []).map(([rank, tensors]) => [String(rank), tensors]));

/** The sign of an outvoted rank; nothing for another one. */
export function Outvoted({ overview, rank }) {
  const tensors = outvotedRanks(overview).get(String(rank));
  return tensors === undefined ? null : html`<b class="outvoted" title=${`${tensors} ${say("tensors")}`}>≠ ${say("outvoted")}</b>`;
}

/** The step that pages open with, as parts of a link: the one of the verdict, else the first; undefined without steps. */
export function openingStep(overview) {
  if (overview.verdict.at !== null) return stepParts(overview.verdict.at.step);
  const { rank, graph, iteration } = overview.steps;
  return rank.length === 0 ? undefined : stepParts([rank[0], graph[0], iteration[0]]);
}

/** Columns to a row's values, by name. */
export const row = (table, index) => Object.fromEntries(Object.keys(table).map((name) => [name, table[name][index]]));
export const count = (table) => Object.values(table)[0]?.length ?? 0;

/** The end of a long name, which tells more than its beginning. */
export function shortened(name, most = globalThis.innerWidth < 700 ? 22 : 44) {
  return name.length > most ? `…${name.slice(1 - most)}` : name;
}

/** Names without a first and a last part that most of them share, where they stay different: "aten_mm_default" -> "mm". */
export function withoutCommonParts(names) {
  const all = [...new Set(names)];
  const cut = new Map(all.map((name) => [name, name]));
  for (const part of [/[_.][^_.]+$/, /^[^_.]+[_.]/]) {
    const counts = new Map();
    for (const name of cut.values()) {
      const found = part.exec(name)?.[0];
      if (found !== undefined) counts.set(found, (counts.get(found) ?? 0) + 1);
    }
    const [common, some] = [...counts].sort((one, other) => other[1] - one[1])[0] ?? ["", 0];
    if (some < 3 || some * 2 < all.length) continue;
    const shorter = new Map([...cut].map(([name, text]) => [name, part.exec(text)?.[0] === common ? text.replace(part, "") : text]));
    if (new Set(shorter.values()).size === cut.size) shorter.forEach((text, name) => cut.set(name, text));
  }
  return (name) => cut.get(name) ?? name;
}

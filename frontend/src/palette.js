// A field that leads to any page, step and operator by its name: Ctrl+K.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./source.js";
import { follow, link, panelLink, place, stepParts } from "./state.js";
import { count, html, marks } from "./view.js";
import { say } from "./words.js";

const MOST = 60; // rows that are shown
const isShown = signal(false);

export const openPalette = () => { isShown.value = true; };

/** Entries whose texts have all words of a question, those that begin with it first; at most `most`. */
export function matching(entries, question, most = MOST) {
  const text = question.trim().toLowerCase();
  const words = text.split(/\s+/).filter(Boolean);
  const found = [];
  for (const entry of entries) {
    const label = `${entry.label} ${entry.kind}`.toLowerCase();
    if (words.every((word) => label.includes(word))) found.push([label.startsWith(text) ? 0 : 1, entry]);
  }
  return found.sort(([one], [other]) => one - other).slice(0, most).map(([, entry]) => entry);
}

/** pages: [[name, title]]; chosen: the step that pages of a step open with; needsStep: name of a page -> whether it has one */
export function Palette(props) {
  return isShown.value ? html`<${Dialog} ...${props} />` : null;
}

function Dialog({ overview, pages, chosen, needsStep }) {
  const dialog = useRef(null);
  const [question, setQuestion] = useState("");
  const [picked, setPicked] = useState(0);
  const [operators, setOperators] = useState(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.isConnected && before !== document.body && before.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    if (chosen !== undefined) get(`step/${chosen.join("/")}`).then((step) => setOperators(step.operators), () => {});
  }, [chosen?.join("/")]);
  const entries = [...entriesOf(overview, pages, chosen, needsStep),
    ...(operators === null ? [] : operators.name.map((label, number) => ({ kind: say("operator"), label, health: operators.health[number], href: () => panelLink(chosen, number) })))];
  const shown = matching(entries, question);
  const at = Math.min(picked, shown.length - 1);
  const go = (entry) => {
    isShown.value = false;
    if (entry !== undefined) follow(entry.href());
  };
  const key = (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way !== undefined) {
      event.preventDefault();
      setPicked((at + way + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") go(shown[at]);
  };
  useEffect(() => { document.getElementById(`entry-${at}`)?.scrollIntoView({ block: "nearest" }); }, [at]);
  return html`<dialog class="palette" ref=${dialog} aria-label=${say("go to")} onClose=${() => { isShown.value = false; }}
    onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="entries" aria-activedescendant=${shown.length > 0 ? `entry-${at}` : null} aria-label=${say("go to")}
      placeholder=${say("page, step or operator")} value=${question} onKeyDown=${key} onInput=${(event) => { setQuestion(event.currentTarget.value); setPicked(0); }} />
    <ul id="entries" role="listbox" aria-label=${say("go to")}>${shown.map((entry, place) => html`<li key=${`${entry.kind} ${entry.label}`} id=${`entry-${place}`} role="option" aria-selected=${place === at}
      onClick=${() => go(entry)} onMouseMove=${() => place !== at && setPicked(place)}><span class="kind">${entry.kind}</span> <span class=${entry.health ? "name" : ""}>${entry.label}</span>${
        entry.health && html` <b class=${`health ${marks[entry.health]?.[0]}`} title=${say(entry.health)}>${marks[entry.health]?.[1]}</b>`}</li>`)}</ul>
    ${shown.length === 0 && html`<p class="quiet">${say("nothing found")}</p>`}
  </dialog>`;
}

function entriesOf({ steps }, pages, chosen, needsStep) {
  const { page } = place.value;
  // A step opens on the page that is shown, if that one has a step.
  const target = pages.some(([name]) => name === page) && needsStep(page) ? page : "operators";
  return [
    ...pages.map(([name, title]) => ({ kind: say("page"), label: say(title), href: () => link(name, needsStep(name) ? chosen : []) })),
    ...Array.from({ length: count(steps) }, (_, at) => {
      const parts = stepParts([steps.rank[at], steps.graph[at], steps.iteration[at]]);
      const label = ["rank", "graph", "iteration"].map((name, part) => (parts[part] === "-" ? "" : `${say(name)} ${parts[part]}`)).filter(Boolean).join(" ");
      return { kind: say("step"), label, href: () => link(target, parts) };
    }),
  ];
}

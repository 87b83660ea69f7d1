// A field that finds operators of the graph and goes to them.
import { useState } from "preact/hooks";
import { html, marks, shortened } from "../view.js";
import { say } from "../words.js";

const MOST = 12;

/** Numbers of operators whose name or type has all words of a text, in order. */
export function matches({ name, type, is_parameter: isParameter }, text, most = Infinity) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let index = 0; words.length > 0 && index < name.length && found.length < most; index += 1) {
    const about = `${name[index]} ${type[index]}`.toLowerCase();
    if (!isParameter[index] && words.every((word) => about.includes(word))) found.push(index);
  }
  return found;
}

export function Search({ operators, onJump }) {
  const [state, setState] = useState({ text: "", at: 0, isOpen: false });
  const found = state.text === "" ? [] : matches(operators, state.text);
  const shown = found.slice(0, MOST);
  const at = Math.min(state.at, shown.length - 1);
  const jump = (index) => {
    setState({ ...state, isOpen: false });
    onJump(index);
  };
  const onKeyDown = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setState({ ...state, isOpen: true, at: Math.max(0, Math.min(shown.length - 1, at + (event.key === "ArrowDown" ? 1 : -1))) });
    } else if (event.key === "Enter" && shown.length > 0) {
      // Enter again goes to the next one.
      setState({ ...state, isOpen: true, at: (at + 1) % shown.length });
      onJump(shown[at]);
    } else if (event.key === "Escape") setState({ ...state, isOpen: false });
  };
  return html`<div class="find">
    <input id="search" type="search" role="combobox" autocomplete="off" placeholder=${say("search name or type")} aria-label=${say("search name or type")}
      aria-expanded=${state.isOpen && shown.length > 0} aria-controls="found" aria-activedescendant=${state.isOpen && shown.length > 0 ? `found-${at}` : null}
      value=${state.text} onKeyDown=${onKeyDown} onInput=${(event) => setState({ text: event.currentTarget.value, at: 0, isOpen: true })}
      onBlur=${() => setTimeout(() => setState((now) => ({ ...now, isOpen: false })), 150)} />
    <span class="quiet" aria-live="polite">${state.text === "" ? "" : found.length === 0 ? say("nothing found") : found.length}</span>
    <ul id="found" role="listbox" aria-label=${say("Operators")} hidden=${!state.isOpen || shown.length === 0}>${shown.map((index, place) => html`<li key=${index} id=${`found-${place}`}
      role="option" aria-selected=${place === at} onPointerDown=${(event) => event.preventDefault()} onClick=${() => jump(index)}>
      <span class=${`health ${marks[operators.health[index]][0]}`}>${marks[operators.health[index]][1]}</span> ${shortened(operators.name[index])}</li>`)}</ul>
  </div>`;
}

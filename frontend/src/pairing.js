// Operators without a partner: two of them are picked, and become a line of the mapping file.
import { useState } from "preact/hooks";
import { Copy } from "./copy.js";
import { addPair, canAct } from "./source.js";
import { place, setQuery } from "./state.js";
import { html } from "./view.js";
import { say } from "./words.js";

const MOST = 500; // names in one list

export function Pairing({ mine, golden }) {
  const [told, setTold] = useState("");
  if (mine.length === 0 && golden.length === 0) return null;
  const { pm = "", pg = "" } = place.value.query;
  const line = JSON.stringify({ operators: { [pm]: pg } });
  const add = () => addPair(pm, pg).then(({ mapping }) => {
    setTold(`${say("written to")} ${mapping}`);
    setQuery({ pm: "", pg: "" });
  }, (error) => setTold(error.message));
  const list = (title, names, key, picked) => html`<label>${say(title)}: ${names.length} <select value=${names.includes(picked) ? picked : ""}
    onChange=${(event) => setQuery({ [key]: event.currentTarget.value })}><option value="">–</option>${
      names.slice(0, MOST).map((one, at) => html`<option key=${at} value=${one}>${one}</option>`)}</select></label>`;
  return html`<details class="pairing" open=${pm !== "" || pg !== "" || told !== ""}><summary>${say("without a partner")}: ${mine.length} ↔ ${golden.length}</summary>
    <div class="tools">${list("only here", mine, "pm", pm)} ${list("only in golden", golden, "pg", pg)}
      ${pm !== "" && pg !== "" && html`<code>${line}</code> ${canAct() ? html`<button onClick=${add}>${say("pair")}</button>` : html`<${Copy} text=${line} label="copy for --mapping" />`}`}
      ${told !== "" && html`<span role="status">${told}</span>`}</div></details>`;
}

// Pictures of one tensor of an operator: exponents of both sides, and from a server its elements and how far they differ.
import { useEffect, useState } from "preact/hooks";
import { Bars } from "../bars.js";
import { Exponents } from "../exponents.js";
import { shape } from "../format.js";
import { HeatMap } from "../heatmap.js";
import { getPicture, getText, partAddress, progress } from "../source.js";
import { link } from "../state.js";
import { Health, html } from "../view.js";
import { say } from "../words.js";
import { goldenTensor } from "./model.js";

export const sides = ["mine", "golden", "difference", "relative", "ulp"];
export const isDistance = (side) => !["mine", "golden"].includes(side);
/** What a side or a distance is called. */
export const sideName = (side) => say({ relative: "relative difference", ulp: "ULP" }[side] ?? side);

/** Buttons for the sides of a pair of tensors. */
export function Sides({ shown, onPick }) {
  return html`<span class="sides" role="group" aria-label=${say("side")}>${sides.map((side) => html`<button key=${side} aria-pressed=${shown === side}
    onClick=${() => onPick(side)}>${sideName(side)}</button>`)}</span>`;
}

export function Pictures({ tensor, parts, golden, isShown }) {
  const other = goldenTensor(golden, tensor, tensor.at);
  const hasElements = tensor.has_elements && progress.value !== null;
  const [isOpen, setOpen] = useState(isShown);
  return html`<article class="tensor">
    <h3>${say(tensor.io)} ${tensor.slot} <span class="quiet">${tensor.dtype} ${shape(tensor.shape)}</span> <${Health} health=${tensor.health} /></h3>
    <div class="pictures"><div><${Exponents} counts=${tensor.exponents} golden=${other?.exponents ?? null} /></div>
    ${hasElements && (isOpen ? html`<${Elements} tensor=${tensor} parts=${parts} pair=${other} />`
      : html`<button onClick=${() => setOpen(true)}>${say("show the elements")}</button>`)}</div>
    <p class="quiet">${say("file")} <code>${tensor.file}</code>${hasElements && html` <a class="elements-link" title=${`${say("elements")} (h)`} href=${link("tensor", [...parts, tensor.at])}>${say("elements")}</a>`}</p>
  </article>`;
}

/** The first matrix of a side or a distance, and the histogram of the distances. */
function Elements({ tensor, parts, pair }) {
  const isPaired = pair !== null;
  const [side, setSide] = useState(pair?.status === "differs" ? "difference" : "mine");
  const query = side === "mine" ? {} : { what: side };
  const picture = useFetched(partAddress("picture", parts, tensor.at, query), getPicture);
  return html`<div class="pair" aria-busy=${picture === undefined}>
    ${isPaired && html`<${Sides} shown=${side} onPick=${setSide} />`}
    ${picture?.message !== undefined && html`<p class="quiet">${picture.message}</p>`}
    ${picture?.about !== undefined && html`<${HeatMap} key=${side} picture=${picture} mostHigh=${240} isDistance=${isDistance(side)} />`}
    ${isPaired && isDistance(side) && html`<${Histogram} parts=${parts} number=${tensor.at} query=${query} />`}
  </div>`;
}

/** How the elements of a side are spread, or how far those of a pair are apart. query: what, and an index or none. */
export function Histogram({ parts, number, query }) {
  const answer = useFetched(partAddress("histogram", parts, number, query), getText);
  if (answer === undefined) return html`<p aria-busy="true">…</p>`;
  if (answer.message !== undefined) return html`<p class="quiet">${answer.message}</p>`;
  const title = { difference: "|mine − golden|", relative: "|mine − golden| / |golden|", ulp: "ULP" }[answer.what] ?? say("value");
  return html`<${Bars} histogram=${answer} title=${title} />`;
}

/** What is at an address of the server: undefined until it is there, an Error where there is nothing. */
function useFetched(address, fetched) {
  const key = `${progress.value?.version} ${address}`;
  const [state, setState] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    fetched(address, stop.signal).then((answer) => setState({ key, answer }), (error) => error.name !== "AbortError" && setState({ key, answer: error }));
    return () => stop.abort();
  }, [key]);
  return state.key === key ? state.answer : undefined;
}

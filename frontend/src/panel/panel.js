// The panel beside a page: the operator that "op" of the address names, with the width that the reader gives it.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useAnswers } from "../answers.js";
import { OperatorView } from "../pages/operator.js";
import { link, openOperator, place, setQuery } from "../state.js";
import { count, html } from "../view.js";
import { say } from "../words.js";

const [LEAST, STEP] = [360, 40]; // px
const NARROW = 900; // px, as panel.css has it: below it the panel covers the page
const width = signal(620);
const windowWidth = signal(globalThis.innerWidth ?? 1280);
globalThis.addEventListener?.("resize", () => { windowWidth.value = innerWidth; });

const shown = computed(() => (["operator", "tensor"].includes(place.value.page) ? null : openOperator(place.value)));

/** Whether the panel hides the page. */
export const isPanelOver = computed(() => shown.value !== null && windowWidth.value < NARROW);

/** Close the panel; the focus goes back to what opened it. */
export const closePanel = () => setQuery({ op: "" });

/** A width that leaves room for the page. */
export const bounded = (wanted, all) => Math.round(Math.max(LEAST, Math.min(wanted, all - LEAST)));

export function Panel({ overview }) {
  const root = useRef(null);
  const opener = useRef(null);
  const parts = shown.value;
  const key = parts?.join("/") ?? null;
  useEffect(() => {
    if (key === null) {
      // The row that had the focus may be drawn anew; the page itself is always there.
      const back = opener.current?.isConnected ? opener.current : document.querySelector("main a, main button, main [tabindex]");
      if (opener.current !== null) back?.focus({ preventScroll: true });
      opener.current = null;
    } else if (!root.current.contains(document.activeElement)) {
      opener.current = document.activeElement === document.body ? document.querySelector("main [tabindex]") : document.activeElement;
      root.current.focus({ preventScroll: true });
    }
  }, [key]);
  if (parts === null) return null;
  const wide = bounded(width.value, windowWidth.value);
  return html`<div class="panel" ref=${root} tabindex="-1" role=${isPanelOver.value ? "main" : "complementary"} aria-label=${say("operator")} style=${{ width: `${wide}px` }}>
    <${Handle} wide=${wide} />
    <div class="panel-body"><div class="panel-tools"><a href=${link("operator", parts)}>${say("own page")}</a>
      <button title=${`${say("close")} (Esc)`} aria-label=${say("close")} onClick=${closePanel}>✕</button></div>
    <${Content} key=${key} parts=${parts} overview=${overview} /></div>
  </div>`;
}

function Content({ parts, overview }) {
  const step = parts.slice(0, 3);
  const { answers, error } = useAnswers([`step/${step.join("/")}`]);
  if (error) return html`<p role="alert">${error.message}</p>`;
  if (!answers) return html`<p aria-busy="true" aria-live="polite">…</p>`;
  const index = Number(parts[3]);
  if (index >= count(answers[0].operators)) return html`<p role="alert">${say("This step has no operator of that number.")}</p>`;
  return html`<${OperatorView} step=${answers[0]} parts=${step} index=${index} overview=${overview} isPanel=${true} />`;
}

/** The border that is dragged, or moved by the arrow keys. */
function Handle({ wide }) {
  const drag = (event) => {
    event.preventDefault();
    const handle = event.currentTarget;
    handle.setPointerCapture(event.pointerId);
    const move = ({ clientX }) => { width.value = bounded(innerWidth - clientX, innerWidth); };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  const key = (event) => {
    const way = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (way !== undefined) width.value = bounded(wide + way, innerWidth);
  };
  return html`<div class="handle" role="separator" tabindex="0" aria-orientation="vertical" aria-label=${say("width of the panel")} aria-valuenow=${wide}
    aria-valuemin=${LEAST} aria-valuemax=${Math.max(LEAST, windowWidth.value - LEAST)} onPointerDown=${drag} onKeyDown=${key}></div>`;
}

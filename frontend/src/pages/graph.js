// The graph of a step, which opens where something is not well.
import { useSettled } from "../answers.js";
import { firstBad, Graph as Picture } from "../graph/graph.js";
import { get, progress } from "../source.js";
import { html } from "../view.js";

export function Graph({ step, parts }) {
  const compare = useComparison(parts);
  const bad = firstBad(step);
  return html`<${Picture} key=${parts.join("/")} step=${step} parts=${parts} compare=${compare} golden=${compare?.side ?? null} targets=${bad === undefined ? [] : [bad]} />`;
}

/** The comparison of a step with the golden dump, and its golden side as `side`; null where there is none, or none yet. */
export function useComparison(parts) {
  const isReady = progress.value === null || progress.value.stage === "ready"; // a server compares last
  const path = parts.join("/");
  const key = isReady ? `${progress.value?.version} ${path}` : null;
  // Golden sides are listed: a step of the comparison may have none. Both come at once, so that the graph is drawn once.
  const state = useSettled(key, () => get("overview").then(async ({ golden, pages }) => {
    if (golden === null) return null;
    const [compare, side] = await Promise.all([get(`compare/${path}`), pages.includes(`golden/${path}`) ? get(`golden/${path}`) : null]);
    return { ...compare, side };
  }));
  return key !== null && state.key === key ? state.answer ?? null : null;
}

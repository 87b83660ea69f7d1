// The graph of a step, which opens where something is not well.
import { useEffect, useState } from "preact/hooks";
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
  const [state, setState] = useState({});
  const isReady = progress.value === null || progress.value.stage === "ready"; // a server compares last
  const key = isReady ? `${progress.value?.version} ${parts.join("/")}` : "";
  useEffect(() => {
    if (key === "") return undefined;
    let isWanted = true;
    const path = parts.join("/");
    // Golden sides are listed: a step of the comparison may have none. Both come at once, so that the graph is drawn once.
    const has = get("overview").then(async ({ golden, pages }) => {
      if (golden === null) return null;
      const [compare, side] = await Promise.all([get(`compare/${path}`), pages.includes(`golden/${path}`) ? get(`golden/${path}`) : null]);
      return { ...compare, side };
    });
    has.then((compare) => isWanted && setState({ key, compare }), () => isWanted && setState({ key, compare: null }));
    return () => { isWanted = false; };
  }, [key]);
  return state.key === key ? state.compare : null;
}

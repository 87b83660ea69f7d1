// Answers that a component waits for.
import { useEffect, useState } from "preact/hooks";
import { get, openSource, progress } from "./source.js";

// The worker that lays out graphs has no document, and asks for nothing.
const opening = typeof document === "undefined" ? null : openSource(document);

/** The answers for some paths: null until all are there, or the first error. */
export function useAnswers(paths) {
  const key = `${progress.value?.version} ${paths.join("\n")}`;
  const [state, setState] = useState({ key: null });
  useEffect(() => {
    let isWanted = true;
    opening.then(() => Promise.all(paths.map(get))).then(
      (answers) => isWanted && setState({ key, answers }),
      (error) => isWanted && setState({ key, error }),
    );
    return () => { isWanted = false; };
  }, [key]);
  // While newer answers are on their way the old ones stay, unless another page is asked for.
  const isSamePage = state.key?.slice(state.key.indexOf(" ")) === key.slice(key.indexOf(" "));
  return state.key === key || (isSamePage && state.answers) ? state : { key };
}

/** The answer for a path that may not be there: undefined while it is on its way, null without one. */
export function useOptional(path) {
  const { answers, error } = useAnswers(path === null ? [] : [path]);
  return path === null || error ? null : answers?.[0];
}

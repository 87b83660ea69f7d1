// Answers that a component waits for.
import { computed, signal } from "@preact/signals";
import { useLayoutEffect, useState } from "preact/hooks";
import { get, openSource, progress } from "./source.js";

// The worker that lays out graphs has no document, and asks for nothing.
const opening = typeof document === "undefined" ? null : openSource(document);
const pending = signal(0);

/** "true" while newer answers are on their way to a component that may still show older ones: a value of aria-busy. */
export const isBusy = computed(() => (pending.value > 0 ? "true" : null));

/** What a promise becomes: {key, answer} or {key, error} of the last key that is settled; a null key asks for nothing. */
export function useSettled(key, ask) {
  const [state, setState] = useState({ key: null });
  // Before the browser paints: at no moment does an old answer pass for a new one.
  useLayoutEffect(() => {
    if (key === null) return undefined;
    let isWanted = true;
    pending.value += 1;
    const end = () => {
      if (isWanted) pending.value -= 1;
      isWanted = false;
    };
    const settle = (outcome) => {
      if (isWanted) setState({ key, ...outcome });
      end();
    };
    ask().then((answer) => settle({ answer }), (error) => settle({ error }));
    return end;
  }, [key]);
  return state;
}

/** The answers for some paths: null until all are there, or the first error. */
export function useAnswers(paths) {
  const key = `${progress.value?.version} ${paths.join("\n")}`;
  const state = useSettled(key, () => opening.then(() => Promise.all(paths.map(get))));
  // While newer answers are on their way the old ones stay, unless another page is asked for.
  const isSamePage = state.key?.slice(state.key.indexOf(" ")) === key.slice(key.indexOf(" "));
  if (state.key !== key && !(isSamePage && state.answer)) return {};
  return { answers: state.answer, error: state.error };
}

/** The answer for a path that may not be there: undefined while it is on its way, null without one. */
export function useOptional(path) {
  const { answers, error } = useAnswers(path === null ? [] : [path]);
  return path === null || error ? null : answers?.[0];
}

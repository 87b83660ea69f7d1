// Words of the page in two languages; what is missing in the second is shown in the first. The catalogue is the one of the
// commands: their sentences come with the answers, filled in, so that the page looks up a whole text in either case.
import { signal } from "@preact/signals";
import catalogue from "../../msdump/tables/chinese.json" with { type: "json" };

const chinese = new Map(Object.entries(catalogue));

/** Take the sentences of an answer: pairs of the English text and the Chinese one. */
export function learn(pairs = []) {
  for (const [english, other] of pairs) chinese.set(english, other);
}

export const language = signal(globalThis.navigator?.language?.startsWith("zh") ? "zh" : "en");
export const say = (text) => (language.value === "zh" ? (chinese.get(text) ?? text) : text);

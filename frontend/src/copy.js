// A button that copies a text.
import { html } from "./view.js";
import { say } from "./words.js";

export function Copy({ text, label = "copy command" }) {
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("copied");
    } catch {
      // No clipboard outside of a secure page: the text is there to be selected.
      const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
      button.replaceWith(field);
      field.select();
    }
  };
  return html`<button class="copy" title=${text} onClick=${copy}>${say(label)}</button>`;
}

// The frame of all pages: which step is shown, where to go, keys, and what to say while an answer is on its way.
import { signal } from "@preact/signals";
import { render } from "preact";
import { isBusy, useAnswers } from "./answers.js";
import { Bookmarks } from "./bookmarks.js";
import { KeyHelp, listen } from "./keys.js";
import { workAsLayout } from "./layout.js";
import { Bytes } from "./pages/bytes.js";
import { Compare } from "./pages/compare.js";
import { Graph } from "./pages/graph.js";
import { Lines } from "./pages/lines.js";
import { NanPath } from "./pages/nan.js";
import { Operator } from "./pages/operator.js";
import { Operators } from "./pages/operators.js";
import { Overflow } from "./pages/overflow.js";
import { Overview } from "./pages/overview.js";
import { Series } from "./pages/series.js";
import { Tensor } from "./pages/tensor.js";
import { Palette } from "./palette.js";
import { isPanelOver, Panel } from "./panel/panel.js";
import { isFramed, progress } from "./source.js";
import { bytes } from "./format.js";
import { followByHand, link, panelLink, parsed, place } from "./state.js";
import { NotFound, Where } from "./overview/where.js";
import { count, html, openingStep, outvotedRanks } from "./view.js";
import { language, say } from "./words.js";

const theme = signal("auto");
// The same file is the worker that lays out graphs.
const isWorker = typeof document === "undefined";

function App() {
  const { answers, error } = useAnswers(["overview"]);
  if (!answers && progress.value !== null) return html`<main><${Progress} /></main>`;
  if (error) return html`<p role="alert">${error.message}</p>`;
  if (!answers) return html`<p aria-live="polite">…</p>`;
  const [overview] = answers;
  const { page, parts } = place.value;
  const chosen = parts.length >= 3 ? parts.slice(0, 3) : openingStep(overview);
  const pages = [["overview", "Overview"], ["operators", "Operators"], ["graph", "Graph"], ["nan", "NaN path"],
    ...(overview.golden === null ? [] : [["compare", "Compare"]]), ["overflow", "Overflow"],
    ...["trend", "ranks"].filter((kind) => overview.pages.some((path) => path.startsWith(kind))).map((kind) => [kind, kind === "trend" ? "Trend" : "Ranks"]),
    ["bytes", "Bytes"], ["lines", "Source"]];
  const needsStep = (name) => name !== "overview" && name !== "nan";
  return html`<div class="frame" aria-busy=${isBusy} data-place=${place.value.fragment} data-theme=${theme.value} lang=${language.value}>
    <header class="top">
      <h1 class="title">${overview.dump}${overview.golden === null ? "" : ` ↔ ${overview.golden}`}</h1>
      <nav aria-label="pages">${pages.map(([name, title]) => html`<a key=${name} aria-current=${page === name || (["operator", "tensor"].includes(page) && name === "operators") ? "page" : null}
        href=${link(name, needsStep(name) ? chosen : [])}>${say(title)}</a>`)}</nav>
      <${Where} overview=${overview} chosen=${chosen} />
      <button title=${`${say("theme")} (.)`} aria-label=${say("theme")} onClick=${switchTheme}>◐</button>
      <button onClick=${() => { language.value = language.value === "zh" ? "en" : "zh"; }}>${language.value === "zh" ? "English" : "中文"}</button>
    </header>
    <${Bookmarks} />
    <div class="beside">
      <div class="shown" inert=${isPanelOver.value}><${Page} overview=${overview} chosen=${chosen} /></div>
      <${Panel} overview=${overview} />
    </div>
    ${progress.value !== null && progress.value.stage !== "ready" && html`<${Progress} />`}
    <footer>msdump ${overview.msdump} · <kbd>?</kbd> ${say("keys")} · <kbd>Ctrl K</kbd> ${say("go to")}</footer>
    <${KeyHelp} />
    <${Palette} overview=${overview} pages=${pages} chosen=${chosen} needsStep=${needsStep} />
  </div>`;
}

/** What the server is doing, while it is not done. */
function Progress() {
  const { stage, done = 0, total = 0, message = "" } = progress.value;
  return html`<div class="progress ${stage}" role="status"><span>${say(stage)}${message && `: ${message}`}</span>
    ${total > 0 && stage !== "failed" && html`<progress max=${total} value=${done}></progress> ${bytes(done)} ${say("of")} ${bytes(total)}`}</div>`;
}

function switchTheme() {
  const isDark = theme.value === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  theme.value = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = theme.value;
}

function Page({ overview, chosen }) {
  const { page, parts } = place.value;
  const at = chosen?.join("/");
  const group = { trend: chosen?.slice(0, 2), ranks: chosen?.slice(1) }[page];
  if (group !== undefined && !overview.pages.includes(`${page}/${group.join("/")}`)) {
    return html`<main><p class="quiet">${say("There is one step of this kind only.")}</p></main>`;
  }
  const paths = { overview: [], nan: ["nan"], trend: [`trend/${group?.join("/")}`], ranks: [`ranks/${group?.join("/")}`], compare: [`compare/${at}`, `step/${at}`] }[page] ?? [`step/${at}`];
  const { answers, error } = useAnswers(chosen === undefined ? [] : paths);
  if (error) return html`<${NotFound} message=${error.message} />`;
  if (!answers) return html`<main aria-busy="true"><p aria-live="polite">…</p></main>`;
  if (page === "nan") return html`<${NanPath} nan=${answers[0]} />`;
  if (page === "compare") return html`<${Compare} compare=${answers[0]} step=${answers[1]} parts=${chosen} />`;
  if (page === "operators") return html`<${Operators} step=${answers[0]} parts=${chosen} />`;
  if (group !== undefined) return html`<${Series} key=${page} series=${answers[0]} kind=${page} group=${group} marked=${page === "ranks" ? outvotedRanks(overview) : new Map()}
    headline=${page === "ranks" && overview.verdict.kind === "rank" ? html`<a href=${panelLink(overview.verdict.at.step.map((one) => one ?? "-"), overview.verdict.at.operator)}>${say(overview.verdict.text)}</a>` : null} />`;
  if (page === "graph") return html`<${Graph} step=${answers[0]} parts=${chosen} />`;
  if (page === "overflow") return html`<${Overflow} step=${answers[0]} parts=${chosen} />`;
  if (page === "bytes") return html`<${Bytes} step=${answers[0]} parts=${chosen} />`;
  if (page === "lines") return html`<${Lines} step=${answers[0]} parts=${chosen} />`;
  const index = Number(parts[3]);
  if (page === "operator" && index >= 0 && index < count(answers[0].operators)) {
    return html`<${Operator} key=${`${at}/${index}`} step=${answers[0]} parts=${chosen} index=${index} overview=${overview} />`;
  }
  if (page === "tensor" && index >= 0 && index < count(answers[0].tensors) && progress.value !== null) {
    return html`<${Tensor} key=${index} step=${answers[0]} parts=${chosen} number=${index} overview=${overview} />`;
  }
  if (page !== "overview") return html`<${NotFound} message=${location.hash} />`;
  return html`<${Overview} overview=${overview} />`;
}

if (isWorker) {
  workAsLayout();
} else {
  addEventListener("hashchange", () => { place.value = parsed(location.hash); });
  if (isFramed()) followByHand();
  listen(switchTheme);
  render(html`<${App} />`, document.getElementById("app"));
}

// The first page: one sentence that leads to the finding, the map, cards of what was found, and how the dump was made.
import { useOptional } from "../answers.js";
import { Copy } from "../copy.js";
import { bytes, number } from "../format.js";
import { link, panelLink, stepParts } from "../state.js";
import { count, Health, html, marks, Outvoted, row } from "../view.js";
import { say } from "../words.js";
import { HealthMap } from "../overview/map.js";

const sum = (values) => values.reduce((one, other) => one + other, 0);

export function Overview({ overview }) {
  const frame = useOptional("map");
  return html`<main class="overview"><div class="front">
    <${Headline} overview=${overview} />
    <div>${frame === undefined ? html`<p aria-busy="true" class="quiet">…</p>` : frame !== null && frame.iterations.length > 0 && html`<${HealthMap} frame=${frame} overview=${overview} />`}</div>
    <${Cards} overview=${overview} cards=${frame?.cards ?? []} isReady=${frame !== undefined && overview.verdict.kind === "ok"} />
    <div class="wide-row">
      ${overview.notes?.map((one) => html`<p class="note" key=${one}>${say(one)}</p>`)}
      <${Provenance} overview=${overview} provenance=${frame?.provenance} />
      <${Steps} overview=${overview} />
      <${Problems} title="damaged files" problems=${overview.damaged} />
      <${Problems} title="foreign files" problems=${overview.foreign} />
      ${overview.left_out.length > 0 && html`<section><h2>${say("left out")}</h2><ul>${overview.left_out.map(
        (one) => html`<li key=${one}>${say(one)}</li>`)}</ul></section>`}
    </div>
  </div></main>`;
}

const hrefOf = (at) => (at === null || at.operator === null ? null : panelLink(stepParts(at.step), at.operator));

/** The verdict as one sentence that is a link, its line of code between its neighbours, one button and the next command. */
function Headline({ overview }) {
  const { verdict, findings } = overview;
  const [looks, mark] = { ok: ["good", "✔"], unknown: ["", "…"] }[verdict.kind] ?? ["bad", "✖"];
  const [first, ...others] = findings;
  const href = hrefOf(verdict.at);
  const command = nextCommand(overview);
  return html`<section class="verdict headline wide-row ${looks}" aria-label=${say("verdict")}>
    <h1>${mark} ${href === null ? say(verdict.text) : html`<a href=${href}>${say(verdict.text)}</a>`}${verdict.at !== null && html`<span class="where"> ${whereOf(verdict.at.step)}</span>`}</h1>
    ${first?.why.map((one) => html`<p class="why" key=${one}>${say(one)}</p>`)}
    ${first !== undefined && html`<${Source} finding=${first} />`}
    <div class="next">${href !== null && html`<a class="go" href=${href}>${say("go there")} →</a>`}
      ${command !== null && html`<code>${command}</code><${Copy} text=${command} label="copy" />`}</div>
    ${first !== undefined && html`<details><summary>${say("details")}</summary>${[first, ...others].map((one) => html`<article key=${one.kind}><pre>${say(one.text)}</pre></article>`)}</details>`}
    ${others.map((one) => html`<p key=${one.kind} class="also"><a class="name" href=${hrefOf(one.at)}>${say(one.title)}</a></p>`)}
  </section>`;
}

const whereOf = (step) => ["rank", "", "iteration"].map((name, at) => (name === "" || step[at] === null ? "" : `${say(name)} ${step[at]}`)).filter(Boolean).join(" · ");

function Source({ finding }) {
  const lines = finding.lines?.length > 0 ? finding.lines : finding.line === null ? [] : [finding.line];
  if (lines.length === 0) return null;
  const own = finding.line[1];
  const near = lines.filter(([, at]) => Math.abs(at - own) <= 1);
  const from = Math.min(...near.map(([, , code]) => (code === "" ? Infinity : code.length - code.trimStart().length)));
  return html`<div class="source"><div class="path">${finding.line[0]}:${own}</div><ol>${near.map(([, at, code]) => html`<li key=${at} class=${at === own ? "here" : ""}><i>${at}</i>${code.slice(Number.isFinite(from) ? from : 0)}</li>`)}</ol></div>`;
}

/** What to type next: a word of this dump's verdict. */
function nextCommand({ verdict, path, golden }) {
  const name = verdict.at?.name;
  if (["ok", "unknown"].includes(verdict.kind)) return null;
  if (verdict.kind === "rank") return `msdump ranks ${quoted(path)}`;
  return golden === null || name === undefined ? `msdump nan ${quoted(path)}` : `msdump show ${quoted(path)} ${quoted(name)}`;
}

/** For a shell of POSIX. */
const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The size of the files, as a list of one text; empty where it is not known. */
const onDisk = ({ disk_bytes: size }) => (size === null || size === undefined ? [] : [bytes(size)]);

const kinds = {
  nan: ["made", "✖", "iterations with a NaN", "iteration with a NaN"], inf: ["came", "▼", "iterations with an Inf", "iteration with an Inf"],
  skipped: ["suspicious", "?", "iterations that the loss scaler skipped", "iteration that the loss scaler skipped"],
  outvoted: ["differs", "≠", "tensors in which a rank is outvoted", "tensor in which a rank is outvoted"], differs: ["differs", "≠", "operators that differ", "operator that differs"],
  grew: ["suspicious", "↗", "times larger than one iteration before"],
  dead: ["suspicious", "0", "operators whose outputs are always zero", "operator whose outputs are always zero"], damaged: ["made", "!", "damaged files", "damaged file"],
};

function Cards({ overview, cards, isReady }) {
  const { steps } = overview;
  const totals = `${sum(steps.operators)} ${say("operators")} · ${sum(steps.tensors)} ${say("tensors")} (${bytes(sum(steps.size_bytes))})${onDisk(overview).map((size) => ` · ${size} ${say("on disk")}`).join("")}`;
  return html`<aside class="findings" aria-label=${say("findings")}>${cards.map(({ kind, count: some, text, at }) => {
    const [name, sign, many, one = many] = kinds[kind] ?? ["unmeasured", "–", kind];
    const words = some === 1 ? one : many;
    const what = html`<span class="health ${name}">${sign}</span> <b>${kind === "grew" ? `×${number(some)}` : some}</b>${say(words)}<small>${kind === "outvoted" ? `${say("rank")} ${text}` : text}</small>`;
    const href = hrefOf(at);
    return href === null ? html`<div key=${kind + text} class=${name}>${what}</div>` : html`<a key=${kind + text} class=${name} href=${href}>${what}</a>`;
  })}
  ${isReady && cards.length === 0 && html`<div class="ok"><span class="health ok">✔</span> <b>0</b>${say("findings")}</div>`}
  <div><small>${totals}</small></div></aside>`;
}

function Provenance({ overview, provenance }) {
  if (provenance === undefined || provenance === null) return null;
  const { command, folder, configuration, device, version, hosts, begin, end } = provenance;
  const time = (microseconds) => new Date(microseconds / 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const facts = [["dump", overview.path], ["command", command], ["folder", folder], ["device", device], ["MindSpore version", version], ["host", hosts.join(", ") || null],
    ["on disk", onDisk(overview)[0] ?? null], ["time", begin === null ? null : end - begin < 1e6 ? time(begin) : `${time(begin)} (${number((end - begin) / 1e6)} s)`],
    ["measured by", `msdump ${overview.msdump}`]].filter(([, value]) => value !== null);
  return html`<section class="provenance" aria-label=${say("provenance")}><dl>${facts.map(([name, value]) => html`<div key=${name}><dt>${say(name)}</dt><dd>${value}</dd></div>`)}</dl>
    ${configuration !== null && html`<details><summary>${say("configuration")}</summary><pre tabindex="0">${configuration}</pre></details>`}</section>`;
}

/** How many iterations there are: each graph and each rank has a row of every one. */
const iterations = ({ iteration }) => new Set(iteration.filter((one) => one !== null)).size || new Set(iteration).size;

/** All steps as a table, folded: what the map shows, for those who read rather than look. */
function Steps({ overview }) {
  const { steps, healths } = overview;
  return html`<details class="steps-table"><summary>${say("Iterations")} (${iterations(steps)})</summary><div class="scroll" tabindex="0">
    <table class="plain"><thead><tr>${["rank", "part", "graph", "iteration", "operators", "tensors", "bytes", "health"].map(
      (name) => html`<th key=${name} scope="col">${say(name)}</th>`)}</tr></thead>
      <tbody>${Array.from({ length: Math.min(MOST_ROWS, count(steps)) }, (_, index) => {
        const one = row(steps, index);
        const parts = stepParts([one.rank, one.graph, one.iteration]);
        return html`<tr key=${index}><td>${parts[0]} <${Outvoted} overview=${overview} rank=${parts[0]} /></td><td>${say(one.part ?? "")}</td><td>${parts[1]}</td><td>${parts[2]}</td>
          <td><a href=${link("operators", parts)}>${one.operators}</a></td><td>${one.tensors}</td>
          <td>${bytes(one.size_bytes)}</td><td><${Health} health=${one.health} /> <${Counts} counts=${one.counts} healths=${healths} /></td></tr>`;
      })}</tbody></table>${count(steps) > MOST_ROWS && html`<p class="quiet">${count(steps) - MOST_ROWS} ${say("left out")}</p>`}</div>
  </details>`;
}
const MOST_ROWS = 1000;

function Counts({ counts, healths }) {
  const all = sum(counts) || 1;
  const title = healths.map((name, place) => `${say(name)}: ${counts[place]}`).filter((_, place) => counts[place]);
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${title.join(", ")}>
    <title>${title.join(", ")}</title>${counts.map((some, place) => {
      const before = sum(counts.slice(0, place));
      return html`<rect key=${place} class="fill-${marks[healths[place]]?.[0]}" x=${(100 * before) / all} width=${(100 * some) / all} height="8" />`;
    })}</svg>`;
}

function Problems({ title, problems }) {
  if (problems.length === 0) return null;
  return html`<section><h2>${say(title)} (${problems.length})</h2><ul class="problems">${problems.slice(0, 200).map(
    ([file, reason], place) => html`<li key=${place}><code>${file}</code> ${say(reason)}</li>`)}</ul></section>`;
}

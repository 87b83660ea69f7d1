// The map of health: curves, ranks and layers over the iterations, with hover, click, brush and keys.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useOptional } from "../answers.js";
import { color } from "../chart.js";
import { number } from "../format.js";
import { get } from "../source.js";
import { follow, link, panelLink, place, setQuery, stepParts } from "../state.js";
import { html, marks, meanings } from "../view.js";
import { language, say } from "../words.js";
import { bucketX, draw, drawOver, healthNames, hit, layoutOf, shownValue } from "./drawing.js";
import { arranged, besideScale, bucketOf, decodedHealth, decodedLogs, domainOf, HEALTH, labelsOf, layersOf, MEANT, NO_CELL, NOTHING, pooled, rangeOf, rangeText, worstOf, ZERO, zoomed } from "./model.js";
import { gradient } from "./palette.js";

export const titles = { [HEALTH]: "health", l2: "L2", max: "largest value", nan: "NaN and Inf", zero: "share of zeros", saturated: "share near the limit of the dtype", error: "error", distance: "distance between ranks" };
const MOST_LAYERS = 40;
const DENSE = 560; // rows of pixels for single operators

const decoded = new WeakMap();
function cellsOf(answer, decode) {
  if (answer === null || answer === undefined) return null;
  if (!decoded.has(answer)) decoded.set(answer, decode(answer.cells));
  return decoded.get(answer);
}

/** What the map opens with: the rank that is outvoted, else that of the first finding; a picture of the training without one. */
export function openingView(frame) {
  const votes = new Map();
  for (const [rank, , count] of frame.outvoted) votes.set(rank, (votes.get(rank) ?? 0) + count);
  const [most] = [...votes].sort((one, other) => other[1] - one[1]);
  return {
    rank: most !== undefined ? frame.ranks.indexOf(most[0]) : frame.first?.[0] ?? 0,
    by: frame.first === null && frame.statistics.includes("l2") ? "l2" : HEALTH,
  };
}

export function HealthMap({ frame, overview }) {
  const { query } = place.value;
  const opening = openingView(frame);
  const rank = frame.ranks.map(String).includes(query.rank) ? frame.ranks.map(String).indexOf(query.rank) : opening.rank;
  const by = query.by === HEALTH || frame.statistics.includes(query.by) ? query.by : opening.by;
  const rankPart = frame.ranks[rank] ?? "-";
  const health = cellsOf(useOptional(`map/${rankPart}`), decodedHealth);
  const [isIdle, setIdle] = useState(false);
  const logs = {};
  // What is coloured comes first; what hovering tells comes when that is drawn.
  for (const name of ["l2", "max", "nan", "zero", "saturated", "error", "distance"]) {
    const isWanted = frame.statistics.includes(name) && (name === by || isIdle);
    logs[name] = cellsOf(useOptional(isWanted ? `map/${rankPart}/${name}` : null), decodedLogs);
  }
  const arrangement = useMemo(() => arranged(frame), [frame]);
  const width = useRef(0);
  const root = useRef(null);
  const [size, setSize] = useState(0);
  useEffect(() => {
    const sized = new ResizeObserver(() => setSize(root.current?.clientWidth ?? 0));
    sized.observe(root.current);
    return () => sized.disconnect();
  }, []);
  width.current = size;
  const hidden = frame.parts.indexOf("construction");
  const shownLines = hidden < 0 || query.construction === "1" || arrangement.part.every((one) => one === hidden) || arrangement.part[lineOf(arrangement, frame.first?.[1])] === hidden
    ? arrangement.order.length : arrangement.part.indexOf(hidden);
  const rows = rangeOf(query.rows, shownLines);
  const range = rangeOf(query.cols, frame.iterations.length);
  const isDense = query.dense === "1" || (query.dense !== "0" && !hasLayers(arrangement, rows));
  const layers = useMemo(() => layersOf(arrangement, rows[0], rows[1], isDense ? DENSE : MOST_LAYERS, isDense), [arrangement, rows.join(), isDense]);
  const labels = useMemo(() => labelsOf(layers, frame, arrangement).map((one) => one || say("model")), [layers, language.value]);
  const curves = curvesOf(frame.curves[rank]);
  const at = size > 0 ? layoutOf({ width: size, frame, layers, range, curves }) : null;
  const key = `${size} ${rows.join()} ${range.join()} ${isDense} ${shownLines}`;
  const pooledHealth = useMemo(() => (at === null || health === null ? null : pooled(health, frame.iterations.length, arrangement, layers, range, at.buckets)), [health, key]);
  const chosen = by === HEALTH ? null : logs[by];
  const pooledBy = useMemo(() => (at === null || chosen === null ? null : pooled(chosen, frame.iterations.length, arrangement, layers, range, at.buckets)), [chosen, key]);
  const domain = useMemo(() => (pooledBy === null ? null : domainOf(pooledBy)), [pooledBy]);
  const ranks = useMemo(() => ({ worst: frame.cells.map(decodedHealth), votes: votesOf(frame) }), [frame]);
  useEffect(() => { if (pooledHealth !== null) setTimeout(() => setIdle(true), 50); }, [pooledHealth !== null]);
  const shared = { frame, arrangement, layers, labels, range, rank, by, health, logs, pooledHealth, pooledBy, domain, ranks, at, rows, shownLines, overview };
  const isZoomed = rows[1] - rows[0] < shownLines || range[1] - range[0] < frame.iterations.length;
  return html`<section class="map" aria-label=${say("health map")}>
    <div class="tools">
      <label>${say("colour")} <select onChange=${(event) => setQuery({ by: [HEALTH, ...frame.statistics][event.currentTarget.selectedIndex] })}>${[HEALTH, ...frame.statistics].map(
        (name) => html`<option key=${name} selected=${name === by}>${say(titles[name])}</option>`)}</select></label>
      ${frame.ranks.length > 1 && html`<label>${say("rank")} <select onChange=${(event) => setQuery({ rank: String(frame.ranks[event.currentTarget.selectedIndex]) })}>${frame.ranks.map(
        (one, at) => html`<option key=${one} selected=${at === rank}>${one ?? "–"}${frame.outvoted.some(([other]) => other === one) ? ` ≠ ${say("outvoted")}` : ""}</option>`)}</select></label>`}
      <span role="group" aria-label=${say("rows")}><button aria-pressed=${!isDense} onClick=${() => setQuery({ dense: "0" })}>${say("layers")}</button>
        <button aria-pressed=${isDense} onClick=${() => setQuery({ dense: "1" })}>${say("Operators")}</button></span>
      ${isZoomed && html`<button onClick=${() => setQuery({ rows: "", cols: "" })}>↺ ${say("show all")}</button>`}
      ${hidden >= 0 && html`<label><input type="checkbox" checked=${query.construction === "1"} onChange=${(event) => setQuery({ construction: event.currentTarget.checked ? "1" : "", rows: "" })} /> ${say("construction")}</label>`}
      <${Legend} by=${by} domain=${domain} health=${pooledHealth} values=${pooledBy} />
    </div>
    ${range[1] - range[0] === 1 && curves.length > 0 && html`<dl class="now">${curves.map(({ title, values }) => html`<div key=${title}><dt>${say(title)}</dt><dd>${number(values[range[0]])}</dd></div>`)}</dl>`}
    <div class="canvases" ref=${root} style=${{ height: `${at?.height ?? 300}px` }}>${at !== null && html`<${Canvases} ...${shared} />`}</div>
  </section>`;
}

/** Whether there are layers to see: names without scopes make one of each part. */
function hasLayers(arrangement, [from, to]) {
  if (to - from <= MOST_LAYERS) return true;
  const layers = layersOf(arrangement, from, to, MOST_LAYERS, false);
  return layers.length > new Set(layers.map(({ part }) => part)).size;
}

const lineOf = (arrangement, row) => (row === undefined ? -1 : arrangement.order.indexOf(row));

function votesOf(frame) {
  const votes = frame.ranks.map(() => new Uint32Array(frame.iterations.length));
  for (const [rank, iteration, count] of frame.outvoted) {
    const [row, column] = [frame.ranks.indexOf(rank), frame.iterations.indexOf(iteration)];
    if (row >= 0 && column >= 0) votes[row][column] += count;
  }
  return votes;
}

/** The curves that a rank has, in the order in which they stand above the map. */
export function curvesOf({ loss, gradient_norm: gradientNorm, largest }) {
  return [
    ...(loss === null ? [] : [{ title: "loss", values: loss.values }]),
    ...(gradientNorm === null ? [] : [{ title: "gradient norm", values: gradientNorm }]),
    ...(largest.every((one) => one === null) ? [] : [{ title: "largest value", values: largest }]),
  ];
}

/** All that the cells of a map show: what is named has a colour and a sign of its own. */
export function legendOf(by, health, values) {
  const there = new Set();
  health.forEach((code, at) => {
    if (code === NO_CELL) return;
    if (by === HEALTH || code <= 1) there.add(healthNames[code]); // the worst have their signs on any scale
    if (by !== HEALTH) there.add(besideScale(values[at], code, healthNames));
  });
  return [...healthNames, ZERO, MEANT].filter((name) => there.has(name));
}

const swatches = { [ZERO]: ["zero", "0"], [MEANT]: ["unmeasured", "∞"] };

function Legend({ by, domain, health, values }) {
  const there = useMemo(() => (health === null || (by !== HEALTH && values === null) ? [] : legendOf(by, health, values)), [by, health, values]);
  return html`<span class="legend">${by !== HEALTH && domain !== null && html`<span class="key" title=${say("from the 5th to the 95th of a hundred cells")}>≤ ${shownValue(domain[0])} <i class="ramp" style=${{ background: gradient }}></i> ≥ ${shownValue(domain[1])}</span>`}
    ${there.map((name) => html`<span key=${name} class="key"><i class="swatch fill-${by !== HEALTH && name === NOTHING ? "none" : (swatches[name] ?? marks[name])[0]}">${(swatches[name] ?? marks[name])[1]}</i> ${say(name)}${meanings[name] && html` <span class="meaning">(${say(meanings[name])})</span>`}</span>`)}</span>`;
}

/** Colours of the theme as a canvas needs them. */
function themeOf(element) {
  const of = (name) => color(element, name);
  return {
    text: of("text"), quiet: of("quiet"), border: of("border"), page: of("page"), link: of("link"), differs: of("differs"), zero: of("zero"), none: of("panel"),
    health: healthNames.map((name) => of(marks[name][0])), line: of("link"),
  };
}

function Canvases(props) {
  const { frame, arrangement, layers, labels, range, rank, by, health, logs, pooledHealth, pooledBy, domain, ranks, at, rows, shownLines } = props;
  const base = useRef(null);
  const over = useRef(null);
  const holder = useRef(null);
  const pointer = useRef({ hovered: null, brush: null, start: null });
  const [tip, setTip] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [said, setSaid] = useState("");
  const theme = useTheme();
  const colours = useMemo(() => (holder.current === null ? null : themeOf(holder.current)), [theme, holder.current]);
  const ring = useMemo(() => ringOf(props), [at, layers, rank]);
  useEffect(() => {
    const found = themeOf(holder.current);
    sized(base.current, at);
    if (pooledHealth !== null) draw(base.current.getContext("2d"), at, { frame, by, pooledBy, pooledHealth, domain, rank, ranks, colours: found, labels });
  }, [pooledHealth, pooledBy, by, rank, at.width, at.height, theme, labels, language.value, by === HEALTH, range.join()]);
  const repaint = () => {
    if (over.current === null) return;
    const found = colours ?? themeOf(holder.current);
    drawOver(over.current.getContext("2d"), at, { ring, hovered: pointer.current.hovered, cursor, brush: pointer.current.brush, colours: found });
  };
  useEffect(() => { sized(over.current, at); repaint(); }, [at.width, at.height, theme, ring, cursor, pooledHealth]);

  const cellAt = (row, bucket) => {
    const columns = bucketOf(bucket, at.buckets, at.range[0], at.columns);
    const worst = health === null ? null : worstOf(health, frame.iterations.length, arrangement, layers[row], columns);
    if (worst === null) return null;
    const chosen = by === HEALTH || logs[by] === null || worst.value <= 3 ? null : worstOf(logs[by], frame.iterations.length, arrangement, layers[row], columns);
    return { ...(chosen ?? worst), health: worst.value };
  };
  const numbersOf = (line, column) => Object.fromEntries(Object.entries(logs).filter(([, values]) => values !== null)
    .map(([name, values]) => [name, values[arrangement.order[line] * frame.iterations.length + column]]));
  const describe = (row, bucket) => {
    const cell = cellAt(row, bucket);
    if (cell === null) return null;
    const name = frame.rows.name[arrangement.order[cell.line]];
    const code = health[arrangement.order[cell.line] * frame.iterations.length + cell.column];
    const numbers = numbersOf(cell.line, cell.column);
    return { name, iteration: frame.iterations[cell.column], health: healthNames[code === NO_CELL ? cell.health : code], numbers, line: cell.line, column: cell.column,
      layer: labels[row], count: layers[row].to - layers[row].from };
  };
  const open = async (row, bucket) => {
    const cell = cellAt(row, bucket);
    if (cell !== null) follow(await operatorLink(frame, frame.ranks[rank], arrangement.order[cell.line], cell.column));
  };
  // A mouse moves more often than a screen shows: once a frame is enough.
  const move = (event) => {
    if (pointer.current.next === undefined) requestAnimationFrame(() => moved());
    pointer.current.next = [event.clientX, event.clientY];
  };
  const moved = () => {
    const { start, next } = pointer.current;
    pointer.current.next = undefined;
    if (next === undefined || base.current === null) return;
    const box = base.current.getBoundingClientRect();
    const [x, y] = [next[0] - box.left, next[1] - box.top];
    pointer.current.brush = start !== null && Math.abs(x - start) > 5 ? [Math.max(at.left, Math.min(start, at.left + at.plot)), Math.max(at.left, Math.min(x, at.left + at.plot))] : null;
    const before = pointer.current.hovered;
    const hovered = hit(at, x, y);
    pointer.current.hovered = hovered;
    if (pointer.current.brush !== null || before?.row !== hovered?.row || before?.bucket !== hovered?.bucket || before?.kind !== hovered?.kind || before?.rank !== hovered?.rank) {
      repaint();
      setTip(hovered === null || pointer.current.brush !== null ? null : { x, y, of: tipOf(hovered) });
    }
  };
  const tipOf = (hovered) => {
    if (hovered.kind === "cell") return { kind: "cell", cell: describe(hovered.row, hovered.bucket) };
    if (hovered.kind === "layer") return { kind: "layer", text: `${labels[hovered.row]} · ${layers[hovered.row].to - layers[hovered.row].from} ${say("operators")}` };
    const [column] = hovered.bucket === null ? [null] : bucketOf(hovered.bucket, at.buckets, at.range[0], at.columns);
    if (hovered.kind === "rank") {
      const votes = column === null ? 0 : ranks.votes[hovered.rank][column];
      return { kind: "text", text: `${say("rank")} ${frame.ranks[hovered.rank] ?? "–"}${column === null ? "" : ` · ${say("iteration")} ${frame.iterations[column] ?? "–"}`}${votes > 0 ? ` · ≠ ${say("outvoted")}: ${votes} ${say("tensors")}` : ""}` };
    }
    return { kind: "text", text: `${say("iteration")} ${frame.iterations[column] ?? "–"}${curvesOf(frame.curves[rank]).map(({ title, values }) => ` · ${say(title)} ${number(values[column])}`).join("")}` };
  };
  const up = () => {
    moved();
    const { brush, hovered } = pointer.current;
    pointer.current.start = null;
    pointer.current.brush = null;
    if (brush !== null) {
      const [first, last] = brush.sort((one, other) => one - other).map((x) => Math.min(at.columns - 1, Math.max(0, Math.floor(((x - at.left) * at.columns) / at.plot))));
      setQuery({ cols: rangeText([range[0] + first, range[0] + last + 1], frame.iterations.length) });
    } else if (hovered?.kind === "cell") open(hovered.row, hovered.bucket);
    else if (hovered?.kind === "rank") setQuery({ rank: String(frame.ranks[hovered.rank]) });
    else if (hovered?.kind === "layer") zoomInto(hovered.row);
    repaint();
  };
  const zoomInto = (row) => {
    const one = layers[row];
    if (one.to - one.from > 1) setQuery({ rows: rangeText([one.from, one.to], shownLines) });
    else if (at.buckets > 0) open(row, 0);
  };
  const keys = (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const now = cursor ?? ring ?? { row: 0, bucket: 0 };
    if (steps !== undefined) {
      event.preventDefault();
      const next = cursor === null ? now : { row: Math.min(layers.length - 1, Math.max(0, now.row + steps[0])), bucket: Math.min(at.buckets - 1, Math.max(0, now.bucket + steps[1])) };
      setCursor(next);
      const cell = describe(next.row, next.bucket);
      setSaid(cell === null ? `${labels[next.row]}: ${say("nothing")}` : spoken(cell));
      setTip({ x: bucketX(at, next.bucket + 1), y: at.placed[next.row].y, of: { kind: "cell", cell } });
    } else if (event.key === "Enter" && cursor !== null) open(cursor.row, cursor.bucket);
    else if (event.key === "+" && cursor !== null) zoomInto(cursor.row);
    else if (event.key === "-" || event.key === "Escape") {
      event.stopPropagation();
      setCursor(null);
      setTip(null);
      setQuery({ rows: "", cols: "" });
    }
  };
  useEffect(() => { setCursor(null); setTip(null); }, [layers, range.join()]);
  // With Ctrl, or two fingers that pinch: iterations and rows around the pointer; without it the page scrolls.
  const wheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = base.current.getBoundingClientRect();
    const found = hit(at, event.clientX - box.left, event.clientY - box.top);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const column = found === null || found.bucket === null || found.bucket === undefined ? null : range[0] + ((found.bucket + 0.5) * at.columns) / at.buckets;
    const line = found?.row === undefined ? null : (layers[found.row].from + layers[found.row].to) / 2;
    setQuery({ cols: rangeText(zoomed(range, column, factor, frame.iterations.length), frame.iterations.length), rows: rangeText(zoomed(rows, line, factor, shownLines), shownLines) });
  };
  const onWheel = useRef(wheel);
  onWheel.current = wheel;
  useEffect(() => {
    const own = holder.current;
    const listen = (event) => onWheel.current(event);
    own.addEventListener("wheel", listen, { passive: false });
    return () => own.removeEventListener("wheel", listen);
  }, []);
  const leave = () => { pointer.current = { hovered: null, brush: null, start: null }; setTip(null); repaint(); };
  return html`<div class="picture" ref=${holder} tabindex="0" role="application" aria-label=${`${say("health map")}: ${say("arrows move, Enter opens, + shows what a layer holds, - shows all")}`} onKeyDown=${keys}
      onPointerMove=${move} onPointerLeave=${leave} onPointerDown=${(event) => { pointer.current.start = event.clientX - base.current.getBoundingClientRect().left; }} onPointerUp=${up}>
    <canvas ref=${base} aria-hidden="true"></canvas><canvas ref=${over} aria-hidden="true"></canvas>
    ${tip !== null && html`<${Tip} tip=${tip} width=${at.width} />`}
    <div class="unseen" role="status">${said}</div>
  </div>`;
}

function useTheme() {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const change = () => setTheme((one) => one + 1);
    const watched = new MutationObserver(change);
    watched.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", change);
    return () => { watched.disconnect(); dark.removeEventListener("change", change); };
  }, []);
  return theme;
}

function sized(canvas, at) {
  const ratio = globalThis.devicePixelRatio || 1;
  const [width, height] = [Math.round(at.width * ratio), Math.round(at.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
}

function ringOf({ frame, arrangement, layers, rank, range, at }) {
  if (frame.first === null || frame.first[0] !== rank) return null;
  const [, row, column] = frame.first;
  const line = arrangement.order.indexOf(row);
  const layer = layers.findIndex((one) => line >= one.from && line < one.to);
  if (layer < 0 || column < range[0] || column >= range[1]) return null;
  return { row: layer, bucket: Math.min(at.buckets - 1, Math.floor(((column - range[0]) * at.buckets) / at.columns)) };
}

const spoken = (cell) => [cell.name, `${say("iteration")} ${cell.iteration ?? "–"}`, say(cell.health), ...Object.entries(cell.numbers).map(([name, log]) => `${say(titles[name])} ${shownValue(log)}`)].join(", ");

function Tip({ tip, width }) {
  const isRight = tip.x > width * 0.6;
  const style = { top: `${tip.y + 14}px`, ...(isRight ? { right: `${width - tip.x + 12}px` } : { left: `${tip.x + 14}px` }) };
  const { of } = tip;
  if (of.kind !== "cell") return html`<div class="tip" style=${style}>${of.text}</div>`;
  if (of.cell === null) return null;
  const { cell } = of;
  const [name, sign] = marks[cell.health] ?? ["unmeasured", "–"];
  return html`<div class="tip" style=${style}><b>${cell.name}</b>
    <div><span class="health ${name}">${sign} ${say(cell.health)}</span> · ${say("iteration")} ${cell.iteration ?? "–"}${cell.count > 1 ? ` · ${cell.count} ${say("operators")}` : ""}</div>
    <dl>${Object.entries(cell.numbers).filter(([, log]) => !Number.isNaN(log)).map(([key, log]) => html`<div key=${key}><dt>${say(titles[key])}</dt><dd>${key === "zero" || key === "saturated" ? percent(log) : shownValue(log)}</dd></div>`)}</dl></div>`;
}

const percent = (log) => (log === -Infinity ? "0 %" : `${Number((100 * 10 ** log).toPrecision(3))} %`);

/** The link to the operator of a row in an iteration; its number is looked up in the step. */
export async function operatorLink(frame, rank, row, column) {
  const parts = stepParts([rank, frame.rows.graph[row], frame.iterations[column]]);
  try {
    const { operators } = await get(`step/${parts.join("/")}`);
    const found = operators.name.indexOf(frame.rows.name[row]);
    return found >= 0 ? panelLink(parts, found) : link("operators", parts);
  } catch {
    return link("operators", parts, { q: frame.rows.name[row] });
  }
}

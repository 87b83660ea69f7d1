// Lines over one axis, drawn by uPlot: axes with titles, hover, a range picked by dragging, points that open something.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "./format.js";
import { html } from "./view.js";

// Colours that differ without red and green (after Okabe and Ito); each has a dash of its own for those who see none.
const strokes = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#777777"];
const brightStrokes = ["#5aa9e6", "#f0b23c", "#2fc79b", "#e6a1c8", "#9ad4f7", "#ff8f52", "#d3c552", "#b0b0b0"]; // on a dark page
const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 4], [1, 3], [10, 2, 2, 2]];
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000];
const SOME = 200; // places of x, above which what is missing has no mark of its own

/** A color of the page by the name of its variable, as a canvas needs it: resolved for the theme that is shown. */
export function color(element, name) {
  const probe = element.ownerDocument.createElement("i");
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** What a line draws of its values: numbers, null for what is not finite, not there, or has no place on a scale of powers of ten. */
export const drawn = (values, isLog) => values.map((one) => (typeof one !== "number" || (isLog && !(one > 0)) ? null : one));

/** Powers of ten between two numbers, at most some seven of them; both ends where there is none. */
export function decades(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = Math.max(1, Math.ceil((last - first + 1) / 7));
  const found = [];
  for (let power = first; power <= last; power += every) found.push(10 ** power);
  return found.length > 0 ? found : [low, high];
}

/** Whether lines tell more on a scale of powers of ten: all of them are above 0 and far from each other. */
export function isWide(lines) {
  const all = lines.flatMap(({ values }) => values.filter((one) => typeof one === "number"));
  return all.length > 0 && all.every((one) => one > 0) && Math.max(...all) > 20 * Math.min(...all);
}

/**
 * x: numbers in ascending order; lines: [{label, values (a number; "nan" or an infinity, which has a mark at the top; null for
 * a gap, which has one at the bottom), stroke: number of its colour, points: only points}]; limit: a horizontal line ({value, label}); marked: places
 * of x with a line of their own ([{x, label}]); isLog: powers of ten; sync: charts of one name share their cursor;
 * onPick(index in x), onRange(first x, last x), range: what was picked before ([first x, last x]) or null.
 */
export function Chart({ x, lines, xTitle = "", yTitle = "", isLog = false, height = 180, sync = null, limit = null,
  marked = [], onPick = null, onRange = null, range = null, label = "" }) {
  const root = useRef(null);
  const shown = useRef(null);
  const calls = useRef({});
  calls.current = { onPick, onRange, range };
  const summary = lines.map(({ label: name, values }) => [name, values.length, values.reduce((sum, one, at) => sum + (typeof one === "number" ? one * (1 + at % 7) : 0), 0), values.filter((one) => one === null).length]);
  const key = JSON.stringify([x.length, x[0], x.at(-1), summary, xTitle, yTitle, isLog, height, limit, marked, document.documentElement.dataset.theme]);
  useEffect(() => {
    const holder = root.current;
    const [text, grid, bad] = ["quiet", "border", "made"].map((name) => color(holder, name));
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
    const lightness = color(holder, "page").match(/\d+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0);
    const own = lightness < 384 ? brightStrokes : strokes;
    const strokeOf = (line, at) => own[(line.stroke ?? at) % own.length];
    const exact = (values) => (_, one, __, at) => (at === null || at === undefined ? "–" : number(values[at]));
    const plot = new uPlot({
      width: Math.max(200, holder.clientWidth), height, legend: { live: true, show: lines.length > 1 || yTitle !== "" },
      cursor: { sync: sync === null ? undefined : { key: sync }, drag: { x: onRange !== null, y: false, setScale: onRange === null } },
      scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { distr: isLog ? 3 : 1 } },
      axes: [{ ...axis, label: xTitle || undefined, labelFont: "12px system-ui, sans-serif", labelSize: 20, size: 34, incrs: WHOLE, values: (_, all) => all.map((one) => (Number.isInteger(one) ? number(one) : "")) },
        { ...axis, label: yTitle || undefined, labelFont: "12px system-ui, sans-serif", labelSize: 18, size: 66, ...(isLog ? { splits: (_, __, low, high) => decades(low, high), filter: (_, all) => all } : {}), values: (_, all) => all.map((one) => (one === null ? "" : number(one))) }],
      series: [{ label: xTitle, value: (_, one) => number(one) }, ...lines.map((line, at) => ({
        label: line.label, stroke: strokeOf(line, at), dash: line.points ? [] : dashes[at % dashes.length], width: 1.5,
        paths: line.points ? () => null : undefined, points: { show: line.points || x.length < 60, size: line.points ? 6 : 5 }, spanGaps: false,
        value: exact(line.values) }))],
      hooks: {
        ready: [(now) => showRange(now, calls.current.range)],
        draw: [(now) => overlays(now, { x, lines, limit, marked, bad, strokeOf })],
        setSelect: [(now) => {
          if (onRange === null || now.select.width === 0) return;
          calls.current.onRange(now.posToVal(now.select.left, "x"), now.posToVal(now.select.left + now.select.width, "x"));
        }],
      },
    }, [x, ...lines.map(({ values }) => drawn(values, isLog))], holder);
    shown.current = plot;
    const click = () => {
      const { idx } = plot.cursor;
      // The end of dragging a range is a click as well.
      if (plot.select.width === 0 && idx !== null && idx !== undefined) calls.current.onPick?.(idx);
      showRange(plot, calls.current.range);
    };
    plot.over.addEventListener("click", click);
    const sized = new ResizeObserver(() => holder.clientWidth > 0 && plot.setSize({ width: holder.clientWidth, height }));
    sized.observe(holder);
    return () => { sized.disconnect(); shown.current = null; plot.destroy(); };
  }, [key]);
  useEffect(() => { if (shown.current !== null) showRange(shown.current, range); }, [key, range?.join()]);
  return html`<div class=${`chart ${onPick === null ? "" : "pickable"}`} role="img" aria-label=${label || yTitle} ref=${root}></div>`;
}

function showRange(plot, range) {
  const [from, to] = range === null ? [0, 0] : range.map((one) => plot.valToPos(one, "x"));
  plot.setSelect({ left: from, width: to - from, top: 0, height: range === null ? 0 : plot.over.clientHeight }, false);
}

function overlays(plot, { x, lines, limit, marked, bad, strokeOf }) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = bad;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  const line = (x0, y0, x1, y1) => { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); };
  if (limit !== null) {
    const y = plot.valToPos(limit.value, "y", true);
    if (y >= bbox.top && y <= bbox.top + bbox.height) {
      ctx.textAlign = "left";
      line(bbox.left, y, bbox.left + bbox.width, y);
      ctx.fillText(limit.label, bbox.left + 4, y - 4);
    }
  }
  for (const one of marked) {
    const place = plot.valToPos(one.x, "x", true);
    if (place < bbox.left || place > bbox.left + bbox.width) continue;
    line(place, bbox.top, place, bbox.top + bbox.height);
    const isLeft = place + 8 + ctx.measureText(one.label).width > bbox.left + bbox.width;
    ctx.textAlign = isLeft ? "right" : "left";
    ctx.fillText(one.label, place + (isLeft ? -4 : 4), bbox.top + 12 * devicePixelRatio);
  }
  ctx.textAlign = "center";
  lines.forEach(({ values, points }, at) => {
    ctx.fillStyle = strokeOf(lines[at], at);
    values.forEach((value, place) => {
      const isMissing = value === null && !points && x.length <= SOME;
      if (typeof value !== "string" && !isMissing) return;
      // Marks of several lines stand above each other.
      const y = isMissing ? bbox.top + bbox.height - (4 + 9 * at) * devicePixelRatio : bbox.top + (10 + 11 * at) * devicePixelRatio;
      ctx.fillText(isMissing ? "○" : "✖", plot.valToPos(x[place], "x", true), y);
    });
  });
  ctx.restore();
}

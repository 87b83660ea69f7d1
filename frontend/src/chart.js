// Lines over one axis, drawn by uPlot: axes with titles, hover, a range picked by dragging, points that open something.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "./format.js";
import { html } from "./view.js";

// Colours that differ without red and green (after Okabe and Ito); each has a dash of its own for those who see none.
const strokes = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#777777"];
const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 4], [1, 3], [10, 2, 2, 2]];

/** A color of the page by the name of its variable, as a canvas needs it: resolved for the theme that is shown. */
export function color(element, name) {
  const probe = element.ownerDocument.createElement("i");
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * x: numbers in ascending order; lines: [{label, values (a number, or null for a gap), stroke, points: only points}];
 * limit: a horizontal line ({value, label}); marked: places of x with a line of their own ([{x, label}]);
 * isLog: powers of ten; sync: charts of one name share their cursor; onPick(index in x), onRange(first x, last x).
 */
export function Chart({ x, lines, xTitle = "", yTitle = "", isLog = false, height = 180, sync = null, limit = null,
  marked = [], onPick = null, onRange = null, label = "" }) {
  const root = useRef(null);
  const key = JSON.stringify([x.length, x[0], x.at(-1), lines.map(({ label: name, values }) => [name, values.length, values[0], values.at(-1)]), xTitle, yTitle, isLog, height, limit, marked, document.documentElement.dataset.theme]);
  useEffect(() => {
    const holder = root.current;
    const [text, grid, bad] = ["quiet", "border", "made"].map((name) => color(holder, name));
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
    const plot = new uPlot({
      width: Math.max(200, holder.clientWidth), height, legend: { live: true, show: lines.length > 1 || yTitle !== "" },
      cursor: { sync: sync === null ? undefined : { key: sync }, drag: { x: onRange !== null, y: false, setScale: onRange === null } },
      scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
      axes: [{ ...axis, label: xTitle || undefined, values: (_, all) => all.map((one) => number(one)) },
        { ...axis, label: yTitle || undefined, size: 70, values: (_, all) => all.map((one) => (one === null ? "" : number(one))) }],
      series: [{ label: xTitle, value: (_, one) => number(one) }, ...lines.map((line, at) => ({
        label: line.label, stroke: line.stroke ?? strokes[at % strokes.length], dash: line.points ? [] : dashes[at % dashes.length], width: 1.5,
        paths: line.points ? () => null : undefined, points: { show: line.points || x.length < 60, size: line.points ? 6 : 5 }, spanGaps: false,
        value: (_, one) => number(one) }))],
      hooks: {
        draw: [(drawn) => overlays(drawn, { limit, marked, bad })],
        setSelect: [(drawn) => {
          if (onRange === null || drawn.select.width === 0) return;
          onRange(drawn.posToVal(drawn.select.left, "x"), drawn.posToVal(drawn.select.left + drawn.select.width, "x"));
        }],
      },
    }, [x, ...lines.map(({ values }) => values.map((one) => (isLog && !(one > 0) ? null : one)))], holder);
    const click = () => onPick !== null && plot.cursor.idx !== null && plot.cursor.idx !== undefined && onPick(plot.cursor.idx);
    plot.over.addEventListener("click", click);
    const sized = new ResizeObserver(() => holder.clientWidth > 0 && plot.setSize({ width: holder.clientWidth, height }));
    sized.observe(holder);
    return () => { sized.disconnect(); plot.destroy(); };
  }, [key]);
  return html`<div class="chart" role="img" aria-label=${label || yTitle} ref=${root}></div>`;
}

function overlays(plot, { limit, marked, bad }) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = bad;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  const line = (x0, y0, x1, y1) => { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); };
  if (limit !== null) {
    const y = plot.valToPos(limit.value, "y", true);
    if (y >= bbox.top && y <= bbox.top + bbox.height) {
      line(bbox.left, y, bbox.left + bbox.width, y);
      ctx.fillText(limit.label, bbox.left + 4, y - 4);
    }
  }
  for (const one of marked) {
    const x = plot.valToPos(one.x, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    line(x, bbox.top, x, bbox.top + bbox.height);
    const isLeft = x > bbox.left + bbox.width * 0.7;
    ctx.textAlign = isLeft ? "right" : "left";
    ctx.fillText(one.label, x + (isLeft ? -4 : 4), bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

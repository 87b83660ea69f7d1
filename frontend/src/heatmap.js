// A part of a tensor as a picture: zero is the middle of the colours, and what is not finite has colours of its own.
import { useEffect, useRef, useState } from "preact/hooks";
import { Chart } from "./chart.js";
import { number } from "./format.js";
import { html } from "./view.js";
import { say } from "./words.js";

const [NAN, POSITIVE, NEGATIVE] = [1, 2, 4];
// Red, green, blue of the smallest value, of zero and of the largest one; then NaN, +Inf and -Inf.
const COLOURS = { low: [33, 102, 172], zero: [247, 247, 247], high: [178, 24, 43] };
const NOT_FINITE = [[NAN, [255, 0, 255]], [POSITIVE, [255, 160, 0]], [NEGATIVE, [0, 190, 190]]];
const EMPTY = [128, 128, 128];

/** Colour of a share of the largest absolute value, from -1 to 1. */
export function colourOf(share) {
  const end = share < 0 ? COLOURS.low : COLOURS.high;
  const way = Math.min(1, Math.abs(share));
  return COLOURS.zero.map((begin, part) => Math.round(begin + (end[part] - begin) * way));
}

/** Largest absolute value of the cells; 0 where none is finite. */
export function scaleOf({ least, largest }) {
  let most = 0;
  for (let at = 0; at < least.length; at += 1) {
    if (!Number.isNaN(least[at])) most = Math.max(most, Math.abs(least[at]), Math.abs(largest[at]));
  }
  return most;
}

const DECADES = 6; // below the largest value, that a scale of powers of ten has colours for

/** A value as a share of the largest one, or of the decades below it. */
export function shareOf(value, most, isLog) {
  if (most === 0 || value === 0) return 0;
  if (!isLog) return value / most;
  return Math.sign(value) * Math.max(0, 1 + Math.log10(Math.abs(value) / most) / DECADES);
}

/** Red, green, blue and opacity of each cell. A cell with anything that is not finite shows that and not its mean. */
export function pixels({ mean, least, largest, flags }, most, { extreme = false, isLog = false } = {}) {
  const data = new Uint8ClampedArray(4 * mean.length);
  for (let at = 0; at < mean.length; at += 1) {
    const special = NOT_FINITE.find(([flag]) => flags[at] & flag);
    const value = extreme ? (Math.abs(least[at]) > Math.abs(largest[at]) ? least[at] : largest[at]) : mean[at];
    const colour = special ? special[1] : Number.isNaN(value) ? EMPTY : colourOf(shareOf(value, most, isLog));
    data.set([...colour, 255], 4 * at);
  }
  return data;
}

/** Numbers of the first row and column of a part, and how far its rows and columns are apart; from its index. */
export function axisStarts({ index, axes }) {
  const items = index.split(",").map((item) => item.trim());
  const [rows, columns] = [[0, 1], [0, 1]];
  axes.forEach((axis, place) => {
    const [begin, , stride] = (items[axis] ?? ":").split(":");
    const start = Number(begin || 0);
    // From the end on is only known to who knows the size.
    (axes.length === 1 || place === 1 ? columns : rows).splice(0, 2, start < 0 ? 0 : start, Number(stride || 1));
  });
  return { rows, columns };
}

/** Size of a cell in pixels: as large as the room allows, at most `largest`, and not much longer than wide. */
export function cellSize(rows, columns, room, largest = 72) {
  const [high, wide] = [Math.min(largest, room.height / rows), Math.min(largest, room.width / columns)];
  return { high: Math.min(high, 4 * wide), wide: Math.min(wide, 4 * high) };
}

/** Cells that get a number on an axis: so many that the numbers have `apart` pixels each. */
export function numbered(cells, pixels, apart) {
  const least = Math.max(1, apart / pixels);
  const power = 10 ** Math.floor(Math.log10(least));
  const every = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
  return Array.from({ length: Math.ceil(cells / every) }, (_, at) => at * every);
}

const LEFT = 46; // px for the numbers of rows

/** mostHigh: pixels that the cells may take from top to bottom; isDistance: small values count as well */
export function HeatMap({ picture, onZoom, mostHigh = 420, isDistance = false }) {
  const canvas = useRef(null);
  const frame = useRef(null);
  const [room, setRoom] = useState(null);
  const [seen, setSeen] = useState(null);
  const [extreme, setExtreme] = useState(false);
  const [isLog, setLog] = useState(isDistance);
  const { about, least, largest, mean, flags } = picture;
  const { cell_rows: height, cell_columns: width, row_step: down, column_step: across } = about;
  const most = scaleOf(picture);
  const isSigned = least.some((one) => one < 0);
  const isPooled = down > 1 || across > 1;
  useEffect(() => {
    if (frame.current === null) return undefined;
    const sized = new ResizeObserver(() => frame.current && setRoom(frame.current.clientWidth - LEFT - 4));
    sized.observe(frame.current);
    return () => sized.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current === null || width === 0 || height === 0) return;
    const image = new ImageData(pixels(picture, most, { extreme, isLog }), width, height);
    canvas.current.getContext("2d").putImageData(image, 0, 0);
  }, [picture, extreme, isLog]);
  if (width === 0 || height === 0) return html`<p class="quiet">${say("no elements")}</p>`;
  const { high, wide } = cellSize(height, width, { width: Math.max(100, room ?? 500), height: mostHigh });
  const starts = axisStarts(about);
  const cellOf = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    return [Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height))), column];
  };
  const look = (event) => {
    const [row, column] = cellOf(event);
    setSeen({ row, column, at: row * width + column });
  };
  const counts = NOT_FINITE.map(([flag]) => flags.reduce((some, one) => some + (one & flag ? 1 : 0), 0));
  const name = ([start, stride], at) => start + at * stride;
  const range = (axis, from, step, size) => (step === 1 ? `${name(axis, from)}` : `${name(axis, from * step)}–${name(axis, Math.min(size, (from + 1) * step) - 1)}`);
  const value = (at) => (isPooled ? `${number(readable(least[at]))} … ${number(readable(mean[at]))} … ${number(readable(largest[at]))}`
    : NOT_FINITE.map(([flag], place) => (flags[at] & flag ? ["NaN", "+Inf", "−Inf"][place] : "")).join("") || number(mean[at]));
  return html`<figure class="heatmap" ref=${frame}>
    <output aria-live="off">${seen === null ? html`<span class="quiet">${say("row, column: value where the pointer is")}</span>` : html`[${range(starts.rows, seen.row, down, about.rows)}, ${
      range(starts.columns, seen.column, across, about.columns)}] <b>${value(seen.at)}</b>`}</output>
    <div class="map" style=${{ paddingLeft: `${LEFT}px` }}>
      <svg class="columns" width=${width * wide} height="16" aria-hidden="true">${numbered(width, wide, 44).map((at) => html`<text key=${at} x=${(at + 0.5) * wide} y="12">${name(starts.columns, at * across)}</text>`)}</svg>
      <svg class="row-numbers" width=${LEFT - 4} height=${height * high} aria-hidden="true">${numbered(height, high, 18).map((at) => html`<text key=${at} x=${LEFT - 8} y=${(at + 0.5) * high + 4}>${name(starts.rows, at * down)}</text>`)}</svg>
      <canvas ref=${canvas} width=${width} height=${height} role="img" aria-label=${say("heat map")} onMouseMove=${look}
        onMouseLeave=${() => setSeen(null)} style=${{ width: `${width * wide}px`, height: `${height * high}px` }}
        onClick=${(event) => isPooled && onZoom?.(...cellOf(event))}></canvas></div>
    <figcaption>
      <span class="scale"><i class=${isSigned ? "ramp" : "ramp half"}></i>${isSigned ? `${number(-most)} … ` : ""}0 … ${number(most)}</span>
      <label><input type="checkbox" checked=${isLog} onChange=${(event) => setLog(event.currentTarget.checked)} /> ${say("log scale")}</label>
      ${["NaN", "+Inf", "−Inf"].map((one, place) => counts[place] > 0 && html`<span key=${one} class=${`flag flag-${place}`}>■ ${one}: ${counts[place]} ${say("cells")}</span>`)}
      ${isPooled && html`<span>${say("a cell is")} ${down} × ${across} ${say("elements")}</span>
        <label><input type="checkbox" checked=${extreme} onChange=${(event) => setExtreme(event.currentTarget.checked)} /> ${say("largest of a cell, not its mean")}</label>`}
    </figcaption>
  </figure>`;
}

const readable = (value) => (Number.isNaN(value) ? "nan" : value);

/** One axis as a line, on a scale of powers of ten by magnitude if that is asked for; of cells of several elements both ends. */
export function LinePlot({ picture }) {
  const [isLog, setLog] = useState(false);
  const { about, least, largest, flags } = picture;
  const { columns: [start, stride] } = axisStarts(about);
  const x = Array.from(least, (_, at) => start + at * about.column_step * stride);
  const values = (side) => Array.from(side, (one, at) => (flags[at] ? "nan" : Number.isNaN(one) ? null : isLog ? Math.abs(one) : one));
  const size = (title) => (isLog ? `|${title}|` : title);
  const lines = about.column_step === 1 ? [{ label: size(say("value")), values: values(largest) }]
    : [{ label: size(say("largest")), values: values(largest) }, { label: size(say("smallest")), values: values(least) }];
  return html`<figure class="lineplot"><${Chart} x=${x} lines=${lines} xTitle=${say("index")} yTitle=${size(say("value"))} isLog=${isLog} height=${240} label=${say("plot")} />
    <figcaption><label><input type="checkbox" checked=${isLog} onChange=${(event) => setLog(event.currentTarget.checked)} /> ${say("log scale")}</label>
      ${about.column_step > 1 && html`<span>${say("a cell is")} 1 × ${about.column_step} ${say("elements")}</span>`}</figcaption></figure>`;
}

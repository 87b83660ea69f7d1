// A part of a tensor as a picture: zero is the middle of the colours, and what is not finite has colours of its own.
import { useEffect, useRef, useState } from "preact/hooks";
import { number } from "./format.js";
import { getPicture, partAddress, progress } from "./source.js";
import { link } from "./state.js";
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

/** Red, green, blue and opacity of each cell. A cell with anything that is not finite shows that and not its mean. */
export function pixels({ mean, least, largest, flags }, most, { extreme = false } = {}) {
  const data = new Uint8ClampedArray(4 * mean.length);
  for (let at = 0; at < mean.length; at += 1) {
    const special = NOT_FINITE.find(([flag]) => flags[at] & flag);
    const value = extreme ? (Math.abs(least[at]) > Math.abs(largest[at]) ? least[at] : largest[at]) : mean[at];
    const colour = special ? special[1] : Number.isNaN(value) ? EMPTY : colourOf(most === 0 ? 0 : value / most);
    data.set([...colour, 255], 4 * at);
  }
  return data;
}

export function HeatMap({ picture, onZoom }) {
  const canvas = useRef(null);
  const [seen, setSeen] = useState(null);
  const [extreme, setExtreme] = useState(false);
  const { about, least, largest, mean, flags } = picture;
  const { cell_rows: height, cell_columns: width, row_step: down, column_step: across } = about;
  const most = scaleOf(picture);
  const isPooled = down > 1 || across > 1;
  useEffect(() => {
    if (canvas.current === null || width === 0 || height === 0) return;
    const image = new ImageData(pixels(picture, most, { extreme }), width, height);
    canvas.current.getContext("2d").putImageData(image, 0, 0);
  }, [picture, extreme]);
  if (width === 0 || height === 0) return html`<p class="quiet">${say("no elements")}</p>`;
  const scale = Math.max(1, Math.min(24, Math.floor(768 / width), Math.floor(512 / height)));
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
  const range = (from, step, size) => (step === 1 ? `${from * step}` : `${from * step}–${Math.min(size, (from + 1) * step) - 1}`);
  return html`<figure class="heatmap">
    <canvas ref=${canvas} width=${width} height=${height} role="img" aria-label=${say("heat map")} onMouseMove=${look}
      onMouseLeave=${() => setSeen(null)} style=${{ width: `${width * scale}px`, height: `${height * scale}px` }}
      onClick=${(event) => isPooled && onZoom?.(...cellOf(event))}></canvas>
    <figcaption>
      <span class="scale"><i class="low"></i>${number(-most)} … 0 … ${number(most)}<i class="high"></i></span>
      ${["NaN", "+Inf", "−Inf"].map((name, place) => counts[place] > 0 && html`<span key=${name} class=${`flag flag-${place}`}>■ ${name}: ${counts[place]} ${say("cells")}</span>`)}
      ${isPooled && html`<span>${say("a cell is")} ${down} × ${across} ${say("elements")}</span>
        <label><input type="checkbox" checked=${extreme} onChange=${(event) => setExtreme(event.currentTarget.checked)} /> ${say("largest of a cell, not its mean")}</label>`}
      <output aria-live="off">${seen === null ? " " : html`[${range(seen.row, down, about.rows)}, ${range(seen.column, across, about.columns)}]
        ${isPooled ? `${number(readable(least[seen.at]))} … ${number(readable(mean[seen.at]))} … ${number(readable(largest[seen.at]))}`
          : NOT_FINITE.map(([flag], place) => (flags[seen.at] & flag ? ["NaN", "+Inf", "−Inf"][place] : "")).join("") || number(mean[seen.at])}`}</output>
    </figcaption>
  </figure>`;
}

/** The first matrix of a tensor, small, as a link to its elements; nothing where there are none to be had. */
export function Thumbnail({ parts, number: tensor }) {
  const canvas = useRef(null);
  const [picture, setPicture] = useState(null);
  const version = progress.value?.version;
  useEffect(() => {
    const stop = new AbortController();
    getPicture(partAddress("picture", parts, tensor, {}), stop.signal).then(setPicture, () => {});
    return () => stop.abort();
  }, [parts.join("/"), tensor, version]);
  useEffect(() => {
    if (!canvas.current) return;
    const { cell_rows: height, cell_columns: width } = picture.about;
    canvas.current.getContext("2d").putImageData(new ImageData(pixels(picture, scaleOf(picture)), width, height), 0, 0);
  }, [picture]);
  if (picture === null || picture.mean.length === 0) return null;
  const { cell_rows: height, cell_columns: width } = picture.about;
  const scale = Math.min(12, 300 / width, 110 / height);
  return html`<a class="thumbnail" href=${link("tensor", [...parts, tensor])} title=${`[${picture.about.index}]`}><canvas ref=${canvas} width=${width} height=${height}
    style=${{ width: `${Math.max(4, width * scale)}px`, height: `${Math.max(4, height * scale)}px` }} aria-label=${say("heat map")}></canvas></a>`;
}

const readable = (value) => (Number.isNaN(value) ? "nan" : value);

/** One axis as a line: for each column of the part its least and largest value. */
export function LinePlot({ picture }) {
  const { about, least, largest, flags } = picture;
  const [width, height] = [760, 160];
  const count = least.length;
  const finite = Array.from(least.keys()).filter((at) => !Number.isNaN(least[at]));
  const low = finite.reduce((value, at) => Math.min(value, least[at]), 0);
  const high = finite.reduce((value, at) => Math.max(value, largest[at]), 0);
  const x = (at) => 4 + (at / Math.max(1, count - 1)) * (width - 8);
  const y = (value) => 10 + (1 - (value - low) / (high - low || 1)) * (height - 20);
  const band = [...finite.map((at) => `${x(at)},${y(largest[at])}`), ...finite.reverse().map((at) => `${x(at)},${y(least[at])}`)];
  return html`<figure class="lineplot"><svg viewBox="0 0 ${width} ${height}" role="img" aria-label=${say("plot")}>
    <line x1="4" x2=${width - 4} y1=${y(0)} y2=${y(0)} />
    <polyline points=${band.join(" ")} />
    ${Array.from(flags.keys()).filter((at) => flags[at]).slice(0, 500).map((at) => html`<circle key=${at} cx=${x(at)} cy="6" r="3"><title>[${at * about.column_step}]</title></circle>`)}
    <text x="4" y="9">${number(high)}</text><text x="4" y=${height - 1}>${number(low)}</text></svg></figure>`;
}

// The map on a canvas: curves, ranks and bands of layers over one axis of iterations, drawn from typed arrays.
import { number } from "../format.js";
import { marks } from "../view.js";
import { say } from "../words.js";
import { besideScale, bucketOf, HEALTH, MEANT, NO_CELL, NOTHING, valueOf, ZERO } from "./model.js";
import { css, shade } from "./palette.js";

const CURVE = 46;
const GAP = 10;
const TITLE = 18;
const AXIS = 30;
const NUMBERS = 24;
const RIGHT = 14;
const SIGN = 11; // px from which a cell has room for a sign
export const healthNames = Object.keys(marks);
const MAX_RANK_ROWS = 32;

/** Where everything is, in CSS pixels. state: as `Map` has it. */
export function layoutOf({ width, frame, layers, range, curves }) {
  const isNarrow = width < 560;
  const left = isNarrow ? 112 : 236;
  const plot = Math.max(40, width - left - RIGHT);
  const columns = range[1] - range[0];
  const buckets = Math.min(columns, Math.floor(plot));
  let y = 4;
  const lines = columns < 2 ? [] : curves.map((curve) => {
    const own = { curve, y, height: CURVE };
    y += CURVE + GAP;
    return own;
  });
  // Above the cells as well: where they end is often below the fold.
  const numbers = columns < 2 ? null : y;
  if (numbers !== null) y += NUMBERS;
  let ranks = null;
  if (frame.ranks.length > 1) {
    const shown = Math.min(frame.ranks.length, MAX_RANK_ROWS);
    ranks = { y: y + TITLE, height: Math.max(6, Math.min(18, 260 / shown)), count: frame.ranks.length, shown };
    y += TITLE + ranks.height * shown + GAP;
  }
  const total = layers.length;
  const height = total <= 12 ? 24 : total <= 30 ? 18 : total <= 60 ? 14 : Math.max(1, 560 / total);
  const placed = [];
  const bands = [];
  layers.forEach((layer) => {
    if (bands.at(-1)?.part !== layer.part) {
      if (bands.length > 0) y += GAP / 2;
      bands.push({ part: layer.part, y });
      y += TITLE;
    }
    placed.push({ layer, y, height });
    y += height;
    bands.at(-1).end = y;
  });
  return { width, left, plot, columns, buckets, lines, numbers, ranks, bands, placed, rowHeight: height, axis: y, height: y + AXIS, range, isNarrow };
}

export const bucketX = (at, bucket) => at.left + (bucket * at.plot) / at.buckets;
export const columnX = (at, column) => at.left + ((column + 0.5 - at.range[0]) * at.plot) / at.columns;

/** What is at a point: {kind: "cell", row, bucket} | {kind: "layer", row} | {kind: "rank", rank, bucket} | {kind: "curve", bucket} | null. */
export function hit(at, x, y) {
  const bucket = Math.floor(((x - at.left) * at.buckets) / at.plot);
  const isInside = bucket >= 0 && bucket < at.buckets;
  if (at.ranks !== null && y >= at.ranks.y && y < at.ranks.y + at.ranks.height * at.ranks.shown) {
    const row = Math.floor((y - at.ranks.y) / at.ranks.height);
    return { kind: "rank", rank: Math.floor((row * at.ranks.count) / at.ranks.shown), bucket: isInside ? bucket : null };
  }
  const row = at.placed.findIndex((one) => y >= one.y && y < one.y + one.height);
  if (row >= 0) return isInside ? { kind: "cell", row, bucket } : x < at.left ? { kind: "layer", row } : null;
  return isInside && y < at.axis ? { kind: "curve", bucket } : null;
}

/** Draw all but what follows the pointer. colours: of the theme, by name; see `themeOf`. */
export function draw(ctx, at, { frame, by, pooledBy, pooledHealth, domain, rank, ranks, colours, labels }) {
  ctx.clearRect(0, 0, at.width, at.height);
  ctx.textBaseline = "middle";
  at.lines.forEach((line) => drawCurve(ctx, at, line, colours));
  if (at.ranks !== null) drawRanks(ctx, at, { frame, rank, ranks, colours });
  for (const band of at.bands) {
    text(ctx, say(frame.parts[band.part]), 0, band.y + TITLE / 2, colours.text, "600 12px");
    ctx.fillStyle = colours.border;
    ctx.fillRect(at.left, band.y + TITLE - 3, at.plot, 1);
  }
  at.placed.forEach((one, row) => {
    drawRow(ctx, at, one, row, { by, pooledBy, pooledHealth, domain, colours });
    if (at.rowHeight >= 11) text(ctx, fitted(ctx, labels[row], at.left - 14), at.left - 8, one.y + one.height / 2, colours.quiet, "11.5px", "right");
  });
  drawAxis(ctx, at, frame, colours, at.axis);
  if (at.numbers !== null) drawAxis(ctx, at, frame, colours, at.numbers);
}

function drawRow(ctx, at, { y, height }, row, { by, pooledBy, pooledHealth, domain, colours }) {
  const base = row * at.buckets;
  const gap = height > 8 ? 1 : 0;
  const width = at.plot / at.buckets;
  const inset = width > 9 ? 1 : 0;
  const isSingle = at.buckets === 1 && by !== HEALTH;
  for (let bucket = 0; bucket < at.buckets; bucket += 1) {
    const health = pooledHealth[base + bucket];
    if (health === NO_CELL) continue;
    let fill = colours.health[health];
    let share = 1;
    if (by !== HEALTH) {
      const log = pooledBy?.[base + bucket] ?? NaN;
      const word = besideScale(log, health, healthNames);
      if (word === null) {
        share = domain === null ? 0 : Math.min(1, Math.max(0, (log - domain[0]) / (domain[1] - domain[0])));
        fill = css(shade(share));
      } else fill = { [NOTHING]: colours.none, [ZERO]: colours.zero, [MEANT]: colours.health[5] }[word] ?? fill;
    }
    // Whole pixels: between two halves the page would shine through.
    const x = Math.round(at.left + bucket * width);
    const long = isSingle ? (0.12 + 0.78 * share) * at.plot : Math.round(at.left + (bucket + 1) * width) - x;
    if (isSingle && height >= 11 && pooledBy !== null) text(ctx, shownValue(pooledBy[base]), x + long + 6, y + height / 2, colours.quiet, "11px");
    ctx.fillStyle = fill;
    ctx.fillRect(x, y, Math.max(1, long - inset), height - gap);
    const isFlagged = health <= 3 && (by === HEALTH || health <= 1);
    if (isFlagged && width >= SIGN && height >= SIGN) {
      text(ctx, marks[healthNames[health]][1], x + (isSingle ? 14 : width / 2), y + height / 2, by === HEALTH || pooledBy?.[base + bucket] === Infinity ? colours.page : colours.health[health], "700 11px", "center");
    }
  }
}

function drawCurve(ctx, at, { curve, y, height }, colours) {
  const { values } = curve;
  const finite = values.slice(...at.range).filter((one) => typeof one === "number");
  ctx.fillStyle = colours.border;
  ctx.fillRect(at.left, y + height, at.plot, 1);
  text(ctx, fitted(ctx, say(curve.title), at.left - 14), at.left - 8, y + 12, colours.text, "600 12px", "right");
  const isLog = finite.length > 0 && finite.every((one) => one > 0) && Math.max(...finite) > 30 * Math.min(...finite);
  const scaled = (one) => (isLog ? Math.log10(one) : one);
  const [low, high] = finite.length > 0 ? [Math.min(...finite.map(scaled)), Math.max(...finite.map(scaled))] : [0, 0];
  const yOf = (one) => y + 4 + (1 - (high === low ? 0.5 : (scaled(one) - low) / (high - low))) * (height - 8);
  const shown = [...finite].sort((one, other) => one - other);
  if (finite.length > 0) text(ctx, fitted(ctx, `${short(shown[0])} … ${short(shown.at(-1))}${isLog ? " log" : ""}`, at.left - 8), at.left - 8, y + 29, colours.quiet, "11px", "right");
  ctx.strokeStyle = colours.line;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  let isDrawing = false;
  const points = [];
  for (let column = at.range[0]; column < at.range[1]; column += 1) {
    const value = values[column];
    const x = columnX(at, column);
    if (typeof value === "number") {
      if (isDrawing) ctx.lineTo(x, yOf(value));
      else ctx.moveTo(x, yOf(value));
      points.push([x, yOf(value)]);
    }
    isDrawing = typeof value === "number";
    if (typeof value === "string") text(ctx, "✖", x, y + 6, colours.health[0], "700 11px", "center");
  }
  ctx.stroke();
  if (at.columns <= 60) {
    ctx.fillStyle = colours.line;
    for (const [x, top] of points) {
      ctx.beginPath();
      ctx.arc(x, top, 2.4, 0, 7);
      ctx.fill();
    }
  }
}

const short = (value) => number(Number(value.toPrecision(3)));

function drawRanks(ctx, at, { frame, rank, ranks, colours }) {
  const { y, height, shown, count } = at.ranks;
  text(ctx, say("Ranks"), 0, y - TITLE / 2, colours.text, "600 12px");
  const width = at.plot / at.buckets;
  for (let row = 0; row < shown; row += 1) {
    const [begin, end] = [Math.floor((row * count) / shown), Math.floor(((row + 1) * count) / shown)];
    for (let bucket = 0; bucket < at.buckets; bucket += 1) {
      const [first, last] = bucketOf(bucket, at.buckets, at.range[0], at.columns);
      let worst = NO_CELL;
      let votes = 0;
      for (let one = begin; one < end; one += 1) {
        for (let column = first; column < last; column += 1) {
          worst = Math.min(worst, ranks.worst[one][column]);
          votes += ranks.votes[one][column];
        }
      }
      if (worst === NO_CELL) continue;
      if (worst === 3) worst = 4; // what is suspicious of one tensor says nothing of a rank
      const [x, top] = [at.left + bucket * width, y + row * height];
      const isOut = votes > 0 && worst > 2;
      ctx.fillStyle = isOut ? colours.health[2] : colours.health[worst];
      ctx.fillRect(x, top, Math.max(1, width - (width > 5 ? 1 : 0)), height - (height > 8 ? 1 : 0));
      if ((isOut || worst <= 3) && width >= SIGN && height >= SIGN) text(ctx, isOut ? `≠ ${width > 40 ? votes : ""}`.trim() : marks[healthNames[worst]][1], x + width / 2, top + height / 2, colours.page, "700 11px", "center");
    }
    if (height >= 11 && end - begin === 1) {
      const isOut = ranks.votes[begin].some((one) => one > 0);
      const isChosen = begin === rank;
      text(ctx, `${isOut ? (at.isNarrow ? "≠ " : `≠ ${say("outvoted")} · `) : ""}${say("rank")} ${frame.ranks[begin] ?? "–"}${isChosen ? " ▸" : ""}`, at.left - 8, y + (row + 0.5) * height,
        isOut ? colours.differs : isChosen ? colours.text : colours.quiet, isChosen || isOut ? "700 11.5px" : "11.5px", "right");
    }
  }
}

/** Numbers of iterations; y: of the line that their ticks hang from. */
function drawAxis(ctx, at, frame, colours, y) {
  const most = Math.max(1, Math.floor(at.plot / 64));
  const step = [1, 2, 5].flatMap((one) => [1, 10, 100, 1000, 10_000, 100_000].map((ten) => one * ten)).sort((one, other) => one - other).find((one) => at.columns / one <= most) ?? at.columns;
  for (let column = at.range[0]; column < at.range[1]; column += 1) {
    if ((column - at.range[0]) % step !== 0) continue;
    const x = columnX(at, column);
    ctx.fillStyle = colours.border;
    ctx.fillRect(x, y, 1, 4);
    text(ctx, String(frame.iterations[column] ?? "–"), x, y + 12, colours.quiet, "11px", "center");
  }
  text(ctx, say("iteration"), at.left - 8, y + 12, colours.quiet, "11px", "right");
}

function text(ctx, words, x, y, fill, font, align = "left") {
  ctx.font = `${font} system-ui, "DejaVu Sans", "Noto Sans CJK SC", sans-serif`;
  ctx.textAlign = align;
  ctx.fillStyle = fill;
  ctx.fillText(words, x, y);
}

/** The end of a text that has no room as a whole; its end tells more than its beginning. */
function fitted(ctx, words, room) {
  ctx.font = '11.5px system-ui, "DejaVu Sans", "Noto Sans CJK SC", sans-serif';
  if (ctx.measureText(words).width <= room) return words;
  let [low, high] = [0, words.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ctx.measureText(`…${words.slice(middle)}`).width <= room) high = middle;
    else low = middle + 1;
  }
  return `…${words.slice(low)}`;
}

/** What follows the pointer and the cursor: the ring around the first bad cell, the cell that is looked at, what is being picked. */
export function drawOver(ctx, at, { ring, hovered, cursor, brush, colours }) {
  ctx.clearRect(0, 0, at.width, at.height);
  const box = (row, bucket, stroke, width, spare) => {
    const one = at.placed[row];
    const long = at.plot / at.buckets;
    const [w, h] = [Math.max(long, 6), Math.max(one.height, 6)];
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.roundRect(bucketX(at, bucket) + long / 2 - w / 2 - spare, one.y + one.height / 2 - h / 2 - spare, w + 2 * spare - 1, h + 2 * spare - 1, 3);
    ctx.stroke();
  };
  if (brush !== null) {
    ctx.fillStyle = colours.link;
    ctx.globalAlpha = 0.18;
    ctx.fillRect(Math.min(...brush), 0, Math.abs(brush[1] - brush[0]), at.axis);
    ctx.globalAlpha = 1;
  }
  if (hovered !== null && hovered.bucket !== null && hovered.bucket !== undefined) {
    const x = bucketX(at, hovered.bucket + 0.5);
    ctx.fillStyle = colours.text;
    ctx.globalAlpha = 0.35;
    ctx.fillRect(x, 0, 1, at.axis);
    ctx.globalAlpha = 1;
    if (hovered.kind === "cell") box(hovered.row, hovered.bucket, colours.text, 1.5, 1);
  }
  if (ring !== null) {
    box(ring.row, ring.bucket, colours.page, 5, 3);
    box(ring.row, ring.bucket, colours.health[0], 2.5, 3);
  }
  if (cursor !== null) box(cursor.row, cursor.bucket, colours.link, 2.5, 1);
}

/** Text of a statistic's cell. */
export const shownValue = (log) => {
  const value = valueOf(log);
  return value === "not finite" ? say(value) : number(value);
};

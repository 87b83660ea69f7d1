// Elements by sign and exponent as bars, with the limits of narrower dtypes; and what those would lose.
import { html } from "./view.js";
import { number } from "./format.js";
import { say } from "./words.js";

// Exponent of the largest number, of the smallest normal one and of the smallest subnormal one. IEEE 754; OCP 8-bit
// Floating Point Specification 1.0 for the two of 8 bits.
export const limits = {
  float16: [15, -14, -24],
  bfloat16: [127, -126, -133],
  float8_e4m3fn: [8, -6, -9],
  float8_e5m2: [15, -14, -16],
};

/** Shares of the counted elements that a dtype has no room for: above its largest, below its smallest power of two. */
export function lost([first, positive, negative], [largest, , smallest]) {
  let [all, over, under] = [0, 0, 0];
  positive.forEach((some, place) => {
    const both = some + negative[place];
    all += both;
    if (first + place > largest) over += both;
    if (first + place < smallest) under += both;
  });
  return all === 0 ? [0, 0] : [over / all, under / all];
}

const short = (name) => name.replace("bfloat", "bf").replace("float", "fp").replace(/^fp8_/, "").replace("fn", "");
const [WIDTH, HEIGHT, MARGIN] = [460, 110, 14];

export function Exponents({ counts }) {
  if (counts === null) return html`<p class="quiet">${say("exponents")}: ${say("not measured")}</p>`;
  const [first, positive, negative] = counts;
  if (positive.length === 0) return html`<p class="quiet">${say("exponents")}: 0</p>`;
  // Some room on both sides shows how far the limits are.
  const [low, high] = [Math.min(first, -26) - 1, Math.max(first + positive.length, 17) + 1];
  const width = (WIDTH - 2 * MARGIN) / (high - low);
  const x = (exponent) => MARGIN + (exponent - low) * width;
  const most = Math.max(...positive.map((some, place) => some + negative[place]));
  const scale = (some) => (some === 0 ? 0 : Math.max(2, (Math.log1p(some) / Math.log1p(most)) * (HEIGHT - 36)));
  const bars = positive.map((some, place) => {
    const [up, both] = [scale(some + negative[place]), some + negative[place]];
    const share = both === 0 ? 0 : negative[place] / both;
    const at = x(first + place);
    return html`<g key=${place}><title>2^${first + place}: ${some} + ${negative[place]} −</title>
      <rect class="positive" x=${at} y=${HEIGHT - 18 - up} width=${Math.max(1, width - 0.5)} height=${up * (1 - share)} />
      <rect class="negative" x=${at} y=${HEIGHT - 18 - up * share} width=${Math.max(1, width - 0.5)} height=${up * share} /></g>`;
  });
  // Dtypes that end at one place share its line.
  const ends = new Map();
  for (const [name, [largest, , smallest]] of Object.entries(limits)) {
    for (const at of [largest + 1, smallest]) {
      if (at > low && at < high) ends.set(at, [...(ends.get(at) ?? []), short(name)]);
    }
  }
  return html`<figure class="exponents">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${say("exponents")}>
      ${[...ends].map(([at, names]) => html`<g key=${at} class="limit">
        <line x1=${x(at)} x2=${x(at)} y1="14" y2=${HEIGHT - 18} /><text x=${x(at)} y="10">${names.join(", ")}</text></g>`)}
      ${bars}
      <text class="axis" x=${MARGIN} y=${HEIGHT - 4}>2^${low}</text>
      <text class="axis end" x=${WIDTH - MARGIN} y=${HEIGHT - 4}>2^${high}</text>
    </svg>
    <figcaption>${Object.entries(limits).map(([name, limit]) => {
      const [over, under] = lost(counts, limit);
      if (over === 0 && under === 0) return html`<span key=${name} class="fits">${name} ✓</span>`;
      const parts = [over && `${say("overflow")} ${number(100 * over)} %`, under && `${say("underflow")} ${number(100 * under)} %`];
      return html`<span key=${name} class=${over ? "over" : "under"}>${name}: ${parts.filter(Boolean).join(", ")}</span>`;
    })}</figcaption>
  </figure>`;
}

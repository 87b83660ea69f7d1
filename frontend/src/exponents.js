// Elements by sign and exponent as bars, with the limits of narrower dtypes; and what those would lose.
import { Frame } from "./bars.js";
import { html } from "./view.js";
import { number } from "./format.js";
import { say } from "./words.js";

// Exponent of the largest number, of the smallest normal one and of the smallest subnormal one, and the largest number.
// IEEE 754; OCP 8-bit Floating Point Specification 1.0 for the two of 8 bits.
export const limits = {
  float16: [15, -14, -24, 65504],
  bfloat16: [127, -126, -133, 255 * 2 ** 120],
  float8_e4m3fn: [8, -6, -9, 448],
  float8_e5m2: [15, -14, -16, 57344],
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

/** counts: of mine; golden: of its partner, drawn as an outline over the bars. */
export function Exponents({ counts, golden = null }) {
  if (counts === null) return html`<p class="quiet">${say("exponents")}: ${say("not measured")}</p>`;
  const [first, positive, negative] = counts;
  if (positive.length === 0 && (golden === null || golden[1].length === 0)) return html`<p class="quiet">${say("exponents")}: 0</p>`;
  const sums = ([begin, some, others]) => some.map((one, place) => [begin + place, one + others[place]]);
  const all = [counts, golden].filter((one) => one !== null).flatMap(sums);
  // Some room on both sides shows how far the limits are.
  const low = Math.min(-26, ...all.map(([at]) => at)) - 1;
  const high = Math.max(17, ...all.map(([at]) => at + 1)) + 1;
  const place = (exponent) => (exponent - low) / (high - low);
  const most = Math.max(1, ...all.map(([, some]) => some));
  const ends = new Map(); // dtypes that end at one place share its line
  for (const [name, [largest, , smallest]] of Object.entries(limits)) {
    for (const at of [largest + 1, smallest]) {
      if (at > low && at < high) ends.set(at, [...(ends.get(at) ?? []), short(name)]);
    }
  }
  const every = high - low > 80 ? 32 : 8;
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => low + at).filter((at) => at % every === 0);
  return html`<figure class="exponents">
    <${Frame} most=${most} label=${say("exponents")} xTitle=${say("magnitude: 2^e ≤ |x| < 2^(e+1)")} yTitle=${say("elements")} xTicks=${ticks.map((at) => [place(at), `2^${at}`])}>${({ x, y, share }) => {
      const width = Math.max(1, x(place(1)) - x(place(0)) - 0.5);
      const outline = golden === null ? "" : sums(golden).map(([at, some]) => `M${x(place(at))} ${y(share(some))}H${x(place(at + 1))}`).join("");
      return html`${[...ends].map(([at, names]) => html`<g key=${at} class="limit">
          <line x1=${x(place(at))} x2=${x(place(at))} y1=${y(1)} y2=${y(0)} /><text x=${x(place(at))} y=${y(1) - 5}>${names.join(", ")}</text></g>`)}
        ${positive.map((some, at) => {
          const both = some + negative[at];
          if (both === 0) return null;
          const [up, part] = [y(0) - y(share(both)), negative[at] / both];
          return html`<g key=${at}><title>2^${first + at}: ${some} + ${negative[at]} −</title>
            <rect class="positive" x=${x(place(first + at))} y=${y(0) - up} width=${width} height=${up * (1 - part)} />
            <rect class="negative" x=${x(place(first + at))} y=${y(0) - up * part} width=${width} height=${up * part} /></g>`;
        })}
        ${outline && html`<path class="golden-outline" d=${outline} />`}`;
    }}</${Frame}>
    <figcaption><span class="key positive">■ ${say("positive")}</span><span class="key negative">■ ${say("negative")}</span>${golden !== null && html`<span class="key golden">━ ${say("golden")}</span>`}
      <span title=${say("Dashed lines are the largest and the smallest power of two of a format: what lies outside overflows, or becomes 0.")}>┆ ${say("limits of formats")} ⓘ</span></figcaption>
    <figcaption>${positive.length > 0 && Object.entries(limits).map(([name, limit]) => {
      const [over, under] = lost(counts, limit);
      if (over === 0 && under === 0) return html`<span key=${name} class="fits">${name} ✓</span>`;
      const parts = [over && `${say("overflow")} ${number(100 * over)} %`, under && `${say("underflow")} ${number(100 * under)} %`];
      return html`<span key=${name} class=${over ? "over" : "under"}>${name}: ${parts.filter(Boolean).join(", ")}</span>`;
    })}</figcaption>
  </figure>`;
}

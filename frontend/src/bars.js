// A histogram as bars, with both axes and their titles; heights by the logarithm of the count, so that one element is seen.
import { decades } from "./chart.js";
import { number } from "./format.js";
import { html } from "./view.js";
import { say } from "./words.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [540, 170, 46, 34, 16];

/** Places of ticks at powers of ten up to a count, and the height of a count as a share. */
export function heights(most) {
  const top = Math.log10(Math.max(most, 1)) + 0.3;
  const share = (some) => (some <= 0 ? 0 : (Math.log10(some) + 0.3) / top);
  const decades = Array.from({ length: Math.floor(Math.log10(Math.max(most, 1))) + 1 }, (_, power) => 10 ** power);
  const every = Math.ceil(decades.length / 4);
  return { share, ticks: decades.filter((_, place) => place % every === 0) };
}

/** Frame of a histogram: axes, ticks and titles around what is drawn in it. xTicks: [[share from 0 to 1, text]] */
export function Frame({ most, xTicks, xTitle, yTitle, label, children }) {
  const { share, ticks } = heights(most);
  const x = (place) => LEFT + place * (WIDTH - LEFT - 8);
  const y = (part) => HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
  return html`<svg class="bars" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${label}>
    ${ticks.map((tick) => html`<g key=${tick} class="tick"><line x1=${LEFT} x2=${WIDTH - 8} y1=${y(share(tick))} y2=${y(share(tick))} />
      <text class="end" x=${LEFT - 4} y=${y(share(tick)) + 3}>${number(tick)}</text></g>`)}
    ${xTicks.map(([place, text]) => html`<g key=${text} class="tick"><line x1=${x(place)} x2=${x(place)} y1=${y(0)} y2=${y(0) + 3} /><text x=${x(place)} y=${HEIGHT - BOTTOM + 13}>${text}</text></g>`)}
    <text class="title" x=${(LEFT + WIDTH) / 2} y=${HEIGHT - 4}>${xTitle}</text>
    <text class="title" transform="translate(10 ${(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)">${yTitle}</text>
    ${children({ x, y, share })}
  </svg>`;
}

/** The answer of the server for a histogram. */
export function Bars({ histogram, title }) {
  const { edges, counts, is_log: isLog, zero, nan, negative_inf: negative, positive_inf: positive, count } = histogram;
  const rest = [[isLog ? "0" : "", isLog ? zero : 0], ["NaN", nan], ["−Inf", negative], ["+Inf", positive]].filter(([, some]) => some > 0);
  const scaled = isLog ? Math.log10 : (one) => one;
  const [low, high] = [edges[0], edges.at(-1)].map(scaled);
  const place = (one) => (high === low ? 0.5 : (scaled(one) - low) / (high - low));
  const most = Math.max(1, ...counts);
  return html`<figure class="distribution">
    ${counts.length > 0 && html`<${Frame} most=${most} label=${title} xTitle=${title} yTitle=${say("elements")} xTicks=${marks(edges, isLog).map((one) => [place(one), number(one)])}>${
      ({ x, y, share }) => counts.map((some, at) => some > 0 && html`<rect key=${at} class="positive" x=${x(place(edges[at]))} y=${y(share(some))}
        width=${Math.max(1, x(place(edges[at + 1])) - x(place(edges[at])) - 0.5)} height=${y(0) - y(share(some))}><title>${number(edges[at])} … ${number(edges[at + 1])}: ${some}</title></rect>`)}</${Frame}>`}
    <figcaption>${count} ${say("elements")}${rest.map(([name, some]) => html`<span key=${name} class=${name === "0" ? "" : "bad"}> ${name}: ${some}</span>`)}</figcaption></figure>`;
}

/** Numbers to name on the axis: the ends and some between; powers of ten on a scale of them. */
export function marks(edges, isLog) {
  const [low, high] = [edges[0], edges.at(-1)];
  if (!isLog) return edges.length <= 2 ? [low] : [low, (low + high) / 2, high];
  return decades(low, high);
}

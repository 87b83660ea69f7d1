// A picture that can be moved and zoomed: by wheel, by dragging, by keys and by a map of the whole.
import { signal } from "@preact/signals";
import { html } from "../view.js";
import { say } from "../words.js";

const [LEAST, MOST, STEP, MARGIN] = [0.03, 2.5, 1.3, 24];
const LARGEST = 1.35; // scale of a small picture that fills the window
export const READABLE = 0.75; // scale below which words are hard to read

/** Where the picture stands: `at` is [x, y, scale] of its origin in the window. */
export class Camera {
  at = signal([0, 0, 1]);
  size = [800, 500];
  whole = [1, 1];

  /** Around a point of the window, which stays where it is; by default its middle. */
  zoom(factor, [px, py] = [this.size[0] / 2, this.size[1] / 2]) {
    const [x, y, scale] = this.at.value;
    const next = Math.min(MOST, Math.max(LEAST, scale * factor));
    this.at.value = [px - ((px - x) * next) / scale, py - ((py - y) * next) / scale, next];
  }

  move(dx, dy) {
    const [x, y, scale] = this.at.value;
    this.at.value = [x + dx, y + dy, scale];
  }

  /** All of the picture, a small one larger than it is; `least`: a scale below which the upper part must do. */
  fit(least = 0) {
    const room = this.size.map((one) => one - 2 * MARGIN);
    const scale = Math.max(LEAST, Math.min(LARGEST, room[0] / this.whole[0], room[1] / this.whole[1]));
    const used = Math.max(scale, Math.min(least, 1, Math.max(scale, room[0] / this.whole[0])));
    const x = (this.size[0] - this.whole[0] * used) / 2;
    this.at.value = [x, used > scale ? MARGIN : (this.size[1] - this.whole[1] * used) / 2, used];
  }

  /** A rectangle of the picture to the middle. */
  center([x, y, width, height], scale = Math.max(READABLE, this.at.value[2])) {
    const middle = [this.size[0] / 2 - (x + width / 2) * scale, Math.max(this.size[1] / 2 - (y + height / 2) * scale, MARGIN * 2 - y * scale)];
    // No more emptiness than it takes.
    const kept = middle.map((one, axis) => {
      const [room, size] = [this.size[axis], this.whole[axis] * scale];
      return size + 2 * MARGIN < room ? (room - size) / 2 : Math.min(MARGIN, Math.max(room - MARGIN - size, one));
    });
    this.at.value = [...kept, scale];
  }

  /** Move as far as it takes to see a rectangle. */
  reveal([left, top, width, height]) {
    const [x, y, scale] = this.at.value;
    const shift = (from, size, room) => {
      const [begin, end] = [from, from + Math.min(size, room - 2 * MARGIN)];
      return begin < MARGIN ? MARGIN - begin : end > room - MARGIN ? room - MARGIN - end : 0;
    };
    this.move(shift(x + left * scale, width * scale, this.size[0]), shift(y + top * scale, height * scale, this.size[1]));
  }
}

/** What a pointer and a wheel do to a camera. */
export function handlers(camera) {
  const fingers = new Map();
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [one, other] = [...fingers.values()];
    return Math.hypot(one[0] - other[0], one[1] - other[1]);
  };
  let moved = 0;
  return {
    onWheel: (event) => {
      event.preventDefault();
      if (event.shiftKey) camera.move(-event.deltaY - event.deltaX, 0);
      else camera.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 400), point(event));
    },
    onPointerDown: (event) => {
      fingers.set(event.pointerId, point(event));
      moved = 0;
    },
    onPointerMove: (event) => {
      const before = fingers.get(event.pointerId);
      if (before === undefined) return;
      const now = point(event);
      const old = fingers.size === 2 ? spread() : 0;
      fingers.set(event.pointerId, now);
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      if (moved > 4 && !event.currentTarget.hasPointerCapture(event.pointerId)) event.currentTarget.setPointerCapture(event.pointerId);
      camera.move((now[0] - before[0]) / fingers.size, (now[1] - before[1]) / fingers.size);
      if (fingers.size === 2 && old > 0) camera.zoom(spread() / old, now);
    },
    onPointerUp: (event) => fingers.delete(event.pointerId),
    onPointerCancel: (event) => fingers.delete(event.pointerId),
    // What was a drag opens nothing.
    onClickCapture: (event) => {
      if (moved <= 4) return;
      event.preventDefault();
      event.stopPropagation();
    },
  };
}

/** Buttons for what wheel and keys do. */
export function Buttons({ camera, onFit }) {
  const button = (title, key, sign, act) => html`<button title=${`${say(title)} (${key})`} aria-label=${say(title)} onClick=${act}>${sign}</button>`;
  return html`<div class="zoom" role="group" aria-label=${say("zoom")}>${button("zoom in", "+", "+", () => camera.zoom(STEP))}${
    button("zoom out", "-", "−", () => camera.zoom(1 / STEP))}${button("show all", "0", "⤢", onFit)}</div>`;
}

/** What keys do; whether this was one of them. */
export function onKey(event, camera, onFit) {
  const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
  if (pan !== undefined) camera.move(...pan);
  else if (event.key === "+" || event.key === "=") camera.zoom(STEP);
  else if (event.key === "-") camera.zoom(1 / STEP);
  else if (event.key === "0") onFit();
  else return false;
  return true;
}

/** The whole picture, small, and the part of it that is in sight. */
export function Minimap({ camera, boxes, fill }) {
  const [x, y, scale] = camera.at.value;
  const [width, height] = camera.whole;
  const go = (event) => {
    if (event.buttons !== 1) return;
    const box = event.currentTarget.getBoundingClientRect();
    const shown = Math.min(box.width / width, box.height / height);
    const [px, py] = [event.clientX - box.left - (box.width - width * shown) / 2, event.clientY - box.top - (box.height - height * shown) / 2];
    camera.center([px / shown, py / shown, 0, 0], scale);
  };
  return html`<svg class="minimap" viewBox="0 0 ${width} ${height}" aria-hidden="true" onPointerDown=${go} onPointerMove=${go}>
    ${boxes.map(([id, left, top, wide, high]) => html`<rect key=${id} class=${fill(id)} x=${left} y=${top} width=${wide} height=${high} />`)}
    <rect class="sight" x=${-x / scale} y=${-y / scale} width=${camera.size[0] / scale} height=${camera.size[1] / scale} />
  </svg>`;
}

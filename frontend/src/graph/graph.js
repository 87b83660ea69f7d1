// The graph of a step: scopes that open in place, operators with their numbers, and what flows.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { arrangementOf } from "../layout.js";
import { panelLink, place, setQuery } from "../state.js";
import { html, isBad, marks } from "../view.js";
import { language, say } from "../words.js";
import { boxesOf, goldenTensors, known, measured, pairsOf, statistics } from "./faces.js";
import { flowOf } from "./flow.js";
import { ghostsOf } from "./ghosts.js";
import { firstOpen, inSight, openFrom, openText, toggled } from "./levels.js";
import { Picture } from "./picture.js";
import { Search } from "./search.js";
import { Buttons, Camera, handlers, Minimap, onKey, READABLE } from "./stage.js";
import { byId, pathTo, treeOf } from "./tree.js";

const ALL_CLOSED = "-";
const SMALLEST = 0.5; // scale of a first picture; a larger graph shows a part of it

/**
 * step: its answer; parts: of its address; compare, golden: the answers of the comparison and of its golden side, or null; targets: numbers of operators
 * that it opens with; way: set of operators that what is not finite went through, or null; first: statistic at first
 */
export function Graph({ step, parts, compare = null, golden = null, targets = [], way = null, first = "max", head = null, children }) {
  const { query } = place.value;
  const shownViews = query.views === "1";
  const model = useMemo(() => modelOf(step, shownViews), [step, shownViews]);
  const names = useMemo(() => known(step), [step]);
  const pairs = useMemo(() => (compare === null ? null : pairsOf(compare)), [compare]);
  const chosen = names.includes(query.stat) ? query.stat : names.includes(first) ? first : names[0];
  const statistic = useMemo(() => (chosen === undefined ? null : measured(model.root, step, chosen)), [model, chosen]);
  const other = useMemo(() => (golden === null || chosen === undefined || chosen === "error" ? null
    : measured(model.root, { operators: step.operators, tensors: goldenTensors(step.tensors, golden.tensors) }, chosen)), [model, golden, chosen]);
  const opening = useMemo(() => firstOpen(model.root, targets.map((index) => model.leaves.get(index)).filter(Boolean)), [model, targets.join()]);
  const open = query.open === undefined ? opening : openFrom(query.open === ALL_CLOSED ? "" : query.open, model.nodes);
  const isOrdered = !model.isKnown;
  const ghosts = useMemo(() => (compare === null ? null : ghostsOf(compare.only_golden, model)), [compare, model]);
  const scene = useMemo(() => {
    const sight = inSight(model, model.edges, open, ghosts);
    return { ...model, step, statistic, pairs, isOrdered, sight, ...boxesOf(sight, step, { statistic, other, pairs, ghosts, say, isOrdered }) };
  }, [model, step, statistic, other, pairs, ghosts, language.value, [...open].join("\n")]);
  const [state, setState] = useState({});
  const camera = useMemo(() => new Camera(), []);
  const stage = useRef(null);
  const { onWheel, ...pointer } = useMemo(() => handlers(camera), []);
  // What the picture does when a layout comes: keep a box where it is, or go to one.
  const next = useRef({ start: true });
  useEffect(() => {
    let isWanted = true;
    arrangementOf(scene.box).then((layout) => {
      if (!isWanted) return;
      const before = state.layout;
      camera.whole = [layout.width, layout.height];
      settle(camera, next.current, before, layout, model, targets, query.sel);
      next.current = {};
      setState({ layout, scene });
    }, (error) => isWanted && setState({ scene, error }));
    return () => { isWanted = false; };
  }, [scene]);
  useEffect(() => {
    const measure = () => {
      const { clientWidth, clientHeight } = stage.current;
      const first = camera.size;
      camera.size = [clientWidth || 800, clientHeight || 500];
      if (first[0] !== camera.size[0]) camera.move((camera.size[0] - first[0]) / 2, 0);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(stage.current);
    const own = stage.current;
    own.addEventListener("wheel", onWheel, { passive: false }); // the page itself is not to scroll
    return () => {
      observer.disconnect();
      own.removeEventListener("wheel", onWheel);
    };
  }, []);
  const change = (now, more = {}) => setQuery({ open: openText(now, model.nodes) || ALL_CLOSED, ...more });
  const onToggle = (at) => {
    next.current = { keep: at.id };
    change(toggled(open, at), { sel: at.id });
  };
  const onJump = (index) => {
    const isHidden = !model.leaves.has(index);
    const { leaves, nodes } = isHidden ? modelOf(step, true) : model;
    const leaf = leaves.get(index);
    if (leaf === undefined) return;
    const now = new Set(open);
    for (const one of pathTo(leaf).slice(0, -1)) now.add(one.id);
    const isThere = [...now].every((id) => open.has(id)) && !isHidden;
    if (isThere && state.layout?.boxes[leaf.id]) camera.center(state.layout.boxes[leaf.id]);
    else next.current = { show: leaf.id };
    setQuery({ open: openText(new Set([...now].filter((id) => nodes.has(id))), nodes) || ALL_CLOSED, sel: leaf.id, views: isHidden ? "1" : query.views });
  };
  const onFit = () => camera.fit();
  const onFocus = (id) => {
    const { layout } = state;
    if (layout?.boxes[id] && stage.current.querySelector(":focus-visible")) camera.reveal(headOf(layout.boxes[id]));
    if (query.sel !== id) setQuery({ sel: id });
  };
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = nearest(event, state.layout, stage.current);
    if (target !== null || onKey(event, camera, onFit)) event.preventDefault();
    target?.focus();
  };
  const { layout, scene: shown } = state;
  // What is drawn is of one scene: a newer one has no layout yet.
  const view = { ...shown, current: query.sel, way, onToggle, onFocus, href: (index) => panelLink(parts, index) };
  const worst = shown && Object.entries(layout?.boxes ?? {}).filter(([id]) => shown.faces.has(id)).map(([id, rect]) => [id, ...rect]);
  const fill = (id) => {
    const { at, isOpen } = shown.faces.get(id);
    return isOpen ? "room" : `fill-${marks[at.health][0]}`;
  };
  const hasBad = step.operators.health.some(isBad);
  return html`<main class="full graph" aria-busy=${state.scene !== scene ? "true" : null}>
    ${head}
    <div class="tools">
      <${Search} operators=${step.operators} onJump=${onJump} />
      ${names.length > 0 && html`<label>${say("statistic")} <select value=${chosen} onChange=${(event) => setQuery({ stat: event.currentTarget.value })}>${
        names.map((name) => html`<option key=${name} value=${name} selected=${name === chosen}>${say(statistics[name].title)}</option>`)}</select></label>`}
      ${model.foldable > 0 && html`<label title=${say("operators that only hand on what they read")}><input type="checkbox" checked=${shownViews}
        onChange=${(event) => setQuery({ views: event.currentTarget.checked ? "1" : "" })} /> ${say("views as boxes")} (${model.foldable})</label>`}
      ${hasBad && html`<button onClick=${() => onJump(firstBad(step))}>${say("first one that is not well")}</button>`}
      <button onClick=${() => { next.current = { start: true }; setQuery({ open: undefined, sel: undefined }); }}>${say("as at first")}</button>
      <button onClick=${() => { next.current = { fit: true }; setQuery({ open: ALL_CLOSED, sel: undefined }); }}>${say("close all")}</button>
    </div>
    ${{ recovered: html`<p class="note">${say("No graph file is beside this dump: what flows was recovered from equal tensors.")}</p>`,
      order: html`<p class="note">${say("Nothing tells what flows between these operators: they stand in execution order.")}</p>` }[isOrdered && step.flow !== "recovered" ? "order" : step.flow]}
    ${state.error && html`<p role="alert">${state.error.message}</p>`}
    <div class="stage" ref=${stage} ...${pointer} onKeyDown=${onKeyDown}>
      <svg class=${`canvas ${layout ? "" : "empty"}`} role="group" aria-label=${say("Graph")}>
        <defs>${["", "-red"].map((name) => html`<marker key=${name} id=${`flow-end${name}`} class=${`flow-end${name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" /></marker>`)}</defs>
        <${Moved} camera=${camera}>${layout && shown && html`<${Picture} sight=${shown.sight} faces=${shown.faces} texts=${shown.texts} layout=${layout} view=${view} />`}<//>
      </svg>
      ${!layout && !state.error && html`<p class="waiting" role="status">${say("The graph is being laid out …")}</p>`}
      <${Buttons} camera=${camera} onFit=${onFit} />
      ${layout && shown && html`<${Minimap} camera=${camera} boxes=${worst} fill=${fill} />`}
    </div>
    ${children}
  </main>`;
}

/** The part that a camera moves: it alone is drawn anew while that goes on. */
function Moved({ camera, children }) {
  const [x, y, scale] = camera.at.value;
  return html`<g class=${scale < 0.4 ? "far" : ""} transform="translate(${x} ${y}) scale(${scale})">${children}</g>`;
}

function modelOf(step, shownViews) {
  const own = step.graphs ??= {};
  return own[shownViews] ??= (() => {
    const flow = flowOf(step, { shownViews });
    const tree = treeOf(step, flow.hidden);
    const foldable = shownViews ? flowOf(step).folded.size : flow.folded.size;
    return { ...tree, nodes: byId(tree.root), edges: flow.edges, isKnown: flow.isKnown, foldable };
  })();
}

/** Number of the operator that made what is not finite first, else of the worst one; undefined where all are well. */
export function firstBad({ operators }) {
  for (const health of Object.keys(marks)) {
    if (!isBad(health) || health === "suspicious") continue;
    const index = operators.health.findIndex((one, at) => one === health && !operators.is_parameter[at]);
    if (index >= 0) return index;
  }
  const first = operators.health.findIndex((one, at) => isBad(one) && !operators.is_parameter[at]);
  return first < 0 ? undefined : first;
}

const headOf = ([x, y, width, height]) => [x, y, width, Math.min(height, 60)];

/** Put the camera where it is to be now that a layout has come. */
function settle(camera, { start, fit, keep, show }, before, layout, model, targets, selected) {
  const to = show ?? (start && layout.boxes[selected] ? selected : undefined);
  if (to !== undefined && layout.boxes[to]) return camera.center(headOf(layout.boxes[to]));
  if (keep !== undefined && before?.boxes[keep] && layout.boxes[keep]) {
    const [x, y, scale] = camera.at.value;
    const [[left, top], [nextLeft, nextTop]] = [before.boxes[keep], layout.boxes[keep]];
    camera.at.value = [x + (left - nextLeft) * scale, y + (top - nextTop) * scale, scale];
    return camera.reveal(headOf(layout.boxes[keep]));
  }
  if (!start && !fit && before !== undefined) return undefined;
  camera.fit(READABLE);
  const target = targets.map((index) => model.leaves.get(index)?.id).find((id) => layout.boxes[id]);
  const shown = target ?? model.root.children[0]?.id;
  const isSmall = camera.at.value[2] < SMALLEST;
  if (start && layout.boxes[shown] && (isSmall || (target !== undefined && camera.whole[1] * camera.at.value[2] > camera.size[1]))) {
    camera.center(headOf(layout.boxes[shown]), isSmall ? READABLE : undefined);
  }
  return undefined;
}

/** The box that an arrow key leads to from the one that has the focus; null where it leads to none. */
function nearest(event, layout, stage) {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const own = document.activeElement?.closest?.("[data-id]")?.dataset.id;
  if (way === undefined || event.shiftKey || own === undefined || layout?.boxes[own] === undefined) return null;
  const middle = ([x, y, width, height], isOpen) => [x + width / 2, y + (isOpen ? 13 : height / 2)];
  const boxes = [...stage.querySelectorAll("[data-id]")];
  const at = (one) => middle(layout.boxes[one.dataset.id], one.getAttribute("aria-expanded") === "true");
  const [x, y] = at(boxes.find((one) => one.dataset.id === own));
  let [best, least] = [null, Infinity];
  for (const one of boxes) {
    if (one.dataset.id === own || layout.boxes[one.dataset.id] === undefined) continue;
    const [dx, dy] = [at(one)[0] - x, at(one)[1] - y];
    const along = dx * way[0] + dy * way[1];
    const across = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
    if (along > 4 && along + 2 * across < least) [best, least] = [one, along + 2 * across];
  }
  return best;
}

// The health map without a browser: decoded cells, layers by scope, cells pooled to what a screen can show.

export const NO_CELL = 255;
export const HEALTH = "health";

/** One digit a cell, "." for none -> ranks of health, 0 the worst; NO_CELL where there is none. */
export function decodedHealth(text) {
  const codes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at) - 48;
    codes[at] = code >= 0 && code < 10 ? code : NO_CELL;
  }
  return codes;
}

/** Base64 of float32 (little-endian): decimal logarithms. NaN: no value, Infinity: not finite, -Infinity: zero. */
export function decodedLogs(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return new Float32Array(bytes.buffer);
}

/** The value behind a logarithm, as JSON has it: null for none, "not finite", 0, or a number with four digits. */
export function valueOf(log) {
  if (Number.isNaN(log)) return null;
  if (log === Infinity) return "not finite";
  return log === -Infinity ? 0 : Number((10 ** log).toPrecision(4));
}

/** Scopes around an operator: ["Default", "layer-Dense"] of Default/layer-Dense/MatMul-op1; dots divide a parameter's name. */
function scopesOf(name, isParameter) {
  const parts = name.split(isParameter ? "." : "/").filter(Boolean);
  return parts.slice(0, -1);
}

/**
 * Rows in the order in which they are shown: part by part, scope by scope, each scope where its first operator ran, so that
 * the operators of a scope stand together. {order: row of each line, paths: scopes of each line, part: number of each line}
 */
export function arranged(frame) {
  const { rows, parts } = frame;
  const graphs = parts.map(() => new Set());
  rows.part.forEach((part, row) => graphs[part].add(rows.graph[row]));
  const order = [];
  const paths = [];
  const part = [];
  parts.forEach((name, number) => {
    const root = { children: new Map(), own: null };
    rows.part.forEach((one, row) => {
      if (one !== number) return;
      let scopes = scopesOf(rows.name[row], name === "parameters");
      if (graphs[number].size > 1 && name !== "parameters") scopes = [`graph ${rows.graph[row] ?? "-"}`, ...scopes];
      let node = root;
      for (const scope of scopes) {
        if (!node.children.has(scope)) node.children.set(scope, { children: new Map() });
        node = node.children.get(scope);
      }
      // Operators of the scope itself are one more child, where the first of them ran.
      if (!node.children.has(OWN)) node.children.set(OWN, []);
      node.children.get(OWN).push([row, scopes]);
    });
    const walk = (node) => {
      for (const child of node.children.values()) {
        if (!Array.isArray(child)) {
          walk(child);
          continue;
        }
        for (const [row, scopes] of child) {
          order.push(row);
          paths.push(scopes);
          part.push(number);
        }
      }
    };
    walk(root);
  });
  return { order: Int32Array.from(order), paths, part: Uint8Array.from(part) };
}
const OWN = Symbol("operators of the scope itself");

/** How many scopes all lines of a part begin with; a part of one scope keeps its last one, which is its name. */
function sharedDepths({ paths, part }, from, to) {
  const shared = new Map();
  for (let line = from; line < to; line += 1) {
    const before = shared.get(part[line]);
    if (before === undefined) {
      shared.set(part[line], paths[line]);
      continue;
    }
    let depth = 0;
    while (depth < before.length && depth < paths[line].length && before[depth] === paths[line][depth]) depth += 1;
    if (depth < before.length) shared.set(part[line], before.slice(0, depth));
  }
  return new Map([...shared].map(([number, path]) => [number, path.length]));
}

/**
 * Layers of the lines from..to: runs of one part and one scope, of the greatest depth that gives at most `most` of them; single
 * operators where they are few enough. Where the coarsest depth gives too many, neighbours are put together.
 * [{from, to, part, path (scopes, [] for operators of the model itself), isOperator}]
 */
export function layersOf(arrangement, from, to, most, isByOperator = false) {
  const { part } = arrangement;
  if (isByOperator || to - from <= most) return chunked(singles(part, from, to), most);
  const shared = sharedDepths(arrangement, from, to);
  // Each part has its own depth: they are deepened in turn as long as there is room.
  const parts = [...shared.keys()].map((number) => {
    const [begin, end] = [part.indexOf(number, from), Math.min(to, part.lastIndexOf(number) + 1)];
    const deepest = arrangement.paths.slice(begin, end).reduce((longest, path) => Math.max(longest, path.length), 0) - shared.get(number);
    return { begin, end, deepest, depth: 1, layers: runs(arrangement, begin, end, shared, 1), isDone: false };
  });
  const total = () => parts.reduce((sum, { layers }) => sum + layers.length, 0);
  while (parts.some(({ isDone }) => !isDone)) {
    for (const one of parts) {
      if (one.isDone) continue;
      one.isDone = one.depth > one.deepest;
      if (one.isDone) continue;
      const next = one.depth === one.deepest ? singles(part, one.begin, one.end) : runs(arrangement, one.begin, one.end, shared, one.depth + 1);
      one.depth += 1;
      if (total() - one.layers.length + next.length > most) one.isDone = true;
      else one.layers = next;
    }
  }
  return chunked(parts.flatMap(({ layers }) => layers), most);
}

function singles(part, from, to) {
  return Array.from({ length: to - from }, (_, at) => ({ from: from + at, to: from + at + 1, part: part[from + at], path: null, isOperator: true }));
}

function runs({ paths, part }, from, to, shared, depth) {
  const layers = [];
  let key = null;
  for (let line = from; line < to; line += 1) {
    const path = paths[line].slice(0, shared.get(part[line]) + depth);
    const own = `${part[line]} ${path.join("/")}`;
    if (own === key) layers.at(-1).to = line + 1;
    else layers.push({ from: line, to: line + 1, part: part[line], path, shared: shared.get(part[line]), isOperator: false });
    key = own;
  }
  return layers;
}

/** At most `most` layers, or one for each part: neighbours of one part become one. */
function chunked(layers, most) {
  if (layers.length <= most) return layers;
  const size = layers.length / most;
  const kept = [];
  let chunk = -1;
  layers.forEach((layer, at) => {
    const own = Math.floor(at / size);
    if (own === chunk && kept.at(-1).part === layer.part) {
      kept.at(-1).to = layer.to;
      kept.at(-1).isOperator = false;
    } else {
      kept.push({ ...layer });
    }
    chunk = own;
  });
  return kept;
}

/** Columns of a bucket: [first, last + 1) of `columns` columns from `first` on, shared among `buckets`. */
export const bucketOf = (bucket, buckets, first, columns) =>
  [first + Math.floor((bucket * columns) / buckets), first + Math.max(Math.floor((bucket * columns) / buckets) + 1, Math.floor(((bucket + 1) * columns) / buckets))];

/**
 * The worst cell of each layer and bucket of columns. Health: the smallest rank, NO_CELL where there is none. Logarithms: the
 * largest, NaN where there is none. cells: rows x width, row by row; range: [first, last + 1) column.
 */
export function pooled(cells, width, arrangement, layers, range, buckets) {
  const isHealth = cells instanceof Uint8Array;
  const [first, end] = range;
  const columns = end - first;
  const found = isHealth ? new Uint8Array(layers.length * buckets).fill(NO_CELL) : new Float32Array(layers.length * buckets).fill(NaN);
  const place = new Int32Array(columns);
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const [begin, stop] = bucketOf(bucket, buckets, first, columns);
    for (let column = begin; column < stop; column += 1) place[column - first] = bucket;
  }
  layers.forEach((layer, number) => {
    const base = number * buckets;
    for (let line = layer.from; line < layer.to; line += 1) {
      const start = arrangement.order[line] * width + first;
      // Two loops: ten million cells go through them.
      if (isHealth) {
        for (let column = 0; column < columns; column += 1) {
          const at = base + place[column];
          if (cells[start + column] < found[at]) found[at] = cells[start + column];
        }
      } else {
        for (let column = 0; column < columns; column += 1) {
          const at = base + place[column];
          const value = cells[start + column];
          // A NaN is nothing: neither is it larger, nor does it stay where there is a number.
          if (value > found[at] || (found[at] !== found[at] && value === value)) found[at] = value;
        }
      }
    }
  });
  return found;
}

/** Line and column of the worst cell among some, the first of several; null where there is none. */
export function worstOf(cells, width, arrangement, layer, [begin, end]) {
  const isHealth = cells instanceof Uint8Array;
  let best = null;
  for (let line = layer.from; line < layer.to; line += 1) {
    for (let column = begin; column < end; column += 1) {
      const value = cells[arrangement.order[line] * width + column];
      if (isHealth ? value === NO_CELL : Number.isNaN(value)) continue;
      if (best === null || (isHealth ? value < best.value : value > best.value)) best = { line, column, value };
    }
  }
  return best;
}

/**
 * The 5th and the 95th of a hundred finite logarithms, so that a few extremes do not take the colours of all; null without one.
 * Less than a twentieth of a decade is widened: rounding is no trend. Of many values a part is enough.
 */
export function domainOf(values) {
  const every = Math.max(1, Math.floor(values.length / MOST_SORTED));
  const found = Float32Array.from(values.filter((value, at) => at % every === 0 && Number.isFinite(value))).sort();
  if (found.length === 0) return null;
  const [low, high] = [0.05, 0.95].map((share) => found[Math.round(share * (found.length - 1))]);
  return high - low < 0.05 ? [low - 0.025, high + 0.025] : [low, high];
}
const MOST_SORTED = 20_000;

export const [NOTHING, ZERO, MEANT] = ["not measured", "zero", "not finite, as it was meant"];

/** What a cell of a statistic shows beside the scale: the name of a health, NOTHING, ZERO or MEANT; null for a colour of the scale. */
export function besideScale(log, health, names) {
  if (Number.isNaN(log)) return NOTHING;
  if (log === -Infinity) return ZERO;
  return log !== Infinity ? null : health <= 3 ? names[health] : MEANT;
}

/** Two numbers of a query, "3-9": [from, to) within 0..length; all of it for anything else. */
export function rangeOf(text, length) {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  const [from, to] = found === null ? [0, length] : [Number(found[1]), Number(found[2]) + 1];
  return from < to && to <= length ? [from, to] : [0, length];
}

/** A range scaled by a factor around what is at `anchor`, at least one wide and within 0..length; null leaves it as it is. */
export function zoomed([from, to], anchor, factor, length) {
  if (anchor === null) return [from, to];
  const size = to - from;
  const wanted = factor < 1 ? Math.min(size - 1, Math.round(size * factor)) : Math.max(size + 1, Math.round(size * factor));
  const own = Math.min(length, Math.max(1, wanted));
  const start = Math.round(anchor - ((anchor - from) * own) / size);
  const first = Math.min(length - own, Math.max(0, start));
  return [first, first + own];
}

export const rangeText = ([from, to], length) => (from === 0 && to === length ? "" : `${from}-${to - 1}`);

/** A scope as people call it: "blocks.0-Block" is blocks.0; "0-Linear" of a Sequential has no other name. */
export const scopeLabel = (scope) => scope.replace(/^(?!\d+-)(.*)-[A-Z]\w*$/, "$1");

/**
 * What stands beside each layer; "" for the operators of the model itself. An operator stands with the module around it, and
 * with all of them where another one of its part would be called alike.
 */
export function labelsOf(layers, frame, arrangement) {
  const labels = layers.map((layer) => layerLabel(layer, frame, arrangement));
  const counts = new Map();
  const key = (at) => `${layers[at].part} ${labels[at]}`;
  labels.forEach((_, at) => counts.set(key(at), (counts.get(key(at)) ?? 0) + 1));
  return labels.map((label, at) => (layers[at].isOperator && counts.get(key(at)) > 1 ? frame.rows.name[arrangement.order[layers[at].from]] : label));
}

const ROOTS = new Set(["Default", "Gradients"]); // scopes of all operators

function layerLabel(layer, frame, arrangement) {
  const name = frame.rows.name[arrangement.order[layer.from]];
  if (layer.isOperator) {
    const parts = name.split("/").filter(Boolean);
    const scope = arrangement.paths[layer.from].at(-1);
    const isInModule = scope !== undefined && !ROOTS.has(scope) && parts.length > 1;
    return isInModule ? `${scopeLabel(scope)}/${parts.at(-1)}` : parts.at(-1) ?? name;
  }
  if (layer.path === null) return name;
  const own = layer.path.slice(layer.shared).map(scopeLabel);
  return own.length > 0 ? own.join("/") : "";
}

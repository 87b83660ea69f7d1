// Where the boxes of a graph stand: computed beside the page in a worker, where a server gives one.
import dagre from "@dagrejs/dagre";
import { arranged } from "./graph/arrange.js";

/** nodes: [{id, width, height}], edges: [[from, to]] -> {nodes: {id: [x, y]}, edges: [[[x, y], ...]], width, height} */
export function laidOut({ nodes, edges }) {
  const graph = new dagre.graphlib.Graph({ multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(String(id), { width, height });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  return {
    nodes: Object.fromEntries(nodes.map(({ id }) => [id, [graph.node(String(id)).x, graph.node(String(id)).y]])),
    edges: edges.map(([from, to]) => graph.edge(String(from), String(to)).points.map(({ x, y }) => [x, y])),
    width,
    height,
  };
}

const makers = { flat: laidOut, nested: (box) => arranged(box, memory) };
const memory = new Map(); // levels that are laid out already

/** What a worker does: one layout for each message. */
export function workAsLayout() {
  addEventListener("message", ({ data }) => {
    const { number, kind, graph } = data;
    try {
      postMessage({ number, layout: makers[kind](graph) });
    } catch (error) {
      postMessage({ number, error: error.message });
    }
  });
}

const workers = {}; // of each kind: {worker, isBusy}
let asked = 0;

/** The layout of a graph, as `laidOut` makes it; a newer question ends the work on an older one. */
export const layoutOf = (graph) => ask("flat", graph);

/** The layout of boxes within boxes, as `arranged` makes it; a newer question ends the work on an older one. */
export const arrangementOf = (box) => ask("nested", box);

function ask(kind, graph) {
  const script = document.querySelector("script[src]");
  if (script === null) return new Promise((resolve) => setTimeout(resolve)).then(() => makers[kind](graph)); // a report has no address for a worker
  if (workers[kind]?.isBusy) {
    workers[kind].worker.terminate();
    delete workers[kind];
  }
  const own = workers[kind] ??= { worker: new Worker(script.src), isBusy: false };
  own.isBusy = true;
  const number = (asked += 1);
  return new Promise((resolve, reject) => {
    own.worker.onmessage = ({ data }) => {
      if (data.number !== number) return;
      own.isBusy = false;
      if (data.error) reject(new Error(data.error));
      else resolve(data.layout);
    };
    own.worker.onerror = (event) => reject(new Error(event.message));
    own.worker.postMessage({ number, kind, graph });
  });
}

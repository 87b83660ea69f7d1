// Where the boxes of a graph stand: computed by dagre, beside the page in a worker where a server gives one.
import dagre from "@dagrejs/dagre";

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

/** What a worker does: one layout for each message. */
export function workAsLayout() {
  addEventListener("message", ({ data }) => {
    const { number, graph } = data;
    try {
      postMessage({ number, layout: laidOut(graph) });
    } catch (error) {
      postMessage({ number, error: error.message });
    }
  });
}

let worker = null;
let asked = 0;

/** The layout of a graph; a newer question ends the work on an older one. */
export function layoutOf(graph) {
  const script = document.querySelector("script[src]");
  if (script === null) return Promise.resolve().then(() => laidOut(graph)); // a report has no address for a worker
  worker?.terminate();
  worker = new Worker(script.src);
  const number = (asked += 1);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if (data.number !== number) return;
      if (data.error) reject(new Error(data.error));
      else resolve(data.layout);
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ number, graph });
  });
}

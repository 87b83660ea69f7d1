// Answers for a step as tests need them.

/** A step of operators [name, sources of its inputs, health of it and its output]; each has an output of two floats. */
export function stepOf(rows, more = {}) {
  const operators = { name: [], type: [], health: [], first: [], is_parameter: [], reads: [] };
  const tensors = { source: [], io: [], dtype: [], shape: [], size_bytes: [], health: [], max: [], min: [], nan: [], l2norm: [],
    positive_inf: [], negative_inf: [], zero: [], count: [], error: [], parameter: [] };
  const add = (source, io, health) => {
    const row = { source, io, dtype: "float32", shape: [2], size_bytes: 8, health, max: 1, min: -3, nan: 0, l2norm: 2, positive_inf: 0,
      negative_inf: 0, zero: 1, count: 2, error: null, parameter: null };
    for (const [name, column] of Object.entries(tensors)) column.push(row[name]);
  };
  for (const [name, sources, health = "ok", isParameter = false] of rows) {
    operators.name.push(name);
    operators.type.push(name.split("/").at(-1).replace(/-op[0-9]+$/, ""));
    operators.health.push(health);
    operators.is_parameter.push(isParameter);
    operators.first.push(tensors.source.length);
    operators.reads.push([]);
    for (const source of sources) add(source, "input", source === null ? "ok" : rows[source][2] ?? "ok");
    add(null, "output", health);
  }
  return { operators, tensors, flow: "graph", ...more };
}

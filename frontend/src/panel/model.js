// What the panel says of an operator, without a browser: its golden partner, attributes, lines around its own, commands.

const NUMBERS = ["max", "min", "avg", "l2norm", "count", "nan", "negative_inf", "positive_inf", "zero", "exponents"];

/** The golden side of a tensor as a row of numbers, null without one; an identical tensor has the numbers of mine. */
export function goldenTensor(golden, mine, at) {
  if (!golden || golden.tensors.status[at] === null) return null;
  const one = Object.fromEntries(Object.entries(golden.tensors).map(([name, column]) => [name, column[at]]));
  return one.status === "identical" ? { ...one, ...Object.fromEntries(NUMBERS.map((name) => [name, mine[name]])) } : one;
}

/** What mine is more than golden; null where one of the two is not a finite number. */
export function apart(mine, golden) {
  return typeof mine === "number" && typeof golden === "number" ? mine - golden : null;
}

/** Attributes of both sides: {name, mine, golden, differs}, those that differ first; golden null: there is no such side. */
export function attributeRows(mine, golden) {
  const others = golden === null ? null : new Map(golden);
  const names = [...new Set([...(mine ?? []), ...(golden ?? [])].map(([name]) => name))];
  const own = new Map(mine ?? []);
  const rows = names.map((name) => ({ name, mine: own.get(name) ?? null, golden: others?.get(name) ?? null,
    differs: others !== null && mine !== null && own.get(name) !== others.get(name) }));
  return [...rows.filter(({ differs }) => differs), ...rows.filter(({ differs }) => !differs)];
}

/** Lines of the same file that the dump knows, at most `reach` away: {number, code, isOwn} in the order of the file. */
export function linesAround(lines, at, reach = 3) {
  const [path, number] = lines[at];
  const near = new Map();
  for (const [other, line, code] of lines) {
    if (other === path && Math.abs(line - number) <= reach && !near.has(line)) near.set(line, { number: line, code, isOwn: line === number });
  }
  return [...near.values()].sort((one, other) => one.number - other.number);
}

/** The calls that led to an operator, outermost first, without its own line; as they follow each other. */
export function callsOf({ lines, traces = [], operators }, index) {
  const trace = operators.trace?.[index] ?? null;
  return trace === null ? [] : traces[trace].filter((at) => at !== operators.line[index]).map((at) => lines[at]);
}

/** For a shell of POSIX. */
export const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Commands that go on from an operator: [what for, command]. parts: its rank, graph and iteration. */
export function commandsOf({ path, golden_path: golden = null }, name, parts, { line = null, hasElements = true } = {}) {
  const options = ["rank", "graph", "iteration"].map((option, place) => (parts[place] === "-" ? "" : ` --${option} ${parts[place]}`)).join("");
  const to = (command) => `msdump ${command} ${quoted(path)} ${quoted(name)}${options}`;
  return [
    ["show it", to("show")],
    ...(hasElements ? [["run it again on its inputs", to("replay")], ["make a script of it", to("repro")]] : []),
    ...(line === null ? [] : [["what its line made", `msdump where ${quoted(path)} ${quoted(`${line[0]}:${line[1]}`)}`]]),
    ...(golden === null ? [] : [["compare the dumps", `msdump compare ${quoted(path)} ${quoted(golden)}`]]),
  ];
}

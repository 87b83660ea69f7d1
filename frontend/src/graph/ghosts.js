// Operators that only the golden dump has: boxes without numbers, in the scope that their name tells.

const MOST = 12; // of one scope; more are one box

/** {of: id of a scope -> boxes in it, counts: id of a node -> how many are below it}, for names of operators. */
export function ghostsOf(names, { root, nodes }) {
  const [of, counts] = [new Map(), new Map()];
  const put = (at, label) => {
    if (!of.has(at.id)) of.set(at.id, []);
    const own = of.get(at.id);
    own.push({ id: `${at.id}/?${own.length}`, kind: "ghost", label, parent: at, children: [], operators: [], counts: [], health: "not measured" });
  };
  for (const name of names) {
    const parts = name.split("/").filter(Boolean);
    let at = root;
    for (let end = parts.length - 1; end > 0; end -= 1) {
      const scope = nodes.get(`/${parts.slice(0, end).join("/")}`);
      if (scope !== undefined && scope.kind === "scope") {
        at = scope;
        break;
      }
    }
    put(at, parts.at(-1) ?? name);
    for (let one = at; one !== null; one = one.parent) counts.set(one.id, (counts.get(one.id) ?? 0) + 1);
  }
  for (const [id, own] of of) {
    if (own.length > MOST) of.set(id, [...own.slice(0, MOST - 1), { ...own[MOST - 1], label: `+ ${own.length - MOST + 1}` }]);
  }
  return { of, counts };
}

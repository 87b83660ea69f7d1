"""What a pass did to a graph, in lines for the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from torch.fx import Graph


@dataclass(frozen=True)
class NodeCount:
    """Nodes of a graph at one moment, by name, kind and target."""

    names: tuple[str, ...]
    operations: Counter[str]
    targets: Counter[str]

    @staticmethod
    def of(graph: Graph) -> NodeCount:
        nodes = list(graph.nodes)
        return NodeCount(
            tuple(node.name for node in nodes),
            Counter(node.op for node in nodes),
            Counter(str(node.target) for node in nodes if node.op == "call_function"),
        )


def report(name: str, cost_s: float, before: NodeCount, after: NodeCount) -> Iterator[str]:
    """Lines about one pass: its cost, what went and came, and two aligned tables of how many there are of each."""
    yield f"After fx graph pass({name}) optimization: cost {cost_s * 1000:.3f} ms"
    yield f"fx graph pass({name}): {len(before.names)} nodes before, {len(after.names)} nodes after"
    yield f"fx graph pass({name}) removed nodes: {_missing(before.names, after.names)}"
    yield f"fx graph pass({name}) added nodes: {_missing(after.names, before.names)}"
    yield _table(f"fx graph pass({name}) operations:", before.operations, after.operations)
    yield _table(f"fx graph pass({name}) targets:", before.targets, after.targets)


def _missing(names: tuple[str, ...], others: tuple[str, ...]) -> str:
    known = set(others)
    return ", ".join(name for name in names if name not in known) or "none"


def _table(title: str, before: Counter[str], after: Counter[str]) -> str:
    kinds = sorted({*before, *after})
    width = max([len(kind) for kind in kinds], default=0)
    rows = [f"  {kind:<{width}}  {before[kind]:>6} -> {after[kind]:>6}" for kind in kinds]
    return "\n".join([title, *rows])

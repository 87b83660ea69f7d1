"""What a pass did to a graph, as a message for the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from torch.fx import Graph

_COLUMNS = ("name", "cnt(before)", "cnt(after)", "diff")


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


def report(name: str, cost_s: float, before: NodeCount, after: NodeCount) -> str:
    """One message: what the pass took, what went and came, and two aligned tables of how many there are of each.

    Source: TorchAir, its debug log. Nodes stand in the order of the graph, rows in that of the alphabet.
    """
    return "\n".join(
        (
            f"After fx graph pass({name}) optimization:",
            f"    cost {cost_s:.10f}s,",
            f"    before {len(before.names)} nodes, after {len(after.names)} nodes,",
            f"    removed nodes: {_missing(before.names, after.names)},",
            f"    added nodes: {_missing(after.names, before.names)},",
            "    operations statistics:",
            *_table(before.operations, after.operations),
            "    targets statistics:",
            *_table(before.targets, after.targets),
        )
    )


def _missing(names: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    present = set(others)
    return [name for name in names if name not in present]


def _table(before: Counter[str], after: Counter[str]) -> Iterator[str]:
    counts = [("total", before.total(), after.total())]
    counts += [(kind, before[kind], after[kind]) for kind in sorted({*before, *after})]
    rows: list[tuple[str, ...]] = [_COLUMNS, *((kind, str(old), str(new), str(new - old)) for kind, old, new in counts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join((f"    {row[0]:<{len(first)}}", *others))

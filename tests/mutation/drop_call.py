"""An operator for cosmic-ray, which removes no statement by itself."""

from __future__ import annotations

from collections.abc import Iterator

import parso
from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import PythonNode
from parso.tree import NodeOrLeaf

_Position = tuple[int, int]


class DropCall(Operator):
    """`f(x)` as a statement becomes `pass`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[_Position, _Position]]:
        if _is_call(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        statement = parso.parse("pass").children[0]
        statement.get_first_leaf().prefix = node.get_first_leaf().prefix
        return statement

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("f(x)", "pass"),)


def _is_call(node: NodeOrLeaf) -> bool:
    """A whole statement that ends with parentheses; `yield` and `await` are no calls."""
    return (
        isinstance(node, PythonNode)
        and node.type in ("atom_expr", "power")
        and node.parent is not None
        and node.parent.type == "simple_stmt"
        and node.children[-1].type == "trailer"
        and node.children[-1].children[0].value == "("
    )

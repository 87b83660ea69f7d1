"""Operators for cosmic-ray, which removes no statement by itself and does not know constants and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

import parso
from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import IfStmt, PythonNode
from parso.tree import NodeOrLeaf

_Position = tuple[int, int]
_NUMBERS = re.compile(r"[\d\s._eExXa-fA-F()<>*/+-]*\d[\d\s._eExXa-fA-F()<>*/+-]*")


class DropCall(Operator):
    """`f(x)` as a statement becomes `pass`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[_Position, _Position]]:
        if _is_call(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        return _code("pass", node)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("f(x)", "pass"),)


class ScaleConstant(Operator):
    """`_MOST = 3` at the top of a module: twice, and half."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[_Position, _Position]]:
        if _is_constant(node) and _NUMBERS.fullmatch(node.get_code(include_prefix=False)):
            yield from [(node.start_pos, node.end_pos)] * 2

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        number = node.get_code(include_prefix=False)
        half = f"({number}) // 2" if re.fullmatch(r"[\d_]+", number) else f"({number}) / 2"
        return _code(half if index else f"({number}) * 2", node)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("_MOST = 3", "_MOST = (3) * 2"), Example("_MOST = 0.5", "_MOST = (0.5) / 2", occurrence=1))


class DropRow(Operator):
    """A row of a table at the top of a module goes."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[_Position, _Position]]:
        for row in _rows(node):
            yield row[0].start_pos, row[-1].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        rows = ["".join(leaf.get_code() for leaf in row) for row in _rows(node)]
        first, last = node.children[0].value, node.children[-1].value
        return _code(first + "".join(f"{row}," for number, row in enumerate(rows) if number != index) + last, node)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("_ROWS = {1: 2, 3: 4}", "_ROWS = { 3: 4,}"),)


class SwitchOff(Operator):
    """`if x:` in a function becomes `if False and (x):`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[_Position, _Position]]:
        if _is_condition(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        return _code(f"False and ({node.get_code(include_prefix=False)})", node)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("def f(x):\n    if x:\n        g()", "def f(x):\n    if False and (x):\n        g()"),)


RULES = (ScaleConstant, DropRow, SwitchOff)


def _code(text: str, replaced: NodeOrLeaf) -> NodeOrLeaf:
    """What a text is, with the blanks before the node whose place it takes."""
    node = parso.parse(text).children[0]
    node.get_first_leaf().prefix = replaced.get_first_leaf().prefix
    return node


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


def _is_constant(node: NodeOrLeaf) -> bool:
    """The value of `NAME = value` or `NAME: type = value` at the top of a module, also inside of a call of one."""
    statement = node.parent
    if statement is None or statement.type not in ("expr_stmt", "annassign") or node is not statement.children[-1]:
        return False
    if statement.type == "annassign":
        statement = statement.parent
    name = statement.children[0].get_code(include_prefix=False)
    return re.fullmatch(r"_*[A-Z][A-Z0-9_]*", name) is not None and statement.parent.parent.type == "file_input"


def _rows(node: NodeOrLeaf) -> list[list[NodeOrLeaf]]:
    """Rows of a table of two or more, as what stands between the commas; none for anything else."""
    owner = node
    while owner.parent is not None and owner.parent.type in ("trailer", "atom_expr") and owner.type != "atom_expr":
        owner = owner.parent
    if owner is not node and owner.type == "trailer":
        owner = owner.parent
    if node.type != "atom" or len(node.children) != 3 or not _is_constant(owner):
        return []
    inside = node.children[1]
    if inside.type not in ("testlist_comp", "dictorsetmaker") or any(
        child.type in ("sync_comp_for", "comp_for") for child in inside.children
    ):
        return []
    rows: list[list[NodeOrLeaf]] = [[]]
    for child in inside.children:
        if child.type == "operator" and child.value == ",":
            rows.append([])
        else:
            rows[-1].append(child)
    return [row for row in rows if row] if len(inside.children) > 2 else []


def _is_condition(node: NodeOrLeaf) -> bool:
    """What follows `if` or `elif` in a function."""
    before = node.get_previous_sibling() if isinstance(node.parent, IfStmt) else None
    if before is None or before.type != "keyword" or before.value not in ("if", "elif"):
        return False
    return parso.tree.search_ancestor(node, "funcdef") is not None

"""Operators of PyTorch as primitives: their operands in order, what they write, and whose memory they hand on.

Everything is read from the schema that each operator carries; there is no list of operators here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from msdump.graph.primitive import Primitive, PrimitiveDef

# Results that show the elements of their first operand in the same order, under another shape.
_SAME_BYTES = frozenset(
    f"aten.{name}"
    for name in (
        "_reshape_alias.default",
        "_unsafe_view.default",
        "alias.default",
        "detach.default",
        "flatten.using_ints",
        "lift_fresh.default",
        "reshape.default",
        "squeeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "unsqueeze.default",
        "view.default",
    )
) | {"_c10d_functional.wait_tensor.default"}
_COLLECTIVES = ("_c10d_functional.", "_c10d_functional_autograd.")

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One node among the arguments of a call.

    name     of the schema's argument, with its index in a list: "tensors[1]"
    aliases  the schema's letters for its memory; empty when the result cannot share it
    """

    node: fx.Node
    name: str
    aliases: frozenset[str]
    is_written: bool


def op_type(target: object) -> str:
    """`aten.convolution.default`; for operators of higher order and plain functions their name."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    name = getattr(target, "__name__", type(target).__name__)
    module = (getattr(target, "__module__", "") or "").split(".")[0].lstrip("_")
    return f"{module}.{name}" if module and not isinstance(target, torch._ops.HigherOrderOperator) else name


def is_collective(target: object) -> bool:
    """True when the result is there only after a wait."""
    name = op_type(target)
    return name.startswith(_COLLECTIVES) and "wait_tensor" not in name


def waited(result: torch.Tensor | Sequence[torch.Tensor]) -> Any:
    """What a collective returned, once all ranks have given their part."""
    if isinstance(result, torch.Tensor):
        return torch.ops._c10d_functional.wait_tensor(result)
    return [torch.ops._c10d_functional.wait_tensor(item) for item in result]


def is_transparent(target: object) -> bool:
    """True when the schema tells all about memory; else a result may share that of any operand."""
    return isinstance(target, torch._ops.OpOverload)


def arguments(node: fx.Node) -> list[Argument]:
    """Nodes among the arguments of a call, in the order of its schema."""
    return [
        Argument(operand, f"{name}{path}", aliases, is_written)
        for name, value, aliases, is_written in _bound(node)
        for path, operand in _nodes_in(value)
    ]


def attributes(node: fx.Node) -> dict[str, object]:
    """Arguments that hold no node, as plain values."""
    return {name: plain(value) for name, value, _, _ in _bound(node) if not any(True for _ in _nodes_in(value))}


def result_aliases(node: fx.Node) -> list[frozenset[str]]:
    """The schema's letters for the memory of each result; empty ones are new memory."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    return [_letters(result) for result in node.target._schema.returns]


def shows_same_bytes(target: object) -> bool:
    return op_type(target) in _SAME_BYTES


def primitive_of(node: fx.Node, tensors: list[Argument], written: dict[int, int], sources: dict[int, int]) -> Primitive:
    """The primitive of a call.

    tensors  arguments that are dumped, one per input slot
    written  output slot -> input slot that it is, written in place
    sources  output slot -> input slot whose memory it shows
    """
    has_views = shows_same_bytes(node.target)
    definition = PrimitiveDef(
        op_type(node.target),
        input_names=tuple(argument.name for argument in tensors),
        mutates=tuple(slot for slot, argument in enumerate(tensors) if argument.is_written),
        aliases=written,
        views={output: slot for output, slot in sources.items() if slot == 0} if has_views else {},
        has_side_effect=any(argument.is_written for argument in tensors),
    )
    return Primitive(op_type(node.target), attributes(node), definition=definition)


def results_in(value: object, path: Path = ()) -> Iterator[tuple[Path, torch.Tensor]]:
    """Tensors in what an operator returned, with the way to each."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from results_in(item, (*path, index))


def _bound(node: fx.Node) -> Iterator[tuple[str, object, frozenset[str], bool]]:
    """(name, value, letters of its memory, whether it is written) of each argument that was given."""
    if not isinstance(node.target, torch._ops.OpOverload):
        for index, value in enumerate(node.args):
            yield f"arg{index}", value, frozenset(), False
        for name, value in node.kwargs.items():
            yield name, value, frozenset(), False
        return
    for index, argument in enumerate(node.target._schema.arguments):
        if index < len(node.args) and not argument.kwarg_only:
            given: object = node.args[index]
        elif argument.name in node.kwargs:
            given = node.kwargs[argument.name]
        else:
            continue
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        yield argument.name, given, _letters(argument), is_written


def _letters(argument: torch._C.Argument) -> frozenset[str]:
    info = argument.alias_info
    # Of a list whose elements may share memory the schema says "any": (a -> *).
    return frozenset() if info is None else frozenset(info.before_set) | frozenset(info.after_set)


def _nodes_in(value: object, path: str = "") -> Iterator[tuple[str, fx.Node]]:
    if isinstance(value, fx.Node):
        yield path, value
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _nodes_in(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _nodes_in(item, f"{path}[{name}]")


def plain(value: object) -> object:
    """An argument of a call as numbers, strings and tuples of them; what is none of these as its text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and type(value) in (int, float):
        return value if not isinstance(value, int) or -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    return str(value).removeprefix("torch.")

"""Read the text of a final graph (.ir, grammar of MindSpore 2.0), ours or MindSpore's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from msdump import dtypes
from msdump.errors import FormatError
from msdump.graph_files.source_line import SourceLine, parse_source_line
from msdump.graph_files.tensor_summary import TensorSummary

_ENTRY = re.compile(r"# IR entry: @(?P<name>\S+)")
_PARAMETER = re.compile(r"%para[0-9]+_(?P<name>.*)")
_WEIGHT = {"true": True, "false": False}
_NODE = re.compile(r"  %(?P<number>[0-9]+)\(.*?\) = (?P<op_type>\w+)\((?P<rest>.*)")
_RETURN = re.compile(r"  Return\((?P<rest>.*)")
_FULL_NAME = re.compile(r" +# Fullname with scope: \((?P<name>.*)\)")
_TENSOR = re.compile(r"(?:Ref\[)?Tensor\[(?P<dtype>\w+)\]\]?, \((?P<shape>[0-9, -]*)\)")
_TUPLE, _TUPLE_SHAPE = "Tuple[", "], TupleShape("
_ITEM = re.compile(r"Tensor\[(?P<dtype>\w+)\](?:\*(?P<count>[0-9]{1,9}))?")
_SIZE = re.compile(r"-?[0-9]{1,19}")
_SHAPE = re.compile(r"\((?P<shape>[0-9, -]*)\)")
_DTYPE_BY_IR_NAME = {row.ir_name: row.name for row in dtypes.TABLE}
_OPEN, _CLOSE = "([{<", ")]}>"
_DIGITS = 18  # of a node's number
_SHOWN = 120  # characters of a line in a message


@dataclass(frozen=True, slots=True)
class IrParameter:
    """A graph input; `is_weight` tells parameters from data inputs."""

    name: str
    type: TensorSummary
    is_weight: bool


@dataclass(frozen=True, slots=True)
class IrNode:
    """One node.

    operands  as written: "%3", "%5[1]", "%para1_x", "Tensor(...)"
    outputs   the tensors among its outputs
    source    outermost first
    """

    number: int
    op_type: str
    full_name: str
    operands: tuple[str, ...]
    outputs: tuple[TensorSummary, ...]
    source: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class IrGraph:
    """One graph; `returned` are the operands of its Return."""

    name: str
    parameters: tuple[IrParameter, ...]
    nodes: tuple[IrNode, ...]
    returned: tuple[str, ...]


def parse_ir(text: str) -> IrGraph:
    """Read the text of one graph.   Raises: FormatError naming the line that does not fit."""
    lines = text.split("\n")
    entry = _ENTRY.fullmatch(lines[0])
    if entry is None:
        raise FormatError(f'ir line 1: expected "# IR entry: @NAME", got "{lines[0][:_SHOWN]}".')
    parameters = tuple(_parameter(at, line) for at, line in enumerate(lines, 1) if line.startswith("%para"))
    heads = [at for at, line in enumerate(lines) if _NODE.fullmatch(line) or _RETURN.fullmatch(line)]
    if not heads or _RETURN.fullmatch(lines[heads[-1]]) is None:
        raise FormatError(f'ir line {len(lines)}: expected "Return(...)" as the last statement. Is the file cut short?')
    nodes = tuple(_node(lines, head, end) for head, end in pairwise(heads))
    returned, _ = _operands(lines[heads[-1]].split("(", 1)[1], heads[-1])
    return IrGraph(entry["name"], parameters, nodes, returned)


def _parameter(at: int, line: str) -> IrParameter:
    head, _, rest = line.partition(" : <")
    match = _PARAMETER.fullmatch(head)
    text, _, rest = rest.partition(">  :  ")
    is_weight = _WEIGHT.get(rest.rpartition("IsWeight: ")[2])
    types = _types(text, at) if match is not None and is_weight is not None else ()
    if match is None or is_weight is None or len(types) != 1:
        raise FormatError(f'ir line {at}: expected a parameter with a type, got "{line[:_SHOWN]}".')
    return IrParameter(match["name"], types[0], is_weight)


def _node(lines: list[str], head: int, end: int) -> IrNode:
    match = _NODE.fullmatch(lines[head])
    names = [name["name"] for name in map(_FULL_NAME.fullmatch, lines[head:end]) if name is not None]
    if match is None or len(match["number"]) > _DIGITS or len(names) != 1 or head + 1 >= end:
        raise FormatError(
            f'ir line {head + 1}: expected a node with its types and its name, got "{lines[head][:_SHOWN]}".'
        )
    operands, _ = _operands(match["rest"], head)
    _, arrow, outputs = lines[head + 1].partition(") -> (")
    if not arrow:
        raise FormatError(f'ir line {head + 2}: expected ": (...) -> (...)", got "{lines[head + 1][:_SHOWN]}".')
    source = (parse_source_line(line) for line in lines[head + 1 : end])
    return IrNode(
        int(match["number"]),
        match["op_type"],
        names[0],
        operands,
        _types(outputs, head + 2),
        tuple(line for line in source if line is not None),
    )


def _operands(text: str, at: int) -> tuple[tuple[str, ...], str]:
    """Operands up to the bracket that closes them, and the text after it; commas inside brackets do not count."""
    depth, start = 0, 0
    found: list[str] = []
    for position, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        if depth < 0 or (depth == 0 and char == ","):
            found.append(text[start:position].strip())
            start = position + 1
        if depth < 0:
            return tuple(operand for operand in found if operand), text[start:]
    raise FormatError(f'ir line {at + 1}: expected a closing ")" after the operands, got "{text[:_SHOWN]}".')


def _types(text: str, at: int) -> tuple[TensorSummary, ...]:
    """The tensors among the types of one side; monads and scalars are none."""
    start, middle, end = text.find(_TUPLE), text.rfind(_TUPLE_SHAPE), text.rfind(")")
    if not 0 <= start < middle < end:
        return tuple(_tensor_type(match["dtype"], match["shape"], at) for match in _TENSOR.finditer(text))
    items = [(item["dtype"], int(item["count"] or 1)) for item in _ITEM.finditer(text, start, middle + 1)]
    shapes = [match["shape"] for match in _SHAPE.finditer(text, middle + len(_TUPLE_SHAPE), end)]
    count = sum(count for _, count in items)
    if count != len(shapes):
        raise FormatError(f"ir line {at}: expected as many shapes as types, got {len(shapes)} and {count}.")
    names = [name for name, count in items for _ in range(count)]
    return tuple(_tensor_type(name, shape, at) for name, shape in zip(names, shapes, strict=True))


def _tensor_type(ir_name: str, shape: str, at: int) -> TensorSummary:
    name = _DTYPE_BY_IR_NAME.get(ir_name)
    sizes = shape.replace(" ", "").split(",") if shape.strip() else []
    if name is None or not all(map(_SIZE.fullmatch, sizes)):
        text = f"{ir_name} ({shape})"
        raise FormatError(f"ir line {at}: expected a known dtype and whole sizes, got {text[:_SHOWN]}.")
    return TensorSummary(name, tuple(int(size) for size in sizes))

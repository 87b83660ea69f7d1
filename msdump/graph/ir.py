"""`ms_output_trace_code_graph_{graph_id}.ir`: a graph as text for people, in the grammar of MindSpore 2.0; both ways.

One difference to MindSpore's: parameters are operands themselves, there are no Load and UpdateState nodes between.
Source: a real file of MindSpore 2.0.0; MindSpore dump guide, "final execution graph".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.graph.graph import CONSTANT, PARAMETER, Graph, Node, Value
from msdump.graph.listing import listed_parameters, shown_attrs, spare_op_ids
from msdump.graph.types import SourceLine, TensorSummary, format_source_line, parse_source_line
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.records import DEFAULT_FORMAT

_INDENT = "      "
# Of the memory model: operators work on the parameters' memory itself.
_GRAPH_ATTRS = ("enable_zero_copy_in_graph : 1",)
# Formats that MindSpore calls by another name here than in files.
_FORMAT_NAMES = {"": DEFAULT_FORMAT, "FRACTAL_Z": "FracZ"}
# Elements of a constant that are shown in full; of larger ones the first and last three along each axis.
_SHOWN_ELEMENTS = 64


def ir_text(graph: Graph) -> str:
    """The whole file. Equal graphs give equal text.

    Raises: GraphError for an attribute that has no plain form; LayoutError for a format that does not fit its shape.
    """
    return "".join(f"{line}\n" for line in _lines(graph))


def _lines(graph: Graph) -> Iterator[str]:
    parameters = listed_parameters(graph)
    yield from (f"# IR entry: @{graph.name}", "# Total subgraphs: 1", "", "# Attrs:", *_GRAPH_ATTRS, "")
    yield from (f"# Total params: {len(parameters)}", "# Params:")
    names = {value.id: f"%para{number}_{value.name}" for number, value in enumerate(parameters, 1)}
    yield from (_parameter_line(names[value.id], value) for value in parameters)
    # Where MindSpore shows an address: a number that is the same in every run.
    instance = f"subgraph instance: {graph.name} : {graph.graph_id + 1:#x}"
    yield from ("", "subgraph attr:", *_GRAPH_ATTRS, instance, "", f"subgraph @{graph.name}() {{")
    names.update({value.id: _constant_text(value) for value in graph.constants})
    for number, node in enumerate(graph.nodes):
        yield from _node_lines(node, number, [names[value.id] for value in node.inputs])
        for value in node.outputs:
            names[value.id] = f"%{number}" if len(node.outputs) == 1 else f"%{number}[{value.index}]"
    yield from _return_lines(graph, names)
    yield from ("}", "", "")


def _parameter_line(name: str, value: Value) -> str:
    is_weight = value.kind == PARAMETER
    fields = [f"{name} : {_host_type(value)}"]
    if is_weight:
        fields.append("has_default")
    fields.append(_device_type(value, dtype="Unknown" if is_weight else ""))
    fields.append(f"IsWeight: {_attr_text(is_weight)}")
    return "  :  ".join(fields)


def _node_lines(node: Node, number: int, operands: Sequence[str]) -> Iterator[str]:
    yield f"  %{number}({_debug_name(node, number)}) = {node.op_type}({', '.join(operands)}){_attr_groups(node)}"
    yield f"{_INDENT}: ({_joined(_host_type(v) for v in node.inputs)}) -> ({_host_outputs(node.outputs)})"
    if node.definition.is_kernel:
        device = [_joined(_device_type(value) for value in side) for side in (node.inputs, node.outputs)]
        yield f"{_INDENT}: ({device[0]}) -> ({device[1]})"
        yield f"{_INDENT}: ({_joined('Tensor' for _ in node.inputs)}) -> ({_output_kinds(node.outputs)})"
    yield f"{_INDENT}# Fullname with scope: ({node.full_name})"
    if node.forward is not None and node.source:
        yield f"{_INDENT}# Corresponding forward node candidate:"
    for depth, line in enumerate(node.source):
        yield f"{_INDENT}# {'inlined:' if depth else ''}In file {format_source_line(line)}"


def _return_lines(graph: Graph, names: dict[int, str]) -> Iterator[str]:
    outputs = graph.outputs
    op_ids = spare_op_ids(graph)
    operands = _joined(names[value.id] for value in outputs)
    if len(outputs) != 1:
        number = len(graph.nodes)
        yield f"  %{number}([CNode]{number}) = MakeTuple({operands})"
        yield f"{_INDENT}: ({_joined(_host_type(value) for value in outputs)}) -> ({_host_outputs(outputs)})"
        yield f"{_INDENT}: ({_joined('Tensor' for _ in outputs)}) -> ({_output_kinds(outputs)})"
        yield f"{_INDENT}# Fullname with scope: (Default/MakeTuple-op{next(op_ids)})"
        operands = f"%{number}"
    yield f"  Return({operands})"
    yield f"{_INDENT}: ({_host_outputs(outputs)})"
    yield f"{_INDENT}# Fullname with scope: (Default/Return-op{next(op_ids)})"


def _debug_name(node: Node, number: int) -> str:
    name = node.outputs[0].name if node.outputs else ""
    return f"equiv{name}" if name else f"[CNode]{number}"


def _attr_groups(node: Node) -> str:
    """` {instance name: x} primitive_attrs: {...} cnode_attrs: {...} cnode_primal_attrs: {...}` without empty ones."""
    text = f" {{instance name: {node.primitive.instance_name}}}" if node.primitive.instance_name else ""
    attrs = shown_attrs(node)
    if attrs:
        text += f" primitive_attrs: {{{_attr_pairs(attrs)}}}"
    text += " cnode_attrs: {is_dynamic_len: false}"
    if node.forward is not None:
        forward = node.forward
        primal = {"forward_node_name": f"{forward.op_type}_{forward.id}", "forward_unique_id": forward.id}
        text += f" cnode_primal_attrs: {{{_attr_pairs(primal)}}}"
    elif node.stage == "forward":
        text += f" cnode_primal_attrs: {{{_attr_pairs({'unique_id': node.id})}}}"
    return text


def _attr_pairs(attrs: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {_attr_text(value)}" for name, value in attrs.items())


def _attr_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # As MindSpore: 1 for 1.0. Else the shortest digits that give the number back.
        return repr(value).removesuffix(".0") if math.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return f"({', '.join(_attr_text(item) for item in value)})"
    if isinstance(value, list):
        return f"[{', '.join(_attr_text(item) for item in value)}]"
    if isinstance(value, str):
        return dtypes.BY_NAME[value].ir_name if value in dtypes.BY_NAME else " ".join(value.split())
    return str(value)


def _host_type(value: Value) -> str:
    element = f"Tensor[{dtypes.dtype(value.type.dtype).ir_name}]"
    shape = _shape_text(value)
    if value.kind == PARAMETER:
        return f"<Ref[{element}], {shape}, ref_key=:{value.name}>"
    return f"<{element}, {shape}, value=...>" if value.kind == CONSTANT else f"<{element}, {shape}>"


def _host_outputs(outputs: Sequence[Value]) -> str:
    """One type, or the type of a tuple, in which equal neighbours are counted."""
    if len(outputs) == 1:
        return _host_type(outputs[0])
    elements = []
    for name, run in groupby(dtypes.dtype(value.type.dtype).ir_name for value in outputs):
        count = len(list(run))
        elements.append(f"Tensor[{name}]" + (f"*{count}" if count > 1 else ""))
    return f"<Tuple[{','.join(elements)}], TupleShape({_joined(_shape_text(value) for value in outputs)})>"


def _output_kinds(outputs: Sequence[Value]) -> str:
    return "Tensor" if len(outputs) == 1 else "TupleUnfold"


def _shape_text(value: Value) -> str:
    return f"({', '.join(map(str, value.type.shape))})"


def _device_type(value: Value, dtype: str = "") -> str:
    element = dtype or dtypes.dtype(value.type.dtype).ir_name
    shape = value.type.shape
    if value.format in device_layouts.DEVICE_FORMATS:
        shape = device_layouts.device_shape(
            shape, value.format, device_layouts.cube_size(value.type.dtype), max(1, value.sub_format)
        )
    name = _FORMAT_NAMES.get(value.format, value.format)
    return f"<{element}x{name}[const vector][{', '.join(map(str, shape))}]>"


def _constant_text(value: Value) -> str:
    shape = ", ".join(map(str, value.type.shape))
    name = dtypes.dtype(value.type.dtype).ir_name
    return f"Tensor(shape=[{shape}], dtype={name}, value={_data_text(value)})"


def _data_text(value: Value) -> str:
    data = value.constant
    if data is None:
        return "..."
    if data.dtype.kind not in "biufc":
        data = data.astype(np.float64)
    # All options are named, so that the script's own np.set_printoptions does not show here.
    text = np.array2string(
        data,
        max_line_width=10**9,
        precision=8,
        suppress_small=False,
        threshold=_SHOWN_ELEMENTS,
        edgeitems=3,
        floatmode="maxprec",
        sign="-",
        legacy=False,
    )
    return " ".join(text.split("\n"))


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


# -- reader ------------------------------------------------------------------------------------------------------------

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
    parameters = _parameters(lines)
    heads = [at for at, line in enumerate(lines) if _NODE.fullmatch(line) or _RETURN.fullmatch(line)]
    if not heads or _RETURN.fullmatch(lines[heads[-1]]) is None:
        raise FormatError(f'ir line {len(lines)}: expected "Return(...)" as the last statement. Is the file cut short?')
    nodes = tuple(_node(lines, head, end) for head, end in pairwise(heads))
    returned, _ = _operands(lines[heads[-1]].split("(", 1)[1], heads[-1])
    return IrGraph(entry["name"], parameters, nodes, returned)


def parse_ir_parameters(text: str) -> tuple[IrParameter, ...]:
    """The graph inputs alone of the text of one graph.   Raises: FormatError naming the line that does not fit."""
    return _parameters(text.split("\n"))


def _parameters(lines: list[str]) -> tuple[IrParameter, ...]:
    return tuple(_parameter(at, line) for at, line in enumerate(lines, 1) if line.startswith("%para"))


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

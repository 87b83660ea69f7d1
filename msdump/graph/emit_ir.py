"""`ms_output_trace_code_graph_{graph_id}.ir`: a graph as text for people, in the grammar of MindSpore 2.0.

One difference: parameters are operands themselves, there are no Load and UpdateState nodes between.
Source: a real file of MindSpore 2.0.0; MindSpore dump guide, "final execution graph".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from msdump import dtypes, layouts
from msdump.graph.graph import CONSTANT, PARAMETER, Graph, Node, Value
from msdump.graph.listing import listed_parameters, shown_attrs, spare_op_ids
from msdump.graph_files.source_line import format_source_line
from msdump.records import DEFAULT_FORMAT

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
    if value.format in layouts.DEVICE_FORMATS:
        shape = layouts.device_shape(shape, value.format, layouts.cube_size(value.type.dtype), max(1, value.sub_format))
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

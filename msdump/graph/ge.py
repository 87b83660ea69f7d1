"""Graph files of Ascend's graph engine: `ge_proto_*.txt` and `ge_onnx_*.pbtxt`, the place to look up operator names.

Both are text forms of protobuf messages: a ModelDef of ge_ir.proto, and an ONNX ModelProto that Netron shows. The names
in them are those that `kernels` of a dump configuration accepts. Parameters and inputs are operators of type Variable
and Data there, constants of type Const, and NetOutput gathers what the graph returns.
They are written line by line, not by protobuf's text_format: attributes stand in the graph's order, floats with all
their digits, and the messages of ONNX belong to a package that need not be there.
The text form of TorchAir's own graph dump, a GraphDef, is read for what its operators were in the FX graph.
Source: TorchAir dump guide, listing of ge_proto*.txt; CANN, `DUMP_GE_GRAPH`, ge_ir.proto; ONNX, onnx.proto.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.graph.graph import PARAMETER, Graph, Value
from msdump.graph.listing import listed_parameters, shown_attrs
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import device_layouts, dtypes

# What a file holds: everything, everything but the data of constants, or names and edges alone.
FULL, WITHOUT_DATA, TOPOLOGY = 1, 2, 3
PRE_RUN_BEGIN, BUILD = "PreRunBegin", "Build"
STAGES = (PRE_RUN_BEGIN, BUILD)

DATA_TYPE, VARIABLE_TYPE, CONST_TYPE, OUTPUT_TYPE, OUTPUT_NAME = "Data", "Variable", "Const", "NetOutput", "Node_Output"
_IR_VERSION, _OPSET_VERSION, _PRODUCER = 8, 1, "msdump"
_FX_ATTR = "_fx_tensor_name"
_FX_NAME = re.compile(r"(?P<node>[^-]+)-.+\.OUTPUT\.(?P<index>[0-9]{1,9})")
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
Lines = Iterator[str]
_FIRST_INT, _LAST_INT = -(2**63), 2**63 - 1

# Tensors of other dtypes than those that both GE and ONNX have in whole bytes are shown without a type.
_ONNX_NUMBERS = {
    row.name: row.onnx_number
    for row in dtypes.TABLE
    if row.onnx_number is not None and row.ge_number is not None and row.bits >= 8
}


@dataclass(frozen=True)
class _Op:
    """One operator of the listing. Sources are (name of the operator, index of its output)."""

    name: str
    op_type: str
    sources: tuple[tuple[str, int], ...] = ()
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    stream_id: int = 0


class _Listing:
    """A graph as the graph engine lists it; names are unique."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ops: list[_Op] = []
        self._source: dict[int, tuple[str, int]] = {}
        taken = {node.full_name for node in graph.nodes}
        for index, value in enumerate(listed_parameters(graph)):
            op_type = VARIABLE_TYPE if value.kind == PARAMETER else DATA_TYPE
            attrs = {} if value.kind == PARAMETER else {"index": index}
            self._add(_Op(_free_name(value.name, taken), op_type, outputs=(value,), attrs=attrs))
        for number, value in enumerate(graph.constants):
            self._add(_Op(_free_name(f"data-{number}", taken), CONST_TYPE, outputs=(value,)))
        for node in graph.nodes:
            sources = tuple(self._source[value.id] for value in node.inputs)
            attrs = shown_attrs(node)
            self._add(_Op(node.full_name, node.op_type, sources, node.inputs, node.outputs, attrs, node.stream_id))
        self.returned = tuple(self._source[value.id] for value in graph.outputs)
        self.ops.append(_Op(_free_name(OUTPUT_NAME, taken), OUTPUT_TYPE, self.returned, tuple(graph.outputs)))

    def _add(self, op: _Op) -> None:
        self.ops.append(op)
        self._source.update((value.id, (op.name, index)) for index, value in enumerate(op.outputs))

    def readers(self) -> dict[str, list[tuple[str, int]]]:
        """Name -> (operator, input slot) of those that read its outputs."""
        found: dict[str, list[tuple[str, int]]] = {op.name: [] for op in self.ops}
        for op in self.ops:
            for slot, (name, _) in enumerate(op.sources):
                found[name].append((op.name, slot))
        return found


def _free_name(name: str, taken: set[str]) -> str:
    wanted, number = name or "_", 0
    while wanted in taken:
        number += 1
        wanted = f"{name}_{number}"
    taken.add(wanted)
    return wanted


# -- ge_proto ------------------------------------------------------------------------------------------------------


def ge_proto_text(graph: Graph, detail: int = WITHOUT_DATA, stage: str = BUILD) -> str:
    """Text of a ModelDef with the graph. Equal graphs give equal text.

    detail   FULL, WITHOUT_DATA or TOPOLOGY
    stage    BUILD shows device formats and streams, PRE_RUN_BEGIN the host's formats and no streams
    Raises:  GraphError for an attribute that has no plain form.
    """
    listing = _Listing(graph)
    readers = listing.readers()

    def body() -> Lines:
        yield string("name", graph.name)
        yield from strings("input", (f"{op.name}:0" for op in listing.ops if op.op_type == DATA_TYPE))
        yield from strings("output", (f"{name}:{index}" for name, index in listing.returned))
        for number, op in enumerate(listing.ops):
            yield from message("op", _ge_op(op, number, detail, stage, readers[op.name]))

    return "".join(f"{line}\n" for line in message("graph", body()))


def _ge_op(op: _Op, number: int, detail: int, stage: str, readers: Sequence[tuple[str, int]]) -> Lines:
    yield string("name", op.name)
    yield string("type", op.op_type)
    yield from strings("input", (f"{name}:{index}" for name, index in op.sources))
    if detail != TOPOLOGY:
        for name, value in op.attrs.items():
            yield from message("attr", _ge_attr(name, _ge_value(value)))
        if op.op_type == CONST_TYPE:
            yield from message("attr", _ge_attr("value", message("t", _ge_tensor(op.outputs[0], detail, stage))))
    yield scalar("id", number)
    if stage == BUILD:
        yield scalar("stream_id", op.stream_id)
    yield from strings("src_name", (name for name, _ in op.sources))
    yield from scalars("src_index", (index for _, index in op.sources))
    yield from strings("dst_name", (name for name, _ in readers))
    yield from scalars("dst_index", (slot for _, slot in readers))
    if detail != TOPOLOGY:
        for side, values in (("input_desc", op.inputs), ("output_desc", op.outputs)):
            for value in values:
                yield from message(side, _ge_descriptor(value, stage))


def _ge_attr(name: str, value: Lines) -> Lines:
    yield string("key", name)
    yield from message("value", value)


def _ge_value(value: Any) -> Lines:
    """The one field of an AttrDef that the value needs."""
    if isinstance(value, (tuple, list)):
        kind = _list_kind(value)
        if kind == "nested":
            lists = (message("list_list_i", scalars("list_i", item)) for item in value)
            yield from message("list_list_int", (line for lines in lists for line in lines))
            return
        if kind != "text":
            yield from message("list", _ge_list(value, kind))
            return
        value = str(value)
    if isinstance(value, bool):
        yield scalar("b", value)
    elif isinstance(value, int) and _FIRST_INT <= value <= _LAST_INT:
        yield scalar("i", value)
    elif isinstance(value, float):
        yield scalar("f", value)
    else:
        yield string("s", str(value))


def _ge_list(values: Sequence[Any], kind: str) -> Lines:
    fields = {"bool": ("b", "BOOL"), "int": ("i", "INT"), "float": ("f", "FLOAT"), "str": ("s", "STRING")}
    if kind == "empty":
        yield scalar("val_type", "VT_LIST_NONE")
        return
    name, type_name = fields[kind]
    yield from strings(name, values) if kind == "str" else scalars(name, values)
    yield scalar("val_type", f"VT_LIST_{type_name}")


def _list_kind(values: Sequence[Any]) -> str:
    """ "empty", "bool", "int", "float", "str", "nested" (lists of int) or "text" for what has no list of its own."""
    if not values:
        return "empty"
    for kind in (bool, int, float, str):
        if all(type(item) is kind for item in values):
            is_too_wide = kind is int and not all(_FIRST_INT <= item <= _LAST_INT for item in values)
            return "text" if is_too_wide else kind.__name__
    is_nested = all(isinstance(item, (tuple, list)) and _list_kind(item) in ("int", "empty") for item in values)
    return "nested" if is_nested else "text"


def _ge_tensor(value: Value, detail: int, stage: str) -> Lines:
    yield from message("desc", _ge_descriptor(value, stage))
    if detail == FULL and value.constant is not None:
        yield string("data", _little_endian(value.constant))


def _ge_descriptor(value: Value, stage: str) -> Lines:
    host = device_layouts.host_format(value.type.shape)
    is_device = stage == BUILD and value.format in device_layouts.DEVICE_FORMATS
    shape = value.type.shape
    if is_device:
        shape = device_layouts.device_shape(
            shape, value.format, device_layouts.cube_size(value.type.dtype), max(1, value.sub_format)
        )
    yield scalar("dtype", dtypes.dtype(value.type.dtype).ge_name)
    yield from message("shape", scalars("dim", shape))
    yield string("layout", value.format if is_device else host)
    yield scalar("size", value.type.size_bytes)
    yield from message("attr", _ge_attr("origin_format", iter([string("s", host)])))
    yield from message("attr", _ge_attr("origin_shape", _ge_value(tuple(value.type.shape))))


# -- ge_onnx -------------------------------------------------------------------------------------------------------


def ge_onnx_text(graph: Graph, detail: int = WITHOUT_DATA, stage: str = BUILD) -> str:
    """Text of an ONNX ModelProto with the graph, for Netron. Operator types are the graph's own, not ONNX's.

    See `ge_proto_text` for the arguments.
    """
    listing = _Listing(graph)

    def body() -> Lines:
        for op in listing.ops:
            if op.op_type in (DATA_TYPE, VARIABLE_TYPE, CONST_TYPE, OUTPUT_TYPE):
                continue
            yield from message("node", _onnx_node(op, detail, stage))
        yield string("name", graph.name)
        if detail == FULL:
            for op in listing.ops:
                if op.op_type == CONST_TYPE and op.outputs[0].type.dtype in _ONNX_NUMBERS:
                    yield from message("initializer", _onnx_tensor(f"{op.name}:0", op.outputs[0]))
        for op in listing.ops:
            if op.op_type in (DATA_TYPE, VARIABLE_TYPE, CONST_TYPE):
                yield from message("input", _onnx_value(f"{op.name}:0", op.outputs[0], detail))
        for (name, index), value in zip(listing.returned, graph.outputs, strict=True):
            yield from message("output", _onnx_value(f"{name}:{index}", value, detail))

    def model() -> Lines:
        yield scalar("ir_version", _IR_VERSION)
        yield string("producer_name", _PRODUCER)
        yield from message("graph", body())
        yield from message("opset_import", iter([scalar("version", _OPSET_VERSION)]))

    return "".join(f"{line}\n" for line in model())


def _onnx_node(op: _Op, detail: int, stage: str) -> Lines:
    yield from strings("input", (f"{name}:{index}" for name, index in op.sources))
    yield from strings("output", (f"{op.name}:{index}" for index in range(len(op.outputs))))
    yield string("name", op.name)
    yield string("op_type", op.op_type)
    if detail == TOPOLOGY:
        return
    for name, value in op.attrs.items():
        yield from message("attribute", _onnx_attr(name, value))
    if stage == BUILD:
        yield from message("attribute", _onnx_attr("stream_id", op.stream_id))
        for side, values in (("input", op.inputs), ("output", op.outputs)):
            formats = [
                value.format
                if value.format in device_layouts.DEVICE_FORMATS
                else device_layouts.host_format(value.type.shape)
                for value in values
            ]
            yield from message("attribute", _onnx_attr(f"{side}_formats", formats))


def _onnx_attr(name: str, value: Any) -> Lines:
    yield string("name", name)
    if isinstance(value, (tuple, list)):
        kind = _list_kind(value)
        if kind in ("bool", "int", "empty"):
            yield from scalars("ints", (int(item) for item in value))
            yield scalar("type", "INTS")
            return
        if kind in ("float", "str"):
            yield from scalars("floats", value) if kind == "float" else strings("strings", value)
            yield scalar("type", "FLOATS" if kind == "float" else "STRINGS")
            return
        value = str(value)
    if isinstance(value, float):
        yield scalar("f", value)
        yield scalar("type", "FLOAT")
    elif isinstance(value, int) and _FIRST_INT <= value <= _LAST_INT:
        yield scalar("i", int(value))
        yield scalar("type", "INT")
    else:
        yield string("s", str(value))
        yield scalar("type", "STRING")


def _onnx_tensor(name: str, value: Value) -> Lines:
    yield from scalars("dims", value.type.shape)
    yield scalar("data_type", _ONNX_NUMBERS[value.type.dtype])
    yield string("name", name)
    if value.constant is not None:
        yield string("raw_data", _little_endian(value.constant))


def _onnx_value(name: str, value: Value, detail: int) -> Lines:
    yield string("name", name)
    number = _ONNX_NUMBERS.get(value.type.dtype)
    if detail == TOPOLOGY or number is None:
        return

    def tensor() -> Lines:
        yield scalar("elem_type", number)
        dims: Iterator[Lines] = (message("dim", iter([scalar("dim_value", size)])) for size in value.type.shape)
        yield from message("shape", (line for lines in dims for line in lines))

    yield from message("type", message("tensor_type", tensor()))


def _little_endian(data: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    plain = np.ascontiguousarray(data)
    return plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes()


# -- text form of protobuf messages: fields are `name: value` or `name { ... }` ----------------------------------------


def quoted(text: str | bytes) -> str:
    """A string or bytes literal; what is no plain ASCII character becomes octal escapes.

    Edges: lone surrogates, which no text file can hold, are spelled out as `\\udcff`.
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data) + '"'


def scalar(name: str, value: bool | int | float | str) -> str:
    """One field whose value is written as it is: a number, a truth value, or a name of an enum."""
    return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"


def string(name: str, value: str | bytes) -> str:
    return f"{name}: {quoted(value)}"


def message(name: str, lines: Iterable[str]) -> Lines:
    yield f"{name} {{"
    for line in lines:
        yield f"  {line}"
    yield "}"


def strings(name: str, values: Iterable[str]) -> Lines:
    for value in values:
        yield string(name, value)


def scalars(name: str, values: Iterable[bool | int | float]) -> Lines:
    for value in values:
        yield scalar(name, value)


# -- reader of TorchAir's graph dump -----------------------------------------------------------------------------------


def ge_definition(path: str | PathLike[str]) -> Any:
    """The GraphDef of a text file.

    Edges:  fields that later versions add are skipped.
    Raises: FormatError when the file is no GraphDef text; OSError when it cannot be opened.
    """
    from google.protobuf import text_format

    from msdump.graph._proto import ge_ir_pb2

    graph = ge_ir_pb2.GraphDef()
    try:
        text = read_file(path, GRAPH_BYTES).decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of escapes that are none, which protobuf leaves to it
            text_format.Parse(text, graph, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{fspath(path)}: expected a GraphDef as text, got: {error}") from error
    return graph


def read_ge_originals(path: str | PathLike[str]) -> tuple[str, dict[tuple[str, int], tuple[str, int]]]:
    """Name of the graph, and (operator, output) -> (FX node, output) of every output that is one of the FX graph.

    Raises: as `ge_definition`.
    Source: TorchAir graph dump, type txt; `_fx_tensor_name` of an `output_desc`.
    """
    graph = ge_definition(path)
    found = {}
    for op in graph.op:
        for index, desc in enumerate(op.output_desc):
            match = (
                _FX_NAME.fullmatch(desc.attr[_FX_ATTR].s.decode(errors="replace")) if _FX_ATTR in desc.attr else None
            )
            if match is not None:
                found[str(op.name), index] = match["node"], int(match["index"])
    return str(graph.name), found

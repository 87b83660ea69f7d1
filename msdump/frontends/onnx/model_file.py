"""Load a ModelProto from a path, the bytes of a file, or the message itself."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from msdump.errors import FormatError, GraphError
from msdump.frontends.onnx.nodes import subgraphs
from msdump.storage.plain import read_plain

# First bytes of a file that ATC made.   Source: GE, model file header.
_OM_MAGIC = b"IMOD"
_MAX_BYTES = 1 << 31  # protobuf reads no larger message
_ONNX_DOMAINS = ("", "ai.onnx")


def read_model(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """The model and the stem of its file's name, "" for one that comes from memory. Local functions are inlined.

    Raises: FormatError for what is not ONNX, GraphError for an operator set that is not known here.
    """
    if isinstance(source, onnx.ModelProto):
        where, stem = "model", ""
        model = source
    elif isinstance(source, bytes | bytearray | memoryview):
        where, stem = "model in memory", ""
        model = _parse(bytes(source), where)
    else:
        path = Path(source)
        where, stem = str(path), path.stem
        model = _read_file(path)
    _check(model, where)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return _with_open_sizes(model, is_owned=model is not source), stem


def _with_open_sizes(model: onnx.ModelProto, is_owned: bool) -> onnx.ModelProto:
    """The model with no size where it declares a negative one: Paddle's exporter writes -1 for an open size, and
    onnxruntime reads it so, but inference would calculate with it.

    is_owned   False: the message is the caller's and stays as it is
    """
    if not is_owned and any(_negative_sizes(model.graph)):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        model = copy
    for size in list(_negative_sizes(model.graph)):
        size.ClearField("dim_value")
    return model


def _negative_sizes(graph: onnx.GraphProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    """Declared sizes below 0, those of the bodies of If, Loop and Scan included."""
    for value in itertools.chain(graph.input, graph.output, graph.value_info):
        yield from _negative_sizes_of(value.type)
    for node in graph.node:
        for body in subgraphs(node):
            yield from _negative_sizes(body)


def _negative_sizes_of(type: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    kind = type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from (size for size in getattr(type, kind).shape.dim if size.dim_value < 0)
    elif kind in ("sequence_type", "optional_type"):
        yield from _negative_sizes_of(getattr(type, kind).elem_type)
    elif kind == "map_type":
        yield from _negative_sizes_of(type.map_type.value_type)


def _read_file(path: Path) -> onnx.ModelProto:
    if path.suffix.lower() == ".om":
        raise FormatError(_om_message(str(path)))
    try:
        model = _parse(read_plain(path, _MAX_BYTES), str(path))
    except OSError as error:
        raise FormatError(f"{path}: expected an ONNX file, got {error.strerror or error}. Check the path.") from error
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, onnx.checker.ValidationError) as error:
        raise FormatError(
            f"{path}: expected its weights in files beside it, got {_first_line(error)} Copy these files as well."
        ) from error
    return model


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    if data[:4] == _OM_MAGIC:
        raise FormatError(_om_message(where))
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise FormatError(
            f"{where}: expected an ONNX model, got {len(data)} bytes that are none. Is the file whole?"
        ) from error


def _om_message(where: str) -> str:
    return (
        f"{where}: expected an ONNX model, got an .om file, which only a device can run. "
        "Give the .onnx file that it was converted from; other models are exported with torch.onnx or skl2onnx."
    )


def _check(model: onnx.ModelProto, where: str) -> None:
    if not model.HasField("graph") or not model.ir_version:
        raise FormatError(f"{where}: expected an ONNX model, got a file without a graph. Is the file whole?")
    if not model.opset_import:
        raise FormatError(f"{where}: expected the operator sets in opset_import, got none. Export the model again.")
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in _ONNX_DOMAINS and not 1 <= opset.version <= newest:
            raise GraphError(
                f"{where}: expected an operator set from 1 to {newest}, got {opset.version}. "
                "Export the model with a lower opset_version, or install a newer onnx and onnxruntime."
            )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    line = lines[0].strip() if lines else type(error).__name__
    return line if line.endswith(".") else f"{line}."

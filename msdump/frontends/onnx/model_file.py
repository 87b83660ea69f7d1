"""What a user calls a model, as a ModelProto: a path, the bytes of a file, or the message itself."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from msdump.errors import FormatError, GraphError

# First bytes of a file that ATC made.   Source: GE, model file header.
_OM_MAGIC = b"IMOD"
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
    return model, stem


def _read_file(path: Path) -> onnx.ModelProto:
    if path.suffix.lower() == ".om":
        raise FormatError(_om_message(str(path)))
    try:
        model = _parse(path.read_bytes(), str(path))
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

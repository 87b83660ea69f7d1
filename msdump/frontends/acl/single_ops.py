"""Operators that are called by themselves: a type, descriptions and attributes -> a model of one operator."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.errors import ExecutionError, FormatError, GraphError, did_you_mean
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.frontends.acl.dataset import DataBuffer
from msdump.frontends.acl.models import device_size, loader, open_unwatched, read_array, tell_failure, write_array
from msdump.frontends.acl.op_types import OnnxOp, known_types, onnx_op
from msdump.frontends.acl.operand import Shape
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import TensorDesc
from msdump.tensors import dtypes
from msdump.tensors.packing import packed_size

if TYPE_CHECKING:
    import onnx

    from msdump.engine.model_session import AclSession
    from msdump.frontends.onnx import OnnxModel

_OLDEST_OPSET = 6
Signature = tuple[tuple[str, Shape], ...]


@dataclass(frozen=True)
class SingleOp:
    """A requested operator: dtypes and shapes of its operands, and its attributes."""

    op_type: str
    inputs: Signature
    outputs: Signature
    attributes: tuple[tuple[str, Any], ...]


class SingleOps:
    """Operators that were made, and models of single operators that a script loaded."""

    def __init__(self) -> None:
        self._models: dict[tuple[SingleOp, tuple[AclSession, ...]], OnnxModel] = {}
        self._loaded: dict[tuple[str, Signature], str | bytes] = {}
        self._count_by_type: dict[str, itertools.count[int]] = {}
        self._lock = threading.Lock()

    def run(self, op: SingleOp, inputs: Sequence[DataBuffer], outputs: Sequence[DataBuffer]) -> list[Shape]:
        """Run it from memory to memory; gives the shapes of the results.

        Raises: CallError 100021 to 100024, 500002.
        """
        model = self.model(op)
        results = self._results(op, model, inputs)
        for slot, (spec, buffer) in enumerate(zip(model.outputs, outputs, strict=True)):
            array = results[spec.name]
            dtype, shape = op.outputs[slot]
            actual = dtypes.dtype_from_numpy(array.dtype).name
            if actual != dtype or device_size(array) > buffer.size or not _may_be(tuple(array.shape), shape):
                raise CallError(
                    codes.OP_OUTPUT_NOT_MATCH,
                    f"{op.op_type}: expected output {slot} as {actual}{list(array.shape)} of {device_size(array)} "
                    f"bytes, got the description {dtype}{list(shape)} and a buffer of {buffer.size} bytes",
                )
            write_array(buffer, array, f"{op.op_type}: output {slot}")
        return [tuple(results[spec.name].shape) for spec in model.outputs]

    def shapes(self, op: SingleOp, inputs: Sequence[DataBuffer]) -> list[Shape]:
        """Shapes of its results, from those of the operands as far as they decide, else from a run without a dump.

        Raises: CallError 100021 to 100024, 500002.
        """
        model = self._make(op, (), is_counted=False)
        shape_by_name = {spec.name: shape for spec, (_, shape) in zip(model.inputs, op.inputs, strict=True)}
        values = model.graph(shape_by_name, 0).values
        shapes = [tuple(values[spec.name].type.shape) if spec.name in values else (-1,) for spec in model.outputs]
        if all(size >= 0 for shape in shapes for size in shape):
            return shapes
        results = self._results(op, model, inputs)
        return [tuple(results[spec.name].shape) for spec in model.outputs]

    def model(self, op: SingleOp) -> OnnxModel:
        """The model of an operator, watched by the dumps that are in force.   Raises: CallError 100021, 100024."""
        # No other plan looks at operators that are called by themselves.
        dumps = [dump for dump in process.dump.in_force() if dump.takes_operators()]
        key = (op, tuple(dumps))
        with self._lock:
            if key not in self._models:
                # Dumps that ended have models here that are not needed again.
                ended = [old for old in self._models if old[1] and old[1] != key[1]]
                for old in ended:
                    del self._models[old]
                self._models[key] = self._make(op, dumps)
            return self._models[key]

    def load(self, model: str | bytes) -> None:
        """Take a model of one operator; calls of its type on its shapes run it.   Raises: CallError 100012, 100013."""
        opened = open_unwatched(model)
        names = [node.op_type for node in opened.graph({}, 0).graph.nodes]
        op_type = names[0] if len(names) == 1 else opened.model_name
        signature = tuple(
            (spec.dtype, tuple(size if isinstance(size, int) else -1 for size in spec.shape or ()))
            for spec in opened.inputs
        )
        with self._lock:
            self._loaded[op_type, signature] = model

    # -- parts ------------------------------------------------------------------------------------

    def _results(self, op: SingleOp, model: OnnxModel, inputs: Sequence[DataBuffer]) -> dict[str, Any]:
        feeds = {}
        for index, (spec, buffer) in enumerate(zip(model.inputs, inputs, strict=True)):
            dtype, shape = op.inputs[index]
            needed = packed_size(dtype, math.prod(shape))
            if buffer.size < needed:
                raise CallError(
                    codes.OP_INPUT_NOT_MATCH,
                    f"{op.op_type}: expected {needed} bytes for input {index} of {dtype}{list(shape)}, got a buffer of "
                    f"{buffer.size}",
                )
            feeds[spec.name] = read_array(buffer, dtype, shape, f"{op.op_type}: input {index}")
        try:
            results = model.run(feeds)
        except ExecutionError as error:
            tell_failure(model, error)
            raise CallError(codes.GE_FAILURE, str(error)) from error
        return results

    def _make(self, op: SingleOp, dumps: Sequence[AclSession], is_counted: bool = True) -> OnnxModel:
        counter = self._count_by_type.setdefault(op.op_type, itertools.count())
        number = next(counter) if is_counted else 0
        loaded = self._loaded.get((op.op_type, op.inputs))
        model = _load(op, f"{op.op_type}_{number}") if loaded is None else loader()(loaded)
        if len(model.inputs) != len(op.inputs) or len(model.outputs) != len(op.outputs):
            raise CallError(
                codes.OP_INPUT_NOT_MATCH,
                f"{op.op_type}: expected {len(model.inputs)} inputs and {len(model.outputs)} outputs, got "
                f"{len(op.inputs)} and {len(op.outputs)}",
            )
        watching = [dump.observe_operators(process.device_id) for dump in dumps]
        model.watch([observer for observers in watching for observer in observers])
        return model


def operator_of(
    op_type: str,
    inputs: Sequence[TensorDesc],
    outputs: Sequence[TensorDesc],
    attributes: Mapping[str, Any],
) -> SingleOp:
    """The operator that a call names.   Raises: CallError 100021, 100022 for a description without dtype or size."""
    frozen = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in attributes.items())
    return SingleOp(
        op_type,
        _signature(op_type, inputs, "input", codes.OP_INPUT_NOT_MATCH),
        _signature(op_type, outputs, "output", codes.OP_OUTPUT_NOT_MATCH, may_be_open=True),
        tuple(sorted(frozen)),
    )


def _signature(op_type: str, descs: Sequence[TensorDesc], io: str, code: int, may_be_open: bool = False) -> Signature:
    signature = []
    for index, desc in enumerate(descs):
        row = dtypes.BY_GE_NUMBER.get(desc.dtype)
        if row is None or row.numpy_type is None or (any(size < 0 for size in desc.shape) and not may_be_open):
            raise CallError(
                code,
                f"{op_type}: expected a dtype and sizes for {io} {index}, got dtype {desc.dtype}, shape {desc.shape}",
            )
        signature.append((row.name, desc.shape))
    return tuple(signature)


def _load(op: SingleOp, name: str) -> OnnxModel:
    """A model of the operator alone, in the newest operator set that onnxruntime has it in.

    Raises: CallError 100024 for an unknown type, 100021 for operands that it does not take.
    """
    load_model = loader()
    import onnx

    target = onnx_op(op.op_type, dict(op.attributes))
    if not onnx.defs.has(target.op_type):
        near = did_you_mean(op.op_type, known_types())
        raise CallError(
            codes.OP_NOT_FOUND,
            f"op_type: expected an operator of ONNX, or one of Ascend's that has a counterpart there, got "
            f"{op.op_type}. {near}".rstrip(),
        )
    refused: list[Exception] = []
    # An operator may have changed since the newest set in a way that onnxruntime does not know yet.
    for opset in range(_newest_opset(), _OLDEST_OPSET, -1):
        try:
            model: OnnxModel = load_model(one_node_model(target, op, name, opset))
            return model
        except (GraphError, FormatError) as error:
            refused.append(error)
    raise CallError(codes.OP_INPUT_NOT_MATCH, str(refused[0])) from refused[0]


@functools.cache
def _newest_opset() -> int:
    """The newest operator set that both onnx and onnxruntime have."""
    import onnx

    newest: int = onnx.defs.onnx_opset_version()
    probe = SingleOp("Identity", (("float32", (1,)),), (("float32", (1,)),), ())
    for opset in range(newest, _OLDEST_OPSET, -1):
        try:
            loader()(one_node_model(OnnxOp("Identity", {}), probe, "probe", opset))
            return opset
        except GraphError:
            continue
    return newest


def one_node_model(target: OnnxOp, op: SingleOp, name: str, opset: int) -> onnx.ModelProto:
    """The ModelProto of one operator.

    Raises: CallError 100026 for a dtype that ONNX does not have; 100023 for attributes that it does not take.
    """
    import onnx
    from onnx import helper

    from msdump.frontends.onnx.ort_values import elem_type_of

    def value(label: str, dtype: str, shape: Sequence[int] | None) -> onnx.ValueInfoProto:
        try:
            return helper.make_tensor_value_info(label, elem_type_of(dtype), shape)
        except KeyError:
            raise CallError(codes.UNSUPPORTED_DATA_TYPE, f"{op.op_type}: ONNX has no {dtype}") from None

    inputs = [value(f"x{index}", dtype, shape) for index, (dtype, shape) in enumerate(op.inputs)]
    outputs = [value(f"y{index}", dtype, None) for index, (dtype, _) in enumerate(op.outputs)]
    nodes, operands, constants = [], [input_.name for input_ in inputs], []
    for index in target.swaps:
        order = list(range(len(op.inputs[index][1])))
        order[-2:] = reversed(order[-2:])
        nodes.append(helper.make_node("Transpose", [operands[index]], [f"t{index}"], f"{name}/swap{index}", perm=order))
        operands[index] = f"t{index}"
    for index, numbers in enumerate(target.constants):
        constants.append(onnx.numpy_helper.from_array(np.asarray(numbers, np.int64), f"c{index}"))
        operands.append(f"c{index}")
    try:
        nodes.append(helper.make_node(target.op_type, operands, [y.name for y in outputs], name, **target.attributes))
    except (TypeError, ValueError) as error:
        raise CallError(codes.OP_ATTR_NOT_MATCH, f"{op.op_type}: {error}") from error
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def models_in(folder: str) -> list[Path]:
    """Model files of a folder that `set_model_dir` names.   Raises: CallError 100003."""
    root = Path(folder)
    if not root.is_dir():
        raise CallError(codes.INVALID_FILE, f"model_dir: expected a folder, got {folder}. Make it, or check the path")
    return sorted(path for path in root.iterdir() if path.suffix.lower() in (".onnx", ".om"))


def _may_be(shape: Shape, described: Shape) -> bool:
    """A description may leave sizes open, and is often flat where the tensor is not."""
    if any(size < 0 for size in described):
        return True
    return int(np.prod(shape, dtype=np.int64)) == int(np.prod(described, dtype=np.int64))

"""Operators of ONNX models again: a dump holds their tensors, the model their attributes.

The model is that of `--model`, or the one that the dump says it was made of. onnxruntime runs a model of the operator
alone, and onnx's own definition of the operator, in numpy, is the other library.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.replay._call import (
    FLOAT32,
    FLOAT64,
    NUMPY,
    ONNXRUNTIME,
    DumpedCall,
    Runner,
    Script,
    has_halves,
    load_narrow,
)
from msdump.analysis.steps import Slot
from msdump.errors import ConfigError
from msdump.process.front_ends import front_end
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.frontends.onnx.lone_node import LoneNode, ModelNodes

MODEL_FILE = "node.onnx"
# What onnx's definition may be away from onnxruntime before it is no measure: rounding and short dtypes, no other rule.
_SAME = 0.05
_COMPUTE = """def compute(arrays):
    session = onnxruntime.InferenceSession(str(HERE / "node.onnx"), providers=["CPUExecutionProvider"])
    feeds = {name: array for name, array in zip(ATTRS["feeds"], arrays) if name is not None}
    return session.run(ATTRS["results"], feeds)
"""


def onnx_call(target: FoundOperator, path: str) -> DumpedCall:
    """The call of an operator of a dump that a model has made.

    path   of the .onnx file

    Raises: ConfigError for another model than the one that was dumped, for an input that the dump lacks, and where onnx
            or onnxruntime are missing; FormatError and GraphError for a file that is none.
    """
    try:
        nodes: ModelNodes = front_end("onnx", "lone_node").ModelNodes.read(path)
    except ImportError as error:
        raise ConfigError(
            f"--model {path}: onnx and onnxruntime are not installed (pip install 'msdump[onnx]')."
        ) from error
    operator = target.operator
    originals = [name for name, _ in operator.originals]
    node = nodes.find([operator.full_name or "", operator.op_name, *originals], operator.op_type)
    operands, results = nodes.operands(node), nodes.results(node)
    where = f"{operator.label}: expected the operator as {path} has it"
    for side, names, tensors in (("inputs", operands, operator.inputs), ("outputs", results, operator.outputs)):
        last = max((slot.number for slot in tensors), default=-1)
        if last >= len(names):
            raise ConfigError(f"{where}, with {len(names)} {side}, got {last + 1} in the dump. Is it another model?")
    arrays: dict[str, Array] = {}
    inputs = []
    for number, name in enumerate(operands):
        tensor = operator.inputs.get(Slot(number))
        if tensor is not None:
            inputs.append((name, load_narrow(tensor)))
        elif not nodes.is_constant(name):
            raise ConfigError(
                f"{operator.label}: expected all its inputs in the dump, got none of number {number} ({name}). "
                'Dump inputs and outputs: "dump_mode": "all".'
            )
    arrays = dict(inputs)
    lone = partial(nodes.lone, node, arrays)
    given = [array for _, array in inputs]
    outputs = {slot: load_narrow(tensor) for slot, tensor in operator.outputs.items()}
    runs = {
        ONNXRUNTIME: lambda call: lone().run(arrays),
        FLOAT32: lambda call: _wide(lone(), lone(FLOAT32), arrays),
        FLOAT64: lambda call: _wide(lone(), lone(FLOAT64), arrays),
        NUMPY: lambda call: lone().run_reference(arrays),
    }
    every = [*given, *outputs.values()]
    if not has_halves(every):
        del runs[FLOAT32]
    if any(dtypes.dtype_from_numpy(array.dtype).is_widened for array in every):
        del runs[NUMPY]  # numpy has no such dtype
    return DumpedCall(
        node.op_type,
        tuple(given),
        tuple(name for name, _ in inputs),
        {},
        outputs,
        Runner(runs, ONNXRUNTIME),
        lambda computed: _script(lone(), [name for name, _ in inputs], computed),
        (f"attributes of {path}", *_changed(nodes, inputs)),
    )


def _wide(own: LoneNode, wide: LoneNode, arrays: dict[str, Array]) -> Sequence[Array]:
    """In onnxruntime where it has the kernel; else by onnx's definition, where that computes the same.

    Raises: ConfigError where neither does.
    """
    try:
        return wide.run(arrays)
    except ConfigError:
        found = wide.run_reference(arrays)
    for mine, reference in zip(own.run(arrays), found, strict=True):
        if mine.shape != reference.shape:
            raise ConfigError(f"onnx.reference gives shape {reference.shape}, onnxruntime {mine.shape}")
        pair = compare_arrays(mine, reference)
        if dtypes.dtype_from_numpy(mine.dtype).is_float and not pair.relative_error <= _SAME:
            raise ConfigError("onnxruntime has no such kernel, and onnx.reference has another rule")
    return found


def _changed(nodes: ModelNodes, inputs: Sequence[tuple[str, Array]]) -> list[str]:
    """Constants that the dump has otherwise than the model."""
    found = []
    for number, (name, array) in enumerate(inputs):
        constant = nodes.constant(name)
        if constant is None:
            continue
        is_same = (constant.dtype, constant.shape) == (array.dtype, array.shape)
        if not is_same or np.ascontiguousarray(constant).tobytes() != np.ascontiguousarray(array).tobytes():
            found.append(
                f"input {number} ({name}) is not what the model has: other weights, or memory that was overwritten"
            )
    return found


def _script(lone: LoneNode, names: Sequence[str], computed: Sequence[Array]) -> Script:
    """names: of the inputs of the script"""
    model, feeds, results = lone.script_model([dtypes.dtype_from_numpy(array.dtype).name for array in computed])
    by_name = dict(zip(lone.feeds, feeds, strict=True))
    attrs: dict[str, Any] = {"feeds": [by_name.get(name) for name in names], "results": list(results)}
    return Script("import onnxruntime\n", attrs, _COMPUTE, {MODEL_FILE: model})


def model_of(target: FoundOperator) -> str:
    """Path of the model that the dump says it was made of, "" where it says none: a script that loads models itself has
    the folders of CANN alone."""
    from msdump.analysis.find.hints import command_of
    from msdump.process.command import ACL_RUN

    command = command_of(target.operator)
    if command.entry != ACL_RUN or not command.target or not command.target[0].endswith(".onnx"):
        return ""
    return os.path.join(command.folder, command.target[0])

"""Run a dumped operator again on its dumped inputs, to see whether the operator or its input is wrong.

    from msdump.analysis import replay_operator
    replayed = replay_operator("dump", "Conv2D-op3")
    replayed.is_explained, replayed.runs["float64"].errors

The dumped output is measured against a run in float64 and fresh runs: operators of MindSpore in msdump's kernel and
torch, operators of PyTorch (`_aten`) in torch and, where it has them, numpy. Modules beside this one make the call of
what has no graph file: `_onnx`, `_msprobe`, `_torchair`, `_ge`.
`program_source` makes the few lines that compute an operator in torch here, and in numpy for `msdump replay -o`.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.analysis.distance.bounds import BOUNDS, bounds_of, reason_to_differ
from msdump.analysis.distance.metrics import PairMetrics, compare_arrays
from msdump.analysis.find.look_up import FoundOperator, find_operator
from msdump.analysis.graph_info import GraphNode
from msdump.analysis.memory_state import Moment
from msdump.analysis.replay import _aten as aten
from msdump.analysis.replay import _numpy_equivalents as numpy_equivalents
from msdump.analysis.replay import _torch_equivalents as torch_equivalents
from msdump.analysis.replay._aten import aten_plan, run_aten
from msdump.analysis.replay._call import FLOAT32, FLOAT64, NUMPY, TORCH, DumpedCall, Runner, Script, load_narrow
from msdump.analysis.replay._ge import ge_call
from msdump.analysis.replay._msprobe import msprobe_call
from msdump.analysis.replay._onnx import model_of, onnx_call
from msdump.analysis.replay._source import COMPUTE_TENSORS, plain_source
from msdump.analysis.replay._torchair import torchair_call
from msdump.analysis.steps import Slot, opened
from msdump.errors import ConfigError, GraphError, KernelNotFoundError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import FX, MODEL, MSPROBE, OPERATOR
from msdump.formats.selection import StepSelection
from msdump.process.front_ends import front_end
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs, PrimitiveDef

KERNEL, TORCH_RUN = NUMPY, TORCH
# Types of what a graph is given.
_NOT_COMPUTED = ("Data", "RefData", "Const", "Constant", "Variable", "Parameter")
# Ends of names of TorchAir's graph dump; a model of ONNX may have any.
_TEXTS = (".txt", ".pbtxt")
# How much further from the exact result than a fresh run a dumped output may be.
_SLACK = 8.0


def script_of(call: DumpedCall, computed: Sequence[Array]) -> Script | None:
    """The call as a program; None for a type that needs msdump's kernels or their short forms.

    computed   outputs of a run in its own precision
    """
    if call.script is not None:
        return call.script(computed)
    if not aten.is_operator(call.op_type):
        return None
    # A namespace of another library is there once that is imported.
    imports = "import torch\n" + ("import torchvision\n" if call.op_type.startswith("torchvision.") else "")
    return Script(imports, aten_plan(call), aten_source() + COMPUTE_TENSORS)


def program_source(op_type: str, library: str) -> str | None:
    """Source that defines `run(inputs, attrs) -> list of outputs`; None where the table has no such operator.

    numpy source expects `np`, torch source `torch` and `functional` (torch.nn.functional).
    """
    table = numpy_equivalents if library == NUMPY else torch_equivalents
    expression = table.EXPRESSIONS.get(op_type)
    if expression is not None:
        return f"def run(inputs, attrs):\n    return [{expression}]\n"
    entry = table.FUNCTIONS.get(op_type)
    if entry is None:
        return None
    function, helpers = entry
    parts = [_source_of(helper) for helper in helpers]
    main = re.sub(rf"^def {function.__name__}\(", "def run(", _source_of(function))
    return "\n\n".join([*parts, main])


def aten_source() -> str:
    """Source that defines `run(inputs, plan) -> list of tensors` for an operator of PyTorch."""
    return _source_of(aten.run)


def _source_of(function: object) -> str:
    return plain_source(inspect.getsource(function))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """One run of an operator.

    outputs  empty when it could not run; `problem` then says why
    errors   of the dumped outputs against these, by output slot
    """

    outputs: tuple[Array, ...]
    errors: Mapping[Slot, PairMetrics]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of replaying an operator.

    runs          "numpy" (msdump's kernel), "float64" (the same on inputs widened to float64), "torch"; of an operator
                  of PyTorch "torch", in its own precision, "float32" where that is another, "float64", and "numpy"
                  where numpy has it; of an ONNX model "onnxruntime", "float32" and "float64" alike, and "numpy", which
                  is onnx's own definition of the operator
    is_explained  the dumped outputs are what the dumped inputs give, up to rounding
    reason        why not, or how far it is
    notes         what else there is to say, each a sentence
    """

    found: FoundOperator
    inputs: tuple[Array, ...]
    outputs: Mapping[Slot, Array]
    runs: Mapping[str, ReplayRun]
    is_explained: bool
    reason: str
    notes: tuple[str, ...] = ()


def replay_operator(
    dump: DumpDir | str | os.PathLike[str],
    name: str,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    model: str | os.PathLike[str] | None = None,
) -> Replay:
    """Run an operator again on its dumped inputs, with the attributes that its dump tells.

    model   that was dumped, for dumps that hold no attributes: an .onnx file, or the text of TorchAir's graph dump;
            None: the one that the dump says it was made of

    Raises:  ConfigError when the operator, one of its inputs or its attributes are not in the dump, or when the dump
             shows inputs after they were overwritten; KernelNotFoundError for an operator that cannot be run, with the
             reason; FormatError and GraphError for a model that is none.
    """
    dump = opened(dump)
    target = find_operator(dump, name, StepSelection(rank, graph, iteration))
    call = call_of(dump, target, model)
    if not call.outputs:
        raise ConfigError(f"{target.operator.label}: expected dumped outputs to compare with, got none.")
    runner = runner_of(call)
    runs = {key: _run(partial(compute, call), call.outputs) for key, compute in runner.runs.items()}
    if all(one.problem for one in runs.values()):
        problem = runs[runner.fresh].problem.removeprefix(f"{call.op_type}: ")
        raise KernelNotFoundError(f"{target.operator.label}: {problem}")
    is_explained, reason = _verdict(call.outputs, runs, runner.fresh)
    return Replay(target, call.inputs, call.outputs, runs, is_explained, reason, call.notes)


def exact_results(dump: DumpDir, target: FoundOperator) -> dict[Slot, Array]:
    """What an operator makes of its inputs in float64, or in its own precision where it has no run in float64, by slot
    of the outputs of the dump; what has another size than the dump has is left out.

    target   its inputs may be those of another run: the call has the attributes that the dump tells
    Raises:  as `replay_operator`.
    """
    call = call_of(dump, target)
    runner = runner_of(call)
    run = _run(partial(runner.runs[FLOAT64 if FLOAT64 in runner.runs else runner.fresh], call), call.outputs)
    if run.problem:
        raise KernelNotFoundError(f"{target.operator.label}: {run.problem}")
    return {slot: run.outputs[slot.number] for slot in run.errors}


def call_of(dump: DumpDir, target: FoundOperator, model: str | os.PathLike[str] | None = None) -> DumpedCall:
    """The call of an operator of a dump.   model: as of `replay_operator`

    Edges:   an array of an operator of PyTorch has the dtype that the tensor had, where a .npy file widens it.
    Raises:  ConfigError when an input or the attributes are missing, or shown after they were overwritten.
    """
    operator, node = target.operator, target.node
    file = next(tensor.file for _, _, tensor in operator.all_tensors())
    if model is not None:
        return _call_of_model(target, os.fspath(model))
    if not operator.op_type:
        raise ConfigError(
            f"{operator.label}: expected an operator, got a tensor with a name alone: no file says what made it. "
            "Dump the model, and compare the file with that dump."
        )
    if file.levels.grammar == MSPROBE:
        return msprobe_call(dump, target)
    if file.levels.grammar == FX:
        return torchair_call(dump, target)
    if node is None and file.levels.grammar in (MODEL, OPERATOR):
        return _call_of_model(target, None)
    if node is None or node.attrs is None:
        raise ConfigError(
            f"{operator.label}: expected a graph file (rank_N/graphs/*.pb) with its attributes, got none. "
            "Open the folder that holds rank_0, not one below it."
        )
    read_slots = _read_slots(node)
    missing = [str(slot) for slot in read_slots if Slot(slot) not in operator.inputs]
    if missing:
        raise ConfigError(
            f"{operator.label}: expected all its inputs in the dump, got none of number {', '.join(missing)}. "
            'Dump inputs and outputs ("input_output": 0) of this operator.'
        )
    # Files have "_" for "."; the graph file has the name itself.
    is_aten = aten.is_operator(node.op_type)
    # Dumps of PyTorch show what an operator read, also where it wrote the same values again.
    if not is_aten and Moment(target.step).shows_result(operator):
        raise ConfigError(
            f"{operator.label}: expected its inputs as it read them, got their values afterwards. "
            "MindSpore on CPU dumps after the operator has run; a dump of msdump can be replayed."
        )
    slots = sorted(operator.inputs) if not read_slots else [Slot(slot) for slot in read_slots]
    load = load_narrow if is_aten else DumpedTensor.load_host
    names = node.input_names
    return DumpedCall(
        node.op_type if is_aten else operator.op_type,
        tuple(np.array(load(operator.inputs[slot])) for slot in slots),
        tuple(names[slot.number] if slot.number < len(names) else "" for slot in slots),
        node.attrs,
        {slot: load(tensor) for slot, tensor in operator.outputs.items()},
    )


def _call_of_model(target: FoundOperator, path: str | None) -> DumpedCall:
    """Of a dump that holds tensors alone.

    path  of the model; None: the one that the dump says it was made of. Where it says none, operators without
          attributes are known by their types
    """
    operator = target.operator
    if operator.op_type in _NOT_COMPUTED:
        raise ConfigError(f"{operator.label}: expected an operator, got an input of the graph: nothing computes it.")
    if path is None:
        path = model_of(target)
        if path and not os.path.isfile(path):
            raise ConfigError(
                f"{operator.label}: expected the model at {path}, where the dump was made, got nothing. Say where it "
                "is: --model m.onnx."
            )
    return ge_call(target, path) if not path or path.endswith(_TEXTS) else onnx_call(target, path)


def runner_of(call: DumpedCall) -> Runner:
    """How a call runs again: by what it says, by msdump's kernels, or by PyTorch's operators."""
    if call.runner is not None:
        return call.runner
    if not aten.is_operator(call.op_type):
        return _KERNELS
    names = [dtypes.dtype_from_numpy(array.dtype).name for array in (*call.inputs, *call.outputs.values())]
    runs = dict(_ATEN.runs)
    if not any(name in ("float16", "bfloat16") for name in names):
        del runs[FLOAT32]  # it is the own precision
    if aten.numpy_form(call.op_type, call.attrs) is None or len(call.names) != len(set(call.names)):
        del runs[KERNEL]
    return Runner(runs, _ATEN.fresh)


def _read_slots(node: GraphNode) -> list[int]:
    """Inputs that must be in the dump: results of operators, and parameters; constants may be attributes instead."""
    return [number for number, origin in enumerate(node.inputs) if origin is not None and not origin.is_constant]


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if dtypes.dtype_from_numpy(array.dtype).is_float else array


def _run(compute: Callable[[], Sequence[Array]], dumped: Mapping[Slot, Array]) -> ReplayRun:
    try:
        with np.errstate(all="ignore"):
            outputs = tuple(compute())
    except (GraphError, ConfigError) as error:
        return ReplayRun((), {}, str(error))
    errors = {}
    for slot, array in dumped.items():
        if slot.number < len(outputs):
            if array.size != outputs[slot.number].size:
                return ReplayRun((), {}, f"output {slot}: shape {array.shape} against {outputs[slot.number].shape}")
            errors[slot] = compare_arrays(array, outputs[slot.number])
    return ReplayRun(outputs, errors)


def kernel_definition(op_type: str) -> PrimitiveDef:
    """What the front end for MindSpore knows of a type, a kernel of numpy or PyTorch included.

    Raises: KernelNotFoundError; ConfigError where that front end is missing.
    """
    from msdump.graph.primitive import definition_of

    front_end("mindspore", "kernels")  # fills the registry
    definition = definition_of(op_type)
    if definition.infer is None or not definition.kernels:
        raise KernelNotFoundError(f"{op_type}: no kernel of numpy or PyTorch is registered.")
    return definition


def run_kernel(op_type: str, inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    """Outputs of the kernel of the front end for MindSpore: numpy's, or PyTorch's for a type that numpy has none of.

    Raises: KernelNotFoundError, also where PyTorch is needed and missing; GraphError for inputs that do not fit;
            ConfigError where that front end is missing.
    """
    from msdump.graph.types import TensorType

    definition = kernel_definition(op_type)
    assert definition.infer is not None
    arrays = [np.array(array, order="C") for array in inputs]
    # A constant operand (`filter_sizes`) has no file of its own; the graph file shows it as an attribute.
    for operand in definition.input_names[len(arrays) :]:
        if operand in attrs:
            arrays.append(np.array(attrs[operand], np.int64))
    types = [TensorType(dtypes.dtype_from_numpy(array.dtype).name, array.shape) for array in arrays]
    out = [np.empty(t.shape, dtypes.dtype(t.dtype).numpy) for t in definition.infer(types, attrs)]
    # An output that is the memory of an input starts as that input.
    for output, source in definition.aliases.items():
        out[output] = arrays[source]
    kernel = definition.kernels.get("numpy") or definition.kernels["torch"]
    kernel(arrays, attrs, out)
    return out


def _run_numpy(call: DumpedCall) -> list[Array]:
    """Outputs of numpy for an operator of PyTorch.   Raises: ConfigError where it has none, or refuses the arrays."""
    form = aten.numpy_form(call.op_type, call.attrs)
    source = None if form is None else program_source(form[0], NUMPY)
    if form is None or source is None:
        raise ConfigError(f"{call.op_type}: numpy has no equivalent in the table.")
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, f"<numpy {form[0]}>", "exec"), scope)
    try:
        return [np.asarray(array) for array in scope["run"](call.inputs, form[1])]
    except (TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise ConfigError(f"{call.op_type}: numpy refuses it: {error}") from error


def run_torch(op_type: str, inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    """Outputs of torch.   Raises: ConfigError when torch or an equivalent is missing."""
    source = program_source(op_type, TORCH)
    if source is None:
        raise ConfigError(f"{op_type}: torch has no equivalent in the table.")
    try:
        import torch
    except ImportError as error:
        raise ConfigError("torch is not installed (pip install torch).") from error
    for array in inputs:
        if dtypes.dtype_from_numpy(array.dtype).name not in dtypes.TORCH_COMPUTED:
            raise ConfigError(f"{op_type}: torch takes no numpy array of {array.dtype}.")
    scope: dict[str, Any] = {"torch": torch, "functional": torch.nn.functional}
    exec(compile(source, f"<torch {op_type}>", "exec"), scope)
    try:
        tensors = [torch.from_numpy(np.array(array)) for array in inputs]
        return [tensor.detach().numpy() for tensor in scope["run"](tensors, attrs)]
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError) as error:
        raise ConfigError(f"{op_type}: torch refuses it: {error}") from error


_KERNELS = Runner(
    {
        KERNEL: lambda call: run_kernel(call.op_type, call.inputs, call.attrs),
        FLOAT64: lambda call: run_kernel(call.op_type, [_widened(array) for array in call.inputs], call.attrs),
        TORCH_RUN: lambda call: run_torch(call.op_type, call.inputs, call.attrs),
    },
    KERNEL,
)
_ATEN = Runner(
    {
        TORCH_RUN: run_aten,
        FLOAT32: lambda call: run_aten(call, FLOAT32),
        FLOAT64: lambda call: run_aten(call, FLOAT64),
        KERNEL: _run_numpy,
    },
    TORCH_RUN,
)


def _verdict(outputs: Mapping[Slot, Array], runs: Mapping[str, ReplayRun], own_run: str) -> tuple[bool, str]:
    """Against float64 when there is such a run: then a fresh run says how much rounding costs here.

    own_run  name of the run in the operator's own precision
    """
    worst = ""
    for slot, dumped in outputs.items():
        name = dtypes.dtype_from_numpy(dumped.dtype).name
        exact, fresh = runs[FLOAT64].errors.get(slot), runs[own_run]
        if exact is None or slot.number >= len(fresh.outputs):
            pair = next((run.errors[slot] for run in runs.values() if slot in run.errors), None)
            reason = "" if pair is None else reason_to_differ(pair, bounds_of(name, name))
        else:
            own = compare_arrays(fresh.outputs[slot.number], runs[FLOAT64].outputs[slot.number])
            reason = _reason(exact, own, name)
        if reason:
            return False, f"output {slot}: {reason}"
        if exact is not None:
            worst = worst or f"output {slot} is {exact.relative_error:.3g} from the exact result"
    return True, worst


def _reason(dumped: PairMetrics, own: PairMetrics, name: str) -> str:
    if name not in BOUNDS:
        # Numbers that a comparison or a cast makes of floats may be others where these are rounded.
        is_worse = (dumped.unequal or 0) > (own.unequal or 0)
        return f"{dumped.unequal} of {dumped.count} elements differ" if is_worse else ""
    if dumped.mismatched > own.mismatched:
        return f"NaN or Inf in {dumped.mismatched} places where its inputs give something else"
    epsilon = BOUNDS[name].epsilon
    limit = max(_SLACK * own.relative_error, 16 * epsilon)
    if dumped.relative_error > limit or math.isnan(dumped.relative_error):
        return f"{dumped.relative_error:.3g} from the exact result, a fresh run is {own.relative_error:.3g}"
    worst = max(_SLACK * own.worst_relative_error, 64 * epsilon)
    if dumped.worst_relative_error > worst:
        return f"worst element {dumped.worst_relative_error:.3g} off, in a fresh run {own.worst_relative_error:.3g}"
    return ""

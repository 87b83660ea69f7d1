"""Operators of GE graphs again, by PyTorch's kernels: a dump holds their tensors, the text of a graph dump the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.replay._call import FLOAT32, FLOAT64, TORCH, DumpedCall, Runner, Script, has_halves, load_narrow
from msdump.analysis.steps import Slot
from msdump.errors import ConfigError
from msdump.operators.traits import is_collective, is_random
from msdump.process.front_ends import front_end
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# TorchAir's own folder; a dump of another program has operators of other rules under the same names.
_TORCHAIR = re.compile(r"/worldsize[0-9]+_global_rank[0-9]+/")
_COMPUTE = '''
def compute(arrays):
    """GE operators have no stand-alone form: this one needs msdump (pip install msdump)."""
    narrow = [array.astype(dtypes.dtype(name).numpy) for array, name in zip(arrays, ATTRS["dtypes"])]
    given = [value if kind == "value" else narrow[value] for kind, value in ATTRS["arguments"]]
    outputs = run_kernel(ATTRS["type"], given, ATTRS["attributes"])
    # numpy has no bfloat16; every value of the narrow dtypes is one of float64 as well.
    return [output.astype(np.float64) if output.dtype.kind == "V" else output for output in outputs]
'''


def ge_call(target: FoundOperator, path: str) -> DumpedCall:
    """The call of an operator of a graph that TorchAir compiled.

    path   of the text of a graph dump; "": none is known, and operators without attributes alone can run

    Raises: ConfigError where the attributes are not known, for an operator that draws random numbers or needs other
            processes, and for an input that is nowhere.
    """
    operator = target.operator
    label, op_type = operator.label, operator.op_type
    if is_random(op_type):
        raise ConfigError(
            f"{label}: {op_type} draws random numbers, which do not follow from its inputs: it cannot be replayed."
        )
    if is_collective(op_type):
        raise ConfigError(f"{label}: its results come from other processes too: it cannot be replayed alone.")
    tensors = list(operator.inputs.values())
    file = next(tensor.file for _, _, tensor in operator.all_tensors())
    if not path and not _TORCHAIR.search(file.path):
        raise ConfigError(
            f"{label}: expected the attributes of the operator, which a dump of ACL does not hold. Give the model that "
            "was dumped: --model m.onnx."
        )
    lone: Any = front_end("torchair", "ge.lone_op")
    inputs = [load_narrow(tensor) for tensor in tensors]
    attrs: Mapping[str, Any] = {}
    arguments: list[Any] = list(inputs)
    notes: tuple[str, ...] = ()
    if path:
        graph = lone.GraphText.read(path)
        op = graph.find([operator.full_name or "", operator.op_name], op_type)
        attrs = op.attrs
        try:
            arguments = graph.arguments(op, inputs)
        except ConfigError as error:
            raise ConfigError(f"{label}: {error}") from error
        notes = (f"attributes of {path}",)
    elif not lone.takes_no_attributes(op_type, len(inputs)):
        raise ConfigError(
            f"{label}: expected the attributes of {op_type}, which a dump of compiled graphs does not hold. Run once "
            'more with config.debug.graph_dump.type = "txt", and give the file of this graph: --model '
            "dynamo_optimized_graph_*.txt."
        )
    outputs = {Slot(n): load_narrow(tensor) for n, tensor in enumerate(operator.outputs.values())}
    attrs, formula = _nearest(lone, op_type, arguments, attrs, outputs)
    notes = (*notes, *formula)
    run: Callable[..., Sequence[Array]] = partial(lone.run_kernel, op_type, arguments, attrs)
    runs: dict[str, Callable[[DumpedCall], Sequence[Array]]] = {
        TORCH: lambda call: run(),
        FLOAT32: lambda call: run(FLOAT32),
        FLOAT64: lambda call: run(FLOAT64),
    }
    if not has_halves([*inputs, *outputs.values()]):
        del runs[FLOAT32]
    read = [value for value in arguments if isinstance(value, np.ndarray)]
    script = partial(_script, op_type, read, arguments, attrs)
    return DumpedCall(op_type, tuple(read), (), attrs, outputs, Runner(runs, TORCH), script, notes)


def _nearest(
    lone: Any, op_type: str, arguments: Sequence[Any], attrs: Mapping[str, Any], dumped: Mapping[Slot, Array]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The attributes with the formula that comes nearest to the dump, where it may be one of several; and a note."""
    variants = lone.variants(op_type, attrs)
    if len(variants) == 1:
        return variants[0], ()
    best: tuple[float, Mapping[str, Any]] | None = None
    for one in variants:
        outputs = lone.run_kernel(op_type, arguments, one)
        error = sum(
            compare_arrays(array, outputs[slot.number]).relative_error
            for slot, array in dumped.items()
            if slot.number < len(outputs) and array.shape == outputs[slot.number].shape
        )
        if best is None or error < best[0]:
            best = error, one
    assert best is not None
    chosen = {name: value for name, value in best[1].items() if name not in attrs}
    text = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    return best[1], (f"the graph leaves it to the device: {text} comes nearest",)


def _script(
    op_type: str, read: Sequence[Array], arguments: Sequence[Any], attrs: Mapping[str, Any], computed: Sequence[Array]
) -> Script:
    """read: the arrays among the arguments"""
    numbers = iter(range(len(read)))
    given = [("input", next(numbers)) if isinstance(value, np.ndarray) else ("value", value) for value in arguments]
    names = [dtypes.dtype_from_numpy(array.dtype).name for array in read]
    plan = {"type": op_type, "arguments": given, "attributes": dict(attrs), "dtypes": names}
    imports = "from msdump.tensors import dtypes\nfrom msdump.torchair.ge.lone_op import run_kernel\n"
    return Script(imports, plan, _COMPUTE)

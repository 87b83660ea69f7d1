"""Calls of functions that PrecisionDebugger has dumped: tensors in files, all other arguments in dump.json.

A record of a forward pass is the call of a function of PyTorch. One of a backward pass shows the gradients of its
results and, as output, what the last step of the function's backward makes of them: the function is called on the
inputs of the forward record, and its backward on the gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msdump.analysis.distance.metrics import compare_arrays
from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.replay import _torch_api as torch_api
from msdump.analysis.replay._call import FLOAT32, FLOAT64, TORCH, DumpedCall, Runner, Script, has_halves, load_narrow
from msdump.analysis.replay._source import COMPUTE_TENSORS, plain_source
from msdump.analysis.steps import Operator, Slot
from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.msprobe_json import CONSTRUCT_FILE
from msdump.formats.paths.parse import msprobe_forward, msprobe_type
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_MODULES = ("Module.", "Cell.")
_SHOWN_CALLS = 3
_MAX_DEPTH = 50


def msprobe_call(dump: DumpDir, target: FoundOperator) -> DumpedCall:
    """The call of a record.

    Raises: ConfigError for a record of a module, of a collective, of a function that is not known, for a tensor or an
            argument that is not in the dump.
    """
    operator = target.operator
    name = operator.op_name
    file = next(tensor.file for _, _, tensor in operator.all_tensors())
    if name.startswith(_MODULES):
        parents = dump.msprobe_parents(dump.msprobe_beside(file, CONSTRUCT_FILE))
        raise ConfigError(_of_module(name, parents))
    framework, records = dump.msprobe_records(dump.msprobe_beside(file))
    if framework != "pytorch" and not name.startswith("Mint"):
        raise ConfigError(f"{name}: it is a function of {framework}, which cannot be called here.")
    function = msprobe_type(name)
    paths = torch_api.functions_of(function)
    forward = msprobe_forward(name)
    steps = {one.op_name: one for one in target.step.operators}
    call = _Record(name, records.get(forward), steps.get(forward), records.get(name), operator, forward != name)
    plans = call.plans(paths)
    arrays = call.inputs

    def in_precision(precision: str) -> list[Array]:
        if forward != name:
            # A cast that had nothing to do has something to do there: its backward is another one.
            _outputs(function, plans, arrays, call.outputs)
        return _outputs(function, call.plans(paths, precision), arrays, call.outputs)

    runs = {
        TORCH: lambda one: _outputs(function, plans, arrays, call.outputs),
        FLOAT32: lambda one: in_precision(FLOAT32),
        FLOAT64: lambda one: in_precision(FLOAT64),
    }
    if not has_halves([*arrays, *call.outputs.values()]):
        del runs[FLOAT32]
    script = partial(_script, function, plans, arrays, call.outputs)
    names = tuple(call.input_names)
    return DumpedCall(function, tuple(arrays), names, {}, call.outputs, Runner(runs, TORCH), script)


def _of_module(name: str, parents: Mapping[str, str]) -> str:
    calls = [
        call for call, parent in parents.items() if parent == name and not call.startswith(_MODULES) and call != name
    ]
    if calls:
        more = ", ..." if len(calls) > _SHOWN_CALLS else ""
        advice = f"Replay a function that it calls: {', '.join(calls[:_SHOWN_CALLS])}{more}."
    else:
        advice = 'Dump with "level": "mix", and replay the functions that it calls.'
    return f"{name}: it is the call of a module, which needs the module itself, its weights and its code. {advice}"


class _Record:
    """A record, and that of its forward call where it is one of a backward pass.

    inputs   arrays that the call reads, in the order of `input_names`
    outputs  what it gave, counted from 0
    """

    def __init__(
        self, name: str, forward: Any, operator: Operator | None, own: Any, own_operator: Operator, is_backward: bool
    ) -> None:
        self._name = name
        self._is_backward = is_backward
        if not isinstance(own, dict) or not isinstance(forward, dict) or operator is None:
            missing = msprobe_forward(name) if isinstance(own, dict) else name
            raise ConfigError(
                f"{name}: expected the record {missing} with its arguments and inputs in dump.json, got none. "
                'Dump "data_mode": ["all"].'
            )
        self._forward, self._own = forward, own
        self._files = {t.file.original_name: t for one in (operator, own_operator) for _, _, t in one.all_tensors()}
        self.inputs: list[Array] = []
        self.input_names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._outputs: list[tuple[Any, ...]] = []
        self.outputs: dict[Slot, Array] = {}
        results = own.get("output")
        for path, content in _leaves(results, ()):
            tensor = self._files.get(str(content.get("data_name")))
            if tensor is not None:
                self.outputs[Slot(len(self._outputs))] = load_narrow(tensor)
                self._outputs.append(path)

    def plans(self, paths: Sequence[Sequence[str]], precision: str = "") -> list[dict[str, Any]]:
        """The calls that it may be. Early versions of msprobe have gradients by argument.   Raises: ConfigError."""
        plans = [self._plan(path, precision) for path in paths]
        return plans + [{**plan, "by_argument": True} for plan in plans if "gradients" in plan]

    def _plan(self, path: Sequence[str], precision: str) -> dict[str, Any]:
        """The call as `_torch_api.run` takes it.   Raises: ConfigError."""
        arguments = torch_api.Arguments(self._name, self._operand, precision)
        given, named = self._forward.get("input_args"), self._forward.get("input_kwargs")
        if not isinstance(given, list) or not isinstance(named, dict | None):
            raise ConfigError(
                f"{self._name}: expected input_args of {msprobe_forward(self._name)} in dump.json, got none. "
                'Dump "data_mode": ["all"].'
            )
        plan: dict[str, Any] = {
            "function": tuple(path),
            "arguments": [arguments.of(self._cast(one, path), f"argument {n}") for n, one in enumerate(given)],
            "keywords": {key: arguments.of(one, f"argument {key}") for key, one in (named or {}).items()},
            "outputs": list(self._outputs),
        }
        if self._is_backward:
            gradients = self._own.get("input")
            if not isinstance(gradients, list) or not any(True for _ in _leaves(gradients, ())):
                raise ConfigError(f"{self._name}: expected the gradients of its results in the dump, got none.")
            plan["gradients"] = [arguments.of(one, f"gradient {n}") for n, one in enumerate(gradients)]
            plan["by_argument"] = False
        return plan

    def _cast(self, argument: Any, path: Sequence[str]) -> Any:
        """dump.json says nothing of a dtype or a device in a place; that of `to` is the dtype of its result."""
        if argument == {} and tuple(path) in (("Tensor", "to"), ("Tensor", "type")) and self.outputs:
            first = next(iter(self.outputs.values()))
            return {"type": "torch.dtype", "value": dtypes.dtype_from_numpy(first.dtype).name}
        return argument

    def _operand(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Raises: ConfigError for a tensor without a file."""
        name = str(content.get("data_name"))
        tensor: DumpedTensor | None = self._files.get(name)
        if tensor is None:
            raise ConfigError(
                f"{self._name}: expected all its inputs in the dump, got none of {name[:200]}. Dump all inputs and "
                'outputs ("data_mode": ["all"]); a damaged file is missing too, as are tensors without elements.'
            )
        if name not in self._numbers:
            self._numbers[name] = len(self.inputs)
            self.inputs.append(load_narrow(tensor))
            self.input_names.append(name.rpartition(".")[0].removeprefix(f"{tensor.file.op_name}."))
        array = self.inputs[self._numbers[name]]
        spec: dict[str, Any] = {
            "input": self._numbers[name],
            "dtype": dtypes.dtype_from_numpy(array.dtype).name,
        }
        is_float = dtypes.dtype_from_numpy(array.dtype).is_float or array.dtype.kind == "c"
        if self._is_backward and is_float and ".forward." in name and content.get("requires_grad", True):
            spec["grad"] = True
        return spec


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Tensors of a description, and where each is."""
    if len(path) > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif isinstance(value, dict) and value.get("type") in torch_api.TENSORS:
        yield path, value
    elif isinstance(value, dict) and "type" not in value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))


def _outputs(
    function: str, plans: Sequence[Mapping[str, Any]], inputs: Sequence[Array], dumped: Mapping[Slot, Array]
) -> list[Array]:
    """Of the function that comes nearest to the dump, where several have the name of the record."""
    return _nearest(function, plans, inputs, dumped)[1]


def _nearest(
    function: str, plans: Sequence[Mapping[str, Any]], inputs: Sequence[Array], dumped: Mapping[Slot, Array]
) -> tuple[Mapping[str, Any], list[Array]]:
    """Raises: ConfigError where none can be called, with what the first one says."""
    first: ConfigError | None = None
    best: tuple[float, Mapping[str, Any], list[Array]] | None = None
    for plan in plans:
        try:
            torch_api.resolved(function, plan["function"])
            outputs = torch_api.outputs_of(function, plan, inputs)
        except ConfigError as error:
            first = first or error
            continue
        error_of = sum(
            compare_arrays(array, outputs[slot.number]).relative_error
            if array.shape == outputs[slot.number].shape
            else float("inf")
            for slot, array in dumped.items()
        )
        if best is None or error_of < best[0]:
            best = error_of, plan, outputs
    if best is None:
        assert first is not None
        raise first
    return best[1:]


def _script(
    function: str,
    plans: Sequence[Mapping[str, Any]],
    inputs: Sequence[Array],
    dumped: Mapping[Slot, Array],
    computed: Sequence[Array],
) -> Script:
    plan, _ = _nearest(function, plans, inputs, dumped)
    return Script("import torch\n", plan, plain_source(inspect.getsource(torch_api.run)) + COMPUTE_TENSORS)

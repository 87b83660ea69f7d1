"""What every kernel promises, checked for every registered primitive."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msdump.errors import GraphError
from msdump.graph.primitive import REGISTRY, PrimitiveDef
from msdump.mindspore import ops  # noqa: F401  (declares operators)
from msdump.mindspore.kernels import torch_operator
from msdump.mindspore.kernels.array import copy_view
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.cases import CASES, Case
from tests.mindspore.kernels.interpreter import empty_like_type, type_of

# Those that a function of PyTorch declares have a contract of their own, but for a kernel that stands here with it.
# These take two processes.
IN_PAIRS = {"Receive", "Send"}
ELSEWHERE = (torch_operator.op_types - set(CASES)) | IN_PAIRS
OWN = {name: row for name, row in REGISTRY.items() if name not in ELSEWHERE}
RUNS = [
    pytest.param(op_type, provider, case, id=f"{op_type}-{provider}-{number}")
    for op_type, definition in sorted(OWN.items())
    for provider in definition.kernels
    for number, case in enumerate(CASES.get(op_type, ()))
]


# Files of what all operators are made with; of PyTorch's second kernels for types of numpy.
TOOLS = {"autodiff.py", "checks.py", "declaration.py", "torch_kernels.py", "torch_operator.py", "workspace.py"}


def test_kernel_shape_rule_and_gradient_stand_in_one_file() -> None:
    apart = {}
    for name, row in REGISTRY.items():
        parts = [row.infer, row.bprop, row.compute, *(each for each in row.kernels.values() if each is not copy_view)]
        files = {Path(inspect.unwrap(each).__code__.co_filename).name for each in parts if each is not None}
        if len(files - TOOLS) > 1:
            apart[name] = files - TOOLS
    assert apart == {}


def test_every_primitive_has_a_case() -> None:
    assert sorted(set(OWN) - set(CASES)) == []
    assert sorted(set(CASES) - set(OWN)) == []


def test_every_primitive_is_complete() -> None:
    assert [name for name, row in OWN.items() if row.infer is None or not row.kernels] == []


def run(
    definition: PrimitiveDef, provider: str, case: Case, fill: int, is_shared: bool
) -> tuple[list[Array], list[Array]]:
    """Operands afterwards and outputs; aliased and viewed outputs share the operand's memory or have their own."""
    assert definition.infer is not None
    inputs = [np.array(array, order="C", copy=True) for array in case.inputs]
    types = definition.infer([type_of(array) for array in inputs], case.attrs)
    outputs = [empty_like_type(type, fill) for type in types]
    if is_shared:
        for slot, source in {**definition.aliases, **definition.views}.items():
            outputs[slot] = inputs[source].reshape(outputs[slot].shape)
    definition.kernels[provider](inputs, case.attrs, outputs)
    return inputs, outputs


def as_bytes(arrays: Sequence[Array]) -> list[bytes]:
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize(("op_type", "provider", "case"), RUNS)
def test_kernel_agrees_with_infer(op_type: str, provider: str, case: Case) -> None:
    """Every byte of every output is written, whatever lay there; only mutated operands change; attrs stay."""
    definition = REGISTRY[op_type]
    attrs = copy.deepcopy(dict(case.attrs))
    before = as_bytes(case.inputs)
    after, outputs = run(definition, provider, case, 0x00, False)
    _, again = run(definition, provider, case, 0xA5, False)
    assert as_bytes(outputs) == as_bytes(again)
    assert len(definition.output_names) in (1, len(outputs))
    for slot, array in enumerate(after):
        if slot not in definition.mutates:
            assert array.tobytes() == before[slot], f"operand {slot} changed"
    assert dict(case.attrs) == attrs


SHARING = {op_type for op_type, definition in REGISTRY.items() if definition.aliases or definition.views}


@pytest.mark.parametrize(("op_type", "provider", "case"), [row for row in RUNS if row.values[0] in SHARING])
def test_shared_memory_changes_nothing(op_type: str, provider: str, case: Case) -> None:
    """An output that is its operand's memory, and one that is not, hold the same; so do the operands."""
    definition = REGISTRY[op_type]
    own_inputs, own = run(definition, provider, case, 0xA5, False)
    shared_inputs, shared = run(definition, provider, case, 0xA5, True)
    assert as_bytes(own) == as_bytes(shared)
    assert as_bytes(own_inputs) == as_bytes(shared_inputs)
    for slot, source in definition.aliases.items():
        assert own[slot].tobytes() == own_inputs[source].tobytes()
    for slot, source in definition.views.items():
        assert own[slot].tobytes() == case.inputs[source].tobytes()


@pytest.mark.parametrize("op_type", sorted(OWN))
def test_wrong_operands_are_refused(op_type: str) -> None:
    """Operands of a kind that no operator takes make a GraphError, never another exception."""
    infer = REGISTRY[op_type].infer
    assert infer is not None
    case = CASES[op_type][0]
    types = [type_of(array) for array in case.inputs] * 12 or [type_of(np.zeros(1))]
    if op_type in {"AddN", "Concat", "Stack", "Print", "Depend"}:  # these take any number
        assert infer(types, case.attrs)
        return
    with pytest.raises(GraphError, match="expected"):
        infer(types, case.attrs)

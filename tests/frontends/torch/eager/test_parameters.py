"""Parameters of an eager program: their names, and the values that the forward pass left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis.steps import read_steps  # noqa: E402
from msdump.formats.dump_dir import DumpDir  # noqa: E402
from msdump.frontends.torch.eager.operands import CallOperands  # noqa: E402
from msdump.frontends.torch.eager.parameters import Parameters  # noqa: E402
from msdump.frontends.torch.eager.signatures import Tensor, signature_of  # noqa: E402
from msdump.frontends.torch.eager.stage import Call, Named  # noqa: E402
from tests.frontends.torch.eager.test_watch import both_engines, config, pytestmark  # noqa: E402, F401
from tests.plans import plain_plan  # noqa: E402


class Forward:
    """A stage that keeps what it is given."""

    is_watched = True

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.kept: dict[str, list[float]] = {}

    def add_parameter(self, info: Any, name: str, tensor: Any, memory: int) -> None:
        self.read[name] = memory

    def keep_parameters(self, memories: set[int], read: Any) -> None:
        for name, memory in self.read.items():
            if memory in memories and (kept := read(name, MODEL.get_parameter(name))) is not None:
                self.kept[name] = kept[1].tolist()


MODEL = nn.Linear(2, 1)


@pytest.mark.parametrize("outputs", [True, False])
def test_parameters_are_copied_before_another_stage_writes_them(outputs: bool) -> None:
    operands = CallOperands(lambda reason, name="": None, keeps=False)
    parameters = Parameters(operands)
    parameters.plan = plain_plan(inputs=True, outputs=outputs)
    parameters.name(MODEL)
    forward: Any = Forward()
    signature = signature_of(torch.ops.aten.mm.default)
    tensors = [Tensor("self", torch.ones(1, 2), False), Tensor("mat2", MODEL.weight, False)]
    inputs = tuple(operands.info(each.tensor) for each in tensors)
    parameters.note(forward, Call(signature, "Default", Named(0, "mm"), tensors, dict, inputs))
    assert set(forward.read) == {"weight"}
    weight = MODEL.weight.tolist()
    parameters.keep(forward, [MODEL.weight])
    with torch.no_grad():
        MODEL.weight.add_(1)
    assert forward.kept == ({"weight": weight} if outputs else {})


@both_engines
def test_parameters_are_those_of_the_forward_pass(is_sync: bool, tmp_path: Path) -> None:
    """Also where the script ends its iterations, an optimizer runs before that, and operators before the module."""
    model = nn.Sequential(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    weights = []
    with msdump.watch(config=config(tmp_path, is_sync)) as watch:
        for _ in range(3):
            weights.append(model[0].weight.detach().clone().numpy())
            model(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()
            watch.step()
    shown = [
        (tensor.iteration, tensor.load())
        for tensor in msdump.open(tmp_path).tensors(graph=0, op_type="Parameter")
        if tensor.op_name == "0.weight"
    ]
    assert [iteration for iteration, _ in shown] == [0, 1, 2]
    for iteration, array in shown:
        np.testing.assert_array_equal(array, weights[iteration])


@both_engines
def test_two_models_with_parameters_of_one_name(is_sync: bool, tmp_path: Path) -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    x = torch.ones(1, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    expected = []
    with msdump.watch(config=config(tmp_path, is_sync=is_sync)):
        for _ in range(3):
            expected.append([model.weight.detach().clone().numpy() for model in (first, second)])
            loss = second(first(x)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = ("aten.t.default-op0", "aten.t.default-op1", "weight", "Linear_1.weight")
    shown = {
        (step.key.iteration, operator.label.rpartition("/")[2]): tensor.load()
        for step in read_steps(DumpDir.open(tmp_path))
        if step.key.graph_id == 0
        for operator in step.operators
        for tensor in (operator.outputs if operator.is_parameter else operator.inputs).values()
    }
    for iteration, weights in enumerate(expected):
        for name, weight in zip(names, (*weights, *weights), strict=True):
            if is_sync or not name.endswith("weight"):  # of these the asynchronous dump has no files
                assert np.array_equal(shown[iteration, name], weight), (iteration, name)


def test_a_name_is_kept_and_a_model_that_is_gone_has_none() -> None:
    operands = CallOperands(lambda reason, name="": None, keeps=False)
    parameters = Parameters(operands)
    names: Any = operands.names
    first, second = nn.Linear(2, 1), nn.Linear(2, 1)
    for _ in range(2):
        names.clear()
        parameters.name(second)
        parameters.name(first)
        assert (names.get(second.weight), names.get(first.weight)) == ("weight", "Linear_1.weight")
    # What is part of both has the name that it was given last, as before.
    both = nn.Sequential(first, second)
    parameters.name(both)
    assert names.get(first.weight) == "0.weight"
    del both, first, second
    third = nn.Linear(2, 1)
    parameters.name(third)
    assert names.get(third.weight) == "weight"


def test_modules_are_told_apart_by_identity() -> None:
    class Equal(nn.Linear):
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

    operands = CallOperands(lambda reason, name="": None, keeps=False)
    parameters = Parameters(operands)
    first, second = Equal(2, 1), Equal(2, 1)
    for _ in range(2):
        parameters.name(first)
        parameters.name(second)
        assert (operands.names.get(first.weight), operands.names.get(second.weight)) == ("weight", "Equal_1.weight")


def test_modules_that_are_gone_take_no_memory() -> None:
    parameters = Parameters(CallOperands(lambda reason, name="": None, keeps=False))
    kept = []
    for number in range(100):
        module = nn.Module()
        module.register_parameter(f"weight_{number}", nn.Parameter(torch.ones(1)))
        parameters.name(module)
        kept = [module, *kept[:1]]
    assert len(parameters._beginnings) <= 3 and len(parameters._holders) <= 3

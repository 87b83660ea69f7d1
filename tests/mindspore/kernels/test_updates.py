"""Weight updates: what MindSpore 2.7 on a CPU made of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.graph.primitive import definition_of
from msdump.mindspore import ops
from tests.mindspore.kernels.cases import CASES

GRADIENT = np.array([0.5, -0.25, 0.05, -1.0], np.float32)

# By the documented formula, which the CPU of 2.7 does not keep: ApplyFtrl element 3 (sign of `linear`).
# Operator, numbers of the call around the states ("p1", "p2", ...) and the gradient "g", the states afterwards.
DENSE: list[tuple[str, tuple[Any, ...], tuple[Any, ...], list[list[float]]]] = [
    ("ApplyAdaMax", (), ("p1", "p2", "p3", 0.9, 0.1, 0.9, 0.99, 1e-3, "g"),
     [[-0.3590818, -0.330532, -0.1788489, 0.127166], [0.23, 0.395, 0.665, 0.8], [0.5, 0.594, 0.891, 1.188]]),
    ("ApplyAdadelta", (), ("p1", "p2", "p3", 0.1, 0.9, 1e-3, "g"),
     [[0.0395607, 0.3629841, 0.5608302, 0.9095354], [0.205, 0.42625, 0.66025, 1.0],
      [0.3065291, 0.5487917, 0.8103406, 1.1999801]]),
    ("ApplyAdagrad", (), ("p1", "p2", 0.1, "g"),
     [[0.0254644, 0.3677005, 0.5608378, 0.8707107], [0.45, 0.5291667, 0.7358334, 2.0]]),
    ("ApplyAdagradV2", (1e-2,), ("p1", "p2", 0.1, "g"),
     [[0.0265592, 0.3672345, 0.560905, 0.8702142], [0.45, 0.5291667, 0.7358334, 2.0]]),
    ("ApplyFtrl", (), ("p1", "p2", "p3", "g", 0.1, 0.2, 0.3, -0.5),
     [[-0.0515028, -0.0002928, -0.0808161, 0.1976449], [0.45, 0.5291667, 0.7358334, 2.0],
      [0.5763932, 0.2023053, 0.9417357, -3.1137083]]),
    ("ApplyFtrl", (), ("p1", "p2", "p3", "g", 0.1, 0.2, 0.3, -0.7),
     [[-0.0557648, 0.0, -0.0852739, 0.2728421], [0.45, 0.5291667, 0.7358334, 2.0],
      [0.5523252, 0.1701869, 0.9391221, -4.7960386]]),
    ("ApplyAdamWithAmsgrad", (0.9, 0.99, 1e-3), ("p1", "p2", "p3", "p4", 0.9, 0.99, 0.1, "g"),
     [[0.0636912, 0.2872611, 0.5023406, 0.7324448], [0.23, 0.395, 0.665, 0.8], [0.2995, 0.594625, 0.891025, 1.198],
      [0.4, 0.7333334, 1.0666667, 1.4]]),
    ("Adam", (), ("p1", "p2", "p3", 0.9, 0.99, 0.1, 0.9, 0.99, 1e-3, "g"),
     [[0.0580496, 0.2821755, 0.496292, 0.7269762], [0.23, 0.395, 0.665, 0.8], [0.2995, 0.594625, 0.891025, 1.198]]),
    ("AdamWeightDecay", (), ("p1", "p2", "p3", 0.1, 0.9, 0.99, 1e-3, 0.01, "g"),
     [[0.0579496, 0.2818421, 0.4957252, 0.7261762], [0.23, 0.395, 0.665, 0.8], [0.2995, 0.594625, 0.891025, 1.198]]),
    ("ApplyRMSProp", (), ("p1", "p3", "p2", 0.1, "g", 0.9, 0.5, 1e-3),
     [[-0.0919018, 0.1337946, 0.1944487, 0.3920185], [0.295, 0.54625, 0.81025, 1.18],
      [0.1919018, 0.1995388, 0.372218, 0.4079815]]),
    ("ApplyCenteredRMSProp", (), ("p1", "p0", "p5", "p2", "g", 0.1, 0.9, 0.5, 1e-3),
     [[-0.0726624, 0.1286163, 0.1949441, 0.3861493], [0.05, 0.155, 0.365, 0.44], [0.475, 0.78625, 1.11025, 1.54],
      [0.1726624, 0.204717, 0.3717226, 0.4138507]]),
    ("SGD", (), ("p1", "g", 0.1, "p2", 0.9, "p3"),
     [[0.05, 0.3583333, 0.5616667, 0.9], [0.5, -0.25, 0.05, -1.0], [0.0, 0.0, 0.0, 0.0]]),
]  # fmt: skip


def states_and_call(call: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    states, arguments = [], []
    for each in call:
        if isinstance(each, str) and each.startswith("p"):
            k = int(each[1:])
            values = np.linspace(0.1 * k, 0.6 + 0.2 * k, 4, dtype=np.float32)
            states.append(ms.Parameter(ms.Tensor(values), name=each))
            arguments.append(states[-1])
        elif each == "g" if isinstance(each, str) else False:
            arguments.append(ms.Tensor(GRADIENT))
        else:
            arguments.append(each)
    return states, arguments


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("op_type", "made", "call", "expected"), DENSE)
def test_states_are_those_of_mindspore(op_type: str, made: Any, call: Any, expected: Any, mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        states, arguments = states_and_call(call)
        operator = getattr(ops, op_type)(*made)

        class Net(ms.nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.states = ms.ParameterTuple(states)

            def construct(self) -> Any:
                return operator(*arguments)

        result = Net()()
    finally:
        ms.set_context(mode=before)
    first = result[0] if isinstance(result, tuple) else result
    np.testing.assert_allclose(first.asnumpy().ravel(), expected[0], atol=2e-6)
    for state, values in zip(states, expected, strict=True):
        np.testing.assert_allclose(state.asnumpy().ravel(), values, rtol=1e-5, atol=2e-6)


def test_adam_without_a_weight_gives_its_change() -> None:
    states, _ = states_and_call(("p2", "p3"))
    numbers = [ms.Tensor([x], ms.float32) for x in (0.9, 0.99, 0.1, 0.9, 0.99, 1e-3)]
    change = ops.AdamNoUpdateParam()(*states, *numbers, ms.Tensor(GRADIENT))
    np.testing.assert_allclose(change.asnumpy(), [-0.0419504, -0.0511579, -0.0703747, -0.0730238], rtol=1e-5)
    np.testing.assert_allclose(states[0].asnumpy(), [0.23, 0.395, 0.665, 0.8], rtol=1e-5)


@pytest.mark.parametrize("op_type", sorted(name for name in CASES if name[:5] == "Apply" and name != "ApplyMomentum"))
def test_float16_is_float32_rounded(op_type: str) -> None:
    """States of two bytes are computed in four and rounded once."""
    made = {"epsilon": 0.5} if op_type == "ApplyAdagradV2" else {}
    called = (0.9, 0.5, 0.5) if "RMSProp" in op_type else ()  # rho, momentum and epsilon come with the call

    def run(dtype: Any) -> list[Any]:
        values = np.linspace(0.25, 1, 4, dtype=np.float32).astype(dtype)
        operands = zip(definition_of(op_type).input_names, CASES[op_type][0].inputs, strict=True)
        arguments = [ms.Parameter(ms.Tensor(values), name=name) if operand.ndim else 0.5 for name, operand in operands]
        getattr(ops, op_type)(**made)(*arguments, *called)
        return [each.asnumpy() for each in arguments if isinstance(each, ms.Parameter)]

    for half, whole in zip(run(np.float16), run(np.float32), strict=True):
        np.testing.assert_allclose(half, whole, rtol=2e-3, atol=1e-3)


def test_a_call_with_too_few_inputs_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="For 'ApplyAdagrad', missing a required argument"):
        ops.ApplyAdagrad()(ms.Parameter(ms.Tensor([1.0]), name="w"))

"""Control flow on tensors: a compiled program does what Python does with the same source."""

from __future__ import annotations

from typing import Any

import msdump.mindspore as ms
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msdump.mindspore import ops

from tests.frontends.mindspore.control.programs import load, programs


def _results(net: Any, args: list[Any], mode: int) -> list[np.ndarray[Any, Any]]:
    ms.set_context(mode=mode)

    def loss(x: Any, y: Any, n: Any, m: Any) -> Any:
        first, second = net(x, y, n, m)
        return (first * first).sum() * 0.5, second

    outputs = net(*args)
    both = ops.value_and_grad(loss, (0, 1), net.trainable_params(), has_aux=True)
    (value, aux), (of_inputs, of_weights) = both(*args)
    return [each.asnumpy() for each in (*outputs, value, aux, *of_inputs, *of_weights)]


@settings(max_examples=25)
@given(programs(), st.lists(st.integers(-2, 4), min_size=2, max_size=2), st.floats(-2, 2, width=16))
def test_a_compiled_program_gives_the_values_and_gradients_of_pynative(
    source: str, counts: list[int], start: float
) -> None:
    net = load(source)()
    args = [
        ms.Tensor(np.array([start, 0.5], np.float32)),
        ms.Tensor(np.array([1.0, -start], np.float32)),
        *(ms.Tensor(count, ms.int32) for count in counts),
    ]
    eager = _results(net, args, ms.PYNATIVE_MODE)
    compiled = _results(net, args, ms.GRAPH_MODE)
    for one, other in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)

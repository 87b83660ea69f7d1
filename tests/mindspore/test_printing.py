"""`print` in construct prints at each run, in both modes; in a graph it is the operator Print."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn
from msdump.process import sessions
from tests.mindspore.conftest import execution_order
from tests.mindspore.networks import graphs_of

VECTOR = "Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00])"


def x(scale: float = 1.0) -> Tensor:
    return Tensor(np.array([1, 2], np.float32) * np.float32(scale))


class Calls(nn.Cell):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, a: Tensor) -> Tensor:
        self.function(a)
        return a * 2


def _in_graph(function: Callable[[Tensor], Any], *inputs: Tensor) -> Calls:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Calls(function)
    for each in inputs or (x(),):
        net(each)
    return net


PRINTED: dict[str, tuple[Callable[[Tensor], Any], list[str]]] = {
    "items": (lambda a: print("a:", a, 3, a.shape), ["a:", VECTOR, "3", "(2,)"]),
    "tuple": (lambda a: print((a, 2)), [VECTOR, "2"]),
    "f-string": (lambda a: print(f"a is {a}!"), ["a is ", VECTOR, "!"]),
    "nothing": (lambda a: print(), []),
}


@pytest.mark.parametrize("name", PRINTED)
def test_each_item_is_a_line_of_a_graph(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, lines = PRINTED[name]
    _in_graph(function)
    assert capfd.readouterr().out.splitlines() == lines


def test_a_graph_prints_at_each_run_what_is_there_then(capfd: pytest.CaptureFixture[str]) -> None:
    net = _in_graph(lambda a: print(a), x(1), x(2))
    assert len(graphs_of(net)) == 1
    first, second = capfd.readouterr().out.splitlines()
    assert (first, "2.00000000e+00  4.00000000e+00" in second) == (VECTOR, True)


def test_pynative_prints_as_python(capfd: pytest.CaptureFixture[str]) -> None:
    Calls(lambda a: print("a:", a, sep="-", end="!"))(x())
    assert capfd.readouterr().out == "a:-[1. 2.]!"


def test_keywords_are_refused_in_a_graph(capfd: pytest.CaptureFixture[str]) -> None:
    _in_graph(lambda a: print(a, end="!"))
    assert capfd.readouterr().out == "[1. 2.]!"
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(RuntimeError, match=r"test_printing\.py:\d+: .*expected no keyword in a graph, got 'end'"):
        _in_graph(lambda a: print(a, end=""))


def test_the_dump_has_the_operator_and_its_tensors(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    _in_graph(lambda a: print("a:", a + 1))
    sessions.close_all()
    assert execution_order(root) == ["Default/Add", "Default/Print", "Default/Mul"]
    (printed,) = root.rglob("Print.*.input.*.npy")
    np.testing.assert_array_equal(np.load(printed), [2, 3])
    (result,) = root.rglob("Print.*.output.0.*.npy")
    assert np.load(result).dtype == np.int32


def test_print_is_itself_again_after_a_trace_and_for_other_threads(capfd: pytest.CaptureFixture[str]) -> None:
    before = builtins.print

    def elsewhere(a: Tensor) -> None:
        thread = threading.Thread(target=lambda: print("other thread", flush=True))
        thread.start()
        thread.join()
        raise ValueError("ends the trace")

    with pytest.raises(ValueError, match="ends the trace"):
        _in_graph(elsewhere)
    assert capfd.readouterr().out == "other thread\n"
    assert builtins.print is before

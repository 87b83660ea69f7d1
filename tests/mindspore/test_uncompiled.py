"""Programs that no graph can hold run operator by operator in GRAPH_MODE, with the results of PYNATIVE_MODE."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.errors import UncompilableError
from msdump.mindspore import Parameter, Tensor, nn, ops
from tests.mindspore.conftest import execution_order

CALLS = 0


def t(*items: float) -> Tensor:
    return Tensor(np.array(items, np.float32))


def number(value: int) -> Tensor:
    return Tensor(value, ms.int32)


def with_global(x: Any, n: Any) -> Any:
    global CALLS
    CALLS += 1
    return x * CALLS


def caught(x: Any, n: Any) -> Any:
    try:
        if n == 2:
            raise ValueError("two")
        y = x / n
    except ValueError:
        y = -x
    return y


def checked(x: Any, n: Any) -> Any:
    assert n in [1, 2, 3]
    return x * 2 if n in (2, 4) else x


def swallowed(x: Any, n: Any) -> Any:
    try:
        return x * int(n)
    except Exception:  # noqa: BLE001 - as scripts do
        return x


def indexed(x: Any, n: Any) -> Any:
    return (x, x * 2, x * 3, x * 4)[n] * [1, 10, 100, 1000][n]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "int": lambda x, n: x * int(n) + int(n),
    "float": lambda x, n: x * float(x.sum()),
    "bool": lambda x, n: x if bool(x.sum() > 7) else -x,
    "item": lambda x, n: x + x.sum().item(),
    "tolist": lambda x, n: x * x.tolist()[1],
    "asnumpy": lambda x, n: Tensor(np.sin(x.asnumpy()) * 2) + x,
    "numpy": lambda x, n: x + Tensor(np.maximum(x, 2)),
    "max": lambda x, n: max(x) * x + min(x) + max(n, 7),
    "len": lambda x, n: x * len(x) * len(f"{n}"),
    "text": lambda x, n: x * float(f"{x.sum():.1f}"),
    "range": lambda x, n: sum([x + i for i in range(int(n))]),
    "size": lambda x, n: ops.ones((int(n), 3), ms.float32) * x,
    "mask": lambda x, n: x[x > 1.5] * n,
    "nonzero": lambda x, n: ops.nonzero(x > 1.5) + n,
    "dict": lambda x, n: {1: x, 2: x * 2, 3: -x}[int(n)],
    "elements": lambda x, n: ops.stack([x[int(n) - 1], x[0]]),
    "indexed": indexed,
    "global": with_global,
    "caught": caught,
    "checked": checked,
    "swallowed": swallowed,
}  # fmt: skip


def results(mode: int, function: Callable[..., Any]) -> list[Any]:
    global CALLS
    CALLS = 0
    ms.set_context(mode=mode)
    program = ms.jit(function) if mode == ms.GRAPH_MODE else function
    calls = [program(t(1, 2, 3), number(2)), program(t(3, 2, 1), number(3)), program(t(2, 2, 2), number(2))]
    return [call.asnumpy() for call in calls]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_pynative(name: str) -> None:
    expected = results(ms.PYNATIVE_MODE, PROGRAMS[name])
    for each, right in zip(results(ms.GRAPH_MODE, PROGRAMS[name]), expected, strict=True):
        assert each.dtype == right.dtype
        np.testing.assert_array_equal(each, right)


class Chosen(nn.Cell):
    """Tensors choose cells and a factor; `count` is a weight that the program sets and reads."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.ReLU(), nn.Sigmoid(), nn.Tanh()])
        self.scale = Parameter(t(2, 3, 4), name="scale")
        self.count = Parameter(Tensor(0.0, ms.float32), name="count", requires_grad=False)

    def construct(self, x: Any, n: Any) -> Any:
        self.count += 1
        x = self.layers[n](x * self.scale)
        return (x * x * int(n) * float(self.count.value())).sum()


def test_cells_weights_and_gradients_are_those_of_pynative() -> None:
    def trained(mode: int) -> list[Any]:
        ms.set_context(mode=mode)
        net = Chosen()
        step = ms.value_and_grad(net, 0, net.trainable_params())
        seen: list[Any] = []
        for n in (1, 2, 1):
            loss, (of_input, of_weights) = step(t(0.1, 0.2, 0.3), number(n))
            seen += [loss.asnumpy(), of_input.asnumpy(), of_weights[0].asnumpy(), net(t(1, 2, 3), number(0)).asnumpy()]
        return [*seen, net.count.asnumpy()]

    for each, right in zip(trained(ms.GRAPH_MODE), trained(ms.PYNATIVE_MODE), strict=True):
        np.testing.assert_array_equal(each, right)


def test_gradients_stop_where_numpy_computes() -> None:
    def loss(x: Any) -> Any:
        return (Tensor(x.asnumpy() * 2) * x).sum()

    ms.set_context(mode=ms.GRAPH_MODE)
    np.testing.assert_array_equal(ms.grad(loss)(t(1, 2, 3)).asnumpy(), [2, 4, 6])


@pytest.mark.usefixtures("either_mode")
@pytest.mark.parametrize("read", ["copy", "value", "astype", "Tensor"])
def test_a_copy_of_a_weight_in_a_program_is_no_constant(read: str) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor(2.0, ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            call = {"copy": self.w.copy, "value": self.w.value, "astype": lambda: self.w.astype(ms.float32)}
            value = Tensor(self.w) if read == "Tensor" else call[read]()
            self.w += 1
            return (x * value).sum()

    net = Net()
    assert [float(net(t(1, 1, 1))) for _ in range(2)] == [6, 9]
    if read != "Tensor":
        assert float(ms.grad(net, None, net.trainable_params())(t(1, 1, 1))[0]) == 3


def test_only_the_branch_that_runs_raises() -> None:
    @ms.jit
    def small(x: Any) -> Any:
        if x.sum() > 3:
            raise ValueError(f"too large: {x}")
        return x

    np.testing.assert_array_equal(small(t(1, 1)).asnumpy(), [1, 1])
    with pytest.raises(ValueError, match=r"too large: \[2. 2.\]"):
        small(t(2, 2))


def test_an_attribute_that_the_lost_trace_set_is_set_by_the_call() -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            self.last = x * 2
            return x * int(x.sum())

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    for _ in range(2):
        net(t(1, 2))
        np.testing.assert_array_equal(net.last.asnumpy(), [2, 4])


def test_it_is_said_once_and_the_syntax_level_can_forbid_it(caplog: pytest.LogCaptureFixture) -> None:
    def rounded(x: Any) -> Any:
        return x * int(x.sum())

    with caplog.at_level(logging.WARNING, "msdump"):
        for _ in range(2):
            ms.jit(rounded)(t(1, 2))
    (record,) = caplog.records
    assert "operator by operator" in record.getMessage() and "test_uncompiled.py" in record.getMessage()
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(UncompilableError, match=r"test_uncompiled\.py:\d+: return x \* int\(x\.sum\(\)\)"):
        ms.jit(rounded)(t(1, 2))
    with pytest.raises(ValueError, match="jit_syntax_level"):
        ms.set_context(jit_syntax_level=7)


def test_a_dump_has_every_call_under_the_id_of_its_operators(sync_dump: Callable[..., Path]) -> None:
    root = sync_dump(iteration="0|2-3")
    ms.set_context(mode=ms.GRAPH_MODE)

    class Inner(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x.exp()

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, x: Any) -> Any:
            return self.inner(x) * 2 if float(x.sum()) > 0 else ms.jit(ops.neg)(x)

    net = Net()
    for x in (t(1, 2), t(1, 3), t(-1, 0), t(2, 2)):
        net(x)
    first, second = sorted((root / "Net").iterdir(), key=lambda path: int(path.name))
    assert [path.name for path in sorted(first.iterdir())] == ["0", "3", "constants"]
    assert [path.name for path in sorted(second.iterdir())] == ["2"]
    (output,) = (first / "3").glob("Exp.*.output.0.*.npy")
    np.testing.assert_array_equal(np.load(output), np.exp(np.array([2, 2], np.float32)))
    names = [name.rpartition("/")[2] for name in execution_order(root)]
    assert names == ["ReduceSum", "Exp", "Mul", "ReduceSum", "Neg"]

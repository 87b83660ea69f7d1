"""Statistics by operators of PyTorch: the numbers of `stats.statistics`, and a dump that brings nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from msdump.errors import DtypeError  # noqa: E402
from msdump.frontends.torch import backend, device, runner  # noqa: E402
from msdump.frontends.torch.convert import array_of  # noqa: E402
from msdump.frontends.torch.device import ROW_LENGTH, measure, statistics_of_row  # noqa: E402
from msdump.process import sessions  # noqa: E402
from msdump.statistics.md5 import md5_hex  # noqa: E402
from msdump.statistics.stats import MeasuredArray, has_nan, has_non_finite, measured_now, statistics  # noqa: E402
from msdump.tensors import dtypes  # noqa: E402
from msdump.tensors.torch_arrays import NAME_BY_DTYPE  # noqa: E402
from msdump.testing import strategies  # noqa: E402
from tests.frontends.torch.dumping import close, configure, rows  # noqa: E402

REAL = {dtype: name for dtype, name in NAME_BY_DTYPE.items() if dtypes.dtype(name).kind != dtypes.COMPLEX}
EXACT = (
    "max", "min", "count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf", "size_bytes",
)  # fmt: skip
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(),
           reason="no CUDA device")])]  # fmt: skip


def assert_measured(tensor: Any) -> None:
    name = REAL[tensor.dtype]
    expected = statistics(array_of(tensor.cpu()), name)
    found = statistics_of_row(measure(tensor).cpu().numpy(), name, tensor.numel())
    for field in EXACT:
        mine, golden = getattr(found, field), getattr(expected, field)
        assert (type(mine), mine) == (type(golden), golden), field
        assert mine is None or not (isinstance(mine, float) and math.copysign(1, mine) < 0 and mine == 0)
    for field in ("avg", "l2norm"):
        mine, golden = getattr(found, field), getattr(expected, field)
        # Sums of numbers that cancel keep the rounding of the large ones.
        scale = max(abs(expected.max or 0), abs(expected.min or 0))
        if mine is None or golden is None or math.isnan(golden) or math.isinf(golden):
            assert str(mine) == str(golden), field
        else:
            assert mine == pytest.approx(golden, rel=1e-9, abs=1e-12 * scale), field


def tensor_from(array: Any, dtype: Any) -> Any:
    """Tensor with the bits of an array of the dtype of that name."""
    raw = np.ascontiguousarray(array)
    return torch.from_numpy(np.array(raw.reshape(-1).view(np.uint8))).view(dtype).reshape(raw.shape)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", list(REAL), ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_numbers_are_those_of_the_host(dtype: Any, where: str, data: st.DataObject) -> None:
    array = data.draw(strategies.tensors(dtypes=[REAL[dtype]]))
    array = array.astype(array.dtype.newbyteorder("="))
    if array.size:
        assert_measured(tensor_from(array, dtype).to(where))


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", list(REAL), ids=str)
def test_every_bit_pattern_of_a_large_tensor(dtype: Any, where: str) -> None:
    bits = np.random.default_rng(0).integers(0, 2 if dtype is torch.bool else 256, 1 << 16, np.uint8)
    assert_measured(torch.from_numpy(bits).view(dtype).reshape(16, -1).t().to(where))


@pytest.mark.parametrize(
    "values",
    [
        [math.nan, math.inf, -math.inf],
        [-0.0, -0.0],
        [5e-324, -5e-324],
        [1.7e308, -1.7e308, 1.7e308],
        [1e-200, 2e-200],
        [3.5],
        [0.0, math.nan],
    ],
)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_ends_of_the_range(name: str, values: list[float]) -> None:
    tensor = torch.tensor(values, dtype=torch.float64).to(getattr(torch, name))
    assert_measured(tensor)
    assert_measured(tensor[0])


def test_views_are_measured_as_they_look() -> None:
    base = torch.arange(-6.0, 6).reshape(3, 4)
    for tensor in (
        base.t(),
        base[:, 1],
        base[::2],
        base[0].expand(5, 4),
        torch.view_as_complex(base.reshape(6, 2)).imag,
    ):
        assert_measured(tensor)
    assert_measured(torch.view_as_complex(base.reshape(6, 2)).conj().imag)


def test_the_row_has_its_length_and_stays_on_the_device() -> None:
    row = measure(torch.ones(3, requires_grad=True))
    assert (row.shape, row.dtype, row.requires_grad) == ((ROW_LENGTH,), torch.int64, False)


def test_a_measured_array_has_numbers_and_no_values() -> None:
    numbers = statistics(np.arange(6.0), "float64")
    array = MeasuredArray((2, 3), np.float64, lambda: numbers)
    assert (array.shape, array.nbytes) == ((2, 3), 48)
    assert statistics(array.reshape(3, 2), "float64") is numbers
    with pytest.raises(DtypeError, match="got its statistics"):
        md5_hex(array)
    with pytest.raises(DtypeError, match="got neither"):
        statistics(array[0], "float64")
    with pytest.raises(DtypeError, match="expected an array of float32"):
        statistics(array, "float32")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn", "int8"])
@pytest.mark.parametrize("number", [0.0, np.inf, -np.inf, np.nan, 448.0, -57344.0])
def test_numbers_tell_of_values_that_are_not_finite(name: str, number: float) -> None:
    if name == "int8" and number:
        return
    array = np.array([1.0, number], np.float32).astype(dtypes.dtype(name).numpy)
    measured = measured_now(array, name)
    assert isinstance(measured, MeasuredArray)
    assert has_non_finite(measured, name) == has_non_finite(array, name)
    if name != "int8":
        assert has_nan(measured, name) == has_nan(array, name)


# -- the dump ------------------------------------------------------------------------------------------------------


class LateCopies:
    """Stands for a device whose work is done when somebody waits for it, and no sooner."""

    def __init__(self) -> None:
        self.arrays = self.rows = 0
        self._queue: list[tuple[Any, Any]] = []

    def takes(self, tensor: Any) -> bool:
        return True

    def array(self, tensor: Any) -> Any:
        self.arrays += 1
        return self._later(tensor.detach().clone())

    def row(self, tensor: Any) -> Any:
        self.rows += 1
        return self._later(measure(tensor))

    def _later(self, tensor: Any) -> Any:
        target = torch.zeros_like(tensor)
        self._queue.append((target, tensor))
        return array_of(target)

    def mark(self) -> Any:
        return _Mark(self, len(self._queue))

    def protect(self) -> None:
        """Nothing: what is queued was read already."""

    def run(self, count: int) -> None:
        for target, source in self._queue[:count]:
            target.copy_(source)


class _Mark:
    def __init__(self, copies: LateCopies, count: int) -> None:
        self._copies, self._count = copies, count

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        self._copies.run(self._count)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateCopies]:
    found = LateCopies()
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(6, 5)
        self.norm = torch.nn.BatchNorm1d(5)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.fc(x)).relu()
        return torch.fft.fft(y).abs().to(torch.bfloat16), (y > 0).sum(1)


def train() -> list[Any]:
    """Gradients and state of two steps that write in place, with complex and narrow numbers."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Net()
    called = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        result, _count = called(torch.randn(4, 6))
        result.float().square().mean().backward()
        optimizer.step()
    return [*(parameter.grad.clone() for parameter in model.parameters()), *model.state_dict().values()]


def lines(root: Path) -> list[tuple[Any, ...]]:
    """Every row of every file but for its time."""
    found = []
    for path in sorted(root.rglob("statistic.csv")):
        place = path.parent.relative_to(root).parts[-2:]
        for row in rows(path.parent):
            numbers = [getattr(row, name) for name in (*EXACT[:-1], "avg", "l2norm")]
            found.append((place, row.op_name, row.io, row.slot, row.dtype, row.shape, row.md5, numbers))
    return sorted(found, key=str)


CATEGORIES = ["max", "min", "avg", "count", "negative zero count", "nan count", "zero count", "l2norm"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_a_dump_of_statistics_brings_no_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: LateCopies, is_sync: bool
) -> None:
    found, results = [], []
    for name in ("host", "device"):
        (tmp_path / name).mkdir()
        root = configure(
            tmp_path / name, monkeypatch, is_sync=is_sync, saved_data="statistic", statistic_category=CATEGORIES
        )
        with monkeypatch.context() as patch:
            if name == "device":
                patch.setattr(runner, "copies_for", lambda args: copies)
            results.append(train())
        report = close()
        assert report.error is None
        sessions.reset_for_tests()
        found.append(lines(root))
    assert all(torch.equal(mine, golden) for mine, golden in zip(*results, strict=True))
    host, on_device = found
    assert (copies.arrays, copies.rows > 50) == (0, True)
    assert [line[:-1] for line in on_device] == [line[:-1] for line in host]
    for mine, golden in zip(on_device, host, strict=True):
        for one, other in zip(mine[-1], golden[-1], strict=True):
            # The file has six digits; the last one may be rounded the other way.
            assert one == other or one == pytest.approx(other, rel=1e-5, abs=1e-7), (mine, golden)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "settings", [{"saved_data": "statistic", "statistic_category": ["max", "md5"]}, {"saved_data": "full"}], ids=str
)
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_whoever_asks_for_bytes_gets_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: LateCopies, settings: dict[str, Any], is_sync: bool
) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=is_sync, **settings)
    monkeypatch.setattr(runner, "copies_for", lambda args: copies)
    train()
    assert close().error is None
    assert copies.rows == 0
    assert copies.arrays > 50
    assert lines(root)


def test_the_host_needs_no_copies() -> None:
    assert device.copies_for([torch.ones(2), 3, None]) is None

"""Tensors on a CUDA device: the same numbers as on the host, for what the stream computes at that moment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

native = pytest.importorskip("msdump_native")

from msdump.frontends.torch.convert import array_of  # noqa: E402
from msdump.statistics.stats import statistics  # noqa: E402
from msdump.tensors.torch_arrays import dtype_name  # noqa: E402
from tests.frontends.torch.eager.native_tensors import FLOATS, plain, same  # noqa: E402

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu]
DTYPES = [*FLOATS, *EIGHTS, *INTEGERS, torch.bool]
NONE = 0xFFFFFFFF
COUNTS = ("count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf", "size_bytes")


@pytest.fixture(autouse=True)
def kernels() -> None:
    assert native.check() == "" and native.use_cuda(0) == ""


def check(tensor: torch.Tensor) -> None:
    array, name = array_of(tensor.cpu()), dtype_name(tensor.dtype)
    theirs = statistics(array, name)
    (ours,) = native.measure(tensor)
    assert {field: int(ours[field]) for field in COUNTS} == {field: getattr(theirs, field) for field in COUNTS}
    if theirs.max is not None:
        prefix = "" if tensor.dtype.is_floating_point else "integer_"
        assert same(float(ours[f"{prefix}maximum"]), float(theirs.max))
        assert same(float(ours[f"{prefix}minimum"]), float(theirs.min))
    with np.errstate(all="ignore"):
        values = array.astype(np.float64)
    values = values[np.isfinite(values)]
    bound = 2 * max(values.size, 1) * 2.0**-53
    if theirs.avg is None:
        assert math.isnan(ours["average"])
    else:
        largest = np.abs(values).max() or 1.0
        slack = 4 * bound * np.abs(values / largest).mean() * largest
        assert abs(float(ours["average"]) - theirs.avg) <= slack
    if math.isfinite(theirs.l2norm):
        assert abs(float(ours["norm"]) - theirs.l2norm) <= 4 * bound * theirs.l2norm
    else:
        assert same(float(ours["norm"]), theirs.l2norm)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["finite", "special", "zeros", "bits"])
@pytest.mark.parametrize("size", [1, 7, 127, 1000, 16384, 16385, 200000, 20_000_100])
def test_sizes(dtype: torch.dtype, kind: str, size: int) -> None:
    if size > 10**6 and kind != "special":
        pytest.skip("one of that size is enough")
    if dtype in FLOATS:
        tensor = plain(size, dtype, size, kind).cuda()
    else:
        tensor = torch.randint(0, 256, (size * dtype.itemsize,), dtype=torch.uint8, device="cuda").view(dtype)
        tensor = tensor % 2 == 1 if dtype is torch.bool else tensor
    check(tensor)
    check(tensor[1:])  # of another alignment
    if size % 100 == 0:
        check(tensor.view(100, -1).t())
        check(tensor.view(100, -1)[:, 1:])
        check(tensor.view(-1, 10, 10).transpose(1, 2)[:, ::3])
        check(tensor.view(100, -1)[:, :1].expand(100, 7))


def test_no_elements() -> None:
    check(torch.empty(0, 3, device="cuda"))


@pytest.mark.parametrize("scale", [1e-200, 1e160, 1e-310, 1e308])
@pytest.mark.parametrize("size", [5, 1000, 100000])
def test_ends_of_the_range(scale: float, size: int) -> None:
    tensor = torch.linspace(-1, 1, size, dtype=torch.float64, device="cuda") * scale
    check(tensor)
    tensor[1] = math.nan
    check(tensor[:8000])


def test_the_same_bits_each_time() -> None:
    tensor = torch.randn(3_000_001, device="cuda")
    first = native.measure(tensor)
    for _ in range(20):
        assert native.measure(tensor).tobytes() == first.tobytes()


def measured(batch: dict, role: int = 2) -> list[float]:
    """Largest values of results, in the order in which they ran."""
    places = batch["operands"]["tensor"][batch["operands"]["role"] == role]
    numbers = batch["tensors"]["measurement"][places]
    return batch["measurements"]["maximum"][numbers[numbers != NONE]].tolist()


def test_each_is_measured_as_it_is_then() -> None:
    observer = native.Observer()
    x = torch.zeros(5_000_000, device="cuda")
    torch.cuda.synchronize()
    observer.enable()
    for _ in range(50):
        x.add_(1.0)
    other = torch.cuda.Stream()
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        for _ in range(50):
            x.add_(1.0)
    torch.cuda.current_stream().wait_stream(other)
    x.fill_(0.0)
    del x
    torch.full((5_000_000,), 7.0, device="cuda")
    observer.disable()
    batch = observer.take()
    assert batch["failure"] == "" and not batch["skipped"]
    assert [value for value in measured(batch) if value > 0][:100] == [float(number) for number in range(1, 101)]
    assert measured(batch, role=0)[:100] == [float(number) for number in range(100)]


def test_many_rows_and_a_second_take() -> None:
    observer = native.Observer()
    x = torch.ones(3, device="cuda")
    for _ in range(2):
        observer.enable()
        for _ in range(9000):
            x = x + 1.0
        observer.disable()
        batch = observer.take()
        values = measured(batch)
        assert np.diff(values).tolist() == [1.0] * 8999
        observer.begin_iteration()
    assert values[-1] == 18001.0


def test_what_is_captured_is_counted_and_runs_as_without() -> None:
    observer = native.Observer()
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    observer.enable()
    before = x * 2.0
    with torch.cuda.graph(graph):
        y = x + 1.0
        batch = observer.take()
    z = x * 3.0
    observer.disable()
    graph.replay()
    assert y.tolist() == [2.0] * 4 and before.tolist() == [2.0] * 4
    last = observer.take()
    assert batch["failure"] == last["failure"] == ""
    assert last["skipped"]["graph-captured"] > 0
    assert measured(batch)[0] == 2.0 and z.tolist() == [3.0] * 4


def test_threads_of_autograd() -> None:
    observer = native.Observer()
    w = torch.full((3, 3), 2.0, device="cuda", requires_grad=True)
    observer.enable()
    (w * 3.0).sum().backward()
    observer.disable()
    batch = observer.take()
    assert batch["failure"] == "" and not batch["skipped"]
    threads = set(batch["operators"]["thread"].tolist())
    assert len(threads) == 2 and measured(batch)[-1] == 3.0

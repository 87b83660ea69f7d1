"""Two runs of one net, of which one is in a half precision or in simpler operators: what is right agrees, and the fault
of one operator more is named.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import compare_dumps  # noqa: E402
from msdump.analysis.compare.judge import verdict_of  # noqa: E402
from msdump.analysis.compare.verdict import MINE, Reason  # noqa: E402
from tests.analysis.compare.pieces import PIECES, Net, data, net  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

STEPS = 2
# One of each kind, which the quick tests look at.
QUICK = (
    ("bfloat16", "Hardshrink"), ("bfloat16", "LogSoftmax"), ("bfloat16", "Conv2d"), ("bfloat16", "LSTM"),
    ("float16", "chunk"), ("float16", "norms first"), ("autocast", "BatchNorm2d"), ("autocast", "ReLU"),
    ("simpler operators", "circular"), ("simpler operators", "of channels"),
)  # fmt: skip
Run = Callable[[], None]


def training(
    model: Net, form: str, dtype: torch.dtype = torch.float32, *, has_autocast: bool = False, rate: float = 0.1
) -> Run:
    x, labels = data(form)
    model, x = model.to(dtype), x.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, has_autocast):
                loss = functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()

    return run


def evaluation(model: Net, form: str) -> Run:
    x, _ = data(form)
    model.eval()
    return lambda: evaluate(model, x)


def in_simpler_operators(model: Net, form: str) -> Run:
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    x, _ = data(form)
    with torch.no_grad():
        traced = make_fx(model.eval(), core_aten_decompositions())(x)
    return lambda: evaluate(traced, x)


@torch.no_grad()
def evaluate(model: torch.nn.Module, x: torch.Tensor) -> None:
    model(x)


WAYS: dict[str, tuple[Callable[[Net, str], Run], Callable[[Net, str], Run]]] = {
    "bfloat16": (functools.partial(training, dtype=torch.bfloat16), training),
    "float16": (functools.partial(training, dtype=torch.float16), training),
    "autocast": (functools.partial(training, has_autocast=True), training),
    "simpler operators": (in_simpler_operators, evaluation),
}
# What PyTorch has no kernel for, or cannot write in simpler operators.
_MISSING = ("not implemented for", "must have the same dtype", "tracing tensor")
# Known: gradients below the smallest float16, and a sample that is beyond its bound before the fault.
_KNOWN = (("float16", "Softmax2d"), ("bfloat16", "grid_sample"))
# The scale of a norm's argument changes nothing.
_HIDDEN = frozenset({"two norms"})


def dumped(folder: Path, way: Callable[[Net, str], Run], name: str, has_fault: bool = False) -> Path:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run = way(*net(name, has_fault))
        with msdump.watch(config=config(folder)):
            run()
    except (NotImplementedError, RuntimeError) as error:
        if any(words in str(error) for words in _MISSING):
            pytest.skip(str(error).splitlines()[0])
        raise
    finally:
        torch.set_num_threads(threads)
    return folder


def check_healthy(way: str, name: str, folder: Path) -> None:
    mine, golden = (dumped(folder / str(number), one, name) for number, one in enumerate(WAYS[way]))
    comparison = compare_dumps(mine, golden)
    assert comparison.is_agreeing, verdict_of(comparison).findings


def check_fault(way: str, name: str, folder: Path) -> None:
    mine = dumped(folder / "mine", WAYS[way][0], name, has_fault=True)
    finding = verdict_of(compare_dumps(mine, dumped(folder / "golden", WAYS[way][1], name))).findings[0]
    assert (finding.reason, finding.place.side) == (Reason.ONLY_ONE, MINE)
    assert "mul" in finding.place.operator.op_type


ALL = [(way, name) for way in WAYS for name in PIECES]
SLOW = [one for one in ALL if one not in (*QUICK, *_KNOWN)]


@pytest.mark.parametrize(("way", "name"), QUICK)
def test_some_nets_agree_and_a_fault_of_theirs_is_named(way: str, name: str, tmp_path: Path) -> None:
    check_healthy(way, name, tmp_path)
    check_fault(way, name, tmp_path)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")  # of PyTorch's own norm
@pytest.mark.parametrize(("way", "name"), SLOW)
def test_a_right_net_agrees(way: str, name: str, tmp_path: Path) -> None:
    check_healthy(way, name, tmp_path)


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
@pytest.mark.parametrize(("way", "name"), [one for one in SLOW if one[1] not in _HIDDEN])
def test_an_operator_more_is_named(way: str, name: str, tmp_path: Path) -> None:
    check_fault(way, name, tmp_path)


def with_other_weights(model: Net, form: str) -> Run:
    with torch.no_grad():
        model.head.weight *= 1.05
    return training(model, form, torch.bfloat16)


def with_another_epsilon(model: Net, form: str) -> Run:
    for norm in (one for one in model.modules() if isinstance(one, torch.nn.LayerNorm)):
        norm.eps = 0.1
    return training(model, form, torch.bfloat16)


@pytest.mark.parametrize(
    ("way", "operator"),
    [
        (functools.partial(training, dtype=torch.bfloat16, rate=0.13), "aten_add__Tensor"),
        (with_other_weights, "aten_t_default"),
        (with_another_epsilon, "aten_native_layer_norm_default"),
    ],
    ids=["another rate", "other weights", "another epsilon"],
)
def test_inputs_explain_no_attribute_and_no_entry(
    way: Callable[[Net, str], Run], operator: str, tmp_path: Path
) -> None:
    mine, golden = dumped(tmp_path / "mine", way, "norms first"), dumped(tmp_path / "golden", training, "norms first")
    finding = verdict_of(compare_dumps(mine, golden)).findings[0]
    assert finding.place.operator.op_type == operator


def test_inputs_explain_no_nan(tmp_path: Path) -> None:
    """The logarithm of a number that rounding has made negative is one."""
    folders = []
    for name, number in (("mine", -1e-9), ("golden", 1e-9)):
        folders.append(tmp_path / name)
        values = torch.tensor([*range(1, 40), number])
        with msdump.watch(config=config(folders[-1])):
            (values * 1.0).log()
    finding = verdict_of(compare_dumps(*folders)).findings[0]
    assert finding.place.operator.op_type == "aten_log_default"


def test_the_given_tolerance_is_that_of_what_is_computed_again(tmp_path: Path) -> None:
    """An exponential whose input is as far off as the tolerance, and whose result is further than that explains."""
    with msdump.watch(config=config(tmp_path / "golden")):
        torch.linspace(1, 2, 64, dtype=torch.float64).exp()
    shutil.copytree(tmp_path / "golden", tmp_path / "mine")
    for side, factor in (("input", 9e-12), ("output", 5e-11)):
        (file,) = (tmp_path / "mine").rglob(f"*exp*{side}*.npy")
        array = np.load(file) * (1 + factor)
        file.unlink()
        np.save(file, array)
    assert compare_dumps(tmp_path / "mine", tmp_path / "golden").is_agreeing
    assert not compare_dumps(tmp_path / "mine", tmp_path / "golden", tolerance=1e-11).is_agreeing

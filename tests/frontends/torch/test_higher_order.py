"""Operators that call graphs: each is one operator of the dump, as the pages say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from msdump.formats.paths.sync import parse_data_file_name  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402
from tests.torchair.dumps import backend_for, read_steps  # noqa: E402

Function = Callable[[Any], Any]


def branches(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,)) * 2


def loops(x: Any) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin()), (torch.tensor(0), x))[1] * 2


def recomputes(x: Any) -> Any:
    return checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False) * 2


def redraws(x: Any) -> Any:
    return checkpoint(lambda x: torch.nn.functional.dropout(x.sin(), 0.5), x, use_reentrant=False) * 2


# The function, whether it is trained; of all graphs: operators that are dumped, and inner ones that are not.
CASES = [
    (branches, False, {"cond", "aten.mul.Tensor"}, {"aten.sin.default", "aten.cos.default"}),
    (loops, False, {"while_loop", "aten.mul.Tensor"}, {"aten.sin.default", "aten.lt.Scalar"}),
    (recomputes, True, {"aten.sin.default", "aten.exp.default", "aten.cos.default"}, set()),
    (redraws, True, {"run_and_save_rng_state", "run_with_rng_state"}, {"aten.native_dropout.default"}),
]
cases = pytest.mark.parametrize(
    ("function", "is_trained", "shown", "hidden"), CASES, ids=[case[0].__name__ for case in CASES]
)


def run(function: Function, is_trained: bool, chosen: Any) -> None:
    torch._dynamo.reset()
    x = torch.ones(3, 3, requires_grad=is_trained)
    result = torch.compile(function, backend=chosen)(x)
    if is_trained:
        result.sum().backward()
    torch._dynamo.reset()


@cases
def test_a_dump_shows_it_as_one_operator(
    function: Function, is_trained: bool, shown: set[str], hidden: set[str], tmp_path: Path, monkeypatch: Any
) -> None:
    root = dumping.configure(tmp_path, monkeypatch)
    run(function, is_trained, backend)
    report = dumping.close()
    names = [parse_data_file_name(path.name) for path in root.rglob("*.npy")]
    targets = {name.op_name.rpartition("-op")[0] for name in names if name is not None}
    assert shown <= targets and not hidden & targets
    unknown = [reason for reason in report.skipped if reason.startswith("results of ")]
    assert bool(unknown) == (function is redraws)


@cases
def test_the_eager_dump_of_torchair_shows_it_as_one_operator(
    function: Function, is_trained: bool, shown: set[str], hidden: set[str], tmp_path: Path
) -> None:
    run(function, is_trained, backend_for(tmp_path))
    targets = {target for graph in read_steps(tmp_path) for step in graph for target in step.targets.values()}
    assert shown <= targets and not hidden & targets

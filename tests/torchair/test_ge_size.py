"""Sizes that are open, as GE operators: Shape and Gather, arithmetic in Python ints."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from msdump.torchair.ge.convert import convert  # noqa: E402
from msdump.torchair.ge.program import GeModule, runnable  # noqa: E402
from tests.torchair.ge_exact import check_traced, types  # noqa: E402

ROWS = (4, 7, 9)
CASES = [
    (lambda n: n + 1, ["Shape", "Gather", "Add"]),
    (lambda n: n - 1, ["Shape", "Gather", "Sub"]),
    (lambda n: 2 * n, ["Shape", "Gather", "Mul"]),
    (lambda n: n // 2, ["Shape", "Gather", "FloorDiv"]),
    (lambda n: n % 3, ["Shape", "Gather", "Mod"]),
    (lambda n: n**2, ["Shape", "Gather", "Pow"]),
    (lambda n: -n, ["Shape", "Gather", "Neg"]),
    (lambda n: n / 4, ["Shape", "Gather", "Div"]),
    (lambda n: math.floor(n / 4), ["Shape", "Gather", "Div", "Floor"]),
    (lambda n: math.ceil(n / 4), ["Shape", "Gather", "Div", "Ceil"]),
    (lambda n: math.trunc(n / 4), ["Shape", "Gather", "Div", "Trunc"]),
    (lambda n: torch.sym_max(n, 5), ["Shape", "Gather", "Maximum"]),
    (lambda n: torch.sym_min(n, 5), ["Shape", "Gather", "Minimum"]),
    (lambda n: torch.sym_float(n), ["Shape", "Gather", "Cast"]),
    (lambda n: torch.sym_ite(n > 5, n, 2 * n), ["Shape", "Gather", "Greater", "Mul", "SelectV2"]),
    (lambda n: torch.sym_not(n > 5), ["Shape", "Gather", "Greater", "LogicalNot"]),
]


@pytest.mark.parametrize(("function", "spelled"), CASES, ids=["+".join(case[1][2:]) for case in CASES])
def test_arithmetic(function: Any, spelled: list[str]) -> None:
    traced = make_fx(lambda x: (function(x.shape[0]), x + 1), tracing_mode="symbolic")(torch.ones(ROWS[0], 3))
    graph = convert(traced, 1)
    assert sorted(types(graph)) == sorted([*spelled, "Add"])
    run = runnable(graph)
    for rows in ROWS:
        result = run([torch.ones(rows, 3)])[0]
        assert result == function(rows) and type(result) is type(function(rows))


def test_number_of_elements() -> None:
    graph = check_traced(
        lambda x: x / x.numel(), torch.randn(3, 4), also=[(torch.randn(5, 2),), (torch.randn(2, 9),)], symbolic=True
    )
    assert types(graph)[0] == "Shape"


def test_what_is_known_when_compiled_is_not_reckoned_again() -> None:
    graph = check_traced(lambda x: (torch.full_like(x, 2), *x.split(2)), torch.randn(4, 3))
    assert {"Shape", "Cast", "Pack"} <= set(types(graph))
    ran = {op.type for op in GeModule(graph).nodes}
    assert not ran & {"Shape", "Cast", "Pack"}


def test_promises_about_values_are_nothing_to_compute() -> None:
    def function(x: Any) -> Any:
        torch.ops.aten._assert_async.msg((x > -1e9).all(), "too small")
        return x * 2

    assert types(check_traced(function, torch.randn(3)))[-1] == "Mul"

"""Complex numbers as GE operators, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_exact import check_exactly, check_traced  # noqa: E402

aten = torch.ops.aten
X = torch.randn(3, 4)
Z = torch.randn(3, 4, dtype=torch.complex64)
PARTS = "Real(input) Imag(input) Pack(x0,x1)"

CASES = [
    (aten.complex.default, (X, X + 1), "Complex(real,imag)"),
    (aten.polar.default, (X.abs(), X), "Cos(x) Mul(x1,x2) Sin(x) Mul(x1,x2) Complex(real,imag)"),
    (aten.view_as_real.default, (Z,), PARTS),
    (aten.view_as_real.default, (Z[0, 0],), PARTS),
    (aten.view_as_real.default, (Z.to(torch.complex128),), PARTS),
    (aten.view_as_complex.default, (X.view(3, 2, 2),), "Unpack(x) Complex(real,imag)"),
    (aten._conj.default, (Z,), "Conj(input)"),
    (aten._neg_view.default, (X,), "Neg(x)"),
    (aten.vdot.default, (Z[0], Z[1]), "Conj(input) Dot(input_x,input_y)"),
    (aten.vdot.default, (X[0], X[1]), "Dot(input_x,input_y)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_equals_eager(target: Any, args: Any, spelled: str) -> None:
    if target is aten.polar.default:
        # torch reckons both parts at once, in other roundings.
        traced = check_traced(lambda length, angle: torch.polar(length, angle).abs() > 0, *args)
        assert {"Cos", "Sin", "Complex"} <= {op.type for op in traced.ops}
        return
    check_exactly(target, args, spelled)


def test_rotated_positions() -> None:
    """As language models turn queries and keys."""

    def rotated(x: Any, turns: Any) -> Any:
        turned = torch.view_as_complex(x.reshape(3, 2, 2)) * turns
        return torch.view_as_real(turned).flatten(1), (turned * turned.conj()).real

    check_traced(rotated, X, torch.polar(torch.ones(2), torch.arange(2.0)))

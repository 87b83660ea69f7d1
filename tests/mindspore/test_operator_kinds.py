"""Rows of the table of operators: MindSpore's operator computes what PyTorch's of the same kind does."""

from __future__ import annotations

import numpy as np
import pytest

from msdump import mindspore
from msdump.operators.kinds import kind_of
from tests.operators.kind_cases import CASES, arguments

torch = pytest.importorskip("torch")

_ROWS = [(kind, name) for kind, case in CASES.items() for name in case.mindspore]


@pytest.mark.parametrize(("kind", "name"), _ROWS)
def test_mindspore_computes_what_aten_does(kind: str, name: str) -> None:
    assert kind_of(name) == kind
    case = CASES[kind]
    attributes, constants = case.mindspore[name]
    operands = arguments(kind)
    expected = case.aten(torch, *map(torch.from_numpy, operands)).numpy()
    operator = getattr(mindspore.ops, name)(**attributes)
    result = operator(*map(mindspore.Tensor, operands), *constants)
    found = (result[0] if isinstance(result, tuple) else result).asnumpy()
    # The error function of CPUs' kernels is good for about 1e-4 near zero.
    np.testing.assert_allclose(found, expected, rtol=1e-3 if kind == "erf" else 1e-4, atol=1e-5)

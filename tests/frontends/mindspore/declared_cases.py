"""What every declared operator is tried with: operands and attributes, by op type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.frontends.mindspore.ops.declaration import DECLARATIONS


@dataclass(frozen=True)
class Case:
    """Arguments of the function: arrays are operands.

    is_exact  providers give the same values bit for bit (no arithmetic); else as close as their rounding
    has_derivative  False: PyTorch knows none of the first operand, which is an error and not a gradient of zero
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    is_exact: bool = False
    has_derivative: bool = True


def numbers(*shape: int, low: float = 0.1, high: float = 0.9, seed: int = 0) -> Array:
    """float32, evenly spread over a range in a random order."""
    count = int(np.prod(shape, dtype=int))
    values = np.random.default_rng(seed).permutation(np.linspace(low, high, count))
    return values.reshape(shape).astype(np.float32)


def whole(*shape: int, low: int = 1, high: int = 9, seed: int = 0, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


_WHOLE = ("Gcd", "Lcm", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "Invert")
CASES: dict[str, list[Case]] = {
    "Acosh": [Case((numbers(3, 4, low=1.1, high=3),))],
    "Zeta": [Case((numbers(3, low=1.5, high=3), numbers(3, low=1.1, high=2, seed=1)), has_derivative=False)],
    **{name: [Case((numbers(3), numbers(3, seed=1)), has_derivative=False)] for name in ("Igamma", "Igammac")},
    **{
        f"Bessel{name}": [Case((numbers(3, 4),), has_derivative=False)]
        for name in ("J0", "J1", "Y0", "Y1", "K0", "K1", "K0e", "K1e")
    },
    "Ldexp": [Case((numbers(3, 4), whole(4)))],
    "Real": [Case((numbers(3),)), Case((numbers(3).astype(np.complex64),))],
    "Conj": [Case((numbers(3),)), Case(((numbers(3) * 1j).astype(np.complex64),))],
    **{name: [Case((whole(3, 4), whole(4, seed=1))[: 1 if name == "Invert" else 2], is_exact=True)] for name in _WHOLE},
}


def cases_of(op_type: str) -> list[Case]:
    """Those of the table; without attributes else numbers between 0.1 and 0.9 for each operand, which broadcast."""
    if op_type in CASES:
        return CASES[op_type]
    declaration = DECLARATIONS[op_type]
    if declaration.attributes:
        return []
    shapes = [(3, 4), (4,), (3, 1)]
    return [Case(tuple(numbers(*shapes[slot], seed=slot) for slot in range(len(declaration.operand_names))))]

"""Other names of parameters: those of MindSpore 2.0 where 2.7 changed them, and the other way round."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

# Names of the first parameters in their order: functions that take them, too.
_OTHER_NAMES = {
    "abs angle": "polar",
    "condition input other": "select where",
    "dividend divisor": "true_divide",
    "input": "cast hardshrink softshrink unique",
    "input dim": "unbind unsqueeze",
    "input dims": "tile",
    "input exponent": "float_power",
    "input mat2": "mm",
    "input target": "binary_cross_entropy_with_logits",
    "input values": "heaviside",
    "input_x": "gelu mirror_pad selu",
    "input_x mat2": "bmm",
    "inputs": "dstack",
    "n m dtype": "eye",
    "x": """addmv arcsin asinh atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e
            bessel_k1 bessel_k1e bessel_y0 bessel_y1 clamp clip combinations deg2rad frac gather_d hardswish invert
            isfinite isnan mish prelu rad2deg relu6 silu softmax softsign sqrt""",
    "x other": "copysign ldexp",
    "x y": "floor_div floor_mod ge gt kron le less lt maximum minimum ne",
    "x1 x2": "isclose",
}


def accept_other_names(functions: dict[str, Any]) -> None:
    """Let the functions of a namespace take the names of the table.   Raises: KeyError for one that is not there."""
    aliases: dict[str, dict[str, str]] = {}
    for others, users in _OTHER_NAMES.items():
        for user in users.split():
            own = list(inspect.signature(functions[user]).parameters)
            pairs = {other: name for other, name in zip(others.split(), own, strict=False) if other not in own}
            aliases.setdefault(user, {}).update(pairs)
    for user, names in aliases.items():
        functions[user] = _accepting(functions[user], names)


def _accepting(function: Callable[..., Any], aliases: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def accepting(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {aliases.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return accepting

"""Calls of the operators that update weights by one formula each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.primitive import definition_of
from tests.mindspore.kernels.cases import BF16, Case, case, positive, reals, scalar

_FORMULAS = [
    "ApplyAdaMax",
    "ApplyAdadelta",
    "ApplyAdagrad",
    "ApplyAdagradV2",
    "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2",
    "ApplyCenteredRMSProp",
    "ApplyFtrl",
    "ApplyRMSProp",
]
# Operands of one element.
_NUMBERS = [
    "beta1",
    "beta1_power",
    "beta2",
    "beta2_power",
    "epsilon",
    "l1",
    "l2",
    "learning_rate",
    "lr",
    "lr_power",
    "rho",
]
_RMS_PROP = {"rho": 0.9, "momentum": 0.5, "epsilon": 0.1}
_ATTRIBUTES = {"ApplyAdagradV2": {"epsilon": 0.1}, "ApplyRMSProp": _RMS_PROP, "ApplyCenteredRMSProp": _RMS_PROP}


def _call(op_type: str, dtype: type, *shape: int) -> Case:
    names = definition_of(op_type).input_names
    inputs = [scalar(0.5) if name in _NUMBERS else positive(*shape, dtype=dtype) for name in names]
    return case(*inputs, **_ATTRIBUTES.get(op_type, {}))


_SCALARS = [scalar(0.5)] * 6
CASES: dict[str, Sequence[Case]] = {
    **{name: [_call(name, np.float32, 3, 2), _call(name, BF16, 3)] for name in _FORMULAS},
    "AdamNoUpdateParam": [case(positive(3), positive(3), *_SCALARS, reals(3))],
    "FusedAdaFactor": [
        case(
            positive(2), *_SCALARS[:5], reals(3, 2), reals(3, 2), reals(3, 2), positive(3), positive(2), positive(3, 2)
        )
    ],
    "Lamb": [case(positive(3), positive(3), positive(3), *_SCALARS, reals(3))],
}

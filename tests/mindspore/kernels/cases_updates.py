"""Calls of the operators that update weights by one formula each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.mindspore.kernels.updates import RULES, Rule
from tests.mindspore.kernels.cases import BF16, Case, case, ints, positive, reals, scalar

_ATTRIBUTES = {
    "ApplyAdagradV2": {"epsilon": 0.1},
    "SparseApplyAdagrad": {"lr": 0.1},
    "SparseApplyAdagradV2": {"lr": 0.1, "epsilon": 0.1},
    "SparseApplyAdadelta": {"epsilon": 0.1},
    "SparseApplyFtrl": {"lr": 0.1, "l1": 0.2, "l2": 0.3, "lr_power": -0.5},
    "SparseApplyFtrlV2": {"lr": 0.1, "l1": 0.2, "l2": 0.3, "lr_power": -0.5, "l2_shrinkage": 0.1},
    **{
        f"{how}RMSProp": {"rho": 0.9, "momentum": 0.5, "epsilon": 0.1}
        for how in ("Apply", "ApplyCentered", "SparseApply")
    },
    "FusedSparseFtrl": {"lr": 0.1, "l1": 0.2, "l2": 0.3, "lr_power": -0.5},
}


def _call(rule: Rule, dtype: type, *shape: int) -> Case:
    inputs = []
    for name in rule.inputs:
        if name == "indices":
            inputs.append(ints(0, shape[0], 4))
        elif name not in rule.arrays:
            inputs.append(scalar(0.5))
        elif rule.rows and name == rule.arrays[-1]:
            inputs.append(reals(4, *shape[1:], dtype=dtype))
        else:
            inputs.append(positive(*shape, dtype=dtype))
    return case(*inputs, **_ATTRIBUTES.get(rule.op_type, {}))


_NUMBERS = [scalar(0.5)] * 6
CASES: dict[str, Sequence[Case]] = {
    **{name: [_call(rule, np.float32, 3, 2), _call(rule, BF16, 3)] for name, rule in RULES.items()},
    "AdamNoUpdateParam": [case(positive(3), positive(3), *_NUMBERS, reals(3))],
    "Lamb": [case(positive(3), positive(3), positive(3), *_NUMBERS, reals(3))],
    "SquareSumAll": [case(reals(3, 2), reals(4))],
    "LARSUpdate": [case(reals(3, 2), reals(3, 2), *_NUMBERS[:4], hyperpara=0.1, epsilon=0.1)],
    "FusedAdaFactor": [
        case(
            positive(2), *_NUMBERS[:5], reals(3, 2), reals(3, 2), reals(3, 2), positive(3), positive(2), positive(3, 2)
        )
    ],
}

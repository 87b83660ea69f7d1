"""`mindspore.ops.functional`: the functions of `mindspore.ops` under the name that older scripts use."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.ops import function
from msdump.frontends.mindspore.ops.arithmetic import add as tensor_add
from msdump.frontends.mindspore.ops.composite import GradOperation, HyperMap, MultitypeFuncGraph, grad, value_and_grad
from msdump.frontends.mindspore.ops.function import *  # noqa: F403

__all__ = ["GradOperation", "HyperMap", "MultitypeFuncGraph", "grad", "tensor_add", "value_and_grad"]
__all__ += function.__all__

__getattr__ = explain_missing(__name__)

"""`mindspore.common`."""

from __future__ import annotations

from msdump.frontends.mindspore.common import api, dtype, initializer, parameter, seed, tensor
from msdump.frontends.mindspore.common.api import JitConfig, jit, ms_function, ms_memory_recycle
from msdump.frontends.mindspore.common.dtype import *  # noqa: F403
from msdump.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.frontends.mindspore.common.seed import get_seed, set_seed
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.missing import explain_missing

__all__ = [
    "JitConfig",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "api",
    "get_seed",
    "initializer",
    "jit",
    "ms_function",
    "ms_memory_recycle",
    "parameter",
    "seed",
    "set_seed",
    "tensor",
]
__all__ += dtype.__all__
__all__ += ["dtype"]

# `dump` needs cells, which need what is here.
__getattr__ = explain_missing(__name__, lazy=("dump",))

"""`mindspore.common`."""

from __future__ import annotations

from msdump.frontends.mindspore.common import api, dtype, initializer, parameter, seed, tensor
from msdump.frontends.mindspore.common.api import JitConfig, jit, ms_function, ms_memory_recycle
from msdump.frontends.mindspore.common.dtype import *
from msdump.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.frontends.mindspore.common.seed import get_seed, set_seed
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import explain_missing, publish_all

publish_all(__name__, "api", "dtype", "initializer", "parameter", "seed", "tensor")

# `dump` needs cells, which need what is here.
__getattr__ = explain_missing(__name__, lazy=("dump",))

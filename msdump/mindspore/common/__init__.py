"""`mindspore.common`."""

from __future__ import annotations

from msdump.mindspore.common import api, dtype, generator, initializer, parameter, sparse_tensor, tensor
from msdump.mindspore.common.api import *
from msdump.mindspore.common.dtype import *
from msdump.mindspore.common.generator import (
    get_rng_state,
    get_seed,
    initial_seed,
    manual_seed,
    set_rng_state,
    set_seed,
)
from msdump.mindspore.common.mutable import mutable
from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensor, SparseTensor
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__, "api", "dtype", "generator", "initializer", "parameter", "sparse_tensor", "tensor")

# `dump` needs cells, which need what is here.
__getattr__ = explain_missing(__name__, lazy=("dump",))

"""MindSpore's Python interface, as far as training scripts use it, on msdump's graphs and kernels."""

from __future__ import annotations

from typing import Any

from msdump import __version__ as _msdump_version
from msdump.frontends.mindspore import amp, common, communication, context, log, nn, ops, train
from msdump.frontends.mindspore.common import dtype as dtype
from msdump.frontends.mindspore.common import get_seed, set_seed
from msdump.frontends.mindspore.common.api import JitConfig, jit, ms_function, ms_memory_recycle
from msdump.frontends.mindspore.common.dtype import (
    Type,
    bfloat16,
    bool_,
    complex64,
    complex128,
    double,
    dtype_to_nptype,
    dtype_to_pytype,
    float16,
    float32,
    float64,
    float_,
    half,
    int8,
    int16,
    int32,
    int64,
    int_,
    pytype_to_dtype,
    single,
    string,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
)
from msdump.frontends.mindspore.common.dump import set_dump
from msdump.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    ParallelMode,
    get_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
    set_context,
    set_deterministic,
    set_device,
)
from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.ops.composite import grad, value_and_grad
from msdump.frontends.mindspore.train.amp import build_train_network
from msdump.frontends.mindspore.train.callback import *
from msdump.frontends.mindspore.train.convert_utils import *
from msdump.frontends.mindspore.train.data_sink import data_sink
from msdump.frontends.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset
from msdump.frontends.mindspore.train.loss_scale_manager import *
from msdump.frontends.mindspore.train.metrics import *
from msdump.frontends.mindspore.train.model import *
from msdump.frontends.mindspore.train.serialization import *
from msdump.frontends.mindspore.train.sliced_checkpoints import *
from msdump.frontends.mindspore.train.summary import SummaryRecord

# Scripts compare it: the version whose behaviour is shown here.
__version__ = "2.0.0"
# Only this implementation has it: the version of msdump.
__msdump__ = _msdump_version

# `dataset` brings Pillow and `numpy` is rarely used: both are loaded when they are asked for.
__getattr__ = explain_missing(__name__, lazy=("dataset", "numpy"))


def from_numpy(array: Any) -> Tensor:
    """Tensor that shares the array's memory."""
    return Tensor.from_numpy(array)


def tensor(input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None) -> Tensor:
    """A tensor of data."""
    return Tensor(input_data, dtype, shape, init)


publish_all(
    __name__,
    "__msdump__",
    "__version__",
    "amp",
    "common",
    "communication",
    "context",
    "dtype",
    "log",
    "nn",
    "ops",
    "train",
)

"""MindSpore's Python interface, as far as training scripts use it, on msdump's graphs and kernels."""

from __future__ import annotations

from typing import Any

from msdump._version import __version__ as _msdump_version
from msdump.mindspore import amp, common, communication, context, hal, log, nn, ops, parallel, profiler, train
from msdump.mindspore.common import (
    COOTensor,
    CSRTensor,
    RowTensor,
    SparseTensor,
    get_rng_state,
    get_seed,
    initial_seed,
    lazy_inline,
    manual_seed,
    mutable,
    no_inline,
    recompute,
    set_rng_state,
    set_seed,
)
from msdump.mindspore.common import dtype as dtype
from msdump.mindspore.common.api import JitConfig, jit, jit_class, ms_class, ms_function, ms_memory_recycle
from msdump.mindspore.common.dtype import (
    Type,
    bfloat16,
    bool_,
    byte,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype_to_nptype,
    dtype_to_pytype,
    float16,
    float32,
    float64,
    float_,
    get_py_obj_dtype,
    half,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    intp,
    long,
    pytype_to_dtype,
    short,
    single,
    string,
    ubyte,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintc,
    uintp,
    ushort,
)
from msdump.mindspore.common.dump import set_dump
from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    get_context,
    get_current_device,
    set_context,
    set_deterministic,
    set_device,
)
from msdump.mindspore.hal import *
from msdump.mindspore.log import get_level, get_log_config
from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.ops.composite import grad, value_and_grad
from msdump.mindspore.ops.jacobians import get_grad, jacfwd, jacrev, jvp, vjp
from msdump.mindspore.ops.mapping import vmap
from msdump.mindspore.parallel import Layout, shard
from msdump.mindspore.parallel_context import *
from msdump.mindspore.profiler import EnvProfiler, Profiler
from msdump.mindspore.releases import release_name
from msdump.mindspore.run_check import run_check
from msdump.mindspore.train.amp import build_train_network
from msdump.mindspore.train.callback import *
from msdump.mindspore.train.convert_utils import *
from msdump.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from msdump.mindspore.train.loss_scale_manager import *
from msdump.mindspore.train.metrics import *
from msdump.mindspore.train.model import *
from msdump.mindspore.train.serialization import *
from msdump.mindspore.train.sliced_checkpoints import *
from msdump.mindspore.train.summary import SummaryRecord

# Scripts compare it: the version whose behaviour is shown here.
__version__ = release_name()
# Only this implementation has it: the version of msdump.
__msdump__ = _msdump_version

# `dataset` brings Pillow, the others are used by few scripts: all are loaded when they are asked for.
__getattr__ = explain_missing(__name__, lazy=("dataset", "experimental", "mint", "numpy"))


def from_numpy(array: Any) -> Tensor:
    """Tensor that shares the array's memory."""
    return Tensor.from_numpy(array)


def is_tensor(obj: Any) -> bool:
    """Is it a tensor?"""
    return isinstance(obj, Tensor)


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """How deep calls may be nested.   Raises: TypeError, ValueError for anything but an int > 0."""
    if isinstance(recursion_limit, bool) or not isinstance(recursion_limit, int):
        raise TypeError(f"The parameter 'recursion_limit' must be <class 'int'>, but got {type(recursion_limit)}")
    if recursion_limit <= 0:
        raise ValueError(f"recursion_limit: expected an int > 0, got {recursion_limit}.")
    set_context(max_call_depth=recursion_limit)


def tensor(input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None) -> Tensor:
    """A tensor of data."""
    return Tensor(input_data, dtype, shape, init)


publish_all(
    __name__, "__msdump__", "__version__", "amp", "common", "communication", "context", "dtype", "hal", "log", "nn",
    "ops", "parallel", "profiler", "train",
)  # fmt: skip

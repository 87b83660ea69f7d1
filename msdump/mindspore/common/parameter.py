"""Parameter: a named tensor that outlives a run; ParameterTuple: several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from msdump.errors import OperandTypeError, OperandValueError
from msdump.graph import graph as graphs
from msdump.graph.types import TensorType
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.common.hook_handle import HookHandle, check_hook
from msdump.mindspore.common.settings import Setting, flag, is_whole, number, of_kind
from msdump.mindspore.common.tensor import (
    Tensor,
    active_tracer,
    attached_functions,
    attached_initializer,
    attached_put,
)
from msdump.mindspore.common.tensor_data import array_from
from msdump.mindspore.located import located
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

DEFAULT_NAME = "Parameter"
# Data of a kind fits a parameter of the same or a later kind.
_KINDS = {dtypes.BOOL: 0, dtypes.UINT: 1, dtypes.INT: 2, dtypes.FLOAT: 3, dtypes.COMPLEX: 4}


_changes = 0


def count_change() -> None:
    """Something has changed that graphs were compiled for: those of before are compiled anew."""
    global _changes
    _changes += 1


def hook_changes() -> int:
    """How often hooks of parameters came or went, or a shape changed: graphs of before do not have those of now."""
    return _changes


def _check_name(name: Any) -> None:
    if name is not None and not isinstance(name, str):
        raise ValueError(f"The type of the Parameter's name should be 'string' or 'None', but got {type(name)}.")


class Parameter(Tensor):
    """A tensor that graphs read and write in place: the memory stays the same for the object's whole life."""

    requires_grad = flag(True)
    # What other devices, servers of parameters and caches would read.
    cache_enable = flag(False)
    cache_shape = of_kind((tuple, list), "a tuple or a list", ())
    comm_fusion = number(1)
    init_flag = flag(False)
    is_init = flag(True)
    key = of_kind(int, "an int", -1)
    layerwise_parallel = flag(False)
    parallel_optimizer = flag(True)
    parallel_optimizer_comm_recompute = flag(False)
    pipeline_stages = of_kind(list, "a list", list)
    sliced = Setting(False)
    unique = Setting(False)
    # The parameter that came of this one when its data were made: they are there from the beginning.
    inited_param: None = None
    is_persistent_data = False

    @located("Parameter")
    def __init__(
        self, default_input: Any, name: str | None = None, requires_grad: bool = True, layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
    ) -> None:  # fmt: skip
        _check_name(name)
        tensor = default_input if isinstance(default_input, Tensor) else _tensor_of(default_input)
        self._value = None
        self._owner = None
        self._type = tensor.type_
        array = np.array(tensor.array, order="C")
        self.memory = graphs.Parameter(name or DEFAULT_NAME, array, tensor.type_.dtype)
        self._array = array
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer

    @property
    def name(self) -> str:
        return self.memory.name

    @name.setter
    def name(self, name: str | None) -> None:
        _check_name(name)
        self.memory.name = name or DEFAULT_NAME

    @property
    def data(self) -> Parameter:
        return self

    @property
    def value_type(self) -> TensorType:
        return self._type

    def asnumpy(self) -> Array:
        """A copy of the data as it is now: the next step writes the memory in place."""
        return np.array(super().asnumpy())

    numpy = asnumpy

    def copy(self) -> Tensor:
        """The data as they are now; in a program a value of it, through which gradients flow."""
        tracer = active_tracer.get()
        if tracer is not None and tracer.is_binding:
            value: Tensor = attached_functions().reshape(self, self.shape)
            return value
        return Tensor.of_array(self.array.copy())

    @located("Parameter.set_data")
    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Take over the values of `data`, a tensor or a number, in the dtype of this parameter.

        slice_shape   another shape is fine: the parameter takes it on, and graphs that use it are compiled anew
        Raises: TypeError for other data, or a dtype whose kind this one cannot hold (a float for integers);
                ValueError for another shape, but for one element.
        """
        if not isinstance(data, Tensor | int | float):
            raise TypeError(
                f"Parameter {self.name}: expected data as a Tensor, an int or a float, got {type(data).__name__}. "
                "Wrap it: Tensor(data)."
            )
        array = (data if isinstance(data, Tensor) else Tensor(data)).array
        if array.shape != self.shape and array.size == 1 and self.size == 1:
            array = array.reshape(self.shape)
        if array.shape != self.shape and not slice_shape:
            raise OperandValueError(
                f"Parameter {self.name}: expected data of shape {self.shape}, got {tuple(array.shape)}. Set "
                "slice_shape=True if the parameter is to take it on."
            )
        ours, theirs = dtypes.dtype(self._type.dtype), dtypes.dtype_from_numpy(array.dtype)
        if _KINDS[theirs.kind] > _KINDS[ours.kind]:
            raise OperandTypeError(
                f"Parameter {self.name}: expected data of dtype {ours.name}, got {theirs.name}. Cast it."
            )
        if array.shape != self.shape:
            self._take_memory(np.zeros(array.shape, self.memory.array.dtype), self._type.dtype)
        tracer = active_tracer.get()
        if tracer is not None and tracer.recorder is not None:
            # In a step that is dumped the write shows, as the operator that it is.
            is_fitting = isinstance(data, Tensor) and data.type_ == self.type_
            converted = data if is_fitting else Tensor.of_array(array.astype(self.memory.array.dtype))
            attached_functions().assign(self, converted)
        else:
            np.copyto(self.memory.array, array.astype(self.memory.array.dtype))
        return self

    def _take_memory(self, array: Array, dtype: str) -> None:
        """New memory of another shape or dtype, under which no graph of before is found again."""
        tracer = active_tracer.get()
        if tracer is not None and tracer.is_binding:
            raise RuntimeError(
                f"Parameter {self.name}: expected its shape and dtype to stay while a graph runs or a gradient is "
                "taken. Change them before the call."
            )
        self.memory = graphs.Parameter(self.name, array, dtype)
        self._array, self._type = array, TensorType(dtype, tuple(array.shape))
        count_change()

    def register_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """As of a Tensor; the hook stays with the parameter, for all programs that take its gradient."""
        check_hook(hook_fn, "register_hook")
        return HookHandle(self._own_hooks(), (hook_fn,), count_change)

    def __setitem__(self, index: Any, value: Any) -> None:
        tracer = active_tracer.get()
        if tracer is not None and tracer.is_binding:
            attached_functions().assign(self, attached_put()(self, index, value))
            return
        changed = self.copy()
        changed[index] = value
        self.set_data(changed)

    @property
    def _changes_between_runs(self) -> bool:
        tracer = active_tracer.get()
        return tracer is not None and not tracer.is_recording

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> Parameter:
        """This parameter: it has its data from the beginning.   Raises: ValueError for a layout that cuts it."""
        if layout is not None:
            raise ValueError(f"Parameter {self.name}: expected layout=None, got {layout!r}. Its data are never cut.")
        self.sliced = set_sliced
        return self

    def set_init_flag(self, is_init: bool) -> None:
        """Note whether the data were made."""
        self.init_flag = is_init

    def add_pipeline_stage(self, stage: int) -> None:
        """Note that a stage of a pipeline uses it.   Raises: TypeError for anything but an int of 0 or more."""
        if not is_whole(stage):
            raise TypeError("`stage` must be a positive number of int type")
        self.pipeline_stages = [*self.pipeline_stages, stage]

    def set_param_ps(self, init_in_server: bool = False) -> None:
        """Raises: RuntimeError: there is no server of parameters."""
        raise RuntimeError(
            "Must complete following two steps before calling set_param_ps: "
            "\n1. context.set_ps_context(enable_ps=True) \n2. export MS_ROLE environment variable. "
            "msdump has no server of parameters: train without it."
        )

    def set_dtype(self, dtype: Any) -> DType:
        """Hold the data in another dtype from here on, which is returned; graphs of before are compiled anew.

        Edges:  other tensors, such as the moments of an optimizer that was made before, keep their dtype.
        Raises: DtypeError for an unknown dtype; RuntimeError while a graph runs or a gradient is taken.
        """
        name = dtype_name(dtype)
        if name != self._type.dtype:
            self._take_memory(array_from(self.array, name), name)
        return self.dtype

    def assign_value_cpp(self, value: Tensor) -> Parameter:
        """As `set_data`."""
        return self.set_data(value)

    def data_sync(self, wait: bool = True) -> None:
        """The data are always in the memory of the host."""

    def clone(self, init: Any = "same") -> Parameter:
        """A new parameter of the same name, shape and dtype. `init`: "same", or what `initializer` takes."""
        data = (
            Tensor.of_array(self.array.copy())
            if init == "same"
            else attached_initializer()(init, self.shape, DType(self._type.dtype))
        )
        return Parameter(data, self.name, self.requires_grad, self.layerwise_parallel, self.parallel_optimizer)

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__


def _tensor_of(data: Any) -> Tensor:
    """Source: MindSpore: an int becomes int32 here, int64 in a Tensor.   Raises: ValueError for a bool."""
    if isinstance(data, bool):
        raise ValueError("Parameter data can not be `bool`. Wrap it: Tensor(data).")
    return Tensor(data, DType("int32")) if isinstance(data, int) else Tensor(data)


class ParameterTuple(tuple[Parameter, ...]):
    """Parameters with distinct names, in order."""

    def __new__(cls, iterable: Iterable[Parameter] = ()) -> ParameterTuple:
        """Raises: TypeError for anything but parameters, ValueError for two of one name."""
        parameters = tuple(iterable)
        names: set[str] = set()
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                raise TypeError(
                    "For ParameterTuple initialization, the type of all elements in 'iterable' should be 'Parameter', "
                    f"but got {type(parameter).__name__}."
                )
            if parameter.name in names and parameter.name != DEFAULT_NAME:
                raise ValueError(f"The value {parameter} , its name '{parameter.name}' already exists.")
            names.add(parameter.name)
        return tuple.__new__(cls, parameters)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """New parameters named `{prefix}.{name}`, which require gradients as these do."""
        clones = []
        for parameter in self:
            clone = parameter.clone(init)
            clone.name = f"{prefix}.{parameter.name}"
            clones.append(clone)
        return ParameterTuple(clones)

"""Tensor: what scripts hold. It wraps an array, or a value of the graph that is being traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.errors import GraphError, TracedValueError
from msdump.graph.graph import Value
from msdump.graph.types import TensorType
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.common.hook_handle import HookHandle, check_hook
from msdump.mindspore.common.tensor_data import array_from, as_shape
from msdump.mindspore.common.ufuncs import applied
from msdump.mindspore.located import located
from msdump.mindspore.other_paths import left_out
from msdump.mindspore.reference import advice
from msdump.mindspore.sources import user_line
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.text import scalar_text, values_text

# What operators of this thread go to: a Tracer, or None when they run at once.
active_tracer: ContextVar[Any] = ContextVar("msdump_mindspore_tracer", default=None)

_attached: dict[str, Any] = {}


def attach(functions: Any, take: Any, put: Any, initializer: Any) -> None:
    """Give tensors what is written in terms of tensors. Called once, by `ops.function`.

    functions    module of the functions of `mindspore.ops`
    take         `x[index]` as a function
    put          `x[index] = value` as a function that gives the new tensor
    initializer  `mindspore.common.initializer.initializer`
    """
    _attached.update(functions=functions, take=take, put=put, initializer=initializer)


def _arithmetic(name: str, is_swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Operator method that calls the function `name` of `mindspore.ops`."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        function = getattr(attached_functions(), name)
        return function(other, self) if is_swapped else function(self, other)

    return method


def attached_functions() -> Any:
    """The functions of `mindspore.ops`."""
    return _attached["functions"]


def attached_put() -> Any:
    """`x[index] = value` as a function that gives the new tensor."""
    return _attached["put"]


def attached_initializer() -> Any:
    """The function `initializer`."""
    return _attached["initializer"]


# Text of a tensor of a graph that is traced, with the number of its value.
MARK_PATTERN = r"Tensor\(shape=\[[0-9, ]*\], dtype=\w+, value=<known when the graph runs: %[0-9]+>\)"

# A dimension that only the data decide, which scripts write as None.
OPEN = -1


class Tensor:
    """A multi-dimensional array with a dtype.

    Concrete tensors own their array. Tensors met while a graph is traced have a type but no data.
    """

    _array: Array | None
    _type: TensorType
    _value: Value | None
    _owner: object | None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return applied(Tensor, ufunc, method, inputs, options)

    @located("Tensor")
    def __init__(
        self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, internal: bool = False,
        const_arg: bool = False,
    ) -> None:  # fmt: skip
        """Dtypes: Python float -> float32, int -> int64, bool -> bool; numpy arrays keep theirs.

        Edges:  None in `shape` leaves a dimension open; such a tensor has no data and is for `Cell.set_inputs` alone.
        Raises: TypeError for data that is no number, list, array or tensor; DtypeError for an unknown dtype.
        """
        self._value = self._owner = None
        if isinstance(input_data, Tensor) and input_data._changes_between_runs:
            input_data = input_data.copy()
        if isinstance(input_data, Tensor) and not input_data.is_concrete:
            name = dtype_name(dtype) if dtype is not None else input_data.type_.dtype
            other = input_data if name == input_data.type_.dtype else attached_functions().cast(input_data, name)
            self._type, self._array = other._type, other._array
            self._value, self._owner = other._value, other._owner
            return
        if init is not None:
            if input_data is not None or shape is None or dtype is None:
                raise ValueError("Tensor: expected shape and dtype, and no input_data, together with init.")
            input_data = _initialized(init, shape, dtype)
        elif input_data is None and isinstance(shape, tuple | list) and None in shape:
            self._declare(shape, dtype)
            return
        elif input_data is None and shape is not None and dtype is not None:
            input_data = np.zeros(as_shape(shape), dtypes.dtype(dtype_name(dtype)).numpy)
        array = array_from(input_data.array if isinstance(input_data, Tensor) else input_data, dtype)
        self._array = array
        self._type = TensorType(dtypes.dtype_from_numpy(array.dtype).name, tuple(array.shape))

    def _declare(self, shape: Sequence[int | None], dtype: Any) -> None:
        if dtype is None:
            raise ValueError("Tensor: expected a dtype together with a shape that has None in it, got none.")
        self._array = None
        self._type = TensorType(dtype_name(dtype), tuple(OPEN if size is None else int(size) for size in shape))

    @classmethod
    def of_array(cls, array: Array) -> Tensor:
        """Concrete tensor around `array` itself, without a copy."""
        tensor = Tensor.__new__(Tensor)
        tensor._value = tensor._owner = None
        tensor._array = array
        tensor._type = TensorType(dtypes.dtype_from_numpy(array.dtype).name, tuple(array.shape))
        return tensor

    @classmethod
    def of_text(cls, array: Array) -> Tensor:
        """Concrete tensor of strings, as datasets give them: it can be looked at, no operator takes it."""
        tensor = Tensor.__new__(Tensor)
        tensor._value = tensor._owner = None
        tensor._array, tensor._type = array, TensorType("string", tuple(array.shape))
        return tensor

    @classmethod
    def of_value(cls, value: Value, owner: object, array: Array | None = None) -> Tensor:
        """Tensor that shows a value of the graph of `owner`; with `array` it is concrete as well."""
        tensor = Tensor.__new__(Tensor)
        tensor._value, tensor._owner = value, owner
        tensor._array, tensor._type = array, value.type
        return tensor

    @staticmethod
    def from_numpy(array: Array) -> Tensor:
        """Tensor that shares the array's memory.   Raises: TypeError for anything but an array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"The input of from_numpy must be numpy.ndarray, but got {type(array).__name__}.")
        return Tensor.of_array(np.ascontiguousarray(array) if array.ndim else array)

    # -- what it is ---------------------------------------------------------------------------------

    @property
    def is_concrete(self) -> bool:
        """Is there data, or only a type?"""
        return self._array is not None

    @property
    def type_(self) -> TensorType:
        return self._type

    def value_owned_by(self, owner: object) -> Value | None:
        """The graph value behind this tensor, None when it does not come from that graph."""
        return self._value if self._owner is owner else None

    @property
    def array(self) -> Array:
        """The data.   Raises: GraphError for a tensor of a graph that is being traced."""
        if self._is_declared:
            raise GraphError("Tensor: a tensor with None in its shape has no data. It is for Cell.set_inputs alone.")
        if self._array is None:
            raise GraphError(
                "a tensor that another construct made while it was traced has no value here. Return it from that "
                "construct instead of keeping it in an attribute or a global."
            )
        return self._array

    @property
    def _is_declared(self) -> bool:
        """Is it a type only, for `Cell.set_inputs`?"""
        return self._array is None and self._value is None and OPEN in self.shape

    def detach(self) -> None:
        """Make this tensor its data alone, no longer a value of a graph."""
        self._value = self._owner = None

    @property
    def _is_symbolic(self) -> bool:
        """Is it part of a program under construction, so that only operators may read or change it?"""
        if self._array is None or self._value is None:
            return self._array is None
        tracer = active_tracer.get()
        return tracer is not None and tracer.is_binding and tracer.owns(self)

    def _concrete(self, wish: str, instead: str, error: type[GraphError] = GraphError) -> Array:
        if self._is_declared:
            return self.array
        if self._array is None or self._changes_between_runs:
            line, tracer = user_line(), active_tracer.get()
            refused = error(
                f"{line or 'construct'}: expected something that is known while the graph is traced, got {wish} of "
                f"a tensor {self._type}. {instead}, or run with set_context(mode=PYNATIVE_MODE)."
            )
            if tracer is not None:
                tracer.note_refusal(refused)
            raise refused
        return self._array

    @property
    def _changes_between_runs(self) -> bool:
        """Is it data that a graph under construction reads anew in each run?"""
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def dtype(self) -> DType:
        return DType(self._type.dtype)

    @property
    def ndim(self) -> int:
        return self._type.ndim

    @property
    def size(self) -> int:
        return self._type.size

    @property
    def itemsize(self) -> int:
        return dtypes.dtype(self._type.dtype).itemsize

    @property
    def nbytes(self) -> int:
        return self._type.size_bytes

    @property
    def T(self) -> Tensor:
        return self.transpose()

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return self.size

    # -- data out -----------------------------------------------------------------------------------

    def asnumpy(self) -> Array:
        """The data as a numpy array; bfloat16 comes as float32.   Raises: GraphError while a graph is traced."""
        array = self._concrete("asnumpy()", "Compute with mindspore.ops, and call asnumpy() on what the net returns")
        return array.astype(np.float32) if self._type.dtype == "bfloat16" else array

    numpy = asnumpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.asnumpy()
        return array.astype(dtype) if dtype is not None else np.array(array)

    @located("Tensor.item", keeps=(IndexError,))
    def item(self, index: Any = None) -> Any:
        """One element as a Python number. `index`: a position or a tuple; None for a tensor of one element."""
        array = self._concrete("item()", "Compute with mindspore.ops")
        return array.item() if index is None else array.item(index)

    def tolist(self) -> Any:
        return self._concrete("tolist()", "Compute with mindspore.ops").tolist()

    def init_data(self, *_: Any, **__: Any) -> Tensor:
        """This tensor: initializers have run already."""
        return self

    @located("Tensor.__bool__")
    def __bool__(self) -> bool:
        instead = "Use ops.select or ops.where, or multiply by a mask"
        array = self._concrete("the truth", instead, TracedValueError)
        if array.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()."
            )
        return bool(array)

    @located("Tensor.__float__")
    def __float__(self) -> float:
        return float(self._concrete("float()", "Compute with mindspore.ops").item())

    @located("Tensor.__int__")
    def __int__(self) -> int:
        return int(self._concrete("int()", "Compute with mindspore.ops").item())

    @located("Tensor.__index__")
    def __index__(self) -> int:
        array = self._concrete("a Python index", "Index with the tensor itself, or use ops.gather", TracedValueError)
        if array.dtype.kind not in "iu" or array.size != 1:
            raise TypeError("only integer tensors of one element can be converted to a scalar index.")
        return int(array.item())

    @located("Tensor.__iter__")
    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor.")
        return iter([self[index] for index in range(self.shape[0])])

    @located("Tensor.__len__")
    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor.")
        return self.shape[0]

    # -- text ---------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Source: MindSpore's repr: a line break before a value of more than one row, a blank otherwise."""
        head = f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value="
        if self._array is None:
            if self._value is not None and (tracer := active_tracer.get()) is not None:
                tracer.note_text(self._value.id)
            number = "" if self._value is None else f": %{self._value.id}"
            return f"{head}<known when the graph runs{number}>)"
        value = self.asnumpy()
        if value.dtype.kind in "US":
            text = np.array2string(value, separator=", ") if self.ndim else repr(value.item())
            return f"{head} {text})"
        if self.ndim == 0:
            return f"{head} {scalar_text(value)})"
        return f"{head}{chr(10) if self.ndim > 1 else ' '}{values_text(value)})"

    def __str__(self) -> str:
        return str(self._array) if self._array is not None else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    # -- operators ----------------------------------------------------------------------------------

    __add__, __radd__ = _arithmetic("add"), _arithmetic("add", True)
    __sub__, __rsub__ = _arithmetic("sub"), _arithmetic("sub", True)
    __mul__, __rmul__ = _arithmetic("mul"), _arithmetic("mul", True)
    __truediv__, __rtruediv__ = _arithmetic("div"), _arithmetic("div", True)
    __floordiv__, __rfloordiv__ = _arithmetic("floor_div"), _arithmetic("floor_div", True)
    __mod__, __rmod__ = _arithmetic("floor_mod"), _arithmetic("floor_mod", True)
    __pow__, __rpow__ = _arithmetic("pow"), _arithmetic("pow", True)
    __matmul__, __rmatmul__ = _arithmetic("matmul"), _arithmetic("matmul", True)
    __lt__, __le__ = _arithmetic("less"), _arithmetic("less_equal")
    __gt__, __ge__ = _arithmetic("greater"), _arithmetic("greater_equal")
    __and__, __or__ = _arithmetic("logical_and"), _arithmetic("logical_or")

    def __eq__(self, other: object) -> Any:
        return attached_functions().equal(self, other) if isinstance(other, _OPERANDS) else False

    def __ne__(self, other: object) -> Any:
        return attached_functions().not_equal(self, other) if isinstance(other, _OPERANDS) else True

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Tensor:
        return self._call("neg")

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return self._call("abs")

    def __invert__(self) -> Tensor:
        return self._call("logical_not")

    def __getitem__(self, index: Any) -> Tensor:
        return _attached["take"](self, index)

    @located("index", keeps=(IndexError,))
    def __setitem__(self, index: Any, value: Any) -> None:
        tracer = active_tracer.get()
        if tracer is not None and tracer.is_binding:
            operands = (self, value, *(index if isinstance(index, tuple) else (index,)))
            if any(isinstance(each, Tensor) and each._is_symbolic for each in operands):
                new = _attached["put"](self, index, value)
                if new is not self:
                    tracer.forget(self)
                    self._value, self._owner, self._array = new._value, new._owner, new._array
                return
        if tracer is not None:
            new = self._recorded_put(tracer, index, value)
            tracer.forget(self)
            if new is not None:
                # The memory stays the same: arrays that the script took from this tensor show the new elements.
                np.copyto(self.array, new.array)
                self._value, self._owner = new._value, new._owner
                return
        index = index.asnumpy() if isinstance(index, Tensor) else index
        self.array[index] = value.asnumpy() if isinstance(value, Tensor) else value

    def _recorded_put(self, tracer: Any, index: Any, value: Any) -> Tensor | None:
        """The operator of an assignment in a step that a dump watches; None where numpy alone takes the index."""
        if tracer.recorder is None:
            return None
        try:
            new: Tensor = _attached["put"](self, index, value)
        except GraphError:
            return None
        return None if new is self else new

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only for names that are not there.   Raises: AttributeError with the nearest one."""
            kind = "Parameter" if type(self).__name__ == "Parameter" else "Tensor"
            message = f"'{kind}' object has no attribute '{name}'"
            if not name.startswith("_"):
                names = [each for each in dir(type(self)) if not each.startswith("_")]
                message += f" in msdump. {advice(kind, name, names, left_out('Tensor', name))}"
            raise AttributeError(message, name=name, obj=self)

    # -- hooks ----------------------------------------------------------------------------------------

    # Hooks of a tensor that no program has made; each in a tuple of its own.
    gradient_hooks: Sequence[tuple[Callable[..., Any]]] = ()

    def register_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(gradient)` with the gradient of this tensor; what it returns, unless None, takes its place.

        Raises: TypeError for anything but a function.
        """
        check_hook(hook_fn, "register_hook")
        tracer = active_tracer.get()
        value = None if tracer is None else tracer.known_value(self)
        if value is not None and tracer.is_in_subgraph:
            raise GraphError(
                f"{user_line() or 'register_hook'}: expected a tensor outside of branches and loops on values of "
                "tensors. Use ops.InsertGradientOf outside, or run with set_context(mode=PYNATIVE_MODE)."
            )
        hooks = self._own_hooks() if value is None else tracer.gradient_hooks.setdefault(value.id, [])
        return HookHandle(hooks, (hook_fn,))

    def _own_hooks(self) -> list[tuple[Callable[..., Any]]]:
        if not isinstance(self.gradient_hooks, list):
            self.gradient_hooks = []
        return self.gradient_hooks

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(attached_functions(), name)(self, *args, **kwargs)

    # -- members that are functions of `mindspore.ops` ------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        """This tensor in another dtype; a new tensor also when it is the same, unless `copy` is false."""
        if dtype_name(dtype) == self._type.dtype:
            return self.copy() if copy else self
        return self._call("cast", dtype)

    to = astype

    def set_dtype(self, dtype: Any) -> DType:
        """Be a tensor of another dtype from here on, which is returned.   Raises: DtypeError for an unknown dtype."""
        name, tracer = dtype_name(dtype), active_tracer.get()
        if name != self._type.dtype:
            is_operator = self._is_symbolic or (tracer is not None and tracer.recorder is not None)
            new = self._call("cast", name) if is_operator else Tensor.of_array(array_from(self.array, name))
            if tracer is not None:
                tracer.forget(self)
            self._value, self._owner, self._array, self._type = new._value, new._owner, new._array, new._type
        return self.dtype

    def copy(self) -> Tensor:
        """A tensor with data of its own."""
        return self if self._is_symbolic else Tensor.of_array(self.array.copy())

    def reshape(self, *shape: Any) -> Tensor:
        return self._call("reshape", as_shape(shape))

    view = reshape

    def flatten(self, order: str | int = "C", *places: int, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        # MindSpore 2.7 also takes (start_dim, end_dim).
        given = (order, *places) if isinstance(order, int) else places
        start_dim, end_dim = (*given, *(start_dim, end_dim)[len(given) :])
        return self._call("flatten", order if isinstance(order, str) else "C", start_dim=start_dim, end_dim=end_dim)

    def transpose(self, *axes: Any) -> Tensor:
        """Axes in another order, reversed without one; two of more axes are exchanged, as in MindSpore 2.7."""
        order = as_shape(axes) if axes else tuple(reversed(range(self.ndim)))
        if len(axes) == 2 and self.ndim > 2:
            return self.swapaxes(*order)
        return self._call("transpose", order)

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        return self._call("swapaxes", axis0, axis1)

    def expand_dims(self, axis: int) -> Tensor:
        return self._call("expand_dims", axis)

    unsqueeze = expand_dims

    def squeeze(self, axis: Any = None) -> Tensor:
        return self._call("squeeze", axis)

    def mean(self, axis: Any = None, keep_dims: bool = False) -> Tensor:
        return self._call("mean", axis, keep_dims)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
        if isinstance(dtype, bool):
            # MindSpore 2.7 also takes (dim, keepdim).
            dtype, keepdims = None, dtype
        total = (self if dtype is None else self.astype(dtype))._call("sum", axis, keepdims)
        return total if initial is None else total + initial

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self._call("argmax", axis, keepdims)

    def all(self, axis: Any = None, keep_dims: bool = False) -> Tensor:
        return self._call("all", axis, keep_dims)

    def any(self, axis: Any = None, keep_dims: bool = False) -> Tensor:
        return self._call("any", axis, keep_dims)

    def abs(self) -> Tensor:
        return self._call("abs")

    def exp(self) -> Tensor:
        return self._call("exp")

    def log(self) -> Tensor:
        return self._call("log")

    def sqrt(self) -> Tensor:
        return self._call("sqrt")

    def pow(self, exponent: Any) -> Tensor:
        return self._call("pow", exponent)

    def matmul(self, other: Tensor) -> Tensor:
        return self._call("matmul", other)


_OPERANDS = (Tensor, bool, int, float, np.ndarray, np.generic, list, tuple)


def _initialized(init: Any, shape: Any, dtype: Any) -> Array:
    array: Array = attached_initializer()(init, as_shape(shape), dtype).array
    return array

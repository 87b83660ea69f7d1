"""`mindspore.float32` and its family: the dtypes that scripts name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import DtypeError
from msdump.tensors import dtypes

__all__ = [
    "DType", "Type", "bfloat16", "bool_", "byte", "complex64", "complex128", "double", "dtype_to_nptype",
    "dtype_to_pytype", "float16", "float32", "float64", "float_", "float_type", "get_py_obj_dtype", "half", "int8",
    "int16", "int32", "int64", "int_", "int_type", "intc", "intp", "number_type", "pytype_to_dtype", "short", "single",
    "string", "ubyte", "uint", "uint8", "uint16", "uint32", "uint64", "uint_type", "uintc", "uintp", "ushort",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class DType:
    """A dtype as scripts see it; equal to another with the same name."""

    name: str

    def __repr__(self) -> str:
        return dtypes.dtype(self.name).ir_name

    __str__ = __repr__

    @property
    def numpy(self) -> np.dtype[Any]:
        return dtypes.dtype(self.name).numpy


Type = DType
bool_ = DType("bool")
int8, int16, int32, int64 = (DType(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{bits}") for bits in (16, 32, 64))
bfloat16 = DType("bfloat16")
complex64, complex128 = DType("complex64"), DType("complex128")
string = DType("string")
byte, short, intc, intp = int8, int16, int32, int64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
half, single, double = float16, float32, float64
long, cfloat, cdouble = int64, complex64, complex128
int_, uint, float_ = int32, uint32, float32

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64)
number_type = (*int_type, *uint_type, *float_type)

_OF_PYTHON = {bool: "bool", int: "int64", float: "float32"}


def dtype_name(what: Any) -> str:
    """Table name of a DType, a numpy dtype, a Python type or a name.   Raises: DtypeError."""
    if isinstance(what, DType):
        return what.name
    if isinstance(what, str):
        return dtypes.dtype(what).name
    if isinstance(what, type) and what in _OF_PYTHON:
        return _OF_PYTHON[what]
    try:
        if what is None:
            raise TypeError("numpy takes None for float64")
        return dtypes.dtype_from_numpy(what).name
    except TypeError as error:
        raise DtypeError(f"dtype: expected one such as mindspore.float32, got {what!r}.") from error


def dtype_to_nptype(type_: DType) -> Any:
    """numpy scalar type of a dtype."""
    return type_.numpy.type


def pytype_to_dtype(obj: Any) -> DType:
    """Dtype of a Python or numpy type."""
    return DType(dtype_name(obj))


def get_py_obj_dtype(obj: Any) -> DType:
    """Dtype of a Python object as an operand: int64, float64, bool or string.   Raises: DtypeError for the rest."""
    if isinstance(obj, str):
        return string
    if isinstance(getattr(obj, "dtype", None), DType):
        dtype: DType = obj.dtype
        return dtype
    kinds = {bool: bool_, int: int64, float: float64}
    if type(obj) not in kinds:
        raise DtypeError(f"get_py_obj_dtype: expected a number, text or tensor, got {type(obj).__name__}.")
    return kinds[type(obj)]


_PYTHON_OF_KIND = {"bool": bool, "int": int, "uint": int, "float": float}


def dtype_to_pytype(type_: DType) -> type:
    """Python type that holds one element of a dtype.   Raises: DtypeError for complex and strings."""
    kind = dtypes.dtype(type_.name).kind
    if kind not in _PYTHON_OF_KIND:
        raise DtypeError(f"dtype_to_pytype: expected a bool, int or float dtype, got {type_}.")
    return _PYTHON_OF_KIND[kind]

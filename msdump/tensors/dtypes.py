"""THE dtype table: one row per dtype, with its name or number in every format msdump touches.

Other modules derive their tables from this one; `tests/test_tables.py` tells the few that list dtypes for reasons of
their own. Numbers come from: debug_graph.proto `DataType` (MindSpore), dump_data.proto `OutputDataType` (CANN), GE
`DataType` / aclDataType, onnx.proto `TensorProto.DataType`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from msdump.errors import DtypeError, did_you_mean

FLOAT, INT, UINT, BOOL, COMPLEX, OTHER = "float", "int", "uint", "bool", "complex", "other"


@dataclass(frozen=True)
class Dtype:
    """One dtype.

    name         lower case, as statistic.csv says it ("float32")
    ir_name      as MindSpore's IR says it ("Float32")
    kind         "float", "int", "uint", "bool", "complex" or "other"
    bits         bits per element in a packed buffer (int4: 4, uint1: 1)
    debug_number / acl_number / ge_number / onnx_number   enum values; None where the format has none, or no array
    safetensors_name   in a header of that format; None where it has none
    npy_name     dtype that stands for it in a .npy file (bfloat16 -> float32)
    numpy_type   numpy scalar type or dtype of an array in memory; None for strings
    """

    name: str
    ir_name: str
    kind: str
    bits: int
    debug_number: int | None
    acl_number: int | None
    ge_number: int | None
    onnx_number: int | None
    safetensors_name: str | None
    npy_name: str
    numpy_type: Any

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """numpy dtype of an array of this dtype in memory."""
        if self.numpy_type is None:
            raise DtypeError(f"dtype {self.name}: has no array form.")
        array_dtype: np.dtype[Any] = np.dtype(self.numpy_type)
        return array_dtype

    @property
    def itemsize(self) -> int:
        """Bytes per element in memory (packed dtypes take a whole byte each in memory)."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

    @property
    def may_be_non_finite(self) -> bool:
        """True when an element can be NaN or Inf."""
        return self.kind in (FLOAT, COMPLEX) or (self.kind == OTHER and self.numpy_type is not None)

    @property
    def ge_name(self) -> str:
        """Name in ge_ir.proto and in the files of ACL: "DT_FLOAT16"."""
        return f"DT_{_GE_NAMES.get(self.name, self.name.upper())}"

    @property
    def is_dumped(self) -> bool:
        """True when a file of a dump can say it; other dtypes only cross the border of a model."""
        return self.acl_number is not None

    @property
    def is_widened(self) -> bool:
        """True when a .npy file holds it in another dtype."""
        return self.npy_name != self.name


_GE_NAMES = {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BF16"}
_M = ml_dtypes
TABLE: tuple[Dtype, ...] = (
    # name, ir_name, kind, bits, numbers of debug_graph, ACL, GE, ONNX; name in safetensors; dtype in npy; numpy
    Dtype("bool", "Bool", BOOL, 8, 1, 11, 12, 9, "BOOL", "bool", np.bool_),
    Dtype("int8", "Int8", INT, 8, 2, 3, 2, 3, "I8", "int8", np.int8),
    Dtype("int16", "Int16", INT, 16, 3, 5, 6, 5, "I16", "int16", np.int16),
    Dtype("int32", "Int32", INT, 32, 4, 7, 3, 6, "I32", "int32", np.int32),
    Dtype("int64", "Int64", INT, 64, 5, 8, 9, 7, "I64", "int64", np.int64),
    Dtype("uint8", "UInt8", UINT, 8, 6, 4, 4, 2, "U8", "uint8", np.uint8),
    Dtype("uint16", "UInt16", UINT, 16, 7, 6, 7, 4, "U16", "uint16", np.uint16),
    Dtype("uint32", "UInt32", UINT, 32, 8, 9, 8, 12, "U32", "uint32", np.uint32),
    Dtype("uint64", "UInt64", UINT, 64, 9, 10, 10, 13, "U64", "uint64", np.uint64),
    Dtype("float16", "Float16", FLOAT, 16, 10, 2, 1, 10, "F16", "float16", np.float16),
    Dtype("float32", "Float32", FLOAT, 32, 11, 1, 0, 1, "F32", "float32", np.float32),
    Dtype("float64", "Float64", FLOAT, 64, 12, 12, 11, 11, "F64", "float64", np.float64),
    Dtype("bfloat16", "BFloat16", FLOAT, 16, None, 27, 27, 16, "BF16", "float32", _M.bfloat16),
    Dtype("complex64", "Complex64", COMPLEX, 64, None, 16, 16, 14, "C64", "complex64", np.complex64),
    Dtype("complex128", "Complex128", COMPLEX, 128, None, 17, 17, 15, None, "complex128", np.complex128),
    Dtype("float8_e5m2", "Float8E5M2", FLOAT, 8, None, 34, 35, 19, "F8_E5M2", "float32", _M.float8_e5m2),
    Dtype("float8_e4m3fn", "Float8E4M3FN", FLOAT, 8, None, 35, 36, 17, "F8_E4M3", "float32", _M.float8_e4m3fn),
    Dtype("float8_e5m2fnuz", "Float8E5M2FNUZ", FLOAT, 8, None, None, None, 20, None, "float32", _M.float8_e5m2fnuz),
    Dtype("float8_e4m3fnuz", "Float8E4M3FNUZ", FLOAT, 8, None, None, None, 18, None, "float32", _M.float8_e4m3fnuz),
    Dtype("float8_e8m0", "Float8E8M0", FLOAT, 8, None, 36, None, 24, None, "float32", _M.float8_e8m0fnu),
    Dtype("float6_e3m2", "Float6E3M2", FLOAT, 8, None, 37, None, None, None, "float32", _M.float6_e3m2fn),
    Dtype("float6_e2m3", "Float6E2M3", FLOAT, 8, None, 38, None, None, None, "float32", _M.float6_e2m3fn),
    Dtype("float4_e2m1", "Float4E2M1", FLOAT, 4, None, 39, None, 23, None, "float32", _M.float4_e2m1fn),
    Dtype("int4", "Int4", INT, 4, None, 28, 29, 22, None, "int8", _M.int4),
    Dtype("uint4", "UInt4", UINT, 4, None, None, None, 21, None, "uint8", _M.uint4),
    Dtype("int2", "Int2", INT, 2, None, 30, 31, 26, None, "int8", _M.int2),
    Dtype("uint2", "UInt2", UINT, 2, None, 31, 32, 25, None, "uint8", _M.uint2),
    Dtype("uint1", "UInt1", UINT, 1, None, 29, 30, None, None, "uint8", np.uint8),
    Dtype("hifloat8", "HiFloat8", OTHER, 8, None, 33, 34, None, None, "float32", np.uint8),
    Dtype("string", "String", OTHER, 8, 13, 13, 13, None, None, "string", None),
)

BY_NAME = {row.name: row for row in TABLE}
# RESOURCE in both enumerations: a handle. The files of a dump hold it as int64.   Source: CANN, msaccucmp.
RESOURCE_NUMBER = 23
BY_ACL_NUMBER = {row.acl_number: row for row in TABLE if row.acl_number is not None} | {
    RESOURCE_NUMBER: BY_NAME["int64"]
}
BY_GE_NUMBER = {row.ge_number: row for row in TABLE if row.ge_number is not None}
BY_ONNX_NUMBER = {row.onnx_number: row for row in TABLE if row.onnx_number is not None}
BY_DEBUG_NUMBER = {row.debug_number: row for row in TABLE if row.debug_number is not None}
# uint8 stands for itself, not for uint1 or hifloat8, which only borrow its bytes: first row wins.
_BY_NUMPY: dict[Any, Dtype] = {}
for _row in TABLE:
    if _row.numpy_type is not None:
        _BY_NUMPY.setdefault(np.dtype(_row.numpy_type), _row)

# Spellings that users and the dump guide's list of dtypes use.
ALIASES = {
    "int": "int32",
    "uint": "uint32",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bool_": "bool",
}

# Dtypes that MindSpore Dump saves.   Source: MindSpore dump guide, notes.
MINDSPORE_DUMPED = frozenset(
    {
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
    }
)

# Dtypes that all operators of PyTorch compute with, on any machine.
TORCH_COMPUTED = frozenset(
    row.name
    for row in TABLE
    if row.kind != OTHER and row.bits >= 8 and not row.is_widened and (row.kind != UINT or row.bits == 8)
)


def dtype(name: str) -> Dtype:
    """Row for a name or alias.   Raises: DtypeError with the nearest name."""
    row = BY_NAME.get(ALIASES.get(name, name))
    if row is None:
        known = [*BY_NAME, *ALIASES]
        raise DtypeError(f'dtype: expected one of the table, got "{name}". {did_you_mean(name, known)}'.rstrip())
    return row


def float_limits(numpy_type: np.dtype[Any]) -> Any:
    """`min`, `max`, `eps` and the like of a float dtype, narrow ones such as bfloat16 included."""
    return ml_dtypes.finfo(numpy_type)  # type: ignore[no-untyped-call]


def dtype_from_numpy(array_dtype: Any) -> Dtype:
    """Row for a numpy dtype; byte order does not matter.   Raises: DtypeError for object, str, datetime..."""
    row = _BY_NUMPY.get(array_dtype)
    if row is not None:
        return row
    native = np.dtype(array_dtype).newbyteorder("=")
    row = _BY_NUMPY.get(native)
    if row is None:
        raise DtypeError(f"dtype: numpy dtype {native} has no counterpart in the dtype table.")
    return row

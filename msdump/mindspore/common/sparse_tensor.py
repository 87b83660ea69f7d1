"""Sparse tensors: positions and values, as far as scripts build them, look at them and make them dense."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from msdump.mindspore.common.dtype import DType
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.tensors.arrays import Array


class _Sparse:
    """What all sparse tensors have: values and a dense shape."""

    values: Tensor
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """Dtype of the values."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """Values that are there."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return self.values.itemsize

    @property
    def ndim(self) -> int:
        """Axes of the dense tensor."""
        return len(self.shape)

    def _head(self) -> str:
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}"


def _check(kind: str, is_right: bool, expected: str, got: Any) -> None:
    if not is_right:
        raise ValueError(f"For {kind}, expected {expected}, but got {got}.")


def _indices(kind: str, name: str, data: Any) -> Tensor:
    tensor = data if isinstance(data, Tensor) else Tensor(data)
    if tensor.type_.dtype not in ("int16", "int32", "int64"):
        raise TypeError(f"For {kind}, '{name}' must be int16, int32 or int64, but got {tensor.dtype}.")
    return tensor


def _shape(kind: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        raise TypeError(f"For {kind}, 'shape' must be a tuple of int, but got {shape!r}.")
    return shape


@final
class COOTensor(_Sparse):
    """Values at positions: indices [n, axes], values [n]. Values at one position are added up."""

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None) -> None:
        if coo_tensor is not None:
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        self.indices = _indices("COOTensor", "indices", indices)
        self.values = values if isinstance(values, Tensor) else Tensor(values)
        self.shape = _shape("COOTensor", shape)
        axes, count = len(self.shape), self.values.shape[:1]
        expected = f"'indices' of shape {(*count, axes)}, one row for each value and one column for each axis"
        _check("COOTensor", self.indices.shape == (*count, axes), expected, self.indices.shape)

    def to_tuple(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        return self.indices, self.values, self.shape

    def to_dense(self) -> Tensor:
        """A dense tensor, 0 where there is no value."""
        dense = np.zeros(self.shape, self.values.array.dtype)
        np.add.at(dense, tuple(self.indices.array.T), self.values.array)
        return Tensor.of_array(dense)

    def coalesce(self) -> COOTensor:
        """Each position once, in rising order, with the sum of its values."""
        flat = np.ravel_multi_index(tuple(self.indices.array.T), self.shape)
        places, of_value = np.unique(flat, return_inverse=True)
        sums = np.zeros(len(places), self.values.array.dtype)
        np.add.at(sums, of_value.reshape(-1), self.values.array)
        indices = np.stack(np.unravel_index(places, self.shape), axis=1).astype(self.indices.array.dtype)
        return COOTensor(Tensor.of_array(indices), Tensor.of_array(sums), self.shape)

    def to_csr(self) -> CSRTensor:
        """As compressed rows.   Raises: ValueError for anything but 2 axes."""
        _check("COOTensor.to_csr", self.ndim == 2, "2 axes", self.ndim)
        order = np.lexsort(tuple(self.indices.array.T[::-1]))
        rows, columns = self.indices.array[order].T
        starts = np.searchsorted(rows, np.arange(self.shape[0] + 1)).astype(rows.dtype)
        indptr, indices = Tensor.of_array(starts), Tensor.of_array(np.ascontiguousarray(columns))
        return CSRTensor(indptr, indices, Tensor.of_array(self.values.array[order]), self.shape)

    def astype(self, dtype: Any) -> COOTensor:
        return COOTensor(self.indices, self.values.astype(dtype), self.shape)

    def abs(self) -> COOTensor:
        return COOTensor(self.indices, abs(self.values), self.shape)

    def add(self, other: COOTensor, thresh: Any = 0) -> COOTensor:
        """The sum, without values whose magnitude is below `thresh`."""
        _check("COOTensor.add", self.shape == other.shape, f"shape {self.shape}", other.shape)
        both = [np.concatenate([getattr(each, name).array for each in (self, other)]) for name in ("indices", "values")]
        total = COOTensor(Tensor.of_array(both[0]), Tensor.of_array(both[1]), self.shape).coalesce()
        values, limit = total.values.array, float(thresh)
        kept = (values >= limit) | (values <= -limit)  # the magnitude of the least integer is none of its dtype
        indices = Tensor.of_array(total.indices.array[kept])
        return COOTensor(indices, Tensor.of_array(values[kept]), self.shape)

    def __repr__(self) -> str:
        return f"{self._head()}, indices={self.indices!r}, values={self.values!r})"


SparseTensor = COOTensor


@final
class CSRTensor(_Sparse):
    """Compressed rows: row i has the values from indptr[i] to indptr[i + 1], in the columns `indices`."""

    def __init__(
        self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None, csr_tensor: Any = None
    ) -> None:
        if csr_tensor is not None:
            indptr, indices, values, shape = csr_tensor.to_tuple()
        self.indptr = _indices("CSRTensor", "indptr", indptr)
        self.indices = _indices("CSRTensor", "indices", indices)
        self.values = values if isinstance(values, Tensor) else Tensor(values)
        self.shape = _shape("CSRTensor", shape)
        _check("CSRTensor", len(self.shape) >= 2, "at least 2 axes", len(self.shape))
        rows = (self.shape[0] + 1,)
        _check("CSRTensor", self.indptr.shape == rows, f"'indptr' of shape {rows}", self.indptr.shape)
        same = self.indices.shape == self.values.shape[:1]
        _check("CSRTensor", same, f"'indices' of shape {self.values.shape[:1]}", self.indices.shape)

    def to_tuple(self) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
        return self.indptr, self.indices, self.values, self.shape

    def _rows(self) -> Array:
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr.array)).astype(self.indices.array.dtype)

    def to_coo(self) -> COOTensor:
        """As values at positions.   Raises: ValueError for anything but 2 axes."""
        _check("CSRTensor.to_coo", self.ndim == 2, "2 axes", self.ndim)
        indices = np.stack([self._rows(), self.indices.array], axis=1)
        return COOTensor(Tensor.of_array(indices), self.values, self.shape)

    def to_dense(self) -> Tensor:
        """A dense tensor, 0 where there is no value."""
        dense = np.zeros(self.shape, self.values.array.dtype)
        np.add.at(dense, (self._rows(), self.indices.array), self.values.array)
        return Tensor.of_array(dense)

    def mv(self, dense_vector: Tensor) -> Tensor:
        """Product with a column [columns, 1].   Raises: ValueError for another shape."""
        expected = (self.shape[1], 1)
        _check("CSRTensor.mv", dense_vector.shape == expected, f"a vector of shape {expected}", dense_vector.shape)
        return self.mm(dense_vector)

    def mm(self, matrix: Tensor | CSRTensor) -> Tensor:
        """Product with a matrix, dense or sparse; the result is dense."""
        dense = matrix.to_dense() if isinstance(matrix, CSRTensor) else matrix
        return self.to_dense() @ dense

    def sum(self, axis: int) -> Tensor:
        """Sums along an axis, which stays as one element."""
        return Tensor.of_array(self.to_dense().array.sum(axis=axis, keepdims=True))

    def astype(self, dtype: Any) -> CSRTensor:
        return CSRTensor(self.indptr, self.indices, self.values.astype(dtype), self.shape)

    def abs(self) -> CSRTensor:
        return CSRTensor(self.indptr, self.indices, abs(self.values), self.shape)

    def __repr__(self) -> str:
        return f"{self._head()}, indptr={self.indptr!r}, indices={self.indices!r}, values={self.values!r})"


@final
class RowTensor(_Sparse):
    """Some rows of a tensor: indices [n], values [n, ...]."""

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.dense_shape
        self.indices = _indices("RowTensor", "indices", indices)
        self.values = values if isinstance(values, Tensor) else Tensor(values)
        self.shape = _shape("RowTensor", shape)
        expected = (*self.indices.shape, *self.shape[1:])
        _check("RowTensor", self.values.shape == expected, f"'values' of shape {expected}", self.values.shape)

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """Shape of the dense tensor."""
        return self.shape

    def to_dense(self) -> Tensor:
        """A dense tensor, 0 where there is no row."""
        dense = np.zeros(self.shape, self.values.array.dtype)
        np.add.at(dense, self.indices.array, self.values.array)
        return Tensor.of_array(dense)

    def __repr__(self) -> str:
        return f"{self._head()}, indices={self.indices!r}, values={self.values!r})"


publish(__name__, "SparseTensor")

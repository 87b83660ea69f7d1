"""What observers get of the tensors of an eager program: views, copies, or statistics alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from msdump.frontends.torch.convert import array_of
from msdump.frontends.torch.device import measured_behind
from msdump.frontends.torch.eager.tensors import TensorTable, local
from msdump.statistics.stats import MeasuredArray, Statistics, is_large_and_real, measured_now, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array, filled_memory
from msdump.tensors.c_order import c_copy
from msdump.tensors.records import TensorInfo

if TYPE_CHECKING:
    import torch


class Values:
    """Arrays of one iteration.

    report    told why a tensor cannot be read
    keeps     whether arrays stay as they are until the iteration ends, whatever the program writes
    measures  whether nobody wants more than statistics
    """

    def __init__(self, table: TensorTable, report: Callable[[str], None], keeps: bool) -> None:
        self.measures = False
        self._table = table
        self._report = report
        self._keeps = keeps
        self._arrays: dict[Hashable, Array] = {}
        self._numbers: dict[Hashable, Statistics] = {}

    def forget(self) -> None:
        """The iteration has ended."""
        self._arrays.clear()
        self._numbers.clear()

    def view(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """The memory itself; empty for a tensor that cannot be read, which the report counts."""
        return self._read(info, tensor, lambda: array_of(_on_host(tensor)))

    def shown(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """What observers get: the memory itself where they look at it before the script goes on.

        Of a large tensor of which only statistics are wanted, these: it is read while it may still lie in a cache, and
        a copy would cost more than they do.
        """
        return self.saved(info, tensor) if self._keeps or self._is_measured(info) else self.view(info, tensor)

    def saved(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """What stays as it is until the iteration ends: what is read twice is copied, or measured, once."""
        identity = info.key, info.shape
        array = self._arrays.get(identity)
        if array is None:
            if self._is_measured(info):
                array = self._measured(info, tensor)
            else:
                array = self.view(info, tensor)
                if array.base is not None:
                    array = c_copy(array)
            self._arrays[identity] = array
        return array

    def copied(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """As `saved`, for as long as the array is held: copied anew where nothing has to stay."""
        if self._keeps or self._is_measured(info):
            return self.saved(info, tensor)
        array = self.view(info, tensor)
        return c_copy(array) if array.base is not None else array

    def at_end(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """A parameter when the iteration has ended: it is read before the script goes on."""
        array = self._arrays.get((info.key, info.shape))
        if array is None:
            array = self.saved(info, tensor) if self._is_measured(info) else self.view(info, tensor)
        return array

    def _read(self, info: TensorInfo, tensor: torch.Tensor, read: Callable[[], Array]) -> Array:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - whatever it is, one tensor ends no dump
            self._report(f"{type(tensor).__name__} that cannot be read ({type(error).__name__})")
            return np.empty((0,), dtypes.dtype(info.dtype).numpy)

    def _is_measured(self, info: TensorInfo) -> bool:
        return self.measures and is_large_and_real(info.shape, info.dtype)

    def _measured(self, info: TensorInfo, whole: torch.Tensor) -> Array:
        """Its statistics. Those of a transposed view are those of the tensor that it is a view of."""
        tensor = local(whole)
        if _is_on_cuda(tensor):
            return self._read(info, whole, lambda: measured_behind(tensor))
        array = self.view(info, whole)
        is_plain = not tensor.is_quantized and not tensor.is_neg() and tensor.is_cpu
        memory = filled_memory(array) if is_plain else None
        if memory is None or not array.size:
            return measured_now(array, info.dtype)
        identity = self._table.state(tensor), memory, info.dtype
        numbers = self._numbers.get(identity)
        if numbers is None:
            numbers = self._numbers[identity] = statistics(array, info.dtype)
        return MeasuredArray(array.shape, array.dtype, lambda: numbers)


def _is_on_cuda(tensor: torch.Tensor) -> bool:
    own = local(tensor)
    return own.is_cuda and not own.is_quantized


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    own = local(tensor)
    if own.is_cpu and not own.is_quantized:
        return own
    own = own.detach()
    if own.is_quantized:
        own = own.dequantize()
    return own if own.is_cpu else own.cpu()

"""Cells around a network that give gradients, write a parameter, or take a batch in parts."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import function as F


class _Parts(Cell):
    """Base of cells that call their network on equal parts of the batch and add the results."""

    count_name = "micro_size"

    def __init__(self, network: Cell, count: int) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise TypeError(
                f"For '{self.cls_name}', the argument 'network' must cell type, but got the type : {type(network)}."
            )
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(
                f"For '{self.cls_name}', the argument '{self.count_name}' must be integer, "
                f"but got the type : {type(count)}."
            )
        if count <= 0:
            raise ValueError(
                f"For '{self.cls_name}', the argument '{self.count_name}' must be large than 0, but got {count}."
            )
        self.network = network
        setattr(self, self.count_name, count)
        self._count = count

    def construct(self, *inputs: Tensor) -> Any:
        total: Any = None
        for number in range(self._count):
            result = self.network(*(self._part(each, number) for each in inputs))
            total = result if total is None else F.add(total, result)
        return total

    def _part(self, each: Tensor, number: int) -> Tensor:
        if each.shape[0] % self._count:
            raise ValueError(
                f"For micro batch initialization, the 0th dimension shape of input({each.shape[0]}) must be divided "
                f"by micro size({self._count})"
            )
        size = each.shape[0] // self._count
        starts = (size * number, *(0,) * (each.ndim - 1))
        stops = (size * (number + 1), *each.shape[1:])
        return F.strided_slice(each, starts, stops, (1,) * each.ndim)


class PipelineCell(_Parts):
    """The sum of a network's results on `micro_size` parts of the batch; stages run one after another on one device."""

    def __init__(self, network: Cell, micro_size: int, stage_config: Any = None, segment_config: Any = None) -> None:
        super().__init__(network, micro_size)
        names = {name for name, _ in network.cells_and_names()}
        for what, config in (("stage_config", stage_config), ("segment_config", segment_config)):
            unknown = [name for name in config or {} if name not in names]
            if unknown:
                raise KeyError(f"For 'PipelineCell', the argument '{what}' : {unknown} is not found in 'network'.")

    def shard(self, *args: Any, **kwargs: Any) -> Any:
        """Raises: ValueError, as MindSpore."""
        raise ValueError("For 'PipelineCell', no 'shard' on 'PipelineCell' is allowed.")


class MicroBatchInterleaved(_Parts):
    """The sum of a network's results on `interleave_num` parts of the batch."""

    count_name = "interleave_num"

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num)


class GradAccumulationCell(_Parts):
    """The sum of a network's results on `micro_size` parts of the batch, so that their gradients add up."""


publish(__name__)

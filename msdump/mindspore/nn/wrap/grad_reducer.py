"""DistributedGradReducer: gradients, added up over the processes of a job."""

from __future__ import annotations

from typing import Any, final

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.communication import GlobalComm, get_group_size
from msdump.mindspore.context import get_auto_parallel_context
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops.collectives import Broadcast, is_alone, mean_over_group


@final
class DistributedGradReducer(Cell):
    """Gradients of a network -> their sums over all processes, or with `mean` their means.

    mean     None: `gradients_mean` of `set_auto_parallel_context`
    degree   what the sums are divided by: the processes of the group
    """

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None and (isinstance(degree, bool) or not isinstance(degree, int) or degree <= 0):
            raise ValueError(
                f"For 'DistributedGradReducer', the 'degree' must be large than 0 and be int, but got {degree!r}."
            )
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree = degree or (1 if is_alone() else get_group_size(group))
        self.group = group

    def construct(self, grads: Any) -> Any:
        if isinstance(grads, Tensor):
            return mean_over_group(grads, self.degree, self.mean, self.group)
        return tuple(self.construct(gradient) for gradient in grads)


def give_parameters(network: Cell, root_rank: int = 0) -> None:
    """Give all processes of the job the parameters of one."""
    give = Broadcast(root_rank)
    for parameter in network.get_parameters():
        parameter.set_data(give(Tensor(parameter.asnumpy())))


publish(__name__)

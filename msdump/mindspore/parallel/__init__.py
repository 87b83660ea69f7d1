"""`mindspore.parallel`: operators cut over devices. Here each process has whole tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, final

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.parallel_context import get_algo_parameters, reset_algo_parameters, set_algo_parameters
from msdump.mindspore.sharding import shard
from msdump.mindspore.train.sliced_checkpoints import *


@final
class Layout:
    """How the axes of a tensor lie on a matrix of devices: a description."""

    def __init__(
        self, device_matrix: tuple[int, ...], alias_name: tuple[str, ...], rank_list: list[int] | None = None
    ) -> None:
        if len(device_matrix) != len(alias_name):
            raise ValueError(
                f"Layout: expected a name for each of the {len(device_matrix)} axes, got {len(alias_name)}."
            )
        self.device_matrix, self.alias_name, self.rank_list = device_matrix, alias_name, rank_list
        self.tensor_map: tuple[Any, ...] = ()

    def __call__(self, *tensor_map: Any) -> Layout:
        layout = Layout(self.device_matrix, self.alias_name, self.rank_list)
        layout.tensor_map = tensor_map
        return layout


@final
class AutoParallel(Cell):
    """A network in a parallel mode.   Raises: ValueError from its methods for what needs tensors to be cut."""

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if parallel_mode not in ("semi_auto", "sharding_propagation", "recursive_programming"):
            raise ValueError(f"AutoParallel: expected a parallel_mode of MindSpore, got {parallel_mode!r}.")
        self.network = network

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return self.network(*args, **kwargs)


def sync_pipeline_shared_parameters(net: Cell) -> None:
    """Raises: RuntimeError: a network is not cut into stages."""
    _refuse("sync_pipeline_shared_parameters")


def set_op_strategy_config(mode: str = "SAVE", path: str = "") -> None:
    """Raises: RuntimeError: there are no strategies."""
    _refuse("set_op_strategy_config")


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: expected a network that is cut over devices, got none. msdump cuts no tensors.")


publish_all(__name__)

__getattr__ = explain_missing(__name__)

"""Datasets for loops of one's own: a helper that counts steps, and networks and functions that fetch their rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, final

from msdump.mindspore.common.api import jit
from msdump.mindspore.context import JitConfig, get_context
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell


def _check_size(sink_size: Any) -> None:
    if isinstance(sink_size, bool) or not isinstance(sink_size, int):
        raise TypeError(f"The 'sink_size' must be int, but got {type(sink_size).__name__}.")
    if sink_size < -1 or sink_size == 0:
        raise ValueError(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")


@final
class DatasetHelper:
    """Rows of a dataset, once over; in sink mode one empty row per run of a network that fetches them itself.

    sink_size   steps of a round in sink mode, -1 for the dataset's size
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        if not isinstance(dataset_sink_mode, bool):
            raise TypeError(f"dataset_sink_mode: expected a bool, got {type(dataset_sink_mode).__name__}.")
        _check_size(sink_size)
        self.dataset, self.is_sinking = dataset, dataset_sink_mode
        self.rows = endless(dataset)
        self._sink_size = dataset.get_dataset_size() if sink_size == -1 else sink_size

    def __iter__(self) -> Iterator[Any]:
        if self.is_sinking:
            return iter([()] * self._sink_size)
        return iter(self.dataset.create_tuple_iterator(num_epochs=1))

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """Dtypes and shapes of a row."""
        row = next(iter(self.dataset.create_tuple_iterator(num_epochs=1)))
        return [tensor.dtype for tensor in row], [list(tensor.shape) for tensor in row]

    def sink_size(self) -> int:
        """Steps of a round in sink mode."""
        return int(self._sink_size)

    get_data_info = types_shapes

    def stop_send(self) -> None:
        """Nothing is sent ahead."""

    def continue_send(self) -> None:
        """Nothing is sent ahead."""

    def release(self) -> None:
        """Nothing is held."""


def endless(dataset: Any) -> Iterator[Any]:
    """Rows of a dataset, round after round.   Raises: ValueError for a dataset without rows."""
    while True:
        count = 0
        for row in dataset.create_tuple_iterator(num_epochs=1):
            count += 1
            yield row
        if not count:
            raise ValueError("There is no valid data in dataset, please check dataset file firstly.")


@final
class _Fetching(Cell):
    """A network that takes its rows from a dataset: it is called without arguments."""

    def __init__(self, network: Cell, helper: DatasetHelper) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        object.__setattr__(self, "helper", helper)

    helper: DatasetHelper

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._network(*next(self.helper.rows))


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """The network, fetching its own rows: call it once for each element of the helper, without arguments.

    Raises: RuntimeError for a helper that is not in sink mode.
    """
    if not dataset_helper.is_sinking:
        raise RuntimeError("The API 'connect_network_with_dataset' should be called in dataset sink mode.")
    return _Fetching(network, dataset_helper)


def data_sink(
    fn: Callable[..., Any], dataset: Any, sink_size: int = 1, jit_config: JitConfig | None = None,
    input_signature: Any = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function without arguments that runs `fn` on the next `sink_size` rows of a dataset; its result is the last.

    jit_config   runs `fn` as a graph
    Raises: ValueError for another sink_size and, as MindSpore, on a CPU.
    """
    if isinstance(sink_size, bool) or not isinstance(sink_size, int) or sink_size <= 0:
        raise ValueError(f"The 'sink_size' must be positive, but got sink_size {sink_size}.")
    if get_context("device_target") == "CPU":
        raise ValueError("Data sinking supports ascend or gpu device target, but device target is CPU.")
    function = fn if jit_config is None else jit(fn, jit_config=jit_config)
    rows = endless(dataset)

    @functools.wraps(fn)
    def sink_process(*args: Any, **kwargs: Any) -> Any:
        result = None
        for _ in range(sink_size):
            result = function(*next(rows))
        return result

    return sink_process


publish(__name__)

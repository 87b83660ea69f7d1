"""Metric: the interface, what metrics have in common, and those that are means."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.tensors.arrays import Array


class Metric(ABC):
    """Interface: `clear` before, `update` per batch, `eval` for the result. `indexes` chooses among the outputs."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Which outputs of the evaluation network `update` gets, None for the usual ones."""
        return getattr(self, "_indexes", None)

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which outputs of the evaluation network `update` gets.   Raises: ValueError for no list of ints."""
        if not isinstance(indexes, list) or not all(isinstance(index, int) for index in indexes):
            raise ValueError(f"For 'set_indexes', the argument 'indexes' must be a list of int, but got {indexes!r}.")
        self._indexes = indexes
        return self

    def __call__(self, *inputs: Any) -> Any:
        """The result of one batch alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abstractmethod
    def clear(self) -> None:
        """Forget all batches."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Take a batch."""

    @abstractmethod
    def eval(self) -> Any:
        """The result of all batches."""

    def _convert_data(self, data: Any) -> Array:
        """Raises: TypeError for anything but a tensor, a list and an array."""
        return array_of(data)


class BatchMetric(Metric):
    """A metric whose `take` gets what `set_indexes` chose, as many inputs as INPUTS names.

    _is_update   whether there was a batch since `clear`
    """

    INPUTS = "predicted value, true value"
    _is_update = False

    def update(self, *inputs: Any) -> None:
        chosen = inputs if not self.indexes else [inputs[index] for index in self.indexes]
        expect_inputs(self, chosen, self.INPUTS)
        self.take(*chosen)
        self._is_update = True

    @abstractmethod
    def take(self, *args: Any, **kwargs: Any) -> None:
        """Take a batch of the right number of inputs."""


class MeanMetric(BatchMetric):
    """A metric that is the sum of numbers over their count."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0

    def eval(self) -> float:
        expect_samples(self, self._count)
        return self._sum / self._count


def array_of(data: Any) -> Array:
    """Data of a metric as an array.   Raises: TypeError for anything but a tensor, a list and an array."""
    if isinstance(data, Tensor):
        return data.asnumpy()
    if isinstance(data, list | np.ndarray):
        return np.asarray(data)
    raise TypeError(
        "For 'Metric' and its derived classes, the input data type must be tensor, list or numpy.ndarray, "
        f"but got {type(data)}."
    )


def reversed_order(array: Array) -> Array:
    """Numbers whose ascending order is the descending order of `array`: a negation of integers may wrap."""
    result: Array = ~array if array.dtype.kind in "iub" else -array
    return result


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `update`: it gets the outputs that `set_indexes` chose, in that order."""

    @functools.wraps(func)
    def update(self: Metric, *inputs: Any) -> Any:
        return func(self, *(inputs if not self.indexes else [inputs[index] for index in self.indexes]))

    return update


def expect_inputs(metric: Metric, inputs: Any, what: str) -> None:
    """Raises: ValueError for another number of inputs than `what` names, separated by commas."""
    count = what.count(",") + 1
    if len(inputs) != count:
        name = type(metric).__name__
        raise ValueError(
            f"For '{name}.update', it needs {count} input{'s' * (count > 1)} ({what}), but got {len(inputs)}."
        )


def expect_samples(metric: Metric, count: Any) -> None:
    """Raises: RuntimeError when no batch was taken."""
    if not count:
        raise RuntimeError(
            f"The '{type(metric).__name__}' can not be calculated, because the number of samples is 0. "
            "Call update with a batch that is not empty before eval."
        )


def expect_type(metric: str, name: str, value: Any, *types: type) -> None:
    """Raises: TypeError for an argument of another type; a bool is no int."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        names = " or ".join(each.__name__ for each in types)
        raise TypeError(f"For '{metric}', the argument '{name}' must be {names}, but got {type(value).__name__}.")


def is_one_hot(array: Array) -> bool:
    """Does each sample have one 1 along axis 1, and zeros elsewhere?"""
    return bool(array.ndim > 1 and np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all())


@final
class Loss(MeanMetric):
    """Mean of the losses of all batches."""

    INPUTS = "loss"

    def take(self, loss: Any) -> None:
        loss = array_of(loss)
        if loss.ndim > 1:
            raise ValueError(
                f"For 'Loss.update', the dimension of your input (loss) must be 0 or 1, but got {loss.ndim}."
            )
        self._sum, self._count = self._sum + float(loss.mean()), self._count + 1


class _Error(MeanMetric):
    """Mean over samples of what `errors` sums per element."""

    @abstractmethod
    def errors(self, difference: Array) -> Array:
        """Error of each element."""

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        difference = true.reshape(predicted.shape).astype(np.float64) - predicted
        self._sum, self._count = self._sum + float(self.errors(difference).sum()), self._count + len(true)


@final
class MAE(_Error):  # noqa: N818
    """Mean absolute error."""

    def errors(self, difference: Array) -> Array:
        return np.abs(difference)


@final
class MSE(_Error):  # noqa: N818
    """Mean squared error."""

    def errors(self, difference: Array) -> Array:
        return np.square(difference)


class Perplexity(MeanMetric):
    """e to the mean of -log of the probability of each label. Samples with `ignore_label` do not count."""

    INPUTS = "predicted value, label"

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None:
            expect_type("Perplexity", "ignore_label", ignore_label, int)
        self.ignore_label = ignore_label

    def take(self, predicted: Any, label: Any) -> None:
        """Predicted: probabilities [..., classes]; labels: class indices [...]. Probabilities are at least 1e-10."""
        predicted, labels = array_of(predicted), array_of(label).reshape(-1).astype(np.int64)
        if labels.size * predicted.shape[-1] != predicted.size:
            raise RuntimeError(
                "For 'Perplexity.update', predicted value (input[0]) and label (input[1]) should have the same shape "
                f"but for the classes, but got {predicted.shape} and {array_of(label).shape}."
            )
        chances = predicted.reshape(labels.size, -1)[np.arange(labels.size), labels]
        chances = chances[labels != self.ignore_label] if self.ignore_label is not None else chances
        self._sum -= float(np.log(np.maximum(chances, 1e-10)).sum())
        self._count += chances.size

    def eval(self) -> float:
        expect_samples(self, self._count)
        return math.exp(self._sum / self._count)


publish(__name__)

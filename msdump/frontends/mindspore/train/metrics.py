"""Metrics: numbers gathered over an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import did_you_mean
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish


class Metric:
    """Interface: `clear` before, `update` per batch, `eval` for the result. `indexes` chooses among the outputs."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        return self._indexes

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which outputs of the evaluation network `update` gets."""
        self._indexes = indexes
        return self

    def clear(self) -> None:
        raise NotImplementedError(f"{type(self).__name__}: expected a clear() method.")

    def update(self, *inputs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: expected an update(*inputs) method.")

    def eval(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected an eval() method.")


def _array(data: Any) -> Array:
    return data.asnumpy() if isinstance(data, Tensor) else np.asarray(data)


def _pair(metric: Metric, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
    chosen = [inputs[index] for index in metric.indexes] if metric.indexes is not None else list(inputs)
    if len(chosen) != 2:
        raise ValueError(
            f"For '{type(metric).__name__}.update', it needs 2 inputs (predicted value, true value), "
            f"but got {len(chosen)}."
        )
    return _array(chosen[0]), _array(chosen[1])


class Accuracy(Metric):
    """Part of the samples that are right. Labels are class indices, or one-hot / 0-1 rows of the shape of y_pred."""

    def __init__(self, eval_type: str | None = "classification") -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(
                f"The argument 'eval_type' must be in ['classification', 'multilabel'], but got {eval_type}."
            )
        self.eval_type = eval_type
        self.clear()

    def clear(self) -> None:
        self._correct, self._total = 0, 0

    def update(self, *inputs: Any) -> None:
        predicted, true = _pair(self, inputs)
        if self.eval_type == "multilabel":
            wrong = np.not_equal(predicted, true).reshape(len(true), -1).any(axis=1)
            self._correct += len(true) - int(np.count_nonzero(wrong))
            self._total += len(true)
            return
        labels = true.argmax(axis=1) if true.ndim == predicted.ndim and true.shape == predicted.shape else true
        right = predicted.argmax(axis=1) == labels.reshape(-1)
        self._correct, self._total = self._correct + int(right.sum()), self._total + right.size

    def eval(self) -> float:
        if self._total == 0:
            raise RuntimeError("The 'Accuracy' can not be calculated, because the number of samples is 0.")
        return self._correct / self._total


class Loss(Metric):
    """Mean of the losses of all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0

    def update(self, *inputs: Any) -> None:
        chosen = [inputs[index] for index in self.indexes] if self.indexes is not None else list(inputs[:1])
        self._sum, self._count = self._sum + float(_array(chosen[0]).mean()), self._count + 1

    def eval(self) -> float:
        if self._count == 0:
            raise RuntimeError("The 'Loss' can not be calculated, because the number of batches is 0.")
        return self._sum / self._count


class _Error(Metric):
    """Mean over samples of what `errors` sums per element."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0

    def errors(self, difference: Array) -> float:
        raise NotImplementedError(f"{type(self).__name__}: expected an errors(difference) method.")

    def update(self, *inputs: Any) -> None:
        predicted, true = _pair(self, inputs)
        difference = true.reshape(predicted.shape).astype(np.float64) - predicted
        self._sum, self._count = self._sum + self.errors(difference), self._count + len(predicted)

    def eval(self) -> float:
        if self._count == 0:
            raise RuntimeError(
                f"The '{type(self).__name__}' can not be calculated, because the number of samples is 0."
            )
        return self._sum / self._count


class MAE(_Error):  # noqa: N818
    """Mean absolute error."""

    def errors(self, difference: Array) -> float:
        return float(np.abs(difference).sum())


class MSE(_Error):  # noqa: N818
    """Mean squared error."""

    def errors(self, difference: Array) -> float:
        return float(np.square(difference).sum())


class TopKCategoricalAccuracy(Metric):
    """Part of the samples whose label is among the k largest outputs."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(f"For 'TopKCategoricalAccuracy', the argument 'k' must be greater than 0, but got {k!r}.")
        self.k = k
        self.clear()

    def clear(self) -> None:
        self._correct, self._total = 0, 0

    def update(self, *inputs: Any) -> None:
        predicted, true = _pair(self, inputs)
        labels = true.argmax(axis=1) if true.ndim == predicted.ndim else true
        best = np.argsort(-predicted, axis=1, kind="stable")[:, : self.k]
        self._correct += int((best == labels.reshape(-1, 1)).any(axis=1).sum())
        self._total += len(labels)

    def eval(self) -> float:
        if self._total == 0:
            raise RuntimeError(
                "The 'TopKCategoricalAccuracy' can not be calculated, because the number of samples is 0."
            )
        return self._correct / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Part of the samples whose label is the largest output."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Part of the samples whose label is among the five largest outputs."""

    def __init__(self) -> None:
        super().__init__(5)


_BY_NAME: dict[str, type[Metric]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "loss": Loss,
    "mae": MAE,
    "mse": MSE,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
}


def names() -> list[str]:
    """Names that `get_metric_fn` takes."""
    return list(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """Metric of a name.   Raises: KeyError with the nearest name."""
    if name not in _BY_NAME:
        raise KeyError(f"metric: expected one of {names()}, got {name!r}. {did_you_mean(name, _BY_NAME)}".rstrip())
    return _BY_NAME[name](*args, **kwargs)


publish(__name__)

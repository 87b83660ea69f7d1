"""Metrics against formulas in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.mindspore import Tensor, nn, train
from msdump.tensors.arrays import Array

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32)
LABELS = np.array([1, 0, 0, 2])


def of_two_batches(metric: Any, *inputs: Any) -> Any:
    metric.clear()
    metric.update(*[entry[:2] for entry in inputs])
    metric.update(*[entry[2:] for entry in inputs])
    return metric.eval()


@st.composite
def classified(draw: st.DrawFn) -> tuple[Array, Array]:
    """Scores without ties, and labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    count, classes = draw(st.integers(3, 9)), draw(st.integers(2, 5))
    return rng.permuted(rng.random((count, classes)), axis=1), rng.integers(0, classes, count)


@given(data=classified(), is_one_hot=st.booleans())
@settings(max_examples=20)
def test_rates_of_classes(data: tuple[Array, Array], is_one_hot: bool) -> None:
    scores, labels = data
    classes, given_ = scores.shape[1], scores.argmax(axis=1)
    true = np.eye(classes)[labels] if is_one_hot else labels
    right = np.bincount(labels[labels == given_], minlength=classes)
    counts, answers = np.bincount(labels, minlength=classes), np.bincount(given_, minlength=classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.nan_to_num(right / answers), np.nan_to_num(right / counts)
    assert of_two_batches(train.Accuracy(), scores, true) == (labels == given_).mean()
    np.testing.assert_allclose(of_two_batches(train.Precision(), scores, true), precision)
    np.testing.assert_allclose(of_two_batches(train.Recall(), Tensor(scores), Tensor(true)), recall)
    place = (-scores).argsort(axis=1).argsort(axis=1)[np.arange(len(labels)), labels]
    assert of_two_batches(train.TopKCategoricalAccuracy(2), scores, true) == (place < 2).mean()


def test_averages_and_multilabel() -> None:
    metric = train.Recall()
    metric.update(SCORES, LABELS)
    assert metric.eval(average=True) == pytest.approx(metric.eval().mean())
    rows, true = np.array([[1, 0, 1], [0, 1, 1]]), np.array([[1, 0, 1], [0, 0, 1]])
    assert train.Accuracy("multilabel")(rows, true) == 0.5
    precision = train.Precision("multilabel")
    precision.update(rows, true)
    np.testing.assert_allclose(precision.eval(), [1.0, 0.5], err_msg="one number for each sample")
    assert precision.eval(True) == pytest.approx(0.75)


def test_means_of_errors_and_losses() -> None:
    assert of_two_batches(train.MAE(), SCORES, SCORES + 0.5) == pytest.approx(1.5)
    assert of_two_batches(train.MSE(), SCORES, SCORES + 0.5) == pytest.approx(0.75)
    loss = train.Loss()
    loss.update(Tensor(3.0))
    loss.update(np.array([1.0, 3.0]))
    assert loss.eval() == 2.5
    with pytest.raises(ValueError, match="dimension of your input"):
        loss.update(np.ones((2, 2)))


def test_names_make_metrics_and_indexes_choose_outputs() -> None:
    assert isinstance(train.get_metric_fn("recall"), train.Recall) and "topk" in train.names() == ms.names()
    with pytest.raises(KeyError, match="Did you mean"):
        train.get_metric_fn("acuracy")
    metric = train.Accuracy().set_indexes([2, 0])
    metric.clear()
    metric.update(LABELS, "unused", SCORES)
    assert metric.eval() == 0.5
    with pytest.raises(ValueError, match="list of int"):
        metric.set_indexes((0, 1))

    class Mine(train.Metric):
        def clear(self) -> None:
            self.total = 0.0

        @ms.rearrange_inputs
        def update(self, *inputs: Any) -> None:
            self.total += float(self._convert_data(inputs[0]).sum())

        def eval(self) -> float:
            return self.total

    assert Mine().set_indexes([1])(Tensor([1.0]), [2.0, 3.0]) == 5.0
    with pytest.raises(TypeError, match="abstract"):
        train.Metric()


@pytest.mark.parametrize("name", ["Accuracy", "Precision", "Recall", "MAE", "Loss"])
def test_nothing_comes_of_no_batch(name: str) -> None:
    with pytest.raises(RuntimeError):
        getattr(train, name)().eval()


RATES = {
    "recall": lambda tp, fp, tn, fn: tp / (tp + fn),
    "specificity": lambda tp, fp, tn, fn: tn / (tn + fp),
    "precision": lambda tp, fp, tn, fn: tp / (tp + fp),
    "npv": lambda tp, fp, tn, fn: tn / (tn + fn),
    "miss rate": lambda tp, fp, tn, fn: fn / (tp + fn),
    "fall out": lambda tp, fp, tn, fn: fp / (fp + tn),
    "fdr": lambda tp, fp, tn, fn: fp / (fp + tp),
    "for": lambda tp, fp, tn, fn: fn / (fn + tn),
    "csi": lambda tp, fp, tn, fn: tp / (tp + fp + fn),
    "accuracy": lambda tp, fp, tn, fn: (tp + tn) / (tp + tn + fp + fn),
    "F1 score": lambda tp, fp, tn, fn: 2 * tp / (2 * tp + fp + fn),
    "mcc": lambda tp, fp, tn, fn: (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5,
    "fm": lambda tp, fp, tn, fn: tp / ((tp + fp) * (tp + fn)) ** 0.5,
    "informedness": lambda tp, fp, tn, fn: tp / (tp + fn) + tn / (tn + fp) - 1,
    "deltap": lambda tp, fp, tn, fn: tp / (tp + fp) + tn / (tn + fn) - 1,
    "balanced accuracy": lambda tp, fp, tn, fn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    "pt": lambda tp, fp, tn, fn: (fp / (fp + tn)) ** 0.5 / ((tp / (tp + fn)) ** 0.5 + (fp / (fp + tn)) ** 0.5),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_of_a_confusion_matrix(name: str) -> None:
    predicted = np.array([[[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1]]])
    true = np.array([[[1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]]])
    both = np.stack([predicted, true]).astype(bool)
    counts = [float((both[0] == p).__and__(both[1] == t).sum()) for p, t in ((1, 1), (1, 0), (0, 0), (0, 1))]
    metric = train.ConfusionMatrixMetric(True, name, False)
    np.testing.assert_allclose(metric(predicted, true), [RATES[name](*counts)])


def test_rates_of_samples_are_averaged_without_the_undefined() -> None:
    predicted = np.array([[[1, 0], [0, 1]], [[0, 0], [1, 1]]])
    metric = train.ConfusionMatrixMetric(True, "precision", calculation_method=True)
    # Source: real 2.7: class 0 of the second sample has no answer, and does not count.
    assert metric(predicted, np.array([[[1, 0], [0, 1]], [[1, 0], [0, 1]]])) == pytest.approx((1 + 0.5) / 2)
    with pytest.raises(NotImplementedError, match="expected one of"):
        train.ConfusionMatrixMetric(metric_name="beauty")(predicted, predicted)
    # As programs call it, with rows of one-hot classes: class 0 does not count.
    scored = train.ConfusionMatrixMetric(False, "f1 score", False, "mean")
    scored.update(np.eye(3)[[0, 1, 2, 1]], np.eye(3)[[0, 1, 1, 2]])
    np.testing.assert_allclose(scored.eval(), [2 * 1 / (2 * 1 + 2 + 2)])
    with pytest.raises(ValueError, match="of the shape of the predicted"):
        scored.update(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="'decrease' must be one of"):
        train.ConfusionMatrixMetric(decrease="most")
    for decrease, value in (("sum", 1.5), ("mean", 0.75)):
        joined = train.ConfusionMatrixMetric(True, "precision", True, decrease)
        joined.update(np.array([[[1, 0], [1, 1]]]), np.array([[[1, 0], [0, 1]]]))
        assert joined.eval() == pytest.approx(value)


def surfaces(first: Array, second: Array, order: float) -> Array:
    """Distance of each border element of one mask to the nearest of the other, element by element."""

    def border(mask: Array) -> list[tuple[int, ...]]:
        inside = {tuple(map(int, place)) for place in np.argwhere(mask)}
        near = [step for axis in range(mask.ndim) for step in (np.eye(mask.ndim, dtype=int)[axis] * s for s in (1, -1))]
        return [p for p in sorted(inside) if any(tuple(map(int, p + step)) not in inside for step in near)]

    others = np.array(border(second))
    return np.array([min(np.linalg.norm(np.array(p) - q, order) for q in others) for p in border(first)])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999), shape=st.sampled_from([(5, 6), (4, 3, 5), (9,)]),
    percentile=st.sampled_from([None, 0, 60]),
    metric=st.sampled_from([("euclidean", 2), ("chessboard", np.inf), ("taxicab", 1)]),
)  # fmt: skip
def test_distances_of_surfaces(seed: int, shape: tuple[int, ...], percentile: Any, metric: tuple[str, float]) -> None:
    draws = np.random.default_rng(seed)
    a, b = (draws.integers(0, 3, shape) for _ in range(2))
    a.reshape(-1)[:2] = b.reshape(-1)[-2:] = 1
    there, back = (surfaces(*pair, metric[1]) for pair in ((a == 1, b == 1), (b == 1, a == 1)))
    farthest = [np.percentile(each, percentile or 100) for each in (there, back)]
    batch = (Tensor(a), b, 1)
    hausdorff = train.HausdorffDistance(metric[0], percentile, crop=False)
    assert np.isclose(hausdorff(*batch), max(farthest))
    assert np.isclose(nn.HausdorffDistance(metric[0], percentile, True, crop=False)(*batch), farthest[0])
    assert np.isclose(train.MeanSurfaceDistance(distance_metric=metric[0])(*batch), there.mean())
    assert np.isclose(train.MeanSurfaceDistance(True, metric[0])(*batch), (there.mean() + back.mean()) / 2)


def test_distances_of_surfaces_at_the_edge() -> None:
    # Source: the examples of MindSpore's documentation.
    masks = np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])
    assert np.isclose(train.get_metric_fn("hausdorff_distance")(*masks, 0), 2**0.5)
    assert np.isclose(train.get_metric_fn("mean_surface_distance")(*masks, 0), 0.8047378541243649)
    bar, none = np.zeros((3, 7), bool), np.zeros((3, 7), bool)
    bar[1, 1:6] = True
    # The box of a bar has one row, so that its border is its two ends; the whole picture's is all of it.
    end = np.zeros_like(bar)
    end[1, 3] = True
    assert [train.MeanSurfaceDistance()(bar, end, True), train.HausdorffDistance()(bar, end, True)] == [1.2, 2.0]
    assert train.HausdorffDistance(percentile=50)(bar, bar | end, True) == 0.0
    assert np.percentile([2, 2], 50) == train.HausdorffDistance(percentile=50, directed=True)(bar, end, True)
    for metric in (train.HausdorffDistance(), train.MeanSurfaceDistance(symmetric=True)):
        assert metric(bar, none, True) == metric(none, bar, True) == np.inf
        metric.clear()
        with pytest.raises(RuntimeError, match="'update'"):
            metric.eval()
        with pytest.raises(ValueError, match="of one shape, with elements"):
            metric.update(bar, none[1:], True)
    with pytest.raises(ValueError, match="distance_metric"):
        train.HausdorffDistance("far")
    with pytest.raises(ValueError, match="percentile"):
        train.HausdorffDistance(percentile=101)

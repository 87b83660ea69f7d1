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
        f2 = np.nan_to_num(5 * right / (4 * counts + answers))
    assert of_two_batches(train.Accuracy(), scores, true) == (labels == given_).mean()
    np.testing.assert_allclose(of_two_batches(train.Precision(), scores, true), precision)
    np.testing.assert_allclose(of_two_batches(train.Recall(), Tensor(scores), Tensor(true)), recall)
    np.testing.assert_allclose(of_two_batches(train.Fbeta(2), scores, true), f2)
    matrix = np.zeros((classes, classes))
    np.add.at(matrix, (labels, given_), 1)
    np.testing.assert_array_equal(of_two_batches(train.ConfusionMatrix(classes), scores, labels), matrix)
    place = (-scores).argsort(axis=1).argsort(axis=1)[np.arange(len(labels)), labels]
    assert of_two_batches(train.TopKCategoricalAccuracy(2), scores, true) == (place < 2).mean()
    surprise = -np.log(scores[np.arange(len(labels)), labels])
    np.testing.assert_allclose(of_two_batches(train.Perplexity(), scores, labels), np.exp(surprise.mean()))


def test_averages_and_multilabel() -> None:
    metric = train.F1()
    metric.update(SCORES, LABELS)
    assert metric.eval(average=True) == pytest.approx(metric.eval().mean())
    rows, true = np.array([[1, 0, 1], [0, 1, 1]]), np.array([[1, 0, 1], [0, 0, 1]])
    assert train.Accuracy("multilabel")(rows, true) == 0.5
    precision = train.Precision("multilabel")
    precision.update(rows, true)
    np.testing.assert_allclose(precision.eval(), [1.0, 0.5], err_msg="one number for each sample")
    assert precision.eval(True) == pytest.approx(0.75)
    assert train.Perplexity(ignore_label=2)(SCORES, LABELS) == pytest.approx((0.7 * 0.5 * 0.2) ** (-1 / 3))


def test_means_of_errors_and_losses() -> None:
    assert of_two_batches(train.MAE(), SCORES, SCORES + 0.5) == pytest.approx(1.5)
    assert of_two_batches(train.MSE(), SCORES, SCORES + 0.5) == pytest.approx(0.75)
    loss = train.Loss()
    loss.update(Tensor(3.0))
    loss.update(np.array([1.0, 3.0]))
    assert loss.eval() == 2.5
    with pytest.raises(ValueError, match="dimension of your input"):
        loss.update(np.ones((2, 2)))


@given(data=classified())
@settings(max_examples=20)
def test_the_area_below_a_roc_is_the_chance_of_the_right_order(data: tuple[Array, Array]) -> None:
    scores, positive = data[0][:, 0], data[1] > 0
    if positive.all() or not positive.any():
        with pytest.raises(ValueError, match="there is no"):
            train.ROC(pos_label=1)(scores, positive.astype(int))
        return
    false_rate, true_rate, thresholds = train.ROC(pos_label=1)(scores, positive.astype(int))
    assert (np.diff(thresholds) < 0).all()
    chance = (scores[positive][:, None] > scores[~positive][None]).mean()
    assert train.auc(false_rate, true_rate) == pytest.approx(chance)
    assert train.auc(false_rate[::-1], true_rate[::-1]) == pytest.approx(chance)


def test_roc_of_several_classes_has_a_curve_for_each() -> None:
    rates = train.ROC(class_num=3)(SCORES, LABELS)
    one = train.ROC(pos_label=2)(SCORES[:, 2], LABELS)
    assert [len(part) for part in rates] == [3, 3, 3]
    for part, single in zip(rates, one, strict=True):
        np.testing.assert_array_equal(part[2], single)
    with pytest.raises(ValueError, match="rises or falls"):
        train.auc(np.array([0.0, 1.0, 0.5]), np.zeros(3))


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


@given(seed=st.integers(0, 2**16), metric=st.sampled_from(["euclidean", "chessboard", "taxicab"]))
@settings(max_examples=15)
def test_distances_of_surfaces(seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    masks = [(rng.random((5, 6)) > 0.6).astype(int) for _ in range(2)]
    masks[0][2, 2] = masks[1][1, 4] = 1
    edges = []
    for mask in masks:
        padded = np.pad(mask, 1)
        inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
        edges.append([(i, j) for i in range(5) for j in range(6) if mask[i, j] and not inside[i, j]])
    norm: Any = {
        "euclidean": lambda a, b: float(np.hypot(a, b)),
        "chessboard": lambda a, b: float(max(a, b)),
        "taxicab": lambda a, b: float(a + b),
    }[metric]
    ways = [
        [min(norm(abs(a - c), abs(b - d)) for c, d in others) for a, b in points]
        for points, others in (edges, edges[::-1])
    ]
    assert train.HausdorffDistance(metric)(*masks, 1) == pytest.approx(max(map(max, ways)))
    assert train.HausdorffDistance(metric, 50.0, True)(*masks, 1) == pytest.approx(np.percentile(ways[0], 50))
    means = [float(np.mean(way)) for way in ways]
    assert train.MeanSurfaceDistance(True, metric)(*masks, 1) == pytest.approx(np.mean(means))
    assert train.MeanSurfaceDistance(False, metric)(*masks, 1) == pytest.approx(means[0])
    squares = [float(np.square(way).mean()) for way in ways]
    assert train.RootMeanSquareDistance(True, metric)(*masks, 1) == pytest.approx(np.sqrt(np.mean(squares)))
    assert train.RootMeanSquareDistance(False, metric)(*masks, 1) == pytest.approx(squares[0])


def test_surfaces_that_are_not_there() -> None:
    mask = np.eye(4, dtype=int)
    assert train.HausdorffDistance()(mask, mask * 0, 1) == np.inf
    with pytest.raises(ValueError, match="in neither value"):
        train.MeanSurfaceDistance()(mask, mask, 9)


def test_bleu_of_the_documented_sentence() -> None:
    candidate = [["i", "have", "a", "pen", "on", "my", "desk"]]
    references = [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]]
    groups = [7 / 7, 5 / 6, 3 / 5, 1 / 4]
    assert train.BleuScore()(candidate, references) == pytest.approx(np.prod(groups) ** 0.25 * np.exp(0))
    assert train.BleuScore(smooth=True)(candidate, references) == pytest.approx((8 / 8 * 6 / 7 * 4 / 6 * 2 / 5) ** 0.25)
    assert train.BleuScore()([["no"]], [[["other"]]]) == 0


def test_similarity_of_rows_and_masks() -> None:
    rows = np.array([[3.0, 4.0], [4.0, 3.0]])
    np.testing.assert_allclose(train.CosineSimilarity()(rows), [[0, 0.96], [0.96, 0]])
    np.testing.assert_allclose(train.CosineSimilarity("dot", "sum", False)(Tensor(rows)), [49, 49])
    dice = train.Dice(1e-9)
    dice.update(np.array([1, 1, 0]), np.array([1, 0, 0]))
    assert dice.eval() == pytest.approx(2 / 3 / 3)


def test_occlusion_shows_what_a_model_looks_at() -> None:
    weight = np.zeros((2, 12), np.float32)
    weight[1, 5] = 1
    model = nn.SequentialCell(nn.Flatten(), nn.Dense(12, 2, weight_init=Tensor(weight), bias_init="zeros"))
    image = np.ones((1, 3, 4), np.float32)
    metric = train.OcclusionSensitivity(margin=1, n_batch=5)
    sensitivity = metric(model, image, np.array([1]))
    # A square of margin 1 around (i, j) covers rows i - 1 to i, and columns j - 1 to j.
    expected = np.zeros((3, 4))
    expected[1:3, 1:3] = 1
    np.testing.assert_allclose(sensitivity, expected)
    boxed = train.OcclusionSensitivity(margin=1, b_box=[1, 1, 0, -1])(model, Tensor(image), Tensor([1]))
    np.testing.assert_allclose(boxed, expected[1])


def test_names_make_metrics_and_indexes_choose_outputs() -> None:
    assert isinstance(train.get_metric_fn("F1"), train.F1) and "roc" in train.names() == ms.names()
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


@pytest.mark.parametrize("name", ["Accuracy", "Precision", "Recall", "F1", "MAE", "Loss", "Dice", "ROC", "Perplexity"])
def test_nothing_comes_of_no_batch(name: str) -> None:
    with pytest.raises(RuntimeError):
        getattr(train, name)().eval()

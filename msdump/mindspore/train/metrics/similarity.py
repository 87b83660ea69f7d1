"""Metrics of likeness: of translations, of rows, of masks; and which part of an image decides."""

from __future__ import annotations

from collections import Counter
from typing import Any, final

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.train.metrics.base import (
    BatchMetric,
    MeanMetric,
    array_of,
    expect_one_of,
    expect_type,
    expect_update,
)
from msdump.tensors.arrays import Array


@final
class BleuScore(BatchMetric):
    """Share of the word groups of a translation that its references have, times a penalty for being short."""

    INPUTS = "candidate_corpus, reference_corpus"

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        expect_type("BleuScore", "n_gram", n_gram, int)
        expect_type("BleuScore", "smooth", smooth, bool)
        if not 1 <= n_gram <= 4:
            raise ValueError(f"For 'BleuScore', the argument 'n_gram' should range from 1 to 4, but got {n_gram}.")
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self) -> None:
        self._right, self._all = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length, self._reference_length = 0, 0
        self._is_update = False

    def take(self, candidates: Any, corpus: Any) -> None:
        """Candidates: lists of words; references: for each candidate a list of lists of words."""
        if len(candidates) != len(corpus):
            raise ValueError(
                "For 'BleuScore.update', 'translate_corpus' (inputs[0]) and 'reference_corpus' (inputs[1]) should be "
                f"equal in length, but got {len(candidates)}, {len(corpus)}"
            )
        for candidate, references in zip(candidates, corpus, strict=True):
            self._length += len(candidate)
            self._reference_length += min(map(len, references), key=lambda length: abs(length - len(candidate)))
            allowed: Counter[Any] = Counter()
            for reference in references:
                allowed |= self._groups(reference)
            groups = self._groups(candidate)
            for counts, target in ((groups & allowed, self._right), (groups, self._all)):
                for group, count in counts.items():
                    target[len(group) - 1] += count

    def _groups(self, words: Any) -> Counter[Any]:
        sizes = range(1, self.n_gram + 1)
        return Counter(tuple(words[at : at + size]) for size in sizes for at in range(len(words) - size + 1))

    def eval(self) -> Any:
        expect_update(self._is_update)
        if self._right.min() == 0:
            return np.array(0.0)
        more = int(self.smooth)
        score = np.exp(np.log((self._right + more) / (self._all + more)).mean())
        is_long = self._length > self._reference_length
        return score if is_long else score * np.exp(1 - self._reference_length / self._length)


@final
class CosineSimilarity(BatchMetric):
    """Products of each pair of rows, of length 1 each unless `similarity` is "dot". The last batch counts."""

    INPUTS = "inputs"

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        super().__init__()
        expect_one_of("CosineSimilarity", "similarity", similarity, ("dot", "cosine"))
        expect_one_of("CosineSimilarity", "reduction", reduction, ("none", "sum", "mean"))
        expect_type("CosineSimilarity", "zero_diagonal", zero_diagonal, bool)
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        self._products: Array = np.empty(0)
        self._is_update = False

    def take(self, rows: Any) -> None:
        rows = array_of(rows)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._products = rows @ rows.T

    def eval(self) -> Array:
        expect_update(self._is_update)
        products = self._products.copy()
        if self.zero_diagonal:
            np.fill_diagonal(products, 0)
        if self.reduction == "none":
            return products
        return np.asarray(products.mean(axis=-1) if self.reduction == "mean" else products.sum(axis=-1))


@final
class Dice(MeanMetric):
    """Twice the common part of two masks over both. Each batch is one pair; the sum is divided by the samples."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if isinstance(smooth, bool) or not isinstance(smooth, int | float) or smooth <= 0:
            raise ValueError(f"For 'Dice', the argument 'smooth' must be a float > 0, but got {smooth!r}.")
        self.smooth = smooth

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if predicted.shape != true.shape:
            raise ValueError(
                "For 'Dice.update', predicted value (input[0]) and true value (input[1]) should have same shape, but "
                f"got {predicted.shape} and {true.shape}."
            )
        common, both = (predicted * true).sum(), (predicted**2).sum() + (true**2).sum()
        self._sum += 2 * float(common) / float(both + self.smooth)
        self._count += len(true)


@final
class OcclusionSensitivity(BatchMetric):
    """How much a model's output for a label falls when a square of the image is covered. The last batch counts.

    margin   elements around the centre of the square
    b_box    first and last centre along each axis but the batch's: [min1, max1, min2, max2, ...]; -1 is the last one
    """

    INPUTS = "classification model, predicted value, label"

    def __init__(
        self, pad_val: float = 0.0, margin: int = 2, n_batch: int = 128, b_box: list[int] | None = None
    ) -> None:
        super().__init__()
        expect_type("OcclusionSensitivity", "pad_val", pad_val, float)
        expect_type("OcclusionSensitivity", "margin", margin, int)
        expect_type("OcclusionSensitivity", "n_batch", n_batch, int)
        if b_box is not None:
            expect_type("OcclusionSensitivity", "b_box", b_box, list)
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        self.clear()

    def clear(self) -> None:
        self._sensitivity: Array = np.empty(0)
        self._is_update = False

    def take(self, model: Any, image: Any, label: Any) -> None:
        """Inputs: the model, one image [1, ...], its label. The model gives [n, classes]."""
        image = array_of(image)
        expect_type("OcclusionSensitivity", "model", model, Cell)
        label = np.asarray(label if isinstance(label, int) else array_of(label))
        if image.shape[0] != 1 or label.size != 1:
            raise RuntimeError(
                f"For 'OcclusionSensitivity.update', expected one image and one label, but got {image.shape[0]} and "
                f"{label.size}."
            )
        first, last = self._box(image.shape[1:])
        index = int(label.item())
        baseline = model(Tensor(image)).asnumpy()[0, index]
        shape = tuple(int(size) for size in last - first + 1)
        centres = [first + np.array(at) for at in np.ndindex(*shape)]
        scores = []
        for begin in range(0, len(centres), self.n_batch):
            covered = [self._covered(image, centre) for centre in centres[begin : begin + self.n_batch]]
            scores.append(model(Tensor(np.concatenate(covered))).asnumpy()[:, index])
        self._sensitivity = np.squeeze(baseline - np.concatenate(scores).reshape(shape))

    def _box(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Raises: ValueError for a box that does not fit the image."""
        size = np.array(shape)
        if self.b_box is None:
            return np.zeros(len(shape), np.int64), size - 1
        if len(self.b_box) != 2 * len(shape):
            raise ValueError(
                f"For 'OcclusionSensitivity', expected {2 * len(shape)} numbers in 'b_box', but got {len(self.b_box)}."
            )
        first, last = np.maximum(self.b_box[::2], 0), np.array(self.b_box[1::2])
        last = np.where(last < 0, size - 1, last)
        if (last >= size).any() or (first > last).any():
            raise ValueError(f"For 'OcclusionSensitivity', 'b_box' {self.b_box} does not fit an image of {shape}.")
        return first, last

    def _covered(self, image: Array, centre: Array) -> Array:
        copy = image.copy()
        square = [slice(max(0, at - self.margin), at + self.margin) for at in centre.tolist()]
        copy[(slice(None), *square)] = self.pad_val
        return copy

    def eval(self) -> Array:
        expect_update(self._is_update)
        return self._sensitivity


publish(__name__)

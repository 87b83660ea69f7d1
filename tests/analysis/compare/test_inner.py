"""What fused operators make on their way is found where it leads to what they made, and only there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.compare.inner import inner_values
from msdump.analysis.compare.values import Matches
from tests.analysis.compare.test_values import figures
from tests.analysis.small_dump import Array


def _inside(folder: Path, kind: str, inputs: Sequence[Array], result: Array, sought: Array) -> tuple[int, bool]:
    """How many values lie on the way to a result, and whether one is the sought one."""
    *read, made, wanted = figures(folder, *inputs, result, sought)
    found = inner_values(kind, list(enumerate(read)), made, None)
    return len(found), bool(Matches(found).of(wanted))


def _softmax(scores: Array) -> Array:
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 999), mask=st.sampled_from(["none", "causal", "added", "bool"]))
def test_scores_and_shares_of_an_attention(tmp_path_factory: pytest.TempPathFactory, seed: int, mask: str) -> None:
    rng = np.random.default_rng(seed)
    query, key, value = rng.standard_normal((3, 2, 4, 5, 8), dtype=np.float32)
    scores = query @ key.swapaxes(-1, -2) / np.float32(8**0.5)
    inputs = [query, key, value]
    if mask == "causal":
        scores = np.where(np.tri(5, dtype=bool), scores, np.float32(-np.inf))
    elif mask == "bool":
        seen = rng.random((5, 5)) < 0.7
        seen[:, 0] = True
        scores = np.where(seen, scores, np.float32(-np.inf))
        inputs.append(seen)
    elif mask == "added":
        inputs.append(rng.standard_normal((5, 5), dtype=np.float32))
        scores = scores + inputs[-1]
    shares = _softmax(scores)
    folder = tmp_path_factory.mktemp("attention")
    assert _inside(folder / "shares", "attention", inputs, shares @ value, shares)[1]
    assert _inside(folder / "scores", "attention", inputs, shares @ value, scores)[1]
    assert _inside(folder / "other", "attention", inputs, shares @ value * np.float32(1.01), shares) == (0, False)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 999), epsilon=st.sampled_from([1e-5, 1e-6, 1e-3]), is_batch=st.booleans())
def test_the_way_to_a_norm(tmp_path_factory: pytest.TempPathFactory, seed: int, epsilon: float, is_batch: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((6, 8), dtype=np.float32) + 3
    axis = 0 if is_batch else 1
    weight, bias = rng.random((2, 8), dtype=np.float32) + np.float32(0.5)
    centred = x - x.mean(axis, keepdims=True)
    scaled = centred / np.sqrt(x.var(axis, keepdims=True) + np.float32(epsilon))
    kind, folder = "batch_norm" if is_batch else "layer_norm", tmp_path_factory.mktemp("norm")
    for name, sought in (("centred", centred), ("scaled", scaled), ("weighed", scaled * weight)):
        assert _inside(folder / name, kind, [x, weight, bias], scaled * weight + bias, sought)[1], name
    assert _inside(folder / "other", kind, [x, weight, bias], scaled * weight - bias, centred) == (0, False)


def test_the_product_before_a_bias(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, bias = rng.standard_normal((5, 6), dtype=np.float32), rng.standard_normal(4, dtype=np.float32)
    weight = rng.standard_normal((4, 6), dtype=np.float32)
    product = x @ weight.T
    assert _inside(tmp_path / "first", "linear", [x, weight, bias], product + bias, product) == (1, True)
    assert _inside(tmp_path / "last", "linear", [bias, x, weight.T.copy()], product + bias, product) == (1, True)
    assert _inside(tmp_path / "none", "matmul", [x, weight, bias], product + bias, product) == (0, False)


def test_the_share_of_a_silu(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32)
    share = 1 / (1 + np.exp(-x))
    assert _inside(tmp_path, "silu", [x], x * share, share) == (1, True)


def test_what_does_not_fit_has_no_inside(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3), dtype=np.float32), rng.standard_normal((4,), dtype=np.float32)
    for kind in ("attention", "layer_norm", "batch_norm", "linear", "silu"):
        assert _inside(tmp_path / kind, kind, [x, y], y, y) == (0, False)

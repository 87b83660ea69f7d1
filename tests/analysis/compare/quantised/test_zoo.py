"""Models that onnxruntime quantised: msdump ranks weights and activations as onnxruntime's own tool measures them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.analysis import headline
from tests.quantised_zoo import MODELS, lowest, measured

LIBRARIES = {"resnet18": "torchvision", "mobilenet_v2": "torchvision", "BERT": "transformers"}


@pytest.mark.slow
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_noise_is_that_of_the_loss_debugger(name: str, per_channel: bool, tmp_path: Path) -> None:
    if name in LIBRARIES and importlib.util.find_spec(LIBRARIES[name]) is None:
        pytest.skip(f"{LIBRARIES[name]} is not installed")
    found = measured(name, tmp_path, per_channel)
    assert found.comparison.is_agreeing, headline(found.comparison)
    assert found.weights == pytest.approx(found.their_weights, abs=1e-3)
    assert lowest(found.weights) == lowest(found.their_weights)
    assert found.activations == pytest.approx(found.their_activations, abs=1e-3)
    assert lowest(found.activations) == lowest(found.their_activations)
    # Rounding to 8 bits leaves 40 dB or more; the other tool subtracts a zero point in the dtype of the codes.
    assert all(mine > 40 > 0 > theirs for mine, theirs in found.wrapped.values())

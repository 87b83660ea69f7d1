"""Models that torch.ao quantised while a script ran: steps that measure and round come before the one that works."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
quantization = pytest.importorskip("torch.ao.quantization")

import msdump  # noqa: E402
from msdump.analysis import compare_dumps, headline  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = quantization.QuantStub(), quantization.DeQuantStub()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: Any) -> Any:
        x = self.enter(x)
        for layer in self.layers[:3]:
            x = torch.relu(layer(x))
        return self.leave(self.layers[3](x))


def in_codes(model: Any, how: str, x: Any) -> Any:
    if how == "dynamic":
        return quantization.quantize_dynamic(model, {torch.nn.Linear})
    if "x86" not in torch.backends.quantized.supported_engines:
        pytest.skip("no engine for static quantisation")
    model.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(model, inplace=True)
    model(x)
    return quantization.convert(model)


# The static engine has a scale for each channel, which takes an outlier in.
@pytest.mark.parametrize(("how", "outlier"), [("dynamic", 0.0), ("dynamic", 8.0), ("static", 0.0)])
def test_layers_pair_with_those_in_floats(how: str, outlier: float, tmp_path: Path) -> None:
    for name in ("golden", "mine"):
        torch.manual_seed(0)
        model = Net().eval()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.layers[2].weight[1, 2] += outlier
            x = torch.randn(16, 32)
            with msdump.watch(config=config(tmp_path / name, True)):
                # What is measured before is rounded and packed in the same run.
                (in_codes(model, how, x) if name == "mine" else model)(x)
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.quantised is not None
    weights = {one.operator.label: one.weight for one in found.quantised.ranking if one.weight is not None}
    assert len(weights) == 4
    if outlier:
        assert "layers.2-Linear" in headline(found)[0]
        assert "one outlier in channel 1, " in headline(found)[0]
    else:
        assert found.is_agreeing and min(noise.sqnr_db for noise in weights.values()) > 40

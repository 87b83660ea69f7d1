"""float16 that overflows on the Ascend profile: Inf, or 65504 where the environment chooses saturation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.mindspore import Tensor, nn, ops

BIG = np.array([300.0, -300.0, 1.0], np.float16)


class Net(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x * ops.sign(x), (x.astype(ms.float32) * 1e6).astype(ms.float16), ops.matmul(x, x)


@pytest.mark.parametrize("provider", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("target", "variables", "is_saturated"),
    [
        ("Ascend", {}, False), ("Ascend", {"INF_NAN_MODE_ENABLE": "1"}, False),
        ("Ascend", {"INF_NAN_MODE_ENABLE": "0"}, True),
        ("Ascend", {"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"}, True),
        ("Ascend", {"MS_ASCEND_CHECK_OVERFLOW_MODE": "INFNAN_MODE", "INF_NAN_MODE_ENABLE": "0"}, False),
        ("CPU", {"INF_NAN_MODE_ENABLE": "0"}, False),
    ],
)  # fmt: skip
def test_both_modes(
    either_mode: int, monkeypatch: pytest.MonkeyPatch, target: str, variables: dict[str, str], is_saturated: bool,
    provider: str,
) -> None:  # fmt: skip
    if provider == "torch":
        pytest.importorskip("torch")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ms.set_context(device_target=target, kernel_backend=provider)
    limit = 65504.0 if is_saturated else np.inf
    product, cast, total = (each.asnumpy().astype(np.float64).tolist() for each in Net()(Tensor(BIG)))
    assert product == [limit, -limit, 1.0]
    assert cast == [limit, -limit, limit]
    assert total == limit


def test_what_a_script_writes_down_stays(monkeypatch: pytest.MonkeyPatch, either_mode: int) -> None:
    monkeypatch.setenv("INF_NAN_MODE_ENABLE", "0")
    ms.set_context(device_target="Ascend")
    mask = Tensor(np.array([True, False, False]))
    filled = ops.masked_fill(Tensor(BIG), mask, -np.inf).asnumpy()
    assert filled.tolist() == [-np.inf, -300, 1]
    assert ops.reshape(Tensor(np.array([np.inf], np.float16)), (1, 1)).asnumpy().tolist() == [[np.inf]]


def test_overflow_detection_finds_it(plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {
        "common_dump_settings": {
            "op_debug_mode": 3, "dump_mode": 0, "path": str(plain_path / "dump"), "net_name": "Net",
            "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0],
            "file_format": "npy",
        }
    }  # fmt: skip
    (plain_path / "dump.json").write_text(json.dumps(config))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(plain_path / "dump.json"))
    monkeypatch.setenv("INF_NAN_MODE_ENABLE", "0")
    ms.set_context(device_target="Ascend", mode=ms.GRAPH_MODE)

    class Once(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.sqrt(ops.abs(x * x + 1))

    Once()(Tensor(BIG))
    opened = opening.current()
    assert opened is not None
    opened.close()
    names = {path.name.split(".")[0] for path in (plain_path / "dump").rglob("*.npy")}
    assert names == {"Mul"}

"""Every test of the shim starts with default settings, and a seed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import msdump.mindspore as ms
from msdump.errors import KernelNotFoundError
from msdump.mindspore.context import reset_context

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Without PyTorch a test of an operator that PyTorch computes is skipped; `test_without_torch.py` says which."""
    try:
        return (yield)
    except KernelNotFoundError as error:
        if HAS_TORCH or "expected PyTorch" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def default_context() -> Iterator[None]:
    reset_context()
    ms.set_seed(7)
    yield
    reset_context()


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
def either_mode(request: pytest.FixtureRequest) -> int:
    """The test runs in both modes."""
    mode: int = request.param
    ms.set_context(mode=mode)
    return mode


@pytest.fixture
def sync_dump(plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Switches on a synchronous dump of everything, with changes; returns the folder of the rank."""

    def start(**changes: Any) -> Path:
        common = {
            "dump_mode": 0, "path": str(plain_path / "dump"), "net_name": "Net", "iteration": "all",
            "input_output": 0, "kernels": [], "support_device": [0], **changes,
        }  # fmt: skip
        config = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
        (plain_path / "dump.json").write_text(json.dumps(config))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(plain_path / "dump.json"))
        return plain_path / "dump" / "rank_0"

    return start


def execution_order(root: Path) -> list[str]:
    """Names of the operators of all graphs of a dump, in the order in which they ran, without their numbers."""
    names: list[str] = []
    for path in sorted(root.rglob("ms_execution_order_graph_*.csv")):
        names += [line.rpartition("-op")[0] for line in path.read_text().splitlines()[1:]]
    return names

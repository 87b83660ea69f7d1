"""Every test of the shim starts with default settings, and a seed."""

from __future__ import annotations

from collections.abc import Iterator

import msdump.mindspore as ms
import pytest

from msdump.frontends.mindspore.context import reset_context


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

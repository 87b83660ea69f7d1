"""Each test compiles anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    yield
    if sys.modules.get("torch") is not None:
        sys.modules["torch"]._dynamo.reset()

"""What the tests of compiled programs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msdump.engine import opening


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And no backend of msdump's was in use: these have all compiled anew for each dump."""
    import torch

    torch._dynamo.reset()
    monkeypatch.setattr(opening, "_compilers", [])
    yield
    torch._dynamo.reset()

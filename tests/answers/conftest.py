"""One shell for the programs of a test file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.answers.running import Shell


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with Shell() as opened:
        yield opened

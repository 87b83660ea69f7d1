"""Every test has ACL as a process that has just begun."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from msdump.errors import DumpError


@pytest.fixture(autouse=True)
def fresh_process(clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from msdump.frontends.acl.calls import take_messages
    from msdump.frontends.acl.process import process

    monkeypatch.delenv("NPU_COLLECT_PATH", raising=False)
    process.reset_for_tests()
    take_messages()
    yield
    with contextlib.suppress(DumpError):
        process.close()
    process.reset_for_tests()

"""The servers of a test session, one for each family, started when a test needs one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.runs import Server, build_library

_NEEDS = {"mindspore": ("msdump.mindspore",), "torch": ("torch",), "acl": ("onnx", "onnxruntime")}


class Servers:
    """Servers by family."""

    def __init__(self, library: object, stack: ExitStack) -> None:
        self._library = library
        self._stack = stack
        self._servers: dict[str, Server] = {}

    def __getitem__(self, family: str) -> Server:
        if isinstance(self._library, str):
            pytest.skip(self._library)
        for name in _NEEDS[family]:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"needs {name}")
        if family not in self._servers:
            self._servers[family] = self._stack.enter_context(Server(family, self._library))
        return self._servers[family]


@pytest.fixture(scope="session")
def servers(plain_root: Path) -> Iterator[Servers]:
    # LD_PRELOAD takes no path with blanks.
    with ExitStack() as stack:
        yield Servers(build_library(plain_root), stack)

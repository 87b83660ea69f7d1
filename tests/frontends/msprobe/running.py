"""Runs scripts of PrecisionDebugger in this process, and reads what they leave."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from msdump.frontends.aliases import drop_aliases, install_aliases
from msdump.process import sessions


@contextmanager
def as_msprobe() -> Iterator[None]:
    """`import msprobe` gives msdump's, for one PrecisionDebugger."""
    sessions.reset_for_tests()
    install_aliases(("msprobe",), prefer_real=False)
    random_state, numpy_state = torch.get_rng_state(), np.random.get_state()
    try:
        yield
    finally:
        sessions.reset_for_tests()
        drop_aliases()
        for name in [name for name in sys.modules if name.partition(".")[0] == "msprobe"]:
            del sys.modules[name]
        torch.use_deterministic_algorithms(False)
        torch.set_rng_state(random_state)
        np.random.set_state(numpy_state)


def run_script(path: Path, *arguments: str) -> None:
    """As `python PATH ARGUMENTS`, with the dump finished at the end."""
    before = sys.argv
    sys.argv = [str(path), *arguments]
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = before
    sessions.close_all()


def config_file(folder: Path, **config: Any) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({"dump_path": str(folder / "dump"), **config}))
    return str(path)


def records(folder: Path, step: int = 0, name: str = "dump.json") -> dict[str, Any]:
    """The content of one file of a step, of the only process."""
    (path,) = (folder / "dump" / f"step{step}").glob(f"*/{name}")
    content: dict[str, Any] = json.loads(path.read_text())
    return content["data"] if name in ("dump.json", "debug.json") else content

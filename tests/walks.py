"""The files that a program of one operator goes through, in the order of their first calls.

    python -m tests.walks NAME

docs/reading-order.md lists walks through the code; tests/test_architecture.py follows each with its program.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import msdump
from msdump._version import FOLDER
from msdump.config.environment import NATIVE


def config(folder: Path, **settings: Any) -> dict[str, Any]:
    common = {
        "dump_mode": 0,
        "path": str(folder),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **settings,
    }
    return {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}


def native(folder: Path) -> Callable[[], Any]:
    """The second time that the compiled observer sees the same."""
    return _watched(folder, saved_data="statistic", statistic_category=["max"])


def eager(folder: Path) -> Callable[[], Any]:
    """From the dispatch mode, also where the compiled observer is installed."""
    os.environ[NATIVE] = "0"
    return _watched(folder)


def _watched(folder: Path, **settings: Any) -> Callable[[], Any]:
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin()

    net, x = Net(), torch.ones(3)
    watch = msdump.watch(net, config(folder, **settings))
    watch.__enter__()

    def step() -> None:
        net(x)
        watch.step()

    step()
    return step


def compiled(folder: Path) -> Callable[[], Any]:
    import torch

    from msdump.frontends.torch import backend

    msdump.dump(config(folder)).__enter__()
    function = torch.compile(torch.sin, backend=backend)
    x = torch.ones(3)
    function(x)
    return lambda: function(x)


def mindspore(folder: Path) -> Callable[[], Any]:
    import msdump.mindspore as ms

    msdump.dump(config(folder)).__enter__()
    function, x = ms.jit(ms.ops.sin), ms.Tensor(np.ones(3, np.float32))
    function(x)
    return lambda: function(x)


def _dumped(folder: Path) -> Path:
    mindspore(folder)()
    msdump.process.sessions.close_all()
    return folder


def nan(folder: Path) -> Callable[[], Any]:
    dump = _dumped(folder / "dump")
    msdump.find_nan(dump)
    return lambda: msdump.find_nan(dump)


def compare(folder: Path) -> Callable[[], Any]:
    dump = _dumped(folder / "dump")
    msdump.compare(dump, dump)
    return lambda: msdump.compare(dump, dump)


PROGRAMS = {program.__name__: program for program in (mindspore, compiled, eager, native, nan, compare)}


def visited(name: str, folder: Path) -> list[str]:
    """Paths below msdump/ in which a function is called, in all threads, while the program runs a second time."""
    run = PROGRAMS[name](folder)
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(FOLDER):
            files.setdefault(path[len(FOLDER) :])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(files)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as text:
        for path in visited(sys.argv[1], Path(text)):
            print(path)

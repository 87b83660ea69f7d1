"""One small model for each front end, in this process, with a dump into a folder; also for scripts of a test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Runs the model once.
Step = Callable[[], object]


def _configure(folder: Path, matches: bool, is_sync: bool) -> None:
    common = {
        "dump_mode": 1 - matches, "path": str(folder), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 2, "kernels": [] if matches else ["Nope"], "support_device": [0], "op_debug_mode": 0,
        "file_format": "npy",
    }  # fmt: skip
    path = folder.parent / "dump.json"
    settings = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    path.write_text(json.dumps(settings))
    os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)


def mindspore(folder: Path, matches: bool = True) -> Step:
    import msdump.mindspore as ms

    class Net(ms.nn.Cell):
        def construct(self, x: Any) -> Any:
            return ms.ops.relu(x) + 1

    _configure(folder, matches, is_sync=False)
    net, x = Net(), ms.Tensor(np.ones((2, 3), np.float32))
    return lambda: net(x)


def torch_backend(folder: Path, matches: bool = True) -> Step:
    import torch

    from msdump.frontends.torch import backend

    _configure(folder, matches, is_sync=True)
    compiled = torch.compile(lambda x: x.relu() + 1, backend=backend)
    return lambda: compiled(torch.ones(2, 3))


def acl(folder: Path, matches: bool = True) -> Step:
    from msdump.frontends import acl
    from tests.frontends.acl.calls import ok
    from tests.frontends.acl.scripts import config, run_small, small_model

    path = config(folder.parent, dump_list=[{} if matches else {"layer": ["nope"]}], dump_path=str(folder))
    folder.mkdir()
    ok(acl.init(path))
    model_id = ok(acl.mdl.load_from_file(small_model(folder.parent)))
    return lambda: run_small(model_id)


def _torchair(set_options: Callable[[Any], None]) -> Step:
    import torch

    import msdump.torchair as torchair

    options = torchair.CompilerConfig()
    set_options(options)
    compiled = torch.compile(lambda x: x.relu() + 1, backend=torchair.get_npu_backend(compiler_config=options))
    return lambda: compiled(torch.ones(2, 3))


def ge_graph(folder: Path, matches: bool = True) -> Step:
    folder.mkdir()

    def set_options(options: Any) -> None:
        options.dump_config.enable_dump = True
        options.dump_config.dump_path = str(folder)
        if not matches:
            options.dump_config.dump_layer = "nope"

    os.chdir(folder.parent)
    return _torchair(set_options)


def eager(folder: Path, matches: bool = True) -> Step:
    def set_options(options: Any) -> None:
        options.debug.data_dump.type = "npy"
        options.debug.data_dump.path = str(folder)
        if not matches:
            options.debug.data_dump.filter = lambda node: None

    return _torchair(set_options)


def msprobe(folder: Path, matches: bool = True) -> Step:
    import torch

    from msdump.frontends.msprobe.pytorch import PrecisionDebugger

    config = {
        "task": "statistics", "dump_path": str(folder), "level": "L1", "extra_info": False,
        "statistics": {"list": [] if matches else ["nope"], "tensor_list": ["relu"]},
    }  # fmt: skip
    path = folder.parent / "config.json"
    path.write_text(json.dumps(config))
    debugger = PrecisionDebugger(str(path))

    def step() -> None:
        debugger.start()
        torch.ones(2, 3).relu() + 1
        debugger.stop()
        debugger.step()

    return step


def captured(folder: Path, matches: bool = True) -> Step:
    """Nothing can be left out here."""

    folder.mkdir()

    def set_options(options: Any) -> None:
        options.mode = "npugraph_ex"
        options.dump_config.enable_dump = True
        options.dump_config.dump_path = str(folder)

    return _torchair(set_options)

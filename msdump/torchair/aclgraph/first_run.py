"""What the first run of a captured graph leaves in a debug save: `output_code.py`, and a Chrome trace of its calls."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from msdump.formats.paths.torchair import format_timestamp
from msdump.frontends.torch.program import FxCall, FxProgram
from msdump.torchair.aclgraph.output_code import FILE, MODE, output_code
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.model_folder import PhaseFolder
from msdump.torchair.eager_graph import target_name
from msdump.torchair.passes.storages import Storages

_HOST_TASK, _CUDA_TASK = "KERNEL_AICPU", "KERNEL_CUDA"
_capture_ids = itertools.count(1)


class FirstRun:
    """Records the first run; later runs pass through."""

    def __init__(
        self,
        module: GraphModule,
        program: FxProgram,
        run: Callable[[list[object]], object],
        graph_id: int,
        config: CompilerConfig,
        folder: PhaseFolder,
        device: torch.device,
    ) -> None:
        self._module = module
        self._program = program
        self._run = run
        self._graph_id = graph_id
        self._config = config
        self._folder = folder
        self._device = device
        self._is_first = threading.Lock()

    def run(self, args: list[object]) -> Any:
        """Results of the graph; the list of arguments is emptied."""
        # Never released: there is one first run over all threads.
        if not self._is_first.acquire(blocking=False):
            return self._run(args)
        capture_id = next(_capture_ids)
        model = self._folder.model
        self._save_script(args, capture_id)
        result, events = timed_run(self._program, args, self._device)
        name = trace_name(self._graph_id, capture_id, self._device.index or 0)
        model.write(model.path / name, lambda: trace_text(events))
        return result

    def _save_script(self, args: Sequence[object], capture_id: int) -> None:
        model, phase = self._folder.model, self._folder
        title = f"graph_{self._graph_id}: {phase.phase} graph of {model.path.name}."
        facts = {
            "graph_id": self._graph_id,
            "capture_id": capture_id,
            "phase": phase.phase,
            "device": str(self._device),
            "mutated_inputs": _mutated(self._module),
        }
        options = _options(self._config)
        model.write(
            phase.path / FILE,
            lambda: output_code(self._module, args, title, options, facts),
            MODE,
        )


def _mutated(module: GraphModule) -> list[int]:
    storages = Storages(module.graph)
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    return [index for index, node in enumerate(inputs) if storages.is_written(node)]


def _options(config: CompilerConfig) -> Mapping[str, str]:
    """What the configuration sets, and the mode."""
    chosen = {"mode": str(config.mode.value)}
    for option in config.options():
        if not option.is_default and not callable(option.raw):
            chosen[option.where.removeprefix("config.")] = str(option.value)
    return chosen


def trace_name(graph_id: int, capture_id: int, device_id: int) -> str:
    """Name of the file.   Source: TorchAir debug save."""
    moment = format_timestamp(time.time_ns() // 1000)
    return f"graph_{graph_id}_id_{capture_id}_rank_{device_id}_pid_{os.getpid()}_ts_{moment}.json"


def timed_run(program: FxProgram, args: list[object], device: torch.device) -> tuple[object, list[dict[str, object]]]:
    """Results of one run, and a complete event per call, in microseconds since the run began.

    Edges:  on a CUDA device each call is waited for, so that its time is its own and not that of its launch.
    Source: Chrome trace format, events of phase "X"; the keys of `args` as CANN writes them.
    """
    is_cuda = device.type == "cuda"
    task = _CUDA_TASK if is_cuda else _HOST_TASK
    slots = program.begin(args)
    events: list[dict[str, object]] = []
    start_ns = time.perf_counter_ns()
    for number, call in enumerate(program.calls):
        begin_ns = time.perf_counter_ns()
        slots[call.out] = call.run(slots)
        if is_cuda:
            torch.cuda.synchronize(device)
        end_ns = time.perf_counter_ns()
        events.append(_event(call, number, task, slots[call.out], (begin_ns - start_ns, end_ns - begin_ns)))
        for slot in call.frees:
            slots[slot] = None
    return program.outputs(slots), events


def trace_text(events: list[dict[str, object]]) -> str:
    """Text of the file: a list of events."""
    return "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n"


def _event(call: FxCall, number: int, task: str, result: object, times_ns: tuple[int, int]) -> dict[str, object]:
    results = result if isinstance(result, (list, tuple)) else (result,)
    begin_ns, duration_ns = times_ns
    return {
        "name": target_name(call.node.target),
        "ph": "X",
        "pid": os.getpid(),
        "tid": "stream0",
        "ts": begin_ns / 1000,
        "dur": duration_ns / 1000,
        "args": {
            "Task Type": task,
            "Task Id": number,
            "Stream Id": 0,
            "Node": call.node.name,
            "Outputs": [_form(value) for value in results],
        },
    }


def _form(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value) if isinstance(value, (int, float, bool)) else type(value).__name__

"""Chrome trace of a captured graph: what ran on the first call, when, and how long."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import torch

from msdump.formats.paths.torchair import format_timestamp
from msdump.frontends.torch.program import Call, Program
from msdump.frontends.torchair.node_plan import target_name

_HOST_TASK, _CUDA_TASK = "KERNEL_AICPU", "KERNEL_CUDA"


def trace_name(graph_id: int, capture_id: int, device_id: int) -> str:
    """Name of the file.   Source: TorchAir debug save."""
    moment = format_timestamp(time.time_ns() // 1000)
    return f"graph_{graph_id}_id_{capture_id}_rank_{device_id}_pid_{os.getpid()}_ts_{moment}.json"


def timed_run(program: Program, args: list[Any], device: torch.device) -> tuple[Any, list[dict[str, Any]]]:
    """Results of one run, and a complete event per call, in microseconds since the run began.

    Edges:  on a CUDA device each call is waited for, so that its time is its own and not that of its launch.
    Source: Chrome trace format, events of phase "X"; the keys of `args` as CANN writes them.
    """
    is_cuda = device.type == "cuda"
    task = _CUDA_TASK if is_cuda else _HOST_TASK
    slots = program.begin(args)
    events: list[dict[str, Any]] = []
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


def trace_text(events: list[dict[str, Any]]) -> str:
    """Text of the file: a list of events."""
    return "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n"


def _event(call: Call, number: int, task: str, result: Any, times_ns: tuple[int, int]) -> dict[str, Any]:
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


def _form(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value) if isinstance(value, (int, float, bool)) else type(value).__name__

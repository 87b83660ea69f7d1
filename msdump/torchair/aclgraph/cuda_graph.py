"""Replay of a graph as a CUDA graph: one launch for all its kernels."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from msdump.frontends.torch.program import FxProgram
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ops.library import PRINT, name_of
from msdump.torchair.passes.storages import Storages

log = logging.getLogger("msdump")

_WARM_UP_RUNS = 2


class CudaReplay:
    """Captures a program once per form of its inputs and replays it. One thread at a time may call it.

    Inputs are copied to where the capture read them and results are copied out, so that they live on. Captures share
    one pool of memory, as none of them leaves anything there; frozen parameters are read where they lie, and a capture
    holds for that place alone.
    Edges: runs the program's calls instead where a capture does not fit: more forms than
           `debug.aclgraph.static_capture_size_limit`, or an operator that CUDA cannot capture (logged once).
    """

    def __init__(self, program: FxProgram, config: CompilerConfig) -> None:
        self._program = program
        self._limit = int(config.debug.aclgraph.static_capture_size_limit.value)
        self._pool = config.aclgraph_config.use_custom_pool.value
        self._shares_pool = not config.debug.aclgraph.disable_mempool_reuse_in_same_fx
        self._is_frozen = bool(config.experimental_config.frozen_parameter)
        self._error_mode = str(config.experimental_config.aclgraph._capture_error_mode.value)
        self._captured: dict[Any, tuple[Any, list[Any], Any]] = {}
        self._is_refused = False

    def run(self, args: list[Any]) -> Any:
        """Results of the graph; the list of arguments is emptied."""
        form = tuple([(*_form(value), value.data_ptr()) if self._stays(value) else _form(value) for value in args])
        if form not in self._captured and not self._is_refused and len(self._captured) < self._limit:
            try:
                self._captured[form] = self._capture(args)
            except RuntimeError as error:
                self._is_refused = True
                log.warning("The graph runs call by call, it cannot be captured: %s", str(error).partition("\n")[0])
        if form not in self._captured:
            return self._program.run(args)
        graph, inputs, outputs = self._captured[form]
        for own, value in zip(inputs, args, strict=True):
            if isinstance(own, torch.Tensor) and not self._stays(value):
                own.copy_(value)
        args.clear()
        graph.replay()
        return tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in outputs)

    def _capture(self, args: Sequence[object]) -> tuple[Any, list[Any], Any]:
        inputs = [
            value.clone() if isinstance(value, torch.Tensor) and not self._stays(value) else value for value in args
        ]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP_RUNS):
                self._program.run(list(inputs))
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode=self._error_mode):
            outputs = self._program.run(list(inputs))
        if self._shares_pool and self._pool is None:
            self._pool = graph.pool()
        return graph, inputs, outputs

    def _stays(self, value: object) -> bool:
        return self._is_frozen and isinstance(value, torch.nn.Parameter)


def fits(module: GraphModule) -> bool:
    """May the module be captured? Its tensors are on one CUDA device, and it writes no input, draws and prints nothing.

    Warm-up runs would write an input, move the random numbers on, or print more often than the model does.
    """
    devices: set[torch.device] = set()
    storages = Storages(module.graph)
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            devices.add(value.device)
        if node.op == "placeholder" and storages.is_written(node):
            return False
        if node.op == "call_function" and _differs_in_a_replay(node.target):
            return False
    return len(devices) == 1 and devices.pop().type == "cuda"


def _differs_in_a_replay(target: object) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()) or name_of(target) == PRINT


def _form(value: object) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride()
    return value

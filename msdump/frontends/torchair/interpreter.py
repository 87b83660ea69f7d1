"""Runs an FX graph node by node and saves what its operators read and wrote."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from msdump.frontends.torchair.node_plan import NodePlan
from msdump.frontends.torchair.ranks import process_rank
from msdump.frontends.torchair.step_files import DumpFolder, StepFiles


class DumpingInterpreter(Interpreter):
    """One compiled graph. Each call of `run_step` is one step with a folder of its own; any thread may call it.

    A step whose number was given keeps it when the model raises in the middle: its files never mix with another call's.
    """

    def __init__(self, module: GraphModule, plans: dict[Node, NodePlan], folder: DumpFolder, graph_id: int) -> None:
        super().__init__(module)
        # Otherwise the interpreter rewrites the text of the model's own exceptions.
        self.extra_traceback = False
        self._plans = plans
        self._folder = folder
        self._graph_id = graph_id
        self._steps = itertools.count()
        self._current: NodePlan | None = None
        self._files: StepFiles | None = None

    def run_step(self, args: list[Any]) -> Any:
        """Run the graph; `args` is emptied, so that inputs are freed as soon as nobody needs them."""
        # What belongs to one run lives in a copy: the graph may be running in another thread or further up the stack.
        run = copy.copy(self)
        step = next(self._steps)
        if self._folder.is_broken:
            return run.boxed_run(args)
        run._files = self._folder.open_step(*process_rank(), self._graph_id, step)
        try:
            return run.boxed_run(args)
        finally:
            if run._files is not None:
                run._files.close()

    def run_node(self, n: Node) -> Any:
        self._current = self._plans.get(n)
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        plan, files = self._current, self._files
        if plan is None or files is None:
            return super().call_function(target, args, kwargs)
        timestamp_us = self._folder.clock.next_us()
        # Saved before the operator runs, because it may write into what it reads.
        if not plan.is_wait:
            files.save_inputs(plan, timestamp_us, args, kwargs)
        result = super().call_function(target, args, kwargs)
        if plan.is_wait:
            files.save_inputs(plan, timestamp_us, args, kwargs)
        if plan.is_collective:
            _wait(result)
        files.save_outputs(plan, timestamp_us, result)
        return result


def _wait(result: Any) -> None:
    """Wait until a collective's results are there; the graph's own wait then finds nothing left to do."""
    for tensor in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(tensor, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(tensor)

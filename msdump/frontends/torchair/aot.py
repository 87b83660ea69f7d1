"""The backend behind `get_npu_backend`: AOTAutograd's forward, backward and inference graphs, run node by node."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule

from msdump.dump.clock import Clock
from msdump.errors import ConfigError
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.interpreter import DumpingInterpreter
from msdump.frontends.torchair.node_plan import plan_nodes
from msdump.frontends.torchair.step_files import DumpFolder, DumpTally

log = logging.getLogger("msdump")
torchair_log = logging.getLogger("torchair")
_outside_dynamo: Any = torch._dynamo.disable

# One counter, one clock and one tally for all backends of the process: their folders may be the same.
_graph_ids = itertools.count(1)
_clock = Clock()
tally = DumpTally()


class _Backend:
    """What one backend remembers between the graphs that it compiles."""

    def __init__(self, config: CompilerConfig, decompositions: dict[Any, Callable[..., Any]]) -> None:
        self.config = config
        self.decompositions = decompositions
        self.forward_graphs = 0
        self._folders: dict[str, DumpFolder] = {}

    def folder(self) -> DumpFolder:
        path = self.config.debug.data_dump.path
        return self._folders.setdefault(path, DumpFolder(path, tally, _clock))

    def count_forward_graph(self, graph_id: int) -> None:
        self.forward_graphs += 1
        if self.forward_graphs == 2:
            log.warning(
                "graph_%d: this backend compiles more than one graph: the model breaks into several, or came with a "
                "new shape or mode, or there is another model. Each graph has its own folder graph_N and counts its "
                "steps from 0.",
                graph_id,
            )


def make_backend(config: CompilerConfig, decompositions: dict[Any, Callable[..., Any]]) -> Callable[..., Any]:
    """Backend function for `torch.compile`."""
    return functools.partial(_compile, _Backend(config, decompositions))


def _compile(backend: _Backend, module: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """One graph that Dynamo found. Its backward may be compiled much later, when it is first needed."""
    if options:
        raise ConfigError(
            f"torch.compile: expected no options for this backend, got {options}. Set them in the CompilerConfig."
        )
    if any(isinstance(value, (list, tuple, dict)) for value in example_inputs):
        # Graphs of compiled autograd take lists.
        return flatten_graph_inputs(module, example_inputs, functools.partial(_compile, backend))
    # Compiled code runs inside frames that Dynamo may be watching; it must not compile the interpreter itself.
    compilers = {
        phase: _outside_dynamo(functools.partial(_compile_phase, backend, phase))
        for phase in ("forward", "backward", "inference")
    }
    return aot_module_simplified(
        module,
        example_inputs,
        fw_compiler=compilers["forward"],
        bw_compiler=compilers["backward"],
        inference_compiler=compilers["inference"],
        decompositions=backend.decompositions,
        keep_inference_input_mutations=bool(backend.config.experimental_config.keep_inference_input_mutations),
    )


def _compile_phase(backend: _Backend, phase: str, module: GraphModule, example_inputs: Sequence[Any]) -> Any:
    data_dump = backend.config.debug.data_dump
    if data_dump.type.value is None:
        return _boxed(_plain_run(module))
    graph_id = next(_graph_ids)
    plans = plan_nodes(module.graph, data_dump.filter)
    torchair_log.debug("graph_%d: %s, %d of %d nodes are dumped", graph_id, phase, len(plans), len(module.graph.nodes))
    if phase != "backward":
        backend.count_forward_graph(graph_id)
    if not plans:
        return _boxed(_plain_run(module))
    return _boxed(DumpingInterpreter(module, plans, backend.folder(), graph_id).run_step)


def _plain_run(module: GraphModule) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        inputs = tuple(args)
        args.clear()
        return module.forward(*inputs)

    return run


def _boxed(run: Callable[[list[Any]], Any]) -> Any:
    """The function as AOTAutograd takes it: one list of arguments, which it may empty."""

    def boxed(args: list[Any]) -> Any:
        return run(args)

    disabled: Any = _outside_dynamo(boxed)
    disabled._boxed_call = True
    return disabled

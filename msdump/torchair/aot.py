"""The backend behind `get_npu_backend`: AOTAutograd's forward, backward and inference graphs, one compilation each."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule

from msdump.dumpers.capture import Clock
from msdump.dumpers.limits import check_folder
from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.frontends.torch import outside
from msdump.frontends.torch.compiled_graph import compile_graph
from msdump.frontends.torch.partition import partition
from msdump.process import dry_run
from msdump.process.sessions import note_no_dump, note_own_configuration
from msdump.torchair.aclgraph.mode import compile_aclgraph_mode
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.debug_log import EVENT, TORCHAIR
from msdump.torchair.debug_save.model_folder import (
    ModelFolder,
    PhaseFolder,
    open_model,
)
from msdump.torchair.eager_dump import DumpedFxGraph, EagerDump, eager_dump
from msdump.torchair.eager_graph import plan_nodes
from msdump.torchair.file_dump import eager
from msdump.torchair.ge_mode import compile_ge_mode, is_ge_graph_listed
from msdump.torchair.passes.pipeline import plain_run

log = logging.getLogger("msdump")
torchair_log = logging.getLogger("torchair")
_outside_dynamo: Any = torch._dynamo.disable

GE_MODE = "max-autotune"
# One counter and one clock for all backends of the process: their folders may be the same.
_graph_ids = itertools.count(1)
_clock = Clock()

Run = Callable[[list[Any]], Any]


class _Backend:
    """State of a backend between the graphs that it compiles."""

    def __init__(self, config: CompilerConfig, decompositions: dict[Any, Callable[..., Any]], tool: str) -> None:
        self.config = config
        self.decompositions = decompositions
        self.tool = tool
        self.forward_graphs = 0

    def dump(self) -> EagerDump:
        """Raises: FolderError for a path that was set after the backend was made; ConfigError as `eager_dump`."""
        check_folder(Path(self.config.debug.data_dump.path))
        return eager_dump(str(dry_run.redirected(Path(self.config.debug.data_dump.path))), _clock)

    def count_forward_graph(self, graph_id: int) -> None:
        self.forward_graphs += 1
        if self.forward_graphs == 2:
            log.warning(
                "graph_%d: this backend compiles more than one graph: the model breaks into several, or came with a "
                "new shape or mode, or there is another model. Each graph has its own folder graph_N and counts its "
                "steps from 0.",
                graph_id,
            )


def make_backend(
    config: CompilerConfig, decompositions: dict[Any, Callable[..., Any]], tool: str = TORCHAIR
) -> Callable[..., Any]:
    """Backend function for `torch.compile`; `tool` is the folder of its debug saves.

    Raises: FolderError where an option names a folder in which no dump can begin.
    """
    _check_folders(config)
    note_own_configuration()
    return functools.partial(_compile, _Backend(config, decompositions, tool))


def _compile(backend: _Backend, module: GraphModule, example_inputs: Sequence[object], **options: object) -> Any:
    """One graph that Dynamo found. Its backward may be compiled much later, when it is first needed."""
    if options:
        raise ConfigError(
            f"torch.compile: expected no options for this backend, got {options}. Set them in the CompilerConfig."
        )
    if any(isinstance(value, (list, tuple, dict)) for value in example_inputs):
        # Graphs of compiled autograd take lists.
        return flatten_graph_inputs(module, example_inputs, functools.partial(_compile, backend))
    model = open_model(backend.tool)
    if model is None and not _leaves_files(backend.config):
        if opening.is_configured():
            # Of a graph that TorchAir's switches leave alone MindSpore's show each operator.
            return compile_graph(module, example_inputs)
        note_no_dump()
    if model is not None:
        model.save_dynamo_graph(module)
    # Compiled code runs inside frames that Dynamo may be watching; it must not compile the interpreter itself.
    compilers = {
        phase: _outside_dynamo(functools.partial(_compile_phase, backend, model, phase))
        for phase in ("forward", "backward", "inference")
    }
    compiled = aot_module_simplified(
        module,
        example_inputs,
        fw_compiler=compilers["forward"],
        bw_compiler=compilers["backward"],
        inference_compiler=compilers["inference"],
        partition_fn=functools.partial(_partition, backend, model),
        decompositions=backend.decompositions,
        keep_inference_input_mutations=bool(backend.config.experimental_config.keep_inference_input_mutations),
    )
    return outside.counted(compiled) if _is_dumping(backend.config) else compiled


def _partition(
    backend: _Backend, model: ModelFolder | None, joint: GraphModule, *args: object, **kwargs: object
) -> Any:
    """Cut forward and backward apart, and save the graph that has both."""
    if model is not None and backend.config.experimental_config.aot_config_enable_joint_graph:
        folder = model.open_phase("joint", backend.config)
        folder.save_graph(joint)
        folder.close()
    return partition(joint, *args, **kwargs)


def _compile_phase(
    backend: _Backend, model: ModelFolder | None, phase: str, module: GraphModule, example_inputs: Sequence[object]
) -> Any:
    graph_id = next(_graph_ids)
    folder = model.open_phase(phase, backend.config) if model is not None else None
    torchair_log.log(EVENT, "graph_%d: %s compilation begins", graph_id, phase)
    if torchair_log.isEnabledFor(logging.DEBUG):
        torchair_log.debug("compiler inputs: %s", list(map(_described, example_inputs)))
        torchair_log.debug("graph: %s", str(module.graph).strip())
    if folder is not None:
        folder.save_graph(module)
    try:
        run = _compiled(backend, phase, graph_id, module, example_inputs, folder)
        if not _is_dumping(backend.config):
            return _boxed(run)
        outside.note_compilation()
        return _boxed(outside.counted_backward(run) if phase == "backward" else run)
    finally:
        torchair_log.log(EVENT, "graph_%d: %s compilation ends", graph_id, phase)
        if folder is not None:
            folder.close()


def _compiled(
    backend: _Backend,
    phase: str,
    graph_id: int,
    module: GraphModule,
    example_inputs: Sequence[object],
    folder: PhaseFolder | None,
) -> Run:
    config = backend.config
    is_ge = config.mode.value == GE_MODE
    if is_ge and config.debug.fx_summary.type.value is not None:
        from msdump.torchair.graph_dump.fx_summary import write_summary

        write_summary(module, example_inputs, config)
        if config.debug.fx_summary.skip_compile:
            return plain_run(module)
    if config.debug.data_dump.type.value is not None:
        return _dumping(backend, phase, graph_id, module)
    if is_ge:
        return compile_ge_mode(module, example_inputs, graph_id, config, folder) or plain_run(module)
    return compile_aclgraph_mode(module, example_inputs, graph_id, config, folder, backend.tool)


def _dumping(backend: _Backend, phase: str, graph_id: int, module: GraphModule) -> Run:
    """The graph, run node by node with a file for each value."""
    dump = backend.dump()
    eager.begin(dump.files)
    plans = plan_nodes(module.graph, backend.config.debug.data_dump.filter)
    torchair_log.debug("graph_%d: %s, %d of %d nodes are dumped", graph_id, phase, len(plans), len(module.graph.nodes))
    if phase != "backward":
        backend.count_forward_graph(graph_id)
    if not plans:
        return plain_run(module)
    return DumpedFxGraph(module, plans, dump, graph_id).run


def _check_folders(config: CompilerConfig) -> None:
    """Of all options that are on. One that is set after the backend was made is checked when its dump begins."""
    debug, dump = config.debug, config.dump_config
    for is_on, path in (
        (debug.data_dump.type.value is not None, debug.data_dump.path),
        (debug.graph_dump.type.value is not None, debug.graph_dump.path),
        (bool(dump.enable_dump), dump.dump_path.value),
    ):
        if is_on:
            check_folder(Path(path))


def _is_dumping(config: CompilerConfig) -> bool:
    return (
        config.debug.data_dump.type.value is not None
        or bool(config.dump_config.enable_dump)
        or config.dump_config.dump_config_path.value is not None
    )


def _leaves_files(config: CompilerConfig) -> bool:
    debug = config.debug
    if config.mode.value == GE_MODE and is_ge_graph_listed():
        return True
    return _is_dumping(config) or any(kind.type.value is not None for kind in (debug.graph_dump, debug.fx_summary))


def _described(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)} on {value.device}"
    return repr(value)


def _boxed(run: Run) -> Any:
    """The function as AOTAutograd takes it: one list of arguments, which it may empty."""

    def boxed(args: list[Any]) -> Any:
        return run(args)

    disabled: Any = _outside_dynamo(boxed)
    disabled._boxed_call = True
    return disabled

"""Modes reduce-overhead and npugraph_ex: FX passes, then captured calls that are replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule

from msdump.errors import ConfigError
from msdump.frontends.torch.program import FxProgram
from msdump.torchair.aclgraph import cuda_graph, tensor_saving
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.debug_log import NPUGRAPH_EX
from msdump.torchair.debug_save.model_folder import PhaseFolder
from msdump.torchair.passes import pipeline
from msdump.torchair.passes.pipeline import plain_run, run_fx_passes


class GraphDumpTypeError(ConfigError, NotImplementedError):
    """A graph dump of a type that a captured graph has not."""


def compile_aclgraph_mode(
    module: GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    folder: PhaseFolder | None,
    tool: str,
) -> Callable[[list[object]], object]:
    """What runs the graph.

    Raises: GraphDumpTypeError for a graph dump other than "py"; ConfigError for a custom pass that fails.
    """
    dump = _graph_dump(graph_id, config)
    if dump is not None:
        dump("original", module)
    is_dumping = tensor_saving.is_on(config)
    if is_dumping and config.dump_config.data_dump_stage.value == tensor_saving.ORIGINAL:
        untouched = run_fx_passes(module, example_inputs, config, ())
        return plain_run(tensor_saving.with_saved_tensors(untouched, config))
    passes = pipeline.NPUGRAPH_EX if tool == NPUGRAPH_EX else pipeline.ACLGRAPH_MODE
    optimized = run_fx_passes(module, example_inputs, config, passes, [] if folder is None else [folder])
    if dump is not None:
        dump("optimized", optimized)
    runs = optimized
    if is_dumping:
        runs = tensor_saving.with_saved_tensors(run_fx_passes(optimized, example_inputs, config, ()), config)
    if config.debug.run_eagerly:
        return plain_run(runs)
    return capture(optimized, runs, example_inputs, graph_id, config, folder)


def _graph_dump(graph_id: int, config: CompilerConfig) -> Callable[[str, GraphModule], None] | None:
    kind = config.debug.graph_dump.type.value
    if kind is None:
        return None
    if kind != "py":
        raise GraphDumpTypeError(
            f"Graph dump for aclGraph only support 'py' type, but got: {kind}.\n"
            f"config.debug.graph_dump.type: expected 'py' in mode {config.mode.value}, got {kind!r}. "
            "Set it to 'py', or config.mode to 'max-autotune'."
        )
    from msdump.torchair.graph_dump.files import write_fx_graph

    def dump(stage: str, module: GraphModule) -> None:
        write_fx_graph(module, stage, graph_id, config)

    return dump


def capture(
    module: GraphModule,
    runs: GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    folder: PhaseFolder | None = None,
) -> Callable[[list[object]], object]:
    """What runs the graph: its calls as a list made once, or a CUDA graph where all of it is on one CUDA device.

    module  the graph;   runs  the same with additions, such as a dump of its values

    With a folder the first run leaves `output_code.py` and the trace of its calls there, and runs call by call.
    """
    program = FxProgram(runs)
    is_cuda = runs is module and torch.cuda.is_available() and cuda_graph.fits(module)
    run = cuda_graph.CudaReplay(program, config).run if is_cuda else program.run
    if folder is None:
        return run
    from msdump.torchair.aclgraph.first_run import FirstRun

    return FirstRun(module, program, run, graph_id, config, folder, _device(example_inputs)).run


def _device(example_inputs: Sequence[object]) -> torch.device:
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            return value.device
    return torch.device("cpu")

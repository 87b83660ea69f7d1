"""Mode max-autotune: FX passes, then the GE graph, its files and its run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from torch.fx import GraphModule

from msdump.config.environment import ge_graph_settings
from msdump.errors import ConfigError, GraphError
from msdump.graph.ge import BUILD, PRE_RUN_BEGIN
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.debug_log import OneWarning
from msdump.torchair.debug_save.model_folder import PhaseFolder
from msdump.torchair.passes.pipeline import GE_MODE, plain_run, run_fx_passes

Observer = TypeVar("Observer")
_no_graph = OneWarning("The debug save, or DUMP_GE_GRAPH, has no GE graph of everything")


def compile_ge_mode(
    module: GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    folder: PhaseFolder | None,
) -> Callable[[list[object]], object] | None:
    """What runs the graph; None when no option needs more than the FX graph as it is.

    The GE graph runs when an option asks for it. A debug save or DUMP_GE_GRAPH alone only looks: it makes every graph,
    and the FX graph runs, so that a training gives the same bits with it and without it, and goes on where a graph
    cannot be made.
    Raises: NoConverterError when an option needs the graph; ConfigError for a custom pass that fails.
    """
    has_custom_passes = any(
        option.value is not None for option in (config.post_grad_custom_pre_pass, config.post_grad_custom_post_pass)
    )
    wants_graph = wants_ge_graph(config)
    is_listed = is_ge_graph_listed()
    if folder is None and not wants_graph and not has_custom_passes and not is_listed:
        return None
    if wants_graph:
        return _ge_run(module, example_inputs, graph_id, config, folder)
    try:
        optimized = run_fx_passes(module, example_inputs, config, GE_MODE, _present(folder))
    except GraphError as error:
        if has_custom_passes or isinstance(error, ConfigError):
            raise
        _no_graph.warn(error)
        return None
    if folder is not None or is_listed:
        _look(optimized, example_inputs, graph_id, config, folder)
    return plain_run(optimized) if has_custom_passes else None


def is_ge_graph_listed() -> bool:
    """Does DUMP_GE_GRAPH ask for files of the GE graph?   Raises: ConfigError for a wrong value."""
    return ge_graph_settings(PRE_RUN_BEGIN, BUILD) is not None


def wants_ge_graph(config: CompilerConfig) -> bool:
    """Does an option of the configuration need the GE graph?"""
    return (
        config.debug.graph_dump.type.value is not None
        or bool(config.debug.run_eagerly)
        or bool(config.dump_config.enable_dump)
        or config.dump_config.dump_config_path.value is not None
    )


def _ge_run(
    module: GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    folder: PhaseFolder | None,
) -> Callable[[list[object]], object]:
    from msdump.torchair.ge.compile import compile_ge
    from msdump.torchair.graph_dump.files import open_ge_graph, open_graph_dump
    from msdump.torchair.graph_mode_dump import dumped

    optimized = run_fx_passes(module, example_inputs, config, GE_MODE, _present(folder))
    dump = open_graph_dump(graph_id, config)
    graph, run = compile_ge(
        optimized, example_inputs, graph_id, config, _present(folder, dump, open_ge_graph(graph_id))
    )
    if config.debug.run_eagerly:
        return plain_run(optimized)
    run = dumped(graph, config) or run
    return run if dump is None else dump.wrap(run)


def _look(
    module: GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    folder: PhaseFolder | None,
) -> None:
    """Make the GE graph for its files only."""
    from msdump.torchair.ge.compile import compile_ge
    from msdump.torchair.graph_dump.files import open_ge_graph

    listing = open_ge_graph(graph_id)
    try:
        compile_ge(module, example_inputs, graph_id, config, _present(folder, listing))
    except Exception as error:  # noqa: BLE001 - only files need this graph, it must not stop the model
        _no_graph.warn(error)


def _present(*observers: Observer | None) -> list[Observer]:
    return [observer for observer in observers if observer is not None]

"""The passes of each mode, in TorchAir's order, and what runs them and a graph that has been through them."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from msdump.errors import ConfigError, GraphError
from msdump.frontends.torch import torch_is_at_least
from msdump.torchair._utils.graph_utils import NodeCount, report
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.passes.apply_pattern_passes import apply_pattern_passes
from msdump.torchair.passes.fx_pass import FxObserver, FxPass, PassContext, custom_pass, unchanged
from msdump.torchair.passes.in_place import (
    decompose_auto_functionalized,
    eliminate_self_copy,
    reinplace_inplaceable_ops_pass,
    reinplace_input_mutated_ops,
)
from msdump.torchair.passes.remove_cat_ops import remove_cat_ops
from msdump.torchair.passes.simplify import eliminate_dead_code, optimize_noop_ops, optimize_sym_input
from msdump.torchair.passes.views import recover_view_inplace_pattern, view_to_reshape

log = logging.getLogger("torchair")

GRAPH = "graph"
# How often the graph of a module was changed: observers need not write an unchanged one anew.
REVISION = "torchair_revision"


def _removes_noops(config: CompilerConfig) -> bool:
    return bool(config.experimental_config.remove_noop_ops)


def _fuses(config: CompilerConfig) -> bool:
    return bool(config.experimental_config.pattern_fusion_pass)


def _removes_cats(config: CompilerConfig) -> bool:
    return bool(config.debug.aclgraph.remove_cat_ops)


def _reinplaces(config: CompilerConfig) -> bool:
    return not config.debug.aclgraph.disable_reinplace_inplaceable_ops_pass


def _reinplaces_inputs(config: CompilerConfig) -> bool:
    return not config.debug.aclgraph.disable_reinplace_input_mutated_ops_pass


def _decomposes(config: CompilerConfig) -> bool:
    # Source: TorchAir.
    return _reinplaces_inputs(config) and torch_is_at_least((2, 6))


_PRE = custom_pass("post_grad_custom_pre_pass")
_NOOPS = FxPass("optimize_noop_ops", optimize_noop_ops, _removes_noops)
_VIEWS = FxPass("recover_view_inplace_pattern", recover_view_inplace_pattern)
_PATTERNS = FxPass("apply_pattern_passes", apply_pattern_passes, _fuses)
_RESHAPE = FxPass("view_to_reshape", view_to_reshape)
_POST = custom_pass("post_grad_custom_post_pass")

# Source: TorchAir, the files that TORCH_COMPILE_DEBUG=1 leaves.
GE_MODE: tuple[FxPass, ...] = (
    _PRE,
    _NOOPS,
    _VIEWS,
    FxPass("optimize_sym_input", optimize_sym_input),
    _PATTERNS,
    _RESHAPE,
    _POST,
)
ACLGRAPH_MODE: tuple[FxPass, ...] = (
    _PRE,
    _NOOPS,
    _VIEWS,
    _PATTERNS,
    _RESHAPE,
    _POST,
    FxPass("remove_cat_ops", remove_cat_ops, _removes_cats),
    # TorchAir puts events between parts of a graph that run in parallel, and records those of the script. The calls of
    # a captured graph run one after the other on one stream, and operators that tag an event belong to an NPU.
    FxPass("apply_event_closure_with_multi_stream", unchanged),
    FxPass("apply_event_record", unchanged),
    FxPass("eliminate_dead_code", eliminate_dead_code),
    FxPass("reinplace_inplaceable_ops_pass", reinplace_inplaceable_ops_pass, _reinplaces),
    FxPass("reinplace_input_mutated_ops", reinplace_input_mutated_ops, _reinplaces_inputs),
    FxPass("decompose_auto_functionalized", decompose_auto_functionalized, _decomposes),
    # Operators of PyTorch get their workspace from its allocator, which CUDA graphs know about.
    FxPass("replace_dynamic_workspace_ops", unchanged),
    # No kernel of PyTorch takes a limit of cores: `torch.set_num_threads` is for the process.
    FxPass("replace_core_limit_nodes", unchanged),
    # There is one stream, and nothing marks it.
    FxPass("resolve_default_stream_markers", unchanged),
)
_BEFORE_SELF_COPY = [fx_pass.name for fx_pass in ACLGRAPH_MODE].index("replace_dynamic_workspace_ops")
# The package npugraph_ex on its own has one pass more.
NPUGRAPH_EX: tuple[FxPass, ...] = (
    *ACLGRAPH_MODE[:_BEFORE_SELF_COPY],
    FxPass("eliminate_self_copy", eliminate_self_copy),
    *ACLGRAPH_MODE[_BEFORE_SELF_COPY:],
)


def run_fx_passes(
    module: GraphModule,
    example_inputs: Sequence[object],
    config: CompilerConfig,
    passes: Sequence[FxPass],
    observers: Sequence[FxObserver] = (),
) -> GraphModule:
    """A copy of the graph that has been through the passes; the module itself stays as it is.

    Observers see the graph after each pass that is on, whether it changed anything or not.
    Raises: ConfigError for a custom pass that fails; GraphError, which names the pass, for another one.
    """
    # Constants are shared, not copied: the model may write into them.
    optimized = GraphModule(module, copy.deepcopy(module.graph))
    optimized.meta[REVISION] = 0
    context = PassContext(config, example_inputs)
    for fx_pass in passes:
        if fx_pass.is_on(config):
            _apply(fx_pass, optimized, context)
            for observer in observers:
                observer.fx_graph(f"{GRAPH}_after_{fx_pass.name}", optimized)
    return optimized


def _apply(fx_pass: FxPass, module: GraphModule, context: PassContext) -> None:
    is_told = log.isEnabledFor(logging.DEBUG)
    before = NodeCount.of(module.graph) if is_told else None
    start = time.perf_counter()
    try:
        is_changed = fx_pass.run(module, context)
        if is_changed:
            module.graph.lint()
            module.recompile()
            module.meta[REVISION] += 1
    except ConfigError:
        raise
    except Exception as error:
        raise GraphError(
            f"FX pass {fx_pass.name}: expected a graph that it can handle, got {type(error).__name__}: {error}."
        ) from error
    if before is not None:
        log.debug(report(fx_pass.name, time.perf_counter() - start, before, NodeCount.of(module.graph)))


def plain_run(module: GraphModule) -> Callable[[list[object]], object]:
    """The graph as it is, not observed. The list of arguments is emptied, so that they live no longer than needed."""

    def run(args: list[object]) -> Any:
        inputs = tuple(args)
        args.clear()
        return module.forward(*inputs)

    return run

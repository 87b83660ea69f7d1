"""The passes of each mode, in TorchAir's order, and what runs them."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule

from msdump.errors import ConfigError, GraphError
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.passes import (
    apply_event_closure_with_multi_stream,
    apply_event_record,
    apply_pattern_passes,
    decompose_auto_functionalized,
    eliminate_dead_code,
    eliminate_self_copy,
    optimize_noop_ops,
    optimize_sym_input,
    recover_view_inplace_pattern,
    reinplace_inplaceable_ops_pass,
    reinplace_input_mutated_ops,
    remove_cat_ops,
    replace_core_limit_nodes,
    replace_dynamic_workspace_ops,
    resolve_default_stream_markers,
    view_to_reshape,
)
from msdump.frontends.torchair.passes.custom import custom_pass
from msdump.frontends.torchair.passes.fx_pass import FxObserver, FxPass, PassContext
from msdump.frontends.torchair.passes.report import NodeCount, report

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
    return _reinplaces_inputs(config) and decompose_auto_functionalized.is_known()


_PRE = custom_pass("post_grad_custom_pre_pass")
_NOOPS = FxPass("optimize_noop_ops", optimize_noop_ops.run, _removes_noops)
_VIEWS = FxPass("recover_view_inplace_pattern", recover_view_inplace_pattern.run)
_PATTERNS = FxPass("apply_pattern_passes", apply_pattern_passes.run, _fuses)
_RESHAPE = FxPass("view_to_reshape", view_to_reshape.run)
_POST = custom_pass("post_grad_custom_post_pass")

# Source: TorchAir, the files that TORCH_COMPILE_DEBUG=1 leaves.
GE_MODE: tuple[FxPass, ...] = (
    _PRE,
    _NOOPS,
    _VIEWS,
    FxPass("optimize_sym_input", optimize_sym_input.run),
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
    FxPass("remove_cat_ops", remove_cat_ops.run, _removes_cats),
    FxPass("apply_event_closure_with_multi_stream", apply_event_closure_with_multi_stream.run),
    FxPass("apply_event_record", apply_event_record.run),
    FxPass("eliminate_dead_code", eliminate_dead_code.run),
    FxPass("reinplace_inplaceable_ops_pass", reinplace_inplaceable_ops_pass.run, _reinplaces),
    FxPass("reinplace_input_mutated_ops", reinplace_input_mutated_ops.run, _reinplaces_inputs),
    FxPass("decompose_auto_functionalized", decompose_auto_functionalized.run, _decomposes),
    FxPass("replace_dynamic_workspace_ops", replace_dynamic_workspace_ops.run),
    FxPass("replace_core_limit_nodes", replace_core_limit_nodes.run),
    FxPass("resolve_default_stream_markers", resolve_default_stream_markers.run),
)
_BEFORE_SELF_COPY = [fx_pass.name for fx_pass in ACLGRAPH_MODE].index("replace_dynamic_workspace_ops")
# The package npugraph_ex on its own has one pass more.
NPUGRAPH_EX: tuple[FxPass, ...] = (
    *ACLGRAPH_MODE[:_BEFORE_SELF_COPY],
    FxPass("eliminate_self_copy", eliminate_self_copy.run),
    *ACLGRAPH_MODE[_BEFORE_SELF_COPY:],
)


def run_fx_passes(
    module: GraphModule,
    example_inputs: Sequence[Any],
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

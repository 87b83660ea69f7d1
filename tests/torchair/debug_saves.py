"""What TORCH_COMPILE_DEBUG=1 left in a folder, and what TorchAir's page says that it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msdump.torchair as torchair

PRE, POST = "graph_after_post_grad_custom_pre_pass", "graph_after_post_grad_custom_post_pass"
NOOPS, PATTERNS = "graph_after_optimize_noop_ops", "graph_after_apply_pattern_passes"
CATS = "graph_after_remove_cat_ops"
REINPLACE = "graph_after_reinplace_inplaceable_ops_pass"
REINPLACE_INPUTS = "graph_after_reinplace_input_mutated_ops"
DECOMPOSE = "graph_after_decompose_auto_functionalized"
# Every stage of a phase, custom passes included, as the page's table has them.
FX_OF_GE = [
    "graph",
    PRE,
    NOOPS,
    "graph_after_recover_view_inplace_pattern",
    "graph_after_optimize_sym_input",
    PATTERNS,
    "graph_after_view_to_reshape",
    POST,
]
GE = [
    "original_ge_graph",
    "graph_after_optimize_sym_pack",
    "graph_after_remove_dead_data_and_reorder_data_index",
    "graph_after_optimize_reference_op_redundant_copy",
    "graph_after_mapping_assign_op_to_graph_output",
    "graph_after_explicit_order_for_side_effect_nodes",
    "graph_after_explicit_order_for_cmo",
    "graph_after_move_transpose_into_mm",
    "graph_after_move_mm_weight_transpose_after_bitcast",
    "optimized_ge_graph",
]
ACLGRAPH = [
    "graph",
    PRE,
    NOOPS,
    "graph_after_recover_view_inplace_pattern",
    PATTERNS,
    "graph_after_view_to_reshape",
    POST,
    CATS,
    "graph_after_apply_event_closure_with_multi_stream",
    "graph_after_apply_event_record",
    "graph_after_eliminate_dead_code",
    REINPLACE,
    REINPLACE_INPUTS,
    DECOMPOSE,
    "graph_after_replace_dynamic_workspace_ops",
    "graph_after_replace_core_limit_nodes",
    "graph_after_resolve_default_stream_markers",
]
MODES = ["max-autotune", "npugraph_ex"]
CUSTOM = (PRE, POST)


def expected_files(mode: str, phase: str, without: tuple[str, ...] = CUSTOM, ge_type: str = "pbtxt") -> list[str]:
    """Graph files of a phase in order."""
    if mode == "max-autotune":
        stages = [(stage, "txt") for stage in FX_OF_GE] + [(stage, ge_type) for stage in GE]
    else:
        stages = [(stage, "txt") for stage in ACLGRAPH]
    left = [(stage, ending) for stage, ending in stages if stage not in without]
    return [f"{number:03d}_aot_{phase}_{stage}.{ending}" for number, (stage, ending) in enumerate(left)]


def config_for(mode: str) -> Any:
    config = torchair.CompilerConfig()
    config.mode = mode
    return config


def backend_for(mode: str) -> Any:
    return torchair.get_npu_backend(compiler_config=config_for(mode))


def run_folder(root: Path, tool: str = "torchair") -> Path:
    (folder,) = root.glob(f"run_*/{tool}")
    return folder


def models(root: Path, tool: str = "torchair") -> list[dict[str, list[str]]]:
    """For each model, in the order of their numbers: names of its files, by folder; "" is the model's own."""
    folders = sorted(run_folder(root, tool).glob("model__*"), key=lambda path: int(path.name[7:]))
    return [
        {
            part: sorted(path.name for path in (folder / part).iterdir() if path.is_file())
            for part in ("", *sorted(path.name for path in folder.iterdir() if path.is_dir()))
        }
        for folder in folders
    ]


def graph_files(names: list[str]) -> list[str]:
    return [name for name in names if name[:3].isdigit()]

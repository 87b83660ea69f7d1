"""Which options of a CompilerConfig do something here, and in which mode."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.option_values import OptionValue

_EVERYWHERE = {
    "mode",
    "debug.graph_dump.type",
    "debug.graph_dump.path",
    "debug.run_eagerly",
    "dump_config.enable_dump",
    "dump_config.dump_path",
    "experimental_config.keep_inference_input_mutations",
    "experimental_config.aot_config_enable_joint_graph",
    "experimental_config.remove_noop_ops",
    "experimental_config.pattern_fusion_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
}
_GE = {
    "experimental_config.enable_view_optimize",
    "debug.fx_summary.type",
    "debug.fx_summary.skip_compile",
    "debug.fx_summary._path",
    "dump_config.dump_mode",
    "dump_config.quant_dumpable",
    "dump_config.dump_step",
    "dump_config.dump_layer",
    "dump_config.dump_data",
    "dump_config.dump_config_path",
}
_ACLGRAPH = {
    "debug.aclgraph.disable_mempool_reuse_in_same_fx",
    "debug.aclgraph.disable_reinplace_inplaceable_ops_pass",
    "debug.aclgraph.disable_reinplace_input_mutated_ops_pass",
    "debug.aclgraph.remove_cat_ops",
    "debug.aclgraph.static_capture_size_limit",
    "dump_config.data_dump_stage",
    "aclgraph_config.use_custom_pool",
    "experimental_config.aclgraph._capture_error_mode",
    "experimental_config.frozen_parameter",
}
EFFECTIVE = {
    "max-autotune": _EVERYWHERE | _GE,
    "reduce-overhead": _EVERYWHERE | _ACLGRAPH,
    "npugraph_ex": _EVERYWHERE | _ACLGRAPH,
}
DATA_DUMP = "debug.data_dump."


def options_without_effect(config: CompilerConfig) -> list[str]:
    """`name = value` of each option that was set and does nothing in the mode that was chosen."""
    return [f"{option.where} = {option.raw!r}" for option in without_effect(config)]


def without_effect(config: CompilerConfig) -> list[OptionValue]:
    """Options that were set and do nothing in the mode that was chosen."""
    effective = EFFECTIVE[config.mode.value]
    is_dumping = config.debug.data_dump.type.value is not None
    return [
        option
        for option in config.options()
        if not option.is_default
        and option.where.removeprefix("config.") not in effective
        and not (is_dumping and option.where.startswith(f"config.{DATA_DUMP}"))
    ]

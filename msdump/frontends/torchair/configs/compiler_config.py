"""CompilerConfig: the tree of switches that `get_npu_backend` takes."""

from __future__ import annotations

from msdump.frontends.torchair.configs.option_dicts import option_dicts
from msdump.frontends.torchair.option_group import OptionGroup
from msdump.frontends.torchair.option_values import (
    INT64_MAX,
    CallableValue,
    FileValue,
    IntRangeValue,
    MustExistedFileAddr,
    MustExistedPathValue,
    OptionValue,
    PathValue,
    RawOption,
    RegexValue,
)

__all__ = ["CompilerConfig"]

_STEPS = r"^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$"
# A range ends in one digit at least and the next may follow at once: "1-23-4" is 1-2 and 3-4.
_RANGES = r"[0-9]+(?:-[0-9]{2,}(?=-))*(?:-[0-9]+)?"
_QUICK_STEPS = rf"(?:{_RANGES}(?:\|{_RANGES})*\|?)?"


def _switch(default: bool | None) -> OptionValue:
    return OptionValue(default, [True, False])


class _DumpGroup(OptionGroup):
    _plain = frozenset({"path"})
    _original_name = "_Dump"


class _DataDump(OptionGroup):
    """`debug.data_dump`: the eager data dump.

    type    "npy"; None, the default, is off
    filter  function that gets each fx.Node and returns it to dump it, or None to leave it out
    path    folder; the current one by default
    """

    _plain = frozenset({"path", "filter"})


class _FxSummary(OptionGroup):
    _plain = frozenset({"_path"})


class _DebugConfig(OptionGroup):
    """`debug`: what is written down about a model."""


class _DebugAclGraph(OptionGroup):
    _original_name = "_AclGraphConfig"


class _DataDumpConfig(OptionGroup):
    """`dump_config`: the dump of compiled graphs."""


class _AclGraphExperimentalConfig(OptionGroup):
    _is_open = True


class _ExperimentalConfig(OptionGroup):
    """`experimental_config`."""


class _ExportExperimentalConfig(OptionGroup):
    _original_name = "_ExperimentalConfig"


class _ExportConfig(OptionGroup):
    """`export`."""


class _GEConfig(OptionGroup):
    """`ge_config`."""


class _AoeConfig(OptionGroup):
    """`aoe_config`."""


class _FusionConfig(OptionGroup):
    """`fusion_config`."""


class _InferenceConfig(OptionGroup):
    """`inference_config`."""


class _AclGraphConfig(OptionGroup):
    """`aclgraph_config`."""


class CompilerConfig(OptionGroup):
    """All switches of a backend. All are checked and kept; which do something, and in which mode: `option_effects`.

    mode                "max-autotune" makes GE graphs, "reduce-overhead" and "npugraph_ex" capture calls
    debug.data_dump     a file for each value of the FX graph, which is then not compiled
    debug.graph_dump    a file for each GE graph
    dump_config         a file for each operator of the compiled graph
    post_grad_custom_pre_pass, post_grad_custom_post_pass   functions (module, example_inputs, config) that change the
                        FX graph before and after the passes

    Raises: ValueError, TypeError or FileNotFoundError when an option is set to what it does not take.
    Source: TorchAir, CompilerConfig.
    """

    def __init__(self) -> None:
        super().__init__(
            mode=OptionValue("max-autotune", ["max-autotune", "reduce-overhead", "npugraph_ex"]),
            debug=_debug(),
            aoe_config=_AoeConfig(
                aoe_mode=OptionValue(None, ["2"]),
                work_path=MustExistedPathValue("./"),
                aoe_config_file=FileValue(None),
            ),
            export=_export(),
            dump_config=_dump_config(),
            fusion_config=_FusionConfig(fusion_switch_file=FileValue(None)),
            experimental_config=_experimental(),
            inference_config=_InferenceConfig(dynamic_gears_merge_policy=OptionValue("zip", ["zip", "product"])),
            ge_config=_ge(),
            aclgraph_config=_AclGraphConfig(use_custom_pool=RawOption(None)),
            post_grad_custom_pre_pass=CallableValue(None),
            post_grad_custom_post_pass=CallableValue(None),
        )

    def as_dict(self) -> tuple[dict[str, str], dict[str, str]]:
        """(options of a graph, options of the process) as TorchAir hands them to the compiler, see `option_dicts`."""
        return option_dicts(self)


def _debug() -> _DebugConfig:
    return _DebugConfig(
        graph_dump=_DumpGroup(type=OptionValue(None, ["txt", "pbtxt", "py"]), path=PathValue(None)),
        data_dump=_DataDump(filter=CallableValue(None), type=OptionValue(None, ["npy"]), path=PathValue(None)),
        fx_summary=_FxSummary(type=OptionValue(None, ["csv"]), skip_compile=_switch(True), _path=PathValue(None)),
        run_eagerly=_switch(False),
        deadlock_check=_switch(False),
        aclgraph=_DebugAclGraph(
            disable_reinplace_inplaceable_ops_pass=_switch(False),
            disable_reinplace_input_mutated_ops_pass=_switch(False),
            disable_mempool_reuse_in_same_fx=_switch(False),
            enable_output_clone=_switch(False),
            clone_input=_switch(True),
            remove_cat_ops=_switch(True),
            static_capture_size_limit=IntRangeValue(64, 1, INT64_MAX),
        ),
    )


def _dump_config() -> _DataDumpConfig:
    return _DataDumpConfig(
        enable_dump=_switch(False),
        dump_path=MustExistedPathValue("./"),
        dump_mode=OptionValue("all", ["input", "output", "all"]),
        quant_dumpable=_switch(False),
        dump_step=RegexValue("", _STEPS, "0|1|2-5|6", _QUICK_STEPS),
        dump_layer=RegexValue("", r'^[0-9a-zA-Z_" "/\\.]*$', "Mul_1 Add1 Conv2D_1"),
        dump_data=OptionValue("tensor", ["tensor", "stats"]),
        dump_config_path=MustExistedFileAddr(None),
        data_dump_stage=OptionValue("optimized", ["original", "optimized"]),
    )


def _experimental() -> _ExperimentalConfig:
    return _ExperimentalConfig(
        cc_parallel_enable=_switch(False),
        keep_inference_input_mutations=_switch(True),
        memory_efficiency=_switch(False),
        frozen_parameter=_switch(False),
        static_model_ops_lower_limit=IntRangeValue(None, -1, INT64_MAX),
        jit_compile=OptionValue("auto", ["auto"]),
        npu_fx_pass=_switch(False),
        aot_config_enable_joint_graph=_switch(False),
        aot_config_output_loss_index=OptionValue(0),
        topology_sorting_strategy=OptionValue("DFS", ["BFS", "DFS", "RDFS", "StableRDFS"]),
        enable_ref_data=_switch(False),
        enable_view_optimize=_switch(True),
        remove_noop_ops=_switch(True),
        tiling_schedule_optimize=_switch(False),
        pattern_fusion_pass=_switch(True),
        aclgraph=_AclGraphExperimentalConfig(
            _capture_error_mode=OptionValue("global", ["global", "thread_local", "relaxed"])
        ),
    )


def _export() -> _ExportConfig:
    return _ExportConfig(
        export_mode=_switch(False),
        export_path_dir=MustExistedPathValue("./"),
        export_name=RawOption(None),
        weight_name=RawOption(None),
        inputs_name=RawOption(None),
        experimental=_ExportExperimentalConfig(
            enable_record_nn_module_stack=_switch(False),
            auto_atc_config_generated=_switch(False),
            enable_lite_export=_switch(False),
        ),
    )


def _ge() -> _GEConfig:
    return _GEConfig(
        enable_single_stream=_switch(False),
        oo_level=OptionValue("O3", ["O1", "O3"]),
        oo_constant_folding=_switch(None),
        oo_dead_code_elimination=_switch(None),
        export_compile_stat=OptionValue("2", ["0", "1", "2"]),
        aicore_num=OptionValue(None),
        optimization_switch=OptionValue(None),
    )

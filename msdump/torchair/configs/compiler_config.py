"""CompilerConfig: the switches that `get_npu_backend` takes, and what they are called towards the compiler."""

from __future__ import annotations

from typing import final

from msdump.errors import WriteError
from msdump.formats.paths.torchair import rank_dir
from msdump.torchair import options as takes
from msdump.torchair.options import INT64_MAX, Option, OptionGroup, OptionTree
from msdump.torchair.ranks import process_rank

__all__ = ["CompilerConfig"]

_STEPS = r"^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$"

# Modes in which an option does something here: by its second name, what captures calls.
_GE = frozenset({"max-autotune"})
_ACLGRAPH = frozenset({"reduce-overhead", "npugraph_ex"})
_ALL = _GE | _ACLGRAPH
_NONE: frozenset[str] = frozenset()

DATA_DUMP = "debug.data_dump."
Options = dict[str, str]


@final
class CompilerConfig(OptionTree):
    """All switches of a backend. All are checked and kept; which do something, and in which mode: `Option.modes`.

    mode                "max-autotune" makes GE graphs, "reduce-overhead" and "npugraph_ex" capture calls
    debug               what is written down about a model
    debug.data_dump     a file for each value of the FX graph, which is then not compiled. type "npy"; None, the
                        default, is off. filter: function that gets each fx.Node and returns it to dump it, or None to
                        leave it out. path: folder; the current one by default
    debug.graph_dump    a file for each GE graph
    dump_config         a file for each operator of the compiled graph
    post_grad_custom_pre_pass, post_grad_custom_post_pass   functions (module, example_inputs, config) that change the
                        FX graph before and after the passes

    Raises: ValueError, TypeError or FileNotFoundError when an option is set to what it does not take.
    Source: TorchAir, CompilerConfig.
    """

    def __init__(self) -> None:
        super().__init__(
            "CompilerConfig",
            mode=Option("max-autotune", ["max-autotune", "reduce-overhead", "npugraph_ex"], _ALL),
            debug=_debug(),
            aoe_config=OptionGroup(
                "_AoeConfig",
                aoe_mode=Option(None, ["2"]),
                work_path=Option("./", takes.folder),
                aoe_config_file=Option(None, takes.file),
            ),
            export=_export(),
            dump_config=_dump_config(),
            fusion_config=OptionGroup("_FusionConfig", fusion_switch_file=Option(None, takes.file)),
            experimental_config=_experimental(),
            inference_config=OptionGroup(
                "_InferenceConfig", dynamic_gears_merge_policy=Option("zip", ["zip", "product"])
            ),
            ge_config=_ge(),
            aclgraph_config=OptionGroup("_AclGraphConfig", use_custom_pool=Option(None, None, _ACLGRAPH, is_raw=True)),
            post_grad_custom_pre_pass=Option(None, takes.function, _ALL, is_raw=True),
            post_grad_custom_post_pass=Option(None, takes.function, _ALL, is_raw=True),
        )

    def as_dict(self) -> tuple[Options, Options]:
        """(options of a graph, options of the process), as text, as TorchAir hands them to the compiler.

        Edges:   options without a value are left out; with `dump_config.enable_dump` the folder of this rank is made.
        Raises:  WriteError when that folder cannot be made.
        Source:  TorchAir, `CompilerConfig.as_dict`; option names of GE.
        """
        local: Options = {}
        local |= _debug_options(self)
        local |= _aoe_options(self)
        local |= _export_options(self)
        local |= _experimental_options(self)
        if self.ge_config.oo_level.value == "O1":
            local["ge.topoSortingMode"] = _TOPOLOGY["StableRDFS"]
        local["mode"] = self.mode.value
        of_process = _dump_options(self) | _fusion_options(self) | _experimental_options_of_process(self)
        return local, of_process | _ge_options(self)


def without_effect(config: CompilerConfig) -> list[Option]:
    """Options that were set and do nothing in the mode that was chosen."""
    is_dumping = config.debug.data_dump.type.value is not None
    return [
        option
        for option in config.options()
        if not option.is_default
        and config.mode.value not in option.modes
        and not (is_dumping and option.where.startswith(f"config.{DATA_DUMP}"))
    ]


def _switch(default: bool | None, modes: frozenset[str] = _NONE) -> Option:
    return Option(default, [True, False], modes)


def _debug() -> OptionGroup:
    return OptionGroup(
        "_DebugConfig",
        graph_dump=OptionGroup(
            "_Dump",
            type=Option(None, ["txt", "pbtxt", "py"], _ALL),
            path=Option(None, takes.new_folder, _ALL, plain="."),
        ),
        data_dump=OptionGroup(
            "_DataDump",
            filter=Option(None, takes.function, is_raw=True, plain="value"),
            type=Option(None, ["npy"]),
            path=Option(None, takes.new_folder, plain="."),
        ),
        fx_summary=OptionGroup(
            "_FxSummary",
            type=Option(None, ["csv"], _GE),
            skip_compile=_switch(True, _GE),
            _path=Option(None, takes.new_folder, _GE, plain="."),
        ),
        run_eagerly=_switch(False, _ALL),
        deadlock_check=_switch(False),
        aclgraph=OptionGroup(
            "_AclGraphConfig",
            disable_reinplace_inplaceable_ops_pass=_switch(False, _ACLGRAPH),
            disable_reinplace_input_mutated_ops_pass=_switch(False, _ACLGRAPH),
            disable_mempool_reuse_in_same_fx=_switch(False, _ACLGRAPH),
            enable_output_clone=_switch(False),
            clone_input=_switch(True),
            remove_cat_ops=_switch(True, _ACLGRAPH),
            static_capture_size_limit=Option(64, takes.integer(1, INT64_MAX), _ACLGRAPH),
        ),
    )


def _dump_config() -> OptionGroup:
    return OptionGroup(
        "_DataDumpConfig",
        enable_dump=_switch(False, _ALL),
        dump_path=Option("./", takes.folder, _ALL),
        dump_mode=Option("all", ["input", "output", "all"], _GE),
        quant_dumpable=_switch(False, _GE),
        dump_step=Option("", takes.text("", _STEPS, "0|1|2-5|6"), _GE),
        dump_layer=Option("", takes.text("", r'^[0-9a-zA-Z_" "/\\.]*$', "Mul_1 Add1 Conv2D_1"), _GE),
        dump_data=Option("tensor", ["tensor", "stats"], _GE),
        dump_config_path=Option(None, takes.json_file, _GE),
        data_dump_stage=Option("optimized", ["original", "optimized"], _ACLGRAPH),
    )


def _experimental() -> OptionGroup:
    return OptionGroup(
        "_ExperimentalConfig",
        cc_parallel_enable=_switch(False),
        keep_inference_input_mutations=_switch(True, _ALL),
        memory_efficiency=_switch(False),
        frozen_parameter=_switch(False, _ACLGRAPH),
        static_model_ops_lower_limit=Option(None, takes.integer(-1, INT64_MAX)),
        jit_compile=Option("auto", ["auto"]),
        npu_fx_pass=_switch(False),
        aot_config_enable_joint_graph=_switch(False, _ALL),
        aot_config_output_loss_index=Option(0),
        topology_sorting_strategy=Option("DFS", ["BFS", "DFS", "RDFS", "StableRDFS"]),
        enable_ref_data=_switch(False),
        enable_view_optimize=_switch(True, _GE),
        remove_noop_ops=_switch(True, _ALL),
        tiling_schedule_optimize=_switch(False),
        pattern_fusion_pass=_switch(True, _ALL),
        aclgraph=OptionGroup(
            "_AclGraphExperimentalConfig",
            is_open=True,
            _capture_error_mode=Option("global", ["global", "thread_local", "relaxed"], _ACLGRAPH),
        ),
    )


def _export() -> OptionGroup:
    return OptionGroup(
        "_ExportConfig",
        export_mode=_switch(False),
        export_path_dir=Option("./", takes.folder),
        export_name=Option(None, is_raw=True),
        weight_name=Option(None, is_raw=True),
        inputs_name=Option(None, is_raw=True),
        experimental=OptionGroup(
            "_ExperimentalConfig",
            enable_record_nn_module_stack=_switch(False),
            auto_atc_config_generated=_switch(False),
            enable_lite_export=_switch(False),
        ),
    )


def _ge() -> OptionGroup:
    return OptionGroup(
        "_GEConfig",
        enable_single_stream=_switch(False),
        oo_level=Option("O3", ["O1", "O3"]),
        oo_constant_folding=_switch(None),
        oo_dead_code_elimination=_switch(None),
        export_compile_stat=Option("2", ["0", "1", "2"]),
        aicore_num=Option(None),
        optimization_switch=Option(None),
    )


_TOPOLOGY = {"BFS": "0", "DFS": "1", "RDFS": "2", "StableRDFS": "3"}
_STATIC_KERNEL = "_aclnn_static_shape_kernel"


def _without_none(options: dict[str, str | None]) -> Options:
    return {name: value for name, value in options.items() if value is not None}


def _word(option: object) -> str:
    return "true" if option else "false"


def _debug_options(config: CompilerConfig) -> Options:
    names = ("disable_mempool_reuse_in_same_fx", "enable_output_clone", "static_capture_size_limit", "clone_input")
    return {name: getattr(config.debug.aclgraph, name).value for name in names}


def _aoe_options(config: CompilerConfig) -> Options:
    group = config.aoe_config
    if group.aoe_mode.value is None:
        return {}
    return _without_none({name: getattr(group, name).value for name in ("aoe_mode", "work_path", "aoe_config_file")})


def _export_options(config: CompilerConfig) -> Options:
    group = config.export
    if not group.export_mode:
        return {}
    return _without_none({name: getattr(group, name).value for name in ("export_path_dir", "export_name")})


def _experimental_options(config: CompilerConfig) -> Options:
    group = config.experimental_config
    options = {
        "remove_noop_ops": group.remove_noop_ops.value,
        "ge.featureBaseRefreshable": group.memory_efficiency.value,
        "ge.topoSortingMode": _TOPOLOGY[group.topology_sorting_strategy.value],
        "pattern_fusion_pass": group.pattern_fusion_pass.value,
        "ge.jit_compile": "2",  # "auto" is all that the option takes
        "ge.exec.static_model_ops_lower_limit": group.static_model_ops_lower_limit.value,
    }
    private = {option.where.rpartition(".")[2]: option.raw for option in group.aclgraph.options()}
    if private.get(_STATIC_KERNEL):
        options[_STATIC_KERNEL] = "1"
        # The graph engine takes no missing text here.
        options[f"{_STATIC_KERNEL}_build_dir"] = str(private.get(f"{_STATIC_KERNEL}_build_dir") or "")
        options[f"{_STATIC_KERNEL}_sym_value_range"] = str(private.get(f"{_STATIC_KERNEL}_sym_value_range"))
        options[f"{_STATIC_KERNEL}_sym_index"] = str(private.get(f"{_STATIC_KERNEL}_sym_index") or 0)
    return _without_none(options)


def _experimental_options_of_process(config: CompilerConfig) -> Options:
    group = config.experimental_config
    return {
        "ge.exec.enableEngineParallel": group.cc_parallel_enable.value,
        "ge.tiling_schedule_optimize": group.tiling_schedule_optimize.value,
    }


def _ge_options(config: CompilerConfig) -> Options:
    group = config.ge_config
    options = {
        "ge.aicoreNum": group.aicore_num.value,
        "ge.enableSingleStream": _word(group.enable_single_stream),
        "ge.oo.level": group.oo_level.value,
        "ge.exportCompileStat": group.export_compile_stat.value,
        "ge.optimizationSwitch": group.optimization_switch.value,
    }
    for name, option in (
        ("ge.oo.constantFolding", group.oo_constant_folding),
        ("ge.oo.deadCodeElimination", group.oo_dead_code_elimination),
    ):
        options[name] = None if option.value is None else _word(option)
    return _without_none(options)


def _fusion_options(config: CompilerConfig) -> Options:
    return _without_none({"ge.fusionSwitchFile": config.fusion_config.fusion_switch_file.value})


def _dump_options(config: CompilerConfig) -> Options:
    group = config.dump_config
    options = {"ge_dump_with_acl_config": group.dump_config_path.value}
    if not group.enable_dump:
        return _without_none(options)
    folder = _rank_folder(group.dump_path.value)
    if config.mode.value == "max-autotune":
        options |= {
            "ge.exec.enableDump": "1",
            "ge.exec.dumpPath": folder,
            "ge.exec.dumpMode": group.dump_mode.value,
            "ge.quant_dumpable": group.quant_dumpable.value,
            "ge.exec.dumpStep": group.dump_step.value or None,
            "ge.exec.dumpLayer": group.dump_layer.value or None,
            "ge.exec.dumpData": group.dump_data.value,
        }
    else:
        options |= {
            "aclgraph.enableDump": "1",
            "aclgraph.dumpPath": folder,
            "aclgraph.dumpStage": group.data_dump_stage.value,
        }
    return _without_none(options)


def _rank_folder(path: str) -> str:
    """Folder of this process below the dump's, which is there afterwards."""
    folder = rank_dir(path, *process_rank())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"config.dump_config.dump_path: expected to make {folder}, got {error.strerror or error}. "
            "Choose a folder that may be written."
        ) from error
    return str(folder)

"""CompilerConfig -> the two tables of options that TorchAir hands to the compiler: one per graph, one per process."""

from __future__ import annotations

from msdump.errors import WriteError
from msdump.formats.paths.torchair import rank_dir
from msdump.frontends.torchair.option_group import OptionGroup
from msdump.frontends.torchair.process_rank import process_rank

Options = dict[str, str]

_TOPOLOGY = {"BFS": "0", "DFS": "1", "RDFS": "2", "StableRDFS": "3"}
_STATIC_KERNEL = "_aclnn_static_shape_kernel"


def option_dicts(config: OptionGroup) -> tuple[Options, Options]:
    """(options of a graph, options of the process), names and values as text.

    Edges:   options without a value are left out; with `dump_config.enable_dump` the folder of this rank is made.
    Raises:  WriteError when that folder cannot be made.
    Source:  TorchAir, `CompilerConfig.as_dict`; option names of GE.
    """
    local: Options = {}
    local |= _debug(config)
    local |= _aoe(config)
    local |= _export(config)
    local |= _experimental(config)
    if config.ge_config.oo_level.value == "O1":
        local["ge.topoSortingMode"] = _TOPOLOGY["StableRDFS"]
    local["mode"] = config.mode.value
    return local, _dump(config) | _fusion(config) | _experimental_of_process(config) | _ge(config)


def _known(options: dict[str, str | None]) -> Options:
    return {name: value for name, value in options.items() if value is not None}


def _word(option: object) -> str:
    return "true" if option else "false"


def _debug(config: OptionGroup) -> Options:
    names = ("disable_mempool_reuse_in_same_fx", "enable_output_clone", "static_capture_size_limit", "clone_input")
    return {name: getattr(config.debug.aclgraph, name).value for name in names}


def _aoe(config: OptionGroup) -> Options:
    group = config.aoe_config
    if group.aoe_mode.value is None:
        return {}
    return _known({name: getattr(group, name).value for name in ("aoe_mode", "work_path", "aoe_config_file")})


def _export(config: OptionGroup) -> Options:
    group = config.export
    if not group.export_mode:
        return {}
    return _known({name: getattr(group, name).value for name in ("export_path_dir", "export_name")})


def _experimental(config: OptionGroup) -> Options:
    group = config.experimental_config
    found = {
        "remove_noop_ops": group.remove_noop_ops.value,
        "ge.featureBaseRefreshable": group.memory_efficiency.value,
        "ge.topoSortingMode": _TOPOLOGY[group.topology_sorting_strategy.value],
        "pattern_fusion_pass": group.pattern_fusion_pass.value,
        "ge.jit_compile": "2",  # "auto" is all that the option takes
        "ge.exec.static_model_ops_lower_limit": group.static_model_ops_lower_limit.value,
    }
    private = {option.where.rpartition(".")[2]: option.raw for option in group.aclgraph.options()}
    if private.get(_STATIC_KERNEL):
        found[_STATIC_KERNEL] = "1"
        # The graph engine takes no missing text here.
        found[f"{_STATIC_KERNEL}_build_dir"] = str(private.get(f"{_STATIC_KERNEL}_build_dir") or "")
        found[f"{_STATIC_KERNEL}_sym_value_range"] = str(private.get(f"{_STATIC_KERNEL}_sym_value_range"))
        found[f"{_STATIC_KERNEL}_sym_index"] = str(private.get(f"{_STATIC_KERNEL}_sym_index") or 0)
    return _known(found)


def _experimental_of_process(config: OptionGroup) -> Options:
    group = config.experimental_config
    return {
        "ge.exec.enableEngineParallel": group.cc_parallel_enable.value,
        "ge.tiling_schedule_optimize": group.tiling_schedule_optimize.value,
    }


def _ge(config: OptionGroup) -> Options:
    group = config.ge_config
    found = {
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
        found[name] = None if option.value is None else _word(option)
    return _known(found)


def _fusion(config: OptionGroup) -> Options:
    return _known({"ge.fusionSwitchFile": config.fusion_config.fusion_switch_file.value})


def _dump(config: OptionGroup) -> Options:
    group = config.dump_config
    found = {"ge_dump_with_acl_config": group.dump_config_path.value}
    if not group.enable_dump:
        return _known(found)
    folder = _rank_folder(group.dump_path.value)
    if config.mode.value == "max-autotune":
        found |= {
            "ge.exec.enableDump": "1",
            "ge.exec.dumpPath": folder,
            "ge.exec.dumpMode": group.dump_mode.value,
            "ge.quant_dumpable": group.quant_dumpable.value,
            "ge.exec.dumpStep": group.dump_step.value or None,
            "ge.exec.dumpLayer": group.dump_layer.value or None,
            "ge.exec.dumpData": group.dump_data.value,
        }
    else:
        found |= {
            "aclgraph.enableDump": "1",
            "aclgraph.dumpPath": folder,
            "aclgraph.dumpStage": group.data_dump_stage.value,
        }
    return _known(found)


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

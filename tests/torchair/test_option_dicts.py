"""`as_dict`: what TorchAir hands to the compiler. None of it needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump.torchair as torchair
from msdump.errors import WriteError

LOCAL = {
    "mode": "max-autotune",
    "clone_input": "1",
    "disable_mempool_reuse_in_same_fx": "0",
    "enable_output_clone": "0",
    "static_capture_size_limit": "64",
    "remove_noop_ops": "1",
    "pattern_fusion_pass": "1",
    "ge.featureBaseRefreshable": "0",
    "ge.jit_compile": "2",
    "ge.topoSortingMode": "1",
}
GLOBAL = {
    "ge.enableSingleStream": "false",
    "ge.exec.enableEngineParallel": "0",
    "ge.exportCompileStat": "2",
    "ge.oo.level": "O3",
    "ge.tiling_schedule_optimize": "0",
}


def set_option(config: Any, path: str, value: Any) -> None:
    *groups, name = path.split(".")
    for group in groups:
        config = getattr(config, group)
    setattr(config, name, value)


def test_defaults_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert torchair.CompilerConfig().as_dict() == (LOCAL, GLOBAL)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "value", "local", "of_process"),
    [
        ("mode", "reduce-overhead", {"mode": "reduce-overhead"}, {}),
        ("debug.aclgraph.static_capture_size_limit", 7, {"static_capture_size_limit": "7"}, {}),
        ("debug.aclgraph.clone_input", False, {"clone_input": "0"}, {}),
        ("debug.run_eagerly", True, {}, {}),
        ("aoe_config.aoe_mode", "2", {"aoe_mode": "2", "work_path": "./"}, {}),
        ("export.export_mode", True, {"export_path_dir": "./"}, {}),
        ("export.export_name", "net", {}, {}),
        ("experimental_config.memory_efficiency", True, {"ge.featureBaseRefreshable": "1"}, {}),
        ("experimental_config.topology_sorting_strategy", "BFS", {"ge.topoSortingMode": "0"}, {}),
        (
            "experimental_config.static_model_ops_lower_limit",
            -1,
            {"ge.exec.static_model_ops_lower_limit": "-1"},
            {},
        ),
        ("experimental_config.cc_parallel_enable", True, {}, {"ge.exec.enableEngineParallel": "1"}),
        ("experimental_config.tiling_schedule_optimize", True, {}, {"ge.tiling_schedule_optimize": "1"}),
        ("ge_config.oo_level", "O1", {"ge.topoSortingMode": "3"}, {"ge.oo.level": "O1"}),
        ("ge_config.oo_constant_folding", False, {}, {"ge.oo.constantFolding": "false"}),
        ("ge_config.oo_dead_code_elimination", True, {}, {"ge.oo.deadCodeElimination": "true"}),
        ("ge_config.enable_single_stream", True, {}, {"ge.enableSingleStream": "true"}),
        ("ge_config.aicore_num", "24|48", {}, {"ge.aicoreNum": "24|48"}),
        ("ge_config.optimization_switch", "a:off", {}, {"ge.optimizationSwitch": "a:off"}),
        ("dump_config.dump_step", "0|2-3", {}, {}),
        (
            "experimental_config.aclgraph._aclnn_static_shape_kernel",
            True,
            {
                "_aclnn_static_shape_kernel": "1",
                "_aclnn_static_shape_kernel_build_dir": "",
                "_aclnn_static_shape_kernel_sym_value_range": "None",
                "_aclnn_static_shape_kernel_sym_index": "0",
            },
            {},
        ),
    ],
)
def test_one_option_changes_what_it_stands_for(
    path: str, value: Any, local: dict[str, str], of_process: dict[str, str]
) -> None:
    config = torchair.CompilerConfig()
    set_option(config, path, value)
    assert config.as_dict() == ({**LOCAL, **local}, {**GLOBAL, **of_process})


def test_files_of_options(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    for name in ("fusion.cfg", "acl.json"):
        (tmp_path / name).write_text("{}")
    config.fusion_config.fusion_switch_file = str(tmp_path / "fusion.cfg")
    config.dump_config.dump_config_path = str(tmp_path / "acl.json")
    files = {
        "ge.fusionSwitchFile": str(tmp_path / "fusion.cfg"),
        "ge_dump_with_acl_config": str(tmp_path / "acl.json"),
    }
    assert config.as_dict() == (LOCAL, {**GLOBAL, **files})


def test_an_enabled_dump_makes_its_folder(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(tmp_path)
    folder = tmp_path / "worldsize1_global_rank0"
    expected = {
        "ge.exec.enableDump": "1",
        "ge.exec.dumpPath": str(folder),
        "ge.exec.dumpMode": "all",
        "ge.quant_dumpable": "0",
        "ge.exec.dumpData": "tensor",
    }
    assert not folder.exists()
    assert config.as_dict() == (LOCAL, {**GLOBAL, **expected})
    assert folder.is_dir()
    config.dump_config.dump_step = "0|3-5"
    config.dump_config.dump_layer = "Add_1 Mul"
    config.dump_config.quant_dumpable = True
    config.dump_config.dump_data = "stats"
    config.dump_config.dump_mode = "input"
    more = {
        "ge.exec.dumpStep": "0|3-5",
        "ge.exec.dumpLayer": "Add_1 Mul",
        "ge.quant_dumpable": "1",
        "ge.exec.dumpData": "stats",
        "ge.exec.dumpMode": "input",
    }
    assert config.as_dict()[1] == {**GLOBAL, **expected, **more}
    config.mode = "reduce-overhead"
    of_aclgraph = {
        "aclgraph.enableDump": "1",
        "aclgraph.dumpPath": str(folder),
        "aclgraph.dumpStage": "optimized",
    }
    assert config.as_dict()[1] == {**GLOBAL, **of_aclgraph}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(tmp_path)
    (tmp_path / "worldsize1_global_rank0").write_text("")
    with pytest.raises(WriteError, match=r"config\.dump_config\.dump_path: expected to make .*worldsize1_global_rank0"):
        config.as_dict()


@given(data=st.data())
def test_everything_is_text(data: st.DataObject) -> None:
    config = torchair.CompilerConfig()
    listed = [option for option in config.options() if option.optional]
    for option in data.draw(st.lists(st.sampled_from(listed), max_size=8)):
        if not option.where.endswith("enable_dump"):
            option.value = data.draw(st.sampled_from(option.optional))
    for options in config.as_dict():
        assert all(type(name) is str and type(value) is str for name, value in options.items())

"""config.json and the arguments of PrecisionDebugger: what they choose, and what is refused with its key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msdump.errors import ConfigError
from msdump.frontends.msprobe.config import Slice, numbers, read_settings


def path_of(folder: Path, **config: Any) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({"dump_path": "out", **config}))
    return str(path)


def test_defaults_are_those_of_msprobe(tmp_path: Path) -> None:
    for settings in (read_settings(path_of(tmp_path, dump_path="./dump_path")), read_settings()):
        assert (settings.task, settings.level, settings.dump_path) == ("statistics", "L1", "./dump_path")
        assert (settings.summary_mode, settings.risk_level, settings.is_enabled) == ("statistics", "FOCUS", None)
        assert settings.stages == {"forward", "backward"} and settings.sides == {"input", "output"}
        assert settings.has_extra_info and not settings.saves_tensors and not settings.is_precise


def test_arguments_count_more_than_the_file(tmp_path: Path) -> None:
    path = path_of(tmp_path, task="tensor", level="L0", step=[9], tensor={"list": ["a"]}, statistics={"list": ["b"]})
    settings = read_settings(path, "statistics", "elsewhere", "mix", [1, "3-4"])
    assert (settings.task, settings.level, settings.dump_path) == ("statistics", "mix", "elsewhere")
    assert settings.steps == {1, 3, 4} and settings.names == ("b",)


def test_a_section_is_read(tmp_path: Path) -> None:
    section = {
        "scope": ["x", "y"], "data_mode": ["forward"], "summary_mode": "md5", "tensor_list": ["relu"],
        "slice": [{"dim": 1, "end": 3}, {"begin": 2, "size": 4}], "request_id": None,
    }  # fmt: skip
    settings = read_settings(
        path_of(tmp_path, rank=[0, "2-3"], precision="high", extra_info=False, risk_level=None, statistics=section)
    )
    assert settings.scope == ("x", "y") and settings.saved_names == ("relu",) and settings.saves_tensors
    assert settings.takes("forward", "input") and not settings.takes("backward", "input")
    assert settings.slices == (Slice(1, 0, 3), Slice(0, 2, None, 4))
    assert settings.ranks == {0, 2, 3} and settings.is_precise and not settings.has_extra_info
    assert (settings.risk_level, settings.summary_mode) == ("ALL", "md5")


def test_structure_has_modules(tmp_path: Path) -> None:
    assert read_settings(path_of(tmp_path, task="structure", level="L1")).level == "mix"
    assert read_settings(path_of(tmp_path, task="structure", level="L0")).level == "L0"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "task": ({"task": "statistic"}, r'config.json, task: expected one of .*, got "statistic"'),
    "task of an NPU": ({"task": "nan_check"}, r'task: "nan_check" is not supported: .*NPU'),
    "task of old": ({"task": "overflow_check"}, r'task: "overflow_check" is not supported: .*msdump nan'),
    "level": ({"level": "L2"}, r'level: "L2" is not supported: it dumps the kernels of an NPU'),
    "level name": ({"level": 3}, r"level: expected one of L0, L1, mix, debug, got 3"),
    "path": ({"dump_path": ""}, r"dump_path: expected a folder"),
    "unknown key": ({"stpe": [1]}, r"config.json, stpe: .*'stpe'.*step"),
    "unknown key of a section": ({"statistics": {"lst": []}}, r"statistics\.lst: .*list"),
    "section": ({"statistics": []}, r"statistics: expected an object"),
    "list": ({"statistics": {"list": "relu"}}, r'statistics\.list: expected a list of texts, got "relu"'),
    "step": ({"step": 1}, r"step: expected a list"),
    "step entry": ({"step": ["1-"]}, r'step: expected numbers, and ranges .*, got "1-"'),
    "step order": ({"step": ["3-1"]}, r'step: expected numbers from 0 .*rising order, got "3-1"'),
    "rank": ({"rank": [-1]}, r"rank: expected numbers from 0"),
    "rank truth": ({"rank": [True]}, r"rank: expected numbers"),
    "enable": ({"dump_enable": 1}, r"dump_enable: expected true or false, got 1"),
    "extra": ({"extra_info": "no"}, r"extra_info: expected true or false"),
    "precision": ({"precision": "mid"}, r"precision: expected one of low, high"),
    "risk": ({"risk_level": "LOW"}, r"risk_level: expected one of CORE, FOCUS, ALL"),
    "mode": ({"statistics": {"data_mode": ["sideways"]}}, r"data_mode: expected one of"),
    "modes": ({"statistics": {"data_mode": ["all", "input"]}}, r'data_mode: expected "all" alone'),
    "summary": ({"statistics": {"summary_mode": "sha"}}, r"summary_mode: expected one of statistics, md5, xor"),
    "slice": ({"statistics": {"slice": {}}}, r"slice: expected a list"),
    "slice entry": ({"statistics": {"slice": [{"dim": "0"}]}}, r"slice: expected objects with whole numbers"),
    "slice key": ({"statistics": {"slice": [{"axis": 0}]}}, r"slice: expected objects"),
    "slice axis": ({"statistics": {"slice": [{"dim": -1}]}}, r"slice: expected dim and size from 0"),
    "request": ({"statistics": {"request_id": "a"}}, r'request_id: "a" is not supported'),
    "bench": ({"task": "tensor", "tensor": {"bench_path": "x"}}, r"bench_path: .*not supported.*msdump compare"),
    "load": ({"load": {"path": "x"}}, r"load: .*not supported"),
    "operators": ({"custom_op_namespaces": ["mine"]}, r"custom_op_namespaces: .*register_custom_api"),
    "async md5": ({"async_dump": True, "statistics": {"summary_mode": "md5"}}, r"summary_mode: .*async_dump"),
    "async all": ({"task": "tensor", "async_dump": True}, r"tensor\.list: expected names"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_value_is_named_with_its_key(name: str, tmp_path: Path) -> None:
    config, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        read_settings(path_of(tmp_path, **config))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "diff_check"}, r'PrecisionDebugger, task: "diff_check" is not supported'),
        ({"level": "L3"}, r"PrecisionDebugger, level: expected one of"),
        ({"step": (1, 2)}, r"PrecisionDebugger, step: expected a list"),
        ({"dump_path": 3}, r"PrecisionDebugger, dump_path: expected a text, got 3"),
        ({"config_path": "nowhere.json"}, r"nowhere.json"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_settings(**arguments)


def test_a_file_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ConfigError, match="expected an object"):
        read_settings(str(tmp_path / "config.json"))
    (tmp_path / "config.json").write_text('{"step": [1,]}')
    with pytest.raises(ConfigError, match=r"config.json:1:"):
        read_settings(str(tmp_path / "config.json"))


def test_keys_that_msprobe_has_for_other_tasks_do_no_harm(tmp_path: Path) -> None:
    other = {"white_list": [], "black_list": [], "error_data_path": "./"}
    assert read_settings(path_of(tmp_path, acc_check=other, custom_op_namespaces=["_C_ascend"])).task == "statistics"


def test_keys_of_former_versions_are_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    former = {"seed": 1, "is_deterministic": True, "enable_dataloader": False, "acl_config": "", "run_ut": {}}
    section = {"backward_input": [], "file_format": "npy"}
    settings = read_settings(path_of(tmp_path, **former, task="tensor", tensor=section))
    assert settings.task == "tensor"
    for key in [*former, "tensor.backward_input", "tensor.file_format"]:
        assert f"config.json, {key}: a key of msprobe 1.x, which has no effect" in caplog.text


def test_numbers_of_ranges() -> None:
    assert numbers("step", None) == numbers("step", []) == frozenset()
    assert numbers("step", [4, "1-2", "7", 4]) == {1, 2, 4, 7}
    with pytest.raises(ConfigError, match="from 0 to 1000000"):
        numbers("step", [1_000_001])

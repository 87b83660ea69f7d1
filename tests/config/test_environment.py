"""Environment variables: what is read, what unset and empty mean, what is refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config import environment as variables
from msdump.config.environment import (
    CONTAINER,
    UPLOAD,
    VARIABLES,
    AclEnvironment,
    Environment,
    exception_folder,
    format_size,
    say_ignored,
)
from msdump.errors import ConfigError
from tests.package import PACKAGE


def test_all_variables_are_read():
    environment = Environment.from_os(
        {
            "MINDSPORE_DUMP_CONFIG": "./dump.json",
            "MS_DIAGNOSTIC_DATA_PATH": "/diagnostic",
            "MS_ACL_DUMP_CFG_PATH": "./dump.json",
            "RANK_ID": "3",
            "DEVICE_ID": "07",
            "MSDUMP_STRICT": "1",
        }
    )
    assert environment == Environment("./dump.json", "/diagnostic", 3, 7, "./dump.json", True)
    assert environment.is_acl_dump


@pytest.mark.parametrize("value", [None, ""])
def test_dump_is_off_without_a_configuration(value):
    environ = {"RANK_ID": "none of our business", "MSDUMP_STRICT": "?"}
    if value is not None:
        environ["MINDSPORE_DUMP_CONFIG"] = value
    assert Environment.from_os(environ) == Environment()


def test_the_real_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "/a.json")
    monkeypatch.setenv("RANK_ID", "")
    environment = Environment.from_os()
    assert (environment.dump_config_path, environment.rank_id) == ("/a.json", None)


@pytest.mark.parametrize("name", ["RANK_ID", "DEVICE_ID"])
@pytest.mark.parametrize("text", ["-1", "one", "1.0", "٣", "9" * 5000])
def test_wrong_numbers_are_refused_by_name(name, text):
    with pytest.raises(ConfigError, match=f"environment variable {name}: expected a number"):
        Environment.from_os({"MINDSPORE_DUMP_CONFIG": "/a.json", name: text})


@pytest.mark.parametrize(("text", "is_strict"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("", False)])
def test_strict(text, is_strict):
    assert Environment.from_os({"MINDSPORE_DUMP_CONFIG": "/a", "MSDUMP_STRICT": text}).is_strict is is_strict


def test_strict_misspelt():
    with pytest.raises(ConfigError, match=r'MSDUMP_STRICT: expected 1 or 0, got "ture"\. Did you mean "true"'):
        Environment.from_os({"MINDSPORE_DUMP_CONFIG": "/a", "MSDUMP_STRICT": "ture"})


def test_acl_dump_needs_equal_texts():
    assert not Environment("/a.json", acl_dump_cfg_path="/./a.json").is_acl_dump
    assert not Environment().is_acl_dump


def test_variables_choose_the_scene():
    def scene(**environ):
        return AclEnvironment.from_os(environ).scene

    assert scene() == scene(NPU_COLLECT_PATH="", ASCEND_WORK_PATH="w", ASCEND_DUMP_PATH="d") == ""
    assert scene(NPU_COLLECT_PATH="n") == "aic_err_norm_dump"
    assert scene(NPU_COLLECT_PATH="n", ASCEND_DUMP_SCENE="aic_err_brief_dump") == "aic_err_brief_dump"
    wrong = AclEnvironment.from_os({"ASCEND_DUMP_SCENE": "lite_exception", "NPU_COLLECT_PATH": "n"})
    assert wrong.scene == "aic_err_norm_dump"
    assert wrong.warnings[0].startswith("ASCEND_DUMP_SCENE: expected one of aic_err_brief_dump, ")


def test_variables_choose_the_folder_of_exceptions(tmp_path):
    configured = tmp_path / "configured"

    def folder(**environ):
        return exception_folder(AclEnvironment.from_os(environ), configured, tmp_path)

    variables = {"NPU_COLLECT_PATH": "n/n", "ASCEND_DUMP_PATH": "d", "ASCEND_WORK_PATH": str(tmp_path / "w")}
    for name, path in (("NPU_COLLECT_PATH", "n/n"), ("ASCEND_DUMP_PATH", "d"), ("ASCEND_WORK_PATH", "w")):
        assert folder(**variables) == tmp_path / path
        assert (tmp_path / path).is_dir()
        del variables[name]
    assert folder() == configured and not configured.exists()
    assert exception_folder(AclEnvironment(), None, tmp_path) == tmp_path


def test_a_folder_that_cannot_be_made_is_passed_over(tmp_path):
    (tmp_path / "file").touch()
    environ = {"NPU_COLLECT_PATH": str(tmp_path / "file"), "ASCEND_WORK_PATH": str(tmp_path / "w")}
    assert exception_folder(AclEnvironment.from_os(environ), None, tmp_path) == tmp_path / "w"
    inside = {"NPU_COLLECT_PATH": str(tmp_path / "file" / "inside")}
    assert exception_folder(AclEnvironment.from_os(inside), None, tmp_path) == tmp_path


ROOT = Path(__file__).parents[2]
LIKE_A_VARIABLE = re.compile(r"(MSDUMP|MINDSPORE|MS|ASCEND|NPU|TORCHAIR|DUMP_GE|DUMP_GRAPH)_[A-Z_]*[A-Z]")
# Files that name a variable themselves, and why.
OTHERS = {
    (
        "cli/_startup/__init__.py",
        "MSDUMP_INHERITED",
    ): "what a run hands to child processes; set and read by msdump alone",
    (
        "cli/_startup/sitecustomize.py",
        "MSDUMP_INHERITED",
    ): "runs in every Python process, before msdump can be imported",
    ("frontends/torch/redirect.py", "MSDUMP_SPAWNED"): "set for processes that dump in place of theirs; msdump's alone",
    ("mindspore/communication/launch.py", "MS_SCHED"): "a value of MS_ROLE",
    ("mindspore/nn/one_device.py", "MS_WORKER"): "a value of MS_ROLE",
    ("process/report.py", "MSDUMP_REPORTS"): "what a run hands to child processes; set and read by msdump alone",
    **{
        (
            "process/default_folder.py",
            name,
        ): "torchrun's own: what tells the processes of one job, and the first of them"
        for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    },
    ("process/command.py", "WORLD_SIZE"): "torchrun's own: whether this process is one of several",
    ("mindspore/context.py", "MS_ASCEND_CHECK_OVERFLOW_MODE"): "read when a script chooses its device",
    ("mindspore/context.py", "INF_NAN_MODE_ENABLE"): "CANN's own; read when a script chooses its device",
    ("cli/_startup/__init__.py", "PYTHONPATH"): "Python's own",
    ("cli/demo.py", "PYTHONPATH"): "Python's own",
    ("cli/dry_run.py", "PYTHONPATH"): "Python's own",
    ("cli/layout.py", "COLUMNS"): "the shell's own: how wide lines may be",
    ("cli/view.py", "SSH_CONNECTION"): "OpenSSH's own",
    ("tensors/compiling.py", "NUMBA_CACHE_DIR"): "numba's own: where its users keep machine code",
    (
        "process/user_cache.py",
        "XDG_CACHE_HOME",
    ): "the user's folder for caches, by the XDG base directory specification",
    ("frontends/msprobe/seeding.py", "PYTHONHASHSEED"): "Python's own; seed_all sets it as msprobe does",
    ("frontends/msprobe/seeding.py", "CUBLAS_WORKSPACE_CONFIG"): "cuBLAS's own; seed_all sets it as msprobe does",
}


def variables_named_in(file: Path) -> Iterator[str]:
    """Strings that are the name of a variable, and keys that are looked up in `os.environ`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in VARIABLES or LIKE_A_VARIABLE.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            yield from literals([node.slice])
        elif isinstance(node, ast.Call) and re.search(r"environ\.\w+$|getenv$", ast.unparse(node.func)):
            yield from literals(node.args[:1])


def literals(nodes: list[ast.expr]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.usefixtures("needs_mindspore")
def test_no_other_module_names_a_variable():
    named = {
        (file.relative_to(PACKAGE).as_posix(), name)
        for file in PACKAGE.rglob("*.py")
        if file != Path(variables.__file__).resolve()
        for name in variables_named_in(file)
    }
    assert named == set(OTHERS)


def test_the_table_lists_every_variable():
    named = set(variables_named_in(PACKAGE / "config/environment.py"))
    assert named == set(VARIABLES) and len(set(VARIABLES)) == len(VARIABLES)


def test_the_documentation_lists_every_variable():
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    section = text.partition("## Environment variables")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(VARIABLES)


def test_format_size() -> None:
    examples = {
        0: "0 B",
        999: "999 B",
        1536: "1.5 KiB",
        1024**3: "1 GiB",
        1023 * 1024: "1023 KiB",
        5 * 1024**5: "5120 TiB",
    }
    assert {size: format_size(size) for size in examples} == examples


@given(st.integers(0, 2**60))
def test_format_size_is_within_half_a_percent(size: int) -> None:
    number, unit = format_size(size).split()
    exact = size / 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    assert abs(float(number) - exact) <= 0.005 * exact


ALL = {CONTAINER: "pack", UPLOAD: "s3://bucket/job"}


def test_what_is_set_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    say_ignored("a dump", *ALL)
    monkeypatch.setenv(CONTAINER, "files")
    say_ignored("a dump", *ALL)
    assert not caplog.records
    for name, value in ALL.items():
        monkeypatch.setenv(name, value)
    say_ignored("a dump", UPLOAD)
    assert [record.getMessage() for record in caplog.records] == [
        "MSDUMP_UPLOAD has no effect on a dump: `msdump pack --upload` sends its files."
    ]
    say_ignored("a dump", *ALL)
    assert len(caplog.records) == 3


@pytest.mark.parametrize(("name", "value"), [(CONTAINER, "zip"), (UPLOAD, "nonsense"), (UPLOAD, "nonsense://")])
def test_wrong_values_are_errors_for_every_dump(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"environment variable {name}: expected"):
        say_ignored("a dump")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LC_ALL": "zh_TW", "LC_MESSAGES": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "MSDUMP_LANGUAGE": "en"}, "en"),
        ({"LANG": "de_DE.UTF-8", "MSDUMP_LANGUAGE": "zh-CN"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "MSDUMP_LANGUAGE": " "}, "zh"),
        ({"LANG": "zhuang"}, "en"),
    ],
)
def test_the_language_of_answers(environ, expected):
    assert variables.language(environ) == expected


def test_a_language_without_a_catalogue_is_refused():
    with pytest.raises(ConfigError, match=r'MSDUMP_LANGUAGE: expected en or zh, got "fr"'):
        variables.language({"MSDUMP_LANGUAGE": "fr"})

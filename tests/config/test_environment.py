"""Environment variables: what is read, what unset and empty mean, what is refused."""

from __future__ import annotations

import pytest

from msdump.config.environment import Environment
from msdump.errors import ConfigError


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

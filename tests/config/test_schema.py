"""Schemas take every configuration that the reader takes, and refuse those mistakes that a schema can see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.cli.schema import NAMES
from msdump.config.acl import load_acl_config
from msdump.config.json_file import mapping_as_file
from msdump.config.mindspore import parse_mindspore_config
from msdump.config.schema import SCHEMAS, acl_schema, mindspore_schema
from msdump.errors import ConfigError
from msdump.testing.acl_configs import acl_dumps
from msdump.testing.configs import MISTAKES, Mistake, is_mistake, mindspore_configs

ROOT = Path(__file__).resolve().parents[2]
MINDSPORE = jsonschema.Draft202012Validator(mindspore_schema())
ACL = jsonschema.Draft202012Validator(acl_schema())
VALUES = st.none() | st.booleans() | st.integers(-2, 5) | st.floats(0, 2) | st.sampled_from(
    ["", "all", "/dump", "0|3-5", "||7|", "npy", "bin", "tensor", "statistic", "full", "8G", "loss > 10", "host", "on"]
)  # fmt: skip
VALUES = VALUES | st.lists(VALUES, max_size=2)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_schemas_and_the_command_prints_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == SCHEMAS[name]()
    jsonschema.Draft202012Validator.check_schema(printed)


def test_the_command_knows_all() -> None:
    assert tuple(SCHEMAS) == NAMES


@given(mindspore_configs(saved_data=st.sampled_from(["tensor", "statistic", "full"])), st.data())
def test_what_the_reader_takes_is_right(config: dict[str, Any], data: st.DataObject) -> None:
    """With any value in place of any key, and with keys of all sections."""
    config.setdefault("recorder_settings", {})
    section = data.draw(st.sampled_from(sorted(config)))
    keys = mindspore_schema()["properties"][section]["properties"]
    config[section][data.draw(st.sampled_from(sorted(keys)))] = data.draw(VALUES)
    try:
        parse_mindspore_config(mapping_as_file(config, "dump.json"))
    except ConfigError:
        return
    MINDSPORE.validate(config)


@given(mindspore_configs(saved_data=st.sampled_from(["tensor", "statistic", "full"])))
def test_right_ones_are_right(config: dict[str, Any]) -> None:
    MINDSPORE.validate(config)


# What a schema cannot say: what the environment adds, the order of numbers, values beside each other.
UNSEEN = (
    "Dump path is empty", "Dump path only support alphabets", 'got "5-2"', 'got "0|9-3"', 'got "18446744073709551616"',
    "op_debug_mode should be 0, 1, 2, 3", "overflow_number only need", "Dump Json parse failed, storing statistic",
)  # fmt: skip


@pytest.mark.parametrize("mistake", [one for one in MISTAKES if is_mistake(one, "CPU", False)], ids=lambda one: one.key)
@settings(max_examples=5)
@given(data=st.data())
def test_mistakes_of_single_values_are_seen(mistake: Mistake, data: st.DataObject) -> None:
    config = data.draw(mindspore_configs(path="/dump", is_sync=not mistake.is_async))
    mistake.spoil(config)
    values = [value for section in config.values() for value in section.values()]
    # In JSON 1.0 is a whole number.
    is_unseen = any(part in mistake.first_line for part in UNSEEN) or any(isinstance(one, float) for one in values)
    assert MINDSPORE.is_valid(config) == is_unseen


@given(st.data())
def test_acl_takes_what_the_reader_takes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    dump = data.draw(acl_dumps(str(tmp_path_factory.getbasetemp())))
    ACL.validate({"dump": dump})
    dump[data.draw(st.sampled_from(sorted(acl_schema()["properties"]["dump"]["properties"])))] = data.draw(VALUES)
    try:
        load_acl_config({"dump": dump})
    except ConfigError:
        return
    ACL.validate({"dump": dump})


def test_configurations_of_the_docs() -> None:
    texts = [
        block.split("```")[0]
        for path in (ROOT / "docs").rglob("*.md")
        for block in path.read_text(encoding="utf-8").split("```json\n")[1:]
    ]
    seen = 0
    for text in texts:
        for schema, section in ((MINDSPORE, '"common_dump_settings"'), (ACL, '"dump"')):
            if section in text:
                schema.validate(json.loads(text))
                seen += 1
    assert seen > 5

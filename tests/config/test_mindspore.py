"""The MindSpore JSON: every refusal by its first line, the order of the checks, and what is only warned about."""

from __future__ import annotations

import copy
import itertools
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.json_file import JsonFile, read_json_file
from msdump.config.mindspore import parse_mindspore_config, repeated
from msdump.config.sections import Profile
from msdump.errors import ConfigError
from msdump.testing.configs import (
    MISTAKES,
    invalid_mindspore_configs,
    is_mistake,
    mindspore_config_texts,
    mindspore_configs,
    mistakes_for,
)

RIGHT = {
    "common_dump_settings": {
        "dump_mode": 0,
        "path": "/dump",
        "net_name": "Net",
        "iteration": "0|5-8",
        "input_output": 0,
        "kernels": ["Default/Conv-op12"],
        "support_device": [0, 1],
        "op_debug_mode": 0,
        "file_format": "npy",
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": True},
}
PROFILES = [(target, is_strict) for target in ("CPU", "GPU", "Ascend") for is_strict in (False, True)]


def parse(config, **profile):
    return parse_mindspore_config(JsonFile(Path("/dump.json"), b"", config), Profile(**profile))


def refusal(config, **profile) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(config, **profile)
    return str(caught.value)


def right(is_async=False, **common):
    config = copy.deepcopy(RIGHT)
    config["common_dump_settings"].update(common)
    if is_async:
        del config["e2e_dump_settings"]
    return config


def starts_with(message: str, first_line: str) -> bool:
    """Whole first line, but for msdump's own lines, which begin with the JSON path."""
    return message.startswith(first_line if first_line.startswith("common_dump_settings.") else f"{first_line}\n")


CASES = [
    (mistake, target, is_strict)
    for mistake in MISTAKES
    for target, is_strict in PROFILES
    if is_mistake(mistake, target, is_strict)
]


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda n: f"{n}-{CASES[n][0].key}-{CASES[n][1]}-{CASES[n][2]}"
)
def test_every_mistake_gives_its_line(number):
    mistake, target, is_strict = CASES[number]
    config = right(mistake.is_async)
    parse(config, device_target=target, is_strict=is_strict)
    mistake.spoil(config)
    message = refusal(config, device_target=target, is_strict=is_strict)
    assert starts_with(message, mistake.first_line)
    assert message.splitlines()[-1] == "Configuration file: /dump.json"
    assert ": expected " in message.splitlines()[-2]


@pytest.mark.parametrize(("target", "is_strict"), PROFILES)
@pytest.mark.parametrize("is_async", [False, True])
def test_of_two_mistakes_the_first_check_wins(target, is_strict, is_async):
    mistakes = [item for item in mistakes_for(target, is_strict) if item.is_async in (is_async, False)]
    if is_async:
        mistakes = [item for item in mistakes if not item.key.startswith("e2e_dump_settings")]
        mistakes = [item for item in mistakes if "asynchronous mode" not in item.first_line]
    # One mistake per key is enough here; which one does not matter.
    by_key = list({(item.key, item.is_missing): item for item in mistakes}.values())
    pairs = 0
    for index, first in enumerate(by_key):
        for second in by_key[index + 1 :]:
            if first.key == second.key or first.key == "common_dump_settings":
                continue
            config = right(is_async)
            second.spoil(config)
            first.spoil(config)
            if "common_dump_settings" in config and not is_spoilt_twice(first, second):
                message = refusal(config, device_target=target, is_strict=is_strict)
                assert starts_with(message, first.first_line), (first, second)
                pairs += 1
    assert pairs > 50


def is_spoilt_twice(first, second) -> bool:
    """True when one of the two also writes the other's key."""
    keys = {first.key, second.key}
    return keys <= {"saved_data", "file_format", "statistic_category"} or keys == {"overflow_number", "op_debug_mode"}


@pytest.mark.parametrize("value", [[], "text", 3, None, [{"common_dump_settings": 1}], {}])
def test_a_file_without_sections(value):
    assert refusal(value).splitlines()[0] == "Check dump json failed, common_dump_settings not found"


@pytest.mark.parametrize("value", [[], "text", 3, None, {}])
def test_sections_that_are_no_objects(value):
    config = right()
    config["common_dump_settings"] = value
    assert refusal(config).startswith("Check dump json failed, dump_mode not found\n")
    assert ("Add it." if value == {} else "It is no object") in refusal(config)
    config["e2e_dump_settings"] = value
    assert refusal(config).startswith("Check dump json failed, enable not found\n")


@given(st.sampled_from(PROFILES), st.data())
def test_drawn_wrong_configurations_are_refused(profile, data):
    target, is_strict = profile
    config, first_line = data.draw(invalid_mindspore_configs(target, is_strict))
    assert starts_with(refusal(config, device_target=target, is_strict=is_strict), first_line)


@given(mindspore_configs(), st.sampled_from(PROFILES))
def test_drawn_right_configurations_hold_everywhere(config, profile):
    parsed = parse(config, device_target=profile[0], is_strict=profile[1])
    common = config["common_dump_settings"]
    for key in ("dump_mode", "path", "net_name", "input_output"):
        assert getattr(parsed.common, key) == common[key]
    assert parsed.common.kernels == tuple(common["kernels"])
    assert parsed.common.support_device == tuple(common["support_device"])


@given(mindspore_config_texts())
def test_files_are_read(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("config") / "data_dump.json"
    path.write_text(text)
    loaded = parse_mindspore_config(read_json_file(path))
    assert loaded.file.text == text.encode() and loaded.file.value == json.loads(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(["common_dump_settings", "e2e_dump_settings"]),
    st.sampled_from([*RIGHT["common_dump_settings"], *RIGHT["e2e_dump_settings"], "saved_data", "statistic_category"]),
    json_values,
    st.sampled_from(PROFILES),
)
def test_any_value_of_any_key_holds_or_raises_config_error(section, key, value, profile):
    config = right(saved_data="full") if profile == ("GPU", False) else right()
    config[section][key] = value
    try:
        parse(config, device_target=profile[0], is_strict=profile[1])
    except ConfigError as error:
        message = str(error)
    else:
        return
    assert "Configuration file: /dump.json" in message


def test_path_comes_from_the_environment_only_when_the_key_is_empty():
    config = right(path="")
    assert parse(config, diagnostic_path="/diagnostic").common.path == "/diagnostic/debug_dump"
    del config["common_dump_settings"]["path"]
    assert parse(config, diagnostic_path="/diagnostic").common.path == "/diagnostic/debug_dump"
    assert parse(right(), diagnostic_path="/diagnostic").common.path == "/dump"
    assert "absolute path and should start" in refusal(config, diagnostic_path="here")


def test_what_a_shell_would_replace_is_written_out(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert 'write "/home/me/dump".' in refusal(right(path="~/dump"))
    assert 'write "/home/me/dump".' in refusal(right(path="$HOME/dump"))
    assert f'Write "{os.getcwd()}/dump" if' in refusal(right(path="dump"))


def test_a_name_that_no_folder_can_have_is_refused():
    assert parse(right(net_name="n" * 255)).common.net_name == "n" * 255
    assert "net_name: expected at most 255 characters" in refusal(right(net_name="n" * 256))


def test_any_path_is_taken_unless_strict():
    assert parse(right(path="/tmp/my dump.d/网")).common.path == "/tmp/my dump.d/网"
    assert refusal(right(path="/a.b"), is_strict=True).startswith("Dump path only support alphabets")
    # Bytes of the environment that are no UTF-8.
    config = right(path="")
    assert parse(config, diagnostic_path="/\udcff").common.path == "/\udcff/debug_dump"
    assert "absolute path" in refusal(config, diagnostic_path="\udcff")
    assert refusal(right(path=".x"), is_strict=True).startswith("Dump path only support alphabets")


@pytest.mark.parametrize(
    ("target", "enable", "is_strict", "engine"),
    [
        ("CPU", True, False, "sync"),
        ("CPU", False, False, "async"),
        ("CPU", None, False, "async"),
        ("CPU", None, True, "sync"),
        ("GPU", False, False, "sync"),
        ("GPU", None, True, "sync"),
        ("Ascend", True, False, "sync"),
        ("Ascend", False, True, "async"),
        ("Ascend", None, False, "async"),
    ],
)
def test_engine(target, enable, is_strict, engine):
    config = right(is_async=enable is None)
    if enable is not None:
        config["e2e_dump_settings"]["enable"] = enable
    assert parse(config, device_target=target, is_strict=is_strict).engine == engine


def test_sync_does_not_read_the_keys_of_async():
    common = parse(right(op_debug_mode=["?"], file_format=7)).common
    assert (common.op_debug_mode, common.file_format) == (0, "npy")


def test_async_defaults():
    config = right(is_async=True)
    del config["common_dump_settings"]["op_debug_mode"], config["common_dump_settings"]["file_format"]
    common = parse(config).common
    assert (common.op_debug_mode, common.file_format) == (0, "bin")


def test_acl_dump_knows_one_debug_mode_more():
    config = right(is_async=True, op_debug_mode=4)
    assert parse(config, device_target="Ascend", is_acl_dump=True).common.op_debug_mode == 4
    config = right(is_async=True, op_debug_mode=5)
    message = refusal(config, device_target="Ascend", is_acl_dump=True)
    assert message.startswith("Dump Json Parse Failed. op_debug_mode should be 0, 1, 2, 3, 4\n")


@pytest.mark.parametrize("device_target", ["CPU", "Ascend"])
def test_the_exception_dump_beside_the_asynchronous_section_names_the_two_ways_to_it(device_target):
    first, second, _ = refusal(right(is_async=True, op_debug_mode=4), device_target=device_target).splitlines()
    assert first == "Dump Json Parse Failed. op_debug_mode should be 0, 1, 2, 3"
    assert "MS_ACL_DUMP_CFG_PATH" in second and "e2e_dump_settings.enable to true" in second
    assert "ACL" not in refusal(right(is_async=True, op_debug_mode=5), device_target=device_target)


@pytest.mark.parametrize("device_target", ["CPU", "GPU", "Ascend"])
@pytest.mark.parametrize("is_async", [True, False])
def test_marked_operators_are_for_ascend_async_when_strict(device_target, is_async):
    config = right(is_async=is_async, dump_mode=2)
    assert parse(config, device_target=device_target).common.dump_mode == 2
    if device_target == "Ascend" and is_async:
        assert parse(config, device_target=device_target, is_strict=True).common.dump_mode == 2
    else:
        message = refusal(config, device_target=device_target, is_strict=True)
        assert message.startswith("Cell dump is only supported in Ascend async dump. Please set dump_mode to 0 or 1.\n")


def test_statistics_are_allowed_where_the_original_refuses():
    assert parse(right(saved_data="full")).common.saved_data == "full"
    assert parse(right(saved_data="statistic"), device_target="Ascend").common.saved_data == "statistic"


def test_categories_of_statistics():
    config = right(saved_data="statistic", statistic_category=["md5", "max", "md5"])
    assert parse(config).common.statistic_category == ("md5", "max")
    assert parse(right(statistic_category="not read for tensors")).common.statistic_category is None
    message = refusal(right(saved_data="full", statistic_category=[1]))
    assert message.startswith("[json.exception.type_error.302] type must be string, but is number\n")
    message = refusal(right(saved_data="full", statistic_category="max"))
    assert message.startswith("Dump config parse failed, statistic_category should be array type\n")


def test_overflow_number_goes_with_debug_mode_3():
    config = right(is_async=True, overflow_number=5, op_debug_mode=3)
    assert parse(config, device_target="Ascend").common.overflow_number == 5


def test_initial_iteration_beyond_all_ranges_is_an_error():
    assert parse(right(initial_iteration=8)).common.initial_iteration == 8
    assert parse(right(initial_iteration=9), is_strict=True).common.initial_iteration == 9
    message = refusal(right(initial_iteration=9))
    assert message.startswith("common_dump_settings.initial_iteration: expected a number that")


def test_elements_of_kernels_as_their_json_text():
    config = right(dump_mode=1, kernels=["conv", 1, 1.5, True, None, ["a"]])
    assert parse(config).common.kernels == ("conv", "1", "1.5", "true", "null", '["a"]')


def test_expressions_are_checked_when_kernels_counts():
    bad = ["ok", "name-regex([)"]
    assert parse(right(kernels=bad)).common.kernels == tuple(bad)
    assert refusal(right(kernels=bad, dump_mode=1)).startswith("common_dump_settings.kernels[1]: expected a regular")


def test_misspelt_keys_are_offered():
    config = right(net_nam="Net")
    del config["common_dump_settings"]["net_name"]
    assert 'Is it meant by "net_nam"?' in refusal(config)
    config = {"common_dump_setings": {}}
    assert 'Is it meant by "common_dump_setings"?' in refusal(config)
    assert 'Did you mean "statistic"?' in refusal(right(saved_data="statistics"))
    assert 'Write for example "ResNet_50".' in refusal(right(net_name="ResNet 50"))


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        (right(dump_mode=1, kernels=["conv", "Conv", "conv"]), "Duplicate dump kernel name:conv"),
        (right(support_device=[0, 1, 0]), "Duplicate support device:0"),
        (right(savd_data="full"), 'common_dump_settings.savd_data: unknown key, ignored. Did you mean "saved_data"?'),
        (right() | {"async_dump_settings": {}}, "async_dump_settings: unknown section, ignored."),
        (right(dump_mode=1, kernels=[]), "common_dump_settings.kernels: the list is empty"),
        (right(op_debug_mode=3), "common_dump_settings.op_debug_mode: not read in sync dump"),
        (right(True, op_debug_mode=3, dump_mode=1), "Overflow dump or exception dump do not support specify kernels, "),
        (
            right(True, op_debug_mode=3, input_output=1),
            "When the `op_debug` mode is set to 3, `input_output` should be",
        ),
    ],
)
def test_warnings(config, warning):
    warnings = parse(config).warnings
    assert [text for text in warnings if text.startswith(warning)], warnings


def test_the_synchronous_dump_reads_exceptions_alone():
    """Source: from MindSpore 2.4 on the synchronous section reads the key; the guide leaves it open."""
    for mode in range(6):
        warnings = parse(right(op_debug_mode=mode)).warnings
        assert ("op_debug_mode: not read" in "".join(warnings)) == (mode not in (0, 4))
    specify = "Overflow dump or exception dump do not support specify kernels, the dump_mode is set to 0"
    assert specify in parse(right(op_debug_mode=4, dump_mode=1)).warnings
    recorder = {"recorder_settings": {"enable": True}}
    assert refusal(right(op_debug_mode=4) | recorder).startswith(
        "common_dump_settings.op_debug_mode: expected 0 beside"
    )


@pytest.mark.parametrize(("mode", "dump_mode", "put"), [*itertools.product(range(5), range(3), range(3))])
def test_overflow_dumps_warn_of_what_they_do_not_read(mode, dump_mode, put):
    """Of nothing else: each warning stands for a choice that is not followed."""
    specify = "Overflow dump or exception dump do not support specify kernels, the dump_mode is set to 0"
    inputs = "When the `op_debug` mode is set to 3, `input_output` should be set to 0."
    found = parse(right(True, op_debug_mode=mode, dump_mode=dump_mode, input_output=put), is_acl_dump=True).warnings
    assert found == (specify,) * (mode > 0 and dump_mode > 0) + (inputs,) * (mode == 3 and put > 0)


def test_a_right_configuration_warns_of_nothing():
    assert parse(right()).warnings == ()
    deprecated = "Deprecated: Synchronous dump mode is deprecated and will be removed in a future release"
    assert parse(right(), device_target="Ascend", is_strict=True).warnings == (deprecated,)
    assert parse(right(), device_target="Ascend").warnings == ()


def test_keys_that_come_twice_are_told(tmp_path):
    text = json.dumps(RIGHT).replace('"net_name": "Net"', '"net_name": "Old", "net_name": "Net"')
    (tmp_path / "a.json").write_text(text)
    loaded = parse_mindspore_config(read_json_file(tmp_path / "a.json"))
    assert loaded.common.net_name == "Net"
    assert any("net_name comes twice" in warning for warning in loaded.warnings)


@pytest.mark.parametrize(
    ("dump", "refusal"),
    [
        ({"dump_list": [{}], "dump_path": os.path.dirname(__file__)}, ""),
        ({"dump_mode": "both"}, "ACL refuses it too: EP0002: dump_mode: "),
    ],
)
def test_an_acl_json_in_place_of_mindspores_file(dump, refusal):
    with pytest.raises(ConfigError) as caught:
        parse_mindspore_config(JsonFile(Path("acl.json"), b"", {"dump": dump}), Profile(is_acl_dump=True))
    text = str(caught.value)
    assert text.index("common_dump_settings") < text.index("It is an acl.json: give it to `msdump acl run")
    assert (refusal in text) if refusal else "refuses" not in text


@given(st.lists(st.integers(0, 4), max_size=12))
def test_repeated_devices_are_told_each_time_they_come_again(devices: list[int]) -> None:
    expected = [device for place, device in enumerate(devices) if device in devices[:place]]
    assert repeated(tuple(devices)) == expected


def test_many_devices_are_read_soon(alarm: None) -> None:
    """A million of them, all different: what takes the square of that takes hours."""
    assert repeated(tuple(range(1_000_000))) == []

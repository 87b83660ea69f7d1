"""acl.json: every rule with its numbers, their order, what passes, and what is only warned about."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.acl import load_acl_config, parse_acl_config, parse_position, plan_acl, plan_acl_exception
from msdump.config.acl_file import AclConfigError
from msdump.config.acl_rules import BlacklistEntry, DumpListItem, DumpSection, RangeEntry
from msdump.config.json_file import JsonFile
from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT, How, OperandSelection, Trigger, When
from msdump.config.selection import ModelOperator, Which
from msdump.errors import ConfigError
from msdump.testing.acl_configs import (
    ACL_FILE_MISTAKES,
    ACL_MISTAKES,
    acl_dumps,
    acl_json_texts,
    invalid_acl_dumps,
)
from tests import plans
from tests.plans import acl_plan

OPERATORS = [
    ModelOperator("Data", "x"),
    ModelOperator("Conv2D", "conv1", (), (0,)),
    ModelOperator("Add", "add", (), (1,)),
]
NAMES = [operator.op_name for operator in OPERATORS]
FOLDER = os.path.dirname(os.path.abspath(__file__))


def parse(dump):
    return parse_acl_config(JsonFile(Path("/acl.json"), b"", {"dump": dump}))


def refusal(dump) -> AclConfigError:
    with pytest.raises(AclConfigError) as caught:
        parse(dump)
    return caught.value


def right(**keys):
    return {"dump_path": FOLDER, **keys}


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "acl.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# -- the rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", ACL_FILE_MISTAKES, ids=lambda mistake: mistake.name)
def test_every_wrong_file_gives_its_numbers(mistake, tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_acl_config(mistake.make(str(tmp_path)))
    error = caught.value
    assert (error.acl_error, error.ep_code) == (mistake.acl_error, mistake.ep_code)
    assert str(error).startswith(f"{mistake.ep_code}: ")
    assert ": expected " in str(error).splitlines()[1]


@pytest.mark.parametrize("number", range(len(ACL_MISTAKES)), ids=lambda n: f"{n}-row{ACL_MISTAKES[n].row}")
def test_every_mistake_gives_its_code(number):
    mistake = ACL_MISTAKES[number]
    error = refusal(mistake.section(FOLDER))
    assert (error.acl_error, error.ep_code) == (100009, mistake.ep_code)
    assert error.item == mistake.item
    first, second, last = str(error).splitlines()
    assert first.startswith(f"{mistake.ep_code}: " + ("when " if mistake.ep_code == "EP0005" else mistake.item))
    assert ": expected " in second and second.startswith(mistake.item)
    assert last == "Configuration file: /acl.json"


def test_every_rule_has_a_mistake():
    assert {mistake.row for mistake in ACL_MISTAKES} == {"A", "B", *map(str, range(1, 26))}


def test_a_path_that_a_shell_would_expand_is_written_out(monkeypatch):
    """As CANN's samples have it."""
    monkeypatch.setenv("HOME", "/home/me")
    error = refusal({"dump_path": "$HOME/output", "dump_list": [{}]})
    assert (error.ep_code, error.item) == ("EP0003", "dump_path")
    assert str(error).splitlines()[1].endswith('variables are not replaced here; write "/home/me/output".')


def test_a_section_that_is_no_object():
    for value in (None, [], "text", 3, True):
        error = refusal(value)
        assert (error.acl_error, error.ep_code, error.item) == (100009, "EP0001", "dump")
        assert "must be of the object type" in str(error)


def test_of_two_mistakes_the_first_check_wins():
    """Pairs whose keys can stand side by side; the later one has a single key, so that it brings nothing else in."""
    stage = {row: number for number, row in enumerate(["A", "B", *map(str, range(1, 26))])}
    mistakes = list({(mistake.row, mistake.item): mistake for mistake in ACL_MISTAKES if mistake.row != "4"}.values())
    simple = [mistake for mistake in mistakes if len(mistake.dump.keys() - {"dump_path"}) == 1]
    pairs = 0
    for second in simple:
        for first in mistakes:
            is_beside = not first.dump.keys() & second.dump.keys() - {"dump_path"}
            if is_beside and stage[first.row] < stage[second.row]:
                error = refusal({**second.section(FOLDER), **first.section(FOLDER)})
                assert (error.ep_code, error.item) == (first.ep_code, first.item), (first, second)
                pairs += 1
    assert pairs > 500


# Mistakes of one element of dump_list, in the order in which CANN finds them there; dump_level is left out.
ITEM_MISTAKES = (
    ({"model_name": ""}, "model_name"),
    ({"layer": []}, "layer"),
    ({"watcher_nodes": ["a"]}, "watcher_nodes"),
    ({"optype_blacklist": [{}] * 101}, "optype_blacklist"),
    ({"opname_blacklist": [{}] * 101}, "opname_blacklist"),
    ({"optype_blacklist": [{}]}, "optype_blacklist"),
    ({"opname_blacklist": [{}]}, "opname_blacklist"),
    ({"opname_range": [{"begin": "a", "end": "b"}]}, "opname_range"),
)


@given(st.lists(st.none() | st.integers(0, len(ITEM_MISTAKES) - 1), min_size=1, max_size=5), st.data())
def test_of_mistakes_in_several_elements_that_of_the_first_element_wins(numbers, data):
    """Whatever the elements behind it do wrong: each is judged by all rules before the next one is looked at."""
    second = data.draw(st.integers(0, len(ITEM_MISTAKES) - 1))
    items = [{"model_name": "m"} if number is None else dict(ITEM_MISTAKES[number][0]) for number in numbers]
    at = next((at for at, number in enumerate(numbers) if number is not None), None)
    if at is None:
        assert parse(right(dump_list=items)).section is not None
        return
    number = numbers[at]
    if not ITEM_MISTAKES[second][0].keys() & items[at].keys():
        items[at].update(ITEM_MISTAKES[second][0])
        number = min(number, second)
    assert refusal(right(dump_list=items)).item == f"dump_list[{at}].{ITEM_MISTAKES[number][1]}"


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ([{"layer": [3]}, 7], "[0].layer[0]"),
        ([{"opname_range": 3}, {"model_name": 3}], "[0].opname_range"),
        ([{"optype_blacklist": [{"pos": 3}, {"name": 3}]}], "[0].optype_blacklist[0].pos"),
        ([{"optype_blacklist": [{"name": 3, "pos": 3}, "conv"]}], "[0].optype_blacklist[1]"),
        ([{"opname_range": [{"end": 3}, {"begin": 3}, 3, 4]}], "[0].opname_range[2]"),
        ([{"optype_blacklist": [{"name": 3}], "opname_range": [3]}], "[0].optype_blacklist[0].name"),
        ([{"model_name": 3, "opname_range": [3]}, {"layer": 3}], "[0].model_name"),
        ([{}, {"opname_blacklist": [{"pos": [3]}]}, 3], "[1].opname_blacklist[0].pos[0]"),
    ],
)
def test_types_are_judged_element_by_element(items, wrong):
    """In a list of objects all are objects before the keys of the first are looked at."""
    error = refusal(right(dump_list=items, dump_level="op"))
    assert (error.ep_code, error.item) == ("EP0001", f"dump_list{wrong}")


def test_a_missing_path_stands_between_the_scene_and_the_steps():
    assert refusal({"dump_step": "x", "dump_list": [{"layer": []}]}).item == "dump_path"
    assert refusal({"dump_scene": "watcher", "dump_mode": "all"}).item == "dump_mode"
    assert refusal({"dump_mode": "ON"}).item == "dump_mode"


@given(st.data())
def test_drawn_wrong_sections_are_refused(data):
    dump, mistake = data.draw(invalid_acl_dumps(FOLDER))
    error = refusal(dump)
    assert (error.acl_error, error.ep_code) == (100009, mistake.ep_code)


@given(st.data())
def test_drawn_right_sections_hold_and_can_be_planned(data):
    dump = data.draw(acl_dumps(FOLDER))
    plan = plan_acl(parse(dump))
    is_switched_on = "on" in (dump.get("dump_op_switch"), dump.get("dump_debug"))
    assert (plan is not None) == (is_switched_on or bool(dump.get("dump_list")) or "dump_scene" in dump)
    if plan is not None and not plan.trigger.op_debug_mode:
        assert plan.where.path == Path(FOLDER)
        mode = dump.get("dump_mode", "output")
        assert (plan.operands.inputs, plan.operands.outputs) == (mode in ("input", "all"), mode in ("output", "all"))
        assert len(plan.which.lists) == len(dump.get("dump_list", []))


@given(acl_json_texts(FOLDER))
def test_files_are_read(tmp_path_factory, text):
    path = written(tmp_path_factory.mktemp("acl"), text)
    config = load_acl_config(path)
    assert config.file.text == text.encode()
    assert config.section is not None
    assert config.section.model_dump(exclude_unset=True) == json.loads(text)["dump"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=5) | st.sampled_from(["on", "op", "watcher"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dump_list", "dump_path", "layer", "dump_scene", "dump_debug"]), inner)
    ),
    max_leaves=6,
)


@given(json_values)
def test_any_value_is_taken_or_refused_with_numbers(value):
    found = None
    try:
        config = parse(value)
    except AclConfigError as error:
        found = error
    if found is None:
        assert config.section is None or config.section.has("dump_path") or config.section.dump_scene
    else:
        assert found.acl_error == 100009 and found.ep_code.startswith("EP000")
        copied = pickle.loads(pickle.dumps(found))
        assert str(copied) == str(found) and copied.ep_code == found.ep_code


# -- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{}", '{"dump": {}}', "[]", "3", '{"profiler": {"switch": "on"}}'])
def test_files_that_ask_for_nothing(tmp_path, text):
    config = load_acl_config(written(tmp_path, text))
    assert config.section is None
    assert plan_acl(config) is None
    lack = "its section dump is empty" if "dump" in text else "it has no section dump"
    assert any(lack in warning for warning in config.warnings)


def test_the_limits_of_a_file_belong_to_it(tmp_path):
    deep = b'{"a":' * 9 + b"{}" + b"}" * 9
    assert load_acl_config(written(tmp_path, deep)).section is None
    assert load_acl_config(written(tmp_path, b"[" * 10 + b"]" * 10)).section is None
    assert load_acl_config(written(tmp_path, b"{}" + b" " * ((10 << 20) - 2))).section is None
    assert load_acl_config(written(tmp_path, b"[{}," + b"{}," * 30 + b"{}]")).section is None


def test_the_nesting_is_judged_before_the_syntax(tmp_path):
    with pytest.raises(AclConfigError) as caught:
        load_acl_config(written(tmp_path, "{" * 11))
    assert caught.value.acl_error == 100006


def test_links_are_followed_and_any_suffix_will_do(tmp_path):
    target = tmp_path / "settings.txt"
    target.write_text('{"dump": {"dump_scene": "watcher", "dump_path": "/"}}')
    (tmp_path / "link").symlink_to(target)
    assert load_acl_config(tmp_path / "link").file.path == target.resolve()


BLACKLIST_SAMPLE = """{
    "dump":{
        "dump_list":[
            {
                "model_name":"ResNet-50",
                "optype_blacklist":[
                  {
                      "name":"conv"
                      "pos":["input0", "input1"]
                  }
                ]
            }
        ],
        "dump_path":"/home/output",
   "dump_mode":"input",
    }
}"""


def test_the_sample_of_the_page_is_refused_until_it_is_json_and_has_its_level(tmp_path):
    def message(text: str) -> str:
        with pytest.raises(AclConfigError) as caught:
            load_acl_config(written(tmp_path, text.replace("/home/output", FOLDER)))
        assert caught.value.acl_error == 100009
        return str(caught.value)

    first = message(BLACKLIST_SAMPLE)
    assert first.startswith("EP0004: ") and "acl.json:9:" in first and "A comma is missing before it." in first
    with_comma = BLACKLIST_SAMPLE.replace('"conv"', '"conv",')
    second = message(with_comma)
    assert second.startswith("EP0004: ") and "Take out the comma after the last element." in second
    json_at_last = with_comma.replace('"input",\n    }', '"input"\n    }')
    third = message(json_at_last)
    assert third.startswith("EP0005: when dump_level is not op, optype_blacklist cannot be configured")
    assert 'It is "all" when it is left out.' in third
    text = json_at_last.replace('"input"\n    }', '"input", "dump_level": "op"}').replace("/home/output", FOLDER)
    assert load_acl_config(written(tmp_path, text)).section is not None


# -- what passes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"dump_list": []},
        {"dump_list": [{}]},
        {"dump_list": [{}], "dump_op_switch": "on"},
        {"dump_list": [], "dump_op_switch": "on"},
        {"dump_list": [{"layer": [], "model_name": ""}], "dump_op_switch": "on"},
        {"dump_step": ""},
        {"dump_step": "001|002"},
        {"dump_step": "5-5"},
        {"dump_step": "|".join(["1"] * 100)},
        {"dump_debug": "on", "dump_step": "all", "dump_list": []},
        {"dump_scene": "watcher", "dump_list": []},
        {"dump_list": [{"watcher_nodes": []}]},
        {"dump_list": [{"optype_blacklist": [], "opname_range": []}]},
        {"dump_list": [{"optype_blacklist": [{}] * 100}], "dump_level": "op"},
        {"dump_list": [{"model_name": "m", "opname_range": [{"begin": "a", "end": "a"}]}], "dump_level": "op"},
        {"dump_data": "stats", "dump_stats": ["L2norm"]},
        {"comment": 3, "dump_list": [{"comment": 3}]},
        {"dump_path": "255.0.0.1:/out"},
        {"dump_path": "0.0.0.0:out-=[];\\,./!@#$%^&*()_+{}:?"},
        {"dump_path": "."},
    ],
)
def test_sections_that_hold(keys):
    assert parse(right(**keys)).section is not None


@pytest.mark.parametrize("scene", ["lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump"])
def test_an_exception_scene_leaves_the_rest_unchecked(scene):
    unchecked = {"dump_path": "/no/such", "dump_list": [{"layer": []}], "dump_stats": [], "dump_step": "x"}
    config = parse({"dump_scene": scene, **unchecked})
    assert any(text.startswith("dump_list: not read") for text in config.warnings)
    assert parse({"dump_scene": scene}).warnings == ()


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"dump_mode": ["all"]}, "Write one word in double quotes."),
        ({"dump_debug": True}, "Write one word in double quotes."),
        ({"dump_step": 3}, "Put it in double quotes."),
        ({"dump_path": "no/such/folder", "dump_list": [{}]}, f"begins at the current folder, {os.getcwd()}."),
        ({"dump_path": "/no/such/folder", "dump_list": [{}]}, "it is not made for you."),
    ],
)
def test_how_to_mend_it(keys, fix):
    assert str(refusal(right(**keys))).splitlines()[1].endswith(fix)


def test_a_folder_without_permissions(tmp_path, monkeypatch):
    monkeypatch.setattr("msdump.config.acl_rules.os.access", lambda path, mode: mode != os.R_OK | os.W_OK)
    error = refusal(right(dump_path=str(tmp_path), dump_list=[{}]))
    assert error.ep_code == "EP0003" and "without read and write permissions" in str(error)


def test_warnings_say_what_does_nothing():
    blacklist = [{"pos": ["input0"]}, {"name": "conv"}, {"name": "conv", "pos": ["input", "output0"]}]
    item = {"model_name": "m", "optype_blacklist": blacklist, "layers": ["a"]}
    config = parse(right(dump_list=[item, {"model_name": "m"}], dump_level="op", dump_mod="input"))
    assert list(config.warnings) == [
        'dump_list[0].layers: unknown key, ignored. Did you mean "layer"?',
        'dump_mod: unknown key, ignored. Did you mean "dump_mode" or "dump_data" or "dump_debug"?',
        "dump_list[0].optype_blacklist[0]: it has no name, so it takes nothing out.",
        "dump_list[0].optype_blacklist[1]: it has no pos, so it takes nothing out of conv.",
        'dump_list[0].optype_blacklist[2].pos[0]: expected inputN or outputN, got "input". It takes nothing out.',
        "dump_list: model_name m comes 2 times; their operators are put together.",
    ]
    assert parse(right()).warnings[0].startswith("dump: nothing is dumped.")
    assert "watches nothing" in parse(right(dump_scene="watcher")).warnings[0]


def test_a_misspelt_section_is_found(tmp_path):
    config = load_acl_config(written(tmp_path, '{"dmp": {"dump_path": "/"}, "dmp": {}}'))
    assert "comes twice" in config.warnings[0]
    assert config.warnings[1].endswith('Did you mean "dmp"?')


def test_every_key_is_explained():
    page = (Path(FOLDER).parent.parent / "docs" / "acl-configuration.md").read_text(encoding="utf-8")
    for key in (*DumpSection.model_fields, *DumpListItem.model_fields):
        assert f"| `{key}`" in page or f", `{key}` |" in page, key
    for key in (*BlacklistEntry.model_fields, *RangeEntry.model_fields):
        assert f'"{key}"' in page, key


def chosen(plan, *model_names):
    choices = plan.which.choose(OPERATORS, model_names)
    return [operator.op_name for operator, choice in zip(OPERATORS, choices, strict=True) if choice is not None]


@pytest.mark.parametrize(
    ("scene", "name"),
    [
        ("lite_exception", "aic_err_brief_dump"),
        ("aic_err_brief_dump", "aic_err_brief_dump"),
        ("aic_err_norm_dump", "aic_err_norm_dump"),
        ("aic_err_detail_dump", "aic_err_detail_dump"),
    ],
)
def test_exception_scenes(scene, name):
    plan = acl_plan(dump_scene=scene, dump_list=[{"layer": ["a"]}], dump_step="not read", dump_mode="input")
    assert plan.trigger == Trigger(exception=name) and plan.trigger.op_debug_mode == 4
    assert (plan.which, plan.when, plan.operands) == (Which(), When(), OperandSelection())
    assert chosen(plan, "m") == NAMES
    assert not plan_acl_exception(name).where.is_path_given and plan_acl_exception(name).trigger == plan.trigger


def test_an_environment_knows_three_scenes():
    with pytest.raises(ValueError, match="scene: expected one of"):
        plan_acl_exception("")


def test_overflow_and_single_operators():
    plan = acl_plan(dump_debug="on")
    assert plan.trigger == Trigger(overflow=3) and plan.operands == OperandSelection()
    assert chosen(plan) == NAMES
    single = acl_plan(dump_op_switch="on", dump_list=[])
    assert single.which.takes_single_operators and chosen(single) == [] and single.trigger == Trigger()


def test_levels_and_statistics():
    plan = acl_plan(dump_list=[{}], dump_level="kernel", dump_data="stats", dump_kernel_data="tensor,printf,tensor")
    assert plan.saved.columns == ("Max", "Min", "Avg", "Nan", "Negative Inf", "Positive Inf")
    assert acl_plan(dump_list=[{}], dump_data="stats", dump_stats=["L2norm", "Max", "Max"]).saved.columns == (
        "Max",
        "L2norm",
    )
    assert acl_plan(dump_list=[{}]).saved.columns is None


def test_every_part_of_a_plan():
    plan = acl_plan(dump_list=[{"layer": ["add"]}], dump_step="1|3", dump_mode="all", dump_data="stats")
    assert plan.where.path == Path(plans.__file__).parent and plan.where.is_path_given and plan.how == How()
    saved = plan.saved
    assert (saved.tensors, saved.statistics, saved.file_format, saved.is_host_layout) == (False, True, "bin", False)
    assert [plan.when.dumps(step) for step in range(4)] == [False, True, False, True]
    both = DUMP_INPUT | DUMP_OUTPUT
    assert plan.masks(NAMES) == [both if name == "add" else 0 for name in NAMES]
    assert all(acl_plan(dump_debug="on").masks(NAMES)) and all(acl_plan(dump_scene="lite_exception").masks(NAMES))


def test_a_path_starts_at_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert acl_plan(dump_path="out", dump_list=[{}]).where.path == tmp_path / "out"
    assert acl_plan(tmp_path, dump_path="127.0.0.1:/out/a", dump_list=[{}]).where.path == tmp_path / "out/a"
    assert acl_plan(tmp_path, dump_path=str(tmp_path), dump_list=[{}]).where.path == tmp_path
    (tmp_path / "a:b").mkdir()
    assert acl_plan(dump_path="a:b", dump_list=[{}]).where.path == tmp_path / "a:b"


@given(st.sampled_from(["input", "output"]), st.integers(0, 10**6))
def test_positions(io, slot):
    assert parse_position(f"{io}{slot}") == (io, slot)
    for wrong in (f"{io}", f"{io}-{slot}", f" {io}{slot}", f"{io.upper()}{slot}", f"{io}{slot}\n", "input٣"):
        assert parse_position(wrong) is None

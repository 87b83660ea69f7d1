"""Plans of acl.json: models, layers, blacklists, ranges, the watcher, the environment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.acl import parse_acl_config, parse_position, plan_acl, plan_acl_exception
from msdump.config.acl_file import AclConfigError
from msdump.config.environment import AclEnvironment, exception_folder
from msdump.config.json_file import JsonFile
from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT, How, Operands, Trigger, When
from msdump.config.ranges import ACL, EVERY_NUMBER, LAST, parse_ranges
from msdump.config.selection import NameRange, Operator, RangeState, RangeWalk, Which, in_ranges
from msdump.testing.acl_configs import step_texts

# x -> conv1 -> relu1 -> add(+ y) -> pool
NETWORK = [
    Operator("Data", "x"),
    Operator("Data", "y"),
    Operator("Conv2D", "conv1", ("conv", "conv_bias"), (0,)),
    Operator("Relu", "relu1", (), (2,)),
    Operator("Add", "add", (), (3, 1)),
    Operator("MaxPool", "pool", (), (4,)),
]
NAMES = [operator.op_name for operator in NETWORK]


def plan_of(current=None, **keys):
    dump = {"dump_path": str(Path(__file__).parent), **keys}
    return plan_acl(parse_acl_config(JsonFile(Path("/acl.json"), b"text", {"dump": dump})), current)


def chosen(plan, *model_names, operators=NETWORK):
    choices = plan.which.choose(operators, model_names)
    return [operator.op_name for operator, choice in zip(operators, choices, strict=True) if choice is not None]


# -- dump_step --------------------------------------------------------------------------------------


@given(step_texts(), st.integers(0, 50))
def test_a_step_is_in_the_set_when_a_piece_holds_it(text, step):
    ends = [[int(number) for number in piece.split("-")] for piece in text.split("|") if piece]
    assert (step in parse_ranges(text, ACL)) == (not text or any(pair[0] <= step <= pair[-1] for pair in ends))


@given(st.text("0123456789-| a", max_size=12))
def test_any_step_text_is_read_or_refused(text):
    is_right = all(re.fullmatch("[0-9]+(-[0-9]+)?", piece) for piece in text.split("|")) or not text
    found = None
    try:
        parse_ranges(text, ACL)
    except AclConfigError as error:
        found = error
    if found is None:
        assert is_right
    else:
        assert found.ep_code == "EP0003"
        assert not is_right or "must not exceed" in str(found)


def test_huge_steps():
    assert parse_ranges("", ACL) == EVERY_NUMBER
    assert parse_ranges("9" * 5000, ACL).ranges == ((2**63 - 1, 2**63 - 1),)
    assert parse_ranges(f"{LAST + 5}-{2**63 - 1}", ACL).count == 1
    assert 3 in parse_ranges("0" * 5000 + "3", ACL)


# -- opname_range -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "inside", "state"),
    [
        ("xabcdy", "abcd", RangeState.INIT),
        ("xab", "ab", RangeState.START),
        ("xabcd", "abcd", RangeState.STOP),
        ("xda", "", RangeState.ERROR),
        ("adaxad", "ad", RangeState.ERROR),
        ("adxadx", "adad", RangeState.INIT),
        ("addx", "add", RangeState.INIT),
        ("aad", "aad", RangeState.STOP),
        ("xyz", "", RangeState.INIT),
        ("", "", RangeState.INIT),
    ],
)
def test_a_range_from_a_to_d(names, inside, state):
    walk = RangeWalk(NameRange("a", "d"))
    assert "".join(name for name in names if walk.step(name)) == inside
    assert walk.state is state


def test_a_range_of_one_operator():
    walk = RangeWalk(NameRange("b", "b"))
    assert [walk.step(name) for name in "abcb"] == [False, True, False, True]
    assert walk.state is RangeState.STOP
    assert not walk.step("b") and walk.state is RangeState.ERROR


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.tuples(*[st.sampled_from("abcdef")] * 2)))
def test_where_names_are_unique_a_range_is_a_slice(names, ends):
    expected = [False] * len(names)
    for begin, end in ends:
        if begin in names and not (end in names and names.index(end) < names.index(begin)):
            last = names.index(end) if end in names else len(names) - 1
            for place in range(names.index(begin), last + 1):
                expected[place] = True
    assert in_ranges([NameRange(*pair) for pair in ends], names) == expected


# -- models and layers ------------------------------------------------------------------------------


def test_one_empty_element_is_everything():
    plan = plan_of(dump_list=[{}])
    assert chosen(plan) == NAMES and chosen(plan, "resnet", "net") == NAMES
    assert plan.which.selects("any") and not plan.which.takes_single_operators


def test_layers_by_either_name_bring_the_data_that_they_read():
    assert chosen(plan_of(dump_list=[{"layer": ["conv1"]}])) == ["x", "conv1"]
    assert chosen(plan_of(dump_list=[{"layer": ["conv_bias"]}])) == ["x", "conv1"]
    assert chosen(plan_of(dump_list=[{"layer": ["relu1"]}])) == ["relu1"]
    assert chosen(plan_of(dump_list=[{"layer": ["y"]}])) == []
    assert chosen(plan_of(dump_list=[{"layer": ["y", "add"]}])) == ["y", "add"]


def test_models_go_by_the_name_of_the_file_first():
    plan = plan_of(dump_list=[{"model_name": "file", "layer": ["add"]}, {"model_name": "inner", "layer": ["pool"]}])
    assert chosen(plan, "file", "inner") == ["y", "add"]
    assert chosen(plan, "other", "inner") == ["pool"]
    assert chosen(plan, "inner") == ["pool"]
    assert chosen(plan, "other") == [] and chosen(plan) == []
    assert plan.which.selects("add", ["file"]) and not plan.which.selects("add", ["inner"])


def test_elements_without_a_model_hold_for_every_model():
    plan = plan_of(dump_list=[{"model_name": "m", "layer": ["add"]}, {"layer": ["pool"]}, {"layer": ["relu1"]}])
    assert chosen(plan, "m") == ["y", "relu1", "add", "pool"]
    assert chosen(plan, "n") == ["relu1", "pool"]


@given(st.lists(st.sampled_from(NAMES), unique=True), st.sampled_from(NAMES))
def test_one_name_more_never_dumps_less(layers, more):
    before = chosen(plan_of(dump_list=[{"layer": layers or ["none"]}]))
    after = chosen(plan_of(dump_list=[{"layer": [*(layers or ["none"]), more]}]))
    assert set(before) <= set(after)


def test_ranges_and_layers_add_up():
    def plan(*ends, **item):
        ranges = [{"begin": begin, "end": end} for begin, end in ends]
        return plan_of(dump_list=[{"model_name": "m", "opname_range": ranges, **item}], dump_level="op")

    assert chosen(plan(("relu1", "add")), "m") == ["y", "relu1", "add"]
    assert chosen(plan(("conv1", "conv1"), ("pool", "pool")), "m") == ["x", "conv1", "pool"]
    assert chosen(plan(("relu1", "relu1"), layer=["pool"]), "m") == ["relu1", "pool"]
    assert chosen(plan(("pool", "conv1")), "m") == []
    assert chosen(plan(("x", "pool")), "m") == []
    assert chosen(plan(("conv1", "pool")), "n") == []


# -- blacklists -------------------------------------------------------------------------------------


def test_blacklists_of_one_name_are_merged():
    by_type = [{"name": "Add", "pos": ["input0"]}, {"name": "Add", "pos": ["output0", "x"]}, {"name": "Relu"}]
    plan = plan_of(
        dump_list=[
            {"optype_blacklist": by_type, "opname_blacklist": [{"name": "add", "pos": ["input1", "input007"]}]},
            {"model_name": "m", "opname_blacklist": [{"name": "pool", "pos": ["output0"]}]},
        ],
        dump_level="op",
    )
    everything = {("input", 0), ("output", 0), ("input", 1), ("input", 7)}
    assert plan.which.skipped("Add", "add") == everything
    assert plan.which.skipped("Add", "other") == {("input", 0), ("output", 0)}
    assert plan.which.skipped("Relu", "relu1") == set()
    assert plan.which.skipped("MaxPool", "pool") == set()
    assert plan.which.skipped("MaxPool", "pool", ["m"]) == {("output", 0)}
    assert chosen(plan, "m") == NAMES
    choice = plan.which.choose(NETWORK, ["m"])[4]
    assert choice is not None and choice.skipped == everything
    assert not choice.dumps("input", 1) and choice.dumps("input", 2)


@given(st.sampled_from(["input", "output"]), st.integers(0, 10**6))
def test_positions(io, slot):
    assert parse_position(f"{io}{slot}") == (io, slot)
    for wrong in (f"{io}", f"{io}-{slot}", f" {io}{slot}", f"{io.upper()}{slot}", f"{io}{slot}\n", "input٣"):
        assert parse_position(wrong) is None


# -- scenes -----------------------------------------------------------------------------------------


def test_the_watcher():
    item = {"layer": ["conv1", "relu1", "sum"], "watcher_nodes": ["add", "relu1"]}
    plan = plan_of(dump_scene="watcher", dump_list=[item])
    assert plan.trigger == Trigger(is_watcher=True) and not plan.operands.inputs
    assert plan.which.watched_names == {"add", "relu1"}
    assert chosen(plan) == ["relu1", "add"]
    assert [operator.op_name for operator in NETWORK if plan.which.triggers(operator)] == ["conv1"]
    assert not plan.which.triggers(Operator("HcomAllReduce", "sum"))
    every = plan_of(dump_scene="watcher", dump_list=[{"watcher_nodes": ["add"]}])
    assert [operator.op_name for operator in NETWORK if every.which.triggers(operator)] == [
        "x",
        "y",
        "conv1",
        "relu1",
        "pool",
    ]
    assert not plan_of(dump_list=[{}]).which.triggers(NETWORK[2])


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
    plan = plan_of(dump_scene=scene, dump_list=[{"layer": ["a"]}], dump_step="not read", dump_mode="input")
    assert plan.trigger == Trigger(exception=name) and plan.trigger.op_debug_mode == 4
    assert (plan.which, plan.when, plan.operands) == (Which(), When(), Operands())
    assert chosen(plan, "m") == NAMES
    assert not plan_acl_exception(name).where.is_path_given and plan_acl_exception(name).trigger == plan.trigger


def test_an_environment_knows_three_scenes():
    with pytest.raises(ValueError, match="scene: expected one of"):
        plan_acl_exception("")


def test_overflow_and_single_operators():
    plan = plan_of(dump_debug="on")
    assert plan.trigger == Trigger(overflow=3) and plan.operands == Operands()
    assert chosen(plan) == NAMES
    single = plan_of(dump_op_switch="on", dump_list=[])
    assert single.which.takes_single_operators and chosen(single) == [] and single.trigger == Trigger()


def test_levels_and_statistics():
    plan = plan_of(dump_list=[{}], dump_level="kernel", dump_data="stats", dump_kernel_data="tensor,printf,tensor")
    assert plan.saved.columns == ("Max", "Min", "Avg", "Nan", "Negative Inf", "Positive Inf")
    assert plan_of(dump_list=[{}], dump_data="stats", dump_stats=["L2norm", "Max", "Max"]).saved.columns == (
        "Max",
        "L2norm",
    )
    assert plan_of(dump_list=[{}]).saved.columns is None


def test_every_part_of_a_plan():
    plan = plan_of(dump_list=[{"layer": ["add"]}], dump_step="1|3", dump_mode="all", dump_data="stats")
    assert plan.where.path == Path(__file__).parent and plan.where.is_path_given and plan.how == How()
    saved = plan.saved
    assert (saved.tensors, saved.statistics, saved.file_format, saved.is_host_layout) == (False, True, "bin", False)
    assert [plan.when.dumps(step) for step in range(4)] == [False, True, False, True]
    both = DUMP_INPUT | DUMP_OUTPUT
    assert plan.masks(NAMES) == [both if name == "add" else 0 for name in NAMES]
    assert all(plan_of(dump_debug="on").masks(NAMES)) and all(plan_of(dump_scene="lite_exception").masks(NAMES))


def test_advice_names_what_the_model_does_not_have():
    ranges = [{"begin": "conv_1", "end": "x"}]
    plan = plan_of(dump_list=[{"model_name": "m", "layer": ["poo", "conv"], "opname_range": ranges}], dump_level="op")
    assert plan.which.advice(NETWORK, ["m"]) == [
        'dump_list: the model has no operator poo. Did you mean "pool"?',
        'dump_list: the model has no operator conv_1. Did you mean "conv1"?',
        "opname_range: x hands in data, so no range may begin or end at it.",
    ]
    assert plan.which.advice(NETWORK, ["n"]) == [
        "dump_list: it names the models m, not n, so nothing of this model is dumped."
    ]
    watcher = plan_of(dump_scene="watcher", dump_list=[{"layer": ["conv"], "watcher_nodes": ["conv_bias"]}])
    assert "no operator conv_bias" in watcher.which.advice(NETWORK)[0]
    assert plan_of(dump_list=[{}]).which.advice(NETWORK) == []


# -- folders ----------------------------------------------------------------------------------------


def test_a_path_starts_at_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert plan_of(dump_path="out", dump_list=[{}]).where.path == tmp_path / "out"
    assert plan_of(tmp_path, dump_path="127.0.0.1:/out/a", dump_list=[{}]).where.path == tmp_path / "out/a"
    assert plan_of(tmp_path, dump_path=str(tmp_path), dump_list=[{}]).where.path == tmp_path
    (tmp_path / "a:b").mkdir()
    assert plan_of(dump_path="a:b", dump_list=[{}]).where.path == tmp_path / "a:b"


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

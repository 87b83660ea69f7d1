"""Which operators: models, layers, ranges, blacklists, the memory watcher, and advice on names that match nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.plan import Trigger
from msdump.config.selection import ModelOperator, NameRange, RangeState, RangeWalk, in_ranges
from tests.plans import acl_plan

# x -> conv1 -> relu1 -> add(+ y) -> pool
NETWORK = [
    ModelOperator("Data", "x"),
    ModelOperator("Data", "y"),
    ModelOperator("Conv2D", "conv1", ("conv", "conv_bias"), (0,)),
    ModelOperator("Relu", "relu1", (), (2,)),
    ModelOperator("Add", "add", (), (3, 1)),
    ModelOperator("MaxPool", "pool", (), (4,)),
]
NAMES = [operator.op_name for operator in NETWORK]


def chosen(plan, *model_names, operators=NETWORK):
    choices = plan.which.choose(operators, model_names)
    return [operator.op_name for operator, choice in zip(operators, choices, strict=True) if choice is not None]


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
    plan = acl_plan(dump_list=[{}])
    assert chosen(plan) == NAMES and chosen(plan, "resnet", "net") == NAMES
    assert plan.which.selects("any") and not plan.which.takes_single_operators


def test_layers_by_either_name_bring_the_data_that_they_read():
    assert chosen(acl_plan(dump_list=[{"layer": ["conv1"]}])) == ["x", "conv1"]
    assert chosen(acl_plan(dump_list=[{"layer": ["conv_bias"]}])) == ["x", "conv1"]
    assert chosen(acl_plan(dump_list=[{"layer": ["relu1"]}])) == ["relu1"]
    assert chosen(acl_plan(dump_list=[{"layer": ["y"]}])) == []
    assert chosen(acl_plan(dump_list=[{"layer": ["y", "add"]}])) == ["y", "add"]


def test_models_go_by_the_name_of_the_file_first():
    plan = acl_plan(dump_list=[{"model_name": "file", "layer": ["add"]}, {"model_name": "inner", "layer": ["pool"]}])
    assert chosen(plan, "file", "inner") == ["y", "add"]
    assert chosen(plan, "other", "inner") == ["pool"]
    assert chosen(plan, "inner") == ["pool"]
    assert chosen(plan, "other") == [] and chosen(plan) == []
    assert plan.which.selects("add", ["file"]) and not plan.which.selects("add", ["inner"])


def test_elements_without_a_model_hold_for_every_model():
    plan = acl_plan(dump_list=[{"model_name": "m", "layer": ["add"]}, {"layer": ["pool"]}, {"layer": ["relu1"]}])
    assert chosen(plan, "m") == ["y", "relu1", "add", "pool"]
    assert chosen(plan, "n") == ["relu1", "pool"]


@given(st.lists(st.sampled_from(NAMES), unique=True), st.sampled_from(NAMES))
def test_one_name_more_never_dumps_less(layers, more):
    before = chosen(acl_plan(dump_list=[{"layer": layers or ["none"]}]))
    after = chosen(acl_plan(dump_list=[{"layer": [*(layers or ["none"]), more]}]))
    assert set(before) <= set(after)


def test_ranges_and_layers_add_up():
    def plan(*ends, **item):
        ranges = [{"begin": begin, "end": end} for begin, end in ends]
        return acl_plan(dump_list=[{"model_name": "m", "opname_range": ranges, **item}], dump_level="op")

    assert chosen(plan(("relu1", "add")), "m") == ["y", "relu1", "add"]
    assert chosen(plan(("conv1", "conv1"), ("pool", "pool")), "m") == ["x", "conv1", "pool"]
    assert chosen(plan(("relu1", "relu1"), layer=["pool"]), "m") == ["relu1", "pool"]
    assert chosen(plan(("pool", "conv1")), "m") == []
    assert chosen(plan(("x", "pool")), "m") == []
    assert chosen(plan(("conv1", "pool")), "n") == []


# -- blacklists -------------------------------------------------------------------------------------


def test_blacklists_of_one_name_are_merged():
    by_type = [{"name": "Add", "pos": ["input0"]}, {"name": "Add", "pos": ["output0", "x"]}, {"name": "Relu"}]
    plan = acl_plan(
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


def test_the_watcher():
    item = {"layer": ["conv1", "relu1", "sum"], "watcher_nodes": ["add", "relu1"]}
    plan = acl_plan(dump_scene="watcher", dump_list=[item])
    assert plan.trigger == Trigger(is_watcher=True) and not plan.operands.inputs
    assert plan.which.watched_names == {"add", "relu1"}
    assert chosen(plan) == ["relu1", "add"]
    assert [operator.op_name for operator in NETWORK if plan.which.triggers(operator)] == ["conv1"]
    assert not plan.which.triggers(ModelOperator("HcomAllReduce", "sum"))
    every = acl_plan(dump_scene="watcher", dump_list=[{"watcher_nodes": ["add"]}])
    assert [operator.op_name for operator in NETWORK if every.which.triggers(operator)] == [
        "x",
        "y",
        "conv1",
        "relu1",
        "pool",
    ]
    assert not acl_plan(dump_list=[{}]).which.triggers(NETWORK[2])


def test_advice_names_what_the_model_does_not_have():
    ranges = [{"begin": "conv_1", "end": "x"}]
    plan = acl_plan(dump_list=[{"model_name": "m", "layer": ["poo", "conv"], "opname_range": ranges}], dump_level="op")
    assert plan.which.advice(NETWORK, ["m"]) == [
        'dump_list: the model has no operator poo. Did you mean "pool"?',
        'dump_list: the model has no operator conv_1. Did you mean "conv1"?',
        "opname_range: x hands in data, so no range may begin or end at it.",
    ]
    assert plan.which.advice(NETWORK, ["n"]) == [
        "dump_list: it names the models m, not n, so nothing of this model is dumped."
    ]
    misspelt = acl_plan(dump_list=[{"model_name": "resnet5O"}])
    assert misspelt.which.advice(NETWORK, ["resnet50", "torch_jit"])[0].endswith('Did you mean "resnet50"?')
    watcher = acl_plan(dump_scene="watcher", dump_list=[{"layer": ["conv"], "watcher_nodes": ["conv_bias"]}])
    assert "no operator conv_bias" in watcher.which.advice(NETWORK)[0]
    assert acl_plan(dump_list=[{}]).which.advice(NETWORK) == []


def test_advice_names_blacklists_that_match_nothing():
    positions = {"pos": ["input0"]}
    item = {
        "optype_blacklist": [{"name": "Conv", **positions}, {"name": "Add", **positions}],
        "opname_blacklist": [{"name": "conv", **positions}, {"name": "add", **positions}],
    }
    assert acl_plan(dump_list=[item], dump_level="op").which.advice(NETWORK) == [
        'opname_blacklist: the model has no operator conv. Did you mean "conv1"?',
        'optype_blacklist: the model has no operator of type Conv. Did you mean "Conv2D"?',
    ]


@pytest.mark.parametrize("key", ["layer", "opname_blacklist", "optype_blacklist"])
def test_many_unknown_names_are_one_sentence(key):
    names = ["convv1", *(f"zz{number}" for number in range(99))]
    item = {key: names if key == "layer" else [{"name": name, "pos": ["input0"]} for name in names]}
    (sentence,) = acl_plan(dump_list=[item], dump_level="op").which.advice(NETWORK)
    assert re.search(
        r'no operators .*convv1, zz0, zz1, .*, and 95 more\. convv1: Did you mean "conv', sentence, re.IGNORECASE
    )
    assert len(sentence) < 200

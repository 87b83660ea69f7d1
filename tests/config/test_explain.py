"""What `msdump plan` says: words for every choice, numbers that agree with what the graph itself knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.config.explain import PARAMETER_ROW, describe, estimate, known_names, never_matches
from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT
from msdump.config.ranges import MINDSPORE_STRICT, parse_ranges
from msdump.config.selection import Which
from msdump.config.selectors import parse_selectors
from msdump.graph.graph import Graph, Parameter
from msdump.graph.pb import model_bytes, read_model
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.graph_cases import graphs
from tests.plans import changed, plain_plan

PLAN = plain_plan(Path("/dump"), engine="sync", device_target="CPU", iterations=parse_ranges("0|2-4"))
MARKED = dataclasses.replace(PLAN, which=Which(lists=(), takes_marked=True))


def plan(kernels=None, **fields):
    return changed(PLAN, selectors=None if kernels is None else parse_selectors(kernels), **fields)


def counted(plan, graph):
    """The same numbers from the graph in memory: names, bytes, and bytes of what differs."""
    infos = graph.op_infos()
    tensors = []
    for op, mask in zip(infos, plan.masks([op.full_name for op in infos]), strict=True):
        tensors += [*op.inputs] if mask & DUMP_INPUT else []
        tensors += [*op.outputs] if mask & DUMP_OUTPUT else []
    named = [((t.key, t.shape), TensorType(t.dtype, t.shape).size_bytes) for t in tensors]
    if plan.operands.outputs:
        keys = graph.final_keys()
        named += [
            ((keys[v.id], v.type.shape), v.type.size_bytes)
            for v in graph.dumped_parameters()
            if plan.dumps_parameter(v.name)
        ]
    return len(named), sum(size for _, size in named), sum(dict(named).values())


@settings(max_examples=40, deadline=None)
@given(
    graphs(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, ["add"], ["Exp", "weight"], [""], ["name-regex(.*)"]]),
)
def test_estimates_agree_with_the_graph(case, dumps_input, dumps_output, kernels):
    chosen = plan(kernels, inputs=dumps_input, outputs=dumps_output)
    found = estimate(chosen, read_model(model_bytes(case.graph)))
    assert (found.tensors, found.size_bytes, found.distinct_bytes) == counted(chosen, case.graph)
    assert found.operators == len(case.graph.kernels)
    assert found.unsized == 0


def optimizer_graph(dtype="float32"):
    """x -> matmul -> momentum update: one parameter and one state are overwritten."""
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (4, 4)))
    weight = graph.add_parameter(Parameter("fc.weight", np.ones((4, 4), np.float32), "float32"))
    state = graph.add_parameter(Parameter("moments.fc.weight", np.zeros((4, 4), np.float32), "float32"))
    rate = graph.add_parameter(Parameter("learning_rate", np.float32(0.1).reshape(()), "float32"))
    momentum = graph.add_constant(np.float32(0.9), "float32")
    product = graph.add_node(Primitive("Mul"), (x, weight), "Default/fc-Dense").outputs[0]
    update = graph.add_node(
        Primitive("ApplyMomentum"),
        (weight, state, rate, product, momentum),
        "Default/optimizer-Momentum",
        stage="update",
    )
    graph.outputs = [update.outputs[0]]
    return finish(graph)


def test_an_optimizer_has_two_versions_of_what_it_overwrites():
    found = estimate(PLAN, read_model(model_bytes(optimizer_graph())))
    rows = {row.op_type: row for row in found.rows}
    assert rows["Mul"].tensors == 3 and rows["Mul"].size_bytes == 3 * 64
    assert rows["ApplyMomentum"].tensors == 6
    assert rows[PARAMETER_ROW].operators == 4
    # x, product, weight and state before and after, learning rate, momentum
    assert found.distinct_tensors == 8 and found.distinct_bytes == 6 * 64 + 2 * 4


def test_narrow_floats_are_wider_in_npy():
    graph = Graph()
    x = graph.add_input("x", TensorType("bfloat16", (8,)))
    graph.outputs = [graph.add_node(Primitive("Neg"), (x,), "Default").outputs[0]]
    model = read_model(model_bytes(finish(graph)))
    assert estimate(PLAN, model).distinct_bytes == 2 * 32


def test_an_empty_tensor_has_no_file():
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (0, 4)))
    graph.outputs = [graph.add_node(Primitive("Neg"), (x,), "Default").outputs[0]]
    found = estimate(PLAN, read_model(model_bytes(finish(graph))))
    assert (found.tensors, found.distinct_tensors, found.distinct_bytes, found.unsized) == (0, 0, 0, 0)


def test_a_device_that_is_off_dumps_nothing():
    off = plan(is_device_enabled=False)
    found = estimate(off, read_model(model_bytes(optimizer_graph())))
    assert (found.selected, found.tensors, found.distinct_bytes) == (0, 0, 0)
    assert "not in support_device" in never_matches(off)[0]
    assert ("dump", "off: device 0 is not in support_device") in describe(off)


def test_words_for_the_whole_plan():
    assert describe(plan(["conv", "Default/a-op1", "name-regex(.*)", ""])) == [
        ("configuration", "/dump/dump.json"),
        ("device", "CPU, device 0, rank 0"),
        ("engine", "sync: everything is written when the step has ended"),
        ("folder", "/dump/rank_0/Net/<graph>/<iteration>"),
        ("iterations", "0|2-4 (4 iterations)"),
        ("operators", "those that kernels lists"),
        ("tensors", "inputs and outputs of operators, parameters, constants"),
        ("saved as", "npy files"),
        ("kernels[0]", 'operators whose type contains "conv" in any case'),
        ("kernels[1]", "the operator Default/a-op1"),
        ("kernels[2]", "operators whose whole full name matches .*"),
        ("kernels[3]", "every operator"),
    ]


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ({"engine": "async"}, ("engine", "async: an operator is written as soon as it has ended")),
        ({"iterations": parse_ranges("all")}, ("iterations", "all")),
        ({"initial_iteration": 2}, ("iterations", "0|2-4 (4 iterations), counted from 2")),
        ({"outputs": False}, ("tensors", "inputs of operators; no parameters, no constants")),
        ({"inputs": False}, ("tensors", "outputs of operators, parameters, constants")),
        ({"statistics": True, "tensors": False}, ("saved as", "rows of statistic.csv")),
        (
            {"statistics": True, "columns": ("max", "md5")},
            ("saved as", "npy files and rows of statistic.csv (max, md5)"),
        ),
        (
            {"device_target": "Ascend", "is_host_layout": False, "file_format": "bin"},
            ("saved as", "npy files (bin is asked for), layouts of the device"),
        ),
        ({"device_target": "Ascend"}, ("saved as", "npy files, layouts of the host")),
        ({"selectors": ()}, ("operators", "none: kernels is empty")),
    ],
)
def test_words_for_each_choice(fields, row):
    assert row in describe(changed(PLAN, **fields))


def test_marks_of_the_script():
    rows = describe(MARKED)
    assert ("operators", "those that the script marks with set_dump") in rows
    assert ("tensors", "inputs and outputs of operators; no parameters, no constants") in rows


def test_what_never_matches():
    names = known_names([read_model(model_bytes(optimizer_graph()))])
    assert {"fc.weight", "learning_rate"} < set(names)
    assert never_matches(plan(["momentum", "fc"]), names) == []
    (sentence,) = never_matches(plan(["mul", "Mull"]), names)
    assert sentence == '"Mull" matches no operator of the graph. Did you mean "Mul"?'
    assert never_matches(plan(["Mull"])) == []  # unknown without a graph
    assert never_matches(plan([])) == ["kernels is empty: no operator will be dumped."]
    assert never_matches(MARKED) == []  # marks are known to the script
    assert "iteration matches" in never_matches(plan(iterations=parse_ranges("|", MINDSPORE_STRICT)))[0]


def test_one_of_several_outputs_is_the_same_tensor_where_it_is_used():
    graph = Graph()
    logits = graph.add_input("logits", TensorType("float32", (4, 10)))
    labels = graph.add_input("labels", TensorType("float32", (4, 10)))
    loss, slope = graph.add_node(Primitive("SoftmaxCrossEntropyWithLogits"), (logits, labels), "Default/loss").outputs
    graph.outputs = [loss, graph.add_node(Primitive("Neg"), (slope,), "Default").outputs[0]]
    found = estimate(PLAN, read_model(model_bytes(finish(graph))))
    assert [row.op_type for row in found.rows] == ["SoftmaxCrossEntropyWithLogits", "Neg", PARAMETER_ROW]
    # logits, labels, loss, slope, its negative
    assert (found.tensors, found.distinct_tensors, found.distinct_bytes) == (8, 5, 4 * (40 + 40 + 4 + 40 + 40))
    assert found.unsized == 0

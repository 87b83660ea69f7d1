"""Plan: from environment and file to the answers that the dumpers ask for."""

from __future__ import annotations

import ast
import dataclasses
import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.environment import Environment
from msdump.config.mindspore import plan_mindspore
from msdump.config.plan import (
    ASCEND,
    ASYNC,
    DUMP_INPUT,
    DUMP_OUTPUT,
    How,
    OperandSelection,
    Saved,
    Trigger,
    When,
    Where,
)
from msdump.config.ranges import EVERY_NUMBER
from msdump.config.selection import OperatorList, Which
from msdump.errors import ConfigError
from msdump.testing.configs import kernel_selectors, mindspore_configs
from tests.package import PACKAGE
from tests.plans import changed

NAMES = [
    "Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op1",
    "Default/network-WithLossCell/_backbone-LeNet5/relu-ReLU/ReLU-op2",
    "Default/network-WithLossCell/_backbone-LeNet5/relu-ReLU/ReLU-op5",
    "Gradients/Default/network-WithLossCell/_backbone-LeNet5/gradReLU-expand/ReluGrad-op7",
    "Default/optimizer-Momentum/ApplyMomentum-op9",
    "conv1.weight",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("plan")


def write(folder: Path, config: dict) -> str:
    path = folder / "data_dump.json"
    path.write_text(json.dumps(config, indent=1))
    return str(path)


def common_config(**common) -> dict:
    settings = {
        "dump_mode": 0,
        "path": "/dump",
        "net_name": "LeNet",
        "iteration": "0|2-4",
        "input_output": 0,
        "kernels": [],
        "support_device": [0, 1],
    }
    return {"common_dump_settings": {**settings, **common}, "e2e_dump_settings": {"enable": True, "trans_flag": False}}


def plan(folder, target="CPU", device_id=0, is_pynative=False, environment=None, **common):
    environment = environment or Environment()
    config = common_config(**common)
    if "op_debug_mode" in common or "file_format" in common:
        del config["e2e_dump_settings"]
    environment = dataclasses.replace(environment, dump_config_path=write(folder, config))
    return plan_mindspore(environment, target, device_id, is_pynative)


def test_no_variable_no_plan():
    assert plan_mindspore(Environment(), "CPU", 0) is None


def test_what_is_not_said_is_the_plain_dump():
    assert When() == When(EVERY_NUMBER, initial_iteration=0, is_device_enabled=True)
    assert Which() == Which((OperatorList("", None),), takes_marked=False, takes_single_operators=False)
    assert OperandSelection() == OperandSelection(inputs=True, outputs=True)
    assert Saved() == Saved(tensors=True, statistics=False, columns=None, file_format="npy", is_host_layout=True)
    assert Trigger() == Trigger(overflow=0, overflow_number=0, exception="", is_watcher=False)
    assert Where(Path("/d")) == Where(Path("/d"), is_path_given=True, net_name="", device_id=0, rank_id=0)
    assert How() == How(ASYNC, ASCEND, jit_level="", is_acl_dump=False, has_graph_files=False)


@given(
    *(st.booleans(), st.booleans(), st.sampled_from(["npy", "bin"]), st.integers(0, 4)),
    st.none() | st.sets(st.sampled_from(["max", "min", "md5", "l2norm"])).map(tuple),
)
def test_only_numbers_that_need_no_copy_are_measured_where_a_tensor_lies(
    folder, saves_tensor, saves_statistic, file_format, op_debug_mode, categories
):
    made = changed(
        plan(folder),
        tensors=saves_tensor,
        statistics=saves_statistic,
        file_format=file_format,
        op_debug_mode=op_debug_mode,
        columns=categories,
    )
    needs_copy = saves_tensor or file_format == "bin" or op_debug_mode > 0 or categories is None or "md5" in categories
    assert made.measures_only == (saves_statistic and not needs_copy)


def test_all_fields(folder, caplog):
    environment = Environment(rank_id=3, device_id=1)
    made = plan(folder, "GPU", None, environment=environment, saved_data="full", statistic_category=["max"])
    assert made is not None
    text = (folder / "data_dump.json").read_bytes()
    assert dataclasses.asdict(made.when) == {
        "iterations": {"ranges": ((0, 0), (2, 4))},
        "initial_iteration": 0,
        "is_device_enabled": True,
        "sampler": None,
    }
    assert (made.which, made.operands, made.trigger) == (Which(), OperandSelection(), Trigger())
    assert dataclasses.asdict(made.saved) == {
        "tensors": True,
        "statistics": True,
        "columns": ("max",),
        "file_format": "npy",
        "is_host_layout": False,
    }
    assert dataclasses.asdict(made.where) == {
        "path": Path("/dump"),
        "is_path_given": True,
        "net_name": "LeNet",
        "device_id": 1,
        "rank_id": 3,
        "budget_bytes": None,
    }
    assert dataclasses.asdict(made.how) == {
        "engine": "sync",
        "device_target": "GPU",
        "jit_level": "",
        "is_acl_dump": False,
        "has_graph_files": False,
        "is_compiled_only": False,
        "kernels": "",
        "container": "",
    }
    assert (made.source.text, made.source.path) == (text, (folder / "data_dump.json").resolve())
    assert not caplog.records


def test_strict_knows_rank_0_only(folder):
    made = plan(folder, environment=Environment(rank_id=3, is_strict=True))
    assert made.where.rank_id == 0


@pytest.mark.parametrize(
    ("target", "device_id", "is_enabled"), [("CPU", 9, True), ("GPU", 1, True), ("GPU", 2, False), ("Ascend", 7, False)]
)
def test_support_device(folder, caplog, target, device_id, is_enabled):
    made = plan(folder, target, device_id)
    assert made.when.is_device_enabled is is_enabled
    assert made.when.dumps(0) is is_enabled
    assert made.masks(NAMES) == [DUMP_INPUT | DUMP_OUTPUT if is_enabled else 0] * len(NAMES)
    told = [record.getMessage() for record in caplog.records if record.name == "msdump"]
    assert told == ([] if is_enabled else [f"Dump is not enabled. device_id:{device_id} not support"])


@pytest.mark.parametrize(
    ("input_output", "mask", "has_parameters"),
    [(0, DUMP_INPUT | DUMP_OUTPUT, True), (1, DUMP_INPUT, False), (2, DUMP_OUTPUT, True)],
)
def test_input_output(folder, input_output, mask, has_parameters):
    made = plan(folder, input_output=input_output)
    assert set(made.masks(NAMES)) == {mask}
    assert made.dumps_parameter(NAMES[5]) is made.dumps_constants is has_parameters


@pytest.mark.parametrize(
    ("kernels", "selected"),
    [
        (["relu"], [1, 2, 3]),
        (["ReLU-op5", NAMES[2]], [2]),
        (["name-regex(Default/.*)"], [0, 1, 2, 4]),
        ([], []),
        ([""], [0, 1, 2, 3, 4, 5]),
        (["conv", 9], [0, 5]),
    ],
)
def test_listed_kernels(folder, kernels, selected):
    made = plan(folder, dump_mode=1, kernels=kernels)
    assert [index for index, mask in enumerate(made.masks(NAMES)) if mask] == selected
    assert [index for index, name in enumerate(NAMES) if made.which.selects(name)] == selected
    assert plan(folder, dump_mode=0, kernels=kernels).masks(NAMES) == [3] * 6


@given(marks=st.lists(st.booleans(), min_size=len(NAMES), max_size=len(NAMES)), device=st.sampled_from(["CPU", "GPU"]))
def test_marked_operators_are_those_and_no_others(tmp_path_factory, marks, device):
    made = plan(tmp_path_factory.mktemp("plan"), device, dump_mode=2, kernels=[NAMES[0]])
    assert made.masks(NAMES, marks) == [(DUMP_INPUT | DUMP_OUTPUT) * is_marked for is_marked in marks]
    assert not any(made.masks(NAMES))
    assert not any(made.which.selects(name) for name in NAMES)
    assert changed(made, is_device_enabled=False).masks(NAMES, marks) == [0] * len(NAMES)


def test_overflow_takes_every_operator(folder, caplog):
    made = plan(folder, "Ascend", dump_mode=1, kernels=["relu"], op_debug_mode=3, overflow_number=2)
    assert (made.how.engine, made.trigger) == ("async", Trigger(overflow=3, overflow_number=2))
    assert made.trigger.op_debug_mode == 3 and made.which == Which()
    assert "the dump_mode is set to 0" in caplog.text


def test_async_needs_no_warning(folder, caplog):
    assert plan(folder, file_format="bin").how.engine == "async"
    assert caplog.text == ""


def test_trans_flag_without_its_section(folder):
    assert plan(folder, "CPU", file_format="npy").saved.is_host_layout is True
    assert plan(folder, "Ascend", file_format="bin", op_debug_mode=0).saved.is_host_layout is False


def test_pynative(folder, caplog):
    assert plan(folder, is_pynative=True) is not None
    assert "PYNATIVE" not in caplog.text
    strict = Environment(is_strict=True)
    with pytest.raises(ConfigError) as caught:
        plan(folder, "GPU", is_pynative=True, environment=strict)
    first_line = "In GPU or CPU, Dump is disabled in PyNative mode. Please set mode to GRAPH_MODE in context."
    assert str(caught.value).splitlines()[0] == first_line
    assert plan(folder, "Ascend", is_pynative=True, environment=strict) is not None


def test_overflow_detection_in_pynative_needs_all_iterations(folder):
    settings = {"file_format": "npy", "op_debug_mode": 3}
    assert plan(folder, "CPU", is_pynative=True, **settings, iteration="all") is not None
    with pytest.raises(ConfigError) as caught:
        plan(folder, "CPU", is_pynative=True, **settings, iteration="0|5-8")
    assert str(caught.value).startswith(
        'common_dump_settings.iteration: expected "all" for overflow detection (op_debug_mode 3) in PYNATIVE_MODE, '
        'got "0|5-8". Set it to "all".'
    )
    assert plan(folder, "CPU", is_pynative=True, file_format="npy", iteration="0|5-8") is not None
    assert plan(folder, "CPU", is_pynative=False, **settings, iteration="0|5-8") is not None


def test_the_iteration_of_an_exception_is_not_known_before(folder):
    made = plan(folder, "CPU", iteration="3")
    assert [made.watches(iteration) for iteration in (2, 3)] == [False, True]
    assert changed(made, op_debug_mode=4).watches(2)
    assert not changed(made, op_debug_mode=4, is_device_enabled=False).watches(2)


def test_unknown_device_target(folder):
    with pytest.raises(ConfigError, match='device_target: expected "CPU", "GPU" or "Ascend", got "ascend"'):
        plan(folder, "ascend")


def test_errors_of_the_file_are_runtime_errors(folder):
    with pytest.raises(RuntimeError, match="Get dump config file failed"):
        plan_mindspore(Environment(str(folder / "nothing.json")), "CPU", 0)


def test_path_from_the_environment(folder):
    environment = Environment(diagnostic_path="/diagnostic")
    assert plan(folder, environment=environment, path="").where.path == Path("/diagnostic/debug_dump")


def test_unmatched_selectors_come_with_advice(folder):
    made = plan(folder, dump_mode=1, kernels=["relu", "Relu6", NAMES[1].replace("op2", "op3"), "name-regex(ReLU)", ""])
    found = made.which.unmatched(NAMES)
    assert list(found) == ["Relu6", NAMES[1].replace("op2", "op3"), "name-regex(ReLU)"]
    assert 'Did you mean "ReLU"' in found["Relu6"]
    assert NAMES[1] in found[NAMES[1].replace("op2", "op3")]
    assert 'write "name-regex(.*ReLU.*)"' in found["name-regex(ReLU)"]
    assert plan(folder).which.unmatched([]) == {}


@given(st.lists(kernel_selectors(NAMES), max_size=5), kernel_selectors(NAMES))
def test_adding_a_selector_never_dumps_less(folder, kernels, more):
    before = plan(folder, dump_mode=1, kernels=kernels).masks(NAMES)
    after = plan(folder, dump_mode=1, kernels=[*kernels, more]).masks(NAMES)
    assert all(old & new == old for old, new in zip(before, after, strict=True))
    assert any(after)


@given(st.data(), st.lists(kernel_selectors(NAMES), max_size=5))
def test_any_subset_of_kernels_dumps_a_subset(folder, data, kernels):
    subset = data.draw(st.lists(st.sampled_from(kernels), unique=True)) if kernels else []
    part = plan(folder, dump_mode=1, kernels=subset).masks(NAMES)
    whole = plan(folder, dump_mode=1, kernels=kernels).masks(NAMES)
    everything = plan(folder).masks(NAMES)
    for few, more, most in zip(part, whole, everything, strict=True):
        assert few & more == few and more & most == more


@given(mindspore_configs(kernels=kernel_selectors(NAMES)))
def test_right_configurations_make_plans_that_agree_with_themselves(folder, config):
    made = plan_mindspore(Environment(write(folder, config)), "CPU", 0)
    assert [bool(mask) for mask in made.masks(NAMES)] == [made.which.selects(name) for name in NAMES]
    assert made.source.text == json.dumps(config, indent=1).encode()
    assert made.which.unmatched(NAMES) == {}
    assert any(made.masks(NAMES))


def test_warnings_are_logged_at_warning_level(folder, caplog):
    plan(folder, dump_mode=1, kernels=["a", "a"])
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [(logging.WARNING, "Duplicate dump kernel name:a")]


def test_the_guides_sync_example_is_taken_on_every_device(folder):
    config = common_config(
        net_name="ResNet50", iteration="0|5-8|100-120", saved_data="tensor", kernels=["Default/Conv-op12"]
    )
    for target in ("CPU", "GPU", "Ascend"):
        for is_strict in (False, True):
            environment = Environment(write(folder, config), is_strict=is_strict)
            made = plan_mindspore(environment, target, 0)
            assert made is not None
            assert [n for n in range(130) if made.when.dumps(n)] == [0, *range(5, 9), *range(100, 121)]


def test_no_other_module_decides_which_steps_are_dumped():
    root = PACKAGE
    folders = [root / name for name in ("dumpers", "engine", "graph", "frontends", "mindspore", "cli")]
    for file in (file for folder in folders for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                source = ast.unparse(node.comparators[0])
                assert not source.endswith((".when.iterations", "plan.iterations")), f"{file}:{node.lineno}"

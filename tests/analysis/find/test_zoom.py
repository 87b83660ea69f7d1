"""The configuration that dumps one suspect: right operator, right iterations, and one that the parsers accept."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis import write_statistic_files
from msdump.analysis.find.zoom import Zoom, acl_config, mindspore_config, plan_zoom, torchair_lines
from msdump.analysis.steps import Operator
from msdump.config.acl import load_acl_config, plan_acl
from msdump.config.environment import DUMP_CONFIG, Environment
from msdump.config.mindspore import plan_mindspore
from msdump.config.selectors import parse_selector
from msdump.errors import ConfigError
from msdump.formats.paths.parse import safe_text
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture(params=["tensors", "statistics"])
def dump(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for iteration in range(6):
        bad = math.nan if iteration == 4 else 1
        operators = [("D/Add-op1", {IN: floats(1), OUT: floats(2)}), ("D/Log-op2", {IN: floats(2), OUT: floats(bad)})]
        write_dump(tmp_path / "dump", operators, iteration)
    if request.param == "tensors":
        return tmp_path / "dump"
    write_statistic_files(tmp_path / "dump", tmp_path / "statistics")
    return tmp_path / "statistics"


def test_the_first_bad_iteration_and_those_around_it(dump: Path) -> None:
    zoom = plan_zoom(dump, "Log-op2")
    assert (zoom.suspicious, zoom.iterations, zoom.steps) == (4, (3, 5), "3-5")
    assert plan_zoom(dump, "Log-op2", around=0).steps == "4"
    assert plan_zoom(dump, "Add-op1").steps == "0-1"
    assert plan_zoom(dump, "Log-op2", iteration=2, around=5).steps == "0-7"
    with pytest.raises(ConfigError, match="Did you mean"):
        plan_zoom(dump, "Lgo-op2")


def test_the_configuration_is_one_that_mindspore_takes(dump: Path, tmp_path: Path) -> None:
    config = mindspore_config(plan_zoom(dump, "Log-op2"), str(tmp_path / "zoom"))
    path = tmp_path / "zoom.json"
    path.write_text(json.dumps(config))
    plan = plan_mindspore(Environment.from_os({DUMP_CONFIG: str(path)}), "CPU", 0)
    assert plan is not None and plan.saved.tensors and plan.where.net_name == "Net"
    assert [plan.when.dumps(iteration) for iteration in range(2, 7)] == [False, True, True, True, False]
    (selector,) = plan.which.selectors or ()
    name = plan_zoom(dump, "Log-op2").operator.label
    assert selector.matches("D/Log-op2") and name in ("D/Log-op2", "Log-op2")
    assert not selector.matches("D/Log-op3")


def test_the_configuration_is_one_that_acl_takes(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "zoom").mkdir()
    path = tmp_path / "acl.json"
    path.write_text(json.dumps(acl_config(plan_zoom(dump, "Log-op2"), str(tmp_path / "zoom"))))
    plan = plan_acl(load_acl_config(str(path)))
    assert plan is not None and plan.operands.inputs and plan.operands.outputs
    (entry,) = plan.which.lists
    assert entry.model_name == "Net"


@given(name=st.from_regex(r"[A-Za-z]{1,4}([/._-][A-Za-z0-9(+]{1,4}){0,4}", fullmatch=True))
def test_a_name_that_a_file_spells_is_selected_all_the_same(name: str) -> None:
    operator = Operator("Log", safe_text(name))
    config = mindspore_config(Zoom(operator, (0, 1), 0, None, "model"), "/x")
    (text,) = config["common_dump_settings"]["kernels"]
    assert parse_selector(text).matches(name)


def test_torchair_is_configured_by_the_script(dump: Path) -> None:
    assert torchair_lines(plan_zoom(dump, "Log-op2")) is None
    zoom = Zoom(Operator("aten.sqrt.default", 'sq"rt'), (0, 1), 0, None, "fx")
    assert torchair_lines(zoom) is not None
    node = type("Node", (), {"name": 'sq"rt'})()
    source = str(torchair_lines(zoom)).partition(" = ")[2]
    assert eval(source)(node) is node

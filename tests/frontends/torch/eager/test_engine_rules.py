"""The rules that say which engine sees a program: each is on the page, and has a configuration that it holds for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from msdump.config.environment import Environment
from msdump.config.mindspore import plan_mindspore
from msdump.config.plan import Plan
from msdump.frontends.torch.eager import engines
from msdump.frontends.torch.eager.engines import RULES, Situation, why_mode
from tests.frontends.torch.eager.test_watch import config

PAGE = Path(__file__).parents[4] / "docs" / "torch-eager.md"
STATISTICS = {"saved_data": "statistic", "statistic_category": ["max"]}


def plan_of(folder: Path, is_sync: bool, **common: Any) -> Plan:
    path = folder / "data_dump.json"
    path.write_text(json.dumps(config(folder, is_sync, **common)))
    plan = plan_mindspore(Environment(str(path)), "CPU", 0)
    assert plan is not None
    return plan


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- engines: begin -->\n", "\n<!-- engines: end -->"
    assert text[text.index(begin) + len(begin) : text.index(end)] == engines.table()


@pytest.mark.parametrize(
    ("is_sync", "common", "place"),
    [
        (False, {"op_debug_mode": 3}, 0),
        (True, {"dump_mode": 1, "kernels": ["name-regex(x)"]}, 1),
        (False, {}, 2),
        (False, {"saved_data": "full"}, 2),
        (True, {}, None),
        (True, STATISTICS, None),
        (False, STATISTICS, None),
        (True, {"dump_mode": 1, "kernels": ["name-regex(x)"], **STATISTICS}, None),
    ],
)
def test_a_configuration_has_the_engine_of_its_row(
    is_sync: bool, common: dict[str, Any], place: int | None, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, is_sync, **common)
    assert why_mode(Situation(plan, False, False)) == ("" if place is None else RULES[place].reason)
    assert why_mode(Situation(plan, True, False)) == RULES[5 if place is None else place].reason
    assert why_mode(Situation(plan, False, True)) == RULES[6 if place is None else place].reason

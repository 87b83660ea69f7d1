"""The same script, run by msprobe 26.2 and by msdump, leaves the same records: names, order, values, parents."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")
from tests.frontends.msprobe.running import as_msprobe, run_script

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "msprobe" / "debugger"
# md5 is left out where operators work in place: msprobe takes it later, after they did.
NUMBERS = ("Max", "Min", "Mean", "Norm")


# This operator works in place on what its module was given. The hooks that msprobe puts on modules make that a view,
# and its record the one of the view: at level L1, without them, it is the operator's own.
IN_PLACE = "Functional.relu.0.backward"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


CASES: dict[str, tuple[str, dict[str, Any]]] = module("cases").CASES


def difference(mine: Any, other: Any, place: str = "") -> str:
    """Where two values differ; "" where they do not. Floats may differ in their last digits, and keys in no order."""
    if isinstance(mine, dict) and isinstance(other, dict):
        if list(mine) != list(other):
            return f"{place}: keys {list(mine)} and {list(other)}"
        pairs = [(key, mine[key], other[key]) for key in mine]
    elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        pairs = [(str(number), *pair) for number, pair in enumerate(zip(mine, other, strict=True))]
    elif isinstance(mine, float) and isinstance(other, float):
        is_close = math.isclose(mine, other, rel_tol=1e-5, abs_tol=1e-6) or (math.isnan(mine) and math.isnan(other))
        return "" if is_close else f"{place}: {mine} and {other}"
    else:
        return "" if mine == other and type(mine) is type(other) else f"{place}: {mine} and {other}"
    return next((text for key, *pair in pairs if (text := difference(*pair, f"{place}/{key}"))), "")


@pytest.mark.parametrize("name", CASES)
def test_records_are_those_of_msprobe(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way, config = CASES[name]
    make = module("make")
    monkeypatch.setenv("STORE", str(tmp_path / "store"))
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with as_msprobe():
        run_script(GOLDEN / "script.py", str(make.config_file(tmp_path, config)), way)
    mine = json.loads(json.dumps(make.summary(tmp_path / "dump")))
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    at_level_l1 = json.loads((GOLDEN / "relu.json").read_text())
    for step, content in golden.items():
        if config["level"] == "mix" and IN_PLACE in content["dump.json"]["data"]:
            own = at_level_l1[step]["dump.json"]["data"][IN_PLACE]
            record = content["dump.json"]["data"][IN_PLACE]
            for side in record.keys() & own.keys():
                for shown, wanted in zip(record[side], own[side], strict=True):
                    shown.update(wanted)
    assert difference(mine, golden) == ""


def test_every_case_has_its_golden() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)

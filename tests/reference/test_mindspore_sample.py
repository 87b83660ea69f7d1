"""The comparison with MindSpore: what it takes for a difference, and that each exception has a row of the page."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reference import compare_samples
from tests.reference import mindspore_sample as sample

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def of(*values: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"variant": "plain", "results": [{"tensor": sample.of_array(np.array(values, dtype), dtype)}]}


def failed(*names: str, text: str = "", variant: str = "plain") -> dict[str, Any]:
    return {"variant": variant, "error": [*names, "Exception"], "text": text}


@pytest.mark.parametrize(
    ("theirs", "ours", "kind"),
    [
        (of(1, 2), of(1, 2.0001), ""),
        (of(1, 2), of(1, 2.1), "values"),
        (of(np.nan), of(np.nan), ""),
        (of(np.nan), of(0), "where NaN is"),
        (of(1), of(1, 2), "shape"),
        (of(1), of(1, dtype="float64"), "dtype float32 | float64"),
        (of(1), {"variant": "plain", "results": []}, "number of results"),
        (failed("TypeError"), failed("OperandTypeError", "TypeError"), ""),
        (failed("TypeError"), failed("OperandValueError", "ValueError"), "error class TypeError"),
        (failed("AttributeError", variant="text"), failed("TypeError"), ""),
        (failed("AttributeError", variant="text"), failed("AttributeError"), "error class AttributeError"),
        (failed("TypeError", text="Unsupported data type"), of(1), "MindSpore has no kernel"),
        (failed("ValueError"), of(1), "only MindSpore refuses (plain)"),
        (of(1), failed("ValueError"), "only msdump refuses"),
        (of(1), {"crash": True}, "msdump ends the process"),
    ],
)
def test_what_counts_as_a_difference(theirs: Any, ours: Any, kind: str) -> None:
    assert (compare_samples.difference(theirs, ours) or ("",))[0] == kind


def test_every_reason_is_a_row_of_the_page() -> None:
    points = {line.split("|")[1].strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "}
    assert set(compare_samples.EXPECTED.values()) - points == {compare_samples.MISSING}


@pytest.mark.usefixtures("needs_mindspore")
def test_calls_are_computed_and_equal_themselves(tmp_path: Path) -> None:
    """One process goes through all calls; a name that does not exist is a difference of its own."""

    def tensor(*values: float) -> Any:
        return {"tensor": sample.of_array(np.array(values, np.float32), "float32"), "parameter": False}

    nothing: Any = {"dict": {}}
    calls = [
        {"path": "ops.exp", "made": None, "args": {"list": [tensor(0, 1)]}, "kwargs": nothing},
        {"path": "Tensor.sum", "made": None, "args": {"list": [tensor(0, 1)]}, "kwargs": nothing},
        {"path": "nn.ReLU", "made": [{"list": []}, nothing], "args": {"list": [tensor(-1, 1)]}, "kwargs": nothing},
        {"path": "ops.no_such_name", "made": None, "args": {"list": [tensor(1)]}, "kwargs": nothing},
    ]
    (tmp_path / "calls.json").write_text(json.dumps({"calls": calls}))
    script, rows = Path(sample.__file__), tmp_path / "rows.jsonl"
    command = [sys.executable, str(script), "run", str(tmp_path / "calls.json"), str(rows), "--msdump"]
    subprocess.run(command, check=True, cwd=script.parents[2])
    found = compare_samples.rows_of(rows)
    assert len(found) == len(calls) * len(sample.VARIANTS)
    first = found[0]["results"][0]["tensor"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(first["data"]), np.float32), [1, np.e], rtol=1e-6)
    gradient = sample.array_from(found[sample.VARIANTS.index("grad")]["results"][0]["tensor"])
    np.testing.assert_allclose(gradient, [1, np.e * np.cos(1)], rtol=1e-5)
    assert compare_samples.compare(rows, rows, is_all=True) == 1  # the name that is missing
    assert compare_samples.compare(rows, rows, is_all=False) == 0

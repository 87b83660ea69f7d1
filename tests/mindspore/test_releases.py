"""What changed between releases of MindSpore: one profile, one table, and what both releases were measured to do."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.config.environment import MINDSPORE_RELEASES, mindspore_release
from msdump.errors import ConfigError
from msdump.mindspore import nn
from msdump.mindspore.releases import CHANGES, Change, release_name
from tests.reference.first_values import LAYERS, MINT_LAYERS, measured

ROOT = Path(__file__).parents[2]
MEASURED = json.loads((ROOT / "tests/golden/mindspore_first_values.json").read_text(encoding="utf-8"))
VARIABLE = "MSDUMP_MINDSPORE_VERSION"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "2.3.0"), ("", "2.3.0"), ("2.0", "2.0.0"), (" 2.7 ", "2.7.0"), ("2.3.0rc1", "2.3.0"), ("2.7.1", "2.7.0")],
)
def test_the_variable_chooses_the_release(text: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if text is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, text)
    assert release_name() == expected


@pytest.mark.parametrize("text", ["1.9", "2.8", "2", "x", "2.3,", "2.30"])
def test_a_release_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"{VARIABLE}: expected a release of MindSpore from 2\.0 to 2\.7, got"):
        mindspore_release({VARIABLE: text})


def test_scripts_read_the_version_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2.7")
    code = "import msdump.mindspore as ms; from msdump.mindspore import version; "
    code += "print(ms.__version__, version.__version__)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["2.7.0", "2.7.0"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.subject)
def test_a_change_holds_from_its_release_on(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    holds = []
    for release in MINDSPORE_RELEASES:
        monkeypatch.setenv(VARIABLE, release)
        holds.append(change.is_in_force)
    assert holds == sorted(holds) and not holds[0] and holds[-1]
    assert MINDSPORE_RELEASES[holds.index(True)] == ".".join(map(str, change.since))


def test_the_page_prints_the_table() -> None:
    text = (ROOT / "docs/mindspore-versions.md").read_text(encoding="utf-8")
    printed = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert printed == [
        f"| {each.subject} | {'.'.join(map(str, each.since))} | {each.before} | {each.after} |" for each in CHANGES
    ]


@pytest.mark.parametrize(("release", "name"), [(release, name) for release in MEASURED for name in MEASURED[release]])
def test_first_values_have_the_measured_distribution(release: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, release)
    layer = LAYERS[name](nn) if name in LAYERS else MINT_LAYERS[name](ms.mint.nn)
    own, expected = measured(layer), MEASURED[release][name]
    assert list(own) == list(expected)
    for parameter, (shape, *numbers) in expected.items():
        assert own[parameter][0] == shape, parameter
        _assert_alike(own[parameter][1:], numbers, math.prod(shape))


def _assert_alike(own: list[Any], expected: list[Any], count: int) -> None:
    """Both are measured on `count` draws: five standard errors of the difference."""
    (mean, deviation, largest, kurtosis), (its_mean, its_deviation, its_largest, its_kurtosis) = own, expected
    spread = 5 * math.sqrt(2 / count)
    np.testing.assert_allclose(mean, its_mean, rtol=1e-6, atol=spread * its_deviation)
    np.testing.assert_allclose(deviation, its_deviation, rtol=0.71 * spread)
    if count > 1000:
        np.testing.assert_allclose(kurtosis, its_kurtosis, atol=0.4)
        is_bounded = 0 < its_kurtosis < 2
        np.testing.assert_allclose(largest, its_largest, rtol=0.01 if is_bounded else 0.35)


def test_sgd_decays_normalisations_before_the_change_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: measured with MindSpore 2.0.0 and 2.7.0: 0.95 for both, and 1 for the parameter named gamma."""
    for release, expected in (("2.0", 0.95), ("2.3", 1.0)):
        monkeypatch.setenv(VARIABLE, release)
        ones = np.ones(2, np.float32)
        parameters = [ms.Parameter(ms.Tensor(ones), name=name) for name in ("gamma", "weight")]
        nn.SGD(parameters, 0.1, weight_decay=0.5)((ms.Tensor(0 * ones), ms.Tensor(0 * ones)))
        np.testing.assert_allclose([each.asnumpy()[0] for each in parameters], [expected, 0.95])

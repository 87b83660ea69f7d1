"""What CONTRIBUTING.md promises of the long runs: more examples of each property, and one variant for each commit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import machines

ROOT = Path(__file__).resolve().parent.parent
PROPERTY = """
from hypothesis import given, settings, strategies as st

numbers = set()

@settings(max_examples=10, database=None)
@given(st.integers(0, 10**9))
def test_property(number):
    numbers.add(number)
    assert number != LIMIT and number < CEILING

def test_example():
    raise AssertionError("an example is no property")

def teardown_module():
    print(f"{len(numbers)} examples")
"""


def run_deep(tmp_path: Path, ceiling: int, *options: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "test_it.py"
    path.write_text(PROPERTY.replace("LIMIT", "-1").replace("CEILING", str(ceiling)))
    command = [sys.executable, "-m", "pytest", "-c", "setup.cfg", "--rootdir", str(tmp_path), "-s", "-p", "tests.deep"]
    return subprocess.run([*command, *options, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=240)


def test_properties_alone_run_with_more_examples(tmp_path: Path) -> None:
    done = run_deep(tmp_path, 10**10, "--times", "30")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 deselected" in done.stdout
    examples = re.search(r"(\d+) examples", done.stdout)
    assert examples is not None and int(examples[1]) > 100, done.stdout


def test_a_failure_shows_how_to_bring_it_back(tmp_path: Path) -> None:
    done = run_deep(tmp_path, 500, "--times", "30")
    assert done.returncode == 1
    assert "number=500" in done.stdout and "@reproduce_failure(" in done.stdout


def test_nothing_begins_after_the_time_is_over(tmp_path: Path) -> None:
    done = run_deep(tmp_path, 0, "--until", str(time.time() - 1))
    assert done.returncode == 0 and "1 skipped" in done.stdout


def test_the_variant_of_a_commit_is_the_same_each_time() -> None:
    halves = machines.variants_of_commit()
    assert halves == machines.variants_of_commit()
    assert halves[0].name.split(",")[0] in {variant.name for variant in machines.VARIANTS}
    assert not halves[0].has_mindspore and not halves[0].tests
    assert all(half.has_mindspore and half.tests == ("tests/mindspore",) for half in halves[1:])


def test_a_variant_that_cannot_be_played_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    missing = machines.Variant("no-such-program", prefix=("no-such-program",))
    refused = machines.Variant("refused", prefix=("sh", "-c", "echo not today >&2; exit 1"))
    other = machines.Processor("Z80", ("X86_V2",), "default", "SSE41", "z80", "no_such_flag")
    assert machines.run_machines([missing, refused, machines.Variant("z80", other)], "1") == 0
    text = capsys.readouterr().out
    assert "no-such-program: not run: no-such-program is not installed" in text
    assert "refused: not run: not today" in text
    assert "z80: not run: this processor has no no_such_flag" in text


def test_each_variant_is_another_one() -> None:
    names = [variant.name for variant in machines.VARIANTS]
    assert len(set(names)) == len(names)
    for variant in machines.VARIANTS:
        is_other = variant.processor or variant.environment or variant.prefix or variant.is_elsewhere
        is_other = is_other or variant.is_shuffled or variant.has_lowest_versions
        assert is_other or variant.umask >= 0 or not variant.has_mindspore, variant.name


def test_lowest_versions_need_their_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    lowest = [variant for variant in machines.VARIANTS if variant.has_lowest_versions]
    assert machines.run_machines(lowest, "1") == 0
    assert "lowest-versions: not run: python3.10 is not installed" in capsys.readouterr().out


def test_a_processor_switches_numpy_back() -> None:
    nehalem = next(variant for variant in machines.VARIANTS if variant.name == "nehalem").processor
    assert nehalem is not None
    program = "import numpy as np; print(np.arange(3.0).sum())"
    environment = {**os.environ, **nehalem.environment()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "3.0\n", done.stderr

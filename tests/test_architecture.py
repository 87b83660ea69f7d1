"""What docs/architecture.md says of the code is so."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package import PACKAGE
from tests.private_names import private_uses

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = {
    name: re.findall(r"`([\w/]+\.py)`", files)
    for name, files in re.findall(r"^\| ([^|`]+) \|((?: (?:`[\w/]+\.py` ?)+\|){4})$", TEXT, re.MULTILINE)
}


def test_every_dump_has_its_way_through_the_code() -> None:
    assert len(WALKS) == 6


@pytest.mark.parametrize("name", WALKS)
def test_the_way_is_short_and_its_files_are_there(name: str) -> None:
    assert len(WALKS[name]) == len(set(WALKS[name])) <= 9
    for file in WALKS[name]:
        assert (PACKAGE / file).is_file(), file


@pytest.mark.usefixtures("needs_mindspore")
def test_packages_of_the_table_are_there() -> None:
    table = TEXT[TEXT.index("## Packages") : TEXT.index("## From a configuration")]
    cells = re.findall(r"^\|[^|]+\| ((?:`\w+/`(?:, )?)+) \|", table, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)/`", cell)]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name[0] != "_"}
    assert set(named) == packages and len(named) == len(set(named)) and len(cells) <= 15


def test_the_contract_is_the_one_that_is_checked() -> None:
    checked = configparser.ConfigParser()
    checked.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = checked["importlinter:contract:packages"]["layers"].strip()
    assert f"```text\n{layers}\n```" in TEXT
    assert len(layers.splitlines()) <= 15


READING = (ROOT / "docs" / "reading-order.md").read_text(encoding="utf-8")
PROGRAMS = {
    name: re.findall(r"`([\w/]+\.py)`", files)
    for name, files in re.findall(r"^\| `(\w+)`: [^|]+ \|([^|]+)\|$", READING, re.MULTILINE)
}


def test_every_program_has_its_walk() -> None:
    assert set(PROGRAMS) == {"eager", "native", "compiled", "mindspore", "nan", "compare"}


@pytest.mark.usefixtures("needs_mindspore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_walk_is_short_and_a_program_takes_it(name: str) -> None:
    if name in ("eager", "native", "compiled"):
        pytest.importorskip("torch")
    if name == "native":
        pytest.importorskip("msdump_native")
    assert len(PROGRAMS[name]) == len(set(PROGRAMS[name])) <= 24
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.walks", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert set(PROGRAMS[name]) <= set(done.stdout.split())


# Uses of private names of msdump in tests; 188 when they were first counted.
MOST_PRIVATE_USES = 98


def test_tests_know_no_more_private_names() -> None:
    uses = private_uses()
    assert len(uses) <= MOST_PRIVATE_USES, (
        "test through a public name, or make it public; python -m tests.private_names"
    )

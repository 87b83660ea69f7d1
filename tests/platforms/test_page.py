"""docs/platforms.md names every platform that the project claims, and commands that exist."""

from __future__ import annotations

import configparser
import re

import pytest

from tests import machines
from tests.platforms import filesystems

PAGE = (filesystems.ROOT / "docs/platforms.md").read_text(encoding="utf-8")


def test_every_python_has_a_row() -> None:
    setup = configparser.ConfigParser()
    setup.read(filesystems.ROOT / "setup.cfg", encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE)
    cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|"))
    assert pythons
    assert [python for python in pythons if not re.search(rf"\b{re.escape(python)}\b", cells)] == []


def test_every_processor_variant_has_a_row() -> None:
    for variant in machines.VARIANTS:
        if variant.processor is not None:
            assert f"`python tests/check.py --machines {variant.name}`" in PAGE


@pytest.mark.usefixtures("needs_mindspore")
def test_every_script_that_the_page_names_is_there() -> None:
    scripts = set(re.findall(r"\b(tests/[\w/]+\.py)", PAGE))
    assert {"tests/check.py", "tests/platforms/aarch64.py", "tests/platforms/filesystems.py"} <= scripts
    assert [script for script in scripts if not (filesystems.ROOT / script).is_file()] == []


def test_every_file_system_that_takes_direct_writes_has_a_row() -> None:
    from msdump.formats import direct

    for name in direct._FILESYSTEMS:
        assert f"\n| {name} |" in PAGE

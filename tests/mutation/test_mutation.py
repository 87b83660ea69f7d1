"""What the long run of `python -m tests.mutation` takes for granted."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.mutation import selection
from tests.mutation.selection import ROOT, files_for
from tests.mutation.survivors import KINDS, SURVIVORS, reason_for

PLACES = (
    *("msdump/formats", "msdump/config", "msdump/dumpers"),
    *(
        "msdump/statistics/stats.py",
        "msdump/statistics/kernels.py",
        "msdump/statistics/lanes.py",
        "msdump/tensors/float_bits.py",
        "msdump/statistics/md5.py",
        "msdump/statistics/batches.py",
        "msdump/storage/plain.py",
    ),
)
MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for place in PLACES
    for path in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    if len(ast.parse(path.read_text()).body) > 1 and path.parent.name != "_proto"
)


def test_the_configuration_names_the_places() -> None:
    config = Path(selection.__file__).with_name("cosmic-ray.toml").read_text()
    places = re.search(r"^module-path = \[(.*)\]$", config, re.MULTILINE)
    assert places is not None and re.findall(r'"(.*?)"', places[1]) == list(PLACES)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_tests(module: str) -> None:
    assert all((ROOT / file).is_file() for file in files_for(module))


def test_every_line_of_the_table_is_for_a_module() -> None:
    assert set(selection._OTHERS) <= set(MODULES)


def test_no_explained_survivor_is_out_of_date() -> None:
    for survivor in SURVIVORS:
        lines = " ".join(line.strip() for line in (ROOT / survivor.module).read_text().splitlines())
        assert survivor.before in lines, survivor
        assert survivor.before != survivor.after and survivor.reason
        assert reason_for(survivor.module, survivor.before, survivor.after) == survivor.reason, "a kind says it already"


def test_kinds_are_whole_lines() -> None:
    assert reason_for("msdump/a.py", "@final", "") == KINDS[0].reason
    assert reason_for("msdump/a.py", "x = 1  # @final", "") is None


def test_a_seed_chooses_the_same_mutants() -> None:
    pytest.importorskip("cosmic_ray")
    mutants = importlib.import_module("tests.mutation.mutants")
    modules = ["msdump/config/environment.py", "msdump/formats/folders.py"]
    spots = mutants.sample(modules, 4, "1")
    again, other = mutants.sample(modules, 4, "1"), mutants.sample(modules, 4, "2")
    places = [[(spot.module, spot.start, str(mutants.mutant(spot))) for spot in some] for some in (spots, again, other)]
    assert places[0] == places[1] != places[2]
    assert {spot.module for spot in spots} == set(modules)
    output = "".join(f"survived    4 s  {mutants.mutant(spot)}\n" for spot in spots)
    assert {str(mutants.mutant(spot)) for spot in mutants.survivors(output)} >= {text for _, _, text in places[0]}

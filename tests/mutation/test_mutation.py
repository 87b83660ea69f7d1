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
    *("msdump/analysis/compare", "msdump/analysis/find"),
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
    assert all((ROOT / file.partition("::")[0]).is_file() for file in files_for(module))


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


def test_the_net_tests_what_gives_answers() -> None:
    board = ast.parse((ROOT / "tests/answers/test_board.py").read_text())
    functions = {node.name for node in board.body if isinstance(node, ast.FunctionDef)}
    for module in MODULES:
        files = files_for(module)
        assert selection.is_net(files) is module.startswith("msdump/analysis/")
        assert {file.partition("::")[2] for file in files} - {""} <= functions


def test_constants_and_rules_alone() -> None:
    pytest.importorskip("cosmic_ray")
    operators = importlib.import_module("tests.mutation.operators")
    mutating = importlib.import_module("cosmic_ray.mutating")
    module = """_MOST, _LEAST = 3, 4
_BITS = 8
_SHARE: float = 2**-8
_NAMES = frozenset({"a", "b"})
_TABLE = {
    "a": (1, 2),
    "b": (3,),
}
_PAIR = ("a", *_OTHERS)
_NONE = {number: 1 for number in range(3)}
small = 2


def f(x):
    if x > _BITS:
        return 1
    elif x:
        return (1, 2)
    return [1, 2] if x else 3
"""
    made = {
        operator.__name__: [
            changed for index in range(20) if (changed := mutating.mutate_code(module, operator(), index))
        ]
        for operator in operators.RULES
    }
    changed = {name: [set(text.splitlines()) - set(module.splitlines()) for text in made[name]] for name in made}
    assert changed["ScaleConstant"] == [
        {"_BITS = (8) * 2"},
        {"_BITS = (8) // 2"},
        {"_SHARE: float = (2**-8) * 2"},
        {"_SHARE: float = (2**-8) / 2"},
    ]
    assert changed["SwitchOff"] == [{"    if False and (x > _BITS):"}, {"    elif False and (x):"}]
    lines = [ast.unparse(ast.parse(text)).splitlines() for text in made["DropRow"]]
    original = ast.unparse(ast.parse(module)).splitlines()
    assert [next(line for line in some if line not in original) for some in lines] == [
        "_NAMES = frozenset({'b'})",
        "_NAMES = frozenset({'a'})",
        "_TABLE = {'b': (3,)}",
        "_TABLE = {'a': (1, 2)}",
        "_PAIR = (*_OTHERS,)",
        "_PAIR = ('a',)",
    ]

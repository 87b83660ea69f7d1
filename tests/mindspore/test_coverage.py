"""docs/api-coverage.md is what the code says, and no name that worked is lost."""

from __future__ import annotations

import csv
import importlib
import pkgutil
import sys
from collections import Counter
from pathlib import Path

import pytest

import msdump.mindspore as ms
from msdump.mindspore.other_paths import LEFT_OUT
from tests.mindspore_coverage import PAGE, names, namespace_of, page, share

# Share of the names of both versions that worked when this was written, in per cent, rounded down. Those that LEFT_OUT
# names since then count, too.
LEAST = {
    "mindspore": 85,
    "mindspore.nn": 93,
    "mindspore.ops": 81,
    "mindspore.numpy": 83,
    "mindspore.train": 100,
    "mindspore.dataset": 56,
    "mindspore.dataset.vision": 100,
    "mindspore.dataset.transforms": 93,
    "mindspore.amp": 86,
    "mindspore.common.initializer": 90,
    "mindspore.communication": 100,
    "Tensor": 93,
    "Cell": 45,
    "Parameter": 30,
}


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.mindspore_coverage"


@pytest.mark.parametrize("path", LEAST)
def test_no_name_that_worked_is_lost(path: str) -> None:
    works, total = share(path)
    assert 100 * works // total >= LEAST[path]


def test_every_module_of_the_lists_is_looked_at() -> None:
    assert set(LEAST) <= set(names())


@pytest.mark.parametrize("module", LEFT_OUT)
def test_a_name_that_is_left_out_says_what_to_use(module: str) -> None:
    is_class = module in ("Cell", "Tensor")
    path = module if is_class else f"mindspore.{module}".rstrip(".")
    thing = namespace_of(path)(*([1.0] if module == "Tensor" else [])) if is_class else namespace_of(path)
    where = "" if module == "Cell" else " in msdump"
    listed = [(name, hint) for hint, left in LEFT_OUT[module].items() for name in left]
    assert {name for name, _ in listed} <= set(names().get(path, dict(listed)))
    for name, hint in listed:
        with pytest.raises(AttributeError) as caught:
            getattr(thing, name)
        assert f" has no attribute '{name}'{where}. {hint} " in str(caught.value)


def test_a_name_that_is_left_out_says_so_under_each_path() -> None:
    for code in (
        "from msdump.mindspore import BleuScore",
        "from msdump.mindspore.nn import BleuScore",
        "from msdump.mindspore.train.metrics.bleu_score import BleuScore",
    ):
        with pytest.raises(ImportError, match=r"train\.Metric of your own"):
            exec(code)


def test_no_module_defines_a_name_that_is_left_out() -> None:
    """A function that no `__all__` shows would be there and yet missing."""
    for module in pkgutil.walk_packages(ms.__path__, f"{ms.__name__}."):
        importlib.import_module(module.name)
    for path, listed in LEFT_OUT.items():
        counts = Counter(name for left in listed.values() for name in left)
        assert [name for name, count in counts.items() if count > 1] == [], "a name has one hint"
        root = f"{ms.__name__}.{path}".rstrip(".")
        for name, module in [
            (name, module) for name, module in sys.modules.items() if f"{name}.".startswith(f"{root}.")
        ]:
            shown = getattr(module, "__all__", ())
            defined = (each for each, value in vars(module).items() if getattr(value, "__module__", "") == name)
            assert not counts.keys() & {*shown, *defined}, f"{name} has what other_paths says is left out"


def test_each_name_that_is_left_out_was_searched_for() -> None:
    """A name that two programs use is no name to leave out, unless the head of the list names it."""
    with Path(__file__).with_name("left_out_uses.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    listed = [(module, name) for module, hints in LEFT_OUT.items() for names in hints.values() for name in names]
    assert sorted((row["module"], row["name"]) for row in rows) == sorted(listed)
    assert all(string.strip() for row in rows for string in row["strings"].split("|"))
    text = Path(ms.__file__).with_name("left_out.txt").read_text(encoding="utf-8")
    head = " ".join(line for line in text.splitlines() if line.startswith("#")).split()
    assert [row["name"] for row in rows if int(row["programs"]) > 1 and row["name"] not in head] == []

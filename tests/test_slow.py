"""The list of slow tests names tests that exist, and is what a run's table of durations says."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT
from tests.slow import function_of, slow_of, slow_tests

LOG = """\
1.50s call     tests/a.py::test_one[a b]
2.00s setup    tests/a.py::test_one[c]
3.00s call     tests/a.py::TestClass::test_two
0.30s call     tests/a.py::test_three
6.00s setup    tests/b.py::test_four
5.00s call     tests/b.py::test_five
"""


@pytest.mark.usefixtures("needs_mindspore")  # some of its tests are slow
def test_each_line_is_a_test() -> None:
    names = {}
    for name in slow_tests():
        file, _, function = name.partition("::")
        if file not in names:  # parsed once
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            names[file] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        # Those of a contract stand in its base class.
        assert not function or "::" in function or function in names[file], f"{name}: run python -m tests.slow anew"


def test_parameters_add_up() -> None:
    found = ["tests/a.py::TestClass::test_two", "tests/a.py::test_one", "tests/b.py"]
    assert slow_of([LOG.splitlines(), LOG.splitlines()], 3) == found
    assert function_of("tests/a.py::test_one[c]") == "tests/a.py::test_one"

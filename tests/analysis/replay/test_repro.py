"""Scripts of one operator: what a dump says is a value in them, never a line of the program."""

from __future__ import annotations

import ast
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis import write_repro
from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.graph_info import GraphNode
from msdump.analysis.replay.replay import NUMPY, TORCH
from msdump.analysis.replay.repro import _script, literal
from msdump.analysis.steps import Operator, Step, StepKey
from msdump.errors import ConfigError
from msdump.graph._proto import debug_graph_pb2
from msdump.graph.types import SourceLine
from tests.analysis.conftest import ROOT

MARK = "a_hostile_dump_was_here"
# Each would run as code, or stop the script, if it stood in it as it is.
HOSTILE = (
    f'"""; open("{MARK}", "w"); """',
    f"'''\nopen('{MARK}', 'w')\n'''",
    f'\\"""\nopen("{MARK}", "w")\n#',
    f"x\ropen('{MARK}', 'w')\r",
    "# -*- coding: utf-7 -*-",
    "ends with a backslash\\",
    "{braces} {0} {",
    "\0\ud800\u2028\u202e\x1b[2J",
)
TEXTS = st.one_of(st.text(st.characters(), max_size=40), st.sampled_from(HOSTILE))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda some: st.lists(some, max_size=3) | st.lists(some, max_size=3).map(tuple),
    max_leaves=8,
)


def operator_of(op_type: str, name: str, code: str, path: str = "train.py") -> FoundOperator:
    operator = Operator(op_type, name, f"Default/{name}")
    node = GraphNode(f"Default/{name}", op_type, (SourceLine(path, 3, code),), (), {})
    return FoundOperator(Step(StepKey(0, 0, 0), (operator,)), operator, node)


def program_of(script: str) -> list[str]:
    """The statements of a script, those that only name a value without it."""
    tree = ast.parse(script.encode())
    found = []
    for statement in tree.body:
        target = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        found.append(target if target not in ("", "HERE") else ast.unparse(statement))
    return found


@given(op_type=TEXTS, name=TEXTS, code=TEXTS, path=TEXTS, attrs=st.dictionaries(TEXTS, VALUES, max_size=3))
def test_no_text_of_a_dump_changes_the_program(
    op_type: str, name: str, code: str, path: str, attrs: dict[str, Any]
) -> None:
    innocent = _script(operator_of("NoSuchType", "a", "x", "y"), NUMPY, {}, [], {})
    found = _script(operator_of(op_type, name, code, path), NUMPY, attrs, [], {})
    expected = innocent.replace("'NoSuchType', arrays", f"{literal(op_type)}, arrays")
    assert program_of(found) == program_of(expected)
    assert found.isascii()


@given(value=st.dictionaries(TEXTS, VALUES, max_size=3))
def test_a_literal_gives_its_value_back(value: dict[str, Any]) -> None:
    text = literal(value)
    assert text.isascii() and text.isprintable()
    # repr tells NaN from NaN not at all, and every other value, the sign of zero included, from every other.
    assert repr(eval(text)) == repr(value)


def test_only_plain_values_are_written() -> None:
    assert literal((math.inf, -math.inf)) == '(float("inf"), float("-inf"))'
    assert literal(("\u4e2d",)) == r"('\u4e2d',)"
    with pytest.raises(ConfigError, match="expected plain values, got object"):
        literal([object()])


@pytest.mark.parametrize("library", [NUMPY, TORCH])
def test_a_hostile_graph_file_runs_no_code(own_dump: Path, tmp_path: Path, library: str) -> None:
    if library == TORCH:
        pytest.importorskip("torch")
    dump = tmp_path / "dump"
    shutil.copytree(own_dump, dump)
    path = dump / "rank_0/graphs/ms_output_trace_code_graph_0.pb"
    model = debug_graph_pb2.ModelProto.FromString(path.read_bytes())
    for node in model.graph.node:
        node.source_address = "\n".join(f"# In file {text}:1/{text}/" for text in HOSTILE[:1])
        for number, value in enumerate((*HOSTILE[:7], math.nan, math.inf)):
            attribute = node.attribute.add(name=f'{number}"""')
            if isinstance(value, str):
                attribute.value.dtype, attribute.value.str_val = debug_graph_pb2.DT_STRING, value
            else:
                attribute.value.dtype, attribute.value.float_val = debug_graph_pb2.DT_FLOAT32, value
    path.chmod(0o600)
    path.write_bytes(model.SerializeToString())
    script = write_repro(dump, "Conv2D-op3", tmp_path / "repro", library=library, iteration=0)
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", str(script)],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.rglob(MARK))

"""Every program is answered as docs/answers.md says: no worse, and what is better moves up on the page."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from importlib.util import find_spec

import pytest

from msdump.process.front_ends import is_installed
from tests.answers import running, table
from tests.answers.__main__ import answered
from tests.answers.judging import Verdict
from tests.answers.program import Program, load, names, programs
from tests.answers.running import ROOT, Shell

# For every commit: fast ones, of different commands, entries and faults.
FEW = (
    *(
        "gradient_of_a_root_at_zero",
        "printed_check_in_one_step",
        "causal_mask_in_a_buffer",
        "weights_that_never_change",
    ),
    *("dump_that_is_missing", "statistics_without_rows", "index_out_of_range", "mindspore_masked_row", "onnx_half"),
    *("onnx_scan_step", "quantised_outlier", "pynative_branch", "port_softmax_axis", "relu_at_its_border"),
    "msprobe_log",
)
parsed = table.stated
_COMMANDS = {"compare": "two", "nan": "one"}


def tens(group: str) -> list[list[str]]:
    """Names of the programs that ask about one run, two runs, or anything else."""
    chosen = [name for name, each in programs().items() if _COMMANDS.get(each.answer.ask.split()[0], "other") == group]
    return [chosen[start : start + 10] for start in range(0, len(chosen), 10)]


def first_and_last(some: list[str]) -> str:
    return f"{some[0]}..{some[-1]}"


def check(some: Iterable[str], shell: Shell) -> None:
    page = table.PAGE.read_text(encoding="utf-8")
    results: list[table.Result] = []
    for program in filter(can_run, map(load, some)):
        results.append(answered(program, shell)[0])
        if running.KEPT in os.environ and any(table.changes(page, results)):
            break  # what changes how msdump answers is known by one program
    worse, better = table.changes(page, results)
    lines = "\n".join(map(table.text_line, results))
    assert not worse, f"worse than {table.PAGE.name} says: {', '.join(worse)}\n{lines}"
    command = f"python -m tests.answers --write {' '.join(better)}"
    assert not better, f"better than {table.PAGE.name} says; move them up with `{command}`\n{lines}"


def can_run(program: Program) -> bool:
    """Whether everything is installed that it imports."""
    tree = ast.parse(program.path.read_text(encoding="utf-8"))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in imports} - {"acl", "msprobe", "torchair", "torch_npu"}
    return all(is_installed(name) if name == "mindspore" else find_spec(name) for name in tops)


def test_every_program_is_run_by_the_slow_job() -> None:
    grouped = [name for group in ("one", "two", "other") for some in tens(group) for name in some]
    assert sorted(grouped) == names() and len(FEW) == 15 and set(FEW) < set(grouped)
    assert all(len(some) <= 10 for group in ("one", "two", "other") for some in tens(group))
    assert "-m slow tests/answers/test_board.py" in (ROOT / ".ci/slow").read_text(encoding="utf-8")


def test_a_worse_answer_fails_and_a_better_one_asks_for_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    name = FEW[0]
    with Shell() as unused:
        for stated, given, message in (
            *(("found", Verdict("half", "not line 7"), "worse than"), ("half", Verdict("found"), "better than")),
            ("found", Verdict("found", "", "an alarm"), "worse than"),
            ("found, noisy twin", Verdict("found"), f"python -m tests.answers --write {name}"),
        ):
            result = table.Result(load(name), "said", given)
            monkeypatch.setattr("tests.answers.test_board.answered", lambda *_, result=result: (result, ""))
            monkeypatch.setattr(table, "stated", lambda _, stated=stated: parsed(f"| `{name}` | | | | | {stated} |"))
            with pytest.raises(AssertionError, match=message):
                check([name], unused)
            monkeypatch.setattr(table, "stated", lambda _, given=given: {name: given})
            check([name], unused)


@pytest.mark.parametrize("name", FEW)
def test_a_few_are_answered_as_the_page_says(shell: Shell, name: str) -> None:
    pytest.importorskip("torch")
    if not can_run(load(name)):
        pytest.skip(f"{name} imports what is not installed")
    check([name], shell)


@pytest.mark.slow
@pytest.mark.parametrize("some", tens("two"), ids=first_and_last)
def test_two_runs(shell: Shell, some: list[str]) -> None:
    check(some, shell)


@pytest.mark.slow
@pytest.mark.parametrize("some", tens("one"), ids=first_and_last)
def test_one_run(shell: Shell, some: list[str]) -> None:
    check(some, shell)


@pytest.mark.slow
@pytest.mark.parametrize("some", tens("other"), ids=first_and_last)
def test_other_questions(shell: Shell, some: list[str]) -> None:
    check(some, shell)

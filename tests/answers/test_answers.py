"""The judging of answers, what programs state, and the way from a program to its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msdump.analysis import compare_dumps, headline
from tests.answers import running, table
from tests.answers.judging import FOUND, HALF, WRONG, Said, Verdict, first_answer, first_sentence, judge
from tests.answers.program import FOLDERS, Program, load, names, parse, paths
from tests.answers.running import Shell, asked, configuration, dump_command
from tests.snippets import ROOT

PROGRAM = '''"""A logarithm
of a negative number."""
ANSWER = {
    "kind": "lines", "entry": "eager", "ask": "nan {faulty}", "operator": "aten.log", "step": 1, "rank": 0,
    "says": ["output 0"], "never": ["from outside"], "wants": "the logarithm",
}
x.log()  # fault
'''
RIGHT = """first NaN, made out of finite inputs: Default/aten.log.default-op0 (aten.log.default), rank 0, iteration 1
  train.py:7  x.log()  # fault
  output 0: float32 [5, 3], 1 NaN, 0 Inf
no unexpected Inf
"""
FINITE = Said(0, "finite: 3 tensors of 1 iteration hold no NaN and no Inf.\n")


@pytest.fixture
def program() -> Program:
    return parsed(PROGRAM)


def parsed(text: str, name: str = "train") -> Program:
    (program,) = parse(name, text)
    return program


def verdict(program: Program, text: str, exit_status: int = 1, healthy: Said = FINITE) -> str:
    return judge(program, Said(exit_status, text), healthy).word


def test_the_right_answer_is_found(program: Program) -> None:
    assert judge(program, Said(1, RIGHT), FINITE) == Verdict(FOUND)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("iteration 1", "iteration 11"),
        ("rank 0", "rank 1"),
        ("train.py:7", "train.py:70"),
        ("aten.log.", "aten.sub."),
        ("output 0", "output 1"),
        ("made out of finite inputs", "came in from outside"),
    ],
)
def test_an_answer_that_lacks_something_is_half(program: Program, before: str, after: str) -> None:
    assert verdict(program, RIGHT.replace(before, after)) == HALF


def test_an_answer_further_down_is_half(program: Program) -> None:
    other = "first NaN: Default/aten.mul.Tensor-op0, iteration 1\n  train.py:3  y * x\n"
    assert verdict(program, other + RIGHT) == HALF
    assert verdict(program, other) == WRONG


def test_another_exit_status_is_wrong(program: Program) -> None:
    assert verdict(program, RIGHT, exit_status=0) == WRONG


@pytest.mark.parametrize("healthy", [Said(1, RIGHT), Said(4, FINITE.text), Said(0, "first difference: fc2.bias\n")])
def test_a_finding_in_the_healthy_twin_is_a_false_alarm(program: Program, healthy: Said) -> None:
    judged = judge(program, Said(1, RIGHT), healthy)
    assert judged.word == FOUND and judged.alarm
    assert not judge(program, Said(1, RIGHT), FINITE).alarm


def test_nothing_wrong_forbids_words_everywhere() -> None:
    text = PROGRAM.replace('"operator": "aten.log", "step": 1, "rank": 0,', '"exit": 0, "line": False,')
    program = parsed(text.replace('"says": ["output 0"]', '"says": ["finite"]').replace("  # fault", ""))
    assert verdict(program, FINITE.text, exit_status=0) == FOUND
    assert verdict(program, FINITE.text + "  came in from outside\n", exit_status=0) == WRONG
    assert verdict(program, FINITE.text.replace("finite", "no finding"), exit_status=0) == HALF


def test_what_a_command_shows_is_no_finding() -> None:
    text = PROGRAM.replace("nan {faulty}", "show {faulty} aten.log").replace(
        '"wants"', '"exit": 0, "quiet": 2, "wants"'
    )
    program = parsed(text)
    nothing = Said(2, "msdump show: expected tensors, got none.\n")
    assert judge(program, Said(0, "rank 0\n\n" + RIGHT), nothing) == Verdict(FOUND)
    assert judge(program, Said(0, RIGHT), Said(0, RIGHT)).alarm


def test_the_first_finding_ends_where_the_next_begins() -> None:
    text = f"no operator goes wrong by itself.\n\n{RIGHT}"
    assert first_sentence(text) == RIGHT.splitlines()[0]
    assert first_answer(text).splitlines()[-1] == "  output 0: float32 [5, 3], 1 NaN, 0 Inf"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("  # fault", "", "a line that ends with '# fault', got 0"),
        ('"wants"', '"want"', "expected the keys of Answer"),
        ('"eager"', '"jax"', "entry: expected one of eager"),
        ("ANSWER", "OTHER", "expected ANSWER"),
    ],
)
def test_a_program_without_its_answer_is_refused(before: str, after: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse("train", PROGRAM.replace(before, after))


def test_every_folder_is_searched() -> None:
    found = {path.parent for path in paths().values()}
    assert found == set(FOLDERS) and load("port_softmax_axis").path.parent == FOLDERS[1]


def test_golden_is_run_where_the_question_names_it(program: Program) -> None:
    assert program.modes == ("faulty", "healthy") and asked(program, "healthy") == "msdump nan healthy"
    other = parsed(PROGRAM.replace("nan {faulty}", "compare {faulty} {golden}"))
    assert other.modes == ("faulty", "healthy", "golden") and asked(other) == "msdump compare faulty golden"


def test_keys_of_the_configuration_reach_their_section() -> None:
    text = PROGRAM.replace('"wants"', '"config": {"iteration": "0|2", "e2e_dump_settings": {"enable": False}}, "wants"')
    config = configuration(parsed(text), FOLDERS[0])
    assert config["common_dump_settings"]["iteration"] == "0|2"
    assert config["e2e_dump_settings"] == {"enable": False, "trans_flag": True}


def test_the_page_keeps_the_rows_of_programs_that_were_not_run(program: Program) -> None:
    page = f"Answers\n\n{table.BEGIN}{table.END}\nmore\n"
    other = parsed(PROGRAM, "other")
    first = table.made(page, [program, other], [table.Result(program, RIGHT, Verdict(FOUND))])
    second = table.made(first, [program, other], [table.Result(other, "a | b", Verdict(HALF, "not line 7: a | b"))])
    assert table.stated(second) == {"train": Verdict(FOUND), "other": Verdict(HALF)}
    assert "| eager | 2 | 1 | 1 | 0 | 0 |" in second and second.endswith("\nmore\n")
    assert table.stated(table.made(second, [other], [])) == {"other": Verdict(HALF)}


def test_what_got_worse_and_what_got_better_is_named(program: Program) -> None:
    page = f"{table.BEGIN}{table.END}"
    verdicts = [
        *(Verdict(FOUND), Verdict(HALF, "not line 7"), Verdict(WRONG, "exit 0 in place of 1: a | b")),
        *(Verdict(FOUND, "", "a finding"), Verdict(HALF, "not line 7", "a finding"), Verdict(WRONG, "", "exit 1: b")),
    ]
    for before in verdicts:
        written = table.made(page, [program], [table.Result(program, "said", before)])
        assert table.stated(written)["train"].badness == before.badness
        for after in verdicts:
            worse, better = table.changes(written, [table.Result(program, "said", after)])
            is_worse = verdicts.index(after) % 3 > verdicts.index(before) % 3 or bool(after.alarm) > bool(before.alarm)
            assert worse == (["train"] if is_worse else [])
            assert better == (["train"] if not is_worse and after != before else [])
    assert table.changes(page, [table.Result(program, "", Verdict(WRONG, "", "alarm"))]) == ([], [])


def test_false_alarms_are_counted_by_entry(program: Program) -> None:
    result = table.Result(program, "said", Verdict(HALF, "not line 7", "exit 1: first difference"))
    page = table.made(f"{table.BEGIN}{table.END}", [program], [result])
    assert "| dumped by | programs | found | half | wrong | noisy twins |" in page
    assert "| eager | 1 | 0 | 1 | 0 | 1 |" in page
    assert "| half, noisy twin: not line 7; twin: exit 1: first difference |" in page


VARIANTS = PROGRAM.replace("x.log()  # fault", "x.log()  # fault log root\nx.exp()  # fault exp").replace(
    '"operator": "aten.log",',
    """"variants": {
        "log": {"goes_wrong": "one", "operator": "aten.log"}, "root": {"goes_wrong": "two"},
        "exp": {"goes_wrong": "three", "operator": "aten.exp", "says": []},
    },""",
)


def test_a_file_with_variants_is_a_program_for_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = parse("train", VARIANTS)
    assert [(each.name, each.summary, each.lines) for each in found] == [
        *(("train_log", "one", (10,)), ("train_root", "two", (10,)), ("train_exp", "three", (11,))),
    ]
    assert [each.answer.says for each in found] == [("output 0",), ("output 0",), ()]
    monkeypatch.setattr("tests.answers.program.paths", lambda: {"train": tmp_path / "train.py"})
    assert dump_command(found[2], "healthy", tmp_path).endswith("train.py healthy exp")
    assert verdict(found[0], RIGHT.replace(":7", ":10")) == FOUND


def test_kept_dumps_are_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: Program) -> None:
    script = tmp_path / "train.py"
    script.write_text("", encoding="utf-8")
    monkeypatch.setattr("tests.answers.program.paths", lambda: {"train": script})
    monkeypatch.setenv(running.KEPT, str(tmp_path / "kept"))
    typed: list[str] = []

    class Recorded(Shell):
        def dump(self, command: str, folder: Path) -> Said:
            typed.append(command)
            return Said(0, "")

        def ask(self, question: str, folder: Path) -> Said:
            assert (folder / "train.py").exists()
            typed.append(question)
            return FINITE

    with Recorded() as shell:
        for _ in range(2):
            running.run_program(program, shell)
        assert [command.partition(" --")[0].split()[1] for command in typed] == ["run", "run", *["nan"] * 4]
        script.write_text("pass", encoding="utf-8")
        running.run_program(program, shell)
        assert [command.split()[1] for command in typed[6:]] == ["run", "run", "nan", "nan"]


@pytest.mark.parametrize("name", names())
def test_every_program_states_its_answer(name: str) -> None:
    assert load(name).answer.wants


def test_every_program_stands_on_the_page() -> None:
    assert set(table.stated(table.PAGE.read_text(encoding="utf-8"))) == set(names())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDERS[1].glob("*.py")))
def test_a_right_port_agrees_in_all_iterations_forward_and_backward(shell: Shell, name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = load(name)
    (tmp_path / program.path.name).write_bytes(program.path.read_bytes())
    for mode in ("healthy", "golden"):
        assert shell.dump(dump_command(program, mode, tmp_path), tmp_path).exit == 0
    comparison = compare_dumps(tmp_path / "healthy", tmp_path / "golden")
    assert comparison.is_agreeing, headline(comparison)
    for is_backward in (False, True):
        assert {
            result.step.iteration
            for result in comparison.operators
            if result.pair.mine.label.startswith("Gradients") is is_backward and result.outputs
        } == {0, 1, 2, 3}


def test_the_programs_that_comments_name_are_there() -> None:
    """A threshold stands beside programs on both of its sides (`test: NAME, NAME`)."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "msdump/analysis").rglob("*.py")))
    named = [name.strip() for listed in re.findall(r"# (?:.* )?test: (.*)", sources) for name in listed.split(",")]
    assert len(named) > 10 and not set(named) - set(names())

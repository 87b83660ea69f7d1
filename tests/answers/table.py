"""The board in the terminal and as docs/answers.md, between markers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.answers.judging import VERDICTS, Verdict
from tests.answers.program import ENTRIES, Program
from tests.answers.running import ROOT, asked

PAGE = ROOT / "docs" / "answers.md"
BEGIN, END = "<!-- answers: begin -->\n", "<!-- answers: end -->"
_ROW = re.compile(r"^\| `(\w+)` \|.* \| (\w+)[^|]* \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """A program, what msdump said first, and the verdict."""

    program: Program
    sentence: str
    verdict: Verdict


def text_line(result: Result) -> str:
    """A result for the terminal."""
    answer, verdict = result.program.answer, result.verdict
    reason = f"\n      {verdict.reason}" if verdict.reason else ""
    return f"{verdict.word:6} {result.program.name:34} {answer.kind:28} {answer.entry}{reason}"


def counts(programs: Sequence[Program], words: Mapping[str, str]) -> list[tuple[str, Counter[str]]]:
    """Verdicts of each entry that has programs, and of all."""
    rows = []
    for entry in ENTRIES:
        judged = [words[program.name] for program in programs if program.answer.entry == entry]
        rows += [(entry, Counter(judged))] if judged else []
    return [*rows, ("all", Counter(words[program.name] for program in programs))]


def count_line(entry: str, counter: Counter[str]) -> str:
    """The verdicts of an entry for the terminal."""
    return f"{entry:9} {counter.total():3} programs: " + ", ".join(f"{counter[word]} {word}" for word in VERDICTS)


def stated(page: str) -> dict[str, str]:
    """Verdict of each program that a page lists."""
    return dict(_ROW.findall(page))


def made(page: str, programs: Sequence[Program], results: Sequence[Result]) -> str:
    """The page with the results in it; rows of programs that were not run stay, those of programs that are gone go."""
    rows = {match[1]: match[0] for match in _ROW.finditer(page)}
    rows.update({result.program.name: _row(result) for result in results})
    listed = [program for program in programs if program.name in rows]
    words = stated("\n".join(rows[program.name] for program in listed))
    lines = ["", "| dumped by | programs | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 2) + "|"]
    for entry, counter in counts(listed, words):
        lines.append(f"| {entry} | {counter.total()} | " + " | ".join(str(counter[word]) for word in VERDICTS) + " |")
    for kind in dict.fromkeys(program.answer.kind for program in listed):
        lines += ["", f"## {kind[0].upper()}{kind[1:]}", "", _TITLES, "|---|---|---|---|---|---|"]
        lines += [rows[program.name] for program in listed if program.answer.kind == kind]
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n\n" + END + rest.split(END)[1]


def worse(page: str, results: Sequence[Result]) -> list[str]:
    """Names of programs whose verdict is worse than the page says."""
    before = stated(page)
    return [
        result.program.name
        for result in results
        if VERDICTS.index(result.verdict.word) > VERDICTS.index(before.get(result.program.name, VERDICTS[-1]))
    ]


_TITLES = "| program | what goes wrong | right answer | typed | said first | verdict |"


def _row(result: Result) -> str:
    program, verdict = result.program, result.verdict
    cells = [
        f"`{program.name}`",
        _cell(program.summary),
        _cell(program.answer.wants),
        f"`{asked(program)}`",
        f"`{_cell(result.sentence)}`" if result.sentence.strip() else "",
        verdict.word + (f": {_cell(_short(verdict.reason, result.sentence))}" if verdict.reason else ""),
    ]
    return f"| {' | '.join(cells)} |"


def _short(reason: str, sentence: str) -> str:
    """The reason without the sentence that stands beside it."""
    return reason.removesuffix(f": {sentence}") if sentence else reason


def _cell(text: str) -> str:
    """Text that fits into a cell, and says nothing of the machine."""
    text = re.sub(r"\S*/(?=site-packages/|lib/python3)", "", text)
    text = re.sub(r"/tmp/msdump-answers-\w+/", "", text)
    # Whose error it is says the command that was typed.
    text = re.sub(r"\bmsdump (\w+): ", r"\1: ", text)
    return " ".join(text.split()).replace("`", "'").replace("|", "/").replace("<", "‹")[:300]

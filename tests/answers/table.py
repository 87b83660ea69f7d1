"""The board in the terminal and as docs/answers.md, between markers."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.answers.judging import VERDICTS, Verdict
from tests.answers.program import ENTRIES, Program
from tests.answers.running import ROOT, asked

PAGE = ROOT / "docs" / "answers.md"
BEGIN, END = "<!-- answers: begin -->\n", "<!-- answers: end -->"
NOISY = "noisy twin"
_ROW = re.compile(rf"^\| `(\w+)` \|.* \| (\w+)(, {NOISY})?(?::[^|]*)? \|$", re.MULTILINE)
_TITLES = "| program | what goes wrong | right answer | typed | said first | verdict |"


@dataclass(frozen=True, slots=True)
class Result:
    """A program, what msdump said first, and the verdict."""

    program: Program
    sentence: str
    verdict: Verdict


def text_line(result: Result) -> str:
    """A result for the terminal."""
    answer, verdict = result.program.answer, result.verdict
    remarks = (verdict.reason, f"{NOISY}: {verdict.alarm}" if verdict.alarm else "")
    return "".join(
        (
            f"{verdict.word:6} {result.program.name:40} {answer.kind:28} {answer.entry}",
            *(f"\n      {remark}" for remark in remarks if remark),
        )
    )


def counts(programs: Sequence[Program], verdicts: Mapping[str, Verdict]) -> list[tuple[str, Counter[str]]]:
    """Verdicts and noisy twins of each entry that has programs, and of all."""
    rows = []
    for entry in (*ENTRIES, "all"):
        judged = [verdicts[program.name] for program in programs if entry in ("all", program.answer.entry)]
        counter = Counter(verdict.word for verdict in judged)
        counter[NOISY] = sum(bool(verdict.alarm) for verdict in judged)
        rows += [(entry, counter)] if judged or entry == "all" else []
    return rows


def numbers(counter: Counter[str]) -> dict[str, int]:
    """All programs, each verdict, and noisy twins, by title."""
    words = {word: counter[word] for word in VERDICTS}
    return {"programs": sum(words.values()), **words, f"{NOISY}s": counter[NOISY]}


def count_line(entry: str, counter: Counter[str]) -> str:
    """The numbers of an entry for the terminal."""
    return f"{entry:9} " + ", ".join(f"{number:3} {title}" for title, number in numbers(counter).items())


def stated(page: str) -> dict[str, Verdict]:
    """Verdict of each program that a page lists."""
    return {name: Verdict(word, "", noisy) for name, word, noisy in _ROW.findall(page)}


def made(page: str, programs: Sequence[Program], results: Sequence[Result]) -> str:
    """The page with the results in it; rows of programs that were not run stay, those of programs that are gone go."""
    rows = {match[1]: match[0] for match in _ROW.finditer(page)}
    rows.update({result.program.name: _row(result) for result in results})
    listed = [program for program in programs if program.name in rows]
    verdicts = stated("\n".join(rows[program.name] for program in listed))
    titles = ["dumped by", *numbers(Counter())]
    lines = ["", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for entry, counter in counts(listed, verdicts):
        lines.append(f"| {entry} | {' | '.join(map(str, numbers(counter).values()))} |")
    for kind in dict.fromkeys(program.answer.kind for program in listed):
        lines += ["", f"## {kind[0].upper()}{kind[1:]}", "", _TITLES, "|---|---|---|---|---|---|"]
        lines += [rows[program.name] for program in listed if program.answer.kind == kind]
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n\n" + END + rest.split(END)[1]


def changes(page: str, results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """Names of the programs whose verdict is worse than the page says, and of those whose is better."""
    before = stated(page)
    worst = Verdict(VERDICTS[-1], "", NOISY)
    pairs = [(result.program.name, before.get(result.program.name, worst), result.verdict) for result in results]
    worse = [name for name, old, new in pairs if any(map(operator.gt, new.badness, old.badness))]
    return worse, [name for name, old, new in pairs if name not in worse and new.badness != old.badness]


def _row(result: Result) -> str:
    program, verdict = result.program, result.verdict
    cells = [
        f"`{program.name}`",
        _cell(program.summary),
        _cell(program.answer.wants),
        f"`{asked(program)}`",
        f"`{_cell(result.sentence)}`" if result.sentence.strip() else "",
        _verdict(verdict, result.sentence),
    ]
    return f"| {' | '.join(cells)} |"


def _verdict(verdict: Verdict, sentence: str) -> str:
    words = verdict.word + (f", {NOISY}" if verdict.alarm else "")
    remarks = [_short(verdict.reason, sentence), verdict.alarm]
    return ": ".join(filter(None, (words, _cell("; twin: ".join(filter(None, remarks))))))


def _short(reason: str, sentence: str) -> str:
    """The reason without the sentence that stands beside it."""
    return reason.removesuffix(f": {sentence}") if sentence else reason


def _cell(text: str) -> str:
    """Text that fits into a cell, and says nothing of the machine."""
    text = re.sub(r"\S*/(?=site-packages/|lib/python3)", "", text)
    # Whose error it is says the command that was typed.
    text = re.sub(r"\bmsdump (\w+): ", r"\1: ", text)
    return " ".join(text.split()).replace("`", "'").replace("|", "/").replace("<", "‹")[:300]

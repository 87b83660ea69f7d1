"""Found, half or wrong: what was said, beside what is right."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.answers.program import Program

FOUND, HALF, WRONG = "found", "half", "wrong"
VERDICTS = (FOUND, HALF, WRONG)
# Commands that look for something wrong; the others show what is there, and all that they print is their answer.
_FINDERS = ("nan", "compare", "ranks", "stat")
# Lines that say that there is nothing, or what was looked at.
_NO_FINDING = re.compile(
    r"no |finite: |agree: |note: |benign |observation|all of them are equal|all ranks agree|nothing |"
    r"next:|in each row: |"
    r"\d+ ranks?\b|\d+ of \d+ "
)


@dataclass(frozen=True, slots=True)
class Said:
    """Exit status and standard output of a command."""

    exit: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of VERDICTS, what came in place of what, and what is said, falsely, of the program without its fault."""

    word: str
    reason: str = ""
    alarm: str = ""

    @property
    def badness(self) -> tuple[bool, int]:
        """The greater, the worse."""
        return bool(self.alarm), VERDICTS.index(self.word)


def judge(program: Program, faulty: Said, healthy: Said | None) -> Verdict:
    """The verdict on what was said of a program and of its healthy twin.

    Edges: without a healthy twin only the faulty run counts.
    """
    alarm = "" if healthy is None else _false_alarm(program, healthy)
    said = first_sentence(faulty.text)
    if faulty.exit != program.answer.exit:
        return Verdict(WRONG, f"exit {faulty.exit} in place of {program.answer.exit}: {said}", alarm)
    answer = first_answer(faulty.text) if _is_finder(program) else faulty.text
    missing = _missing(program, answer, faulty.text)
    if not missing:
        return Verdict(FOUND, "", alarm)
    reason = f"{'; '.join(missing)}: {said}"
    return Verdict(HALF if _is_near(program, faulty.text) else WRONG, reason, alarm)


def first_answer(text: str) -> str:
    """The output up to the end of its first finding: a line that is not indented, and those below it that are."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if _is_finding(line)), None)
    if start is None:
        return text
    end = start + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return "\n".join(lines[:end])


def first_sentence(text: str) -> str:
    """The line of the first finding; where there is none the first line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if _is_finding(line)), lines[0] if lines else "")


def _is_finding(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(" ") and _NO_FINDING.match(line) is None


def _is_finder(program: Program) -> bool:
    return program.answer.ask.split()[0] in _FINDERS


def _false_alarm(program: Program, healthy: Said) -> str:
    """What is said of a program without a fault; "" for nothing."""
    said = first_sentence(healthy.text)
    if healthy.exit != program.answer.quiet:
        return f"exit {healthy.exit}: {said}"
    if not _is_finder(program):
        return ""
    lines = [line for line in healthy.text.splitlines() if line.strip()]
    return said if lines and _is_finding(lines[0]) else ""


def _missing(program: Program, answer: str, text: str) -> list[str]:
    """What the first answer should have and has not, or has and should not have."""
    stated = program.answer
    sentence = first_sentence(text) if _is_finder(program) else text
    missing = [f"not {stated.operator}"] if stated.operator not in sentence else []
    if program.lines and not _has_line(program, answer):
        missing.append(f"not line {' or '.join(map(str, program.lines))}")
    for name, number in (("iteration", stated.step), ("rank", stated.rank)):
        if number is not None and re.search(rf"\b{name}s? {number}\b", answer) is None:
            missing.append(f"not {name} {number}")
    missing += [f"not {words!r}" for words in stated.says if words not in answer]
    searched = answer if stated.exit else text
    return missing + [f"says {words!r}" for words in stated.never if words in searched]


def _has_line(program: Program, text: str) -> bool:
    numbers = "|".join(map(str, program.lines))
    return bool(program.lines) and re.search(rf"\b{re.escape(program.file)}\.py:({numbers})\b", text) is not None


def _is_near(program: Program, text: str) -> bool:
    """Whether the operator or the line stand anywhere; where there is none to name, whether nothing wrong is said."""
    if not program.answer.operator and not program.lines:
        return not any(words in text for words in program.answer.never)
    return bool(program.answer.operator and program.answer.operator in text) or _has_line(program, text)

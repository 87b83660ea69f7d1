"""What a file of FOLDERS states: the fault in it, and the right answer, read without running it.

A file with "variants" in its ANSWER is as many programs, one for each fault that it can have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
FOLDERS = (_HERE / "programs", _HERE / "ports", _HERE / "pairs")
ENTRIES = ("eager", "compiled", "mindspore", "pynative", "onnx", "acl", "torchair", "msprobe")
MARK = "# fault"
_MARK = re.compile(rf"{MARK}((?: \w+)*)$")


@dataclass(frozen=True, slots=True)
class Answer:
    """The literal ANSWER of a program.

    kind      group of the table
    entry     how the program is dumped, one of ENTRIES
    ask       command of msdump without its name; {faulty}, {healthy} and {golden} are folders of dumps
    wants     the right answer in one sentence
    operator  part of the operator's name; "" where no operator is at fault
    line      whether the first answer must name a line with the mark `# fault`
    step      iteration; None where it does not matter
    rank      likewise
    says      words that the first answer has
    never     words that it must not have; with `exit` 0 the whole output
    exit      status of the command
    quiet     its status for the healthy twin: 0, but where that leaves nothing to look at
    twin      question about the healthy twin where it is another one
    saved     "tensor" or "statistic"
    config    further keys of the dump configuration, of its common section or by section
    ranks     processes of a job of gloo ranks; 0 for a program that is run alone
    run       command that dumps, in place of that of the entry, for all runs or by run; {script}, {mode} and {config}
              are filled in
    also      further runs
    ends      exit status of that command for the faulty run
    """

    kind: str
    entry: str
    ask: str
    wants: str
    operator: str = ""
    line: bool = True
    step: int | None = None
    rank: int | None = None
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    exit: int = 1
    quiet: int = 0
    twin: str = ""
    saved: str = "tensor"
    config: Mapping[str, Any] = field(default_factory=dict)
    ranks: int = 0
    run: str | Mapping[str, str] = ""
    also: tuple[str, ...] = ()
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """One file of FOLDERS, or one of its faults.

    summary  what goes wrong: its docstring on one line, or "goes_wrong" of the variant
    lines    numbers of the marked lines, any of which is right; none where the answer needs no line
    variant  second argument of the script; "" where the file has no variants
    """

    file: str
    summary: str
    answer: Answer
    lines: tuple[int, ...]
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.file}_{self.variant}" if self.variant else self.file

    @property
    def path(self) -> Path:
        return paths()[self.file]

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which it is run."""
        return ("faulty", "healthy", *(["golden"] if "{golden}" in self.answer.ask else []), *self.answer.also)


@cache
def paths() -> dict[str, Path]:
    """The files, by name.   Raises: ValueError for a name that stands in two folders."""
    found: dict[str, Path] = {}
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*.py")):
        if path.stem in found:
            raise ValueError(f"{path}: expected a name of its own, got that of {found[path.stem]}. Rename one of them.")
        found[path.stem] = path
    return found


@cache
def programs() -> dict[str, Program]:
    """All programs by name, in its order.   Raises: as `parse`."""
    found = [each for name, path in paths().items() for each in parse(name, path.read_text(encoding="utf-8"))]
    return {program.name: program for program in sorted(found, key=lambda each: each.name)}


def names() -> list[str]:
    """Names of all programs."""
    return list(programs())


def load(name: str) -> Program:
    """The program of that name."""
    return programs()[name]


def parse(name: str, text: str) -> list[Program]:
    """The programs that a text is.   Raises: ValueError for one that does not state its answer."""
    tree = ast.parse(text)
    summary = " ".join((ast.get_docstring(tree) or "").split())
    if not summary:
        raise ValueError(f"{name}: expected a docstring that says what goes wrong, got none.")
    stated = _stated(name, tree)
    variants = stated.pop("variants", None)
    if variants is None:
        answer = _answer(name, stated)
        return [Program(name, summary, answer, _lines(name, text, answer, ""))]
    found = []
    for variant, own in variants.items():
        summary, answer = own.pop("goes_wrong"), _answer(f"{name}_{variant}", stated | own)
        found.append(Program(name, summary, answer, _lines(f"{name}_{variant}", text, answer, variant), variant))
    return found


def _lines(name: str, text: str, answer: Answer, variant: str) -> tuple[int, ...]:
    """The lines with the mark: `# fault`, or with the variants that go wrong there, `# fault axis epsilon`."""
    marks = [(number, _MARK.search(line)) for number, line in enumerate(text.splitlines(), 1)]
    marked = [number for number, mark in marks if mark and (not mark[1] or variant in mark[1].split())]
    if bool(marked) != answer.line:
        expected = "a line that ends" if answer.line else "no line that ends"
        raise ValueError(f"{name}: expected {expected} with {MARK!r}, got {len(marked)}.")
    return tuple(marked)


def _stated(name: str, tree: ast.Module) -> dict[str, Any]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="ANSWER")], value=value):
                stated: dict[str, Any] = ast.literal_eval(value)
                return stated
    raise ValueError(f"{name}: expected ANSWER = {{...}}, got no such statement.")


def _answer(name: str, stated: Mapping[str, Any]) -> Answer:
    lists = {key: tuple(stated.get(key, ())) for key in ("says", "never", "also")}
    try:
        answer = Answer(**{**stated, **lists})
    except TypeError as error:
        raise ValueError(f"{name}: expected the keys of Answer, got another: {error}.") from error
    if answer.entry not in ENTRIES:
        raise ValueError(f"{name}: entry: expected one of {', '.join(ENTRIES)}, got {answer.entry!r}.")
    return answer

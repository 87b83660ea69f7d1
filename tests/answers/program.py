"""What a program of `programs/` or `ports/` states: the fault in it, and the right answer, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
FOLDERS = (_HERE / "programs", _HERE / "ports")
ENTRIES = ("eager", "compiled", "mindspore", "pynative", "onnx", "acl", "torchair", "msprobe")
MARK = "# fault"


@dataclass(frozen=True, slots=True)
class Answer:
    """The literal ANSWER of a program.

    kind      group of the table
    entry     how the program is dumped, one of ENTRIES
    ask       command of msdump without its name; {faulty}, {healthy} and {golden} are folders of dumps
    wants     the right answer in one sentence
    operator  part of the operator's name; "" where no operator is at fault
    line      whether the first answer must name the line with the mark `# fault`
    step      iteration; None where it does not matter
    rank      likewise
    says      words that the first answer has
    never     words that it must not have; with `exit` 0 the whole output
    exit      status of the command
    quiet     its status for the healthy twin: 0, but where that leaves nothing to look at
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
    saved: str = "tensor"
    config: Mapping[str, Any] = field(default_factory=dict)
    ranks: int = 0
    run: str | Mapping[str, str] = ""
    also: tuple[str, ...] = ()
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """One file of FOLDERS.

    summary  its docstring, on one line
    line     number of the marked line; None where the answer needs no line
    """

    name: str
    summary: str
    answer: Answer
    line: int | None

    @property
    def path(self) -> Path:
        return paths()[self.name]

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which it is run."""
        return ("faulty", "healthy", *(["golden"] if "{golden}" in self.answer.ask else []), *self.answer.also)


def paths() -> dict[str, Path]:
    """The file of each program, by name.   Raises: ValueError for a name that stands in two folders."""
    found: dict[str, Path] = {}
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*.py")):
        if path.stem in found:
            raise ValueError(f"{path}: expected a name of its own, got that of {found[path.stem]}. Rename one of them.")
        found[path.stem] = path
    return found


def names() -> list[str]:
    """Names of all programs."""
    return sorted(paths())


def load(name: str) -> Program:
    """The program of that name.   Raises: as `parse`."""
    return parse(name, paths()[name].read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Program:
    """The program that a text is.   Raises: ValueError for one that does not state its answer."""
    tree = ast.parse(text)
    summary = ast.get_docstring(tree)
    if not summary:
        raise ValueError(f"{name}: expected a docstring that says what goes wrong, got none.")
    answer = _answer(name, tree)
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)]
    if len(marked) != answer.line:
        raise ValueError(f"{name}: expected {int(answer.line)} line that ends with {MARK!r}, got {len(marked)}.")
    return Program(name, " ".join(summary.split()), answer, marked[0] if marked else None)


def _answer(name: str, tree: ast.Module) -> Answer:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="ANSWER")], value=value):
                break
    else:
        raise ValueError(f"{name}: expected ANSWER = {{...}}, got no such statement.")
    stated = ast.literal_eval(value)
    for key in ("says", "never", "also"):
        stated[key] = tuple(stated.get(key, ()))
    try:
        answer = Answer(**stated)
    except TypeError as error:
        raise ValueError(f"{name}: expected the keys of Answer, got another: {error}.") from error
    if answer.entry not in ENTRIES:
        raise ValueError(f"{name}: entry: expected one of {', '.join(ENTRIES)}, got {answer.entry!r}.")
    return answer

"""`msdump init`: five questions, then a configuration, what it will dump, and the command that runs it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.cli.options import add_output_option
from msdump.cli.printing import is_terminal, say
from msdump.config.environment import BUDGET, size_of
from msdump.errors import ConfigError, did_you_mean

MINDSPORE, TORCH, TORCH_COMPILE, ONNX = "mindspore", "torch", "torch-compile", "onnx"
NAN, DIFFERS, RANKS, LOOK = "nan", "differs", "ranks", "look"
UNKNOWN, NO_LIMIT = "unknown", "any"
TENSOR, STATISTIC, FULL = "tensor", "statistic", "full"
_OPTIONS = {MINDSPORE: "", TORCH: " --torch-eager", TORCH_COMPILE: " --torch-backend msdump"}


@dataclass(frozen=True, slots=True)
class Question:
    """One of the five.

    choices   answer -> what it means; empty: any text that `problem` has nothing against
    default   the answer of an empty line
    """

    key: str
    text: str
    choices: dict[str, str]
    default: str
    problem: Callable[[str], str] | None = None


def _steps_problem(text: str) -> str:
    from msdump.config.ranges import parse_ranges

    if text == UNKNOWN:
        return ""
    try:
        parse_ranges(text)
    except ConfigError as error:
        return str(error).splitlines()[-1]
    return ""


def _space_problem(text: str) -> str:
    fine = text == NO_LIMIT or size_of(text)
    return "" if fine else f'expected a size such as 8G or 512M, or {NO_LIMIT}, got "{text}".'


QUESTIONS = (
    Question(
        "what hurts",
        "What hurts?",
        {
            NAN: "the loss, or a tensor, is NaN or Inf",
            DIFFERS: "numbers differ from another framework, version or machine",
            RANKS: "one rank of many is bad",
            LOOK: "nothing yet: let me look",
        },
        LOOK,
    ),
    Question(
        "framework",
        "What is the program?",
        {
            MINDSPORE: "a script that imports mindspore",
            TORCH: "a PyTorch script",
            TORCH_COMPILE: "a PyTorch script that calls torch.compile",
            ONNX: "an .onnx file",
        },
        MINDSPORE,
    ),
    Question(
        "steps", f"Which steps, from 0 on? Such as 0|5-8, all, or {UNKNOWN}: the last ones before it breaks.", {}, "0",
        _steps_problem,
    ),
    Question("space", f"How much of the disk may it take? Such as 8G, or {NO_LIMIT}.", {}, NO_LIMIT, _space_problem),
    Question(
        "what",
        "Whole tensors, or statistics of them?",
        {TENSOR: "every element", STATISTIC: "a row of numbers for each tensor", FULL: "both"},
        TENSOR,
    ),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Ask five questions and write the configuration that follows from the answers."
    parser.epilog = (
        f"answers in order: {'; '.join(_known(question) for question in QUESTIONS)}. "
        "An empty one is the default. Example: --answers 'nan,torch,0|5-8,8G,full'"
    )
    add_output_option(parser, "file to write (dump.json; acl.json for an ONNX model)", old_spellings=("--out",))
    parser.add_argument("--path", metavar="DIR", default="dump", help="folder of the dump (%(default)s)")
    parser.add_argument("--answers", metavar="A,B,C,D,E", help="the five answers, to ask nothing")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _known(question: Question) -> str:
    return f"{question.key}: {'|'.join(question.choices) or question.default}"


def run(args: argparse.Namespace) -> int:
    """Ask, write, explain; the result is the exit status that `--help` explains."""
    from msdump.cli.main import main
    from msdump.config.default import file_text, models_config
    from msdump.formats.atomic import write_file

    hurts, framework, steps, space, saved = answers = _given(args.answers) if args.answers else _asked()
    if framework == ONNX and steps == UNKNOWN:
        raise ConfigError(f"steps: expected numbers for an ONNX model, got {UNKNOWN}. A model keeps no last steps.")
    file = Path(args.output or ("acl.json" if framework == ONNX else "dump.json"))
    if file.suffix != ".json":
        raise ConfigError(
            f"--output: expected a name that ends in .json, got {file}. The configurations are JSON files."
        )
    if file.exists() and not args.force:
        raise ConfigError(f"{file}: expected no such file yet, got one. Choose another name, or give --force.")
    folder = Path(args.path).absolute()
    content = models_config(folder, steps, saved) if framework == ONNX else _mindspore(folder, steps, saved, hurts)
    if framework == ONNX:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # ACL does not make it
    write_file(file, [file_text(content)], 0o644, replace=True)
    say(f"{file} written, for {', '.join(answers)}.\n\n$ msdump plan {shlex.quote(str(file))}", flush=True)
    with _limited(space):
        status = main(["plan", str(file)])
    prefix = "" if space == NO_LIMIT else f"{BUDGET}={space} "
    say(f"\nnow:   {prefix}{_command(framework, file)}")
    kept = os.path.join(args.path, "incident_0001") if steps == UNKNOWN else args.path
    say(f"then:  {_next(hurts, shlex.quote(kept))}")
    return status


@contextmanager
def _limited(space: str) -> Iterator[None]:
    """The reported disk space is what the command will have."""
    before = os.environ.get(BUDGET)
    if space != NO_LIMIT:
        os.environ[BUDGET] = space
    try:
        yield
    finally:
        if before is not None:
            os.environ[BUDGET] = before
        else:
            os.environ.pop(BUDGET, None)


def _given(text: str) -> list[str]:
    answers = [part.strip() for part in text.split(",")]
    if len(answers) != len(QUESTIONS):
        raise ConfigError(f"--answers: expected {len(QUESTIONS)} answers, got {len(answers)}. See msdump init --help.")
    for question, answer in zip(QUESTIONS, answers, strict=True):
        problem = _problem(question, answer or question.default)
        if problem:
            raise ConfigError(f"--answers: {question.key}: {problem}")
    return [answer or question.default for question, answer in zip(QUESTIONS, answers, strict=True)]


def _asked() -> list[str]:
    answers = []
    for number, question in enumerate(QUESTIONS, 1):
        say(f"{number}. {question.text}")
        for answer, meaning in question.choices.items():
            say(f"   {answer:14}{meaning}")
        answers.append(_answer(question))
    say()
    return answers


def _answer(question: Question) -> str:
    while True:
        say(f"   [{question.default}] ", end="", flush=True)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise ConfigError(
                f"{question.key}: expected an answer, got the end of input. For scripts there is --answers."
            )
        answer = line.strip() or question.default
        problem = _problem(question, answer)
        if not problem:
            return answer
        if not is_terminal(sys.stdin):
            raise ConfigError(f"{question.key}: {problem}")
        say(f"   {problem}")


def _problem(question: Question, answer: str) -> str:
    if question.problem is not None:
        return question.problem(answer)
    if answer in question.choices:
        return ""
    hint = did_you_mean(answer, question.choices)
    return f'expected one of {", ".join(question.choices)}, got "{answer}". {hint}'.rstrip()


def _mindspore(folder: Path, steps: str, saved: str, hurts: str) -> dict[str, Any]:
    from msdump.config.default import graphs_config

    content = graphs_config(folder, "all" if steps == UNKNOWN else steps, saved)
    if steps == UNKNOWN:
        triggers = {NAN: ["nonfinite", "spike", "exception"], RANKS: ["replicas", "hang", "exception"]}
        content["recorder_settings"] = {"steps": 3, **({"on": triggers[hurts]} if hurts in triggers else {})}
    return content


def _command(framework: str, file: Path) -> str:
    name = shlex.quote(str(file))
    if framework == ONNX:
        return f"msdump acl run MODEL.onnx --dump {name}"
    return f"msdump run --config {name}{_OPTIONS[framework]} SCRIPT.py"


def _next(hurts: str, dump: str) -> str:
    return {
        NAN: f"msdump nan {dump}",
        DIFFERS: f"dump the other one the same way, and: msdump compare {dump} OTHER",
        RANKS: f"msdump ranks {dump}",
        LOOK: f"msdump report {dump}",
    }[hurts]

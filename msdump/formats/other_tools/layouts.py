"""Names of folders and files of other tools: which rank and iteration they are of, and what a tensor is called.

    TensorRT-LLM         [tllm_debug/]PP_{p}/TP_{t}[/iteration_{n}]/{tensor}.npy
    SGLang, dumper       {dump}/step={n}___rank={r}___dump_index={i}___name={tensor}[___{key}={value}...].pt, and before
                         sglang_dump_{time}/forward_pass_id={n}___rank={r}___name={tensor}___dump_index={i}[___...].pt
    SGLang, hooks        TP{t}_PP{p}_Rank{r}_pid{n}/Pass{n}.pt
    any                  folders rank_0, rank0, step_3, iteration_3, iter_3, and files whose names end so: acts_step3.pt

Folders of other names are scopes of the names of tensors. Only what lies below the folder that was opened counts.
Source: TensorRT-LLM, debugUtils.cpp and generation.py; SGLang, dumper.py and tensor_dump_forward_hook.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msdump.tensors.records import INPUT, OUTPUT

_RANK = re.compile(r"(?:global[_-]?)?rank[_=-]?([0-9]{1,18})", re.IGNORECASE)
_STEP = re.compile(r"(?:global[_-]?)?(?:step|iter|iteration|pass)[_=-]?([0-9]{1,18})", re.IGNORECASE)
_AT_END = re.compile(
    r"(?P<rest>.+?)[._-](?P<last>(?:global[_-]?)?(?:rank|step|iter|iteration|pass)[_=-]?[0-9]{1,18})", re.IGNORECASE
)
_PARALLEL = re.compile(r"(?P<kind>PP|TP)_(?P<number>[0-9]{1,9})")
_HOOKED = re.compile(r"TP[0-9]{1,9}_PP[0-9]{1,9}_Rank([0-9]{1,18})_pid[0-9]{1,18}")
_OF_A_TOOL = re.compile(r"tllm_debug|sglang_dump_[0-9.]+|dump_[0-9]{8}_[0-9]{6}_[0-9]{1,9}")
_IO = re.compile(r"(?P<name>.+)[./](?P<io>inputs?|outputs?)(?:[./](?P<slot>[0-9]{1,6}))?")
_SGLANG_STEPS = ("step", "forward_pass_id")
# Of the keys of a name of SGLang's dumper, those that are no part of what the tensor is.
_SGLANG_PLACES = frozenset((*_SGLANG_STEPS, "rank", "name", "dump_index"))
_PARALLEL_RANK = re.compile(r"[a-z]{2,3}_rank")
_NOT_COMPUTED_AGAIN = "recompute_status=disabled"


@dataclass(frozen=True, slots=True)
class Place:
    """What names say; None where they do not.

    scope     folders that are parts of names, joined by "/"
    parallel  pipeline and tensor parallel numbers of TensorRT-LLM
    """

    rank: int | None = None
    iteration: int | None = None
    scope: str = ""
    parallel: tuple[int, int] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing but a scope is known."""
        return self.rank is None and self.iteration is None and self.parallel is None


@dataclass(frozen=True, slots=True)
class FileName:
    """What the name of a file says.

    base      name of the tensor, or of all that the file holds
    position  in the order of execution, where the name tells it
    is_single whether the file holds one tensor with data about it, as those of SGLang's dumper
    """

    base: str
    rank: int | None = None
    iteration: int | None = None
    position: int | None = None
    is_single: bool = False


def place_of_folder(root: str, folder: str) -> Place:
    """What the folders below the root on the way to one say, the root's own name excluded."""
    rank = iteration = None
    scope: list[str] = []
    parallel: dict[str, int] = {}
    relative = os.path.relpath(folder, root) if folder != root else "."
    for part in () if relative == "." else relative.split(os.sep):
        number = _RANK.fullmatch(part) or _HOOKED.fullmatch(part)
        step = _STEP.fullmatch(part)
        side = _PARALLEL.fullmatch(part)
        if number is not None:
            rank = int(number[1])
        elif step is not None:
            iteration = int(step[1])
        elif side is not None:
            parallel[side["kind"]] = int(side["number"])
        elif not _OF_A_TOOL.fullmatch(part):
            scope.append(part)
    both = (parallel["PP"], parallel["TP"]) if len(parallel) == 2 else None
    return Place(rank, iteration, "/".join(scope), both)


def ranks_of(parallel: Sequence[tuple[int, int]]) -> Mapping[tuple[int, int], int | None]:
    """Rank by pipeline and tensor parallel numbers, of all folders of a dump.

    TensorRT-LLM's Python runtime writes ranks, from 0 on, the C++ one the sizes of the job, from 1 on, into which all
    ranks write: these tell no rank.
    """
    pairs = sorted(set(parallel))
    if all(pipeline and tensor for pipeline, tensor in pairs):
        return {pair: None if len(pairs) == 1 else index for index, pair in enumerate(pairs)}
    width = 1 + max(tensor for _, tensor in pairs)
    return {(pipeline, tensor): pipeline * width + tensor for pipeline, tensor in pairs}


def parse_file_name(name: str, may_hold_many: bool) -> FileName:
    """What a name says, without its suffix.

    may_hold_many  of a file that may hold many tensors: then a rank and a step at its end are no part of what these are
    """
    stem = name.rpartition(".")[0]
    dumped = _sglang(stem)
    if dumped is not None:
        return dumped
    rank = iteration = None
    while may_hold_many:
        match = _AT_END.fullmatch(stem)
        last = stem if match is None else match["last"]
        number, step = _RANK.fullmatch(last), _STEP.fullmatch(last)
        if number is None and step is None:
            break
        if number is not None:
            rank = int(number[1])
        elif step is not None:
            iteration = int(step[1])
        stem = "" if match is None else match["rest"]
    return FileName(stem, rank, iteration)


def _sglang(stem: str) -> FileName | None:
    """Of a name that is keys and values."""
    if "___" not in stem or "name=" not in stem:
        return None
    parts: list[tuple[str, str]] = []
    for part in stem.split("___"):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            parts.append((key, value))
        elif parts:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]}___{part}")
        else:
            return None
    values = dict(parts)
    numbers = {key: int(value) for key, value in parts if value.isascii() and value.isdigit() and len(value) < 19}
    step = next((numbers[key] for key in _SGLANG_STEPS if key in numbers), None)
    if step is None or "rank" not in numbers or "dump_index" not in numbers or not values.get("name"):
        return None
    more = [
        f"{key}={value}"
        for key, value in parts
        if key not in _SGLANG_PLACES and not _PARALLEL_RANK.fullmatch(key) and f"{key}={value}" != _NOT_COMPUTED_AGAIN
    ]
    return FileName("/".join((values["name"], *more)), numbers["rank"], step, numbers["dump_index"], True)


def side_of(name: str) -> tuple[str, str, int]:
    """The operator that a name is of, "input" or "output", and the number: names that end in ".input", "/outputs/1" and
    the like say so; any other is an output."""
    match = _IO.fullmatch(name)
    if match is None:
        return name, OUTPUT, 0
    io = INPUT if match["io"].startswith(INPUT) else OUTPUT
    return match["name"], io, int(match["slot"] or 0)

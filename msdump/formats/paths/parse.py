"""Parser of the names of dump files and folders, in all forms of the dump tools.

Names:

    npy              {op_type}.{op_name}.{task}.{stream}.{time}.{io}.{slot}.{format}[.{dtype}].npy
    bin              {op_type}.{op_name}.{task}[.{stream}].{time}[.{task type}.{context}.{thread}.{device}]
    converted        {bin}.{io}.{slot}[.{shape}].npy and {bin}.{io}.{slot}.{shape}.{dtype}.{format}.bin
    fx               {node}-{target}.{INPUT|OUTPUT}.{i}[.{j}].{time}.npy
    golden           {op_name}.{output}.{time}.npy
    exception        exception_info.{stream}.{task}.{time}, {kernel}.{stream}.{task}.{time}.core
    any other .npy   a tensor with the name of the file

Folders:

    sync             rank_N/{net}/{graph}/{iteration} and rank_N/{net}/{graph}/constants
    model            [{step}/]{time}/{device}/{model}/{model_id}/{iteration}
    operator         [{step}/]{time}/{device}[/{iteration}]
    fx               worldsizeN_global_rankM/graph_G/{step}
    exception        extra-info/data-dump/{device}
    bare             anything else; `other_tools.layouts` says which ranks and iterations other tools have there

The grammars "model" and "operator" may be below worldsizeN_global_rankM, which then gives the rank.
Source: MindSpore dump guide; CANN, names and directories of a dump; TorchAir, names and folders of its two data dumps.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from sys import intern

from msdump.formats.exception import parse_core_file_name
from msdump.formats.paths.acl import BinFileName, parse_async_path, parse_bin_file_name, parse_overflow_json_name
from msdump.formats.paths.sync import CONSTANTS, DATA, NUMBER, data_file_pieces, parse_sync_path
from msdump.formats.paths.torchair import parse_torchair_name, parse_torchair_path
from msdump.tensors import dtypes
from msdump.tensors.makers import maker
from msdump.tensors.records import INPUT, OUTPUT

NPY, BIN, RAW, OVERFLOW, PT, MEMBER = "npy", "bin", "raw", "overflow", "pt", "member"

_CONVERTED = re.compile(
    rf"(?P<dump>.+)\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER})"
    r"(?:\.(?P<shape>[0-9]+(?:x[0-9]+)*))?\.npy"
)
_RAW = re.compile(
    rf"(?P<dump>.+)\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER})"
    r"\.(?P<shape>[0-9]{1,19}(?:_[0-9]{1,19}){0,63})\.(?P<dtype>[a-z0-9_]+)\.(?P<format>[A-Za-z0-9_]+)\.bin"
)
# TorchAir itself takes the operator's name as it is, blanks and brackets included, and any digits for the time.
_FX = re.compile(
    rf"(?P<node>[^-]+)-(?P<target>.+)\.(?P<io>INPUT|OUTPUT)\.(?P<slot>{NUMBER})(?:\.(?P<part>{NUMBER}))?"
    rf"\.(?P<time>{NUMBER})\.npy"
)
_GOLDEN = re.compile(rf"(?P<op_name>.+)\.(?P<slot>{NUMBER})\.(?P<time>[1-9][0-9]{{9,19}})\.npy")
_EXCEPTION = re.compile(rf"exception_info\.(?P<stream>{NUMBER})\.(?P<task>{NUMBER})\.(?P<time>{NUMBER})")
_FIRST_KEYWORD = 10**6
_SHAPE_FORMAT = re.compile(r"[0-9]+(?:x[0-9]+)*")
_UNSAFE_IN_NAME = str.maketrans({"/": "_", "\\": "_", ".": "_", " ": "_"})


def safe_text(name: str) -> str:
    """A full name as most file names spell it: "/", "\\", "." and blanks become "_"."""
    return name.translate(_UNSAFE_IN_NAME)


@dataclass(frozen=True, slots=True)
class DumpName:
    """The pieces of a name; None where its form has no such piece.

    form    "npy", "bin", "raw" (bytes whose name tells shape and dtype), "overflow", "pt" (of torch.save) or "member"
            (one tensor of a file of another tool)
    slot    None in bin names: the file holds all tensors of its operator
    part    index in a list of tensors that is one argument
    shape   of raw files
    keyword name of a keyword argument, whose slot then is a number above all positions that stands for the name
    is_argument  TorchAir's: any argument or result, so the file may hold text or an object in place of a tensor
    """

    form: str
    op_type: str
    op_name: str
    task_id: int | None = None
    stream_id: int | None = None
    timestamp_us: int | None = None
    io: str | None = None
    slot: int | None = None
    part: int | None = None
    format: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    task_part: tuple[int, ...] = ()
    keyword: str | None = None
    is_argument: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether it is of any other .npy file, which no tool of a dump has named."""
        return not self.op_type and self.form == NPY and self.timestamp_us is None


_dump_name = maker(DumpName)


def parse_dump_name(text: str) -> DumpName | None:
    """Pieces of the name of a file that holds tensors, or an overflow; None for any other file."""
    if text.endswith(".npy"):
        return _npy(text)
    if text.endswith(".bin"):
        return _raw(text)
    if text.endswith(".json"):
        overflow = parse_overflow_json_name(text)
        return None if overflow is None else _of_bin(overflow)
    core = parse_core_file_name(text)
    if core is not None:
        kernel, stream, task, stamp = core
        return DumpName(BIN, "core", kernel, task, stream, stamp)
    exception = _EXCEPTION.fullmatch(text)
    if exception is not None:
        numbers = int(exception["task"]), int(exception["stream"]), int(exception["time"])
        return DumpName(BIN, "exception_info", f"{numbers[1]}_{numbers[0]}", *numbers)
    name = parse_bin_file_name(text)
    return None if name is None else _of_bin(name)


_CALL = re.compile(r"(?P<type>.+)\.[0-9]+\.(?:forward|backward)")
_MODULE_CALL = re.compile(r"(?:Module|Cell)\.(?:.+\.)?(?P<type>[^.]+)\.(?:forward|backward|parameters_grad)\.[0-9]+")
_OF_BACKWARD = re.compile(r"^(.+)\.(?:backward|parameters_grad)((?:\.[0-9]+)?)$")
_PROBE_TENSOR = re.compile(
    r"(?:(?P<record>.+)\.(?P<io>input|output|parameters)|(?P<gradients>.+\.parameters_grad\.[0-9]+))"
    r"\.(?P<slot>[^.]+)(?:\.(?P<part>[0-9]{1,9}))?\.(?P<form>pt|npy)"
)


def msprobe_type(record: str) -> str:
    """Function or class of a record: "Functional.linear" of "Functional.linear.0.forward", "Linear" of a module's."""
    match = _MODULE_CALL.fullmatch(record) or _CALL.fullmatch(record)
    return record if match is None else match["type"]


def msprobe_forward(record: str) -> str:
    """Record of the call whose backward pass, or whose gradients of parameters, a record is; any other as it is.

    `Torch.sqrt.0.backward` -> `Torch.sqrt.0.forward`, `Module.a.Net.parameters_grad.1` -> `Module.a.Net.forward.1`
    """
    return _OF_BACKWARD.sub(r"\1.forward\2", record)


def parse_msprobe_name(text: str) -> DumpName | None:
    """Pieces of the name of a file of msprobe that holds a tensor; None for any other file.

    Source: files that mindstudio-probe 26.2 wrote.
    """
    match = _PROBE_TENSOR.fullmatch(text)
    if match is None:
        return None
    record = match["record"] or match["gradients"]
    io = INPUT if match["io"] in ("input", "parameters") else OUTPUT
    slot, part = match["slot"], match["part"]
    is_number = slot.isascii() and slot.isdigit() and len(slot) < 10
    return DumpName(
        PT if match["form"] == PT else NPY,
        msprobe_type(record),
        record,
        io=io,
        slot=int(slot) if is_number else _FIRST_KEYWORD + zlib.crc32(slot.encode(errors="replace")) % 10**6,
        part=None if part is None else int(part),
        keyword=None if is_number else slot,
    )


def _of_bin(name: BinFileName) -> DumpName:
    return DumpName(
        OVERFLOW if name.is_overflow else BIN,
        name.op_type,
        name.op_name,
        name.task_id,
        name.stream_id,
        name.timestamp_us,
        task_part=name.task_part,
    )


def _npy(text: str) -> DumpName:
    pieces = data_file_pieces(text)
    if pieces is not None:
        op_type, op_name, task, stream, time, io, slot, tensor_format, dtype, _ = pieces
        is_shape = tensor_format[0] in "0123456789" and _SHAPE_FORMAT.fullmatch(tensor_format)
        # The tensors of an operator share its names, and many thousands of names are held.
        return _dump_name(
            NPY, intern(op_type), intern(op_name), int(task), int(stream), int(time), intern(io), int(slot), None,
            None if is_shape else intern(tensor_format), dtype,
        )  # fmt: skip
    fx = _fx(text)
    if fx is not None:
        return fx
    converted = _CONVERTED.fullmatch(text)
    name = parse_bin_file_name(converted["dump"]) if converted is not None else None
    if converted is not None and name is not None:
        numbers_of_bin = name.task_id, name.stream_id, name.timestamp_us
        return DumpName(NPY, name.op_type, name.op_name, *numbers_of_bin, converted["io"], int(converted["slot"]))
    golden = _GOLDEN.fullmatch(text)
    if golden is not None:
        return DumpName(NPY, "", golden["op_name"], None, None, int(golden["time"]), OUTPUT, int(golden["slot"]))
    return DumpName(NPY, "", text[:-4], io=OUTPUT, slot=0)


def _fx(text: str) -> DumpName | None:
    name = parse_torchair_name(text)
    if name is not None:
        keyword = name.slot if isinstance(name.slot, str) else None
        slot = name.slot if isinstance(name.slot, int) else _FIRST_KEYWORD + zlib.crc32(name.slot.encode()) % 10**6
        return DumpName(
            NPY, name.target, name.node, None, None, name.timestamp_us, name.io.lower(), slot, name.element,
            keyword=keyword, is_argument=True,
        )  # fmt: skip
    match = _FX.fullmatch(text)
    if match is None:
        return None
    part = None if match["part"] is None else int(match["part"])
    io, slot = match["io"].lower(), int(match["slot"])
    time = int(match["time"])
    return DumpName(NPY, match["target"], match["node"], None, None, time, io, slot, part, is_argument=True)


def _raw(text: str) -> DumpName | None:
    match = _RAW.fullmatch(text)
    name = parse_bin_file_name(match["dump"]) if match is not None else None
    if match is None or name is None or match["dtype"] not in dtypes.BY_NAME:
        return None
    return DumpName(
        RAW,
        name.op_type,
        name.op_name,
        name.task_id,
        name.stream_id,
        name.timestamp_us,
        match["io"],
        int(match["slot"]),
        format=match["format"],
        dtype=match["dtype"],
        shape=tuple(int(size) for size in match["shape"].split("_")),
    )


SYNC, MODEL, OPERATOR, FX, EXCEPTION, BARE = "sync", "model", "operator", "fx", "exception", "bare"
MSPROBE = "msprobe"
_RANK = re.compile(r"rank_([0-9]{1,20})")
_WORLD = re.compile(r"worldsize([0-9]{1,20})_global_rank([0-9]{1,20})")
_TIME = re.compile(r"[0-9]{14}")
_PROBE_STEP = re.compile(r"step([0-9]{1,18})")
_PROBE_RANK = re.compile(r"rank([0-9]{1,18})?|proc[0-9]{1,18}")
_NUMBER = re.compile(NUMBER)
_DEBUG_FILES = "debug_files"


@dataclass(frozen=True, slots=True)
class FolderLevels:
    """What the path of a folder says; None where its grammar has no such level.

    rank_id       process in the job; where only the device is known, the device
    model         net name or model name
    graph_id      graph id or model id
    iteration     the training step where the grammar has it, else the graph engine's own count
    data_index    the graph engine's own count
    is_constants  the folder of a graph's constants, which belong to no iteration
    rank_depth    leading parts of the path that lead to the folder of the rank; 0 when there is none
    """

    grammar: str = BARE
    rank_id: int | None = None
    device_id: int | None = None
    time: str | None = None
    model: str | None = None
    graph_id: int | None = None
    iteration: int | None = None
    data_index: int | None = None
    is_constants: bool = False
    rank_depth: int = 0

    @property
    def sort_key(self) -> tuple[int, str, int, int, int, str]:
        """Order in which folders were filled."""
        return (
            _or_first(self.rank_id),
            self.time or "",
            _or_first(self.iteration),
            _or_first(self.data_index),
            _or_first(self.graph_id),
            self.model or "",
        )


def parse_folder(parts: Sequence[str]) -> FolderLevels:
    """What the parts of a folder's absolute path say; the deepest grammar that fits wins."""
    return _parse_folder(tuple(parts))


@functools.lru_cache(maxsize=4096)
def _parse_folder(parts: tuple[str, ...]) -> FolderLevels:
    for first in range(len(parts) - 1, -1, -1):
        part = parts[first]
        if _RANK.fullmatch(part):
            found = _sync_levels(parts, first)
        elif _TIME.fullmatch(part):
            found = _async(parts, first)
        elif _WORLD.fullmatch(part):
            found = _fx_levels(parts, first)
        elif part == "extra-info":
            found = _exception_levels(parts[first:])
        elif _PROBE_STEP.fullmatch(part):
            found = _probe_levels(parts[first:])
        else:
            found = None
        if found is not None:
            return found
    return FolderLevels()


def _sync_levels(parts: tuple[str, ...], first: int) -> FolderLevels | None:
    tail = parts[first:]
    path = parse_sync_path("/".join((*tail, "x")))
    if path is not None and path.kind in (DATA, CONSTANTS):
        return FolderLevels(
            SYNC,
            path.rank_id,
            model=path.net_name,
            graph_id=path.graph_id,
            iteration=path.iteration,
            is_constants=path.kind == CONSTANTS,
            rank_depth=first + 1,
        )
    if len(tail) == 3 and tail[1] == _DEBUG_FILES and _NUMBER.fullmatch(tail[2]):
        return FolderLevels(SYNC, int(tail[0][5:]), iteration=int(tail[2]), rank_depth=first + 1)
    return None


def _async(parts: tuple[str, ...], first: int) -> FolderLevels | None:
    """With a step before the time when there is one; only such grammars may end without a model."""
    levels = None
    if first and _NUMBER.fullmatch(parts[first - 1]):
        levels = _async_levels("/".join((*parts[first - 1 :], "x")))
        above = first - 1
    if levels is None:
        above = first
        levels = _async_levels("/".join((*parts[first:], "x")))
    if levels is None:
        # A step completes the folders without models; it is not parsed further.
        found = parse_async_path("/".join(("0", *parts[first:], "x")))
        if found is None or found.model_name is not None:
            return None
        levels = FolderLevels(OPERATOR, found.device_id, found.device_id, found.time, None, None, found.iteration)
        levels = replace(levels, data_index=found.iteration)
    world = _WORLD.fullmatch(parts[above - 1]) if above else None
    return levels if world is None else replace(levels, rank_id=int(world[2]))


def _async_levels(text: str) -> FolderLevels | None:
    found = parse_async_path(text)
    if found is None:
        return None
    return FolderLevels(
        OPERATOR if found.model_name is None else MODEL,
        found.device_id,
        found.device_id,
        found.time,
        found.model_name,
        found.model_id,
        found.iteration if found.step_id is None else found.step_id,
        found.iteration,
    )


def _fx_levels(parts: tuple[str, ...], first: int) -> FolderLevels | None:
    found = parse_torchair_path("/".join((*parts[first:], "x")))
    if found is None:
        return None
    model = parts[first + 1]
    return FolderLevels(FX, found.global_rank, model=model, graph_id=found.graph_id, iteration=found.step)


def _exception_levels(tail: tuple[str, ...]) -> FolderLevels | None:
    if len(tail) == 3 and tail[1] == "data-dump" and _NUMBER.fullmatch(tail[2]):
        return FolderLevels(EXCEPTION, int(tail[2]), int(tail[2]))
    return None


def _probe_levels(tail: tuple[str, ...]) -> FolderLevels | None:
    """`step3/rank0`, or `step3/proc1234` of a process without ranks.   Source: msprobe"""
    rank = _PROBE_RANK.fullmatch(tail[1]) if len(tail) in (2, 3) else None
    if rank is None:
        return None
    return FolderLevels(MSPROBE, None if rank[1] is None else int(rank[1]), iteration=int(tail[0][4:]))


def _or_first(number: int | None) -> int:
    return -1 if number is None else number

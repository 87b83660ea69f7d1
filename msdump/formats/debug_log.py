"""Logs of PyTorch's DebugMode: the text of `DebugMode.debug_string()`, one line for each call, with hashes of tensors
where it ran under `DebugMode.log_tensor_hashes()`.

    # File: train.py:9 in forward, code: return torch.relu(self.fc(x))
    [nn.Mod] Net.fc
      aten::addmm(t: f32[8], t: f32[4, 4], t: f32[4, 8])  ->  t: f32[4, 8]  # {'input_hash': ((2.5, 12.0, 7.4), {}),
                                                                              'hash': 15.4}       (one line in the file)

A line is indented by two blanks for each call or module around it. A hash of an argument that is no tensor is None.
Which hash it is, the text does not say: "norm" is a float, "hash_tensor" an integer, and of several there is a tuple
for each tensor.

Source: text that PyTorch 2.13 wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from msdump.errors import FormatError
from msdump.formats.msprobe_json import Frame
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES

NORM, HASH_TENSOR = "norm", "hash_tensor"
_SUFFIXES = (".txt", ".log")
_ARROW = "  ->  "
_LOG = "  # {"
_TRITON = "[triton] "
_KERNEL_HASHES = re.compile(r"# (?P<side>pre|post)-kernel hashes: (?P<hashes>\{.*)", re.DOTALL)
_STACK = re.compile(r"# File: (?P<path>.+):(?P<line>[0-9]{1,9}) in .*?, code: (?P<code>.*)")
_CALL = re.compile(r"(?P<name>[^\s(](?:[^(\n]*[^\s(])?) ?\((?P<arguments>.*)\)", re.DOTALL)
_HEADER = re.compile(r"\[(?P<header>[^\]\n]+)\] (?P<tag>.*)", re.DOTALL)
_MODULE = "nn.Mod"
_TENSOR = re.compile(r"(?<![\w$])(?P<kind>dt|ft|t)(?:\$[0-9]+)?: (?P<dtype>[a-z][a-z0-9_]*)\[(?P<shape>[0-9, ]*)\]")
_TOKEN = re.compile(
    r"\s*(?:(?P<open>[\[({])|(?P<close>[\])}])|(?P<number>-?(?:nan|inf|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?))\b"
    r"|None\b|(?P<key>'[^']*'|[A-Za-z_]\w*)(?P<colon>:)?|,)"
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_MAX_DEPTH = 100
_MAX_DIGITS = 20  # of an integer of 64 bits
_DTYPES = {
    "u": "uint", "i": "int", "f": "float", "bf": "bfloat", "c": "complex",
}  # fmt: skip
_NAMED_DTYPES = {
    "b8": "bool", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e8m0fnu": "float8_e8m0",
}  # fmt: skip
_PLAIN_DTYPE = re.compile(r"(?P<kind>bf|[uifc])(?P<bits>[0-9]{1,3})")

Number = float | int


@dataclass(frozen=True, slots=True)
class LoggedTensor:
    """A tensor that a call read or made, as its line tells.

    dtype    a name of the dtype table; where that has none, the log's own
    hashes   name of each hash and its value, in the log's order; () where the log holds none of it
    """

    dtype: str
    shape: tuple[int, ...]
    hashes: tuple[tuple[str, Number], ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call, in the order of the log.

    line      its number in the file, from 1 on
    name      as the log has it: "aten::addmm", "aten::add.Tensor", "torch.relu", "[triton] kernel"
    depth     half the blanks before it
    module    name of the innermost module around it, where the log tells it, else ""
    source    line of the script, where the log tells it (`record_stack_trace`)
    inputs    tensors among its arguments, in their order
    is_whole  False where what it read or made is distributed or fake, so that no hash belongs to it
    """

    line: int
    name: str
    depth: int
    module: str
    source: Frame | None
    inputs: tuple[LoggedTensor, ...]
    outputs: tuple[LoggedTensor, ...]
    is_whole: bool = True

    @property
    def operator(self) -> str:
        """The operator as PyTorch spells it elsewhere: "aten.addmm.default", "aten.add.Tensor", "triton.kernel"."""
        if self.name.startswith(_TRITON):
            return f"triton.{self.name[len(_TRITON) :]}"
        namespace, _, name = self.name.partition("::")
        return f"{namespace}.{name if '.' in name else f'{name}.default'}"

    @property
    def is_operator(self) -> bool:
        """Whether it is one that computes: no function of torch around it, and no step of a redistribution."""
        return self.is_whole and ("::" in self.name or self.name.startswith(_TRITON))


@dataclass(slots=True)
class _Reading:
    """What the lines so far mean for the next ones."""

    path: str
    calls: list[LoggedCall] = field(default_factory=list)
    modules: list[tuple[int, str]] = field(default_factory=list)
    source: Frame | None = None

    def error(self, number: int, expected: str, got: str, advice: str = "") -> FormatError:
        return FormatError(f"{self.path}, line {number}: expected {expected}, got {got[:80]!r}.{advice}")


def operator_names(calls: Iterable[LoggedCall]) -> list[str]:
    """A name of its own for each operator: "aten.addmm.default-op0", "-op1", in the order of the log."""
    counts: dict[str, int] = {}
    names = []
    for call in calls:
        number = counts.get(call.operator, 0)
        counts[call.operator] = number + 1
        names.append(f"{call.operator}-op{number}")
    return names


def is_debug_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path has the name of a log, and is a file: no file of a dump ends as logs do."""
    return os.fspath(path).lower().endswith(_SUFFIXES) and os.path.isfile(path)


def read_debug_log(path: str | os.PathLike[str]) -> list[LoggedCall]:
    """Calls of a log in its order.

    Edges:   modules, annotations and lines of scripts are no calls: calls tell those around them.
    Raises:  FormatError for what DebugMode does not write, for a line that was cut off, and for a file without a call;
             OSError.
    """
    reading = _Reading(os.fspath(path))
    try:
        text = read_file(path, GRAPH_BYTES).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{reading.path}: expected UTF-8 text, got byte {error.object[error.start]}.") from error
    for number, line in _logical_lines(text):
        _read_line(reading, number, line)
    if not reading.calls:
        raise FormatError(
            f"{reading.path}: expected calls as DebugMode.debug_string() writes them, got a text without any."
        )
    return reading.calls


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line; one without an indent goes on with the line before, but for the first one."""
    parts: list[str] = []
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip():
            continue
        if parts and not line.startswith(" "):
            parts.append(line)
            continue
        if parts:
            yield start, "\n".join(parts)
        parts, start = [line], number
    if parts:
        yield start, "\n".join(parts)


def _read_line(reading: _Reading, number: int, line: str) -> None:
    body = line.lstrip(" ")
    depth = (len(line) - len(body)) // 2
    stack = _STACK.fullmatch(body)
    kernel = _KERNEL_HASHES.fullmatch(body)
    header = _HEADER.fullmatch(body)
    if stack is not None:
        reading.source = Frame(stack["path"], int(stack["line"]), stack["code"])
    elif kernel is not None:
        _add_kernel_hashes(reading, number, kernel["side"], kernel["hashes"])
    elif header is not None and not body.startswith(_TRITON):
        reading.modules = [one for one in reading.modules if one[0] < depth]
        if header["header"].startswith(_MODULE):
            reading.modules.append((depth, header["tag"]))
    elif not body.startswith("-> output: "):
        reading.modules = [one for one in reading.modules if one[0] < depth]
        reading.calls.append(_call(reading, number, depth, body))


def _call(reading: _Reading, number: int, depth: int, body: str) -> LoggedCall:
    text, mark, log = body.rpartition(_LOG)
    if not mark:
        text, log = body, ""
    call, _, result = text.partition(f"){_ARROW}")
    match = _CALL.fullmatch(f"{call})" if result else call)
    if match is None:
        raise reading.error(
            number, "a call as DebugMode.debug_string() writes it, NAME(ARGUMENTS)  ->  RESULT", body,
            " Was it cut off, or is other output among the lines?",
        )  # fmt: skip
    hashes = _hashes(reading, number, "{" + log) if mark else {}
    arguments, results = (list(_TENSOR.finditer(part)) for part in (match["arguments"], result))
    return LoggedCall(
        number,
        match["name"],
        depth,
        reading.modules[-1][1] if reading.modules else "",
        reading.source,
        _tensors(reading, number, arguments, hashes.get("input_hash", [])),
        _tensors(reading, number, results, hashes.get("hash", [])),
        all(tensor["kind"] == "t" for tensor in (*arguments, *results)),
    )


def _add_kernel_hashes(reading: _Reading, number: int, side: str, text: str) -> None:
    """A kernel's line comes first, then those of the hashes before and after it of the tensors among its arguments."""
    if not reading.calls or not reading.calls[-1].name.startswith(_TRITON):
        raise reading.error(number, "hashes of a kernel behind the line of that kernel", text)
    kernel = reading.calls[-1]
    values = [value for values in _hashes(reading, number, text).values() for value in values]
    tensors = _hashed(reading, number, [replace(tensor, hashes=()) for tensor in kernel.inputs], values)
    changed = replace(kernel, inputs=tensors) if side == "pre" else replace(kernel, outputs=tensors)
    reading.calls[-1] = changed


def _tensors(
    reading: _Reading, number: int, found: Sequence[re.Match[str]], values: Sequence[Number]
) -> tuple[LoggedTensor, ...]:
    tensors = []
    for match in found:
        sizes = [size.strip() for size in match["shape"].split(",")] if match["shape"].strip() else []
        if not all(size.isdigit() and len(size) < _MAX_DIGITS for size in sizes):
            raise reading.error(number, "a shape", match[0])
        tensors.append(LoggedTensor(_dtype(match["dtype"]), tuple(map(int, sizes))))
    return _hashed(reading, number, tensors, values)


def _hashed(
    reading: _Reading, number: int, tensors: Sequence[LoggedTensor], values: Sequence[Number]
) -> tuple[LoggedTensor, ...]:
    """Tensors with their hashes, as many for each."""
    if not values:
        return tuple(tensors)
    count = len(values) // len(tensors) if tensors else 0
    if count * len(tensors) != len(values):
        raise reading.error(number, f"as many hashes for each of {len(tensors)} tensors", f"{len(values)} hashes")
    return tuple(
        replace(tensor, hashes=tuple((_name(value), value) for value in values[index * count : (index + 1) * count]))
        for index, tensor in enumerate(tensors)
    )


def _name(value: Number) -> str:
    return NORM if isinstance(value, float) else HASH_TENSOR


def _dtype(text: str) -> str:
    plain = _PLAIN_DTYPE.fullmatch(text)
    if plain is not None:
        return _DTYPES[plain["kind"]] + plain["bits"]
    return _NAMED_DTYPES.get(text, text)


def _hashes(reading: _Reading, number: int, text: str) -> dict[str, list[Number]]:
    """Numbers of a printed dictionary by its keys, in their order; what they lie in, and what is none, is left out."""
    found: dict[str, list[Number]] = {}
    open_ones: list[str] = []
    key = ""
    place = 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or (place and not open_ones) or (place == 0 and match["open"] != "{"):
            raise _no_hashes(reading, number, text[place:])
        place = match.end()
        if match["open"]:
            open_ones.append(_PAIRS[match["open"]])
            if len(open_ones) > _MAX_DEPTH:
                raise _no_hashes(reading, number, text)
        elif match["close"]:
            if open_ones.pop() != match["close"]:
                raise _no_hashes(reading, number, text)
        elif match["key"]:
            if not match["colon"]:
                raise _no_hashes(reading, number, match["key"])
            if len(open_ones) == 1:
                key = match["key"].strip("'")
                found.setdefault(key, [])
        elif match["number"]:
            found.setdefault(key, []).append(_number(reading, number, match["number"]))
    if open_ones or not place:
        raise _no_hashes(reading, number, text)
    return found


def _number(reading: _Reading, number: int, text: str) -> Number:
    if not text.isdigit():
        return float(text)
    if len(text) > _MAX_DIGITS:
        raise _no_hashes(reading, number, text)
    return int(text)


def _no_hashes(reading: _Reading, number: int, got: str) -> FormatError:
    return reading.error(
        number, 'numbers as hash_fn="norm" and hash_fn="hash_tensor" give them', got,
        " Was it cut off, or does a function of your own make the hashes?",
    )  # fmt: skip

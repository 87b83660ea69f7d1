"""`operators.csv` as rows, and the row of an operator by the type that a dump names.

A row holds operators that compute the same and behave alike. Its columns:

kind         what they compute; rows of one kind are one operator in different words, or with other traits
mindspore, ge, aten, onnx
             names in each dialect, without overloads; "*" at the end stands for any further letters
other        names of further libraries of PyTorch, with the library before a dot
stems        beginnings of names, in lower case without separators, of operators that no row lists
traits       words of `TRAITS`
operands     roles of the inputs by slot: "data weight bias"; of codes "data.codes data.scale data.zero", "@N" is the
             axis of a scale for each channel, "-" a slot without a role, "..." repeats the last three
arguments    ATen's names of the arguments, where dumps show numbers among them
outputs      roles of the outputs by dialect: "mindspore:result,mean aten:result,mean"
memory       "0>1" input 0 is overwritten and is output 1, "0" it is overwritten, "0~0" output 0 is a view of it
jumps        arguments at which the derivative of the operator's function jumps
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MINDSPORE, GE, ATEN, ONNX = "mindspore", "ge", "aten", "onnx"
NAMED = (MINDSPORE, GE, ATEN, ONNX)
# Dialects whose names have neither library nor overload, in the order in which a type is looked up.
_PLAIN = tuple(dialect for dialect in NAMED if dialect != ATEN)
_OTHER = "other"
ATEN_TYPE = re.compile(r"^(?:aten|prims|torch|npu)[._](.+)$")
MSPROBE_TYPE = re.compile(r"^(?:Functional|Torch|Tensor|Aten|VF|NPU|Mint|MintFunctional|Jit)\.(\w+)$")
_VERSION_OF_GE = re.compile(r"V[0-9]+$|D$")
TRAITS: Mapping[str, str] = {
    "adds-up": "scatters that may add to what lies there",
    "auxiliary-logs": "outputs beside the first hold -Inf by design: logarithms of a chance of 0",
    "bounded": "its values stay small however large its argument is",
    "chooses": "leaves elements out, or puts others in their place, without a look at what they are",
    "brings-data": "its overloads `source` give a tensor memory from elsewhere, as what a loader's process sent",
    "collective": "other processes have a part in its results",
    "commutative": "operands may stand in any order",
    "compares": "its result jumps where its operands are equal",
    "cuts-off": "an activation that only cuts values off, which a range of codes can do as well",
    "dequantises": "makes numbers of codes, or of the sums of their products",
    "exponential": "takes the exponential of an operand: an absolute error of that is a relative one of the result",
    "float-status": "by which a loss scaler finds gradients that are not finite; its output holds the answer",
    "foldable": "a range of codes, or the operator before it, may have taken it in",
    "in-floats": "quantises and gives back at once the numbers that the codes mean",
    "layout": "shows, copies, casts or fills; computes nothing, and each framework needs others",
    "literal": "reads what the script wrote down, as a tensor made of a Python number",
    "makes-workspace": "its last result is memory of its kernel's own, of another size for another dtype",
    "moves": "each element of its results is an element of an input",
    "normalises": "an optimizer that divides a gradient by its own size: what is next to nothing makes whole steps",
    "on-codes": "has codes, or a weight in codes, where an operator of a model in floats has numbers",
    "one-value": "all elements of its result are alike, as the script asked for",
    "overwrites-first": "overwrites its first argument without reading it",
    "places": "an Inf of its result that no input has is a constant that the script chose",
    "prepares-weight": "packs a weight for other operators",
    "product": "multiplies matrices, of which the second may be given transposed",
    "proportional": "each element of its results is as exact as the elements that it is made of",
    "quantises": "rounds numbers to codes; its first input holds them, its first output the codes",
    "random": "draws numbers: its results do not follow from its inputs",
    "reads-shape": "reads the shape and the dtype of its inputs, and none of their values",
    "reads-workspace": "its last operand is such memory",
    "receives": "overwrites the argument `tensors` with what another process sends",
    "rescales": "may turn sums of products of codes into numbers",
    "routes": "hands elements to where its other operand was largest",
    "scales-sums": "a product of codes that scales its sums itself: data, weight and scale are its first inputs",
    "selects": "its result jumps where two elements of its input change their order",
    "sorts": "picks elements by their size, and tells where they lay",
    "steps": "its result goes from one whole number to the next",
    "stops-inf": "its result may be finite where its input holds an Inf: softmax, extremes, choices, bounded functions",
    "stops-negative-inf": "makes a finite number of -Inf",
    "sums": "adds up elements, which may cancel",
    "sums-of-codes": "its results are sums in int32, which another operator scales",
    "termwise": "an error of an operand is an error of the result, and none is larger",
    "tests": "only looks at values, as comparisons do",
    "tests-finite": "says of each element whether it is finite",
    "unscales": "by which a loss scaler finds gradients that are not finite; it sets its input `found_inf`",
    "updates": "an optimizer's step in one operator",
    "unset": "returns memory without writing it",
}


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What an operator does to the memory of its inputs.

    overwrites  input slots that it writes
    results     output slot -> overwritten input slot that it is
    views       output slot -> input slot whose bytes it shows unchanged under another shape
    """

    overwrites: tuple[int, ...] = ()
    results: Mapping[int, int] = field(default_factory=dict)
    views: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; see the module for its columns."""

    kind: str
    names: Mapping[str, tuple[str, ...]]
    other: tuple[str, ...]
    stems: tuple[str, ...]
    traits: frozenset[str]
    operands: tuple[str, ...]
    arguments: tuple[str, ...]
    outputs: Mapping[str, tuple[str, ...]]
    memory: MemoryUse | None
    jumps: tuple[float, ...]

    def has(self, trait: str) -> bool:
        """Whether the row has one of `TRAITS`."""
        return trait in self.traits


@functools.cache
def rows() -> tuple[Row, ...]:
    """All rows in the order of the file.   Raises: ValueError for a word that is no trait."""
    text = Path(__file__).with_name("operators.csv").read_text(encoding="utf-8")
    return tuple(map(_row, csv.DictReader(text.splitlines())))


def _row(cells: Mapping[str, str]) -> Row:
    traits = frozenset(cells["traits"].split())
    if not traits <= TRAITS.keys():
        raise ValueError(
            f"operators.csv: {cells['kind']}: expected traits of TRAITS, got {sorted(traits - TRAITS.keys())}."
        )
    outputs = (part.partition(":") for part in cells["outputs"].split())
    return Row(
        cells["kind"],
        {dialect: tuple(cells[dialect].split()) for dialect in NAMED},
        tuple(cells["other"].split()),
        tuple(cells["stems"].split()),
        traits,
        tuple(cells["operands"].split()),
        tuple(cells["arguments"].split()),
        {dialect: tuple(roles.split(",")) for dialect, _, roles in outputs},
        _memory_use(cells["memory"].split()) if cells["memory"] else None,
        tuple(map(float, cells["jumps"].split())),
    )


def _memory_use(words: Iterable[str]) -> MemoryUse:
    overwrites, results, views = [], {}, {}
    for word in words:
        match = re.fullmatch(r"(?P<input>[0-9]+)(?:(?P<how>[>~])(?P<output>[0-9]+))?", word)
        if match is None:
            raise ValueError(f'operators.csv: expected memory such as "0>1", got "{word}".')
        source = int(match["input"])
        if match["how"] == "~":
            views[int(match["output"])] = source
            continue
        overwrites.append(source)
        if match["how"]:
            results[int(match["output"])] = source
    return MemoryUse(tuple(overwrites), results, views)


# -- from a type to its row --------------------------------------------------------------------------------------------


@functools.cache
def by_name(dialect: str) -> Mapping[str, Row]:
    """The row of each name of a dialect; of several rows that which computes comes first."""
    table: dict[str, Row] = {}
    for row in sorted(rows(), key=lambda row: row.has("layout")):
        for name in row.names[dialect]:
            if not name.endswith("*"):
                table.setdefault(name, row)
    return table


@functools.cache
def _patterns(dialect: str) -> tuple[tuple[re.Pattern[str], Row], ...]:
    """Names that stand for several, the longest first; dots may be underscores, as names of files have them."""
    named = [(name, row) for row in rows() for name in (row.other if dialect == _OTHER else row.names[dialect])]
    wide = sorted((pair for pair in named if "*" in pair[0]), key=lambda pair: -len(pair[0]))
    return tuple((re.compile(re.escape(name).replace(r"\*", ".*").replace(r"\.", "[._]")), row) for name, row in wide)


@functools.lru_cache(maxsize=1 << 14)
def row_of(op_type: str) -> Row | None:
    """The row of an operator; None where no row has it.

    op_type  as MindSpore, GE or ONNX spell it, as ATen does ("aten.add_.Tensor", in names of files "aten_add__Tensor")
             or as msprobe does ("Functional.gelu")
    Edges:   an operator in place ("relu_") without a row has that of the operator that is not; a version of GE
             ("ReluV2", "TransposeD") has the row of the name without it.
    """
    name = library_name(op_type)
    if name:
        table = by_name(ATEN)
        return table.get(name) or table.get(name.rstrip("_")) or _wide(ATEN, name)
    for dialect in _PLAIN:
        if op_type in by_name(dialect):
            return by_name(dialect)[op_type]
    plain = _VERSION_OF_GE.sub("", op_type)
    for dialect in _PLAIN:
        row = by_name(dialect).get(plain) or _wide(dialect, op_type)
        if row is not None:
            return row
    return _wide(_OTHER, op_type)


def _wide(dialect: str, name: str) -> Row | None:
    return next((row for pattern, row in _patterns(dialect) if pattern.fullmatch(name)), None)


@functools.lru_cache(maxsize=1 << 14)
def library_name(op_type: str) -> str:
    """What ATen or msprobe call an operator, without overload; "" for other types."""
    msprobe = MSPROBE_TYPE.match(op_type)
    if msprobe:
        return msprobe[1]
    match = ATEN_TYPE.match(op_type)
    if match is None:
        return ""
    name, _, overload = match[1].partition(".")
    if overload or op_type[len(op_type) - len(match[1]) - 1] == ".":
        return name
    # In names of files the dots are underscores: the name is the longest beginning that is one. What follows it is the
    # overload, or the rest of the name of a gradient.
    table = by_name(ATEN)
    ends = [index for index, letter in enumerate(name) if letter == "_" and index > 0]
    names = [name[:end] for end in reversed(ends) if name[:end] in table and "backward" not in name[end:]]
    return names[0] if names else name[: ends[-1]] if ends else name


# -- from the words of a name to traits --------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LIBRARY = re.compile(r"^(?:aten|prims|torch|npu)[._]+")
_VERSION = re.compile(r"V[0-9]+$")
_OVERLOADS = frozenset({"default", "scalar", "tensor", "names", "out"})


@functools.cache
def _stems() -> Mapping[str, frozenset[str]]:
    """Traits by the words of a name, joined."""
    return {stem: row.traits for row in rows() for stem in row.stems}


def begins_with(op_type: str, trait: str) -> bool:
    """Whether an operator has a trait by its row, or without a row because the first words of its type are a name that
    has it: overloads (`aten.max.dim`) and versions follow them.
    """
    row = row_of(op_type)
    return trait in (_traits_of_beginnings(op_type) if row is None else row.traits)


@functools.lru_cache(maxsize=4096)
def _traits_of_beginnings(op_type: str) -> frozenset[str]:
    parts, table = words(op_type), _stems()
    return frozenset().union(*(table.get("".join(parts[:count]), ()) for count in range(1, len(parts) + 1)))


def is_called(op_type: str, trait: str) -> bool:
    """As `begins_with`, but all words of the type are the name; overloads may follow."""
    row = row_of(op_type)
    if row is not None:
        return trait in row.traits
    parts = words(op_type)
    while parts and parts[-1] in _OVERLOADS:
        parts.pop()
    return trait in _stems().get("".join(parts), ())


def words(op_type: str) -> list[str]:
    """Words of a type in lower case, without library and version: "aten.max_pool2d.default" -> max pool 2 d default."""
    return [word.lower() for word in _WORD.findall(_VERSION.sub("", _LIBRARY.sub("", op_type)))]

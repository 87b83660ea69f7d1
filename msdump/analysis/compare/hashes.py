"""A log of PyTorch's DebugMode against a dump or another log: the hashes that it holds in place of tensors are computed
of the tensors of the dump, and compared.

norm         sum of the absolute values in float64; what is neither float nor complex is made float32 before
hash_tensor  exclusive or of the 64 bits of all elements: as float64, of complex ones both parts, else as int64

Two norms agree when they are apart by some roundings of the dtype; hash_tensor must be equal. Where both are there and
the norms are equal, hash_tensor decides: signs change no norm. It decides up to the first tensor that agrees by its
norm and has other bits: behind that, elements may be rounded in opposite directions, which changes no norm either.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from msdump.analysis._payload import Progress, has_same_bytes, key_of
from msdump.analysis.compare.common_tensors import common_tensors, host_shape, is_of_one_size
from msdump.analysis.compare.mapping import OperatorMap, read_mapping, unused_rules
from msdump.analysis.compare.pairing import OperatorPair
from msdump.analysis.compare.pipeline import ComparedSide, StepPair, align_sides, compare_pairs
from msdump.analysis.compare.result import AGREES, DIFFERS, NOT_COMPARED, Comparison, Hashes, TensorResult
from msdump.analysis.distance.bounds import bounds_of
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.steps import Operator, Slot, Step, StepKey, nothing_selected, read_steps
from msdump.errors import ConfigError, FormatError
from msdump.formats.debug_log import (
    HASH_TENSOR,
    NORM,
    LoggedCall,
    LoggedTensor,
    Number,
    is_debug_log,
    operator_names,
    read_debug_log,
)
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.paths.parse import DumpName, FolderLevels
from msdump.formats.paths.sync import safe_op_type
from msdump.formats.selection import StepSelection
from msdump.storage.plain import readable, unreadable
from msdump.tables.messages import SEMICOLON, joined, message
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import DEFAULT_FORMAT, INPUT, OUTPUT

DEBUG_LOG = "debug log"  # form of the file of a tensor of which there are hashes only
_NO_HASH = "the log holds no hash of it"
_ROUNDINGS = 16  # of the dtype, that two norms may be apart
_SUMMING = 1e-12  # what the order costs in which float64 are added
_BLOCK = 1 << 22  # elements that are made float64 at a time
_ADVICE = (
    "DebugMode writes them inside of `with DebugMode() as mode, DebugMode.log_tensor_hashes(hash_inputs=True):`; "
    "save mode.debug_string()."
)


def compare_hashes(
    mine: DumpDir,
    golden: DumpDir,
    selection: StepSelection,
    mapping: OperatorMap | str | os.PathLike[str] | None = None,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """As `compare_dumps`, where one of both or both are logs.

    selection  of the steps of a dump; a log has none
    tolerance  how far two norms may be apart, relative to the larger one, instead of some roundings of the dtype
    Raises:    ConfigError when a log has no hashes, two logs have no hash in common, a dump holds several ranks, or no
               operator is on both sides; FormatError for a damaged log.
    """
    sides = _side(mine, selection), _side(golden, selection)
    names = _common_hashes(sides)
    operator_map = mapping if isinstance(mapping, OperatorMap) else read_mapping(mapping) if mapping else OperatorMap()
    own, other = (ComparedSide(side.steps, side.graphs, side.is_same) for side in sides)
    pairs = align_sides(own, other, operator_map)
    if not any(pair.pairing.pairs for pair in pairs):
        raise ConfigError(
            f"{mine.path} and {golden.path}: expected operators in common, got none. A log names operators of PyTorch "
            "as they ran, such as aten::addmm: compare it with a dump of --torch-eager, or another log."
        )
    judge = _HashJudge(sides, names, tolerance)
    judge.measure(pairs, progress)

    def damaged() -> list[tuple[str, FormatError]]:
        return [*mine.damaged, *golden.damaged, *judge.damaged]

    comparison = compare_pairs([mine.path, golden.path], (own, other), pairs, operator_map, judge.judge, damaged)
    operators = (operator for side in sides for step in side.steps for operator in step.operators)
    inputs = (tensor for operator in comparison.operators for tensor in operator.inputs)
    has_inputs = any(tensor.status in (AGREES, DIFFERS) for tensor in inputs)
    notes = [*unused_rules(operator_map, operators), _note(names)]
    if not has_inputs:
        text = message("the log holds no hashes of inputs: DebugMode.log_tensor_hashes(hash_inputs=True) writes them")
        notes.append(text)

    def is_same(left: DumpedTensor, right: DumpedTensor) -> bool:
        return next(side for side in sides if side.has(left)).is_same(left, right)

    return replace(comparison, notes=tuple(notes), hashes=Hashes(names, has_inputs, is_same))


def log_place(operator: Operator) -> str:
    """File and line of an operator of a log; "" for one of a dump."""
    tensor = next((tensor for _, _, tensor in operator.all_tensors()), None)
    if tensor is None or tensor.file.form != DEBUG_LOG:
        return ""
    return message("line {number} of {file}", number=operator.position, file=Path(tensor.path).name)


def norm_hash(array: Array) -> float:
    """The hash "norm" of a tensor of numbers.   Edges: NaN where an element is; 0 for an empty tensor."""
    total = 0.0
    with np.errstate(all="ignore"):
        for block in _blocks(array):
            if block.dtype.kind in "iub":
                block = block.astype(np.float32)
            wide = block.astype(np.complex128 if block.dtype.kind == "c" else np.float64)
            total += float(np.abs(wide).sum())
    return total


def hash_tensor_hash(array: Array) -> int:
    """The hash "hash_tensor" of a tensor of numbers, from 0 to 2**64 - 1.   Edges: 0 for an empty tensor."""
    found = np.uint64(0)
    with np.errstate(all="ignore"):
        for block in _blocks(array):
            kind = block.dtype.kind
            wide = block.astype(np.int64 if kind in "iub" else np.complex128 if kind == "c" else np.float64)
            found ^= np.bitwise_xor.reduce(wide.view(np.uint64))
    return int(found)


_HASHES = {NORM: norm_hash, HASH_TENSOR: hash_tensor_hash}


def _blocks(array: Array) -> Iterable[Array]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))


@dataclass(frozen=True, eq=False)
class _Side:
    """One side: steps, and the hashes of their tensors.

    logged   hashes of a log's tensors by the number that each has as `offset`; None for a dump
    """

    path: Path
    steps: Sequence[Step]
    graphs: GraphFiles
    logged: Sequence[LoggedTensor] | None = None
    _known: dict[tuple[object, ...], Number | None] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Hashes that a log holds, in its order; None for a dump, of which all can be computed."""
        if self.logged is None:
            return None
        return tuple(dict.fromkeys(name for tensor in self.logged for name, _ in tensor.hashes))

    def has(self, tensor: DumpedTensor) -> bool:
        """Whether a tensor of either side is one of this side, or of a side that is the same."""
        if self.logged is None:
            return tensor.file.form != DEBUG_LOG
        return tensor.file.form == DEBUG_LOG and tensor.path == os.fspath(self.path)

    def hash_of(self, tensor: DumpedTensor, name: str) -> Number | None:
        """None where the log has none of it, and of what holds no numbers.   Raises: FormatError; OSError."""
        if self.logged is not None:
            return dict(self.logged[tensor.offset].hashes).get(name)
        key = (name, *key_of(tensor), tensor.shape)
        if key not in self._known:
            array = tensor.load_host()
            self._known[key] = _HASHES[name](array) if array.dtype.kind in "fiubcV" else None
        return self._known[key]

    def is_same(self, left: DumpedTensor, right: DumpedTensor) -> bool:
        if self.logged is None:
            return has_same_bytes(left, right)
        one, other = self.logged[left.offset], self.logged[right.offset]
        return bool(one.hashes) and one == other


def _side(dump: DumpDir, selection: StepSelection) -> _Side:
    if is_debug_log(dump.path):
        return _side_of_log(dump)
    with dump.listed_once():
        graphs = GraphFiles(dump)
        steps = [with_inputs(step, graphs.of(step.key)) for step in read_steps(dump, selection)]
    if not any(step.operators for step in steps):
        raise nothing_selected(dump, selection, expected="a dump with tensors")
    ranks = {step.key.rank_id for step in steps}
    if len(ranks) > 1:
        raise ConfigError(f"rank: expected one beside a log, got {len(ranks)} in {dump.path}. Say which (--rank N).")
    return _Side(dump.path, steps, graphs)


def _side_of_log(dump: DumpDir) -> _Side:
    with readable(dump.path):
        calls = [call for call in read_debug_log(dump.path) if call.is_operator]
    logged: list[LoggedTensor] = []
    names = operator_names(calls)
    operators = [_operator(dump.path, call, name, logged) for call, name in zip(calls, names, strict=True)]
    if not any(tensor.hashes for tensor in logged):
        raise ConfigError(f"{dump.path}: expected hashes of tensors, got a log without any. {_ADVICE}")
    return _Side(dump.path, [Step(StepKey(None, None, None), tuple(operators))], GraphFiles(dump), logged)


def _operator(path: Path, call: LoggedCall, name: str, logged: list[LoggedTensor]) -> Operator:
    """A call as an operator, whose tensors have no bytes; they go to `logged`."""
    op_type = safe_op_type(call.operator)
    full_name = f"{call.module}/{name}" if call.module else name
    sides: dict[str, dict[Slot, DumpedTensor]] = {INPUT: {}, OUTPUT: {}}
    for io, tensors in ((INPUT, call.inputs), (OUTPUT, call.outputs)):
        for slot, tensor in enumerate(tensors):
            file = DumpedFile(
                os.fspath(path), FolderLevels(), DumpName(DEBUG_LOG, op_type, name, io=io, slot=slot), path.name,
                call.line, full_name,
            )  # fmt: skip
            known = tensor.dtype in dtypes.BY_NAME
            size = math.prod(tensor.shape) * dtypes.dtype(tensor.dtype).bits // 8 if known else 0
            sides[io][Slot(slot)] = DumpedTensor(
                file, io, slot, tensor.dtype, tensor.shape, DEFAULT_FORMAT, len(logged), size, full_name
            )
            logged.append(tensor)
    return Operator(op_type, name, full_name, call.line, None, None, sides[INPUT], sides[OUTPUT])


def _common_hashes(sides: Sequence[_Side]) -> tuple[str, ...]:
    """Hashes to compare, in the order of the first log."""
    held = [side.names for side in sides if side.names is not None]
    common = tuple(name for name in held[0] if all(name in names for names in held))
    if not common:
        texts = " against ".join(" and ".join(names) for names in held)
        raise ConfigError(
            f"{sides[0].path} and {sides[1].path}: expected a hash that both logs hold, got {texts}. "
            'log_tensor_hashes(hash_fn=["norm", "hash_tensor"]) writes both.'
        )
    return common


def _note(names: Sequence[str]) -> str:
    told = {
        NORM: message(
            "norm is the sum of absolute values: tensors with other signs or in another order have the same, and "
            "so have all results of a softmax"
        ),
        HASH_TENSOR: message(
            "hash_tensor is an exclusive or of all bits: one rounding changes it, another order does not"
        ),
    }
    return message("compared by hashes: {hashes}", hashes=joined(SEMICOLON, (told[name] for name in names)))


_HASH = message("hash")


class _HashJudge:
    """Verdicts on tensors by their hashes.   damaged: (file, what is wrong) of files that could not be read"""

    def __init__(self, sides: Sequence[_Side], names: Sequence[str], tolerance: float | None) -> None:
        self._sides = sides
        self._names = names
        self._tolerance = tolerance
        self._problems: dict[str, FormatError] = {}
        self._is_rounded = False

    @property
    def damaged(self) -> list[tuple[str, FormatError]]:
        return list(self._problems.items())

    def measure(self, pairs: Sequence[StepPair], progress: Progress | None) -> None:
        """Compute all hashes that will be asked for, and tell how far that is."""
        tensors = [
            (side, tensor)
            for step in pairs
            for pair in step.pairing.pairs
            for _, _, *both in common_tensors(pair.mine, pair.golden)
            if is_of_one_size(*both)
            for side, tensor in zip(self._sides, both, strict=True)
            if side.logged is None
        ]
        total, done = sum(tensor.size_bytes for _, tensor in tensors), 0
        for side, tensor in tensors:
            for name in self._names:
                self._hash(side, tensor, name)
            done += tensor.size_bytes
            if progress is not None:
                progress(done, total)

    def _hash(self, side: _Side, tensor: DumpedTensor, name: str) -> Number | None:
        try:
            return side.hash_of(tensor, name)
        except FormatError as error:
            self._problems.setdefault(tensor.path, error)
        except OSError as error:
            self._problems.setdefault(tensor.path, unreadable(tensor.path, error))
        return None

    def judge(self, pair: OperatorPair, io: str, slot: Slot, mine: DumpedTensor, golden: DumpedTensor) -> TensorResult:
        """The verdict on one tensor of a pair of operators."""
        if not is_of_one_size(mine, golden):
            shapes = [str(list(host_shape(tensor))) for tensor in (mine, golden)]
            text = message("shape {mine} against {golden}", mine=shapes[0], golden=shapes[1])
            return TensorResult(io, slot, mine, golden, DIFFERS, text)
        found = {}
        for name in self._names:
            x, y = (self._hash(side, tensor, name) for side, tensor in zip(self._sides, (mine, golden), strict=True))
            if x is not None and y is not None:
                found[name] = x, y
        if not found:
            problem = next((self._problems[one.path] for one in (mine, golden) if one.path in self._problems), None)
            return TensorResult(io, slot, mine, golden, NOT_COMPARED, _NO_HASH if problem is None else str(problem))
        return TensorResult(io, slot, mine, golden, *self._verdict(found, mine.true_dtype, golden.true_dtype))

    def _verdict(self, found: dict[str, tuple[Number, Number]], *dtypes_of_both: str) -> tuple[str, str]:
        is_same_norm = NORM in found and _is_near(*found[NORM], _SUMMING)
        decided_by = NORM if NORM in found and (self._is_rounded or not is_same_norm) else HASH_TENSOR
        x, y = found.get(decided_by, (0, 0))
        is_agreeing = x == y if decided_by == HASH_TENSOR else _is_near(x, y, self._limit(*dtypes_of_both))
        self._is_rounded |= is_agreeing and decided_by == NORM and not is_same_norm
        return (AGREES, "") if is_agreeing else (DIFFERS, joined(" ", (_HASH, decided_by, _against(x, y))))

    def _limit(self, mine: str, golden: str) -> float:
        bounds = bounds_of(mine, golden)
        rounding = min(bounds.relative, _ROUNDINGS * bounds.epsilon)
        return max(_SUMMING, rounding if self._tolerance is None else self._tolerance)


def _is_near(x: Number, y: Number, limit: float) -> bool:
    if x == y or (x != x and y != y):
        return True
    return math.isfinite(x) and math.isfinite(y) and abs(x - y) <= limit * max(abs(x), abs(y))


def _against(x: Number, y: Number) -> str:
    """Both numbers, with as few digits as tell them apart."""
    if isinstance(x, int) or isinstance(y, int):
        return f"{x} against {y}"
    for digits in (4, 7, 10):
        texts = f"{x:.{digits}g}", f"{y:.{digits}g}"
        if texts[0] != texts[1]:
            break
    else:
        texts = repr(x), repr(y)
    return f"{texts[0]} against {texts[1]}"

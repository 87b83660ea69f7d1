"""Which tensor of mine meets which golden tensor: by operator names, or by the fusion json of a model.

Source: CANN, msaccucmp compare: order of rows, `Index`, `NPUDump` and `GroundTruth`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msdump.analysis.compare.result_csv import NO_VALUE
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.msaccucmp.align import FusionOrigin
from msdump.analysis.msaccucmp.fusion_json import FusedOperator, FusedOutput, groups_of
from msdump.analysis.msaccucmp.sides import Side, SideTensor
from msdump.formats.paths.acl import safe_piece
from msdump.tensors.records import INPUT, OUTPUT

ANY = "*"  # in place of a name that one side does not have
# They change nothing that another framework would show: what they read stands for what they write.
_PASSED_BY = frozenset({"Cast", "TransData"})
_QUANT, _DEQUANT = "AscendQuant", "AscendDequant"
_GRAPH_INPUT = "Data"
_DEQUANT_ENDINGS = ("_dequant_layer", "AscendDequant", "_dequant")


def parse_range(text: str) -> tuple[int, int | None, int]:
    """(start, end, step) of `-r`; end None for the last operator.   Raises: AnalysisError for another form."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(_is_number(part) for index, part in enumerate(parts) if (index, part) != (1, "-1")):
        raise AnalysisError(
            ExitCode.INVALID_PARAM, f'-r: expected start,end,step, such as 1,-1,1 or ",,2", got "{text}".'
        )
    start, end, step = parts
    return int(start or 1), int(end) if end not in ("", "-1") else None, int(step or 1)


def numbers_in_range(bounds: tuple[int, int | None, int], count: int) -> set[int]:
    """Sequence numbers of a range: every step-th from start on, and the end itself.

    count    of the model's operators
    Raises:  AnalysisError when a bound is not from 1 to `count`, or the step is not below it.
    """
    start, end, step = bounds[0], bounds[1] if bounds[1] is not None else count, bounds[2]
    if not (1 <= start <= end <= count and 1 <= step < max(count, 2)):
        raise AnalysisError(
            ExitCode.INDEX_OUT_OF_BOUNDS,
            f"-r: expected 1 <= start <= end <= {count} and a step from 1 to {max(1, count - 1)}, "
            f"got {start},{end},{step}.",
        )
    return {*range(start, end + 1, step), end}


def parse_selection(text: str) -> set[int]:
    """Sequence numbers of `-s`.   Raises: AnalysisError for another form."""
    parts = [part.strip() for part in text.split(",")]
    if not all(map(_is_number, parts)):
        raise AnalysisError(ExitCode.INVALID_PARAM, f'-s: expected numbers with commas, such as 1,3, got "{text}".')
    return {int(part) for part in parts if part}


def numbers_selected(numbers: set[int], count: int, warn: Callable[[str], None]) -> set[int]:
    """Numbers of operators that the model has.   Raises: AnalysisError when it has none of them."""
    beyond = sorted(number for number in numbers if number > count)
    if beyond and len(beyond) == len(numbers):
        raise AnalysisError(ExitCode.INVALID_PARAM, f"-s: expected operators 1 to {count}, got {beyond}.")
    if beyond:
        warn(f"-s: expected operators 1 to {count}, got {beyond} as well. They are left out.")
    return numbers.difference(beyond)


def _is_number(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal())


@dataclass(frozen=True, slots=True)
class Pair:
    """One row before it is measured.

    number        of the operator, or of the operators that stand for the same original ones; column Index
    mine_name, golden_name   columns NPUDump and GroundTruth
    op_name       of the tensor, in column TensorIndex; None in the row of an operator without a dump file
    mine, golden  None when no file has it
    problem       why there is nothing to measure; "" where both sides are there
    """

    number: int
    op_type: str
    mine_name: str
    golden_name: str
    op_name: str | None = None
    io: str = OUTPUT
    index: int = 0
    mine: SideTensor | None = None
    golden: SideTensor | None = None
    sequence: int | None = None
    origin: FusionOrigin | None = None
    problem: str = ""

    @property
    def tensor_index(self) -> str:
        return NO_VALUE if self.op_name is None else f"{self.op_name}:{self.io}:{self.index}"


@dataclass(frozen=True, slots=True)
class PairedRows:
    """All rows, and what msaccucmp would end with because of operators that have no counterpart."""

    pairs: tuple[Pair, ...]
    code: ExitCode = ExitCode.NONE

    @property
    def has_match(self) -> bool:
        return any(pair.mine is not None for pair in self.pairs)


def pairs_by_name(mine: Side, golden: Side) -> PairedRows:
    """Tensors of operators that have one name on both sides; one row for an operator that only one side has.

    Edges:   operators of mine come in the order of their time stamps, then those that only golden has. A tensor that
             one side lacks has a row.
    """
    names = list(dict.fromkeys((*mine.op_names, *golden.op_names)))
    pairs: list[Pair] = []
    code = ExitCode.NONE
    for number, name in enumerate(names):
        both = mine.of(name), golden.of(name)
        if all(both):
            pairs += _tensors_of_both(number, name, mine, golden)
            code = code or (ExitCode.NONE if _is_comparable(*both) else ExitCode.INVALID_DUMP_DATA)
            continue
        code = code or ExitCode.NO_DUMP_FILE
        shown = (name, ANY) if both[0] else (ANY, name)
        side = "the golden" if both[0] else "my"
        pairs.append(Pair(number, NO_VALUE, *shown, problem=f"{name}: {side} folder has no dump file of it."))
    return PairedRows(tuple(pairs), code)


def _tensors_of_both(number: int, name: str, mine: Side, golden: Side) -> Iterator[Pair]:
    slots = dict.fromkeys((tensor.io, tensor.index) for side in (mine, golden) for tensor in side.of(name))
    op_type = mine.of(name)[0].op_type
    for io, index in sorted(slots, key=lambda slot: (slot[0] != INPUT, slot[1])):
        sides = mine.find(name, io, index), golden.find(name, io, index)
        problem = "" if all(sides) else f"{name}: only {'my' if sides[0] else 'the golden'} file has {io} {index}."
        yield Pair(number, op_type, name, name, name, io, index, *sides, problem=problem)


def _is_comparable(mine: Sequence[SideTensor], golden: Sequence[SideTensor]) -> bool:
    """True when inputs or outputs are as many, and of the same shapes, on both sides."""
    for io in (INPUT, OUTPUT):
        shapes = [[tensor.shape for tensor in side if tensor.io == io] for side in (mine, golden)]
        if shapes[0] and shapes[0] == shapes[1]:
            return True
    return False


def pairs_by_fusion(
    mine: Side, golden: Side, operators: Sequence[FusedOperator], selected: Collection[int] | None = None
) -> PairedRows:
    """Rows of a fused model: each output with the original output that it stands for, each input with that of the
    operator that made it.

    selected   sequence numbers, None for all; operators that stand for the same original ones come together
    """
    # Of two operators of one name the first counts.
    model = _Model(mine, golden, {operator.name: operator for operator in reversed(operators)})
    pairs: list[Pair] = []
    is_complete = True
    for number, group in enumerate(groups_of(operators)):
        if selected is None or any(operator.sequence in selected for operator in group):
            rows, has_all = _rows_of_group(number, group, model)
            pairs += rows
            is_complete = is_complete and has_all
    return PairedRows(tuple(pairs), ExitCode.NONE if is_complete else ExitCode.NO_DUMP_FILE)


@dataclass(frozen=True, slots=True)
class _Model:
    mine: Side
    golden: Side
    by_name: Mapping[str, FusedOperator]


def _rows_of_group(number: int, group: Sequence[FusedOperator], model: _Model) -> tuple[list[Pair], bool]:
    """Rows, and whether each operator of mine has a file."""
    names = _group_names(group)
    rows: list[Pair] = []
    has_all = True
    for operator in _compared(group, model.mine):
        if model.mine.of(operator.name):
            rows += _rows_of(number, operator, names, model)
        else:
            has_all = False
    if not rows:
        first = group[0]
        problem = f"{first.name}: my folder has no dump file of this {first.op_type}."
        rows.append(Pair(number, first.op_type, *names, sequence=first.sequence, problem=problem))
    return rows, has_all


def _group_names(group: Sequence[FusedOperator]) -> tuple[str, str]:
    """Columns NPUDump and GroundTruth of all rows of a group."""
    if len(group) == 1:
        return group[0].name, ",".join(group[0].original_names) or ANY
    originals: dict[str, list[str]] = {}
    for operator in group:
        originals.setdefault(",".join(operator.original_names), []).append(operator.name)
    return ",".join(name for names in originals.values() for name in names), ",".join(originals)


def _compared(group: Sequence[FusedOperator], mine: Side) -> Sequence[FusedOperator]:
    """Operators of a group with tensors that stand for an original output.

    Edges:   parts of an L1 fusion are dumped piece by piece: the file of the last one has the outputs, that of the
             first one the inputs.
    """
    if len(group) == 1:
        return group
    if not group[0].l1_group:
        return [operator for operator in group if not operator.is_inner]
    order = {name: index for index, name in enumerate(mine.op_names)}
    dumped = sorted(
        (operator for operator in group if safe_piece(operator.name) in order),
        key=lambda operator: order[safe_piece(operator.name)],
    )
    if not dumped:
        return group[:1]
    is_split = dumped[0].original_names != dumped[-1].original_names
    return [dumped[0], dumped[-1]] if is_split else dumped[-1:]


def _rows_of(number: int, operator: FusedOperator, names: tuple[str, str], model: _Model) -> Iterator[Pair]:
    is_dequant = operator.op_type == _DEQUANT or operator.name.endswith(_DEQUANT_ENDINGS)
    for tensor in model.mine.of(operator.name):
        # Quantized values have no counterpart in the original model.
        if (tensor.io == INPUT and is_dequant) or (tensor.io == OUTPUT and operator.op_type == _QUANT):
            continue
        maker, output = _original_output(operator, tensor.io, tensor.index, model)
        counterpart = None
        if output is not None and output.origin_name:
            counterpart = model.golden.find(output.origin_name, OUTPUT, output.origin_index or 0)
        if counterpart is None and any(side.is_device_dump for side in model.golden.of(operator.name)):
            # Both sides are dumps of one model: the operator has its own file there.
            counterpart = model.golden.find(operator.name, tensor.io, tensor.index)
        made_by = "" if output is None else f", which stands for {output.origin_name}:{output.origin_index}"
        label = f"{operator.name}:{tensor.io}:{tensor.index}"
        # Source: msaccucmp gives no reason where the golden framework has written no file of what a graph is fed.
        has_no_reason = counterpart is not None or (maker is not None and maker.op_type == _GRAPH_INPUT)
        yield Pair(
            number,
            operator.op_type,
            *names,
            operator.name,
            tensor.io,
            tensor.index,
            tensor,
            counterpart,
            operator.sequence,
            FusionOrigin() if output is None else FusionOrigin(output.origin_format, output.origin_shape),
            problem="" if has_no_reason else f"{label}: the golden folder has no file of it{made_by}.",
        )


def _original_output(
    operator: FusedOperator, io: str, index: int, model: _Model
) -> tuple[FusedOperator | None, FusedOutput | None]:
    """The operator that made a tensor, and the original output that it stands for; None where the json does not tell
    it."""
    maker: FusedOperator | None = operator
    visited: set[str] = set()
    is_behind = io == INPUT
    while maker is not None and (is_behind or maker.op_type in _PASSED_BY):
        edge = maker.inputs[index] if index < len(maker.inputs) else None
        if edge is None or maker.name in visited:
            return None, None
        visited.add(maker.name)
        maker, index, is_behind = model.by_name.get(edge[0]), edge[1], False
    if maker is None or not maker.outputs:
        return maker, None
    output = maker.outputs[index if index < len(maker.outputs) else 0]
    if output.origin_index is None:
        output = FusedOutput(output.origin_name, index, output.origin_format, output.origin_shape)
    return maker, output

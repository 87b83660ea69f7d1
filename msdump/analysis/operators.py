"""A dump as steps of operators: the tensors of DumpDir, gathered under the operator that had them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import FX
from msdump.records import INPUT, OUTPUT

PARAMETER = "Parameter"
_OP_NUMBER = re.compile(r"-op[0-9]+$")
_UNSAFE_IN_NAME = str.maketrans({"/": "_", "\\": "_", ".": "_", " ": "_"})


class Slot(NamedTuple):
    """Number among the inputs or outputs; `part` is the index in a list of tensors that is one argument, `keyword` the
    name of an argument that has no place among the others."""

    number: int
    part: int = 0
    keyword: str = ""

    def __str__(self) -> str:
        name = self.keyword or str(self.number)
        return f"{name}.{self.part}" if self.part else name


class StepKey(NamedTuple):
    """One iteration of one graph of one process; None where the folders do not tell it."""

    rank_id: int | None
    graph_id: int | None
    iteration: int | None

    def __str__(self) -> str:
        named = zip(("rank", "graph", "iteration"), self, strict=True)
        return ", ".join(f"{name} {value}" for name, value in named if value is not None) or "the dump"

    def iteration_text(self, tells_graph: bool) -> str:
        """A cell of a table; `tells_graph` where graphs count their own steps, whose numbers alone say little."""
        iteration = "-" if self.iteration is None else str(self.iteration)
        return f"{iteration} of graph {self.graph_id}" if tells_graph and self.graph_id is not None else iteration


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator of one step with whatever was dumped of it.

    op_name    as the files' names say it
    full_name  with scope, where the dump tells it
    parts      the operators that this one stands for, when a mapping makes a chain one operator
    original   in a compiled graph whose operators were gathered under the names that the user's program has for them:
               that name, "" for an operator in between. None elsewhere
    """

    op_type: str
    op_name: str
    full_name: str | None = None
    position: int | None = None
    task_id: int | None = None
    stream_id: int | None = None
    inputs: Mapping[Slot, DumpedTensor] = field(default_factory=dict)
    outputs: Mapping[Slot, DumpedTensor] = field(default_factory=dict)
    parts: tuple[Operator, ...] = ()
    original: str | None = None

    @property
    def label(self) -> str:
        """The longest name that is known."""
        return self.full_name or self.op_name or self.op_type

    @property
    def names(self) -> frozenset[str]:
        """Every name by which a user may mean it."""
        return frozenset(
            name
            for name in (self.full_name, self.op_name, f"{self.op_type}.{self.op_name}", self.original or None)
            if name is not None
        )

    @property
    def originals(self) -> tuple[tuple[str, int], ...]:
        """What its outputs are in the program as the user wrote it, where the files tell: operators and outputs."""
        return tuple(tensor.original for tensor in self.outputs.values() if tensor.original is not None)

    @property
    def safe_name(self) -> str:
        """The longest name, spelled alike whether it comes from a file's name, a header or an execution order."""
        return safe_text(self.label)

    @property
    def scope(self) -> str:
        """`safe_name` without the operator's number, which changes from compile to compile."""
        return _OP_NUMBER.sub("", self.safe_name)

    @property
    def is_parameter(self) -> bool:
        return self.op_type == PARAMETER

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tensor.shape for tensor in self.inputs.values())

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tensor.shape for tensor in self.outputs.values())

    def tensors(self, io: str) -> Mapping[Slot, DumpedTensor]:
        return self.inputs if io == INPUT else self.outputs


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a dump: operators in execution order, parameters last.

    time_us   of its last file where each graph counts steps of its own, so that only time tells which came first
    """

    key: StepKey
    operators: tuple[Operator, ...]
    time_us: int | None = None


def safe_text(name: str) -> str:
    """A name as file names spell it."""
    return name.translate(_UNSAFE_IN_NAME)


def read_steps(
    dump: DumpDir,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | str | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
) -> list[Step]:
    """Steps of a dump in the order in which they ran; constants, which belong to no step, are left out.

    Edges:  when a run has written into the folder of an earlier one, the newest tensor of each operator counts.
    """
    gathered: dict[StepKey, list[DumpedTensor]] = {}
    for tensor in dump.tensors(rank=rank, graph=graph, iteration=iteration):
        if not tensor.file.place.is_constants:
            key = StepKey(tensor.rank_id, tensor.graph_id, tensor.iteration)
            gathered.setdefault(key, []).append(tensor)
    return [Step(key, operators_of(tensors), _time_of(tensors)) for key, tensors in gathered.items()]


def has_several_graphs(keys: Iterable[StepKey]) -> bool:
    """True when the number of an iteration alone does not tell a step."""
    return len({key.graph_id for key in keys}) > 1


def _time_of(tensors: Iterable[DumpedTensor]) -> int | None:
    times = (tensor.timestamp_us for tensor in tensors if tensor.file.place.layout == FX)
    return max((time for time in times if time is not None), default=None)


def operators_of(tensors: Iterable[DumpedTensor]) -> tuple[Operator, ...]:
    """Operators of one step, by first appearance; parameters last."""
    by_operator: dict[tuple[object, ...], dict[tuple[str, Slot], DumpedTensor]] = {}
    for tensor in tensors:
        identity = (tensor.op_type, tensor.op_name, tensor.task_id, tensor.stream_id, *tensor.file.name.task_part)
        slots = by_operator.setdefault(identity, {})
        slot = tensor.io, Slot(tensor.slot, tensor.part or 0, tensor.keyword or "")
        known = slots.get(slot)
        if known is None or (tensor.timestamp_us or 0) >= (known.timestamp_us or 0):
            slots[slot] = tensor
    operators = [_operator(slots) for slots in by_operator.values()]
    return tuple(sorted(operators, key=lambda operator: operator.is_parameter))


def _operator(tensors: Mapping[tuple[str, Slot], DumpedTensor]) -> Operator:
    first = next(iter(tensors.values()))
    full_names = [tensor.full_name for tensor in tensors.values() if tensor.full_name is not None]
    return Operator(
        first.op_type,
        first.op_name,
        full_names[0] if full_names else None,
        first.position,
        first.task_id,
        first.stream_id,
        {slot: tensors[io, slot] for io, slot in sorted(tensors) if io == INPUT},
        {slot: tensors[io, slot] for io, slot in sorted(tensors) if io == OUTPUT},
    )

"""What one rank computed in one iteration: one row of operators in the order in which they ran, whatever graphs the
framework cut them into, and the values between them.

A value is told by its numbers in their order, so that a view of it is the same value. What no operator of the row made
is an entry: a parameter, a batch, a constant, a state that an earlier iteration left.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from msdump.analysis.compare.chains import chain_of
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.values import Figures, Value, figures_of
from msdump.analysis.distance.bounds import ROUNDINGS, coarser, epsilon_of
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import has, is_mover, kind_of
from msdump.operators.traits import FIRST, is_random, memory_use, overwrites_unread, reads_shape_only

_SCALE_OFF = 1e-2


Look = Callable[[DumpedTensor], "Figures | None"]


@dataclass(frozen=True, slots=True)
class Placed:
    """An operator in the row of its iteration, and the figures of what it reads and makes."""

    step: Step
    operator: Operator
    kind: str
    part: str
    inputs: tuple[tuple[Slot, Figures], ...]
    outputs: tuple[tuple[Slot, Figures], ...]
    inner: tuple[Figures, ...] = ()  # what a fused operator makes on its way

    @property
    def result(self) -> Figures | None:
        """The first output; None where it was not dumped."""
        return self.outputs[0][1] if self.outputs else None

    @property
    def telling(self) -> Figures | None:
        """The first output that tells something; None where none does, and of what computes with shapes alone."""
        if self.kind == "shape":
            return None
        return next((figures for _, figures in self.outputs if not figures.is_plain), None)

    @property
    def read(self) -> tuple[tuple[Slot, Figures], ...]:
        """The inputs that count for what it makes; memory that it only fills, or whose shape it looks at, does not."""
        if reads_shape_only(self.operator.op_type):
            return ()
        return self.inputs[overwrites_unread(self.operator.op_type) == FIRST :]

    @property
    def is_mover(self) -> bool:
        return is_mover(self.operator.op_type)

    @property
    def is_random(self) -> bool:
        return is_random(self.operator.op_type)


def are_of_one_use(own: Placed, other: Placed) -> bool:
    """Whether two operators are of one kind, or both choose elements, as a mask is applied in several ways."""
    types = own.operator.op_type, other.operator.op_type
    return own.kind == other.kind or all(has(one, "chooses") for one in types)


class Trace:
    """The operators of one iteration in the order in which they ran, and who reads what.

    earlier   the iteration before: a value that it left keeps the precision of its path
    look      figures of a tensor
    graphs    of its dump, where they are known
    """

    def __init__(
        self,
        steps: Sequence[Step],
        earlier: Trace | None = None,
        look: Look = figures_of,
        graphs: GraphFiles | None = None,
    ) -> None:
        self.steps = steps
        self._graphs = graphs
        self.coarse: dict[int, str] = {}  # dtype of the path of each tensor, by id, where it is coarser than its own
        self._look = look
        self._figures: dict[int, Figures | None] = {}
        # The coarsest dtype among those that the numbers of a value are made of.
        self._floors: dict[Value, float] = {}
        self._paths: dict[Value, str] = {} if earlier is None else dict(earlier._paths)
        # What is made of nothing but rounding, as a step of Adam on a gradient that is zero but for it.
        self._noise: set[Value] = set() if earlier is None else set(earlier._noise)
        # What is made of more than rounding, but of some: weights after such a step.
        self.unsteady: set[Value] = set() if earlier is None else set(earlier.unsteady)
        # Who made a value in an iteration before, the last one.
        self.left: dict[Value, tuple[StepKey, Operator]] = {} if earlier is None else earlier.all_made()
        self.row = [
            self._placed(step, operator) for step in steps for operator in step.operators if not operator.is_parameter
        ]
        self.place = {id(placed.operator): index for index, placed in enumerate(self.row)}
        self._last_gradient = max(
            (at for at, one in enumerate(self.row) if one.part == "backward"), default=len(self.row)
        )
        self.first_gradient = next((at for at, one in enumerate(self.row) if one.part == "backward"), len(self.row))
        self.made: set[Value] = set()
        self.parts: dict[Value, set[str]] = defaultdict(set)
        self.readers: dict[Value, list[int]] = defaultdict(list)
        self.makers: dict[Value, int] = {}  # the first one
        self._anew: dict[Value, list[int]] = defaultdict(list)  # all that did not read it
        for index, placed in enumerate(self.row):
            for _, figures in placed.read:
                self.readers[figures.value].append(index)
            for _, figures in placed.outputs:
                self.parts[figures.value].add(placed.part)
                self.makers.setdefault(figures.value, index)
                if all(figures.value != read.value for _, read in placed.inputs):
                    self._anew[figures.value].append(index)
            if not placed.is_mover:
                self.made |= {figures.value for _, figures in placed.outputs if not figures.is_plain}

    def placed(self, operator: Operator) -> Placed:
        """One of the row; for a chain, one that is made of its ends."""
        if id(operator) in self.place:
            return self.row[self.place[id(operator)]]
        return self._placed(self.row[self.place[id(operator.parts[-1])]].step, operator)

    def maker_before(self, value: Value, place: int) -> int | None:
        """Where the last operator before a place made a value; None for an entry."""
        makers = self._anew.get(value, ())
        before = bisect_left(makers, place)
        return makers[before - 1] if before else None

    def read_after(self, place: int, fits: Callable[[tuple[int, ...]], bool]) -> Iterator[Figures]:
        """The values that later operators read first, of the shapes that fit and as far as they tell something."""
        starts = [
            (reads, bisect_right(reads, place, key=itemgetter(0)))
            for shape, reads in self._reads.items()
            if fits(shape)
        ]
        later = (map(reads.__getitem__, range(start, len(reads))) for reads, start in starts)
        seen: set[Value] = set()
        for _, figures in heapq.merge(*later, key=itemgetter(0)):
            if figures.value not in seen:
                seen.add(figures.value)
                yield figures

    @functools.cached_property
    def _reads(self) -> Mapping[tuple[int, ...], list[tuple[int, Figures]]]:
        """By shape: the places of operators, and what each reads that tells something."""
        found: dict[tuple[int, ...], list[tuple[int, Figures]]] = defaultdict(list)
        for place, placed in enumerate(self.row):
            for _, figures in placed.read:
                if not figures.is_plain:
                    found[host_shape(figures.tensor)].append((place, figures))
        return found

    def is_entry(self, place: int, slot: Slot, value: Value) -> bool:
        """Whether no operator made what the one at a place reads, as of a parameter, or of data; memory that an
        operator made is none, whatever was written into a part of it since.
        """
        if self.maker_before(value, place) is not None:
            return False
        placed = self.row[place]
        node = None if self._graphs is None else self._graphs.node(placed.step.key, placed.operator)
        origin = node.inputs[slot.number] if node is not None and slot.number < len(node.inputs) else None
        return origin is None or (origin.slot is None and origin.maker is None)

    @property
    def is_training(self) -> bool:
        """Whether it has a backward pass."""
        return self._last_gradient < len(self.row)

    @functools.cached_property
    def shows_updates(self) -> bool:
        """Whether any operator updates what it is given."""
        return any(
            self.is_update(place) and memory_use(placed.operator.op_type).overwrites
            for place, placed in enumerate(self.row)
        )

    def is_update(self, place: int) -> bool:
        """Whether an operator belongs to an optimizer, or to an update by hand: it comes after all gradients."""
        return self.row[place].part == "optimizer" or place > self._last_gradient

    def is_end(self, place: int) -> bool:
        """Whether nothing in its part of the step computes with a result but single numbers, as a scale of a loss."""
        part = self.row[place].part
        readers = (self.row[reader] for reader in self.readers_of(place))
        return all(one.part != part or one.result is None or one.result.size == 1 for one in readers)

    @functools.cached_property
    def loss_scale(self) -> float:
        """By what a loss is multiplied before its backward pass, and its gradients are divided by after it; 1 where
        none is, or where nothing takes it off again.
        """
        return next(iter(self._scaled_losses), 1.0)

    def is_scaled(self, value: Value) -> bool:
        """Whether the scale of a loss is in a value of an iteration that has one: of gradients, and of that loss.

        Edges: what no operator made and the backward pass alone reads is a gradient that no operator shows.
        """
        parts = self.parts.get(value)
        if not parts:
            readers = self.readers.get(value, ())
            return bool(readers) and all(self.row[reader].part == "backward" for reader in readers)
        return "backward" in parts or value in self._scaled_losses.values()

    @functools.cached_property
    def multiplied_loss(self) -> tuple[float, int] | None:
        """By what the one number in which the forward pass ends is multiplied, and where; None where none is."""
        scales = {
            figures.total / read.total: place
            for place, placed in enumerate(self.row[: self._last_gradient])
            if placed.part == "forward" and not (placed.is_mover or placed.is_random or self.readers_of(place))
            for _, figures in placed.outputs[:1]
            for _, read in placed.inputs[:1]
            if figures.size == read.size == 1 and read.total and abs(figures.total) > abs(read.total)
        }
        return next(iter(scales.items())) if len(scales) == 1 else None

    @functools.cached_property
    def _scaled_losses(self) -> dict[float, Value]:
        """The scale, and what it makes of the loss; {} without one."""
        if self.multiplied_loss is None or not self._takes_off(self.multiplied_loss[0]):
            return {}
        scale, place = self.multiplied_loss
        return {scale: self.row[place].outputs[0][1].value}

    def _takes_off(self, scale: float) -> bool:
        """Whether a gradient is divided by a number after the backward pass."""
        return any(
            read.size == figures.size > 1 and math.isclose(scale * figures.length, read.length, rel_tol=_SCALE_OFF)
            for placed in self.row[self._last_gradient + 1 :]
            for (_, read), (_, figures) in zip(placed.inputs, placed.outputs, strict=False)
            if not read.is_plain
        )

    def readers_of(self, place: int) -> list[int]:
        """Places of the later operators that read what the one at a place made, as far as that tells something; not
        those that come after another one made the same, where there are earlier ones.
        """
        found: list[int] = []
        for _, figures in self.row[place].outputs:
            if not figures.is_plain:
                later = [reader for reader in self.readers[figures.value] if reader > place]
                makers = self._anew[figures.value]
                after = bisect_right(makers, place)
                end = makers[after] if after < len(makers) else math.inf
                found += [reader for reader in later if reader <= end] or later
        return found

    def leading_to(self, place: int, value: Value, ends: set[int]) -> set[int]:
        """Ids of the operators that make a value that is read at a place, and of those before them up to the ends."""
        found: set[int] = set()
        waiting = [(place, value)]
        while waiting:
            place, value = waiting.pop()
            index = self.maker_before(value, place)
            if index is None:
                continue
            operator = self.row[index].operator
            if id(operator) not in ends and id(operator) not in found:
                found.add(id(operator))
                waiting += [(index, figures.value) for _, figures in self.row[index].inputs if not figures.is_plain]
        return found

    def all_figures(self) -> Iterator[Figures]:
        for placed in self.row:
            for _, figures in (*placed.inputs, *placed.outputs):
                yield figures
            yield from placed.inner

    def all_made(self) -> dict[Value, tuple[StepKey, Operator]]:
        """Who made each value of this iteration; of one that an earlier iteration left, if this one still reads it."""
        made = ((value, self.row[place]) for value, place in self.makers.items())
        kept = {value: maker for value, maker in self.left.items() if self.readers.get(value)}
        return kept | {value: (placed.step.key, placed.operator) for value, placed in made}

    def look_inside(self, place: int, inner: tuple[Figures, ...]) -> None:
        """Remember what the fused operator at a place makes on its way."""
        self.row[place] = dataclasses.replace(self.row[place], inner=inner)
        for figures in inner:
            self.parts[figures.value].add(self.row[place].part)
            self.makers.setdefault(figures.value, place)

    def _placed(self, step: Step, operator: Operator) -> Placed:
        inputs = tuple(self._known(operator.inputs, "", 0.0))
        # One number of few digits tells nothing, and may yet be a gradient that was rounded.
        counting = (figures for _, figures in inputs if _is_rounded(figures))
        path = functools.reduce(coarser, (figures.dtype for figures in counting), "")
        path = "" if is_random(operator.op_type) else path
        part = "optimizer" if has(operator.op_type, "updates") else operator.stage
        outputs = tuple(self._known(operator.outputs, path, self._floor(operator, inputs)))
        if any(figures.is_noise and figures.length for _, figures in inputs):
            if all(figures.is_plain or figures.size == 1 for _, figures in inputs):
                outputs = tuple((slot, self._as_noise(figures)) for slot, figures in outputs)
            else:
                self.unsteady.update(figures.value for _, figures in outputs)
        return Placed(step, operator, _kind(operator), part, inputs, outputs)

    def _as_noise(self, figures: Figures) -> Figures:
        if figures.is_plain:
            return figures
        self._noise.add(figures.value)
        return dataclasses.replace(figures, is_plain=True, is_noise=True)

    def _floor(self, operator: Operator, inputs: Sequence[tuple[Slot, Figures]]) -> float:
        """The size below which a result is no more than the rounding of what is summed up, or handed on."""
        first = inputs[0][1] if inputs else None
        if first is None:
            return 0.0
        if has(operator.op_type, "sums"):
            count = sum(math.prod(host_shape(tensor)) for tensor in list(operator.outputs.values())[:1])
            if count <= 1:
                return 0.0  # a loss, which may be small
            size = first.absolute if first.has_elements else first.length * math.sqrt(first.size)
            # A result with the largest term has at least that.   test: trial_encoder_ported_joined
            terms = size / count + max(-first.lowest, first.largest)
            if kind_of(operator.op_type) == "mean":
                terms *= count / first.size
            return ROUNDINGS * epsilon_of(first.dtype) * terms
        return self._floors.get(first.value, 0.0) if is_mover(operator.op_type) else 0.0

    def _known(self, tensors: Mapping[Slot, DumpedTensor], path: str, floor: float) -> Iterator[tuple[Slot, Figures]]:
        for slot, tensor in tensors.items():
            if id(tensor) not in self._figures:
                self._figures[id(tensor)] = self._look(tensor)
            figures = self._figures[id(tensor)]
            if figures is None:
                continue
            floor = self._floors.setdefault(figures.value, floor) if floor else self._floors.get(figures.value, 0.0)
            is_rounding = bool(floor) and max(-figures.lowest, figures.largest) <= floor
            if is_rounding or (figures.value in self._noise and not figures.is_plain):
                figures = dataclasses.replace(figures, is_plain=True, is_noise=True)
            if _is_rounded(figures):
                dtype = coarser(figures.dtype, self._paths.get(figures.value, path))
                if dtype != figures.dtype:
                    self._paths[figures.value] = self.coarse[id(tensor)] = dtype
                    figures = dataclasses.replace(figures, dtype=dtype)
            yield slot, figures


def _is_rounded(figures: Figures) -> bool:
    """Whether rounding may have changed its numbers: not zeros, ones and masks."""
    return (
        not figures.is_plain
        or figures.size == 1
        or (figures.lowest == figures.largest and abs(figures.lowest) not in (0, 1))
    )


def _kind(operator: Operator) -> str:
    chain = chain_of(operator)
    return kind_of(operator.op_type) if chain is None else chain.kind

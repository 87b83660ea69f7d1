"""What grew: the first tensor whose largest absolute value rose steeply from one iteration to the next.

Most NaN begin one iteration earlier, with a value that explodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msdump import dtypes
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.health import HealthTable
from msdump.analysis.operators import Operator, Slot, Step, StepKey
from msdump.analysis.unset import UnsetTensors
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph_files.source_line import SourceLine
from msdump.records import INPUT, OUTPUT

STEEP = 100.0  # times the value of the iteration before
_LEAST = 1e-3  # smaller values are rounding of sums that cancel


@dataclass(frozen=True, slots=True)
class Growth:
    """A tensor that rose to at least STEEP times its largest absolute value of the iteration before.

    before            the earlier iteration of the same graph
    largest           absolute value of the finite elements in `step`; largest_before in `before`
    line              of the user's script, where a graph file tells it
    """

    step: StepKey
    before: StepKey
    operator: Operator
    io: str
    slot: Slot
    tensor: DumpedTensor
    largest: float
    largest_before: float
    line: SourceLine | None

    @property
    def factor(self) -> float:
        return self.largest / self.largest_before


_Name = tuple[str, str, str, Slot]


def find_growth(steps: Iterable[tuple[Step, UnsetTensors]], health: HealthTable, graphs: GraphFiles) -> Growth | None:
    """The first such tensor in time; float tensors only.

    Edges: a tensor that was all 0 has no factor; one without finite values ends nothing and begins nothing, and so
           does memory that no operator has written yet.
    """
    last: dict[tuple[int | None, int | None], tuple[StepKey, dict[_Name, float]]] = {}
    for step, unset in steps:
        graph = step.key.rank_id, step.key.graph_id
        before, earlier = last.get(graph, (step.key, {}))
        largest: dict[_Name, float] = {}
        for operator, io, slot, tensor in _float_tensors(step):
            value = health.of(tensor).largest
            if value is None or unset.has(operator, io, slot):
                continue
            name = operator.op_type, operator.label, io, slot
            largest[name] = value
            if value >= max(_LEAST, STEEP * earlier.get(name, 0.0)) and earlier.get(name):
                node = graphs.node(step.key, operator)
                line = None if node is None else node.own_line
                return Growth(step.key, before, operator, io, slot, tensor, value, earlier[name], line)
        last[graph] = step.key, largest
    return None


def _float_tensors(step: Step) -> Iterable[tuple[Operator, str, Slot, DumpedTensor]]:
    for operator in step.operators:
        for io in (INPUT, OUTPUT):
            for slot, tensor in operator.tensors(io).items():
                row = dtypes.BY_NAME.get(tensor.dtype)
                if row is not None and row.is_float:
                    yield operator, io, slot, tensor

"""WatchedGraph: what the plan says about one compiled graph, decided once."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.arrays import Array
from msdump.config.plan import DumpPlan, node_masks
from msdump.config.sections import DUMP_MARKED
from msdump.dump.snapshot import Operand, keys_to_keep, selected_operands
from msdump.events import OpInfo
from msdump.graph.graph import SAVED, Graph, Value
from msdump.records import TensorKey


class GraphMemory:
    """Which tensors of a graph lie in memory that nobody writes while they wait."""

    def __init__(self, graph: Graph, ops: Sequence[OpInfo]) -> None:
        mutated = {op.inputs[slot].key.value_id for op in ops for slot in op.mutates}
        self._constant_ids = {value.id for value in graph.constants} - mutated
        self._held_ids = graph.held - mutated
        self._borrowed_ids = graph.borrowed - mutated
        self.lends = bool(self._borrowed_ids)

    def is_constant(self, key: TensorKey | None) -> bool:
        """True for memory that nobody ever writes."""
        return key is not None and key.value_id in self._constant_ids

    def is_held(self, key: TensorKey | None) -> bool:
        """True for memory that nobody writes as long as somebody refers to it."""
        return key is not None and key.value_id in self._held_ids

    def is_borrowed(self, key: TensorKey | None) -> bool:
        """True for memory that nobody writes before the run has ended."""
        return key is not None and key.value_id in self._borrowed_ids


class WatchedGraph(GraphMemory):
    """What the dumper decided about one graph at compile time."""

    def __init__(self, graph: Graph, plan: DumpPlan) -> None:
        self.ops = graph.op_infos()
        super().__init__(graph, self.ops)
        self.masks = node_masks(plan, [op.full_name for op in self.ops], [op.is_marked for op in self.ops])
        self.operands: list[tuple[Operand, ...]] = [
            selected_operands(op, mask) for op, mask in zip(self.ops, self.masks, strict=True)
        ]
        self.keep = keys_to_keep(self.ops, self.masks)
        self.kept: dict[TensorKey, Array] = {}
        self.final_keys = graph.final_keys()
        self.parameters: list[Value] = []
        self.constants: list[tuple[int, Value]] = []
        if plan.dumps_output:
            inputs = (value for value in graph.dumped_parameters() if value.kind != SAVED)
            self.parameters = [value for value in inputs if plan.selects(value.name)]
            # Marks are for operators; a constant belongs to no cell.
            self.constants = list(enumerate(graph.constants)) if plan.dump_mode != DUMP_MARKED else []
        self.has_constants_on_disk = False

    @property
    def size(self) -> int:
        """Tensors of one iteration that get a file, as `op_size`."""
        parameters = sum(0 not in value.type.shape for value in self.parameters)
        return sum(map(self.op_size, range(len(self.operands)))) + parameters

    def op_size(self, index: int) -> int:
        """Tensors of one operator that get a file; one whose shape only the run decides counts as one with elements."""
        return sum(0 not in operand.info.shape for operand in self.operands[index])

"""A Plan as text, and its effect on a graph: counts of operators, tensors and bytes. For `msdump plan`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msdump.config.environment import PACK, container, format_size
from msdump.config.plan import ASCEND, CPU, DUMP_INPUT, DUMP_OUTPUT, SYNC, Plan, RecorderPlan
from msdump.config.selectors import FullNameSelector, NameRegexSelector, Selector
from msdump.graph.pb import GraphSummary, NodeSummary
from msdump.graph.types import TensorSummary
from msdump.operators.traits import memory_use
from msdump.tensors import dtypes


class ValueUse(NamedTuple):
    """Which bytes an operand holds: operator and output that allocated them, and how often they were overwritten."""

    producer: str
    slot: int
    version: int


@dataclass(frozen=True)
class OpTypeRow:
    """Operators of one type: how many there are and are selected, and what one dumped iteration holds of them."""

    op_type: str
    operators: int
    selected: int
    tensors: int
    size_bytes: int


@dataclass(frozen=True)
class Estimate:
    """What one dumped iteration of one graph holds, computed without running it.

    rows            per op type, in order of first appearance; graph inputs come last as "Parameter"
    size_bytes      of all tensors under all their names
    distinct_bytes  of the tensors that differ: what lies on disk, equal ones being links
    unsized         tensors whose size the graph file does not say; they are in no sum
    """

    name: str
    rows: tuple[OpTypeRow, ...]
    distinct_tensors: int
    distinct_bytes: int
    unsized: int

    @property
    def operators(self) -> int:
        return sum(row.operators for row in self.rows if row.op_type != PARAMETER_ROW)

    @property
    def selected(self) -> int:
        return sum(row.selected for row in self.rows if row.op_type != PARAMETER_ROW)

    @property
    def tensors(self) -> int:
        return sum(row.tensors for row in self.rows)

    @property
    def size_bytes(self) -> int:
        return sum(row.size_bytes for row in self.rows)


PARAMETER_ROW = "Parameter"


# -- words ------------------------------------------------------------------------------------------


def describe(plan: Plan) -> list[tuple[str, str]]:
    """The plan as (label, text), in reading order."""
    rows = [
        ("configuration", str(plan.source.path)),
        ("device", f"{plan.how.device_target}, device {plan.where.device_id}, rank {plan.where.rank_id}"),
    ]
    if not plan.when.is_device_enabled:
        rows.append(("dump", f"off: device {plan.where.device_id} is not in support_device"))
    if plan.recorder is not None:
        rows.append(("recorder", _recorder_text(plan.recorder)))
    rows += [
        ("engine", _engine_text(plan)),
        ("folder", f"{plan.where.path}/rank_{plan.where.rank_id}/{plan.where.net_name}/<graph>/<iteration>"),
        ("iterations", _iterations_text(plan)),
        ("operators", _operators_text(plan)),
        ("tensors", _tensors_text(plan)),
        ("saved as", _saved_text(plan)),
    ]
    if (plan.how.container or container()) == PACK:
        rows.append(("container", "a pack: one tar archive in the place of each folder of an iteration"))
    rows += [(f"kernels[{index}]", _selector_text(item)) for index, item in enumerate(plan.which.selectors or ())]
    return rows


def never_matches(plan: Plan, full_names: Iterable[str] | None = None) -> list[str]:
    """What this plan selects in vain, one sentence each.

    full_names: of all operators and parameters, when there is a graph.
    """
    sentences = []
    if not plan.when.is_device_enabled:
        sentences.append(f"device {plan.where.device_id} is not in support_device: nothing will be dumped.")
    if not plan.when.iterations:
        sentences.append("iteration matches no number: nothing will be dumped.")
    if plan.which.selectors == () and not plan.which.takes_marked:
        sentences.append("kernels is empty: no operator will be dumped.")
    if full_names is not None:
        for text, advice in plan.which.unmatched(full_names).items():
            sentences.append(f'"{text}" matches no operator of the graph. {advice}'.rstrip())
    return sentences


def _engine_text(plan: Plan) -> str:
    if plan.how.engine == SYNC:
        return "sync: everything is written when the step has ended"
    return "async: an operator is written as soon as it has ended"


def _recorder_text(recorder: RecorderPlan) -> str:
    ring = recorder.ring or "memory, or the folder of temporary files"
    names = [*recorder.on, *(f"{name} {sign} {limit:g}" for name, sign, limit in recorder.rules)]
    return (
        f"nothing is written at first: the last {recorder.steps} steps lie in a ring in {ring}, of at most "
        f"{format_size(recorder.budget)}, and are kept when something happens ({', '.join(names) or 'only when asked'})"
    )


def _iterations_text(plan: Plan) -> str:
    text = str(plan.when.iterations)
    if text != "all":
        count = plan.when.iterations.count
        text = f"{text} ({count} {'iteration' if count == 1 else 'iterations'})"
    if plan.when.sampler is not None:
        sampling = plan.when.sampler.sampling
        text += (
            f", as many of them as take {sampling} of the time"
            if sampling.budget
            else f", one in {sampling.every} of them"
        )
    return text if not plan.when.initial_iteration else f"{text}, counted from {plan.when.initial_iteration}"


def _operators_text(plan: Plan) -> str:
    if plan.which.selectors is None:
        return "all"
    if plan.which.takes_marked:
        return "those that the script marks with set_dump"
    return "those that kernels lists" if plan.which.selectors else "none: kernels is empty"


def _selector_text(selector: Selector) -> str:
    if isinstance(selector, FullNameSelector):
        return f"the operator {selector.text}"
    if isinstance(selector, NameRegexSelector):
        return f"operators whose whole full name matches {selector.pattern.pattern}"
    return f'operators whose type contains "{selector.text}" in any case' if selector.text else "every operator"


def _tensors_text(plan: Plan) -> str:
    if not plan.operands.outputs:
        return "inputs of operators; no parameters, no constants"
    sides = "inputs and outputs" if plan.operands.inputs else "outputs"
    if plan.which.takes_marked:
        return f"{sides} of operators; no parameters, no constants"
    return f"{sides} of operators, parameters, constants"


def _saved_text(plan: Plan) -> str:
    is_host = plan.saved.is_host_layout or plan.how.device_target != ASCEND
    layout = f", layouts of the {'host' if is_host else 'device'}" if plan.how.device_target != CPU else ""
    note = " (bin is asked for)" if plan.saved.file_format == "bin" else ""
    forms = [f"npy files{note}{layout}"] if plan.saved.tensors else []
    if plan.saved.statistics:
        columns = ", ".join(plan.saved.columns or ())
        forms.append(f"rows of statistic.csv ({columns})" if columns else "rows of statistic.csv")
    return " and ".join(forms)


# -- numbers ----------------------------------------------------------------------------------------


def known_names(graphs: Iterable[GraphSummary]) -> list[str]:
    """Every name that a selector can match: of operators and of graph inputs."""
    return [
        name
        for graph in graphs
        for name in (*(n.full_name for n in graph.kernels), *(p.name for p in graph.parameters))
    ]


def estimate(plan: Plan, graph: GraphSummary) -> Estimate:
    """Sizes of one dumped iteration of a graph.

    Which operators overwrite or pass on their inputs is known by their types; an operator of any other type counts as
    making new tensors.
    """
    uses = _Uses(graph)
    tally = _Tally()
    masks = plan.masks([node.full_name for node in graph.kernels])
    mask_by_name = {node.name: mask for node, mask in zip(graph.kernels, masks, strict=True)}
    for node in graph.nodes:
        mask = mask_by_name.get(node.name, 0)
        inputs = [(uses.of(name), uses.type_of(name)) for name in node.inputs]
        uses.run(node)
        outputs = [(uses.of(node.name, slot), output) for slot, output in enumerate(node.outputs)]
        if node.is_kernel:
            dumped = (inputs if mask & DUMP_INPUT else []) + (outputs if mask & DUMP_OUTPUT else [])
            tally.add(node.op_type, mask != 0, dumped)
    for parameter in graph.parameters:
        is_selected = plan.dumps_parameter(parameter.name)
        tally.add(PARAMETER_ROW, is_selected, [(uses.of(parameter.name), parameter.type)] if is_selected else [])
    return tally.estimate(graph.name)


class _Tally:
    """Sums while the operators of a graph go by."""

    def __init__(self) -> None:
        self._rows: dict[str, OpTypeRow] = {}
        self._bytes_by_file: dict[tuple[ValueUse, tuple[int, ...] | None], int] = {}
        self._unsized = 0

    def add(self, op_type: str, is_selected: bool, tensors: Sequence[tuple[ValueUse, TensorSummary | None]]) -> None:
        """One operator. Equal bytes in two shapes are two files: the shape stands in the file."""
        count, total = 0, 0
        for use, tensor in tensors:
            size = self._size(tensor)
            if size is None:
                self._unsized += 1
            elif size > 0 and tensor is not None:  # an empty tensor has no file
                count, total = count + 1, total + size
                self._bytes_by_file[use, tensor.shape] = size
        row = self._rows.get(op_type, OpTypeRow(op_type, 0, 0, 0, 0))
        self._rows[op_type] = OpTypeRow(
            op_type, row.operators + 1, row.selected + is_selected, row.tensors + count, row.size_bytes + total
        )

    def _size(self, tensor: TensorSummary | None) -> int | None:
        """Bytes on disk; npy holds some dtypes in a wider one."""
        if tensor is None or tensor.dtype is None:
            return None
        size, row = tensor.size_bytes, dtypes.dtype(tensor.dtype)
        if size is None or not row.is_widened:
            return size
        return size // row.itemsize * dtypes.dtype(row.npy_name).itemsize

    def estimate(self, name: str) -> Estimate:
        sizes = self._bytes_by_file.values()
        return Estimate(name, tuple(self._rows.values()), len(sizes), sum(sizes), self._unsized)


class _Uses:
    """Which bytes stand behind every name of a graph file while its order is walked."""

    def __init__(self, graph: GraphSummary) -> None:
        self._types = graph.types_by_name()
        self._index_by_constant = {c.key: c.value for c in graph.constants if isinstance(c.value, int)}
        self._fixed: dict[tuple[str, int], ValueUse] = {}
        self._storage: dict[tuple[str, int], tuple[str, int]] = {}
        self._version: dict[tuple[str, int], int] = {}

    def of(self, name: str, slot: int = 0) -> ValueUse:
        fixed = self._fixed.get((name, slot))
        if fixed is not None:
            return fixed
        storage = self._storage.get((name, slot), (name, slot))
        return ValueUse(*storage, self._version.get(storage, 0))

    def type_of(self, name: str) -> TensorSummary | None:
        types = self._types.get(name, ())
        return types[0] if types else None

    def run(self, node: NodeSummary) -> None:
        """Make new versions of what the node overwrites; let its outputs stand for inputs that it passes on."""
        if node.op_type == "TupleGetItem" and len(node.inputs) == 2:
            index = self._index_by_constant.get(node.inputs[1], 0)
            self._fixed[node.name, 0] = self.of(node.inputs[0], index)
            return
        # A bookkeeping node (Depend, Load) passes on its first input.
        use = memory_use(node.op_type)
        for slot in use.overwrites:
            if slot < len(node.inputs):
                value = self.of(node.inputs[slot])
                storage = value.producer, value.slot
                self._version[storage] = self._version.get(storage, 0) + 1
        for output, source in use.results.items():
            if source < len(node.inputs):
                value = self.of(node.inputs[source])
                self._storage[node.name, output] = value.producer, value.slot
        views = use.views if node.is_kernel else {0: 0, **use.views}
        for output, source in views.items():
            if source < len(node.inputs):
                self._fixed[node.name, output] = self.of(node.inputs[source])

"""Who made a gradient 0, and where the way from a parameter to the loss is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msdump.analysis.graph_info import GraphFile, GraphNode
from msdump.analysis.learning.series import Loss, Made, Series, count_of, is_zero
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.formats.learning_json import Cut, Learning
from msdump.graph.types import SourceLine
from msdump.operators.kinds import kind_of
from msdump.operators.traits import only_moves
from msdump.tensors import dtypes

# Kinds of operators that take some elements and leave others out: nothing is wrong with those.
_CHOICES = frozenset(
    ("where", "mul", "_foreach_mul", "masked_fill", "masked_scatter", "embedding", "embedding_grad", "scatter", "slice",
     "matmul", "batch_matmul")
)  # fmt: skip
_MASKS = frozenset(("where", "masked_fill"))
# A factor of 0 makes them 0; what is only added does not.
_BILINEAR = frozenset(("mul", "_foreach_mul", "matmul", "batch_matmul", "linear", "conv", "conv_backward"))
_SUMS = frozenset(("add", "add_n"))
_PRODUCTS = frozenset(("mul", "div"))
_MOST = 100_000
_NOT_REACHED = object()


@dataclass(frozen=True, slots=True)
class Cause:
    """An operator that is to blame.

    how        of a zero: "" or "data", where all that it reads is 0; of a cut: "detach", "no_grad",
               "checkpoint", "integer", "apart"
    is_choice  whether it may leave out what a batch does not need
    is_sum     whether it adds what is not 0, and cancels it out
    is_mask    whether it makes a condition that no element meets, which is cast to numbers
    """

    step: StepKey
    operator: Operator
    line: SourceLine | None
    how: str = ""
    is_choice: bool = False
    is_sum: bool = False
    is_mask: bool = False

    @property
    def line_key(self) -> str:
        """Equal for cuts of one line."""
        return self.operator.label if self.line is None else str(self.line)


def who_made_zero(series: Series, made: Made) -> Cause | None:
    """The first operator, of those that a gradient of 0 comes from, whose output is 0 while what it reads is not.

    Returns: None where it only chooses a part, where a weight of 0 says that it is meant, and where the dump does not
             hold what it reads.
    """
    seen: set[tuple[int, str]] = set()
    chooses = False
    while True:
        key = id(made.step), made.operator.label
        node = series.node(made.step, made.operator)
        if key in seen or node is None:
            return None
        seen.add(key)
        mask = _mask_of(series, made, node)
        if mask is not None:
            return mask
        zeros: list[Made | None] = []
        has_other = False
        for place, origin in enumerate(node.inputs):
            tensor = made.operator.inputs.get(Slot(place))
            numbers = series.numbers(tensor)
            if tensor is None or numbers is None:
                if tensor is None and origin is not None and not origin.is_constant:
                    # One that was dumped, and made no elements, chose nothing.
                    is_empty = _has_no_elements(series.maker(made.step, origin))
                    line = node.own_line
                    return Cause(made.step.key, made.operator, line, "", False, False, True) if is_empty else None
                continue
            kind = dtypes.BY_NAME.get(tensor.dtype)
            is_parameter = origin is not None and origin.name in series.parameters
            is_added = is_parameter and not (kind_of(node.op_type) in _BILINEAR or only_moves(made.operator.op_type))
            if is_zero(numbers) and kind is not None and kind.is_float and not is_added:
                if count_of(numbers) == 1 and kind_of(node.op_type) in _PRODUCTS:
                    return None  # a weight of the loss
                zeros.append(series.maker(made.step, origin))
            else:
                has_other = True
        # A constant of the operator's formula, as of `where`, is no reason.
        makers = [one for one in zeros if one is not None and (one.operator.inputs or not has_other)]
        following = next((one for one in makers if is_zero(series.output(one))), None)
        if following is not None:
            chooses |= has_other and kind_of(node.op_type) in _CHOICES
            made = following
            continue
        is_part = has_other and only_moves(made.operator.op_type) and kind_of(node.op_type) not in _MASKS
        if is_part or _is_weight_of_zero(node) or not (zeros or has_other):
            return None
        how = "data" if zeros and not has_other else ""
        is_choice = chooses or kind_of(node.op_type) in _CHOICES
        is_sum = not zeros and kind_of(node.op_type) in _SUMS
        return Cause(made.step.key, made.operator, node.own_line, how, is_choice, is_sum)


def _has_no_elements(made: Made | None) -> bool:
    return made is not None and Slot(made.slot) in made.operator.outputs and 0 in made.shape


def _mask_of(series: Series, made: Made, node: GraphNode) -> Cause | None:
    """Who made the whole numbers or conditions that an operator casts to 0; None for another operator. A dump of
    statistics has those of floats alone.
    """
    read = [dtypes.BY_NAME.get(tensor.dtype) for tensor in made.operator.inputs.values()]
    is_cast = len(read) == 1 and read[0] is not None and not read[0].is_float
    if not is_cast or not only_moves(made.operator.op_type):
        return None
    maker = series.maker(made.step, node.inputs[0])
    maker_node = None if maker is None else series.node(maker.step, maker.operator)
    if maker is None or maker_node is None:
        return None
    return Cause(maker.step.key, maker.operator, maker_node.own_line, "", True, False, True)


def _is_weight_of_zero(node: GraphNode) -> bool:
    """Whether a number in the script says that nothing is to be left."""
    is_product = kind_of(node.op_type) in _PRODUCTS
    return is_product and any(value in (0, 0.0) for value in (node.attrs or {}).values() if _is_number(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def apart_of(series: Series, iteration: int) -> Cause | None:
    """Where a loss begins that is made of no parameter."""
    loss = series.losses.get(iteration)
    return None if loss is None else Cause(loss.key, loss.operator, loss.line, "apart")


def cut_of(series: Series, learning: Learning, name: str, iteration: int) -> Cause | None:
    """Where the way from a parameter to the loss is cut; None where it does not lead there, or is whole."""
    loss = series.losses.get(iteration)
    found = None if loss is None else _ways_of(series, learning, name, iteration, loss)
    if loss is None or found is None:
        return None
    graph, reached = found
    if loss.operator.label in reached:
        return reached[loss.operator.label]
    # Where it leaves PyTorch, as by `numpy`, nothing reads what was cut off.
    read = {origin.name for node in graph.nodes for origin in node.inputs if origin is not None}
    return next((cause for name, cause in reached.items() if name not in read and _is_detach(cause)), None)


def leads_to(series: Series, learning: Learning, name: str, iteration: int, loss: Loss) -> bool:
    """Whether a loss is made of a parameter, on a way that nothing cuts."""
    found = _ways_of(series, learning, name, iteration, loss)
    return found is not None and found[1].get(loss.operator.label, _NOT_REACHED) is None


def _ways_of(
    series: Series, learning: Learning, name: str, iteration: int, loss: Loss
) -> tuple[GraphFile, Mapping[str, Cause | None]] | None:
    """The graph of a loss, and of what depends on the parameter there: where that was cut, None where it was not."""
    cuts = {(cut.graph, cut.operator): cut for cut in learning.cuts}
    by_graph = {step.key.graph_id: step for step in series.by_iteration[iteration]}
    step = by_graph.get(loss.key.graph_id)
    graph = None if step is None else series.graph(step)
    if step is None or graph is None:
        return None
    reached: dict[str, Cause | None] = {}
    for node in graph.nodes[:_MOST]:
        sources = [
            origin for origin in node.inputs if origin is not None and (origin.name in reached or origin.name == name)
        ]
        sources = [origin for origin in sources if origin.slot is not None or origin.name == name]
        if not sources:
            continue
        before = [reached.get(origin.name) for origin in sources if origin.slot is not None]
        is_whole = any(origin.slot is None for origin in sources) or None in before
        cause = None if is_whole else before[0]
        if cause is None:
            found = series.find(iteration, step.key.graph_id, node.full_name)
            cause = None if found is None else _cut_at(step, found[1], node, cuts.get((graph.graph_id, node.full_name)))
        reached[node.full_name] = cause
    return graph, reached


def _is_detach(cause: Cause | None) -> bool:
    return cause is not None and cause.how == "detach"


def _cut_at(step: Step, operator: Operator, node: GraphNode, cut: Cut | None) -> Cause | None:
    if cut is not None:
        line = SourceLine(cut.path, cut.line, cut.code) if cut.line else node.own_line
        return Cause(step.key, operator, line, cut.how)
    kinds = [dtypes.BY_NAME.get(tensor.dtype) for tensor in operator.outputs.values()]
    if kinds and all(kind is not None and not kind.is_float for kind in kinds):
        return Cause(step.key, operator, node.own_line, "integer")
    return None

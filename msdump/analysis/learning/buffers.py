"""Buffers, and parameters, that never change while a new value of them is computed that nothing takes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from msdump.analysis.graph_info import GraphNode, Origin
from msdump.analysis.learning.kinds import THROWN_AWAY, LearningFinding
from msdump.analysis.learning.series import Series, content_of
from msdump.analysis.learning.updates import never_changes
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import kind_of
from msdump.operators.table import library_name
from msdump.operators.traits import memory_use, only_moves

# Iterations, the first ones, in each of which nothing reads it.
# test: blind_prototypes_that_stay
LEAST_THROWN = 4
# What writes a state where its name ends in an underscore; so does a sum of a product, a decay and an addition.
_UPDATES = frozenset(
    ("lerp", "index_copy", "index_add", "index_fill", "index_put", "scatter", "scatter_add", "scatter_reduce",
     "masked_scatter", "copy")
)  # fmt: skip
_SUMS, _DECAYS = frozenset(("add", "addcmul", "sub")), frozenset(("mul",))


def thrown_away(series: Series) -> Iterator[LearningFinding]:
    """New values of buffers, as `lerp` makes one where `lerp_` was meant, by the first operator that makes one."""
    iterations = list(series.backwards)[:LEAST_THROWN]
    if series.learning is None or len(iterations) < LEAST_THROWN:
        return
    buffers = {
        name
        for name in series.parameters
        if (row := series.rows.get(name)) is None or (row.optimizer is None and name in series.gradients)
        if never_changes(series, name)
    }
    if not buffers:
        return
    # By buffer and line: where it is first so, and in how many iterations.
    first: dict[tuple[str, str], tuple[Step, Operator, GraphNode]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    taken: set[tuple[str, str]] = set()
    for iteration, following in itertools.zip_longest(iterations, list(series.backwards)[1:LEAST_THROWN]):
        read, seen = _read(series, iteration), set()
        later = _data(series, following) if following is not None else set()
        for step, node, name in _updates(series, iteration, buffers):
            key = name, str(node.own_line)
            found = series.find(iteration, step.key.graph_id, node.full_name)
            is_read = (step.key.graph_id, node.full_name) in read
            if found is None or is_read or _content(series, found[1].outputs.get(Slot(0))) in later:
                taken.add(key)
            else:
                first.setdefault(key, (step, found[1], node))
                seen.add(key)
        counts.update(seen)
    for key, (step, operator, node) in first.items():
        if key not in taken and counts[key] == LEAST_THROWN:
            yield LearningFinding(THROWN_AWAY, (key[0],), step.key, series.backwards[-1], operator, node.own_line)
            return  # the others are of the same cause


def unchanged_statistics(series: Series) -> Iterator[LearningFinding]:
    """Running statistics of norms that take those of each batch, and never change: a momentum of 0."""
    iterations = list(series.backwards)
    names, first = [], None
    for step in series.by_iteration[iterations[-1]] if len(iterations) >= LEAST_THROWN else ():
        for operator in step.operators:
            node = series.node(step, operator) if kind_of(operator.op_type) == "batch_norm" else None
            running = [origin.name for origin in node.inputs[3:5] if origin is not None] if node is not None else []
            # In evaluation it computes none.
            own = series.numbers(operator.outputs.get(Slot(1)))
            is_trained = own is not None and own.max is not None
            known = [name for name in running if name in series.parameters and never_changes(series, name)]
            if is_trained and len(known) == 2:
                names += known
                first = first or series.find(iterations[0], step.key.graph_id, operator.label)
    if names and first is not None:
        node = series.node(*first)
        line = None if node is None else node.own_line
        yield LearningFinding(THROWN_AWAY, tuple(names), first[0].key, iterations[-1], first[1], line, "statistics")


def _read(series: Series, iteration: int) -> set[tuple[int | None, str]]:
    """Operators of an iteration whose results are read."""
    found: set[tuple[int | None, str]] = set()
    for step in series.by_iteration[iteration]:
        graph = series.graph(step)
        for node in () if graph is None else graph.nodes:
            for origin in node.inputs:
                if origin is not None and origin.slot is not None:
                    found.add((step.key.graph_id, origin.name))
                elif origin is not None and origin.maker is not None:
                    found.add(origin.maker[:2])
    return found


def _data(series: Series, iteration: int) -> set[object]:
    """Contents of what operators of an iteration read, and none of them has made: what a script has kept, say."""
    found: set[object] = set()
    for step in series.by_iteration[iteration]:
        graph = series.graph(step)
        for node in () if graph is None else graph.nodes:
            known = series.find(iteration, step.key.graph_id, node.full_name)
            for place, origin in enumerate(node.inputs):
                is_data = origin is not None and origin.slot is None and origin.maker is None
                if known is not None and is_data and origin is not None and origin.name not in series.parameters:
                    found.add(_content(series, known[1].inputs.get(Slot(place))))
    return found - {None}


def _content(series: Series, tensor: DumpedTensor | None) -> object:
    numbers = series.numbers(tensor)
    return None if numbers is None or tensor is None else (tuple(tensor.shape), content_of(numbers))


def _updates(series: Series, iteration: int, buffers: set[str]) -> Iterator[tuple[Step, GraphNode, str]]:
    """Operators that make new values of buffers, or of parts of them, each with the name of its buffer."""
    for step in series.by_iteration[iteration]:
        graph = series.graph(step)
        parts = {name: name for name in buffers}
        decayed: dict[str, str] = {}
        for node in () if graph is None else graph.nodes:
            origin: Origin | None = node.inputs[0] if node.inputs else None
            if origin is None:
                continue
            kind = kind_of(node.op_type)
            name = parts.get(origin.name)
            if name is not None and only_moves(node.op_type):
                parts[node.full_name] = name
            elif memory_use(node.op_type).overwrites or not _is_alike(series, step, node):
                continue
            elif name is not None and kind in _DECAYS:
                decayed[node.full_name] = name
            elif name is not None and (kind in _UPDATES or _own_name(node) in _UPDATES):
                yield step, node, name
            elif name in series.rows and kind in _SUMS and _reads_gradient(series, step, node):
                yield step, node, name or ""
            elif origin.name in decayed and kind in _SUMS:
                yield step, node, decayed[origin.name]


def _reads_gradient(series: Series, step: Step, node: GraphNode) -> bool:
    """Whether a script computes a step by itself: a sum of a parameter and a gradient, or a share of one."""
    origin = node.inputs[1] if len(node.inputs) == 2 else None
    made = series.maker(step, origin)
    while made is not None and made.operator.stage == "forward":
        before = series.node(made.step, made.operator)
        origin = before.inputs[0] if before is not None and before.inputs else None
        made = series.maker(made.step, origin)
    return made is not None and made.operator.stage == "backward"


def _own_name(node: GraphNode) -> str:
    return library_name(node.op_type) or ""


def _is_alike(series: Series, step: Step, node: GraphNode) -> bool:
    """Whether it makes a tensor of the shape of the one that it reads first."""
    found = series.find(step.key.iteration or 0, step.key.graph_id, node.full_name)
    if found is None:
        return False
    read, made = (side.get(Slot(0)) for side in (found[1].inputs, found[1].outputs))
    return read is not None and made is not None and tuple(read.shape) == tuple(made.shape)

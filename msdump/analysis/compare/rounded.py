"""Which operator of one run alone rounded to a coarser dtype what another one makes large errors of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msdump.analysis.compare.result import Comparison, OperatorResult
from msdump.analysis.compare.verdict import GOLDEN, MINE
from msdump.analysis.distance.bounds import BOUNDS, epsilon_of
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.steps import Operator, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import is_product

_MAX_WALK = 32
# Share of results in half precision of a run in mixed precision; with less a cast may be a mistake.
# test: second_denoiser_in_bfloat16_share
MIXED = 0.125


def rounded_by(
    comparison: Comparison, files: Callable[[str], GraphFiles], result: OperatorResult
) -> tuple[str, StepKey, Operator] | None:
    """Side, step and operator of the nearest rounding before an operator, which one run alone has: where its inputs
    agree within the bounds of a half precision alone, and each element of its result is made of one of each.

    Edges: None for products, where a kernel may be wrong as well, and where no graph file tells.
    """
    pair = result.pair
    read = [tensor for tensor in result.inputs if tensor.metrics is not None]
    made = next(iter(pair.mine.outputs.values()), None)
    if made is None or is_product(pair.mine.op_type) or all(one.mine.shape != made.shape for one in read):
        return None
    error = max((tensor.metrics.relative_error for tensor in read if tensor.metrics is not None), default=0.0)
    if error <= BOUNDS["float32"].relative:
        return None
    golden_step = next((step.golden for step in comparison.steps if result in step.operators), result.step)
    sides = (MINE, result.step, pair.mine), (GOLDEN, pair.golden_step or golden_step, pair.golden)
    found = [_first_half(comparison, files(start[0]), start) for start in sides]
    return next((one for one, other in zip(found, reversed(found), strict=True) if one and not other), None)


def _first_half(
    comparison: Comparison, files: GraphFiles, start: tuple[str, StepKey, Operator]
) -> tuple[str, StepKey, Operator] | None:
    """The nearest operator that makes a half precision of a finer one before an operator that is not far from it."""
    side, step, operator = start
    known = {(key, one.label): one for key, one in _operators(comparison, side)}
    waiting, seen = [(step, operator)], set[tuple[StepKey, str]]()
    while waiting and len(seen) < _MAX_WALK:
        step, operator = waiting.pop(0)
        node = files.node(step, operator)
        for origin in () if node is None else node.inputs:
            if origin is None or (origin.slot is None and origin.maker is None):
                continue
            graph, name = (step.graph_id, origin.name) if origin.maker is None else origin.maker[:2]
            key = step._replace(graph_id=graph), name
            maker = known.get(key)
            if maker is None or key in seen:
                continue
            seen.add(key)
            is_half_made = any(map(_is_half, maker.outputs.values()))
            is_half_read = any(map(_is_half, maker.inputs.values()))
            if is_half_made and not is_half_read:
                return side, key[0], maker
            if is_half_made or is_half_read:
                waiting.append((key[0], maker))
    return None


def _operators(comparison: Comparison, side: str) -> Iterator[tuple[StepKey, Operator]]:
    for step in comparison.steps:
        for result in step.operators:
            pair = result.pair
            yield (result.step, pair.mine) if side == MINE else (pair.golden_step or step.golden, pair.golden)
        for operator in step.only_mine if side == MINE else step.only_golden:
            yield (step.mine if side == MINE else step.golden), operator


def half_share(operators: Iterable[Operator]) -> float:
    """Share of the outputs of some operators that are of a half precision."""
    halves = [_is_half(tensor) for operator in operators for tensor in operator.outputs.values()]
    return sum(halves) / max(1, len(halves))


def _is_half(tensor: DumpedTensor) -> bool:
    return epsilon_of(tensor.true_dtype) > epsilon_of("float32")

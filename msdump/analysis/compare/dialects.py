"""Whether two dumps are of different frameworks, by the words in which they call their operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from msdump.analysis.steps import PARAMETER, Step
from msdump.operators.kinds import ATEN, dialects_of, is_mover, kind_of
from msdump.operators.traits import is_random

_KNOWN_SHARE = 0.5
# Below it two programs of PyTorch are one that was taken apart in two ways.
_ALIKE_SHARE = 0.6


def is_between_frameworks(mine: Sequence[Step], golden: Sequence[Step]) -> bool:
    """Whether two dumps call their operators in the words of different frameworks, or are of PyTorch and take them
    apart in other ways (eager against compiled by Inductor, exported).

    Edges: False where either side has few words that one framework alone has, and for operators of a compiler.
    """
    dialects = [_dialects(side) for side in (mine, golden)]
    if not all(dialects):
        return False
    return not dialects[0] & dialects[1] or (
        dialects == [{ATEN}, {ATEN}] and _common_share(mine, golden) < _ALIKE_SHARE
    )


def _common_share(mine: Sequence[Step], golden: Sequence[Step]) -> float:
    """Share of the operators of the larger side whose kinds both sides have as often."""
    counts = [
        Counter(
            kind_of(operator.op_type)
            for step in steps
            for operator in step.operators
            if not operator.is_parameter and not is_mover(operator.op_type) and not is_random(operator.op_type)
        )
        for steps in (mine, golden)
    ]
    return (counts[0] & counts[1]).total() / max(1, *(count.total() for count in counts))


def _dialects(steps: Sequence[Step]) -> set[str]:
    """Whose words most operators of a dump are; several where nothing tells them apart."""
    operators = [operator for step in steps for operator in step.operators]
    if any(original is not None for original in map(attrgetter("original"), operators)):
        return set()
    types = Counter(map(attrgetter("op_type"), operators))
    types.pop(PARAMETER, None)
    total = types.total()
    counts: Counter[str] = Counter()
    for op_type, count in types.items():
        counts.update(dict.fromkeys(dialects_of(op_type), count))
    most = max(counts.values(), default=0)
    return {dialect for dialect, count in counts.items() if count == most and count >= _KNOWN_SHARE * total}

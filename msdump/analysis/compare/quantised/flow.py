"""Where the branches of a model meet: what an error has left there is what counts, for branches may heal it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msdump.analysis.compare.quantised.float_form import FloatForm
from msdump.analysis.compare.quantised.wires import ContentKey


@dataclass(frozen=True, slots=True)
class MeetingPoints:
    """Operators behind which one tensor alone carries errors on.

    indices   in the execution order of the step; errors: of that tensor, 0 where nothing differs
    """

    indices: Sequence[int]
    errors: Sequence[float]

    def added_around(self, index: int) -> float | None:
        """What is added between the last such operator before one and the first one from it on; None where no branches
        meet behind it."""
        place = bisect_left(self.indices, index)
        if place == len(self.indices):
            return None
        return self.errors[place] - (self.errors[place - 1] if place else 0.0)


def meeting_points(form: FloatForm, errors: Mapping[ContentKey, float]) -> MeetingPoints:
    """Of a step in floats.   errors: of tensors by their bytes; one that is missing may carry any error"""
    wires = form.wires
    last_reads: dict[ContentKey, int] = {}
    for index, operator in enumerate(form.source):
        for key in map(wires.key, operator.inputs.values()):
            if key is not None:
                last_reads[key] = index
    indices, found = [], []
    alive: dict[ContentKey, float | None] = {}
    for index, operator in enumerate(form.source):
        if operator.is_parameter:
            continue
        made = _keys(map(wires.key, operator.outputs.values()))
        alive.update({key: errors.get(key) for key in made})
        # What nothing reads is a result of the model, and ends here.
        carried = [error for key, error in alive.items() if error != 0 and last_reads.get(key, index + 1) > index]
        alive = {key: error for key, error in alive.items() if last_reads.get(key, -1) > index}
        if not carried:
            indices.append(index)
            found.append(0.0)
        elif len(carried) == 1 and carried[0] is not None:
            indices.append(index)
            found.append(carried[0])
    return MeetingPoints(tuple(indices), tuple(found))


def _keys(keys: Iterable[ContentKey | None]) -> list[ContentKey]:
    return [key for key in keys if key is not None]

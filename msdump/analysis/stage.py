"""At which stage of a training step a bad value appeared: in the model, in the loss, or after the model's output."""

from __future__ import annotations

import re

from msdump.analysis.infinity_flow import CAME_IN
from msdump.analysis.operators import Operator, StepKey

# The stages that are worth a word. AFTER_OUTPUT: code between two graphs, which the dump does not hold.
IN_LOSS, AFTER_OUTPUT = "loss", "after output"
# Scopes of loss cells (`_loss_fn-SoftmaxCrossEntropyWithLogits`, `criterion-MSELoss`); not of cells that wrap a network
# together with its loss.
_LOSS_NAME = re.compile(r"(?:^|[-_/])(?:loss_fn|loss|criterion)-(?!With)")
_LOSS_CLASS = re.compile(r"-\w*(?:Loss|CrossEntropy|CrossEntropyWithLogits)$")
# What PyTorch calls gradients that come into a backward graph.
_TANGENT = re.compile(r"tangents?_[0-9]+")
_GRADIENTS = ("Gradients/", "Gradients_")


class Stages:
    """Which graphs of each process have ended, in their order."""

    def __init__(self) -> None:
        self._last: dict[int | None, tuple[StepKey, bool]] = {}

    def before(self, key: StepKey) -> StepKey | None:
        """The other graph of the same iteration that ended just before, when no step of that iteration was bad."""
        last, is_bad = self._last.get(key.rank_id, (key, True))
        is_same = last.iteration == key.iteration and last.graph_id != key.graph_id
        return last if is_same and not is_bad else None

    def end(self, key: StepKey, is_bad: bool) -> None:
        last, was_bad = self._last.get(key.rank_id, (key, False))
        self._last[key.rank_id] = key, is_bad or (was_bad and last.iteration == key.iteration)

    def stage_of(self, operator: Operator, how: str, parameter: str | None, before: StepKey | None) -> str:
        """IN_LOSS, AFTER_OUTPUT or "".

        parameter  name of the input that brought the value
        before     what `before` says of the step
        """
        if how == CAME_IN:
            if parameter is not None and _TANGENT.fullmatch(parameter):
                return AFTER_OUTPUT
            return AFTER_OUTPUT if parameter is None and before is not None else ""
        scopes = operator.label.split("/")[:-1]
        is_loss = _LOSS_NAME.search(operator.label) is not None or any(map(_LOSS_CLASS.search, scopes))
        return IN_LOSS if is_loss and not operator.label.startswith(_GRADIENTS) else ""

"""Callback: what training and evaluation call at their begin, end, epochs and steps, and what it gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish


class RunParameters(dict[str, Any]):
    """What a run knows about itself, as attributes: cur_step_num, cur_epoch_num, batch_num, net_outputs, ..."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"callback parameters: there is no {name!r}. There are: {', '.join(sorted(self))}.")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """What a callback gets: the run's parameters, and the way to stop it."""

    def __init__(self, original_args: RunParameters) -> None:
        if not isinstance(original_args, dict):
            raise TypeError(
                f"The argument 'original_args' of RunContext should be dict type, but got {type(original_args)}."
            )
        self._original_args = original_args
        self._is_stop_requested = False

    def original_args(self) -> RunParameters:
        """Parameters of the run."""
        return self._original_args

    def request_stop(self) -> None:
        """End the run after this step."""
        self._is_stop_requested = True

    def get_stop_requested(self) -> bool:
        """Was a stop requested?"""
        return self._is_stop_requested


class Callback:
    """Base of callbacks: write the hooks you need.

    The plain hooks (`begin`, `step_end`, ...) are called in training and in evaluation, unless the special ones
    (`on_train_step_end`, `on_eval_begin`, ...) are written.
    """

    def begin(self, run_context: RunContext) -> None: ...

    def epoch_begin(self, run_context: RunContext) -> None: ...

    def epoch_end(self, run_context: RunContext) -> None: ...

    def step_begin(self, run_context: RunContext) -> None: ...

    def step_end(self, run_context: RunContext) -> None: ...

    def end(self, run_context: RunContext) -> None: ...

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: object) -> None: ...


def _special(place: str, name: str) -> Any:
    """The hook of training or evaluation alone, which calls the plain one of its place."""

    def hook(self: Callback, run_context: RunContext) -> None:
        getattr(self, place)(run_context)

    hook.__name__, hook.__qualname__ = name, f"Callback.{name}"
    return hook


HOOKS = {
    f"on_{run}_{place}": place
    for run in ("train", "eval")
    for place in ("epoch_begin", "epoch_end", "step_begin", "step_end", "begin", "end")
}
for _name, _place in HOOKS.items():
    setattr(Callback, _name, _special(_place, _name))


class CallbackList:
    """Several callbacks, called in order."""

    def __init__(self, callbacks: Any) -> None:
        """Raises: TypeError for anything but callbacks."""
        items = [] if callbacks is None else [callbacks] if isinstance(callbacks, Callback) else callbacks
        if not isinstance(items, Iterable):
            raise TypeError(f"When the 'callbacks' is not a list, it must be a Callback, but got {type(callbacks)}.")
        self.callbacks = list(items)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: expected Callback objects, got {type(callback).__name__}.")

    def call(self, hook: str, run_context: RunContext) -> None:
        """Call one hook of each callback."""
        for callback in self.callbacks:
            getattr(callback, hook)(run_context)


def loss_of(outputs: Any) -> float | None:
    """The loss among a step's outputs: the first tensor; None when there is none."""
    if isinstance(outputs, tuple | list):
        outputs = outputs[0] if outputs else None
    return float(np.mean(outputs.asnumpy())) if isinstance(outputs, Tensor) else None


publish(__name__)

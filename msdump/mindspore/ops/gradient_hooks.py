"""Operators that hand their inputs on, and let a Python function of the script see or change their gradient."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.common.hook_handle import check_hook
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.hooks import check_gradient
from msdump.mindspore.names import publish
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.own_gradient import with_backward
from msdump.mindspore.tracer import current_tracer

log = logging.getLogger("msdump")


class InsertGradientOf(Primitive):
    """The input; its gradient is `f(gradient)`, or what it was where `f` returns None. In both modes."""

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__()
        self.f = f

    def compute(self, x: Tensor) -> Tensor:
        tracer = current_tracer()
        if tracer is None or not tracer.is_differentiating:
            return x

        def backward(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            return [check_gradient(self.name, self.f(gradients[0]), gradients[0])]

        return with_backward(tracer, [x], [x], backward)[0]


class HookBackward(Primitive):
    """The inputs; `hook_fn` is called with the tuple of their gradients and may return others.

    Edges:  in GRAPH_MODE it does nothing, as in MindSpore, and the log says so.
    Raises: TypeError for a `hook_fn` that is no function.
    """

    def __init__(self, hook_fn: Callable[..., Any], cell_id: str = "") -> None:
        check_hook(hook_fn, "HookBackward")
        super().__init__()
        self.hook_fn, self.cell_id = hook_fn, cell_id

    def compute(self, *inputs: Tensor) -> Any:
        tracer = current_tracer()
        shown: Sequence[Tensor] = inputs
        if tracer is not None and not tracer.is_recording:
            log.warning("HookBackward has no effect in GRAPH_MODE, as in MindSpore. Use Tensor.register_hook there.")
        elif tracer is not None and tracer.is_differentiating:
            shown = with_backward(tracer, inputs, inputs, self._backward)
        return shown[0] if len(shown) == 1 else tuple(shown)

    def _backward(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        answer = self.hook_fn(tuple(gradients))
        if answer is None:
            return gradients
        changed = answer if isinstance(answer, tuple) else (answer,)
        if len(changed) != len(gradients):
            raise TypeError(f"{self.name}: expected {len(gradients)} gradients, got {len(changed)}.")
        return [check_gradient(self.name, new, old) for new, old in zip(changed, gradients, strict=True)]


publish(__name__)

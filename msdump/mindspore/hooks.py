"""Hooks of cells: Python functions around a call, and around its backward pass; they are part of what runs.

In a compiled graph a hook runs once, while the graph is traced, and its operators are operators of the graph; in
PyNative it runs at each call.   Source: MindSpore 2.7, `Cell.register_forward_hook` and its kin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.own_gradient import with_backward
from msdump.mindspore.structure import flatten, unflatten
from msdump.mindspore.tracer import Tracer

Hook = Callable[..., Any]


class CellHooks:
    """The hooks of one cell, in the order in which they run; forward ones with whether they take keywords."""

    def __init__(self) -> None:
        self.before: list[tuple[Hook, bool]] = []
        self.after: list[tuple[Hook, bool]] = []
        self.before_backward: list[tuple[Hook]] = []
        self.after_backward: list[tuple[Hook]] = []

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.before_backward or self.after_backward)

    def state(self) -> tuple[object, ...]:
        """What a compiled graph depends on: which hooks there are."""
        return (*self.before, None, *self.after, None, *self.before_backward, None, *self.after_backward)

    def run(self, cell: Any, tracer: Tracer | None, body: Hook, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """`body(*args, **kwargs)` with the hooks around it."""
        args, kwargs = self._with_inputs(cell, tuple(args), kwargs)
        is_hooked = bool(self.before_backward or self.after_backward)
        if tracer is None or not tracer.is_differentiating or not is_hooked:
            return self._with_output(cell, args, kwargs, body(*args, **kwargs))
        gradients: list[Tensor] = []
        inner = self._watched_inputs(cell, tracer, args, gradients) if self.after_backward else args
        output = self._with_output(cell, args, kwargs, body(*inner, **kwargs))
        return self._watched_output(cell, tracer, output, gradients)

    def _with_inputs(
        self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook, takes_keywords in self.before:
            answer = hook(cell, args, kwargs) if takes_keywords else hook(cell, args)
            if answer is None:
                continue
            if takes_keywords:
                if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
                    raise RuntimeError(
                        f"{cell.cls_name}: expected a forward pre hook with keywords to return None or a tuple "
                        f"(args, kwargs), got {type(answer).__name__}."
                    )
                args, kwargs = answer
            else:
                args = answer if isinstance(answer, tuple) else (answer,)
        return args, kwargs

    def _with_output(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        for hook, takes_keywords in self.after:
            answer = hook(cell, args, kwargs, output) if takes_keywords else hook(cell, args, output)
            output = output if answer is None else answer
        return output

    def _watched_inputs(
        self, cell: Any, tracer: Tracer, args: tuple[Any, ...], of_output: list[Tensor]
    ) -> tuple[Any, ...]:
        leaves: list[Tensor] = []
        structure = flatten(args, leaves)

        def backward(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            for (hook,) in self.after_backward:
                gradients = _changed(cell, gradients, hook(cell, tuple(gradients), tuple(of_output)))
            return gradients

        shown = with_backward(tracer, leaves, leaves, backward) if leaves else leaves
        return unflatten(structure, iter(shown))

    def _watched_output(self, cell: Any, tracer: Tracer, output: Any, of_output: list[Tensor]) -> Any:
        leaves: list[Tensor] = []
        structure = flatten(output, leaves)

        def backward(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            for (hook,) in self.before_backward:
                gradients = _changed(cell, gradients, hook(cell, tuple(gradients)))
            of_output[:] = gradients
            return gradients

        return unflatten(structure, iter(with_backward(tracer, leaves, leaves, backward) if leaves else leaves))


def _changed(cell: Any, gradients: Sequence[Tensor], answer: Any) -> Sequence[Tensor]:
    """The gradients that a backward hook gives in place of others.   Raises: TypeError, ValueError when they differ."""
    if answer is None:
        return gradients
    changed = answer if isinstance(answer, tuple) else (answer,)
    where = f"{cell.cls_name}: backward hook"
    if len(changed) != len(gradients):
        raise TypeError(f"{where}: expected {len(gradients)} gradients, got {len(changed)}.")
    return [check_gradient(where, new, old) for new, old in zip(changed, gradients, strict=True)]


def check_gradient(where: str, new: Any, old: Tensor) -> Tensor:
    """`new`, the gradient that a hook gives in place of `old`; `old` itself for None.

    Raises: TypeError for anything but a tensor, ValueError for another shape or dtype.
    """
    if new is None:
        return old
    if not isinstance(new, Tensor):
        raise TypeError(f"{where}: expected a tensor of shape {old.shape} or None, got {type(new).__name__}.")
    if new.type_ != old.type_:
        raise ValueError(f"{where}: expected a gradient {old.type_}, got {new.type_}.")
    return new

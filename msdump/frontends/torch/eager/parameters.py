"""Parameters and buffers of the model: their names, and their values as the forward pass left them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from msdump.frontends.torch.eager.module_parts import ModuleParts, parts_of, plain_name
from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.stage import Call, Stage
from msdump.frontends.torch.eager.tensors import memory_of
from msdump.tensors.arrays import Array
from msdump.tensors.records import TensorInfo

if TYPE_CHECKING:
    from msdump.config.plan import Plan


class Parameters:
    """Of one program.   plan: of the current iteration"""

    def __init__(self, operands: CallOperands) -> None:
        self.plan: Plan | None = None
        self._operands = operands
        # Of each outermost module, by its identity, as it may be equal to another: what its names begin with. And the
        # tensor that has a name.
        self._beginnings: dict[int, tuple[weakref.ref[torch.nn.Module], str]] = {}
        self._holders: dict[str, weakref.ref[torch.Tensor]] = {}
        # Of each of these modules, by its identity: its parts, and the names of its tensors, as they were last time.
        self._named: dict[int, tuple[ModuleParts, dict[int, tuple[weakref.ref[torch.Tensor], str]]]] = {}

    def name(self, module: torch.nn.Module) -> None:
        """A module is called: its parameters and buffers have their names in it.

        Where another module that is called, and that lives, has a tensor of such a name, all names of this one begin
        with its class and a number, in every iteration: `Critic_1.0.weight`.
        """
        parts, known = parts_of(module), self._named.get(id(module))
        if known is not None and known[0] is parts:
            self._operands.names.add(known[1], parts)
            return
        tensors = dict(_named_tensors(module))
        reference, beginning = self._beginnings.get(id(module), (None, ""))
        if reference is None or reference() is not module:
            self._forget_the_dead()
            number, beginning = 0, ""
            while any(self._has_other(beginning + name, tensor) for name, tensor in tensors.items()):
                number += 1
                beginning = f"{type(module).__name__}_{number}."
            self._beginnings[id(module)] = weakref.ref(module), beginning
            self._holders |= {beginning + name: weakref.ref(tensor) for name, tensor in tensors.items()}
        names, holders = self._operands.names, self._holders
        self._named.pop(id(module), None)
        for name, tensor in tensors.items():
            whole = beginning + name
            held = holders.get(whole)
            holder = None if held is None else held()
            if holder is not tensor:
                self._named.clear()
                # The module has another one in its place, as from `load_state_dict(..., assign=True)`.
                holders[whole] = weakref.ref(tensor)
                if holder is not None and names.get(holder) == whole:
                    names.drop(holder)
            names.set(tensor, whole)
        if parts is not None:
            self._named[id(module)] = parts, names.entries(tensors.values())

    def _forget_the_dead(self) -> None:
        """A script may make a module for each step."""
        self._named.clear()
        self._beginnings = {key: each for key, each in self._beginnings.items() if each[0]() is not None}
        self._holders = {name: holder for name, holder in self._holders.items() if holder() is not None}

    def _has_other(self, name: str, tensor: torch.Tensor) -> bool:
        holder = self._holders.get(name)
        return holder is not None and (other := holder()) is not None and other is not tensor

    def note(self, stage: Stage, call: Call) -> None:
        """A call has read its inputs: those that are parameters are dumped when the stage ends."""
        for info, each in zip(call.inputs, call.tensors, strict=True):
            name = self._operands.names.get(each.tensor)
            if name is not None:
                stage.add_parameter(info, name, each.tensor, memory_of(each.tensor))

    def keep(self, forward: Stage, written: Sequence[torch.Tensor]) -> None:
        """Copy those of the forward pass that a call outside of it is about to write.

        An optimizer may write before the forward pass ends, where the script says when a step ends.

        written   tensors that the call may write
        """
        if forward.is_watched:
            memories = {memory_of(tensor) for tensor in written if self._operands.is_readable(tensor)}
            forward.keep_parameters(memories, self._copy)

    def _copy(self, name: str, tensor: torch.Tensor) -> tuple[TensorInfo, Array] | None:
        plan = self.plan
        if plan is None or not plan.operands.outputs or not plan.dumps_parameter(name):
            return None
        info = self._operands.info(tensor)
        return info, self._operands.values.saved(info, tensor)


def _named_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers; of those that several modules share, the first name."""
    named = set()
    for prefix, part in module.named_modules():
        # Modules without either are many.
        if part._parameters or part._buffers:
            for name, tensor in (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)):
                if id(tensor) not in named:
                    named.add(id(tensor))
                    yield plain_name(f"{prefix}.{name}" if prefix else name), tensor

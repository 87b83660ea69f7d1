"""Operands of calls: which tensor each one is, and its array before and after the call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import torch
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from msdump.frontends.torch.convert import why_unreadable
from msdump.frontends.torch.eager.signatures import Tensor
from msdump.frontends.torch.eager.stage import Call, Named
from msdump.frontends.torch.eager.tensors import TensorTable, local, memory_of
from msdump.frontends.torch.eager.values import Values
from msdump.frontends.torch.operators import Path
from msdump.frontends.torch.tensor_map import TensorMap
from msdump.tensors.arrays import Array
from msdump.tensors.records import TensorInfo

# Of a program that is only traced: they have no values, and their sizes may be symbols.
TRACED = (FakeTensor, FunctionalTensor)


class CallOperands:
    """Of one program.

    names          of parameters and buffers
    values         arrays of the current iteration
    reads_inputs   whether an observer reads arrays of inputs
    count_skipped  counts a tensor that cannot be dumped: the reason, and `name` of the operator
    keeps          whether arrays stay as they are until the iteration ends
    """

    state: Hashable = None

    def __init__(self, count_skipped: Callable[..., None], keeps: bool) -> None:
        self.names: TensorMap[str] = TensorMap()
        self.table = TensorTable()
        self.values = Values(self.table, count_skipped, keeps)
        self.reads_inputs = True
        self._count_skipped = count_skipped

    def info(self, tensor: torch.Tensor, origin: tuple[Named | None, str | Path] = (None, "")) -> TensorInfo:
        """Key, dtype and shape of a tensor as it is now; one of codes counts as the numbers that they mean.

        origin   operator and operand that it is first met in; operators of two parts of a step may have one name
        """
        own = local(tensor)
        found = self.table.known(own)
        if found is None:
            name = self.names.get(tensor)
            found = self.table.add(own, origin if name is None else name)
        return found

    def array(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """Of a parameter when a part of a step has ended."""
        return self.values.at_end(info, tensor)

    def known(self, count: int) -> None:
        """As of `ParametersNow`."""

    def note(self, count: int, found: object) -> None:
        """The same."""

    def number(self, tensor: torch.Tensor) -> None:
        """As of `ParametersNow`: nothing was measured as it ran."""

    def is_readable(self, tensor: torch.Tensor, name: str = "") -> bool:
        """Whether it can be dumped; the report counts it where not.   name: of the operator"""
        if isinstance(tensor, TRACED):
            return False
        own = local(tensor)
        reason = "" if own.is_quantized and own.layout is torch.strided else why_unreadable(own)
        if reason:
            self._count_skipped(reason, name=name)
        return not reason

    def note_writes(self, tensors: Sequence[Tensor]) -> None:
        """A call has run, and has written those of its tensors that it writes."""
        for each in tensors:
            if each.is_written and _has_memory(each.tensor):
                self.table.write(local(each.tensor))

    def copies(self, call: Call, given: Sequence[Tensor]) -> Mapping[int, Array]:
        """By slot: copies of the inputs whose memory a call may write, before it runs.

        given  all tensors of the call, memory for its results too
        """
        if not call.signature.is_mutable or not self.reads_inputs:
            return {}
        written = {memory_of(each.tensor) for each in given if each.is_written and _has_memory(each.tensor)}
        slots = [slot for slot, each in enumerate(call.tensors) if memory_of(each.tensor) in written]
        return {slot: self.values.saved(call.inputs[slot], call.tensors[slot].tensor) for slot in slots}

    def copies_of_all(self, call: Call) -> Mapping[int, Array]:
        """As `copies`, of a call that may write any of its inputs."""
        if not self.reads_inputs:
            return {}
        return {slot: self.values.copied(info, call.tensors[slot].tensor) for slot, info in enumerate(call.inputs)}

    def read(self, call: Call) -> None:
        """Arrays of the inputs of a call; those that no observer reads are only views."""
        look = self.values.shown if self.reads_inputs else self.values.view
        call.read = [
            call.copies[slot] if slot in call.copies else look(info, each.tensor)
            for slot, (info, each) in enumerate(zip(call.inputs, call.tensors, strict=True))
        ]

    def write(self, call: Call, results: Sequence[tuple[str | Path, torch.Tensor]]) -> None:
        """The outputs of a call that has run, and their arrays.   results: each with its path in the result"""
        call.outputs = tuple(self.info(tensor, (call.operator, path)) for path, tensor in results)
        call.written = [
            self.values.shown(info, tensor) for info, (_, tensor) in zip(call.outputs, results, strict=True)
        ]


def _has_memory(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, TRACED) and tensor.layout is torch.strided

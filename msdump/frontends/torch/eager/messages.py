"""Messages of an iteration: which one a send or a receive is, which buffers they still occupy, and what arrived.

A receive returns before its message is there, and the program waits when it likes. What has arrived is therefore
looked at as late as possible: right before the first operator that reads or writes the buffer, or when the iteration
ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from msdump.formats.sharding_json import Message, MessageOperand
from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.regions import Region
from msdump.frontends.torch.eager.signatures import Signature, Tensor
from msdump.frontends.torch.eager.stage import Call, Stage
from msdump.frontends.torch.eager.tensors import local
from msdump.frontends.torch.shardings import ShardingBook, process_group
from msdump.tensors.records import INPUT, OUTPUT


@dataclass(frozen=True, slots=True)
class Transfer:
    """A send or a receive that is shown.

    message  None where its sender is not known before it has arrived
    work     what the call returned
    """

    stage: Stage
    call: Call
    message: Message | None
    work: Any

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [each.tensor for each in self.call.tensors]

    @property
    def is_over(self) -> bool:
        """Whether the program has waited for it, as far as this process can tell.

        Source: gloo's works are completed by `wait`. Those of a device are by its stream, which every operator of that
                stream waits for, so that nothing can be said about them here.
        """
        if any(local(tensor).device.type != "cpu" for tensor in self.tensors):
            return True
        try:
            return bool(torch.distributed.Work.unbox(self.work).is_completed())
        except (AttributeError, RuntimeError, TypeError):
            return True


class Messages:
    """Of one program; the thread that runs its operators calls it.

    book           has the messages of the job
    count_skipped  counts tensors that cannot be dumped, by the reason
    """

    def __init__(self, operands: CallOperands, book: ShardingBook, count_skipped: Callable[[str], None]) -> None:
        self._operands = operands
        self._book = book
        self._count_skipped = count_skipped
        self._counts: Counter[tuple[str, int, int, int]] = Counter()
        self._sends: list[Transfer] = []
        self._receives: list[Transfer] = []

    @property
    def are_pending(self) -> bool:
        return bool(self._sends or self._receives)

    def begin(self) -> None:
        """An iteration begins, and messages are numbered anew."""
        self._counts.clear()
        self._sends.clear()
        self._receives.clear()

    def next_message(self, signature: Signature, args: Sequence[object]) -> Message | None:
        """The message of a send or a receive that is about to run; each call must be counted, shown or not."""
        group = next(filter(None, map(process_group, args)), None)
        numbers = [each for each in args if isinstance(each, int)]
        if group is None or len(numbers) != 2:
            return None
        ranks = torch.distributed.get_process_group_ranks(group)
        peer, tag = numbers
        own = torch.distributed.get_rank()
        source, destination = (own, ranks[peer]) if signature.is_send else (ranks[peer], own)
        key = str(group.group_name), source, destination, tag
        number = self._counts[key]
        self._counts[key] += 1
        return Message(*key, number)

    def note(self, transfer: Transfer) -> None:
        """A transfer is under way."""
        if transfer.call.signature.is_send:
            self._sends.append(transfer)
            self._keep(transfer)
        else:
            self._receives.append(transfer)

    def settle(self, signature: Signature | Region, tensors: Sequence[Tensor], name: str) -> None:
        """An operator is about to run: show what has arrived in its tensors.   name: of the operator"""
        sends, receives = self.touched(signature, tensors)
        for transfer in sends:
            self._keep(transfer, f"overwritten by {name} before the message was waited for")
        for transfer in receives:
            misuse = "" if transfer.is_over else f"used by {name} before the message was waited for"
            self._show_received(transfer, misuse)

    def finish(self, stage: Stage) -> None:
        """A stage ends: show the receives that nothing has touched."""
        taken = [one for one in self._receives if one.stage is stage]
        self._receives = [one for one in self._receives if one.stage is not stage]
        self._sends = [one for one in self._sends if one.stage is not stage]
        for transfer in taken:
            if transfer.is_over:
                self._show_received(transfer)
            else:
                self._count_skipped("tensors of a receive that its iteration did not wait for")

    def touched(
        self, signature: Signature | Region, tensors: Sequence[Tensor]
    ) -> tuple[list[Transfer], list[Transfer]]:
        """What an operator that is about to run meets, which is over for this class from here on.

        Returns: sends whose buffers it overwrites before the program has waited for them; receives whose buffers it
                 reads or overwrites.
        """
        # A buffer that the program has waited for is its own again, and need not be kept alive.
        self._sends = [one for one in self._sends if not one.is_over]
        if signature.is_view:
            return [], []
        used = [(_extent(each.tensor), each.is_written) for each in tensors]
        sends = [one for one in self._sends if _meet(one, [extent for extent, is_written in used if is_written])]
        receives = [one for one in self._receives if _meet(one, [extent for extent, _ in used])]
        if sends:
            self._sends = [one for one in self._sends if one not in sends]
        if receives:
            self._receives = [one for one in self._receives if one not in receives]
        return sends, receives

    def _show_received(self, transfer: Transfer, misuse: str = "") -> None:
        """Show a receive as an operator that has run just now: what has arrived is its output."""
        call = transfer.call
        self._operands.read(call)
        self._operands.note_writes(call.tensors)
        self._operands.write(call, [(each.name, each.tensor) for each in call.tensors])
        transfer.stage.show(call)
        self._keep(transfer, misuse)

    def _keep(self, transfer: Transfer, misuse: str = "") -> None:
        """Put the message into the sharding of the job."""
        if transfer.message is not None and self._book.is_on:
            io = INPUT if transfer.call.signature.is_send else OUTPUT
            stage = transfer.stage
            operand = stage.graph.graph_id, transfer.call.name, io, 0, stage.iteration
            self._book.note_message(MessageOperand(*operand, transfer.message, misuse))


def _extent(tensor: torch.Tensor) -> tuple[int, int] | None:
    """First byte and the one behind the last of what a tensor lies in; None where it has no memory."""
    own = local(tensor)
    if own.layout is not torch.strided or own.numel() == 0:
        return None
    try:
        start = int(own.data_ptr())
    except RuntimeError:  # a tensor without memory of its own, as one that is traced
        return None
    reach = sum((size - 1) * stride for size, stride in zip(own.shape, own.stride(), strict=True))
    return start, start + (reach + 1) * own.element_size()


def _meet(transfer: Transfer, extents: Sequence[tuple[int, int] | None]) -> bool:
    own = [extent for extent in map(_extent, transfer.tensors) if extent is not None]
    return any(
        extent is not None and extent[0] < stop and start < extent[1] for start, stop in own for extent in extents
    )

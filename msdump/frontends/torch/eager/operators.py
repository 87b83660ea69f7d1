"""Runs of operators, and of regions as operators, in a stage that is dumped: those that are selected are shown."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import torch

from msdump.frontends.torch.eager.messages import Messages, Transfer
from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.parameters import Parameters
from msdump.frontends.torch.eager.regions import Region, RegionCounts
from msdump.frontends.torch.eager.shardings import OperandShardings
from msdump.frontends.torch.eager.signatures import Signature, signature_of
from msdump.frontends.torch.eager.stage import FORWARD, UPDATE, Call, Stage
from msdump.frontends.torch.eager.tensors import version_of
from msdump.frontends.torch.operators import Path, results_in
from msdump.graph.types import SourceLine

if TYPE_CHECKING:
    from msdump.config.plan import Plan
    from msdump.formats.sharding_json import Message

_FOREIGN = (torch.__path__[0], __file__.rpartition("/frontends/")[0])


class Operators:
    """Of one program. The caller knows the stage and the scope of each.

    forward   the stage whose parameters other stages may overwrite
    counts    of regions, for the report
    """

    def __init__(
        self,
        forward: Stage,
        operands: CallOperands,
        parameters: Parameters,
        messages: Messages,
        shardings: OperandShardings,
        counts: RegionCounts,
    ) -> None:
        self._forward = forward
        self._operands = operands
        self._parameters = parameters
        self._messages = messages
        self._shardings = shardings
        self._counts = counts
        self._plan: Plan | None = None
        self._is_selected: dict[str, bool] = {}

    def take_plan(self, plan: Plan) -> None:
        """Another plan selects from the next iteration on."""
        self._plan = plan
        self._is_selected.clear()

    def forget(self) -> None:
        """Forget which operators are selected; between two iterations."""
        self._is_selected.clear()

    def run(
        self,
        stage: Stage,
        scope: str,
        function: torch._ops.OpOverload,
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        """Run an operator.   Returns: what it returns.   Raises: what it raises."""
        signature = signature_of(function)
        if signature.is_mutable and stage is not self._forward:
            written = [each.tensor for each in signature.tensors(args, keywords) if each.is_written]
            self._parameters.keep(self._forward, written)
        number = stage.number(signature.op_type)
        name = f"{scope}/{signature.op_type}-op{number}"
        if self._messages.are_pending:
            self._messages.settle(signature, signature.tensors(args, keywords), name)
        message = self._messages.next_message(signature, args) if signature.is_message else None
        if not self._selects(name):
            result = function(*args, **keywords)
            if signature.is_mutable:
                self._operands.note_writes(signature.tensors(args, keywords))
            return result
        call = self._call(signature, scope, number, name, args, keywords)
        call.copies = self._operands.copies(call)
        return self._show(stage, call, message, function, args, keywords)

    def run_region(
        self,
        stage: Stage,
        scope: str,
        region: Region,
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        """As `run`, of what `torch.compile` made."""
        # An optimizer that is compiled holds the parameters itself.
        held = self._operands.names.tensors() if stage.part == UPDATE else []
        tensors = region.tensors(args, keywords)
        if stage.part != FORWARD:
            self._parameters.keep(self._forward, [*(each.tensor for each in tensors), *held])
        number = stage.number(region.op_type)
        name = f"{scope}/{region.op_type}-op{number}"
        if self._messages.are_pending:
            self._messages.settle(region, tensors, name)
        is_selected = self._selects(name)
        self._counts.count(region, is_selected)
        try:
            if not is_selected:
                return function(*args, **keywords)
            call = self._call(region, scope, number, name, args, keywords)
            call.copies = self._operands.copies_of_all(call)
            return self._show_region(stage, call, function, args, keywords, held)
        finally:
            self._operands.table.disturb()

    # -- parts ------------------------------------------------------------------------------------

    def _selects(self, name: str) -> bool:
        is_selected = self._is_selected.get(name)
        if is_selected is None:
            assert self._plan is not None
            (mask,) = self._plan.masks([name])
            is_selected = self._is_selected[name] = mask != 0
        return is_selected

    def _call(
        self,
        signature: Signature | Region,
        scope: str,
        number: int,
        name: str,
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> Call:
        """A call that is about to run."""
        tensors = [each for each in signature.tensors(args, keywords) if self._operands.is_readable(each.tensor, name)]
        inputs = tuple(self._operands.info(each.tensor, (name, each.name)) for each in tensors)
        return Call(signature, scope, number, name, tensors, lambda: signature.attributes(args, keywords), inputs)

    def _show(
        self,
        stage: Stage,
        call: Call,
        message: Message | None,
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        signature = call.signature
        result = self._run(stage, call, function, args, keywords)
        if signature.is_message and call.tensors:
            self._messages.note(Transfer(stage, call, message, result, _source()))
            if signature.is_receive:
                return result
        if signature.is_mutable:
            self._operands.note_writes(call.tensors)
        if signature.is_waited:
            result = _waited(result)
        self._show_results(stage, call, list(results_in(result)), function, args)
        return result

    def _show_region(
        self,
        stage: Stage,
        call: Call,
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
        held: Sequence[torch.Tensor],
    ) -> object:
        """What it is given, and what it returns; what it has overwritten counts as returned, too.

        held   what it may overwrite beside what it is given
        """
        versions = [(tensor, version_of(tensor)) for tensor in (*(each.tensor for each in call.tensors), *held)]
        result = self._run(stage, call, function, args, keywords)
        self._operands.table.disturb()
        written = {id(tensor): tensor for tensor, version in versions if version_of(tensor) != version}
        call.tensors = [replace(each, is_written=id(each.tensor) in written) for each in call.tensors]
        results = list(results_in(result))
        for _, tensor in results:
            written.pop(id(tensor), None)
        results += [((-1, index), tensor) for index, tensor in enumerate(written.values())]
        self._show_results(stage, call, results, function, args)
        return result

    def _run(
        self,
        stage: Stage,
        call: Call,
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        """Run it, and show it where it raises.   Raises: what it raises."""
        try:
            return function(*args, **keywords)
        except Exception as error:
            call.error = error
            self._operands.read(call)
            stage.show_failed(call, _source)
            raise

    def _show_results(
        self,
        stage: Stage,
        call: Call,
        results: Sequence[tuple[Path, torch.Tensor]],
        function: Callable[..., object],
        args: Sequence[object],
    ) -> None:
        results = [(path, tensor) for path, tensor in results if self._operands.is_readable(tensor, call.name)]
        if call.tensors or results:
            self._operands.read(call)
            self._operands.write(call, results)
            self._parameters.note(stage, call)
            stage.show(call, _source)
            self._shardings.note(stage, call, function, args, [tensor for _, tensor in results])


def _waited(result: object) -> object:
    """Results of a collective once they are there. Waiting again, as the program will, does nothing."""
    for item in result if isinstance(result, tuple | list) else (result,):
        if isinstance(item, torch.Tensor):
            # Functional collectives return plain tensors whose memory is written later.
            torch.ops._c10d_functional.wait_tensor(item)
        elif hasattr(item, "wait"):
            item.wait()
    return result


def _source() -> list[SourceLine]:
    """The innermost line of the script."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_FOREIGN):
        frame = frame.f_back
    if frame is None:
        return []
    path, number = frame.f_code.co_filename, frame.f_lineno
    return [SourceLine(path, number, linecache.getline(path, number).rstrip("\r\n"))]

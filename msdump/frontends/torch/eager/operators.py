"""Runs of operators, and of regions as operators, in a stage that is dumped: those that are selected are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from msdump.frontends.torch.eager.call_sites import call_lines, call_site
from msdump.frontends.torch.eager.cost import StepCost
from msdump.frontends.torch.eager.messages import Messages, Transfer
from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.parameters import Parameters
from msdump.frontends.torch.eager.regions import Region, RegionCounts
from msdump.frontends.torch.eager.scopes import OperatorScopes
from msdump.frontends.torch.eager.shardings import OperandShardings
from msdump.frontends.torch.eager.signatures import Signature, Tensor, signature_of
from msdump.frontends.torch.eager.stage import FORWARD, UPDATE, Call, Named, Stage
from msdump.frontends.torch.eager.tensors import version_of
from msdump.frontends.torch.operators import Path, results_in
from msdump.tensors.unseen import beside_operator, unseen

if TYPE_CHECKING:
    from torch.autograd.graph import Node

    from msdump.config.plan import Plan
    from msdump.formats.sharding_json import Message


# From `_operator` to what PyTorch calls, or to what runs in place of a region.
_DEPTH = 4


class Operators:
    """Of one program. The caller knows the stage and the scope of each.

    cost      is told when the script's own work begins and ends
    forward   the stage whose parameters other stages may overwrite
    counts    of regions, for the report
    """

    def __init__(
        self,
        cost: StepCost,
        forward: Stage,
        operands: CallOperands,
        parameters: Parameters,
        messages: Messages,
        shardings: OperandShardings,
        counts: RegionCounts,
        scopes: OperatorScopes,
    ) -> None:
        self._cost = cost
        self._forward = forward
        self._scopes = scopes
        self._operands = operands
        self._parameters = parameters
        self._messages = messages
        self._shardings = shardings
        self._counts = counts
        self._plan: Plan | None = None

    def take_plan(self, plan: Plan) -> None:
        """Another plan selects from the next iteration on."""
        self._plan = plan

    def run(
        self,
        stage: Stage,
        scope: str,
        node: Node | None,
        function: torch._ops.OpOverload,
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        """Run an operator.   Returns: what it returns.   Raises: what it raises.

        node  of autograd, which runs it; None outside of a backward pass
        """
        signature = signature_of(function)
        with beside_operator():
            given = signature.tensors(args, keywords)
            if signature.is_mutable and stage is not self._forward:
                self._parameters.keep(self._forward, [each.tensor for each in given if each.is_written])
            operator = self._operator(stage, scope, signature.op_type, node)
            self._scopes.note_nodes(operator)
            if self._messages.are_pending:
                self._messages.settle(signature, given, operator.name)
            message = self._messages.next_message(signature, args) if signature.is_message else None
            call = None
            if self._selects(operator):
                call = self._call(signature, scope, operator, given, args, keywords)
                call.copies = self._operands.copies(call, given)
        if call is not None:
            return self._show(stage, call, message, given, function, args, keywords)
        result = self._cost.of_script(function, args, keywords)
        if signature.is_mutable:
            self._operands.note_writes(given)
        return result

    def run_region(
        self,
        stage: Stage,
        scope: str,
        node: Node | None,
        region: Region,
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        """As `run`, of what `torch.compile` made."""
        with unseen:
            # An optimizer that is compiled holds the parameters itself.
            held = self._operands.names.tensors() if stage.part == UPDATE else []
            tensors = region.tensors(args, keywords)
            if stage.part != FORWARD:
                self._parameters.keep(self._forward, [*(each.tensor for each in tensors), *held])
            operator = self._operator(stage, scope, region.op_type, node)
            if self._messages.are_pending:
                self._messages.settle(region, tensors, operator.name)
            is_selected = self._selects(operator)
            self._counts.count(region, is_selected)
        try:
            if not is_selected:
                return self._cost.of_script(function, args, keywords)
            with unseen:
                call = self._call(region, scope, operator, tensors, args, keywords)
                call.copies = self._operands.copies_of_all(call)
            return self._show_region(stage, call, function, args, keywords, held)
        finally:
            # Of its nodes that run one by one, where it has no graph of its gradients.
            self._scopes.note_nodes(operator)
            self._operands.table.disturb()

    # -- parts ------------------------------------------------------------------------------------

    def _selects(self, operator: Named) -> bool:
        assert self._plan is not None
        return operator.is_selected_by(self._plan)

    def _operator(self, stage: Stage, scope: str, op_type: str, node: Node | None) -> Named:
        """The operator that is about to run."""
        site = call_site(_DEPTH)
        if site or node is None:
            operator = stage.named(scope, op_type, site)
        else:
            # One of those that autograd runs for the gradient of an operator.
            operator = stage.named(scope, op_type, (self._scopes.forward,))
            operator.of = self._scopes.forward
        if stage is self._forward and operator.lines is None:
            # Selected or not: its gradient has them, too.
            operator.lines = call_lines()
        return operator

    def _call(
        self,
        signature: Signature | Region,
        scope: str,
        operator: Named,
        given: Sequence[Tensor],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> Call:
        """A call that is about to run.   given: its tensors"""
        if operator.lines is None:
            operator.lines = call_lines()
        is_readable, info = self._operands.is_readable, self._operands.info
        tensors = [each for each in given if each.is_read and is_readable(each.tensor, operator.name)]
        inputs = tuple([info(each.tensor, (operator, each.name)) for each in tensors])
        numbers = _numbers(args, keywords)
        return Call(signature, scope, operator, tensors, lambda: signature.attributes(args, keywords), inputs, numbers)

    def _show(
        self,
        stage: Stage,
        call: Call,
        message: Message | None,
        given: Sequence[Tensor],
        function: Callable[..., object],
        args: Sequence[object],
        keywords: Mapping[str, object],
    ) -> object:
        signature = call.signature
        result = self._run(stage, call, function, args, keywords)
        if signature.is_message and call.tensors:
            self._messages.note(Transfer(stage, call, message, result))
            if signature.is_receive:
                return result
        written = given if signature.is_mutable else ()
        if written:
            self._operands.note_writes(written)
        if signature.is_waited:
            result = _waited(result)
        results = list(results_in(result))
        if not results:
            # Those on lists return nothing of what they write.
            results = [((index,), each.tensor) for index, each in enumerate(written) if each.is_written]
        self._show_results(stage, call, results, function, args)
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
        call.tensors = [each._replace(is_written=id(each.tensor) in written) for each in call.tensors]
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
            return self._cost.of_script(function, args, keywords)
        except Exception as error:
            call.error = error
            with beside_operator():
                self._operands.read(call)
                stage.show_failed(call)
            raise

    def _show_results(
        self,
        stage: Stage,
        call: Call,
        results: Sequence[tuple[Path, torch.Tensor]],
        function: Callable[..., object],
        args: Sequence[object],
    ) -> None:
        with beside_operator():
            results = [(path, tensor) for path, tensor in results if self._operands.is_readable(tensor, call.name)]
            if call.tensors or results:
                self._operands.read(call)
                self._operands.write(call, results)
                self._parameters.note(stage, call)
                stage.show(call)
                self._shardings.note(stage, call, function, args, [tensor for _, tensor in results])


def _numbers(args: Sequence[object], keywords: Mapping[str, object]) -> tuple[object, ...]:
    """Floats among the arguments, alone or in lists; NaN as text, as it is unequal to itself."""
    numbers: list[object] = []
    for value in (*args, *keywords.values()) if keywords else args:
        if type(value) is float:
            numbers.append(value if value == value else "nan")
        elif type(value) is list and value and type(value[0]) is float:
            numbers.append(repr(value))
    return tuple(numbers)


def _waited(result: object) -> object:
    """Results of a collective once they are there. Waiting again, as the program will, does nothing."""
    for item in result if isinstance(result, tuple | list) else (result,):
        if isinstance(item, torch.Tensor):
            # Functional collectives return plain tensors whose memory is written later.
            torch.ops._c10d_functional.wait_tensor(item)
        elif hasattr(item, "wait"):
            item.wait()
    return result

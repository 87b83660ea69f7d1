"""Shardings of the operands of calls over the ranks of a job, and replicas that the flight recorder compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from msdump.frontends.torch.eager.operands import CallOperands
from msdump.frontends.torch.eager.stage import FORWARD, UPDATE, Call, Stage
from msdump.frontends.torch.shardings import ShardingBook
from msdump.statistics.stats import MeasuredArray
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TensorInfo, TensorKey

if TYPE_CHECKING:
    from msdump.engine.recording.recorder import Recorder
    from msdump.formats.sharding_json import TensorSharding


class OperandShardings:
    """Of one program.

    book      of all programs of the session
    recorder  compares replicas, each once in an iteration; None for an ordinary dump
    """

    def __init__(self, book: ShardingBook, operands: CallOperands, recorder: Recorder | None) -> None:
        self._book = book
        self._operands = operands
        self._recorder = recorder
        self._are_gradients_reduced = False
        self._compared: set[tuple[TensorKey, tuple[int, ...]]] = set()

    def end_iteration(self) -> None:
        self._are_gradients_reduced = False
        self._compared.clear()
        self._book.end_iteration()

    def note(
        self,
        stage: Stage,
        call: Call,
        function: Callable[..., object],
        args: Sequence[object],
        results: Sequence[torch.Tensor],
    ) -> None:
        """A call has run and was shown.   results: tensors that it returned"""
        if not self._book.is_on:
            return
        book, graph_id, name, iteration = self._book, stage.graph.graph_id, call.name, stage.iteration
        is_copy = function is torch.ops.aten.copy_.default
        if stage.part == UPDATE and not self._are_gradients_reduced and not is_copy:
            # DistributedDataParallel ends its reduction with copies into the gradients.
            self._are_gradients_reduced = True
            book.note_gradients()
        # A copy does not read what it writes over.
        read = [None if is_copy and each.is_written else each.tensor for each in call.tensors]
        mesh = book.note_collective(function, args)
        of_inputs = book.note(graph_id, name, INPUT, read, iteration)
        of_outputs = book.note(graph_id, name, OUTPUT, results, iteration, mesh)
        if stage.part == FORWARD:
            tensors = [each.tensor for each in call.tensors]
            self._compare(f"input of {name}", of_inputs, call.inputs, call.read, tensors)
        if mesh is not None:
            self._compare(f"output of {name}", of_outputs, call.outputs, call.written, results, is_shared=True)
        for each in call.tensors:
            parameter = self._operands.names.get(each.tensor)
            if parameter is not None:
                book.note(graph_id, parameter, OUTPUT, [each.tensor], iteration)

    def _compare(
        self,
        name: str,
        shardings: Sequence[TensorSharding | None],
        infos: Sequence[TensorInfo],
        arrays: Sequence[Array],
        tensors: Sequence[torch.Tensor],
        is_shared: bool = False,
    ) -> None:
        """Give the flight recorder the operands that other ranks must hold in equal bytes."""
        replicas = None if self._recorder is None else self._recorder.replicas
        if replicas is None:
            return
        for sharding, info, array, tensor in zip(shardings, infos, arrays, tensors, strict=True):
            identity = info.key, info.shape
            if sharding is None or identity in self._compared or array.shape != info.shape:
                continue
            ranks = sharding.equal_ranks
            if len(ranks) > 1:
                self._compared.add(identity)
                if isinstance(array, MeasuredArray):  # its statistics do not tell two ranks apart
                    array = self._operands.values.view(info, tensor)
                replicas.note(ranks, self._operands.names.get(tensor) or name, array, is_shared)

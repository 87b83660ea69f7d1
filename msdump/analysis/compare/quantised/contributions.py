"""What each operator and each rounding of a quantised step adds, with the noise of its codes."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.analysis.compare.quantised.float_form import Rounding
from msdump.analysis.compare.quantised.noise import (
    ActivationNoise,
    LostChannel,
    activation_noise,
    folded_cut,
    lost_channel,
    relative_error,
    sqnr_db,
    weight_noise,
)
from msdump.analysis.compare.quantised.numbers import loaded
from msdump.analysis.compare.quantised.pairs import QuantisedPairing, parts_of
from msdump.analysis.compare.quantised.ranking import Contribution
from msdump.analysis.compare.quantised.references import Reference
from msdump.analysis.compare.quantised.tails import first_type
from msdump.analysis.compare.quantised.wires import ContentKey
from msdump.analysis.compare.result import OperatorResult, StepResult, TensorResult
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import channel_axis, family, has_weight
from msdump.operators.kinds import has, operand_slots
from msdump.tensors.arrays import Array

# Relative error that scales which do not fit each other make at least.
_MISREAD = 0.01
# Inputs of a normalisation, and what it adds to the variance unless it is told otherwise.
_FACTOR_AND_VARIANCE = Slot(1), Slot(4)
_EPSILON = 1e-5


def contributions_of(step: StepResult, pairing: QuantisedPairing, is_mine: bool) -> Iterator[Contribution]:
    """Of the operators of a step and of the roundings between them, in execution order.

    is_mine   whether mine is the side with codes
    """
    made = _Made(step, pairing, is_mine)
    by_operator: dict[int, list[Reference]] = {}
    alone = []
    for reference in pairing.references:
        owner = reference.codes or (reference.rounding.operator if reference.is_folded else None)
        if owner is None:
            alone.append(reference)
        else:
            by_operator.setdefault(id(owner), []).append(reference)
    for result in step.operators:
        codes, floats = (result.pair.mine, result.pair.golden) if is_mine else (result.pair.golden, result.pair.mine)
        if codes.is_parameter:
            continue
        slots = pairing.weights.get(id(codes), {})
        own = by_operator.get(id(codes), ())
        rounded = {id(each.rounding.result) for each in own if each.rounding.reader is not None}
        came_in, misread = _read_errors(result, slots, rounded, made, pairing, is_mine)
        error = error_beside_terms(result)
        matrices = list(_weights(result, slots, floats, is_mine))
        weights = [weight_noise(one.golden, one.codes, one.bits, one.channel_axis) for one in matrices]
        activations = [_activation(reference, made) for reference in own]
        misread = max([misread, *(_misread(reference.rounding) for reference in own)])
        first = first_type(floats)
        bias = Slot(operand_slots(first)[2]) if has_weight(first) else None
        biases = [_sqnr_db(one, is_mine) for one in result.inputs if one.slot == bias and one.slot in slots]
        yield Contribution(
            step.mine, codes, floats, came_in, error,
            min(weights, key=lambda one: one.sqnr_db, default=None),
            min((one for one in activations if one is not None), key=lambda one: one.sqnr_db, default=None),
            bias_db=next(iter(biases), None), misread=misread,
            lost=_lost(result, matrices, is_mine, came_in) if has_weight(first) else None,
        )  # fmt: skip
    for reference in alone:
        yield _of_rounding(step.mine, reference)


def error_beside_terms(result: OperatorResult) -> float | None:
    """Relative error of a result; of a sum or a mean beside the terms, which may have cancelled."""
    error, floats = result.output_error, result.pair.golden
    terms, total = (loaded(side.get(Slot(0))) for side in (floats.inputs, floats.outputs))
    if not error or not has(floats.op_type, "sums") or terms is None or total is None:
        return error
    large, small = (float(np.sqrt(np.mean(np.square(one, dtype=np.float64)))) for one in (terms, total))
    return error * min(1.0, small / large) if large else error


class _Made:
    """What the pairs of a step make, by what that is in floats."""

    def __init__(self, step: StepResult, pairing: QuantisedPairing, is_mine: bool) -> None:
        self._wires = pairing.floats.wires
        self._results: dict[ContentKey, TensorResult] = {}
        self._is_mine = is_mine
        for result in step.operators:
            for tensor in () if result.pair.mine.is_parameter else result.outputs[:1]:
                key = self._wires.key(self._sides(tensor)[1])
                if key is not None:
                    self._results[key] = tensor

    def error_of(self, floats: DumpedTensor) -> float | None:
        """Relative error of the tensor; None where no pair made it, as of data."""
        result = self._result(floats)
        return None if result is None else result.error

    def source_of(self, floats: DumpedTensor) -> DumpedTensor:
        """The tensor that stands for it beside the codes; itself where no pair made it."""
        result = self._result(floats)
        return floats if result is None else self._sides(result)[0]

    def _result(self, floats: DumpedTensor) -> TensorResult | None:
        key = self._wires.key(floats)
        return None if key is None else self._results.get(key)

    def _sides(self, tensor: TensorResult) -> tuple[DumpedTensor, DumpedTensor]:
        return (tensor.mine, tensor.golden) if self._is_mine else (tensor.golden, tensor.mine)


def _read_errors(
    result: OperatorResult,
    weights: Container[Slot],
    rounded: Container[int],
    made: _Made,
    pairing: QuantisedPairing,
    is_mine: bool,
) -> tuple[float | None, float]:
    """The largest error of what an operator reads, as it was made; and how far codes that it reads by scales of its own
    are from what was written.

    rounded   ids of what it rounds itself
    """
    came_in: float | None = None
    misread = 0.0
    for tensor in result.inputs:
        error = tensor.error
        if tensor.slot in weights or error is None:
            continue
        own, floats = (tensor.mine, tensor.golden) if is_mine else (tensor.golden, tensor.mine)
        if id(own) in rounded:
            error = min(error, made.error_of(floats) or 0.0)
        written = loaded(pairing.written.get(id(own)))
        codes, golden = _both(tensor, is_mine) if written is not None else (None, None)
        if written is not None and codes is not None and golden is not None:
            distance = relative_error(codes, written)
            if _MISREAD < distance < math.inf:
                misread, error = max(misread, distance), relative_error(written, golden)
        came_in = error if came_in is None else max(came_in, error)
    return came_in, misread


def _of_rounding(step: StepKey, reference: Reference) -> Contribution:
    rounding = reference.rounding
    before, after, golden = map(loaded, (rounding.source, rounding.result, reference.tensor))
    error = None if after is None or golden is None else relative_error(after, golden)
    came_in = None if before is None or golden is None else relative_error(before, golden)
    return Contribution(
        step, rounding.operator, reference.operator, came_in, error, None, _activation(reference, None),
        misread=_misread(rounding),
    )  # fmt: skip


def _misread(rounding: Rounding) -> float:
    """Relative error of the numbers that are made of codes against those that were written; 0 where they fit."""
    after, written = (None if rounding.written is None else loaded(one) for one in (rounding.result, rounding.written))
    error = 0.0 if after is None or written is None else relative_error(after, written)
    return error if _MISREAD < error < math.inf else 0.0


@dataclass(frozen=True, eq=False, slots=True)
class _Weight:
    """A weight in floats, with a normalisation behind its operator multiplied in, and as codes have it."""

    golden: Array
    codes: Array
    bits: int | None
    channel_axis: int


def _weights(
    result: OperatorResult, slots: Mapping[Slot, int | None], floats: Operator, is_mine: bool
) -> Iterator[_Weight]:
    for tensor in result.inputs:
        codes, golden = _both(tensor, is_mine) if tensor.slot in slots else (None, None)
        if codes is None or golden is None or golden.ndim < 2:
            continue
        axis = channel_axis(floats.op_type, golden.ndim)
        for part in parts_of(floats) if golden.shape == codes.shape else ():
            factor, variance = (loaded(part.inputs.get(slot)) for slot in _FACTOR_AND_VARIANCE)
            if family(part.op_type) != "batch_norm" or factor is None or variance is None:
                continue
            if factor.size == variance.size == golden.shape[axis]:
                shape = [-1 if index == axis else 1 for index in range(golden.ndim)]
                golden = golden * (factor / np.sqrt(variance + _EPSILON)).reshape(shape)
        yield _Weight(golden, codes, slots[tensor.slot], axis)


def _lost(
    result: OperatorResult, weights: Sequence[_Weight], is_mine: bool, came_in: float | None
) -> LostChannel | None:
    """The output channel that the weight of an operator spoils most."""
    if len(weights) != 1 or not result.outputs:
        return None
    (weight,) = weights
    made, wanted = _both(result.outputs[0], is_mine)
    if made is None or wanted is None:
        return None
    both = weight.golden, weight.codes
    return lost_channel(both, (wanted, made), weight.bits, weight.channel_axis, came_in or 0.0)


def _sqnr_db(tensor: TensorResult, is_mine: bool) -> float | None:
    codes, golden = _both(tensor, is_mine)
    return None if codes is None or golden is None else sqnr_db(golden, codes)


def _both(tensor: TensorResult, is_mine: bool) -> tuple[Array | None, Array | None]:
    """The numbers that codes mean, and those in floats."""
    arrays = loaded(tensor.mine), loaded(tensor.golden)
    return arrays if is_mine else (arrays[1], arrays[0])


def _activation(reference: Reference, made: _Made | None) -> ActivationNoise | None:
    rounding = reference.rounding
    source = rounding.source
    if rounding.reader is not None and made is not None and reference.tensor is not None:
        source = made.source_of(reference.tensor)
    golden, before = loaded(reference.tensor), loaded(source)
    after, codes = loaded(rounding.result), loaded(rounding.codes)
    cut = (-math.inf, math.inf) if golden is None else folded_cut(golden, reference.is_folded)
    signal = golden if before is None else before
    if signal is None or after is None:
        return None
    return activation_noise(
        signal, after, codes, rounding.levels, cut,
        is_same_run=before is not None, has_row_scales=rounding.reader is not None,
    )  # fmt: skip

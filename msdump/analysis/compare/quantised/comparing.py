"""The way of a comparison where one side is a quantised model: steps are brought into floats, paired, and judged by
what each operator adds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.pipeline import ComparedSide, StepPair
from msdump.analysis.compare.quantised.float_form import FloatForm, float_form
from msdump.analysis.compare.quantised.pairs import QuantisedPairing, pair_forms, prepared_weights
from msdump.analysis.compare.quantised.signs import quantised_types
from msdump.analysis.compare.quantised.verdict import settled, verdict_on
from msdump.analysis.compare.result import Comparison
from msdump.analysis.compare.step_pairs import pair_steps
from msdump.analysis.memory_state import Moment, UnsetTensors
from msdump.analysis.steps import Operator, Step, as_they_ran
from msdump.operators.codes import computes_on_codes, family, has_weight, quantises


@dataclass(frozen=True, eq=False)
class QuantisedSteps:
    """Steps of a quantised model and of one in floats that belong together, before any tensor is compared.

    pairs      as `pair_sides` gives them, of the float forms
    pairings   of each pair, with weights and roundings
    is_mine    whether mine is the side with codes
    """

    pairs: tuple[StepPair, ...]
    pairings: tuple[QuantisedPairing, ...]
    is_mine: bool

    def judged(self, comparison: Comparison, tolerance: float | None) -> Comparison:
        """The comparison of these pairs with the verdict on what operators add.

        tolerance   relative error that still agrees; None: what quantisation explains
        Edges:      without a verdict where the models were given other data, or no codes are known
        """
        if not all(pairing.has_equal_data for pairing in self.pairings):
            return comparison
        verdict = verdict_on(list(zip(comparison.steps, self.pairings, strict=True)), self.is_mine, tolerance)
        if not any(one.is_quantised for one in verdict.ranking):
            return comparison
        return settled(comparison, verdict, tolerance)


def pair_quantised(mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap | None) -> QuantisedSteps | None:
    """Pair the steps and operators of two dumps of which one is of a quantised model.

    Returns: None where neither is, or where both have codes in one form: then codes are compared as they are
    """
    kinds = [quantised_types(side.steps) for side in (mine, golden)]
    if kinds[0] == kinds[1]:
        return None
    # Of two sides with codes the one that computes with them is brought into floats further.
    on_codes = [sum(map(computes_on_codes, kind)) for kind in kinds]
    is_mine = bool(kinds[0]) and on_codes[0] >= on_codes[1] if kinds[1] else True
    forms = {id(side): _Forms(side) for side in (mine, golden)}
    own, other = forms[id(mine)], forms[id(golden)]
    codes = own if is_mine else other
    prepared = prepared_weights(codes.of(step) for step in codes.preparing_steps())
    pairs, pairings = [], []
    for my_step, golden_step in _steps_of_work(as_they_ran(mine.steps), golden.steps, is_mine):
        pairing = pair_forms(own.of(my_step), other.of(golden_step), mapping, is_mine, prepared)
        x = my_step, mine.graphs.of(my_step.key), mine.is_same
        y = golden_step, golden.graphs.of(golden_step.key), golden.is_same
        pairs.append(
            StepPair(
                my_step, golden_step, pairing.pairing, (Moment(*x), Moment(*y)), (UnsetTensors(*x), UnsetTensors(*y))
            )
        )
        pairings.append(pairing)
    return QuantisedSteps(tuple(pairs), tuple(pairings), is_mine)


class _Forms:
    """Float forms of the steps of one dump, each made when it is first asked for."""

    def __init__(self, side: ComparedSide) -> None:
        self._side = side
        self._forms: dict[int, FloatForm] = {}

    def of(self, step: Step) -> FloatForm:
        if id(step) not in self._forms:

            def attributes(operator: Operator) -> Mapping[str, Any] | None:
                node = self._side.graphs.node(step.key, operator)
                return None if node is None else node.attrs

            self._forms[id(step)] = float_form(step.operators, attributes)
        return self._forms[id(step)]

    def preparing_steps(self) -> list[Step]:
        """Steps that round something: weights are rounded before the model runs, in a step of their own perhaps."""
        return [step for step in self._side.steps if any(quantises(each.op_type) for each in step.operators)]


def _steps_of_work(mine: Sequence[Step], golden: Sequence[Step], is_mine: bool) -> list[tuple[Step, Step]]:
    """Steps that belong together: those that multiply the same, and where they can those that do so on codes, because a
    model that is quantised while a script runs has steps more than the other one, to measure and to round; so has one
    in floats that sets its weights before it calls its modules.

    is_mine   whether mine is the side with codes
    """
    pairs = pair_steps(mine, golden)
    work = {id(step): _work(step) for step in (*mine, *golden)}
    candidates = mine if is_mine else golden
    on_codes = {id(step): any(computes_on_codes(each.op_type) for each in step.operators) for step in candidates}

    def likeness(codes: Step, floats: Step) -> tuple[bool, int]:
        shared = (work[id(codes)] & work[id(floats)]).total()
        return on_codes[id(codes)] and shared > 0, shared

    oriented = [pair if is_mine else pair[::-1] for pair in pairs]
    floats_of = golden if is_mine else mine
    if not oriented:
        oriented = [(step, other) for step in candidates if work[id(step)] for other in floats_of[:1]]
    found: list[tuple[Step, Step]] = []
    taken: set[int] = set()
    for codes, floats in oriented:
        rivals = [step for step in candidates if id(step) not in taken and step.key.rank_id == codes.key.rank_id]
        best = max(rivals, key=lambda step, floats=floats: likeness(step, floats), default=codes)  # type: ignore[misc]
        if id(codes) in taken or likeness(best, floats) > likeness(codes, floats):
            codes = best
        taken.add(id(codes))
        if not pairs:
            alike = [step for step in floats_of if step.key[::2] == floats.key[::2] and id(step) not in taken]
            floats = max(alike, key=lambda step, codes=codes: likeness(codes, step), default=floats)  # type: ignore[misc]
        taken.add(id(floats))
        found.append((codes, floats))
    return [pair if is_mine else pair[::-1] for pair in found]


def _work(step: Step) -> Counter[tuple[str, int]]:
    """Products and convolutions of a step by the number of their elements."""
    return Counter(
        (family(operator.op_type), math.prod(host_shape(tensor)))
        for operator in step.operators
        if has_weight(operator.op_type)
        for tensor in operator.outputs.values()
    )

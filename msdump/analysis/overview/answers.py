"""JSON values of the commands' results; docs/json.md describes them."""

from __future__ import annotations

from collections.abc import Iterable

from msdump.analysis.compare.report import metrics_value
from msdump.analysis.find.between import BadGradients
from msdump.analysis.find.look_up import ShownOperator, SourceHit
from msdump.analysis.find.nan import BadTensor, BenignInf, Growth, NonFinite, NonFiniteReport
from msdump.analysis.json_values import (
    Value,
    damaged_values,
    line_value,
    location_value,
    operator_value,
    step_value,
    tensor_value,
)
from msdump.analysis.learning.kinds import LearningFinding
from msdump.analysis.learning.words import details, sentence
from msdump.analysis.missing import lost_values
from msdump.analysis.replay.replay import Replay
from msdump.analysis.stat.rows import StatisticReport, TensorStatistics
from msdump.analysis.steps import Operator
from msdump.statistics.exponents import ExponentHistogram


def statistics_value(report: StatisticReport, rows: Iterable[TensorStatistics]) -> Value:
    """`rows` are those of the report that were selected."""
    return {
        "tensors": [_statistics_row(row) for row in rows],
        "lost": lost_values(report.lost),
        "damaged": damaged_values(report.damaged),
    }


def _statistics_row(row: TensorStatistics) -> Value:
    tensor, operator = row.tensor, row.operator
    label, op_type = (tensor.op_name, tensor.op_type) if operator is None else (operator.label, operator.op_type)
    return {
        "step": step_value(row.step),
        "operator": label,
        "op_type": op_type,
        "number": row.number,
        **tensor_value(tensor, row.numbers, shape=row.shape),
        "md5": row.md5,
        "parameter": row.role.parameter,
        "layer": row.role.layer,
        "is_gradient": row.role.is_gradient,
        "line": line_value(None if row.node is None else row.node.own_line),
        "is_unset": row.is_unset,
    }


def non_finite_value(report: NonFiniteReport) -> Value:
    return {
        "is_finite": not report.steps and report.between is None,
        "step_count": report.step_count,
        "bad_step_count": report.bad_step_count,
        "tensor_count": report.tensor_count,
        "untold": dict(report.untold),
        "nan": [_origin(row) for row in report.nan],
        "inf": [_origin(row) for row in report.inf],
        "skipped": [_origin(row) for row in report.skipped],
        "benign": [_benign(row) for row in report.benign],
        "grew": None if report.grew is None else _growth(report.grew),
        "initial": report.initial,
        "learning": [_learning(found) for found in report.learning],
        "between": None if report.between is None else _between(report.between),
        "lost": lost_values(report.lost),
        "damaged": damaged_values(report.damaged),
    }


def _learning(found: LearningFinding) -> Value:
    return {
        **location_value(found.step, found.operator),
        "kind": found.kind,
        "text": sentence(found),
        "details": details(found),
        "parameters": found.parameters,
        "first": found.first,
        "last": found.last,
        "how": found.how or None,
        "line": line_value(found.line),
        "numbers": dict(found.numbers),
        "optimizer": found.optimizer or None,
    }


def _between(found: BadGradients) -> Value:
    row = found.row
    return {
        "rank": found.rank,
        "iteration": row.iteration,
        "optimizer": row.optimizer,
        "parameters": row.parameters,
        "not_finite": row.not_finite,
        "first": row.first,
    }


def _origin(origin: NonFinite) -> Value:
    return {
        **location_value(origin.step, origin.operator),
        "kind": origin.kind,
        "how": origin.how,
        "line": line_value(origin.line),
        "inner_line": line_value(origin.inner_line),
        "tensors": [_bad_tensor(tensor) for tensor in origin.tensors],
        "parameter": origin.parameter,
        "sources": _operators(origin.sources),
        "infected": _operators(origin.infected),
        "also_made": _operators(origin.also_made),
        "stopped": _operators(origin.stopped),
        "returns": _operators(origin.returns),
        "shows": None if origin.shows is None else location_value(*origin.shows),
        "attributes": {name: str(value) for name, value in origin.attributes},
        "parameters": origin.parameters,
        "stage": origin.stage or None,
        "after": None if origin.after is None else step_value(origin.after),
    }


def _benign(origin: BenignInf) -> Value:
    return {
        **location_value(origin.step, origin.operator),
        "kind": origin.kind,
        "how": origin.how,
        "line": line_value(origin.line),
        "tensors": [_bad_tensor(tensor) for tensor in origin.tensors],
        "stops": _operators(origin.stops),
    }


def _growth(growth: Growth) -> Value:
    return {
        **location_value(growth.step, growth.operator),
        "before": step_value(growth.before),
        "tensor": tensor_value(growth.tensor, None, io=growth.io, slot=growth.slot),
        "largest": growth.largest,
        "largest_before": growth.largest_before,
        "factor": growth.factor,
        "line": line_value(growth.line),
    }


def _bad_tensor(bad: BadTensor) -> Value:
    value = tensor_value(bad.tensor, None, io=bad.io, slot=bad.slot)
    return {**value, "nan": bad.nan, "inf": bad.inf}


def _operators(operators: Iterable[Operator]) -> list[Value]:
    return [operator_value(operator) for operator in operators]


def shown_value(shown: ShownOperator) -> Value:
    return {
        **location_value(shown.found.key, shown.found.operator),
        "tensors": [
            {
                **tensor_value(tensor.tensor, tensor.numbers, io=tensor.io, slot=tensor.slot, shape=tensor.shape),
                "first_elements": tensor.preview,
                "from": None if tensor.origin is None else {"name": tensor.origin.name, "slot": tensor.origin.slot},
                "problem": tensor.problem or None,
                "is_unset": tensor.is_unset,
                "exponents": _exponent_value(tensor.exponents),
                "history": [
                    {
                        "iteration": iteration,
                        "l2norm": None if numbers is None else numbers.l2norm,
                        "max": None if numbers is None else numbers.max,
                    }
                    for iteration, numbers in tensor.history
                ],
            }
            for tensor in shown.tensors
        ],
        "attributes": shown.attrs,
        "source": [line_value(line) for line in shown.source],
        "readers": shown.readers,
        "message": shown.message or None,
        "is_statistic": shown.found.table is not None,
    }


def _exponent_value(exponents: ExponentHistogram | None) -> Value | None:
    if exponents is None:
        return None
    return {"first": exponents.first, "positive": exponents.positive, "negative": exponents.negative}


def source_value(hits: Iterable[SourceHit]) -> Value:
    return {
        "found": [
            {
                "operator": hit.node.full_name,
                "op_type": hit.node.op_type,
                "line": line_value(hit.line),
                "files": hit.files,
            }
            for hit in hits
        ]
    }


def replay_value(result: Replay) -> Value:
    return {
        **location_value(result.found.key, result.found.operator),
        "is_explained": result.is_explained,
        "reason": result.reason or None,
        "notes": list(result.notes),
        "runs": {
            name: {
                "problem": run.problem or None,
                "outputs": [{"slot": str(slot), **metrics_value(pair)} for slot, pair in run.errors.items()],
            }
            for name, run in result.runs.items()
        },
    }

"""A comparison as table rows, as msaccucmp's csv and as json."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from msdump.analysis import json_values
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.judge import verdict_of
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    TensorResult,
    Tie,
)
from msdump.analysis.compare.result_csv import NO_VALUE, ResultRow, SideCells, result_csv
from msdump.analysis.compare.sentences import SIDES, error_text, evidence_texts, headline
from msdump.analysis.compare.verdict import Verdict
from msdump.analysis.distance.metrics import METRICS, PairMetrics, metric_text
from msdump.analysis.json_values import damaged_values, location_value, operator_value, step_value
from msdump.analysis.steps import Operator, count_iterations, has_several_graphs, operator_id
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tables.messages import COMMA, SEMICOLON, counted, joined, message, messages, operand

# What msaccucmp prints for equal tensors that are not zero.
_PERFECT = {name: "1.000000" if name == "CosineSimilarity" else "0.000000" for name in METRICS}
_PERFECT["StandardDeviation"] = ""
TABLE_TITLES = messages(
    "verdict", "operator", "golden", "iteration", "found by", "came in", "error", "added", "cosine", "why",
)  # fmt: skip
TABLE_NUMBERS = (5, 6, 7, 8)
_TOO_LARGE = "relative error"
WRONG = message("WRONG")


# -- tables ---------------------------------------------------------------------------------------------------------


def summary(comparison: Comparison) -> list[str]:
    """Counts, and all that has no counterpart."""
    operators = list(comparison.operators)
    tensors = Counter(tensor.status for operator in operators for tensor in operator.tensors)
    counts = joined(COMMA, (joined(" ", (str(count), status)) for status, count in sorted(tensors.items())))
    text = message(
        "{agreeing} of {all} operators and parameters agree; tensors: {counts}",
        agreeing=len(operators) - len(comparison.differing), all=len(operators), counts=counts,
    )  # fmt: skip
    lines: list[str] = [text]
    # A log knows no ranks, and its operators are the program's own.
    ranks = {step.mine.rank_id: step.golden.rank_id for step in comparison.steps if comparison.hashes is None}
    lines += [
        message("rank {mine} of mine against rank {golden} of golden", mine=mine, golden=golden)
        for mine, golden in ranks.items()
        if mine != golden and None not in (mine, golden)
    ]
    for step in comparison.steps:
        for side, unpaired in (("mine", step.only_mine), ("golden", step.only_golden)):
            if unpaired:
                shown = [operator.label for operator in unpaired[:5]]
                text = message(
                    "only in {side}, {where}: {count}: {names}",
                    side=SIDES[side], where=step.mine, count=len(unpaired),
                    names=joined(COMMA, [*shown, "..."] if len(unpaired) > 5 else shown),
                )  # fmt: skip
                lines.append(text)
    if comparison.hashes is None and any(step.only_mine and step.only_golden for step in comparison.steps):
        text = message(
            "operators that were fused or have other types elsewhere are paired by a mapping file (--mapping)"
        )
        lines.append(text)
    for side, keys in (("mine", comparison.only_mine), ("golden", comparison.only_golden)):
        if keys:
            text = message(
                "only in {side}: {count}: {steps}",
                side=SIDES[side], count=counted(count_iterations(keys), "{count} iteration", "{count} iterations"),
                steps=joined(SEMICOLON, map(str, keys[:5])),
            )  # fmt: skip
            lines.append(text)
    if comparison.quantised is not None:
        from msdump.analysis.compare.quantised import words

        lines += words.notes(comparison.quantised)
    lines += [f"damaged: {error}" for _, error in comparison.damaged]
    return [*lines, *comparison.notes]


def table_rows(comparison: Comparison, shows_all: bool) -> Iterator[tuple[str, ...]]:
    """One row per pair of operators, those that differ or all of them; columns `TABLE_TITLES`.

    "golden" is "-" for an operator of the same name, "why" for an error that is too large.
    """
    tells_graph = has_several_graphs(step.mine for step in comparison.steps)
    for result in comparison.operators if shows_all else comparison.differing:
        problem = next((t for t in (*result.outputs, *result.inputs) if t.status == DIFFERS), None)
        verdict = WRONG if result.is_wrong else _status(result) if problem is None else DIFFERS
        name, golden = short_name(result.pair.mine), short_name(result.pair.golden)
        is_error = problem is None or problem.reason.startswith(_TOO_LARGE)
        yield (
            verdict,
            name,
            "-" if golden == name else golden,
            result.step.iteration_text(tells_graph),
            result.pair.how,
            error_text(result.input_error),
            error_text(result.output_error),
            error_text(result.added_error),
            _worst_cosine(result),
            "-"
            if problem is None or is_error
            else message("{operand}: {reason}", operand=operand(problem.io, problem.slot), reason=problem.reason),
        )


# From the operator on that runs it: detect/then_branch/log, loop/body/2/add.
_SUBGRAPH = re.compile(r"[^/]*/(?:(?:then|else)_branch|body/[0-9]+)/")


def short_name(operator: Operator) -> str:
    """Last part of a full name: what fits into a table. Of an operator in a subgraph it says in which run of which."""
    if len(operator.parts) > 1:
        return operator.op_name
    subgraph = _SUBGRAPH.search(operator.label)
    return operator.label.rsplit("/", 1)[-1] if subgraph is None else operator.label[subgraph.start() :]


def _status(result: OperatorResult) -> str:
    statuses = {tensor.status for tensor in result.tensors}
    if statuses == {IDENTICAL}:
        return IDENTICAL
    return AGREES if statuses & {IDENTICAL, AGREES} else NOT_COMPARED


def _worst_cosine(result: OperatorResult) -> str:
    values = [tensor.metrics.cosine for tensor in result.outputs if tensor.metrics is not None]
    if not values:
        return "1.000000" if any(tensor.status == IDENTICAL for tensor in result.outputs) else "-"
    return "nan" if any(map(math.isnan, values)) else f"{min(values):.6f}"


# -- files ---------------------------------------------------------------------------------------------------------


def csv_text(comparison: Comparison) -> str:
    """The result csv of CANN's msaccucmp: a row for each tensor that both sides have, in execution order.

    Edges:   cells that a spreadsheet would run as a formula get an apostrophe in front.
    Source:  msaccucmp compare.
    """
    tensors = [(operator, tensor) for operator in comparison.operators for tensor in operator.tensors]
    rows = [_row(number, operator, tensor) for number, (operator, tensor) in enumerate(tensors)]
    has_address = any(row.mine.address for row in rows), any(row.golden.address for row in rows)
    return result_csv(rows, METRICS, has_address)


def _row(number: int, operator: OperatorResult, tensor: TensorResult) -> ResultRow:
    mine, golden = operator.pair.mine, operator.pair.golden
    return ResultRow(
        number,
        mine.op_type,
        SideCells(mine.label, tensor.mine.true_dtype, _address(tensor.mine)),
        SideCells(golden.label, tensor.golden.true_dtype, _address(tensor.golden)),
        f"{mine.label}:{tensor.io}:{tensor.slot}",
        host_shape(tensor.mine),
        {name: _metric_cell(tensor, name) for name in METRICS},
        tensor.reason,
    )


def _address(tensor: DumpedTensor) -> str:
    """Place in the device's memory, which tells operators that write into each other's tensors."""
    return "" if tensor.block is None or tensor.file.form == "npy" else str(tensor.block.address)


def _metric_cell(tensor: TensorResult, name: str) -> str:
    if tensor.metrics is not None:
        return metric_text(tensor.metrics, name)[0]
    return _PERFECT[name] if tensor.status == IDENTICAL else NO_VALUE


def _quantised_value(comparison: Comparison) -> dict[str, object] | None:
    if comparison.quantised is None:
        return None
    from msdump.analysis.compare.quantised import words

    return words.json_value(comparison.quantised)


def json_value(comparison: Comparison, is_brief: bool = False) -> dict[str, object]:
    """Everything, for `json_values.json_text`.

    is_brief  of the operators the first that differ, and of their tensors those that do
    """
    listed = set(map(id, comparison.differing[: json_values.BRIEF] if is_brief else comparison.operators))
    count = sum(1 for _ in comparison.operators)
    wrong, first = comparison.first_wrong, comparison.first_differing
    verdict = verdict_of(comparison)
    return {
        "mine": str(comparison.mine),
        "golden": str(comparison.golden),
        "reference": None if comparison.reference is None else str(comparison.reference),
        "answer": headline(comparison, verdict),
        "verdict": verdict_value(verdict),
        "agree": comparison.is_agreeing,
        "first_wrong": None if wrong is None else location_value(wrong.step, wrong.pair.mine),
        "first_difference": None if first is None else location_value(first.step, first.pair.mine),
        "steps": [
            {
                "step": step_value(step.mine),
                "operators": [_operator_value(one, is_brief) for one in step.operators if id(one) in listed],
                "only_mine": [operator.label for operator in step.only_mine],
                "only_golden": [operator.label for operator in step.only_golden],
            }
            for step in comparison.steps
            if not is_brief or any(id(one) in listed for one in step.operators) or step.only_mine or step.only_golden
        ],
        "operators": count,
        "differing": len(comparison.differing),
        "omitted": {"steps.operators": count - len(listed)},
        "goes_on": [operator.label for _, operator in comparison.beyond],
        "notes": list(comparison.notes),
        "damaged": damaged_values(comparison.damaged),
        "quantised": _quantised_value(comparison),
        "tie": None if comparison.tie is None else _tie_value(comparison.tie),
        "hashes": None if comparison.hashes is None else list(comparison.hashes.names),
    }


def verdict_value(verdict: Verdict) -> dict[str, object]:
    """The outcome, and of each finding its reason, side, place, line, evidence, and inputs that were not compared."""
    return {
        "outcome": verdict.outcome.value,
        "findings": [
            {
                **location_value(finding.place.step, finding.place.operator),
                "side": finding.place.side,
                "reason": finding.reason.value,
                "line": None if finding.place.line is None else json_values.line_value(finding.place.line),
                "evidence": evidence_texts(finding),
                "not_compared": [f"{one.io} {one.slot}" for one in finding.unseen],
            }
            for finding in verdict.findings
        ],
    }


def _tie_value(tie: Tie) -> dict[str, object]:
    return {
        **location_value(tie.result.step, tie.result.pair.mine),
        "elements": tie.count,
        "of": tie.size,
        "reached": tie.reached,
        "error": tie.error,
        "lost": None if tie.lost is None else step_value(tie.lost),
    }


def json_text(comparison: Comparison) -> str:
    """Everything as the JSON document of `msdump compare --json`, whose keys docs/json.md lists.

    Edges:   NaN and Inf, which JSON has not, are the texts "nan", "inf" and "-inf".
    """
    return json_values.json_text("compare", json_value(comparison))


def _operator_value(result: OperatorResult, is_brief: bool) -> dict[str, object]:
    tensors = [tensor for tensor in result.tensors if not is_brief or tensor.status == DIFFERS]
    return {
        "id": operator_id(result.step, result.pair.mine),
        **operator_value(result.pair.mine),
        "golden": result.pair.golden.label,
        "found_by": result.pair.how,
        "agrees": result.is_agreeing,
        "is_wrong": result.is_wrong,
        "input_error": result.input_error,
        "output_error": result.output_error,
        "added_error": result.added_error,
        "tensors": [_tensor_value(tensor) for tensor in tensors],
    }


def _tensor_value(tensor: TensorResult) -> dict[str, object]:
    return {
        "io": tensor.io,
        "slot": str(tensor.slot),
        "status": tensor.status,
        "reason": tensor.reason,
        "dtypes": [tensor.mine.true_dtype, tensor.golden.true_dtype],
        "shapes": [list(host_shape(tensor.mine)), list(host_shape(tensor.golden))],
        "files": [tensor.mine.path, tensor.golden.path],
        "error": tensor.error,
        "other_error": tensor.yardstick,
        "metrics": None if tensor.metrics is None else metrics_value(tensor.metrics),
    }


def metrics_value(metrics: PairMetrics) -> dict[str, object]:
    """All metrics of two tensors by name."""
    return {name: getattr(metrics, name) for name in PairMetrics.__slots__}

"""The verdict on a quantised model as sentences, as a table and as json."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msdump.analysis.compare.quantised.noise import ActivationNoise, LostChannel
from msdump.analysis.compare.quantised.proportion import (
    has_poor_bias,
    has_poor_range,
    has_poor_weight,
    is_clipped,
    is_idle,
)
from msdump.analysis.compare.quantised.ranking import Contribution, QuantisedVerdict
from msdump.analysis.compare.result import DIFFERS, Comparison
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.json_values import location_value
from msdump.analysis.steps import Operator, has_several_graphs
from msdump.operators.codes import family, is_of_quantised_model
from msdump.tables.messages import COLON, COMMA, SEMICOLON, Message, counted, joined, message, messages

RANKING_TITLES = messages(
    "verdict", "operator", "golden", "iteration", "adds", "error", "weight dB", "outlier", "activation dB", "clipped",
)  # fmt: skip
RANKING_NUMBERS = (4, 5, 6, 8, 9)
_SHOWN = 10
_WRONG = message("WRONG")


def finding_lines(verdict: QuantisedVerdict, finding: Contribution, graphs: GraphFiles) -> list[str]:
    """What adds out of proportion and why, and where it is.   graphs: of the side with codes"""
    operator = finding.operator
    text = message(
        "{name} ({type}) adds {added} of {total:.3g}",
        name=operator.label, type=operator.op_type, added=_number(finding.added), total=verdict.total,
    )  # fmt: skip
    lines: list[str] = [message("{finding}: {reason}", finding=text, reason=_reason(verdict, finding))]
    node = graphs.node(finding.step, operator)
    line = None if node is None else node.own_line
    lines.append("  " + joined(COMMA, [str(finding.step), *([] if line is None else [f"{line}  {line.code.strip()}"])]))
    error = finding.error if finding.lost is None else finding.lost.error
    before, behind = _number(finding.came_in), _number(error)
    lines.append("  " + message("error {before} before it, {behind} behind it", before=before, behind=behind))
    return lines


def lost_lines(comparison: Comparison, verdict: QuantisedVerdict, mover: Operator | None = None) -> list[str]:
    """That an error is too large for what it was, and none adds out of proportion; [] where something else differs.

    mover   who moves what the first operator with such an error reads
    """
    differing = [tensor for result in comparison.differing for tensor in result.tensors if tensor.status == DIFFERS]
    if any(tensor.metrics is None or tensor.metrics.mismatched for tensor in differing):
        return []
    ranked = [one for one in verdict.ranking if one.is_quantised and one.added is not None]
    if not ranked or not comparison.differing:
        return []
    first, most = comparison.differing[0], ranked[0]
    label, error = first.pair.mine.label, max(first.output_error or 0.0, first.input_error or 0.0)
    text = message(
        "{name} ({type}), {where} has an error of {error:.3g}, and no operator adds out of proportion",
        name=label, type=first.pair.mine.op_type, where=first.step, error=error,
    )  # fmt: skip
    if mover is not None:
        text = message(
            "{name} ({type}), {where} moves what has an error of {error:.3g} when {reader} reads it, and no operator "
            "before it adds out of proportion",
            name=mover.label, type=mover.op_type, where=first.step, error=error, reader=label,
        )  # fmt: skip
    largest = message(
        "{name} adds {added} of {total:.3g}, the most",
        name=most.operator.label, added=_number(most.added), total=verdict.total,
    )  # fmt: skip
    return [text, "  " + largest]


def agreeing_line(comparison: Comparison, verdict: QuantisedVerdict) -> str:
    """That nothing differs but for what codes cost."""
    count = sum(1 for _ in comparison.operators)
    most = next((one for one in verdict.ranking if one.is_quantised and (one.added or 0.0) > 0), None)
    text = message("agree: all {count} pairs of operators and parameters agree, up to quantisation", count=count)
    if verdict.bits is not None:
        text = message("{text} to {bits} bits", text=text, bits=verdict.bits)
    if most is None:
        return message("{text}.", text=text)
    return message(
        "{text}: errors of at most {error:.3g}, of which {name} adds {added}, the most.",
        text=text, error=verdict.largest_error, name=most.operator.label, added=_number(most.added),
    )  # fmt: skip


def _reason(verdict: QuantisedVerdict, finding: Contribution) -> str:
    rows = [finding, *verdict.others(finding)]
    reasons: list[Message] = []
    if finding.misread:
        text = message(
            "codes are read by other scales than they were written by, an error of {error:.3g}", error=finding.misread
        )
        reasons.append(text)
    elif finding.weight is not None and (finding.lost is not None or has_poor_weight(finding, rows)):
        others = [one.weight.sqnr_db for one in rows[1:] if one.weight is not None]
        text = message("its weight has {db:.0f} dB", db=finding.weight.sqnr_db) + _against(others)
        outlier = _outlier(finding)
        reasons.append(joined(COLON, (text, outlier)) if outlier else text)
        if finding.lost is not None and finding.lost.count < finding.lost.channels:
            reasons.append(_of_channel(finding.lost))
    elif has_poor_bias(finding, rows) and finding.bias_db is not None:
        others = [one.bias_db for one in rows[1:] if one.bias_db is not None]
        reasons.append(message("its bias has {db:.0f} dB", db=finding.bias_db) + _against(others))
    if not finding.misread and finding.activation is not None and is_clipped(finding.activation):
        reasons.append(_clipping(finding.activation))
    elif not reasons and has_poor_range(finding, rows) and finding.activation is not None:
        # The range of what a coarse weight makes is no second reason.
        others = [one.activation.sqnr_db for one in rows[1:] if one.activation is not None]
        text = message("its range has {db:.0f} dB", db=finding.activation.sqnr_db) + _against(others)
        if is_idle(finding.activation):
            text = joined(COLON, (text, message("its values take {count} codes", count=finding.activation.used)))
        reasons.append(text)
    if not reasons:
        unexplained = message("its codes alone do not explain it")
        reasons.append(unexplained if finding.is_quantised else message("it has no codes"))
    return joined(SEMICOLON, reasons)


def _of_channel(lost: LostChannel) -> Message:
    db = round(lost.weight_db) or 0  # no "-0"
    if lost.count == 1:
        return message("channel {channel} has {db} dB", channel=lost.channel, db=db)
    return message(
        "{count} of {channels} channels are lost, channel {channel} with {db} dB",
        count=lost.count, channels=lost.channels, channel=lost.channel, db=db,
    )  # fmt: skip


def _clipping(noise: ActivationNoise) -> Message:
    return message(
        "its range ends at {limit:.3g} and clips {share} of the values, which reach {reach:.3g}",
        limit=noise.limit, share=_share(noise.clipped), reach=noise.reach,
    )  # fmt: skip


def _outlier(contribution: Contribution) -> str:
    weight = contribution.weight
    if weight is None or weight.channel is None:
        return ""
    count = counted(weight.outliers, "one outlier", "{count} outliers")
    return message(
        "{outliers} in channel {channel}, {factor:.0f} times as large as the others",
        outliers=count, channel=weight.channel, factor=weight.factor,
    )  # fmt: skip


def _against(others: list[float]) -> str:
    known = sorted(one for one in others if math.isfinite(one))
    if not known:
        return ""
    if len(known) == 1:
        return COMMA + message("the other {db:.0f}", db=known[-1])
    if round(known[0]) == round(known[-1]):
        return COMMA + message("the others {db:.0f}", db=known[-1])
    return COMMA + message("the others {least:.0f} to {most:.0f}", least=known[0], most=known[-1])


def ranking_rows(comparison: Comparison, verdict: QuantisedVerdict, shows_all: bool) -> Iterator[tuple[str, ...]]:
    """What adds most; columns `RANKING_TITLES`.   shows_all: also what adds nothing, and what has no codes"""
    tells_graph = has_several_graphs(step.mine for step in comparison.steps)
    rows = [one for one in verdict.ranking if shows_all or one.is_quantised or one is verdict.finding]
    rows = rows if shows_all else rows[:_SHOWN]
    names = telling_names({one.operator.label for one in rows})
    for one in rows:
        weight, activation = one.weight, one.activation
        channel = None if weight is None else weight.channel
        channel = one.lost.channel if channel is None and one.lost is not None else channel
        yield (
            _WRONG if one is verdict.finding else "-",
            names[one.operator.label],
            "-" if one.golden is None else one.golden.op_name,
            one.step.iteration_text(tells_graph),
            _number(one.added),
            _number(one.error),
            "-" if weight is None else f"{weight.sqnr_db:.1f}",
            "-" if channel is None else message("channel {channel}", channel=channel),
            "-" if activation is None else f"{activation.sqnr_db:.1f}",
            "-" if activation is None else _share(activation.clipped),
        )


def telling_names(labels: Iterable[str]) -> dict[str, str]:
    """The last two parts of each name, and as many more as tell it from the others: blocks are alike inside."""
    names: dict[str, str] = {}
    alike, size = list(labels), 2
    while alike:
        short = {label: "/".join(label.split("/")[-size:]) for label in alike}
        counts = Counter([*short.values(), *names.values()])
        names.update((label, name) for label, name in short.items() if counts[name] == 1 or name == label)
        alike = [label for label in alike if label not in names]
        size += 1
    return names


def notes(verdict: QuantisedVerdict) -> list[str]:
    """What could not be ranked."""
    lines: list[str] = []
    if verdict.unmeasured:
        names = [operator.label for operator in verdict.unmeasured[:5]]
        text = message(
            "not ranked, because no operator in floats is known for them: {names}",
            names=joined(COMMA, [*names, "..."] if len(verdict.unmeasured) > 5 else names),
        )
        lines.append(text)
    blind = [
        one for one in verdict.ranking if one.weight is None and _computes_with_weight(one) and one.golden is not None
    ]
    if blind:
        text = message(
            "the dump has no codes of the weights of {operators}: what is added is all that ranks them",
            operators=counted(len(blind), "one operator", "{count} operators"),
        )
        lines.append(text)
    return lines


def note_on_statistics(comparison: Comparison) -> list[str]:
    """What a comparison of statistics cannot tell of a quantised model; [] where neither side is one, or both are."""
    sides: list[set[str]] = [set(), set()]
    for step in comparison.steps:
        pairs = [result.pair for result in step.operators]
        sides[0] |= {operator.op_type for operator in (*(pair.mine for pair in pairs), *step.only_mine)}
        sides[1] |= {operator.op_type for operator in (*(pair.golden for pair in pairs), *step.only_golden)}
    if len({any(map(is_of_quantised_model, types)) for types in sides}) == 1:
        return []
    text = message(
        "one side is a quantised model: statistics of codes do not tell what its operators add. Dump tensors, and rank "
        "them with msdump compare"
    )
    return [text]


def _computes_with_weight(contribution: Contribution) -> bool:
    return family(contribution.operator.op_type) in ("linear", "conv") and contribution.is_on_codes


def _share(share: float) -> str:
    return f"{100 * share:.2g}%"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def json_value(verdict: QuantisedVerdict) -> dict[str, object]:
    """The verdict for json; numbers that are not finite become text there as everywhere."""
    return {
        "side": verdict.side,
        "total": verdict.total,
        "finding": None if verdict.finding is None else _contribution_value(verdict.finding),
        "ranking": [_contribution_value(one) for one in verdict.ranking],
    }


def _contribution_value(one: Contribution) -> dict[str, Any]:
    weight, activation = one.weight, one.activation
    return {
        **location_value(one.step, one.operator),
        "golden": None if one.golden is None else one.golden.label,
        "added": one.added,
        "error": one.error,
        "bits": one.bits,
        "weight_sqnr_db": None if weight is None else weight.sqnr_db,
        "lost_channel": None if one.lost is None else one.lost.channel,
        "outlier_channel": None if weight is None else weight.channel,
        "activation_sqnr_db": None if activation is None else activation.sqnr_db,
        "clipped": None if activation is None else activation.clipped,
    }

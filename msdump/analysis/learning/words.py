"""Findings on a training, in words."""

from __future__ import annotations

from msdump.analysis.learning.kinds import (
    ALIKE,
    DEAD,
    DECAYS,
    DEPTH,
    EMPTY,
    EVALUATION,
    FALLEN,
    FORGETS,
    FROZEN,
    GAINS,
    GROWS,
    KEPT,
    LARGE_UPDATE,
    MIXED,
    NEVER_STEPPED,
    NO_GRADIENT,
    NO_OPTIMIZER,
    ONE_CLASS,
    ONE_VALUE,
    OTHER_ROWS,
    RENEWED,
    REPEATS,
    SAME_ROWS,
    SHRINKS,
    SKIPPED,
    STILL,
    STRAY,
    THROWN_AWAY,
    WRONG_LOSS,
    ZERO,
    LearningFinding,
)
from msdump.tables.messages import COLON, COMMA, Message, counted, joined, message

_SIZES = (LARGE_UPDATE, SHRINKS, GROWS, DEPTH)
_STEPS = (RENEWED, FALLEN, DECAYS, GAINS)
_MIXES = (OTHER_ROWS, FORGETS, MIXED)
_SHOWN = 4
_MOST_SHOWN = 12  # of a line; --json names all


def sentence(finding: LearningFinding) -> Message:
    """What is wrong, of which parameters, when, and by whom; without an end."""
    names, when, operator = _names(finding.parameters), _when(finding), finding.operator.label
    if finding.kind == NO_GRADIENT:
        text = message("asks for a gradient and gets none: {names}, {when}", names=names, when=when)
        return joined(COLON, (text, _cut(finding.how, operator)))
    if finding.kind == NO_OPTIMIZER:
        return message("has a gradient and belongs to no optimizer: {names}, {when}", names=names, when=when)
    if finding.kind == NEVER_STEPPED:
        return message(
            "{optimizer} never makes a step: {names} have gradients and stay what they are, {when}",
            optimizer=finding.optimizer, names=names, when=when,
        )  # fmt: skip
    if finding.kind == FROZEN:
        return message(
            "frozen while {optimizer} goes on: {names} ask for no gradient any more, {when}",
            optimizer=finding.optimizer, names=names, when=when,
        )  # fmt: skip
    if finding.kind == EMPTY:
        return message(
            "{optimizer} finds no gradient: {names}, {when}: they are cleared between the backward pass and the step",
            optimizer=finding.optimizer, names=names, when=when,
        )  # fmt: skip
    if finding.kind == KEPT and finding.numbers:
        return message(
            "gradients are seldom cleared: {names}, {when}: most backward passes add to those of the step before",
            names=names, when=when,
        )  # fmt: skip
    if finding.kind == KEPT:
        return message(
            "gradients are never cleared: {names}, {when}: each backward pass adds to those of the step before",
            names=names, when=when,
        )  # fmt: skip
    if finding.kind == STRAY:
        return message(
            "in no module and in no optimizer: a parameter {shape} that {operator} reads, {when}",
            shape=list(finding.outside[0]), operator=operator, when=when,
        )  # fmt: skip
    if finding.kind == STILL:
        text = message("stands still: {names}, {when}", names=names, when=when)
        return joined(COLON, (text, _why_still(finding)))
    if finding.kind == EVALUATION and finding.how == "dropout":
        return message(
            "the model stays in evaluation mode: {operator} draws no more, {when}, though an optimizer makes steps",
            operator=operator, when=when,
        )  # fmt: skip
    if finding.kind == EVALUATION and finding.how == "start":
        return message(
            "the model is trained in evaluation mode: {names} are 0 and 1 as in the beginning, {when}",
            names=names, when=when,
        )  # fmt: skip
    if finding.kind == EVALUATION:
        return message(
            "the model stays in evaluation mode: {names} stand still, {when}, though an optimizer makes steps",
            names=names, when=when,
        )  # fmt: skip
    if finding.kind == SKIPPED:
        return message(
            "all steps of {optimizer} are skipped by the scaler of the loss: {when}",
            optimizer=finding.optimizer, when=when,
        )  # fmt: skip
    if finding.kind == ZERO:
        text = message("gradient is 0: {names}, {when}", names=names, when=when)
        return joined(COLON, (text, _maker_of_zero(finding)))
    if finding.kind in _STEPS:
        return _of_steps(finding, names, when)
    if finding.kind in _MIXES:
        return _of_mixes(finding, when)
    return _of_sizes(finding, names, when) if finding.kind in _SIZES else _of_values(finding, names, when)


def _of_values(finding: LearningFinding, names: Message, when: Message) -> Message:
    """Of what is the same where it should not be, or is lost."""
    operator, numbers = finding.operator.label, finding.numbers
    if finding.kind == DEAD:
        return message(
            "dead: all that {operator} makes is {value:g}, whatever it reads, {when}",
            operator=operator, value=numbers["value"], when=when,
        )  # fmt: skip
    if finding.kind == ALIKE and finding.how == "start":
        return message(
            "all units are alike: {names} begin with one value for all of them, {when}", names=names, when=when
        )
    if finding.kind == ALIKE:
        return message(
            "all units are alike: {names} have one value for all of them, which changes, {when}", names=names, when=when
        )
    if finding.kind == THROWN_AWAY and finding.how == "statistics":
        return message(
            "running statistics never change: {names}, {when}, though {operator} computes those of each batch",
            names=names, when=when, operator=operator,
        )  # fmt: skip
    if finding.kind == THROWN_AWAY:
        return message(
            "a new value of {names} is thrown away: {operator} does not write it, {when}",
            names=names, operator=operator, when=when,
        )  # fmt: skip
    if finding.kind == ONE_VALUE and finding.how == "hardly":
        return message(
            "data that {operator} reads hardly differ: all lie between {least:.4g} and {most:.4g}, {when}",
            operator=operator, least=numbers["least"], most=numbers["most"], when=when,
        )  # fmt: skip
    if finding.kind == ONE_VALUE:
        return message(
            "all data that {operator} reads are {value:g}, {when}", operator=operator, value=numbers["value"], when=when
        )
    if finding.kind == SAME_ROWS:
        return message(
            "{operator} takes the same {count} of {rows} rows in each iteration, {when}",
            operator=operator, count=int(numbers["count"]), rows=int(numbers["rows"]), when=when,
        )  # fmt: skip
    if finding.kind == ONE_CLASS and "least" not in numbers:
        return message(
            "all labels are {label:g}, {when}: {operator} reads them",
            label=numbers["label"],
            when=when,
            operator=operator,
        )
    if finding.kind == ONE_CLASS:
        return message(
            "all labels are {label:g}, {when}: {operator} makes it of {least:.4g} to {most:.4g}",
            label=numbers["label"], when=when, operator=operator, least=numbers["least"], most=numbers["most"],
        )  # fmt: skip
    if finding.kind == WRONG_LOSS:
        return joined(COMMA, (_misuse(finding), when))
    if finding.kind == REPEATS:
        return message(
            "random numbers are the same in each iteration: {operator}, {when}", operator=operator, when=when
        )
    return message(
        "loss stands still: {loss:.4g}, {when}, though optimizers make steps: {operator}",
        loss=numbers["loss"], when=when, operator=operator,
    )  # fmt: skip


def _of_mixes(finding: LearningFinding, when: Message) -> Message:
    """Of axes, rows, masks and the two sides of an average."""
    operator, numbers = finding.operator.label, finding.numbers
    if finding.kind == OTHER_ROWS:
        return message(
            "labels are of other rows than the data: {operator} takes {count} of {rows} by indices of its own, {when}",
            operator=operator, count=int(numbers["count"]), rows=int(numbers["rows"]), when=when,
        )  # fmt: skip
    if finding.kind == FORGETS and finding.how == "statistics":
        return message(
            "running statistics forget: {operator} keeps {share:.2g} of them for each batch, {when}",
            operator=operator, share=numbers["share"], when=when,
        )  # fmt: skip
    if finding.kind == FORGETS:
        return message(
            "an average forgets: {operator} keeps {share:.2g} of it and takes the rest from the weights, {when}",
            operator=operator, share=numbers["share"], when=when,
        )  # fmt: skip
    if finding.how == "choice":
        return message(
            "{operator} chooses along axis {axis} alone in the first of {count} of the other one, {when}",
            operator=operator, axis=int(numbers["axis"]), count=int(numbers["count"]), when=when,
        )  # fmt: skip
    if finding.how == "mask":
        return message(
            "{operator} leaves out all words but {padding}, which their table takes for padding, {when}",
            operator=operator, padding=int(numbers["padding"]), when=when,
        )  # fmt: skip
    if finding.how == "time":
        return message(
            "{operator} takes axis 0 of {read} for time, and the script takes it for the batch, {when}",
            operator=operator, read=list(finding.outside[0]), when=when,
        )  # fmt: skip
    if finding.how == "rows":
        return message(
            "{operator} adds another row to each of a batch, and the same along axis 1: {given} and {kept}, {when}",
            operator=operator, given=list(finding.outside[0]), kept=list(finding.outside[1]), when=when,
        )  # fmt: skip
    if finding.how == "reshape":
        return message(
            "{operator} mixes up axes: it makes {after} of {before}, which moves no axis, {when}",
            operator=operator, before=list(finding.outside[0]), after=list(finding.outside[1]), when=when,
        )  # fmt: skip
    return message(
        "{operator} makes shares along axis {shares}, the product after it sums along axis {product}, {when}",
        operator=operator, shares=int(numbers["shares"]), product=int(numbers["product"]), when=when,
    )  # fmt: skip


def _why_still(finding: LearningFinding) -> Message:
    if finding.how == "rate":
        return message("the learning rate is 0")
    if finding.how == "lost":
        return message(
            "gradients become 0 before the step of {optimizer}, or weights are put back after it",
            optimizer=finding.optimizer,
        )  # fmt: skip
    if finding.how == "small":
        return message("no step changes more than {share:.2g} of it", share=finding.numbers["share"])
    return message("updates are too small for {dtype}", dtype=finding.dtype)


def _of_steps(finding: LearningFinding, names: Message, when: Message) -> Message:
    """Of what an optimizer does in each step."""
    numbers, optimizer = finding.numbers, finding.optimizer
    if finding.kind == RENEWED:
        return message(
            "{optimizer} is made anew for each step, and has no state of the steps before: {names}, {when}",
            optimizer=optimizer, names=names, when=when,
        )  # fmt: skip
    if finding.kind == FALLEN:
        return message(
            "the learning rate falls to {rate:.3g}, from {before:.3g}, and stays there: {names}, {when}",
            rate=numbers["rate"], before=numbers["rate before"], names=names, when=when,
        )  # fmt: skip
    if finding.kind == DECAYS:
        return message(
            "a decay takes {share:.2g} of the weights in each step of {optimizer}: {names}, {when}",
            share=numbers["share"], optimizer=optimizer, names=names, when=when,
        )  # fmt: skip
    return message(
        "steps of {optimizer} grow without an end, {when}: {operator} multiplies what they are made of by {factor:.4g}",
        optimizer=optimizer, when=when, operator=finding.operator.label, factor=numbers["factor"],
    )  # fmt: skip


def _misuse(finding: LearningFinding) -> Message:
    """Of a loss that is given what it is not made for."""
    operator, numbers = finding.operator.label, finding.numbers
    if finding.how == "twice":
        return message("{operator} reads probabilities and makes probabilities of them again", operator=operator)
    if finding.how == "no logarithm":
        return message(
            "{operator} expects logarithms of probabilities, and reads up to {most:.4g}",
            operator=operator, most=numbers["most"],
        )  # fmt: skip
    if finding.how == "axis":
        return message(
            "{operator} makes probabilities along axis {axis}, the loss has its classes in axis 1",
            operator=operator, axis=int(numbers["axis"]),
        )  # fmt: skip
    if finding.how == "chances":
        return message(
            "{operator} expects targets from 0 to 1, and reads {least:.4g} to {most:.4g}",
            operator=operator, least=numbers["least"], most=numbers["most"],
        )  # fmt: skip
    if finding.how == "scale":
        return message(
            "{operator} makes scores between {least:.4g} and {most:.4g} of vectors of length 1: all classes stay alike",
            operator=operator, least=-numbers["most"], most=numbers["most"],
        )  # fmt: skip
    if finding.how == "shapes":
        given, wanted = finding.outside
        return message(
            "{operator} compares all with all: {given} with {wanted}",
            operator=operator, given=list(given), wanted=list(wanted),
        )  # fmt: skip
    return message(
        "targets are {mean:.4g} on average, {operator} gives {least:g} to {most:g}",
        mean=numbers["mean"], operator=operator, least=numbers["least"], most=numbers["most"],
    )  # fmt: skip


def _of_sizes(finding: LearningFinding, names: Message, when: Message) -> Message:
    """Of what grows or falls."""
    operator, numbers = finding.operator.label, finding.numbers
    if finding.kind == LARGE_UPDATE:
        return message(
            "update is far too large: {names}, {when}: its norm rises {factor:.3g} times in one step",
            names=names, when=when, factor=numbers["factor"],
        )  # fmt: skip
    if finding.kind == SHRINKS:
        return message(
            "weights fall towards 0: {names}, {when}: {factor:.3g} of the norm is left",
            names=names, when=when, factor=numbers["factor"],
        )  # fmt: skip
    if finding.kind == GROWS:
        return message(
            "loss grows: from {before:.4g} to {last:.4g}, {when}: {operator}",
            before=numbers["before"], last=numbers["last"], when=when, operator=operator,
        )  # fmt: skip
    begins, first, last = finding.parameters
    ends = {"first": first, "last": last, "small": numbers["first"], "large": numbers["last"]}
    if finding.how == "values":
        text = message("values grow: {small:.3g} after {first}, {large:.3g} after {last}, {when}", when=when, **ends)
        return joined(COLON, (text, message("most by {operator}", operator=operator)))
    text = (
        message("gradient vanishes: {large:.3g} at {last}, {small:.3g} at {first}, {when}", when=when, **ends)
        if finding.how == "vanishes"
        else message("gradient explodes: {large:.3g} at {last}, {small:.3g} at {first}, {when}", when=when, **ends)
    )
    return joined(COLON, (text, message("it begins at {name}", name=begins)))


def details(finding: LearningFinding) -> list[Message]:
    """What was measured beside that."""
    numbers, found = finding.numbers, []
    if finding.kind == NO_OPTIMIZER and finding.outside:
        text = counted(
            len(finding.outside),
            "{count} tensor that no module has",
            "{count} tensors that no module has",
        )
        shapes = joined(COMMA, [str(list(shape)) for shape in finding.outside[:_SHOWN]])
        found.append(
            message("{optimizer} steps {tensors}: {shapes}", optimizer=finding.optimizer, tensors=text, shapes=shapes)
        )
    if "gradient" in numbers:
        found.append(message("its gradients are up to {size:.6g}", size=numbers["gradient"]))
    if finding.kind == GROWS and finding.parameters:
        found.append(
            message(
                "the norm of {name} rises {factor:.3g} times meanwhile",
                name=finding.parameters[0], factor=numbers["factor"],
            )
        )  # fmt: skip
    if "rate" in numbers and finding.kind != FALLEN:
        found.append(
            message(
                "the learning rate has risen from {before:.3g} to {rate:.3g}",
                before=numbers["rate before"], rate=numbers["rate"],
            )
        )  # fmt: skip
    if finding.kind == DEPTH:
        found.append(message("{ratio:.3g} times from layer to layer", ratio=numbers["ratio"]))
    if _SHOWN < len(finding.parameters) <= _MOST_SHOWN and finding.kind != DEPTH:
        found.append(message("parameters: {names}", names=joined(COMMA, finding.parameters)))
    return found


def _names(names: tuple[str, ...]) -> Message:
    shown = joined(COMMA, names[:_SHOWN])
    if len(names) <= _SHOWN:
        return shown
    return message("{names} and {count} more", names=shown, count=len(names) - _SHOWN)


def _when(finding: LearningFinding) -> Message:
    first, last, rank = finding.first, finding.last, finding.step.rank_id
    text = (
        message("iteration {iteration}", iteration=first)
        if last <= first
        else message("iterations {first} to {last}", first=first, last=last)
    )
    return text if rank is None else joined(COMMA, (message("rank {rank}", rank=rank), text))


def _cut(how: str, operator: str) -> Message:
    if how == "checkpoint":
        return message("{operator} runs in a checkpoint whose input asks for no gradient", operator=operator)
    if how == "no_grad":
        return message("{operator} runs where gradients are off", operator=operator)
    if how == "apart":
        return message("the loss is made of no parameter, it begins with {operator}", operator=operator)
    if how == "number":
        return message("{operator} takes its value as a number, which is a constant of the loss", operator=operator)
    if how == "unread":
        return message("it leads to {operator} alone, which is no part of the loss", operator=operator)
    if how == "integer":
        return message("{operator} makes numbers that have no gradient", operator=operator)
    return message("{operator} cuts it off", operator=operator)


def _maker_of_zero(finding: LearningFinding) -> Message:
    operator = finding.operator.label
    if finding.how == "data":
        return message("{operator} reads nothing but 0", operator=operator)
    if finding.operator.stage == "forward":
        return message("all that {operator} makes is 0", operator=operator)
    return message("made 0 by {operator}", operator=operator)

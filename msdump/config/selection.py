"""Which operators of a model are dumped, and which of their operands are left out.

MindSpore's `kernels` is one list for every model; each element of ACL's `dump_list` is one list for its model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from msdump.config.selectors import FullNameSelector, Selector, advice
from msdump.errors import did_you_mean, shortened

Position = tuple[str, int]  # ("input", 0)
NO_POSITIONS: frozenset[Position] = frozenset()
# Operators that only hand in what comes from outside.
DATA_OP_TYPES = frozenset({"Data", "AippData", "AnnData", "RefData"})
EVERY_MODEL = ""
_COLLECTIVE_PREFIX = "Hcom"


@dataclass(frozen=True)
class ModelOperator:
    """An operator of a model as the selection sees it.

    original_names  of the operators that were fused or renamed into this one; `layer` takes them too
    producers       indices, in the same list, of the operators whose outputs this one reads
    run_pattern     of an operator that runs several times: what names of its runs are like; `layer` takes them too
    """

    op_type: str
    op_name: str
    original_names: tuple[str, ...] = ()
    producers: tuple[int, ...] = ()
    run_pattern: re.Pattern[str] | None = None

    @property
    def is_data(self) -> bool:
        return self.op_type in DATA_OP_TYPES


@dataclass(frozen=True)
class Choice:
    """An operator that is dumped, but for some positions."""

    skipped: frozenset[Position] = NO_POSITIONS

    def dumps(self, io: str, slot: int) -> bool:
        return (io, slot) not in self.skipped


@dataclass(frozen=True)
class NameRange:
    """From the operator `begin` to the operator `end`, both included."""

    begin: str
    end: str


@dataclass(frozen=True)
class OperatorList:
    """Operators of one model, or of every model.

    selectors       None = every operator, or those in the ranges where there are ranges
    watcher_nodes   operators whose outputs the memory watcher saves
    """

    model_name: str = EVERY_MODEL
    selectors: tuple[Selector, ...] | None = None
    ranges: tuple[NameRange, ...] = ()
    watcher_nodes: frozenset[str] = frozenset()
    skipped_by_type: Mapping[str, frozenset[Position]] = field(default_factory=dict)
    skipped_by_name: Mapping[str, frozenset[Position]] = field(default_factory=dict)

    @property
    def is_everything(self) -> bool:
        return self.selectors is None and not self.ranges

    def selects(self, op_name: str, original_names: tuple[str, ...] = ()) -> bool:
        """True when the selectors name the operator, or leave all of them in; ranges are left aside."""
        if self.selectors is None:
            return not self.ranges
        return (
            op_name in self.full_names
            or any(name in self.full_names for name in original_names)
            or any(rule.matches(op_name) for rule in self._rules)
        )

    def takes(self, operator: ModelOperator) -> bool:
        """As `selects`. The name of one run stands for all runs of the operator."""
        pattern = operator.run_pattern
        return self.selects(operator.op_name, operator.original_names) or (
            pattern is not None and any(map(pattern.fullmatch, self.full_names))
        )

    def skipped(self, op_type: str, op_name: str) -> frozenset[Position]:
        """Positions that either blacklist takes out."""
        by_type = self.skipped_by_type.get(op_type, NO_POSITIONS)
        return by_type | self.skipped_by_name.get(op_name, NO_POSITIONS)

    @cached_property
    def full_names(self) -> frozenset[str]:
        """Operators that are named one by one."""
        return frozenset(item.text for item in self.selectors or () if isinstance(item, FullNameSelector))

    @cached_property
    def _rules(self) -> tuple[Selector, ...]:
        return tuple(item for item in self.selectors or () if not isinstance(item, FullNameSelector))


@dataclass(frozen=True)
class Which:
    """Which operators: those of any list, those that the script marks, or those that are called one by one.

    takes_marked          operators that the script marked with `set_dump`, and no others
    takes_single_operators  operators that are called one by one, without a model
    """

    lists: tuple[OperatorList, ...] = (OperatorList(),)
    takes_marked: bool = False
    takes_single_operators: bool = False

    @property
    def selectors(self) -> tuple[Selector, ...] | None:
        """Of all lists; None where one of them is everything."""
        if any(operator_list.selectors is None for operator_list in self.lists):
            return None
        return tuple(item for operator_list in self.lists for item in operator_list.selectors or ())

    @cached_property
    def watched_names(self) -> frozenset[str]:
        """Operators whose outputs the memory watcher saves, by their names after fusion; none: there is no watcher."""
        return frozenset().union(*(operator_list.watcher_nodes for operator_list in self.lists))

    def matching(self, model_names: Sequence[str]) -> tuple[OperatorList, ...]:
        """Lists for a model: those of its first name that any list has, and those for every model.

        model_names: the name of its file, then the name inside of it.
        """
        listed = {operator_list.model_name for operator_list in self.lists} - {EVERY_MODEL}
        chosen = next((name for name in model_names if name in listed), EVERY_MODEL)
        return tuple(operator_list for operator_list in self.lists if operator_list.model_name in (chosen, EVERY_MODEL))

    def selects(self, op_name: str, model_names: Sequence[str] = (), original_names: tuple[str, ...] = ()) -> bool:
        """True when an operator or parameter is selected by itself, ranges and the operators around it left aside.

        Edges:  the memory watcher dumps the watched. Marks of a script belong to the operator, not to its name.
        """
        if self.watched_names:
            return op_name in self.watched_names
        return any(matched.selects(op_name, original_names) for matched in self.matching(model_names))

    def skipped(self, op_type: str, op_name: str, model_names: Sequence[str] = ()) -> frozenset[Position]:
        """Inputs and outputs that the blacklists of the model, and those for every model, take out."""
        return NO_POSITIONS.union(*(matched.skipped(op_type, op_name) for matched in self.matching(model_names)))

    def choose(self, operators: Sequence[ModelOperator], model_names: Sequence[str] = ()) -> list[Choice | None]:
        """For each operator of a model, in the order of execution: what is dumped of it; None = nothing.

        Edges:  operators that hand in data are dumped when a chosen operator reads them, or with everything.
        Source: ACL, `layer`, `opname_range`.
        """
        lists = self.matching(model_names)
        if self.watched_names:
            chosen = [operator.op_name in self.watched_names for operator in operators]
        else:
            inside = in_ranges(_usable_ranges(lists, operators), [operator.op_name for operator in operators])
            chosen = [
                not operator.is_data and (is_inside or any(operator_list.takes(operator) for operator_list in lists))
                for operator, is_inside in zip(operators, inside, strict=True)
            ]
            _choose_data(operators, chosen, any(operator_list.is_everything for operator_list in lists))
        return [
            Choice(self.skipped(operator.op_type, operator.op_name, model_names)) if is_in else None
            for operator, is_in in zip(operators, chosen, strict=True)
        ]

    def triggers(self, operator: ModelOperator) -> bool:
        """True when the memory watcher saves the watched outputs again after this operator.

        Edges:  neither a watched operator nor a collective one (Hcom...) does that.
        """
        if not self.watched_names or operator.op_name in self.watched_names:
            return False
        is_collective = operator.op_type.startswith(_COLLECTIVE_PREFIX)
        return not is_collective and any(operator_list.takes(operator) for operator_list in self.lists)

    def unmatched(self, full_names: Iterable[str]) -> dict[str, str]:
        """Texts of selectors that match none of the names -> what to write instead, or "".

        full_names: of every operator and parameter that was met, in all graphs.
        """
        names = list(dict.fromkeys(full_names))
        name_set = set(names)
        advice_by_text: dict[str, str] = {}
        for selector in self.selectors or ():
            if isinstance(selector, FullNameSelector):
                is_met = selector.text in name_set
            else:
                is_met = any(selector.matches(name) for name in names)
            if not is_met:
                advice_by_text[selector.text] = advice(selector, names)
        return advice_by_text

    def advice(self, operators: Sequence[ModelOperator], model_names: Sequence[str] = ()) -> list[str]:
        """What `dump_list` names and this model does not have, one sentence each, for the log."""
        lists = self.matching(model_names)
        if self.lists and not lists:
            models = sorted({operator_list.model_name for operator_list in self.lists})
            near = next(filter(None, (did_you_mean(name, model_names) for name in models)), "")
            return [
                f"dump_list: it names the models {', '.join(models)}, not {' or '.join(model_names) or 'this one'}, "
                f"so nothing of this model is dumped. {near}".rstrip()
            ]
        fused = {operator.op_name for operator in operators}
        names = fused.union(*(operator.original_names for operator in operators))
        types = {operator.op_type for operator in operators}
        data = {operator.op_name for operator in operators if operator.is_data}
        sentences: dict[str, None] = {}
        for operator_list in lists:
            ends = [name for name_range in operator_list.ranges for name in (name_range.begin, name_range.end)]
            for possible, written in (
                (names, sorted(name for name in operator_list.full_names if not _is_of_run(name, operators))),
                (fused, sorted(operator_list.watcher_nodes)),
                (fused, ends),
            ):
                _note_missing(sentences, "dump_list: the model has no operator", written, possible)
            _note_missing(
                sentences, "opname_blacklist: the model has no operator", operator_list.skipped_by_name, fused
            )
            _note_missing(
                sentences, "optype_blacklist: the model has no operator of type", operator_list.skipped_by_type, types
            )
            for name in ends:
                if name in data:
                    sentences[f"opname_range: {name} hands in data, so no range may begin or end at it."] = None
        return list(sentences)


def _is_of_run(name: str, operators: Sequence[ModelOperator]) -> bool:
    """Whether it names one run of an operator that runs several times."""
    return any(operator.run_pattern is not None and operator.run_pattern.fullmatch(name) for operator in operators)


def _note_missing(sentences: dict[str, None], lack: str, written: Iterable[str], possible: Collection[str]) -> None:
    """Add one sentence for all names that are not among the possible ones."""
    missing = [name for name in dict.fromkeys(written) if name not in possible]
    if not missing:
        return
    names = shortened(missing)
    advices = [f"{name}: {text}" for name in names if (text := did_you_mean(name, sorted(possible)))]
    if len(missing) == 1:
        advices = [text.removeprefix(f"{names[0]}: ") for text in advices]
    else:
        lack = lack.replace("no operator", "no operators")
    sentences[" ".join([f"{lack} {', '.join(names)}.", *advices])] = None


def _choose_data(operators: Sequence[ModelOperator], chosen: list[bool], is_everything: bool) -> None:
    """Add the operators that hand data to chosen ones, in place."""
    pairs = list(zip(operators, chosen, strict=True))
    read = {index for operator, is_in in pairs if is_in for index in operator.producers}
    for index, operator in enumerate(operators):
        if operator.is_data:
            chosen[index] = is_everything or index in read


def _usable_ranges(lists: Sequence[OperatorList], operators: Sequence[ModelOperator]) -> list[NameRange]:
    """Ranges but for those that begin or end at an operator of data."""
    data = {operator.op_name for operator in operators if operator.is_data}
    return [ends for operator_list in lists for ends in operator_list.ranges if not data & {ends.begin, ends.end}]


class RangeState(Enum):
    INIT = "init"
    START = "start"
    STOP = "stop"
    ERROR = "error"


_BEGIN, _END, _OTHER = 0, 1, 2
# state -> the next one at the beginning, at the end and at any other operator.   Source: ACL's graph engine.
_NEXT = {
    RangeState.INIT: (RangeState.START, RangeState.ERROR, RangeState.INIT),
    RangeState.START: (RangeState.START, RangeState.STOP, RangeState.START),
    RangeState.STOP: (RangeState.ERROR, RangeState.STOP, RangeState.INIT),
    RangeState.ERROR: (RangeState.ERROR, RangeState.ERROR, RangeState.ERROR),
}


class RangeWalk:
    """One range on its way through one execution order.

    Edges:  an end before the beginning, or a beginning right after the end, is an error; from there on the
            range holds nothing. A range whose ends are equal is that one operator.
    """

    def __init__(self, name_range: NameRange) -> None:
        self.name_range = name_range
        self.state = RangeState.INIT

    def step(self, op_name: str) -> bool:
        """The next operator; True when it lies in the range."""
        begin, end = self.name_range.begin, self.name_range.end
        event = _BEGIN if op_name == begin else _END if op_name == end else _OTHER
        self.state = _NEXT[self.state][event]
        is_inside = self.state in (RangeState.START, RangeState.STOP)
        if self.state is RangeState.START and begin == end:
            self.state = RangeState.STOP
        return is_inside


def in_ranges(ranges: Sequence[NameRange], op_names: Sequence[str]) -> list[bool]:
    """For each operator, in the order of execution: whether it lies in any of the ranges."""
    walks = [RangeWalk(name_range) for name_range in ranges]
    insides = ([walk.step(name) for walk in walks] for name in op_names)  # every walk sees every operator
    return [any(inside) for inside in insides]

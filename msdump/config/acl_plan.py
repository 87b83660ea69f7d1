"""AclPlan: an acl.json as pure data that says of every operator of every model whether it is dumped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msdump.config.acl_ranges import NameRange, in_ranges
from msdump.config.acl_rules import WATCHER
from msdump.config.acl_selection import EVERY_MODEL, NO_POSITIONS, Choice, ListEntry, Operator, Position
from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.config.ranges import NumberRanges
from msdump.errors import did_you_mean

_DUMP_TYPES = {BRIEF: 3, NORM: 2, DETAIL: 5}
_OVERFLOW_TYPE, _OPERATOR_TYPE = 4, 1
_COLLECTIVE_PREFIX = "Hcom"


@dataclass(frozen=True)
class AclPlan:
    """One acl.json, ready to be asked.

    path             root of the dump, absolute; None: an exception dump without `dump_path`
    scene            "", "watcher" or one of the three `aic_err_*`
    is_overflow      dump only operators that overflowed
    is_single_op     operators that are called one by one are dumped
    entries          elements of `dump_list`; () = no model is dumped
    statistics       those asked for, in the order of their columns; () = tensors are dumped instead
    config_text      the user's file, byte for byte
    """

    path: Path | None
    scene: str
    is_overflow: bool
    is_single_op: bool
    entries: tuple[ListEntry, ...]
    dumps_input: bool
    dumps_output: bool
    iterations: NumberRanges
    statistics: tuple[str, ...]
    config_text: bytes
    config_path: Path

    @property
    def is_exception(self) -> bool:
        return self.scene in _DUMP_TYPES

    @property
    def is_watcher(self) -> bool:
        return self.scene == WATCHER

    @property
    def dump_type(self) -> int:
        """ACL's number: 1 operator, 2, 3 and 5 exception (norm, brief, detail), 4 overflow."""
        return _OVERFLOW_TYPE if self.is_overflow else _DUMP_TYPES.get(self.scene, _OPERATOR_TYPE)

    def is_dumped_iteration(self, iteration: int) -> bool:
        return iteration in self.iterations

    def matching(self, model_names: Sequence[str]) -> tuple[ListEntry, ...]:
        """Entries for a model: those of its first name that any entry has, and those for every model.

        model_names: the name of its file, then the name inside of it.
        """
        known = {entry.model_name for entry in self.entries} - {EVERY_MODEL}
        chosen = next((name for name in model_names if name in known), EVERY_MODEL)
        return tuple(entry for entry in self.entries if entry.model_name in (chosen, EVERY_MODEL))

    def selects(
        self, op_type: str, op_name: str, model_names: Sequence[str] = (), original_names: tuple[str, ...] = ()
    ) -> bool:
        """True when the operator is asked for by itself, ranges and the operators around it left aside.

        Edges:  overflow detection and an exception dump look at every operator. The watcher dumps the watched.
        """
        if self.is_overflow or self.is_exception:
            return True
        if self.is_watcher:
            return op_name in self.watched_names
        operator = Operator(op_type, op_name, original_names)
        return any(entry.names(operator) for entry in self.matching(model_names))

    def skipped(self, op_type: str, op_name: str, model_names: Sequence[str] = ()) -> frozenset[Position]:
        """Inputs and outputs that the blacklists of the model, and those for every model, take out."""
        return NO_POSITIONS.union(*(entry.skipped(op_type, op_name) for entry in self.matching(model_names)))

    def choose(self, operators: Sequence[Operator], model_names: Sequence[str] = ()) -> list[Choice | None]:
        """For each operator of a model, in the order of execution: what is dumped of it; None = nothing.

        Edges:  operators that hand in data are dumped when a chosen operator reads them, or with everything.
        Source: ACL, `layer`, `opname_range`.
        """
        entries = self.matching(model_names)
        if self.is_overflow or self.is_exception or self.is_watcher:
            chosen = [self.selects(operator.op_type, operator.op_name) for operator in operators]
        else:
            inside = in_ranges(_usable_ranges(entries, operators), [operator.op_name for operator in operators])
            chosen = [
                not operator.is_data and (is_inside or any(entry.names(operator) for entry in entries))
                for operator, is_inside in zip(operators, inside, strict=True)
            ]
            _choose_data(operators, chosen, any(entry.is_everything for entry in entries))
        return [
            Choice(NO_POSITIONS.union(*(entry.skipped(operator.op_type, operator.op_name) for entry in entries)))
            if is_in
            else None
            for operator, is_in in zip(operators, chosen, strict=True)
        ]

    @cached_property
    def watched_names(self) -> frozenset[str]:
        """Operators whose outputs the watcher saves, by their names after fusion."""
        return frozenset().union(*(entry.watcher_nodes for entry in self.entries))

    def triggers(self, operator: Operator) -> bool:
        """True when the watched outputs are saved again after this operator.

        Edges:  neither a watched operator nor a collective one (Hcom...) does that.
        """
        if not self.is_watcher or operator.op_name in self.watched_names:
            return False
        is_collective = operator.op_type.startswith(_COLLECTIVE_PREFIX)
        return not is_collective and any(entry.names(operator) for entry in self.entries)

    def advice(self, operators: Sequence[Operator], model_names: Sequence[str] = ()) -> list[str]:
        """What the configuration names and this model does not have, one sentence each, for the log."""
        entries = self.matching(model_names)
        if self.entries and not entries:
            known = sorted({entry.model_name for entry in self.entries})
            near = did_you_mean(model_names[0], known) if model_names else ""
            return [
                f"dump_list: it names the models {', '.join(known)}, not {' or '.join(model_names) or 'this one'}, "
                f"so nothing of this model is dumped. {near}".rstrip()
            ]
        fused = {operator.op_name for operator in operators}
        names = fused.union(*(operator.original_names for operator in operators))
        data = {operator.op_name for operator in operators if operator.is_data}
        found: dict[str, None] = {}
        for entry in entries:
            ends = [name for name_range in entry.ranges for name in (name_range.begin, name_range.end)]
            for known_names, asked in (
                (names, sorted(entry.layers or ())),
                (fused, sorted(entry.watcher_nodes)),
                (fused, ends),
            ):
                for name in asked:
                    if name not in known_names:
                        near = did_you_mean(name, sorted(known_names))
                        found[f"dump_list: the model has no operator {name}. {near}".rstrip()] = None
            for name in ends:
                if name in data:
                    found[f"opname_range: {name} hands in data, so no range may begin or end at it."] = None
        return list(found)


def _choose_data(operators: Sequence[Operator], chosen: list[bool], is_everything: bool) -> None:
    """Add the operators that hand data to chosen ones, in place."""
    pairs = list(zip(operators, chosen, strict=True))
    read = {place for operator, is_in in pairs if is_in for place in operator.producers}
    for place, operator in enumerate(operators):
        if operator.is_data:
            chosen[place] = is_everything or place in read


def _usable_ranges(entries: Sequence[ListEntry], operators: Sequence[Operator]) -> list[NameRange]:
    """Ranges but for those that begin or end at an operator of data."""
    data = {operator.op_name for operator in operators if operator.is_data}
    return [ends for entry in entries for ends in entry.ranges if not data & {ends.begin, ends.end}]

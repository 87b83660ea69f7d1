"""One element of `dump_list`, compiled: which operators of a model it asks for, and which positions it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msdump.config.acl_ranges import NameRange
from msdump.config.acl_sections import BlacklistEntry, DumpListItem

Position = tuple[str, int]  # ("input", 0)
NO_POSITIONS: frozenset[Position] = frozenset()
# Operators that only hand in what comes from outside.
DATA_OP_TYPES = frozenset({"Data", "AippData", "AnnData", "RefData"})
EVERY_MODEL = ""
_POSITION = re.compile(r"(input|output)([0-9]+)")
_LARGEST_SLOT = 10**9


@dataclass(frozen=True)
class Operator:
    """An operator of a model as the selection sees it.

    original_names  of the operators that were fused or renamed into this one; `layer` takes them too
    producers       places, in the same list, of the operators whose outputs this one reads
    """

    op_type: str
    op_name: str
    original_names: tuple[str, ...] = ()
    producers: tuple[int, ...] = ()

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
class ListEntry:
    """One element of `dump_list`.

    model_name  "" = every model
    layers      None = every operator, or those in the ranges where there are ranges
    """

    model_name: str
    layers: frozenset[str] | None
    watcher_nodes: frozenset[str] = frozenset()
    skipped_by_type: Mapping[str, frozenset[Position]] = field(default_factory=dict)
    skipped_by_name: Mapping[str, frozenset[Position]] = field(default_factory=dict)
    ranges: tuple[NameRange, ...] = ()

    @property
    def is_everything(self) -> bool:
        return self.layers is None and not self.ranges

    def names(self, operator: Operator) -> bool:
        """True when `layer` names the operator, or leaves all of them in."""
        if self.layers is None:
            return not self.ranges
        return operator.op_name in self.layers or any(name in self.layers for name in operator.original_names)

    def skipped(self, op_type: str, op_name: str) -> frozenset[Position]:
        """Positions that either blacklist takes out."""
        by_type = self.skipped_by_type.get(op_type, NO_POSITIONS)
        return by_type | self.skipped_by_name.get(op_name, NO_POSITIONS)


def list_entry(item: DumpListItem) -> ListEntry:
    return ListEntry(
        model_name=item.model_name,
        layers=frozenset(item.layer) if item.layer else None,
        watcher_nodes=frozenset(item.watcher_nodes),
        skipped_by_type=_merged(item.optype_blacklist),
        skipped_by_name=_merged(item.opname_blacklist),
        ranges=tuple(NameRange(entry.begin, entry.end) for entry in item.opname_range),
    )


def parse_position(text: str) -> Position | None:
    """ "input0" -> ("input", 0); None for a text that is no position."""
    match = _POSITION.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0") or "0"
    return match[1], int(digits) if len(digits) < 10 else _LARGEST_SLOT


def blacklist_warnings(items: Sequence[DumpListItem]) -> list[str]:
    """Elements of the blacklists that do nothing; ACL warns of them and goes on."""
    found = []
    for index, item in enumerate(items):
        for key in ("optype_blacklist", "opname_blacklist"):
            for number, entry in enumerate(getattr(item, key)):
                where = f"dump_list[{index}].{key}[{number}]"
                if not entry.name:
                    found.append(f"{where}: it has no name, so it takes nothing out.")
                elif not entry.pos:
                    found.append(f"{where}: it has no pos, so it takes nothing out of {entry.name}.")
                found += [
                    f'{where}.pos[{place}]: expected inputN or outputN, got "{text}". It takes nothing out.'
                    for place, text in enumerate(entry.pos)
                    if parse_position(text) is None
                ]
    return found


def _merged(entries: Iterable[BlacklistEntry]) -> dict[str, frozenset[Position]]:
    """Several elements with one name count as one with all their positions."""
    merged: dict[str, frozenset[Position]] = {}
    for entry in entries:
        positions = frozenset(filter(None, map(parse_position, entry.pos)))
        if entry.name and positions:
            merged[entry.name] = merged.get(entry.name, NO_POSITIONS) | positions
    return merged

"""acl.json as a whole: file -> `dump` section that holds, or the first error -> Plan; so do the options of TorchAir."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msdump.config.acl_file import CONTENT, AclConfigError, acl_file, item_refusal, read_acl_file
from msdump.config.acl_rules import (
    ALL,
    DUMP,
    EXCEPTION_SCENES,
    INPUT,
    LITE,
    ON,
    OUTPUT,
    STATISTICS,
    STATS,
    WATCHER,
    BlacklistEntry,
    DumpListItem,
    DumpSection,
    check_path,
    check_section,
    parse_section,
    split_ip_path,
    unknown_keys,
)
from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.config.json_file import JsonFile, mapping_as_file
from msdump.config.plan import OVERFLOW_ALL, How, OperandSelection, Plan, Saved, Trigger, When, Where
from msdump.config.ranges import ACL, parse_ranges
from msdump.config.selection import NO_POSITIONS, NameRange, OperatorList, Position, Which
from msdump.config.selectors import FullNameSelector
from msdump.errors import did_you_mean
from msdump.process import dry_run

_POSITION = re.compile(r"(input|output)([0-9]+)")
_LARGEST_SLOT = 10**9

Source = str | os.PathLike[str] | Mapping[str, Any] | JsonFile | None


@dataclass(frozen=True)
class AclConfig:
    """A valid acl.json.

    section   None: the file has no `dump`, or an empty one
    warnings  what is odd but no error, one sentence each, for the log
    """

    section: DumpSection | None
    file: JsonFile
    warnings: tuple[str, ...] = ()


def load_acl_config(source: Source) -> AclConfig:
    """Read and check an acl.json: its path, the file where it was read already, a mapping that holds what such a file
    would, or None, which stands for a null pointer.

    Raises: AclConfigError; ConfigError for a mapping that no file can hold.
    """
    if isinstance(source, Mapping):
        source = mapping_as_file(source, "acl.json")
    elif isinstance(source, JsonFile) and dry_run.acl_json is not None:
        source = source.path
    if isinstance(source, JsonFile):
        file = replace(acl_file(source.text, source.path), given=source.given, stamp=source.stamp)
    else:
        file = read_acl_file(source)
    return parse_acl_config(file)


def parse_acl_config(file: JsonFile) -> AclConfig:
    """Check what a file holds.   Raises: AclConfigError 100009: types first, then values, then constraints."""
    content = file.value if isinstance(file.value, dict) else {}
    doubles = [f"{file.path}: key {key} comes twice in one object; the last one counts." for key in file.duplicate_keys]
    if DUMP not in content or content[DUMP] == {}:
        near = did_you_mean(DUMP, content) if DUMP not in content else ""
        lack = f"its section {DUMP} is empty" if DUMP in content else f"it has no section {DUMP}"
        nothing = f"{file.path}: {lack}, so nothing is dumped. {near}".rstrip()
        return AclConfig(None, file, (*doubles, nothing))
    try:
        if not isinstance(content[DUMP], dict):
            reason = "the value must be of the object type"
            raise item_refusal(CONTENT, DUMP, reason, "an object", content[DUMP], "Put it in braces.")
        section = parse_section(content[DUMP])
        check_section(section)
    except AclConfigError as error:
        raise error.with_line(f"Configuration file: {file.path}") from error.__cause__
    warnings = (*doubles, *unknown_keys(content), *blacklist_warnings(section.dump_list), *_idle_keys(section))
    return AclConfig(section, file, warnings)


def plan_acl(config: AclConfig, current: Path | None = None) -> Plan | None:
    """The plan of a configuration; None when it dumps nothing.

    current   folder that a relative `dump_path` and the form `ipv4:path` start from; None = the current one
    """
    section = config.section
    if section is None or not _is_on(section):
        return None
    is_exception = section.dump_scene in EXCEPTION_SCENES
    is_overflow = section.dump_debug == ON
    where = Where(_root(section.dump_path, current or Path.cwd()), is_path_given=bool(section.dump_path))
    if is_exception or is_overflow:
        # Neither reads the rest of the file, which was not checked for an exception dump.
        scene = BRIEF if section.dump_scene == LITE else section.dump_scene
        trigger = Trigger(exception=scene) if is_exception else Trigger(overflow=OVERFLOW_ALL)
        return Plan(When(), Which(), OperandSelection(), _saved(()), trigger, where, How(), config.file)
    return Plan(
        when=_when(section.dump_step),
        which=Which(
            lists=tuple(map(operator_list, section.dump_list)),
            takes_single_operators=section.dump_op_switch == ON,
        ),
        operands=_operands(section.dump_mode),
        saved=_saved(_statistics(section)),
        trigger=Trigger(is_watcher=section.dump_scene == WATCHER),
        where=where,
        how=How(),
        source=config.file,
    )


def plan_acl_exception(scene: str) -> Plan:
    """The plan of an exception dump that the environment sets, without any acl.json."""
    plan = plan_acl(AclConfig(DumpSection(dump_scene=scene), JsonFile(Path(), b"", {})))
    if plan is None:
        raise ValueError(f"scene: expected one of {', '.join((BRIEF, NORM, DETAIL))}, got {scene!r}.")
    return plan


def plan_options(
    dump_path: Path, dump_mode: str, dump_data: str, dump_step: str, lists: Iterable[OperatorList], source: JsonFile
) -> Plan:
    """The plan of TorchAir's options, which it hands to ACL.

    lists   one for each compiled graph
    source  file that shows the options
    Raises: AclConfigError as for an acl.json that says the same.
    """
    try:
        check_path(str(dump_path))
        when = _when(dump_step)
    except AclConfigError as error:
        raise error.with_line(f"Configuration file: {source.path}") from error.__cause__
    return Plan(
        when=when,
        which=Which(lists=tuple(lists)),
        operands=_operands(dump_mode),
        saved=_saved(STATISTICS[:-1] if dump_data == STATS else ()),
        trigger=Trigger(),
        where=Where(dump_path),
        how=How(),
        source=source,
    )


def _when(dump_step: str) -> When:
    """A dry run measures whichever step comes first."""
    iterations = parse_ranges(dump_step, ACL)
    return When(iterations) if dry_run.folder is None else When()


def _operands(dump_mode: str) -> OperandSelection:
    return OperandSelection(inputs=dump_mode in (INPUT, ALL), outputs=dump_mode in (OUTPUT, ALL))


def _saved(statistics: tuple[str, ...]) -> Saved:
    """Of statistics when there are any; of tensors otherwise."""
    return Saved(not statistics, bool(statistics), statistics or None, file_format="bin", is_host_layout=False)


def _is_on(section: DumpSection) -> bool:
    """A path alone is right and does nothing."""
    return bool(section.dump_list or section.dump_scene) or ON in (section.dump_op_switch, section.dump_debug)


def _root(dump_path: str, current: Path) -> Path:
    """Edges: the form `ipv4:path` is a folder below the current one, also when the path begins with "/"."""
    if not dump_path:
        return current
    address, path = split_ip_path(dump_path)
    return current / (path.lstrip("/") if address else path)


def _statistics(section: DumpSection) -> tuple[str, ...]:
    if section.dump_data != STATS:
        return ()
    if not section.has("dump_stats"):
        return STATISTICS[:-1]
    return tuple(name for name in STATISTICS if name in section.dump_stats)


def _idle_keys(section: DumpSection) -> list[str]:
    """What is written and has no effect."""
    sentences = []
    if not _is_on(section):
        sentences.append(
            "dump: nothing is dumped. Add dump_list for models, dump_op_switch for single operators, dump_debug for "
            "overflow or dump_scene."
        )
    if section.dump_scene in EXCEPTION_SCENES and section.dump_list:
        sentences.append(f"dump_list: not read when dump_scene is {section.dump_scene}.")
    if section.dump_scene == WATCHER and not section.dump_list:
        sentences.append("dump_list: it is empty, so the watcher watches nothing. Add watcher_nodes.")
    names = [item.model_name for item in section.dump_list if item.model_name]
    sentences += [
        f"dump_list: model_name {name} comes {names.count(name)} times; their operators are put together."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return sentences


def operator_list(item: DumpListItem) -> OperatorList:
    """One element of `dump_list`."""
    return OperatorList(
        model_name=item.model_name,
        selectors=tuple(map(FullNameSelector, item.layer)) or None,
        ranges=tuple(NameRange(entry.begin, entry.end) for entry in item.opname_range),
        watcher_nodes=frozenset(item.watcher_nodes),
        skipped_by_type=_merged(item.optype_blacklist),
        skipped_by_name=_merged(item.opname_blacklist),
    )


def parse_position(text: str) -> Position | None:
    """ "input0" -> ("input", 0); None for a text that is no position."""
    match = _POSITION.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0") or "0"
    return match[1], int(digits) if len(digits) < 10 else _LARGEST_SLOT


def blacklist_warnings(items: Sequence[DumpListItem]) -> list[str]:
    """Elements of the blacklists that do nothing; ACL logs a warning and continues."""
    sentences = []
    for index, item in enumerate(items):
        for key in ("optype_blacklist", "opname_blacklist"):
            for number, entry in enumerate(getattr(item, key)):
                where = f"dump_list[{index}].{key}[{number}]"
                if not entry.name:
                    sentences.append(f"{where}: it has no name, so it takes nothing out.")
                elif not entry.pos:
                    sentences.append(f"{where}: it has no pos, so it takes nothing out of {entry.name}.")
                sentences += [
                    f'{where}.pos[{entry_index}]: expected inputN or outputN, got "{text}". It takes nothing out.'
                    for entry_index, text in enumerate(entry.pos)
                    if parse_position(text) is None
                ]
    return sentences


def _merged(entries: Iterable[BlacklistEntry]) -> dict[str, frozenset[Position]]:
    """Several elements with one name count as one with all their positions."""
    merged: dict[str, frozenset[Position]] = {}
    for entry in entries:
        positions = frozenset(filter(None, map(parse_position, entry.pos)))
        if entry.name and positions:
            merged[entry.name] = merged.get(entry.name, NO_POSITIONS) | positions
    return merged

"""acl.json as a whole: file -> `dump` section that holds, or the first error -> AclPlan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from msdump import measuring
from msdump.config.acl_error import CONTENT, AclConfigError, item_refusal
from msdump.config.acl_file import read_acl_file
from msdump.config.acl_plan import AclPlan
from msdump.config.acl_rules import (
    ALL,
    EXCEPTION_SCENES,
    INPUT,
    LITE,
    ON,
    OUTPUT,
    STATISTICS,
    STATS,
    WATCHER,
    check_section,
    split_ip_path,
)
from msdump.config.acl_sections import DUMP, DumpSection, parse_section, unknown_keys
from msdump.config.acl_selection import blacklist_warnings, list_entry
from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.config.json_file import JsonFile
from msdump.config.ranges import ACL, EVERY_NUMBER, parse_ranges
from msdump.errors import did_you_mean


@dataclass(frozen=True)
class AclConfig:
    """An acl.json that holds.

    section   None: the file asks for nothing
    warnings  what is odd but no error, one sentence each, for the log
    """

    section: DumpSection | None
    file: JsonFile
    warnings: tuple[str, ...] = ()


def load_acl_config(path: str | os.PathLike[str] | None) -> AclConfig:
    """Read and check an acl.json; None stands for a null pointer.   Raises: AclConfigError."""
    return parse_acl_config(read_acl_file(path))


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


def plan_acl(config: AclConfig, current: Path | None = None) -> AclPlan | None:
    """The plan that a configuration asks for; None when it asks for nothing.

    current   folder that a relative `dump_path` and the form `ipv4:path` start from; None = the current one
    """
    section = config.section
    if section is None or not _is_on(section):
        return None
    is_exception = section.dump_scene in EXCEPTION_SCENES
    is_overflow = section.dump_debug == ON
    # Neither reads the rest of the file, which was not checked for an exception dump.
    is_plain = not (is_exception or is_overflow)
    return AclPlan(
        path=_root(section.dump_path, current or Path.cwd()),
        scene=BRIEF if section.dump_scene == LITE else section.dump_scene,
        is_overflow=is_overflow,
        is_single_op=is_plain and section.dump_op_switch == ON,
        entries=tuple(map(list_entry, section.dump_list)) if is_plain else (),
        dumps_input=not is_plain or section.dump_mode in (INPUT, ALL),
        dumps_output=not is_plain or section.dump_mode in (OUTPUT, ALL),
        iterations=parse_ranges(section.dump_step, ACL) if is_plain and measuring.folder is None else EVERY_NUMBER,
        statistics=_statistics(section) if is_plain else (),
        config_text=config.file.text,
        config_path=config.file.path,
    )


def plan_acl_exception(scene: str) -> AclPlan:
    """The plan of an exception dump that the environment asks for, without any acl.json."""
    plan = plan_acl(AclConfig(DumpSection(dump_scene=scene), JsonFile(Path(), b"", {})))
    if plan is None:
        raise ValueError(f"scene: expected one of {', '.join((BRIEF, NORM, DETAIL))}, got {scene!r}.")
    return plan


def _is_on(section: DumpSection) -> bool:
    """A path alone is right and does nothing."""
    return bool(section.dump_list or section.dump_scene) or ON in (section.dump_op_switch, section.dump_debug)


def _root(dump_path: str, current: Path) -> Path | None:
    """Edges: the form `ipv4:path` is a folder below the current one, also when the path begins with "/"."""
    if not dump_path:
        return None
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
    found = []
    if not _is_on(section):
        found.append(
            "dump: nothing is dumped. Add dump_list for models, dump_op_switch for single operators, dump_debug for "
            "overflow or dump_scene."
        )
    if section.dump_scene in EXCEPTION_SCENES and section.dump_list:
        found.append(f"dump_list: not read when dump_scene is {section.dump_scene}.")
    if section.dump_scene == WATCHER and not section.dump_list:
        found.append("dump_list: it is empty, so the watcher watches nothing. Add watcher_nodes.")
    names = [item.model_name for item in section.dump_list if item.model_name]
    found += [
        f"dump_list: model_name {name} comes {names.count(name)} times; their operators are put together."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return found

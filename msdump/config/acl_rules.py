"""The `dump` section of acl.json: every key with its JSON type, and what its values may say.

Types come first, in the order of the fields; then each value alone, then values beside each other. The first failure
wins. An exception scene and overflow detection end the last part early, as they do in CANN.   Source: ACL,
`aclmdlSetDump`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from msdump.config.acl_file import CHOICE, CONTENT, VALUE, AclConfigError, conflict, item_refusal, missing_item
from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.config.json_file import expanded_advice
from msdump.config.ranges import ACL, parse_ranges
from msdump.errors import did_you_mean
from msdump.statistics.stats import STATISTIC_CATEGORIES

ON, OFF = "on", "off"
INPUT, OUTPUT, ALL = "input", "output", "all"
LEVEL_OP, LEVEL_KERNEL = "op", "kernel"
TENSOR, STATS = "tensor", "stats"
WATCHER, LITE = "watcher", "lite_exception"
EXCEPTION_SCENES = (LITE, BRIEF, NORM, DETAIL)
# In the order of their bits, which is the order of the columns.
STATISTICS = tuple(
    statistic_category.acl_name
    for statistic_category in STATISTIC_CATEGORIES
    if statistic_category.acl_name is not None
)
KERNEL_DATA = (ALL, "printf", TENSOR, "assert", "timestamp")
LONGEST_PATH = 512
MOST_BLACKLIST_ENTRIES = 100

# In the order of the checks.
CHOICES = {
    "dump_mode": (INPUT, OUTPUT, ALL),
    "dump_data": (TENSOR, STATS),
    "dump_op_switch": (ON, OFF),
    "dump_level": (LEVEL_OP, LEVEL_KERNEL, ALL),
    "dump_debug": (ON, OFF),
    "dump_scene": (*EXCEPTION_SCENES, WATCHER),
}
_PATH_EXAMPLE = 'a folder such as "/home/output"'
_IP_PATH = re.compile(r"[A-Za-z0-9\-=\[\];\\,./!@#$%^&*()_+{}:?]*")
_BLACKLISTS = ("optype_blacklist", "opname_blacklist")

DUMP = "dump"
# pydantic's name of a wrong type -> (JSON type, what to write, how to fix it)
_TYPES = {
    "string_type": ("string", "a string", "Put it in double quotes."),
    "list_type": ("array", "a list", "Put it in square brackets."),
    "model_type": ("object", "an object", "Put it in braces."),
}


# Parts of dump_list[0].optype_blacklist, before the number of its element.
_MEMBER_DEPTH = 3


class Section(BaseModel):
    """One object of the file. Types are taken as they stand: "1" is no number and null is no string."""

    # `model_name` is ACL's word; pydantic would keep the beginning for itself.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", protected_namespaces=())

    def has(self, key: str) -> bool:
        """True when the file has the key, with any value."""
        return key in self.model_fields_set


class BlacklistEntry(Section):
    """One element of `optype_blacklist` or `opname_blacklist`."""

    name: str = ""
    pos: list[str] = []


class RangeEntry(Section):
    """One element of `opname_range`; both ends belong to it."""

    begin: str = ""
    end: str = ""


class DumpListItem(Section):
    """One element of `dump_list`."""

    model_name: str = ""
    layer: list[str] = []
    watcher_nodes: list[str] = []
    optype_blacklist: list[BlacklistEntry] = []
    opname_blacklist: list[BlacklistEntry] = []
    opname_range: list[RangeEntry] = []


class DumpSection(Section):
    """Section `dump`."""

    dump_path: str = ""
    dump_mode: str = "output"
    dump_op_switch: str = "off"
    dump_level: str = "all"
    dump_scene: str = ""
    dump_data: str = "tensor"
    dump_debug: str = "off"
    dump_kernel_data: str = "all"
    dump_step: str = ""
    dump_stats: list[str] = []
    dump_list: list[DumpListItem] = []


def parse_section(value: Any) -> DumpSection:
    """Types only.   Raises: AclConfigError EP0001: the first item of a wrong type, in CANN's order."""
    try:
        return DumpSection.model_validate(value)
    except ValidationError as error:
        problem = _first(error.errors(include_url=False))
    # Raised outside of `except`: pydantic's own account would only repeat this one in other words.
    raise _type_refusal(problem["loc"], problem["type"], problem["input"])


def _first(problems: Sequence[ErrorDetails]) -> ErrorDetails:
    """In the order of the fields, elements one after the other; but all elements of a blacklist or of ranges are
    objects before the content of any is checked.   Source: CANN, adump.
    """
    first = problems[0]
    siblings = [
        problem
        for problem in problems
        if problem["loc"][:_MEMBER_DEPTH] == first["loc"][:_MEMBER_DEPTH] and len(problem["loc"]) == _MEMBER_DEPTH + 1
    ]
    return siblings[0] if siblings and len(first["loc"]) > _MEMBER_DEPTH else first


def item_path(location: tuple[int | str, ...]) -> str:
    """("dump_list", 0, "layer", 1) -> dump_list[0].layer[1]; the section itself is `dump`."""
    pieces = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(pieces).removeprefix(".") or DUMP


def _type_refusal(location: tuple[int | str, ...], kind: str, value: Any) -> AclConfigError:
    json_type, expected, fix = _TYPES[kind]
    if kind == "string_type" and isinstance(value, list | dict | bool):
        # Quotes alone would not make a word of it.
        fix = "Write one word in double quotes."
    return item_refusal(
        CONTENT, item_path(location), f"the value must be of the {json_type} type", expected, value, fix
    )


def unknown_keys(content: dict[str, Any]) -> list[str]:
    """One sentence for each key without an effect; ACL ignores them silently."""
    return [
        f"{path}: unknown key, ignored. {did_you_mean(key, keys)}".rstrip()
        for path, key, keys in _unknown(DumpSection, content.get(DUMP), "")
    ]


def _unknown(model: type[BaseModel], value: Any, prefix: str) -> Iterator[tuple[str, str, list[str]]]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        path = f"{prefix}{key}"
        if key not in model.model_fields:
            yield path, key, list(model.model_fields)
        elif key in _NESTED and isinstance(inner, list):
            for index, element in enumerate(inner):
                yield from _unknown(_NESTED[key], element, f"{path}[{index}].")


_NESTED: dict[str, type[BaseModel]] = {
    "dump_list": DumpListItem,
    "optype_blacklist": BlacklistEntry,
    "opname_blacklist": BlacklistEntry,
    "opname_range": RangeEntry,
}


def check_section(section: DumpSection) -> None:
    """Raises: AclConfigError 100009 with the code of the first rule that does not hold."""
    _check_choices(section)
    _check_scene(section)
    if section.dump_scene in EXCEPTION_SCENES:
        return
    _check_path(section)
    _check_overflow(section)
    if section.dump_debug == ON:
        return
    parse_ranges(section.dump_step, ACL)
    for index, item in enumerate(section.dump_list):
        for check in _ITEM_CHECKS:
            check(section, f"dump_list[{index}]", item)
    _check_stats(section)


# -- each value alone -------------------------------------------------------------------------------


def _check_choices(section: DumpSection) -> None:
    for key, allowed in CHOICES.items():
        if section.has(key):
            _check_choice(key, getattr(section, key), allowed)
    if section.has("dump_kernel_data"):
        parts = section.dump_kernel_data.split(",")
        for index, part in enumerate(parts):
            item = "dump_kernel_data" if len(parts) == 1 else f"dump_kernel_data[{index}]"
            _check_choice(item, part, KERNEL_DATA)
    for index, name in enumerate(section.dump_stats):
        _check_choice(f"dump_stats[{index}]", name, STATISTICS)


def _check_choice(item: str, value: str, allowed: tuple[str, ...]) -> None:
    listed = "/".join(sorted(allowed))
    if not value:
        raise item_refusal(
            CONTENT, item, "the value is empty", f"one of {listed}", value, "Write one of them, or leave it out."
        )
    if value not in allowed:
        reason = f"value {value} is invalid, must be one of {listed}"
        raise item_refusal(CHOICE, item, reason, f"one of {listed}", value, did_you_mean(value, allowed))


# -- values beside each other -----------------------------------------------------------------------


def _check_scene(section: DumpSection) -> None:
    if not section.dump_scene:
        return
    scene = section.dump_scene
    for key in ("dump_debug", "dump_op_switch"):
        if getattr(section, key) == ON:
            reason = f"when dump_scene is {scene}, {key} cannot be on"
            raise conflict(reason, key, '"off"', ON, f"Take out {key} or dump_scene.")
    if scene == WATCHER and section.dump_mode != OUTPUT:
        reason = f"when dump_scene is {scene}, dump_mode cannot be {section.dump_mode}"
        raise conflict(reason, "dump_mode", '"output"', section.dump_mode, "The watcher saves outputs only.")


def split_ip_path(path: str) -> tuple[str, str]:
    """("1.2.3.4", what follows the colon) of the form `ipv4:path`; ("", path) of a plain path."""
    address, colon, rest = path.partition(":")
    numbers = address.split(".")
    is_address = bool(colon) and len(numbers) == 4
    if is_address and all(re.fullmatch(r"[0-9]{1,3}", number) and int(number) <= 255 for number in numbers):
        return address, rest
    return "", path


def _check_path(section: DumpSection) -> None:
    if not section.has("dump_path"):
        raise missing_item("dump_path", _PATH_EXAMPLE, "Add it; the folder must exist.")
    check_path(section.dump_path)


def check_path(path: str) -> None:
    """Raises: AclConfigError for a `dump_path` that ACL refuses."""
    item, example = "dump_path", _PATH_EXAMPLE
    if not path:
        raise item_refusal(CONTENT, item, "the value is empty", example, path, "Name a folder that exists.")
    length = len(path.encode("utf-8", "surrogatepass"))
    if length > LONGEST_PATH:
        reason = f"the length {length} exceeds {LONGEST_PATH}"
        raise item_refusal(VALUE, item, reason, f"at most {LONGEST_PATH} bytes", path, "Use a shorter path.")
    if path.find(":") == len(path) - 1:
        raise item_refusal(VALUE, item, "the value is an invalid path", example, path, "Add the path after the colon.")
    address, rest = split_ip_path(path)
    if address:
        if not _IP_PATH.fullmatch(rest):
            wrong = next(character for character in rest if not _IP_PATH.fullmatch(character))
            reason = "the value contains invalid characters"
            expected = "letters, digits and punctuation after the colon"
            raise item_refusal(VALUE, item, reason, expected, path, f"Take out {wrong!r}.")
        return
    _check_folder(path)


def _check_folder(path: str) -> None:
    item = "dump_path"
    try:
        real_path = Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError):
        fix = "Make the folder first: it is not made for you."
        if advice := expanded_advice(path):
            fix = advice
        elif not os.path.isabs(path):
            fix += f" A relative path begins at the current folder, {os.getcwd()}."
        raise item_refusal(VALUE, item, "the path does not exist", "a folder that exists", path, fix) from None
    if not real_path.is_dir():
        raise item_refusal(VALUE, item, "the path is not a directory", "a folder", path)
    if not os.access(real_path, os.R_OK | os.W_OK):
        reason = "the path is without read and write permissions"
        raise item_refusal(VALUE, item, reason, "a folder that you may read and write", path)


def _check_overflow(section: DumpSection) -> None:
    """Source: the page on `aclmdlSetDump`: overflow detection beside a model or single-operator dump is an error."""
    if section.dump_debug != ON:
        return
    if section.dump_op_switch == ON:
        reason = "when dump_debug is on, dump_op_switch cannot be on"
        raise conflict(reason, "dump_op_switch", '"off"', ON, "Take out dump_op_switch or dump_debug.")
    if section.dump_list:
        reason = "when dump_debug is on, dump_list cannot be configured"
        count = f"{len(section.dump_list)} entries" if len(section.dump_list) > 1 else "1 entry"
        raise conflict(reason, "dump_list", "no such key", count, "Take out dump_list or dump_debug.")


def _check_names(section: DumpSection, where: str, item: DumpListItem) -> None:
    if section.dump_op_switch == ON:
        return
    for key in ("model_name", "layer"):
        value = getattr(item, key)
        if item.has(key) and not value:
            fix = f"Take {key} out to mean all of them."
            raise item_refusal(CONTENT, f"{where}.{key}", "the value is empty", "a name", value, fix)


def _check_watchers(section: DumpSection, where: str, item: DumpListItem) -> None:
    key, scene = "watcher_nodes", section.dump_scene
    if scene == WATCHER:
        expected = "names of operators to watch"
        if not item.has(key):
            raise missing_item(f"{where}.{key}", expected)
        if not item.watcher_nodes:
            raise item_refusal(CONTENT, f"{where}.{key}", "the value is empty", expected, item.watcher_nodes)
        if item.has("model_name"):
            reason = f"when dump_scene is {scene}, model_name cannot be configured"
            where = f"{where}.model_name"
            raise conflict(reason, where, "no such key", item.model_name, "The watcher looks at every model.")
    elif item.watcher_nodes:
        reason = f"when dump_scene is not {WATCHER}, {key} cannot be configured"
        fix = f'Set dump_scene to "{WATCHER}", or take the key out.'
        raise conflict(reason, f"{where}.{key}", "no such key", item.watcher_nodes, fix)


def _check_blacklist_sizes(section: DumpSection, where: str, item: DumpListItem) -> None:
    for key in _BLACKLISTS:
        count = len(getattr(item, key))
        if count > MOST_BLACKLIST_ENTRIES:
            reason = f"the number of entries {count} exceeds the limit {MOST_BLACKLIST_ENTRIES}"
            expected = f"at most {MOST_BLACKLIST_ENTRIES} entries"
            raise item_refusal(VALUE, f"{where}.{key}", reason, expected, count)


def _check_blacklist_levels(section: DumpSection, where: str, item: DumpListItem) -> None:
    for key in _BLACKLISTS:
        if getattr(item, key):
            _check_level(section, where, key)


def _check_level(section: DumpSection, where: str, key: str) -> None:
    if section.dump_level != LEVEL_OP:
        reason = f"when dump_level is not {LEVEL_OP}, {key} cannot be configured"
        default = "" if section.has("dump_level") else f' It is "{ALL}" when it is left out.'
        fix = f'Set dump_level to "{LEVEL_OP}".{default}'
        raise conflict(reason, f"{where}.{key}", f'dump_level "{LEVEL_OP}" beside it', section.dump_level, fix)


def _check_ranges(section: DumpSection, where: str, item: DumpListItem) -> None:
    if not item.opname_range:
        return
    _check_level(section, where, "opname_range")
    expected = "the name of the model that the range is in"
    if not item.has("model_name"):
        raise missing_item(f"{where}.model_name", expected)
    if not item.model_name:
        raise item_refusal(CONTENT, f"{where}.model_name", "the value is empty", expected, item.model_name)
    for index, entry in enumerate(item.opname_range):
        if not (entry.begin and entry.end):
            item_path = f"{where}.opname_range[{index}]"
            reason = "begin and end must both be given and non-empty"
            value = {"begin": entry.begin, "end": entry.end}
            raise item_refusal(VALUE, item_path, reason, "the names of two operators", value)


def _check_stats(section: DumpSection) -> None:
    key = "dump_stats"
    if not section.has(key):
        return
    if not section.dump_stats:
        raise item_refusal(CONTENT, key, "the value is empty", "names of statistics", [], "Name some, or take it out.")
    if section.dump_data != STATS:
        reason = f"when dump_data is {section.dump_data}, {key} cannot be configured"
        fix = f'Set dump_data to "{STATS}", or take {key} out.'
        raise conflict(reason, key, f'dump_data "{STATS}" beside it', section.dump_data, fix)


# CANN judges one element of dump_list by all of these before it looks at the next.
_ITEM_CHECKS: tuple[Callable[[DumpSection, str, DumpListItem], None], ...] = (
    _check_names,
    _check_watchers,
    _check_blacklist_sizes,
    _check_blacklist_levels,
    _check_ranges,
)

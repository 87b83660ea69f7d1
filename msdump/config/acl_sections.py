"""The `dump` section of acl.json: every key with its JSON type. What a value may say is judged in acl_rules.py.

The order of fields is the order in which wrong types are reported.   Source: ACL, `aclmdlSetDump`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from msdump.config.acl_error import CONTENT, AclConfigError, item_refusal
from msdump.errors import did_you_mean

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
        """True when the key stands in the file, whatever its value."""
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
    objects before anything in one of them is looked at.   Source: CANN, adump.
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
    """One sentence for each key that nobody reads; ACL ignores them without a word."""
    return [
        f"{path}: unknown key, ignored. {did_you_mean(key, known)}".rstrip()
        for path, key, known in _unknown(DumpSection, content.get(DUMP), "")
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

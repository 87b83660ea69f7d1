"""JSON schemas of the two configurations, for editors and for checks that do not run Python.

A schema refuses nothing that the reader takes, so rules that hang on the machine (a folder that must exist, device
targets, MSDUMP_STRICT) are not in it; the reader checks them, and so does `msdump plan`. Like the reader it takes
keys that it does not know.   Source: the models of `sections`, `recorder` and `acl_rules`; names, types and defaults
come from them, and `_KEYS` adds what their validators ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from msdump.config import acl_rules
from msdump.config.acl_rules import DUMP, DumpSection
from msdump.config.environment import CONTAINERS
from msdump.config.plan import TRIGGERS
from msdump.config.recorder import RECORDER, RecorderSettings
from msdump.config.sections import (
    COMMON,
    E2E,
    FULL,
    STATISTIC,
    STATISTIC_CATEGORIES,
    TENSOR,
    CommonDumpSettings,
    E2eDumpSettings,
)

Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_RANGE = r"[0-9]+(-[0-9]+)?"
_PATH = r"^(/|$)"
_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER_OR_TEXT = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}


def _enum(*values: Any) -> Schema:
    return {"enum": list(values)}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


@dataclass(frozen=True, slots=True)
class _Key:
    """Description of a key, and its schema; None: that of the model, {}: any value."""

    text: str
    form: Schema | None = None


_KEYS: Mapping[type[BaseModel], Mapping[str, _Key]] = {
    CommonDumpSettings: {
        "dump_mode": _Key(
            "0: all operators. 1: those that kernels names. 2: those marked by set_dump.", _enum(0, 1, 2)
        ),
        "path": _Key(
            "Absolute path of the folder; without it that of MS_DIAGNOSTIC_DATA_PATH.",
            {"type": "string", "pattern": _PATH},
        ),
        "net_name": _Key(
            "Name of the network's folder.", {"type": "string", "pattern": r"^[A-Za-z0-9_-]+$", "maxLength": 255}
        ),
        "iteration": _Key(
            'Which iterations, from 0 on: "all", or numbers and ranges such as "0|5-8|100-120".',
            {"type": "string", "pattern": rf"^(all|\|*{_RANGE}(\|+{_RANGE})*\|*)$"},
        ),
        "input_output": _Key("0: inputs and outputs. 1: inputs. 2: outputs.", _enum(0, 1, 2)),
        "kernels": _Key("What dump_mode 1 dumps: full names, parts of types, name-regex(EXPR).", {"type": "array"}),
        "support_device": _Key("Indices of the devices that dump.", _list_of({"type": "number"})),
        "op_debug_mode": _Key(
            "0 ordinary, 4 exceptions; asynchronous dump: 1 AI core overflow, 2 atomic overflow, 3 both.", {}
        ),
        "file_format": _Key("Asynchronous dump: npy or bin.", {}),
        "saved_data": _Key(
            "tensor: files. statistic: a row per tensor in statistic.csv. full: both.", _enum(TENSOR, STATISTIC, FULL)
        ),
        "overflow_number": _Key("How many overflows to keep, with op_debug_mode 3; 0 is no limit.", _COUNT),
        "initial_iteration": _Key("Number of the first iteration.", _COUNT),
        "statistic_category": _Key("Which statistics statistic.csv shows.", {}),
        "container": _Key(
            "msdump's own. pack: one tar archive in the place of each folder of an iteration.", _enum(*CONTAINERS)
        ),
        "sampling": _Key(
            'msdump\'s own. 10: each tenth of the iterations. "5%": as many as take a twentieth of the time.',
            _NUMBER_OR_TEXT,
        ),
        "disk_budget": _Key('msdump\'s own. What the dump may take of the disk, such as "4G".', _NUMBER_OR_TEXT),
    },
    E2eDumpSettings: {
        "enable": _Key("true: the synchronous dump."),
        "trans_flag": _Key("true: tensors in the layout that the script sees, not that of the device."),
        "stat_calc_mode": _Key("Where statistics are calculated; without effect.", _enum("host", "device")),
        "device_stat_precision_mode": _Key("Precision of statistics; without effect.", _enum("high", "low")),
        "sample_mode": _Key("0: whole tensors. 1: samples; without effect.", _enum(0, 1)),
        "sample_num": _Key("Size of a sample; without effect.", {"type": "integer", "minimum": 1}),
        "save_kernel_args": _Key("Whether attributes of operators are kept; without effect."),
    },
    RecorderSettings: {
        "enable": _Key("Whether the flight recorder runs."),
        "ring": _Key("Folder of the ring, best in tmpfs.", {"type": "string", "pattern": _PATH}),
        "steps": _Key("How many of the last steps the ring holds.", {"type": "integer", "minimum": 1}),
        "budget": _Key(
            'Size of the ring: "8G", "512M" or a number of bytes.',
            _NUMBER_OR_TEXT,
        ),
        "statistics": _Key("Of how many steps before these statistics are kept.", _COUNT),
        "on": _Key("What makes it keep the ring.", {"anyOf": [_enum(*TRIGGERS), _list_of(_enum(*TRIGGERS))]}),
        "rules": _Key(
            'Rules about watched numbers, such as "loss > 10".',
            {"anyOf": [{"type": "string"}, _list_of({"type": "string"})]},
        ),
        "spike": _Key("How many standard deviations a loss may jump.", _ABOVE_0),
        "hang": _Key("Seconds without a new step that count as a hang.", _ABOVE_0),
        "after": _Key("How many steps it keeps after the one that was wrong.", _COUNT),
        "distance": _Key("Steps between two times of keeping.", _COUNT),
        "count": _Key("How often it keeps the ring at most.", {"type": "integer", "minimum": 1}),
    },
    DumpSection: {
        "dump_path": _Key("Folder that exists; ipv4:path is the folder path below the current one."),
        "dump_mode": _Key("What of an operator is dumped."),
        "dump_op_switch": _Key("on: operators that are called one by one are dumped."),
        "dump_level": _Key("Operators, kernels or all."),
        "dump_scene": _Key("The watcher, or a dump of exceptions."),
        "dump_data": _Key("tensor: files. stats: a csv per operator."),
        "dump_debug": _Key("on: only operators that overflow are dumped."),
        "dump_kernel_data": _Key("What kernels print: some of these words, joined by commas."),
        "dump_step": _Key('Which steps: numbers and ranges such as "0|3-5|10", at most 100; "" is every one.'),
        "dump_stats": _Key("Which statistics, with dump_data stats.", _list_of(_enum(*acl_rules.STATISTICS))),
        "dump_list": _Key("Models to dump; [{}] is every operator of every model."),
    },
}


def mindspore_schema() -> Schema:
    """Of the file that MINDSPORE_DUMP_CONFIG names, on CPU and without MSDUMP_STRICT."""
    sections = {
        COMMON: _section(CommonDumpSettings),
        E2E: _section(E2eDumpSettings),
        RECORDER: _section(RecorderSettings),
    }
    is_sync = {"properties": {E2E: {"properties": {"enable": {"const": True}}}}, "required": [E2E]}
    asynchronous = {"op_debug_mode": _enum(0, 1, 2, 3, 4), "file_format": _enum("npy", "bin")}
    has_statistics = {
        "properties": {COMMON: {"properties": {"saved_data": _enum(STATISTIC, FULL)}, "required": ["saved_data"]}}
    }
    categories = {"statistic_category": _list_of(_enum(*STATISTIC_CATEGORIES))}
    return {
        "$schema": _DIALECT,
        "title": "MindSpore Dump",
        "type": "object",
        "properties": sections,
        "required": [COMMON],
        # A section that an engine does not read is not checked.
        "allOf": [
            {"if": is_sync, "else": {"properties": {COMMON: {"properties": asynchronous}}}},
            {"if": has_statistics, "then": {"properties": {COMMON: {"properties": categories}}}},
        ],
    }


def acl_schema() -> Schema:
    """Of acl.json, and of the mapping that `acl.mdl.set_dump` takes."""
    dump = _section(DumpSection)
    definitions = dump.pop("$defs")
    for key, allowed in acl_rules.CHOICES.items():
        dump["properties"][key]["enum"] = list(allowed)
        if dump["properties"][key]["default"] not in allowed:
            del dump["properties"][key]["default"]
    words = "|".join(acl_rules.KERNEL_DATA)
    dump["properties"]["dump_kernel_data"]["pattern"] = f"^({words})(,({words}))*$"
    is_exception = {"properties": {"dump_scene": _enum(*acl_rules.EXCEPTION_SCENES)}, "required": ["dump_scene"]}
    has_path = {"properties": {"dump_path": {"minLength": 1}}, "required": ["dump_path"]}
    dump["anyOf"] = [{"maxProperties": 0}, is_exception, has_path]
    return {
        "$schema": _DIALECT,
        "title": "ACL dump",
        "type": "object",
        "properties": {DUMP: dump},
        "$defs": definitions,
    }


SCHEMAS = {"mindspore": mindspore_schema, "acl": acl_schema}


class _Generator(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        # A default that JSON has no word for is that of a key which is needed only sometimes.
        if kind != "non-serializable-default":
            super().emit_warning(kind, detail)


def _section(model: type[BaseModel]) -> Schema:
    made = model.model_json_schema(schema_generator=_Generator)
    schema: Schema = {"type": "object", "properties": {}}
    schema.update((key, made[key]) for key in ("required", "$defs") if key in made)
    for name, of_model in made["properties"].items():
        key = _KEYS[model][name]
        kept = of_model if key.form is None else {word: of_model[word] for word in ("default",) if word in of_model}
        plain = {word: value for word, value in kept.items() if word != "title"}
        schema["properties"][name] = {"description": key.text, **plain, **(key.form or {})}
    if model is not DumpSection:
        schema.pop("$defs", None)
    return schema

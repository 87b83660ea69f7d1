"""`config.json` of PrecisionDebugger, with the arguments of its constructor, as settings. What cannot be honoured is an
error that names its key, before the first step.

Source: mindstudio-probe 26.2, keys and their defaults.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from msdump.config.json_file import JsonFile, json_type, mapping_as_file, read_json_file, shown
from msdump.errors import ConfigError, did_you_mean, refused
from msdump.process import dry_run

log = logging.getLogger("msdump")
STATISTICS, TENSOR, STRUCTURE = "statistics", "tensor", "structure"
L0, L1, MIX, DEBUG = "L0", "L1", "mix", "debug"
MD5, XOR = "md5", "xor"

_TASKS = (STATISTICS, TENSOR, STRUCTURE)
_OTHER_TASKS = {
    "overflow_check": "msprobe 26.2 has no such task any more; `msdump nan` finds the first Inf and NaN of a dump",
    "nan_check": "it reads a register of an NPU; `msdump nan` finds the first Inf and NaN of a dump",
    "acc_check": "it prepares a run of msprobe's own accuracy checker",
    "diff_check": "it compares with a dump while the job runs; dump both runs and use `msdump compare`",
    "free_benchmark": "msprobe 26.2 has no such task any more",
    "grad_probe": "msprobe 26.2 has no such task any more",
    "exception_dump": "only MindSpore has it",
}
_LEVELS = (L0, L1, MIX, DEBUG)
_OTHER_LEVELS = {"L2": "it dumps the kernels of an NPU"}
_SUMMARY_MODES = (STATISTICS, MD5, XOR)
_RISK_LEVELS = ("CORE", "FOCUS", "ALL")
_DATA_MODES = ("all", "input", "output", "forward", "backward")
_LARGEST = 1_000_000
_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:-\s*(\d{1,7})\s*)?")
_DEFAULT_NAMESPACES = ["_C_ascend"]
# Of configurations for msprobe 1.x: msprobe 26.2 does not look at them.
_FORMER_KEYS = {"seed", "is_deterministic", "enable_dataloader", "acl_config", "run_ut"}
_FORMER_SECTION_KEYS = {"backward_input", "file_format"}
_COMMON_KEYS = {
    "task", "dump_path", "rank", "step", "level", "dump_enable", "extra_info", "async_dump", "precision", "risk_level",
    "custom_op_namespaces", "load",
}  # fmt: skip
_SECTION_KEYS = {
    "scope", "list", "data_mode", "slice", "request_id", "summary_mode", "diff_nums", "tensor_list", "bench_path",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slice:
    """Elements `begin` to `end` of an axis are looked at, in tensors that have `size` of them; None: any number."""

    axis: int = 0
    begin: int = 0
    end: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What one PrecisionDebugger dumps.

    steps, ranks    empty: all
    names           parts of names, one of which a record must have; empty: all
    scope           the first and the last record of a range; (): all
    stages, sides   of forward, backward; of input, output
    saved_names     task statistics: tensors of records whose names have one of these parts are saved
    is_precise      mean and norm, which round, are left out
    risk_level      which functions are dumped where neither `scope` nor `names` chooses
    """

    dump_path: str
    task: str = STATISTICS
    level: str = L1
    steps: frozenset[int] = frozenset()
    ranks: frozenset[int] = frozenset()
    scope: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    stages: frozenset[str] = frozenset({"forward", "backward"})
    sides: frozenset[str] = frozenset({"input", "output"})
    summary_mode: str = STATISTICS
    saved_names: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()
    is_precise: bool = False
    has_extra_info: bool = True
    risk_level: str = "FOCUS"
    is_enabled: bool | None = None

    @property
    def is_api_level(self) -> bool:
        return self.level in (L1, MIX)

    @property
    def is_module_level(self) -> bool:
        return self.level in (L0, MIX)

    @property
    def saves_tensors(self) -> bool:
        return self.task == TENSOR or bool(self.saved_names)

    def takes(self, stage: str, side: str) -> bool:
        return stage in self.stages and side in self.sides


def read_settings(
    config_path: str | None = None,
    task: str | None = None,
    dump_path: str | None = None,
    level: str | None = None,
    step: Sequence[int | str] | None = None,
) -> Settings:
    """Settings of a file and of arguments, which count more.

    Edges:   without a file, msprobe's defaults: statistics of level L1 in ./dump_path
    Raises:  ConfigError naming the key and its value.
    """
    for name, value in (("config_path", config_path), ("dump_path", dump_path)):
        if value is not None and not isinstance(value, str):
            _refuse(f"PrecisionDebugger, {name}", "a text", value)
    if config_path:
        file = read_json_file(config_path)
    else:
        file = mapping_as_file({"dump_path": "./dump_path"}, "PrecisionDebugger")
    if not isinstance(file.value, dict):
        _refuse(str(file.path), "an object", file.value)
    return _settings(_Keys(file, ""), {"task": task, "level": level, "dump_path": dump_path, "step": step})


def settings_of(config: Mapping[str, object], where: str) -> Settings:
    """Settings of the content of a config.json.   where: for messages

    Raises: ConfigError naming the key and its value.
    """
    return _settings(_Keys(mapping_as_file(config, where), ""), dict.fromkeys(("task", "level", "dump_path", "step")))


class _Keys:
    """The keys of one object of the file.   prefix: path of the object in front of each key"""

    def __init__(self, file: JsonFile, prefix: str, content: Mapping[str, Any] | None = None) -> None:
        self._file = file
        self._prefix = prefix
        self._content = file.value if content is None else content

    def where(self, key: str) -> str:
        return f"{self._file.path}, {self._prefix}{key}"

    def has(self, key: str) -> bool:
        return key in self._content

    def get(self, key: str, default: Any = None) -> Any:
        value = self._content.get(key)
        return default if value is None else value

    def choice(self, key: str, default: str, choices: Sequence[str], others: Mapping[str, str] | None = None) -> str:
        """One of some words; `others` says of further ones why they are not supported."""
        value = self.get(key) or default
        return checked_choice(self.where(key), value, choices, others or {})

    def truth(self, key: str, default: bool | None) -> bool | None:
        value = self.get(key, default)
        if value is not None and not isinstance(value, bool):
            _refuse(self.where(key), "true or false", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            _refuse(self.where(key), "a list of texts", value)
        return tuple(value)

    def section(self, name: str) -> _Keys:
        value = self.get(name, {})
        if not isinstance(value, dict):
            _refuse(self.where(name), "an object", value)
        return _Keys(self._file, f"{name}.", value)

    def refuse(self, key: str, reason: str) -> None:
        """The key may not be there, or hold nothing."""
        if self._content.get(key):
            _refuse_unsupported(self.where(key), self._content[key], reason)

    def refuse_unknown(self, known: set[str], former: set[str]) -> None:
        """Keys that msprobe does not have are errors, those that it had once are warnings."""
        for key in self._content:
            if key in former - known:
                log.warning(
                    "%s: a key of msprobe 1.x, which has no effect any more, as in msprobe 26.2.", self.where(key)
                )
            elif key not in known:
                advice = did_you_mean(key, sorted(known))
                raise ConfigError(
                    f"{self.where(key)}: expected a key of msprobe's configuration, got {key!r}. {advice}"
                )


def checked_choice(where: str, value: object, choices: Sequence[str], others: Mapping[str, str]) -> str:
    if isinstance(value, str) and value in others:
        _refuse_unsupported(where, value, others[value])
    if not isinstance(value, str) or value not in choices:
        _refuse(where, f"one of {', '.join(choices)}", value)
    return value


def _settings(keys: _Keys, arguments: Mapping[str, object]) -> Settings:
    keys.refuse_unknown(_COMMON_KEYS | {*_TASKS, *_OTHER_TASKS}, _FORMER_KEYS)
    if arguments["task"] is None:
        task = keys.choice("task", STATISTICS, _TASKS, _OTHER_TASKS)
    else:
        task = checked_choice("PrecisionDebugger, task", arguments["task"], _TASKS, _OTHER_TASKS)
    if arguments["level"] is None:
        level = keys.choice("level", L1, _LEVELS, _OTHER_LEVELS)
    else:
        level = checked_choice("PrecisionDebugger, level", arguments["level"], _LEVELS, _OTHER_LEVELS)
    if task == STRUCTURE and level not in (L0, MIX):
        level = MIX  # Source: msprobe
    path = arguments["dump_path"] or keys.get("dump_path")
    if not isinstance(path, str) or not path:
        _refuse(keys.where("dump_path"), "a folder", path)
    keys.refuse("load", "inputs of modules are not replaced by those of a dump")
    namespaces = keys.get("custom_op_namespaces", _DEFAULT_NAMESPACES)
    if namespaces and namespaces != _DEFAULT_NAMESPACES:
        _refuse_unsupported(
            keys.where("custom_op_namespaces"), namespaces, "name each function: PrecisionDebugger.register_custom_api"
        )
    given_step = arguments["step"]
    section = keys.section(task)
    section.refuse_unknown(_SECTION_KEYS, _FORMER_SECTION_KEYS)
    section.refuse("request_id", "the slice of a request needs the scheduler of a serving engine; give `slice`")
    section.refuse("bench_path", "no dump is compared while the job runs; use `msdump compare`")
    stages, sides = _data_mode(section)
    summary_mode = section.choice("summary_mode", STATISTICS, _SUMMARY_MODES)
    is_async = keys.truth("async_dump", False)
    if is_async and summary_mode == MD5:
        _refuse_unsupported(section.where("summary_mode"), summary_mode, "async_dump is true, as in msprobe")
    if is_async and task == TENSOR and level != DEBUG and not section.texts("list"):
        _refuse(section.where("list"), "names of what is dumped, as async_dump is true", [])
    if given_step is None:
        steps = numbers(keys.where("step"), keys.get("step"))
    else:
        steps = numbers("PrecisionDebugger, step", given_step)
    return Settings(
        dump_path=path if dry_run.folder is None else str(dry_run.folder),
        task=task,
        level=level,
        steps=steps if dry_run.folder is None else frozenset(),
        ranks=numbers(keys.where("rank"), keys.get("rank")),
        scope=section.texts("scope"),
        names=section.texts("list"),
        stages=stages,
        sides=sides,
        summary_mode=summary_mode,
        saved_names=section.texts("tensor_list") if task == STATISTICS and level != DEBUG else (),
        slices=_slices(section),
        is_precise=keys.choice("precision", "low", ("low", "high")) == "high",
        has_extra_info=bool(keys.truth("extra_info", True)),
        # Without the key msprobe leaves out what only moves data; with null it does not.
        risk_level=keys.choice("risk_level", "ALL" if keys.has("risk_level") else "FOCUS", _RISK_LEVELS),
        is_enabled=keys.truth("dump_enable", None),
    )


def _data_mode(section: _Keys) -> tuple[frozenset[str], frozenset[str]]:
    where, modes = section.where("data_mode"), section.texts("data_mode") or ("all",)
    for mode in modes:
        checked_choice(where, mode, _DATA_MODES, {})
    if "all" in modes:
        if len(modes) > 1:
            _refuse(where, '"all" alone, or some of the others', list(modes))
        return frozenset({"forward", "backward"}), frozenset({"input", "output"})
    stages = frozenset(modes) & {"forward", "backward"} or frozenset({"forward", "backward"})
    sides = frozenset(modes) & {"input", "output"} or frozenset({"input", "output"})
    return stages, sides


def _slices(section: _Keys) -> tuple[Slice, ...]:
    where, given = section.where("slice"), section.get("slice", [])
    if not isinstance(given, list):
        _refuse(where, "a list of objects", given)
    slices = []
    for entry in given:
        is_sound = isinstance(entry, dict) and all(type(value) is int for value in entry.values())
        if not is_sound or not set(entry) <= {"dim", "size", "begin", "end"}:
            _refuse(where, "objects with whole numbers as dim, size, begin and end", entry)
        slices.append(Slice(entry.get("dim", 0), entry.get("begin", 0), entry.get("end"), entry.get("size")))
        if slices[-1].axis < 0 or (slices[-1].size or 0) < 0:
            _refuse(where, "dim and size from 0 on", entry)
    return tuple(slices)


def numbers(where: str, given: object) -> frozenset[int]:
    """Steps or ranks of a list such as `[0, "3-5"]`; empty for None.   Raises: ConfigError."""
    if given is None:
        return frozenset()
    if not isinstance(given, list):
        _refuse(where, 'a list such as [0, "3-5"]', given)
    chosen: set[int] = set()
    for entry in given:
        match = _RANGE.fullmatch(entry) if isinstance(entry, str) else None
        if type(entry) is int:
            first = last = entry
        elif match:
            first, last = int(match[1]), int(match[2] or match[1])
        else:
            _refuse(where, 'numbers, and ranges such as "3-5"', entry)
        if not 0 <= first <= last <= _LARGEST:
            _refuse(where, f"numbers from 0 to {_LARGEST}, in rising order", entry)
        chosen.update(range(first, last + 1))
    return frozenset(chosen)


def _refuse(where: str, expected: str, value: object) -> NoReturn:
    raise ConfigError(refused("", where, expected, f"{_text(value)} ({_type_of(value)})", "Correct it."))


def _refuse_unsupported(where: str, value: object, reason: str) -> NoReturn:
    raise ConfigError(f"{where}: {_text(value)} is not supported: {reason}.")


def _text(value: object) -> str:
    try:
        return shown(value)
    except (TypeError, ValueError):
        return repr(value)[:80]


def _type_of(value: object) -> str:
    known = value is None or isinstance(value, (bool, str, int, float, dict, list))
    return json_type(value) if known else type(value).__name__

"""The MindSpore Dump JSON as a whole: file -> sections -> one configuration that holds, or the first error."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from msdump.config.fields import missing_key, unknown_keys, validate_section
from msdump.config.json_file import JsonFile, read_json_file
from msdump.config.sections import (
    ASCEND,
    ASYNC,
    COMMON,
    CPU,
    DUMP_ALL,
    DUMP_LISTED,
    E2E,
    GPU,
    OVERFLOW_ALL,
    SYNC,
    CommonDumpSettings,
    Context,
    E2eDumpSettings,
    Profile,
)
from msdump.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class MindSporeConfig:
    """One configuration that holds.

    engine    "sync" or "async"
    e2e       None when the section is absent
    warnings  what is odd but no error, one sentence each, for the log
    """

    engine: str
    common: CommonDumpSettings
    e2e: E2eDumpSettings | None
    file: JsonFile
    warnings: tuple[str, ...] = ()


def load_mindspore_config(path: str | os.PathLike[str], profile: Profile | None = None) -> MindSporeConfig:
    """Read and check a MindSpore Dump configuration file.   Raises: ConfigError."""
    return parse_mindspore_config(read_json_file(path), profile)


def parse_mindspore_config(file: JsonFile, profile: Profile | None = None) -> MindSporeConfig:
    """Check what a file holds; profile None means: CPU, not strict.

    Raises: ConfigError: first the sync section, then missing common keys, then wrong values.
    """
    profile = profile or Profile()
    content = file.value if isinstance(file.value, dict) else {}
    try:
        e2e = validate_section(E2eDumpSettings, content[E2E], Context(profile)) if E2E in content else None
        if COMMON not in content:
            raise ConfigError(f"{missing_key(COMMON, 'top level', file.value)}{_acl_advice(file)}")
        engine = _engine(e2e, profile)
        common = validate_section(CommonDumpSettings, content[COMMON], Context(profile, engine))
    except ConfigError as error:
        raise ConfigError(f"{error}\nConfiguration file: {file.path}") from error.__cause__
    return MindSporeConfig(engine, common, e2e, file, _warnings(file, common, e2e, engine, profile))


def _acl_advice(file: JsonFile) -> str:
    """What to do with an acl.json, which is ACL's own and not what MindSpore dumps through ACL with; "" for others."""
    from msdump.config.acl import parse_acl_config
    from msdump.config.acl_error import AclConfigError
    from msdump.config.acl_sections import DUMP

    if not isinstance(file.value, dict) or DUMP not in file.value:
        return ""
    advice = "\nIt is an acl.json: give it to `msdump acl run MODEL --dump FILE` or acl.mdl.set_dump. MindSpore writes"
    advice += " such files itself, from the one that both MINDSPORE_DUMP_CONFIG and MS_ACL_DUMP_CFG_PATH name."
    try:
        parse_acl_config(file)
    except AclConfigError as error:
        return f"{advice} ACL refuses it too: {str(error).splitlines()[0]}"
    return advice


def _engine(e2e: E2eDumpSettings | None, profile: Profile) -> str:
    """Who dumps. The original knows async on Ascend only; elsewhere it is silently sync."""
    if profile.device_target == GPU or (e2e is not None and e2e.enable):
        return SYNC
    return SYNC if profile.is_strict and profile.device_target == CPU else ASYNC


def _warnings(
    file: JsonFile, common: CommonDumpSettings, e2e: E2eDumpSettings | None, engine: str, profile: Profile
) -> tuple[str, ...]:
    """Source: MindSpore's own warnings, word for word where it has them."""
    found = [f"{file.path}: key {key} comes twice in one object; the last one counts." for key in file.duplicate_keys]
    found += [
        f"{key}: unknown section, ignored. {did_you_mean(key, (COMMON, E2E))}".rstrip()
        for key in file.value
        if key not in (COMMON, E2E)
    ]
    found += unknown_keys(E2eDumpSettings, file.value.get(E2E)) + unknown_keys(CommonDumpSettings, file.value[COMMON])
    if common.dump_mode == DUMP_LISTED:
        found += [f"Duplicate dump kernel name:{text}" for text in _repeated(common.kernels)]
        if not common.kernels:
            found.append(f"{COMMON}.kernels: the list is empty and dump_mode is 1, so no operator will be dumped.")
    found += [f"Duplicate support device:{device}" for device in _repeated(common.support_device)]
    if engine == SYNC and e2e is not None and profile.is_strict and profile.device_target == ASCEND:
        found.append("Deprecated: Synchronous dump mode is deprecated and will be removed in a future release")
    return tuple(found + _overflow_warnings(common, engine))


def _overflow_warnings(common: CommonDumpSettings, engine: str) -> list[str]:
    if not common.op_debug_mode:
        return []
    if engine == SYNC:
        return [f"{COMMON}.op_debug_mode: not read in sync dump; set {E2E}.enable to false to use it."]
    found = []
    if common.dump_mode != DUMP_ALL:
        found.append("Overflow dump or exception dump do not support specify kernels, the dump_mode is set to 0")
    if common.op_debug_mode == OVERFLOW_ALL and common.input_output != 0:
        found.append("When the `op_debug` mode is set to 3, `input_output` should be set to 0.")
    return found


def _repeated(items: tuple[Any, ...]) -> list[Any]:
    """Each item that came before, as often as it comes again."""
    earlier: set[Any] = set()
    return [item for item in items if item in earlier or earlier.add(item)]  # type: ignore[func-returns-value]

"""The MindSpore Dump JSON as a whole: file -> sections -> one configuration that holds, or the first error -> Plan."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.config.acl import parse_acl_config
from msdump.config.acl_file import AclConfigError
from msdump.config.acl_rules import DUMP
from msdump.config.environment import Environment
from msdump.config.environment import sampling as environment_sampling
from msdump.config.json_file import JsonFile, read_json_file
from msdump.config.plan import (
    ASCEND,
    ASYNC,
    CPU,
    EXCEPTION_MODE,
    GPU,
    OPERANDS,
    OVERFLOW_ALL,
    SYNC,
    How,
    OperandSelection,
    Plan,
    RecorderPlan,
    Saved,
    Trigger,
    When,
    Where,
)
from msdump.config.recorder import RECORDER, RecorderSettings
from msdump.config.sampling import Sampler, Sampling
from msdump.config.sections import (
    COMMON,
    DUMP_ALL,
    DUMP_LISTED,
    DUMP_MARKED,
    E2E,
    FULL,
    STATISTIC,
    TENSOR,
    CommonDumpSettings,
    E2eDumpSettings,
    Profile,
    SectionContext,
    missing_key,
    unknown_keys,
    validate_section,
)
from msdump.config.selection import OperatorList, Which
from msdump.config.selectors import parse_selectors
from msdump.errors import ConfigError, did_you_mean

DEVICE_TARGETS = (CPU, GPU, ASCEND)
SECTIONS = (COMMON, E2E, RECORDER)

_logger = logging.getLogger("msdump")


@dataclass(frozen=True)
class MindSporeConfig:
    """A valid configuration.

    engine    "sync" or "async"
    e2e       None when the section is absent
    recorder  None without a section of it, or when that is switched off
    warnings  what is odd but no error, one sentence each, for the log
    """

    engine: str
    common: CommonDumpSettings
    e2e: E2eDumpSettings | None
    file: JsonFile
    warnings: tuple[str, ...] = ()
    recorder: RecorderPlan | None = None


def parse_mindspore_config(file: JsonFile, profile: Profile | None = None) -> MindSporeConfig:
    """Check what a file holds; profile None means: CPU, not strict.

    Raises: ConfigError: first the sync section, then missing common keys, then wrong values.
    """
    profile = profile or Profile()
    content = file.value if isinstance(file.value, dict) else {}
    try:
        e2e = validate_section(E2eDumpSettings, content[E2E], SectionContext(profile)) if E2E in content else None
        if COMMON not in content:
            raise ConfigError(f"{missing_key(COMMON, 'top level', file.value)}{_acl_advice(file)}")
        engine = _engine(e2e, profile)
        common = validate_section(CommonDumpSettings, content[COMMON], SectionContext(profile, engine))
        recorder = _recorder(content, common, profile, engine)
    except ConfigError as error:
        raise ConfigError(f"{error}\nConfiguration file: {file.path}") from error.__cause__
    return MindSporeConfig(engine, common, e2e, file, _warnings(file, common, e2e, engine, profile), recorder)


def check_mindspore_config(environment: Environment) -> MindSporeConfig | None:
    """Refuse a file that no device takes, before a program runs that may read it late or never.

    Returns: what the file says, as the first device takes it; None where no file is named
    Raises:  ConfigError, that of a CPU.
    """
    if environment.dump_config_path is None:
        return None
    file = read_json_file(environment.dump_config_path)
    errors = []
    for target in DEVICE_TARGETS:
        profile = Profile(target, environment.is_strict, environment.is_acl_dump, environment.diagnostic_path)
        try:
            return parse_mindspore_config(file, profile)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def _recorder(
    content: dict[str, Any], common: CommonDumpSettings, profile: Profile, engine: str
) -> RecorderPlan | None:
    """Source: none, the section is msdump's own; MindSpore ignores it with a warning."""
    if RECORDER not in content:
        return None
    recorder = validate_section(RecorderSettings, content[RECORDER], None).plan()
    if recorder is not None and profile.is_acl_dump:
        raise ConfigError(
            f"{RECORDER}: expected a dump that does not go through ACL, got one. Unset MS_ACL_DUMP_CFG_PATH, or set "
            f"{RECORDER}.enable to false."
        )
    is_read = common.op_debug_mode and (engine == ASYNC or common.op_debug_mode == EXCEPTION_MODE)
    if recorder is not None and is_read:
        raise ConfigError(
            f"{COMMON}.op_debug_mode: expected 0 beside {RECORDER}, got {common.op_debug_mode}. The recorder looks for "
            "overflows and exceptions itself: take the key out."
        )
    return recorder


def _acl_advice(file: JsonFile) -> str:
    """What to do with an acl.json, which is ACL's own and not what MindSpore dumps through ACL with; "" for others."""
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
    """SYNC or ASYNC. MindSpore has ASYNC on Ascend only; elsewhere it silently takes SYNC."""
    if profile.device_target == GPU or (e2e is not None and e2e.enable):
        return SYNC
    return SYNC if profile.is_strict and profile.device_target == CPU else ASYNC


def _warnings(
    file: JsonFile, common: CommonDumpSettings, e2e: E2eDumpSettings | None, engine: str, profile: Profile
) -> tuple[str, ...]:
    """Source: MindSpore's own warnings, word for word where it has them."""
    texts = [f"{file.path}: key {key} comes twice in one object; the last one counts." for key in file.duplicate_keys]
    texts += [
        f"{key}: unknown section, ignored. {did_you_mean(key, SECTIONS)}".rstrip()
        for key in file.value
        if key not in SECTIONS
    ]
    texts += unknown_keys(RecorderSettings, file.value.get(RECORDER))
    texts += unknown_keys(E2eDumpSettings, file.value.get(E2E))
    texts += unknown_keys(CommonDumpSettings, file.value[COMMON])
    if common.dump_mode == DUMP_LISTED:
        texts += [f"Duplicate dump kernel name:{text}" for text in repeated(common.kernels)]
        if not common.kernels:
            texts.append(f"{COMMON}.kernels: the list is empty and dump_mode is 1, so no operator will be dumped.")
    texts += [f"Duplicate support device:{device}" for device in repeated(common.support_device)]
    if engine == SYNC and e2e is not None and profile.is_strict and profile.device_target == ASCEND:
        texts.append("Deprecated: Synchronous dump mode is deprecated and will be removed in a future release")
    return tuple(texts + _overflow_warnings(common, engine))


def _overflow_warnings(common: CommonDumpSettings, engine: str) -> list[str]:
    if not common.op_debug_mode:
        return []
    if engine == SYNC and common.op_debug_mode != EXCEPTION_MODE:
        return [f"{COMMON}.op_debug_mode: not read in sync dump but for 4; set {E2E}.enable to false to use it."]
    texts = []
    if common.dump_mode != DUMP_ALL:
        texts.append("Overflow dump or exception dump do not support specify kernels, the dump_mode is set to 0")
    if common.op_debug_mode == OVERFLOW_ALL and common.input_output != 0:
        texts.append("When the `op_debug` mode is set to 3, `input_output` should be set to 0.")
    return texts


def repeated(items: tuple[Any, ...]) -> list[Any]:
    """Each item that came before, as often as it comes again."""
    earlier: set[Any] = set()
    return [item for item in items if item in earlier or earlier.add(item)]  # type: ignore[func-returns-value]


def plan_mindspore(
    environment: Environment,
    device_target: str,
    device_id: int | None = None,
    is_pynative: bool = False,
    jit_level: str = "",
    file: JsonFile | None = None,
) -> Plan | None:
    """The plan of environment and configuration file; None when Dump is off.

    What is odd but no error goes to the log, once per call.
    file    the configuration, where it was read already
    Edges:  device_id None: DEVICE_ID, else 0. Strict knows rank 0 only, as MindSpore does without
            communication.
    Raises: ConfigError.
    """
    if environment.dump_config_path is None:
        return None
    if device_target not in DEVICE_TARGETS:
        raise ConfigError(
            f'device_target: expected "CPU", "GPU" or "Ascend", got "{device_target}". '
            f"{did_you_mean(device_target, DEVICE_TARGETS)}".rstrip()
        )
    profile = Profile(device_target, environment.is_strict, environment.is_acl_dump, environment.diagnostic_path)
    config = parse_mindspore_config(file or read_json_file(environment.dump_config_path), profile)
    if is_pynative and environment.is_strict and device_target != ASCEND:
        raise ConfigError(
            "In GPU or CPU, Dump is disabled in PyNative mode. Please set mode to GRAPH_MODE in context.\n"
            "mode: expected GRAPH_MODE, got PYNATIVE_MODE. Call set_context(mode=GRAPH_MODE), or unset MSDUMP_STRICT."
        )
    common = config.common
    trigger = _trigger(config.engine, common.op_debug_mode, common.overflow_number)
    device_id = environment.device_id or 0 if device_id is None else device_id
    rank_id = 0 if environment.is_strict else environment.rank_id or 0
    plan = Plan(
        when=When(
            iterations=common.iteration,
            initial_iteration=common.initial_iteration,
            is_device_enabled=device_target == CPU or device_id in common.support_device,
            sampler=_sampler(common),
        ),
        which=_which(DUMP_ALL if trigger.op_debug_mode else common.dump_mode, common.kernels),
        operands=OperandSelection(inputs=common.input_output in (0, 1), outputs=common.input_output in (0, 2)),
        saved=_saved(config, device_target),
        trigger=trigger,
        where=Where(
            Path(common.path),
            net_name=common.net_name,
            device_id=device_id,
            rank_id=rank_id,
            budget_bytes=common.disk_budget,
        ),
        how=How(config.engine, device_target, jit_level, environment.is_acl_dump, container=common.container),
        source=config.file,
        recorder=config.recorder,
    )
    if is_pynative and trigger.overflow and not plan.when.is_every:
        raise ConfigError(
            f'{COMMON}.iteration: expected "all" for overflow detection (op_debug_mode {trigger.overflow}) in '
            f'PYNATIVE_MODE, got "{common.iteration}". Set it to "all".\n'
            f"Configuration file: {config.file.path}"
        )
    for text in config.warnings:
        _logger.warning(text)
    if not plan.when.is_device_enabled:
        _logger.warning(f"Dump is not enabled. device_id:{device_id} not support")
    return plan


def _sampler(common: CommonDumpSettings) -> Sampler | None:
    sampling = common.sampling or environment_sampling()
    return None if sampling is None or sampling == Sampling() else Sampler(sampling, common.initial_iteration)


def _trigger(engine: str, op_debug_mode: int, overflow_number: int) -> Trigger:
    """Source: the guide leaves open what mode 4 does beside the synchronous section; from 2.4 on it is read there."""
    if op_debug_mode == EXCEPTION_MODE:
        return Trigger(exception=OPERANDS)
    return Trigger() if engine == SYNC else Trigger(overflow=op_debug_mode, overflow_number=overflow_number)


def _which(dump_mode: int, kernels: Sequence[str]) -> Which:
    if dump_mode == DUMP_ALL:
        return Which()
    if dump_mode == DUMP_MARKED:
        return Which(lists=(), takes_marked=True)
    return Which(lists=(OperatorList(selectors=parse_selectors(kernels)),))


def _saved(config: MindSporeConfig, device_target: str) -> Saved:
    common = config.common
    return Saved(
        tensors=common.saved_data in (TENSOR, FULL),
        statistics=common.saved_data in (STATISTIC, FULL),
        columns=common.statistic_category,
        file_format=common.file_format,
        # Only Ascend has other layouts than the host's.
        is_host_layout=config.e2e.trans_flag if config.e2e is not None else device_target != ASCEND,
    )

"""DumpPlan: what the user asked for, as pure data that says of every operator and iteration whether it is dumped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from msdump.config.environment import Environment
from msdump.config.mindspore import MindSporeConfig, load_mindspore_config
from msdump.config.ranges import EVERY_NUMBER, NumberRanges
from msdump.config.sections import (
    ASCEND,
    COMMON,
    CPU,
    DUMP_ALL,
    DUMP_LISTED,
    DUMP_MARKED,
    FULL,
    GPU,
    STATISTIC,
    SYNC,
    TENSOR,
    Profile,
)
from msdump.config.selectors import FullNameSelector, Selector, advice, parse_selectors
from msdump.errors import ConfigError, did_you_mean

DUMP_INPUT, DUMP_OUTPUT = 1, 2
OVERFLOW_MODES, EXCEPTION_MODE = (1, 2, 3), 4
DEVICE_TARGETS = (CPU, GPU, ASCEND)

_logger = logging.getLogger("msdump")


@dataclass(frozen=True)
class DumpPlan:
    """One configuration, ready to be asked.

    engine                "sync" or "async"
    iterations            numbers as in folder names; the first step of a run has `initial_iteration`
    selectors             None = every operator; () = none of its own, as in dump_mode 2
    file_format           "npy" or "bin"
    op_debug_mode         0 = ordinary dump; always 0 in sync
    overflow_number       0 = no limit
    statistic_categories  None = the columns of the guide
    is_device_enabled     False: this device is not in `support_device`, so Dump is off
    config_text           the user's file, byte for byte
    jit_level             "" unless the script chose one; "O0" decides on the folders of a dump through ACL
    has_graph_files       asynchronous: graph files lie beside the tensors; MindSpore's dump has none there
    is_acl_dump           both variables name the same file
    """

    engine: str
    path: Path
    net_name: str
    iterations: NumberRanges
    saves_tensor: bool
    saves_statistic: bool
    dumps_input: bool
    dumps_output: bool
    selectors: tuple[Selector, ...] | None
    dump_mode: int
    trans_flag: bool
    file_format: str
    op_debug_mode: int
    overflow_number: int
    statistic_categories: tuple[str, ...] | None
    device_target: str
    device_id: int
    rank_id: int
    is_device_enabled: bool
    config_text: bytes
    config_path: Path
    is_strict: bool
    initial_iteration: int = 0
    jit_level: str = ""
    is_acl_dump: bool = False
    has_graph_files: bool = False

    @property
    def measures_only(self) -> bool:
        """True when nothing of a tensor is asked for but numbers that can be computed where it lies."""
        # None stands for the columns of the guide, MD5 among them.
        has_digest = self.statistic_categories is None or "md5" in self.statistic_categories
        is_plain = not self.saves_tensor and self.file_format != "bin" and not self.op_debug_mode
        return self.saves_statistic and is_plain and not has_digest

    @property
    def dumps_parameters(self) -> bool:
        """Parameters and constants count as outputs.   Source: MindSpore, `input_output`."""
        return self.dumps_output

    def is_dumped_iteration(self, iteration: int) -> bool:
        return self.is_device_enabled and iteration in self.iterations

    def watches(self, iteration: int) -> bool:
        """True when something of this iteration may be dumped: the step of an exception is not known before."""
        return self.is_dumped_iteration(iteration) or (self.is_device_enabled and self.op_debug_mode == EXCEPTION_MODE)

    def selects(self, full_name: str) -> bool:
        """True when the operator or parameter of that name is asked for."""
        if self.selectors is None:
            return True
        return full_name in self._selected_names or any(rule.matches(full_name) for rule in self._rules)

    @cached_property
    def _selected_names(self) -> frozenset[str]:
        return frozenset(item.text for item in self.selectors or () if isinstance(item, FullNameSelector))

    @cached_property
    def _rules(self) -> tuple[Selector, ...]:
        return tuple(item for item in self.selectors or () if not isinstance(item, FullNameSelector))


def plan_mindspore(
    environment: Environment,
    device_target: str,
    device_id: int | None = None,
    is_pynative: bool = False,
    jit_level: str = "",
) -> DumpPlan | None:
    """The plan that environment and configuration file ask for; None when Dump is off.

    What is odd but no error goes to the log, once per call.
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
    config = load_mindspore_config(environment.dump_config_path, profile)
    if is_pynative and environment.is_strict and device_target != ASCEND:
        raise ConfigError(
            "In GPU or CPU, Dump is disabled in PyNative mode. Please set mode to GRAPH_MODE in context.\n"
            "mode: expected GRAPH_MODE, got PYNATIVE_MODE. Call set_context(mode=GRAPH_MODE), or unset MSDUMP_STRICT."
        )
    if device_id is None:
        device_id = environment.device_id or 0
    rank_id = 0 if environment.is_strict else environment.rank_id or 0
    plan = replace(
        _plan(config, environment.is_strict, device_target, device_id, rank_id),
        jit_level=jit_level,
        is_acl_dump=environment.is_acl_dump,
    )
    if is_pynative and plan.op_debug_mode in OVERFLOW_MODES and plan.iterations != EVERY_NUMBER:
        raise ConfigError(
            f'{COMMON}.iteration: expected "all" for overflow detection (op_debug_mode {plan.op_debug_mode}) in '
            f'PYNATIVE_MODE, got "{plan.iterations}". Set it to "all".\n'
            f"Configuration file: {config.file.path}"
        )
    for text in (*config.warnings, *_limits(plan)):
        _logger.warning(text)
    return plan


def _plan(config: MindSporeConfig, is_strict: bool, device_target: str, device_id: int, rank_id: int) -> DumpPlan:
    common, is_sync = config.common, config.engine == SYNC
    op_debug_mode = 0 if is_sync else common.op_debug_mode
    dump_mode = DUMP_ALL if op_debug_mode else common.dump_mode
    return DumpPlan(
        engine=config.engine,
        path=Path(common.path),
        net_name=common.net_name,
        iterations=common.iteration,
        saves_tensor=common.saved_data in (TENSOR, FULL),
        saves_statistic=common.saved_data in (STATISTIC, FULL),
        dumps_input=common.input_output in (0, 1),
        dumps_output=common.input_output in (0, 2),
        selectors=_selectors(dump_mode, common.kernels),
        dump_mode=dump_mode,
        # Only Ascend has other layouts than the host's.
        trans_flag=config.e2e.trans_flag if config.e2e is not None else device_target != ASCEND,
        file_format=common.file_format,
        op_debug_mode=op_debug_mode,
        overflow_number=common.overflow_number,
        statistic_categories=common.statistic_category,
        device_target=device_target,
        device_id=device_id,
        rank_id=rank_id,
        is_device_enabled=device_target == CPU or device_id in common.support_device,
        config_text=config.file.text,
        config_path=config.file.path,
        is_strict=is_strict,
        initial_iteration=common.initial_iteration,
    )


def _selectors(dump_mode: int, texts: Sequence[str]) -> tuple[Selector, ...] | None:
    if dump_mode == DUMP_ALL:
        return None
    return parse_selectors(texts) if dump_mode == DUMP_LISTED else ()


def _limits(plan: DumpPlan) -> list[str]:
    """What this run will not dump although the configuration is right."""
    found = []
    if not plan.is_device_enabled:
        found.append(f"Dump is not enabled. device_id:{plan.device_id} not support")
    return found


def node_masks(plan: DumpPlan, full_names: Sequence[str], marks: Sequence[bool] | None = None) -> list[int]:
    """One mask per operator: 0, DUMP_INPUT, DUMP_OUTPUT or both.

    marks   for dump_mode 2: whether the script marked the operator; None = it marked none
    """
    if plan.dump_mode == DUMP_MARKED:
        wanted = list(marks) if marks is not None else [False] * len(full_names)
    else:
        wanted = [plan.selects(full_name) for full_name in full_names]
    selected = DUMP_INPUT * plan.dumps_input | DUMP_OUTPUT * plan.dumps_output
    return [selected if is_wanted and plan.is_device_enabled else 0 for is_wanted in wanted]


def unmatched_selectors(plan: DumpPlan, full_names: Iterable[str]) -> dict[str, str]:
    """Texts of `kernels` that match none of the names -> what to write instead, or "".

    full_names: of every operator and parameter that was met, in all graphs.
    """
    names = list(dict.fromkeys(full_names))
    known = set(names)
    advice_by_text: dict[str, str] = {}
    for selector in plan.selectors or ():
        if isinstance(selector, FullNameSelector):
            is_met = selector.text in known
        else:
            is_met = any(selector.matches(name) for name in names)
        if not is_met:
            advice_by_text[selector.text] = advice(selector, names)
    return advice_by_text

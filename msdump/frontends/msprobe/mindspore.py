"""`msprobe.mindspore`: PrecisionDebugger for cells of MindSpore in PYNATIVE_MODE, at level L0."""

from __future__ import annotations

from typing import ClassVar

from msdump.errors import ConfigError
from msdump.frontends.msprobe import debugger
from msdump.frontends.msprobe.cell_calls import CellCalls, is_cell
from msdump.frontends.msprobe.config import L0, Settings
from msdump.frontends.msprobe.probe import Probe
from msdump.frontends.msprobe.recorder import MINDSPORE

__all__ = ["PrecisionDebugger"]


class PrecisionDebugger(debugger.PrecisionDebugger):
    """That of msprobe.pytorch, with networks in place of modules.

    Raises: ConfigError, also for levels other than L0.
    """

    _instance: ClassVar[debugger.PrecisionDebugger | None] = None

    @staticmethod
    def _probe_of(settings: Settings) -> Probe:
        if settings.level != L0:
            raise ConfigError(
                f'PrecisionDebugger, level: expected "{L0}" in a script of MindSpore, got "{settings.level}". Give '
                f'level="{L0}"; `msdump run --config data_dump.json SCRIPT` dumps each operator.'
            )
        return Probe(settings, MINDSPORE, CellCalls)

    @staticmethod
    def _is_model(value: object) -> bool:
        return is_cell(value)


PrecisionDebugger.__signature__ = debugger.PrecisionDebugger.__signature__  # type: ignore[attr-defined]

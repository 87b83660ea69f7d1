"""`debugger.config` and `debugger.service`: what integrations of msprobe read and assign between two stages of a job.

Source: mindstudio-probe 26.2, the names and forms of these attributes.
"""

from __future__ import annotations

from pathlib import Path

from msdump.errors import did_you_mean
from msdump.frontends.msprobe.config import Settings, settings_of
from msdump.frontends.msprobe.probe import Probe

# One of the attributes is called `list`.
_Numbers = list[int | str]
_Texts = list[str]
_Slices = list[dict[str, int]]


class DebuggerConfig:
    """The settings as attributes, in the form of config.json.

    Assigned or changed in place, they hold from the next `start`, `save` or `step` on, which raises ConfigError for
    what cannot be honoured.
    """

    task: str
    dump_path: str | Path
    level: str
    step: _Numbers
    rank: _Numbers
    scope: _Texts
    list: _Texts
    data_mode: _Texts
    summary_mode: str
    tensor_list: _Texts
    slice_info: _Slices
    dump_enable: bool | None
    extra_info: bool
    async_dump: bool
    precision: str
    risk_level: str
    framework: str
    request_id: object
    bench_path: object

    __slots__ = tuple(__annotations__)

    def __init__(self, settings: Settings) -> None:
        self.framework = "pytorch"
        self.async_dump = False
        self.request_id = self.bench_path = None
        self.show(settings)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self.__slots__:
            raise AttributeError(
                f"PrecisionDebugger.config: expected a setting of msprobe, got {name!r}. "
                f"{did_you_mean(name, self.__slots__)}".rstrip()
            )
        super().__setattr__(name, value)

    def show(self, settings: Settings) -> None:
        """Be these settings."""
        self.task, self.dump_path, self.level = settings.task, settings.dump_path, settings.level
        self.step, self.rank = sorted(settings.steps), sorted(settings.ranks)
        self.scope, self.list = [*settings.scope], [*settings.names]
        self.data_mode = _data_mode(settings)
        self.summary_mode, self.tensor_list = settings.summary_mode, [*settings.saved_names]
        parts = [
            {"dim": part.axis, "size": part.size, "begin": part.begin, "end": part.end} for part in settings.slices
        ]
        self.slice_info = [{key: value for key, value in part.items() if value is not None} for part in parts]
        self.dump_enable, self.extra_info = settings.is_enabled, settings.has_extra_info
        self.precision = "high" if settings.is_precise else "low"
        self.risk_level = settings.risk_level

    def settings(self) -> Settings:
        """Raises: ConfigError."""
        path = self.dump_path
        section = {
            "scope": self.scope, "list": self.list, "data_mode": self.data_mode, "summary_mode": self.summary_mode,
            "tensor_list": self.tensor_list, "slice": self.slice_info, "request_id": self.request_id,
            "bench_path": self.bench_path,
        }  # fmt: skip
        common = {
            "task": self.task, "dump_path": str(path) if isinstance(path, Path) else path, "level": self.level,
            "step": self.step, "rank": self.rank, "dump_enable": self.dump_enable, "extra_info": self.extra_info,
            "async_dump": self.async_dump, "precision": self.precision, "risk_level": self.risk_level,
        }  # fmt: skip
        return settings_of({**common, str(self.task): section}, "PrecisionDebugger.config")


def _data_mode(settings: Settings) -> list[str]:
    stages, sides = sorted(settings.stages, reverse=True), sorted(settings.sides)
    modes = [*(stages if len(stages) == 1 else ()), *(sides if len(sides) == 1 else ())]
    return modes or ["all"]


class Service:
    """The dump as integrations see it.

    first_start  whether there was no `start` yet
    """

    def __init__(self, probe: Probe, config: DebuggerConfig) -> None:
        self.config = config
        self.first_start = True
        self._probe = probe

    @property
    def current_iter(self) -> int:
        """The number of the step that runs now: `loop` steps after `init_step`. Assigned, it changes `init_step`."""
        return self._probe.iteration

    @current_iter.setter
    def current_iter(self, number: int) -> None:
        self._probe.first_step = number - self._probe.step_number

    @property
    def loop(self) -> int:
        return self._probe.step_number

    @loop.setter
    def loop(self, number: int) -> None:
        self._probe.step_number = number

    @property
    def init_step(self) -> int:
        return self._probe.first_step

    @init_step.setter
    def init_step(self, number: int) -> None:
        self._probe.first_step = number

    @property
    def current_rank(self) -> int | None:
        return self._probe.rank

    @property
    def dump_iter_dir(self) -> str | None:
        """The folder of the step that was started last."""
        return self._probe.step_folder

    @property
    def primitive_switch(self) -> bool:
        """Whether records are taken now."""
        return self._probe.is_recording()

    def reset_status(self) -> None:
        """The next `start` of this step begins anew, with calls counted from 0.

        Its files replace those of before, unless `config.dump_path` is another one by then.
        """
        self._probe.begin_anew()

"""PrecisionDebugger: what scripts call.

Source: mindstudio-probe 26.2, its class of this name.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, ParamSpec, TypeVar

import torch

from msdump.config.json_file import Stamp, stamp_of
from msdump.errors import ConfigError
from msdump.frontends.msprobe.config import DEBUG, Settings, read_settings
from msdump.frontends.msprobe.probe import Probe
from msdump.frontends.msprobe.service import DebuggerConfig, Service
from msdump.process import sessions

log = logging.getLogger("msdump")
_lock = threading.RLock()
P = ParamSpec("P")
T = TypeVar("T")


def _one_at_a_time(function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        with _lock:
            return function(*args, **kwargs)

    return locked


class PrecisionDebugger:
    """Dumps what functions and modules of PyTorch get and give, from `start` to `stop`, a folder for each `step`.

    There is one in a process: the first one counts, a later one is the same, whatever its arguments are.
    Raises: ConfigError for a configuration that cannot be honoured.
    """

    _instance: ClassVar[PrecisionDebugger | None] = None
    _is_made = False

    def __new__(cls, *_: object, **__: object) -> PrecisionDebugger:
        with _lock:
            if cls._instance is None:
                cls._instance = super().__new__(cls)
            return cls._instance

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: Sequence[int | str] | None = None,
    ) -> None:
        if self._is_made:
            return
        self._path = config_path
        self._arguments = {"task": task, "dump_path": dump_path, "level": level, "step": step}
        self._stamp: Stamp | None = stamp_of(config_path) if config_path else None
        try:
            settings = read_settings(config_path, **self._arguments)  # type: ignore[arg-type]
            self._probe = self._probe_of(settings)
        except BaseException:
            type(self)._instance = None
            raise
        self.config = DebuggerConfig(settings)
        self.service = Service(self._probe, self.config)
        self._tokens = _Tokens(self._probe)
        self._is_made = True
        sessions.note_own_configuration()
        sessions.begin(self._probe)

    @property
    def task(self) -> str:
        """That of `config`."""
        return self.config.task

    @task.setter
    def task(self, task: str) -> None:
        self.config.task = task

    @classmethod
    @_one_at_a_time
    def start(
        cls,
        model: Any = None,
        token_range: Sequence[int] | None = None,
        rank_id: int | None = None,
        scheduled_tokens: object = None,
    ) -> None:
        """Record from now on.

        model             a module or a list of modules; needed at levels L0 and mix, and with `token_range`
        token_range       (first, last): of the calls of the model from now on, those that are recorded
        rank_id           number of this process, in place of that of torch.distributed
        scheduled_tokens  taken and not needed: it serves `request_id`, which is not supported
        Raises: ConfigError.
        """
        debugger = cls._made()
        debugger._reload()
        debugger._take_config()
        _check_rank(rank_id)
        _check_tokens(token_range)
        debugger._check_model(model, token_range)
        debugger.service.first_start = False
        debugger._tokens.end()
        if debugger._probe.start(model, rank_id) and token_range is not None:
            models = model if isinstance(model, (list, tuple)) else [model]
            debugger._tokens.begin(models[0], token_range[0], token_range[1])

    @classmethod
    @_one_at_a_time
    def stop(cls) -> None:
        """Pause until `start`; the files of this step hold the records up to now."""
        debugger = cls._made()
        debugger._probe.stop()
        debugger._reload()

    @classmethod
    @_one_at_a_time
    def step(cls) -> None:
        """The step is over: what comes next goes to the next folder."""
        debugger = cls._made()
        debugger._probe.end_step()
        debugger._reload()

    @classmethod
    @_one_at_a_time
    def save(cls, variable: object, name: str, save_backward: bool = True) -> None:
        """At level debug: write a tensor, number, text, or lists and dictionaries of them, to debug.json.

        save_backward   also the gradients of its tensors, when they come
        Edges: other values are not saved, with a warning.
        """
        debugger = cls._made()
        debugger._reload()
        debugger._take_config()
        if debugger._probe.settings.level != DEBUG:
            return
        for what, is_sound, expected in (
            (variable, _is_savable(variable), "a tensor, number, text, or lists and dictionaries of them"),
            (name, isinstance(name, str), "a text as name"),
            (save_backward, isinstance(save_backward, bool), "True or False as save_backward"),
        ):
            if not is_sound:
                log.warning(
                    "PrecisionDebugger.save: expected %s, got %s. Nothing is saved.", expected, type(what).__name__
                )
                return
        debugger._probe.save(variable, name, save_backward)

    @classmethod
    @_one_at_a_time
    def set_init_step(cls, step: int) -> None:
        """The number of the step that runs now, as where training goes on from a checkpoint."""
        if type(step) is not int or step < 0:
            raise ConfigError(
                f"PrecisionDebugger.set_init_step: expected a number from 0 on, got {step!r}. Correct it."
            )
        probe = cls._made()._probe
        probe.first_step, probe.step_number = step, 0

    @classmethod
    @_one_at_a_time
    def register_custom_api(cls, module: object, api: str, api_prefix: str | None = None) -> None:
        """Record the calls of a function of the script as well, at levels L1 and mix.

        api_prefix   the beginning of its records' names; None: the name of the module
        """
        if not hasattr(module, api):
            raise ConfigError(f"PrecisionDebugger.register_custom_api: expected a function of {module}, got {api!r}.")
        prefix = api_prefix or str(getattr(module, "__name__", "Custom"))
        cls._made()._probe.api_calls.register(module, api, prefix)

    @classmethod
    @_one_at_a_time
    def restore_custom_api(cls, module: object, api: str) -> None:
        """Undo `register_custom_api`."""
        cls._made()._probe.api_calls.unregister(module, api)

    @classmethod
    def _made(cls) -> PrecisionDebugger:
        debugger = cls._instance
        if debugger is None or not debugger._is_made:
            raise ConfigError("PrecisionDebugger: expected an object of it before this call, got none. Make one first.")
        return debugger

    def _check_model(self, model: object, token_range: Sequence[int] | None) -> None:
        settings = self._probe.settings
        if not settings.is_module_level and token_range is None:
            return
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        if not all(map(self._is_model, models)):
            reason = f"at level {settings.level}" if token_range is None else "with token_range"
            kinds = ", ".join(type(model).__name__ for model in models)
            raise ConfigError(
                f"PrecisionDebugger.start, model: expected a module or a list of modules {reason}, got {kinds}. "
                "Call start(model=model)."
            )

    @staticmethod
    def _probe_of(settings: Settings) -> Probe:
        return Probe(settings)

    @staticmethod
    def _is_model(value: object) -> bool:
        return isinstance(value, torch.nn.Module) and not _is_scripted(value)

    def _take_config(self) -> None:
        """What the script has assigned to `config` holds from now on.   Raises: ConfigError."""
        settings = self.config.settings()
        if settings != self._probe.settings:
            self._probe.change(settings)

    def _reload(self) -> None:
        """A configuration with `dump_enable` is read again when its file has changed.   Source: msprobe.

        Edges: a file that is wrong turns the dump off; the reason is logged.
        """
        if self._probe.settings.is_enabled is None or not self._path:
            return
        stamp = stamp_of(self._path)
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        self._probe.change_or_disable(lambda: read_settings(self._path, **self._arguments))  # type: ignore[arg-type]
        self.config.show(self._probe.settings)


def module_dump(module: torch.nn.Module, dump_name: str) -> None:
    """Record the calls of one module under a name, between `start` and `stop`, and no functions, until
    `module_dump_end`.

    Raises: ConfigError.
    """
    if not isinstance(module, torch.nn.Module) or _is_scripted(module) or not isinstance(dump_name, str):
        raise ConfigError(
            "module_dump: expected a module and a text as its name, got "
            f"{type(module).__name__} and {type(dump_name).__name__}. Correct the call."
        )
    with _lock:
        PrecisionDebugger._made()._probe.begin_module_dump(module, dump_name)


def module_dump_end() -> None:
    """Undo all `module_dump`."""
    with _lock:
        PrecisionDebugger._made()._probe.end_module_dump()


class _Tokens:
    """Turns the dump on and off by the calls of a model, which makes one token in each.

    What runs between `start` and the first call is recorded.   Source: msprobe.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._next = self._first = self._last = 0
        self._is_on = False

    def begin(self, model: torch.nn.Module, first: int, last: int) -> None:
        self._next, self._first, self._last, self._is_on = 0, first, last, True
        self._probe.module_calls.tell(model, self._before)

    def end(self) -> None:
        self._is_on = False

    def _before(self) -> None:
        if self._is_on:
            self._probe.set_running(self._first <= self._next <= self._last)
            self._next += 1
            self._is_on = self._next <= self._last + 1


def _is_scripted(module: object) -> bool:
    return isinstance(module, torch.jit.ScriptModule)


def _is_savable(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_savable(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_savable(item) for key, item in value.items())
    return isinstance(value, (torch.Tensor, int, float, str))


def _check_rank(rank: object) -> None:
    if rank is not None and (type(rank) is not int or rank < 0):
        raise ConfigError(f"PrecisionDebugger.start, rank_id: expected a number from 0 on, got {rank!r}. Correct it.")


def _check_tokens(tokens: Any) -> None:
    if tokens is None:
        return
    is_pair = isinstance(tokens, (list, tuple)) and len(tokens) == 2 and all(type(number) is int for number in tokens)
    if not is_pair or not 0 <= tokens[0] <= tokens[1]:
        raise ConfigError(
            f"PrecisionDebugger.start, token_range: expected (first, last), whole numbers from 0 on, got {tokens!r}."
        )


# As `__init__` has it, which `__new__` would hide, and without annotations, as msprobe has it.
PrecisionDebugger.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(PrecisionDebugger.__init__).parameters.items()
        if name != "self"
    ]
)


def reset_for_tests() -> None:
    """Forget the one of this process, and give PyTorch its functions back."""
    kinds: list[type[PrecisionDebugger]] = [PrecisionDebugger, *PrecisionDebugger.__subclasses__()]
    for kind in kinds:
        if kind._instance is not None and kind._instance._is_made:
            kind._instance._probe.let_functions_go()
        kind._instance = None


sessions.call_at_reset(reset_for_tests)

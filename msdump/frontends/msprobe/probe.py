"""What a PrecisionDebugger records, and when: steps, ranks, start and stop. One for each process."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist

from msdump.errors import ConfigError, DumpError
from msdump.frontends.msprobe.api_calls import ApiCalls, forget_waiting, unrecorded
from msdump.frontends.msprobe.config import DEBUG, STRUCTURE, Settings
from msdump.frontends.msprobe.function_names import DISTRIBUTED
from msdump.frontends.msprobe.module_calls import ModuleCalls
from msdump.frontends.msprobe.parents import CLIP, OPTIMIZER
from msdump.frontends.msprobe.recorder import PYTORCH, RecordWriter, TensorForm
from msdump.frontends.msprobe.selection import Selection
from msdump.frontends.msprobe.stacks import current_stack
from msdump.process import dry_run, sessions
from msdump.process.report import Kind, Report

log = logging.getLogger("msdump")
KIND = Kind(
    "dump of msprobe's layout",
    "The script itself",
    "the script called no start(), or `step`, `rank`, `scope`, `list` and `risk_level` chose nothing that ran",
)
_GRADIENTS = "parameters_grad"
P = ParamSpec("P")
T = TypeVar("T")


class Probe(sessions.Session):
    """The observer of all hooks, and the session of the dump."""

    def __init__(
        self, settings: Settings, form: TensorForm = PYTORCH, module_calls: Callable[[Probe], Any] = ModuleCalls
    ) -> None:
        super().__init__()
        self.settings = settings
        # The last one that a step was written to, and all dump_paths.
        self.step_folder: str | None = None
        self._folders: dict[str, None] = {}
        self.step_number = 0
        self.first_step = 0
        self._selection = Selection(settings)
        self._recorder = RecordWriter(settings, form)
        # A signal waits for what is being sent.
        self.has_threads = self._recorder.files.has_uploads
        self.api_calls = ApiCalls(self)
        self.module_calls = module_calls(self)
        self._is_running = False
        self._dumps_modules = False
        self._rank: int | None = None
        self._given_rank: int | None = None
        # What takes the hooks of optimizers away again; none: there are none yet.
        self._undo: list[Callable[[], None]] = []
        # Of modules: how often the gradient of the parameter that came first has come in this step, and its name.
        self._gradient_turns: dict[str, tuple[int, str]] = {}
        self._backward_modules: set[str] = set()
        self._saves: dict[str, int] = {}
        # The last one whose beginning a dry run was told.
        self._measured_iteration: int | None = None
        if settings.is_api_level and settings.is_enabled is not False:
            self.api_calls.install()

    # -- the life of a dump ------------------------------------------------------------------------

    @property
    def iteration(self) -> int:
        return self.first_step + self.step_number

    def start(self, model: object, rank: int | None) -> bool:
        """Record from now on, if this step of this rank is chosen; whether it is."""
        if rank is not None:
            self._given_rank = rank
        if model is not None and self.settings.is_module_level:
            self.module_calls.watch(model)
        is_chosen = self.is_chosen()
        if is_chosen and self.iteration != self._measured_iteration:
            self._measured_iteration = self.iteration
            dry_run.note_run("step", self)
        self._is_running = is_chosen and self._open()
        if self._is_running and self.settings.level == "mix":
            self._watch_optimizers()
        return self._is_running

    @property
    def rank(self) -> int | None:
        """Number of this process where it is known."""
        return self._current_rank()

    def begin_module_dump(self, module: torch.nn.Module, name: str) -> None:
        """Record this module under this name, and no functions, until `end_module_dump`."""
        self._dumps_modules = True
        self.module_calls.begin_dump(module, name)

    def end_module_dump(self) -> None:
        self._dumps_modules = False
        self.module_calls.end_dumps()

    def is_chosen(self) -> bool:
        """Whether this step of this rank is dumped."""
        settings = self.settings
        if settings.is_enabled is False or self.has_ended or self._recorder.tally.error or not self.may_dump():
            return False
        if settings.steps and self.iteration not in settings.steps:
            return False
        self._rank = self._current_rank()
        return not settings.ranks or self._rank in settings.ranks

    def set_running(self, is_running: bool) -> None:
        """Go on, or pause, inside of a step that was started."""
        self._is_running = is_running and self._recorder.is_open

    def stop(self) -> None:
        """Record nothing more, and write what is there."""
        self._is_running = False
        if self.is_foreign:
            return
        with self._dumping():
            self._move_to_rank()
            self._recorder.flush()

    def end_step(self) -> None:
        if self.is_foreign:
            return
        self.begin_anew()
        self._recorder.tally.count_run(self.step_number)
        self.step_number += 1

    def begin_anew(self) -> None:
        """What runs from now on has records of its own, and calls are counted from 0."""
        if self.is_foreign:
            return
        self._is_running = False
        with self._dumping():
            self._move_to_rank()
            is_whole = self._recorder.is_open and not self._recorder.tally.error
            self._recorder.end_step()
            if is_whole:
                self._recorder.tally.count_dumped(self.iteration)
        self.api_calls.counts.clear()
        self.module_calls.end_step()
        self._gradient_turns.clear()
        self._backward_modules.clear()
        self._saves.clear()
        forget_waiting()

    def change_or_disable(self, read: Callable[[], Settings]) -> None:
        """Another configuration, from now on; none, and a message, where it is wrong."""
        try:
            settings = read()
            if settings.is_enabled is None:
                settings = replace(settings, is_enabled=self.settings.is_enabled)
            self.change(settings)
        except ConfigError as error:
            log.error("The configuration has changed and is wrong, the dump is off: %s", error)
            self.change(replace(self.settings, is_enabled=False))

    def change(self, settings: Settings) -> None:
        """Another configuration, from the next `start` on.   Raises: ConfigError, and nothing has changed."""
        selection = Selection(settings)
        self.stop()
        with self._dumping():
            self._recorder.change(settings)
        self.settings = settings
        self._selection = selection
        if settings.is_api_level and settings.is_enabled is not False:
            self.api_calls.install()
        else:
            self.api_calls.remove()

    def let_functions_go(self) -> None:
        """PyTorch's functions are its own again."""
        self._is_running = False
        self.api_calls.remove()
        self.module_calls.let_go()
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _open(self) -> bool:
        folder = f"rank{self._rank}" if self._rank is not None else f"proc{os.getpid()}"
        with self._dumping():
            step = Path(self.settings.dump_path) / f"step{self.iteration}"
            self._folders[self.settings.dump_path], self.step_folder = None, str(step)
            self._recorder.open(step / folder, self.iteration)
            self._recorder.flush()
        return not self._recorder.tally.error

    def _current_rank(self) -> int | None:
        if self._given_rank is not None:
            return self._given_rank
        return dist.get_rank() if dist.is_available() and dist.is_initialized() else None

    def _move_to_rank(self) -> None:
        """torch.distributed may begin after the step has."""
        home = self._recorder.home
        rank = self._current_rank()
        if home is not None and self._rank is None and rank is not None:
            self._rank = rank
            self._recorder.move(home.with_name(f"rank{rank}"))

    # -- the session -------------------------------------------------------------------------------

    @property
    def folder(self) -> str:
        """That of the settings, or the one around all that were written to."""
        if len(self._folders) < 2:
            return self.settings.dump_path
        return os.path.commonpath([os.path.abspath(folder) for folder in self._folders])

    def report(self) -> Report:
        tally = self._recorder.tally
        report = tally.report(self.folder, KIND, self._recorder.files.counts)
        records, calls = self._recorder.records_written, self._recorder.calls_named
        return replace(report, operators_seen=records, operators_selected=records, calls_named=calls)

    @property
    def error(self) -> str:
        """Why the dump is not complete; "" where it is."""
        return self._recorder.tally.error or ""

    def counts(self) -> dry_run.Counts:
        """As `report`, for a dry run."""
        report = self.report()
        return dry_run.Counts(report.files, report.links, report.bytes_written, report.dump_seconds)

    def leave_to_parent(self) -> None:
        self._is_running = False
        self.module_calls.leave_to_parent()
        self._recorder.leave_to_parent()

    def _finish(self) -> None:
        self._is_running = False
        with self._dumping():
            self._move_to_rank()
            self._recorder.end_step()
        self._recorder.close()
        report = self.report()
        if report.error:
            raise DumpError(f"{self.folder}: the dump is not complete. {report.error}")

    # -- functions ---------------------------------------------------------------------------------

    def is_recording(self) -> bool:
        return self._is_running and self._recorder.is_open and not self._recorder.tally.error

    def is_recording_functions(self) -> bool:
        return self.is_recording() and not self._dumps_modules

    def is_recording_backward(self) -> bool:
        """Backward of functions is recorded until the step ends.   Source: msprobe."""
        return self._recorder.is_open and not self._recorder.tally.error and not self.is_foreign

    def function_begins(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        with self._dumping():
            self._record_input(name, args, kwargs)

    def function_ends(self, name: str, output: object) -> None:
        with self._dumping():
            self._record_output(name, _without_unset(name, output, _UNSET_RESULTS), None)

    def backward_reaches(self, number: int) -> None:
        # Its lock comes before that of records: no lock is held here.
        self.module_calls.backwards.reach(number)

    def backward_ends(self, name: str, incoming: object, outgoing: object) -> None:
        with self._dumping():
            self._record_backward(name, incoming, outgoing)

    # -- modules -----------------------------------------------------------------------------------

    def module_begins(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        with self._dumping():
            self._begin_module(name)
            self._record_input(name, args, kwargs)

    def module_ends(self, name: str, output: object, parameters: Mapping[str, torch.Tensor]) -> None:
        with self._dumping():
            if self._is_running:
                self._record_output(name, output, parameters)
            self._end_module(name)

    def backward_begins(self, name: str) -> None:
        with self._dumping():
            self._begin_module(name)

    def module_backward_ends(self, name: str, incoming: object, outgoing: object) -> None:
        with self._dumping():
            # After `stop` modules only stand around the functions whose backward is still recorded.
            if self._is_running and self._record_backward(name, incoming, outgoing):
                self._backward_modules.add(name.rsplit(".", 2)[0])
            self._end_module(name)

    def _begin_module(self, name: str) -> None:
        self._recorder.parents.begin(name)
        self._selection.begin_module(name)

    def _end_module(self, name: str) -> None:
        self._recorder.parents.end(name)
        self._selection.end_module(name)

    def watches_gradients(self) -> bool:
        return self.settings.task != STRUCTURE and "backward" in self.settings.stages

    def gradient_is_there(self, module: str, parameter: str, gradient: torch.Tensor | None) -> None:
        with self._dumping():
            turn, first = self._gradient_turns.get(module, (-1, parameter))
            turn += first == parameter
            self._gradient_turns[module] = turn, first
            if not self._selection.takes_parameters(module) and module not in self._backward_modules:
                return
            name = f"{module}.{_GRADIENTS}.{turn}"
            shown = self._recorder.describe(gradient, f"{name}.{parameter}")
            self._recorder.update(name, {parameter: [shown]})

    # -- records -----------------------------------------------------------------------------------

    def _record_input(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        if not self._selection.takes(name):
            return
        part: dict[str, object] = {}
        if self._shows("forward", "input"):
            args, kwargs = (_without_unset(name, operands, _UNSET) for operands in (args, kwargs))
            part["input_args"] = self._recorder.describe(args, f"{name}.input")
            part["input_kwargs"] = self._recorder.describe(kwargs, f"{name}.kwargs")
        if self.settings.has_extra_info:
            self._recorder.add_stack(name, current_stack())
        self._update(name, part)

    def _record_output(self, name: str, output: object, parameters: Mapping[str, torch.Tensor] | None) -> None:
        self._recorder.note(name)
        if not self._selection.takes(name) or not self._shows("forward", "output"):
            return
        part = {"output": self._recorder.describe(_as_tuple(output), f"{name}.output")}
        if parameters is not None:
            part["parameters"] = self._recorder.describe(dict(parameters), f"{name}.parameters")
        self._update(name, part)

    def _record_backward(self, name: str, incoming: object, outgoing: object) -> bool:
        """Whether there is a record now."""
        self._recorder.note(name)
        if not self._selection.takes(name):
            return False
        part: dict[str, object] = {}
        if self._shows("backward", "input"):
            part["input"] = self._recorder.describe(_as_tuple(incoming), f"{name}.input")
        if self._shows("backward", "output"):
            part["output"] = self._recorder.describe(_as_tuple(outgoing), f"{name}.output")
        self._update(name, part)
        return bool(part)

    def _shows(self, stage: str, side: str) -> bool:
        return self.settings.task != STRUCTURE and self.settings.takes(stage, side)

    def _update(self, name: str, part: dict[str, object]) -> None:
        if part:
            self._recorder.update(name, part)

    # -- values that the script saves ----------------------------------------------------------------

    def save(self, value: object, name: str, with_gradients: bool) -> None:
        """At level debug: one value, and the gradients of its tensors when they come."""
        if self.settings.level != DEBUG or not self.is_chosen() or (not self._recorder.is_open and not self._open()):
            return
        with self._dumping():
            number = self._saves.get(name, 0)
            self._saves[name] = number + 1
            record = f"{name}.{number}.debug"
            self._recorder.replace(record, self._recorder.describe(value, record))
            if with_gradients:
                gradients = f"{name}_grad.{number}.debug"
                self._recorder.replace(gradients, _emptied(value))
                self._watch_saved(value, gradients, ())

    def _watch_saved(self, value: object, record: str, path: tuple[object, ...]) -> None:
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                value.register_hook(  # type: ignore[no-untyped-call]
                    functools.partial(self._saved_gradient, record, path)
                )
        elif isinstance(value, dict):
            for key, item in value.items():
                self._watch_saved(item, record, (*path, key))
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                self._watch_saved(item, record, (*path, number))

    def _saved_gradient(self, record: str, path: tuple[object, ...], gradient: torch.Tensor) -> None:
        if not self.is_recording_backward():
            return
        with self._dumping():
            shown = self._recorder.describe(gradient, ".".join([record, *map(str, path)]))
            self._recorder.replace_inside(record, path, shown)

    # -- optimizers ----------------------------------------------------------------------------------

    def _watch_optimizers(self) -> None:
        """Functions that optimizers and the clipping of gradients call stand below one name in construct.json."""
        if self._undo:
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        before = register_optimizer_step_pre_hook(lambda *_: self._set_phase(OPTIMIZER))
        after = register_optimizer_step_post_hook(lambda *_: self._set_phase(""))
        self._undo += [before.remove, after.remove]
        for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
            function = getattr(torch.nn.utils, name, None)
            if function is not None:
                setattr(torch.nn.utils, name, self._clipping(function))
                self._undo.append(functools.partial(setattr, torch.nn.utils, name, function))

    def _clipping(self, function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def clip(*args: P.args, **kwargs: P.kwargs) -> T:
            self._set_phase(CLIP)
            try:
                return function(*args, **kwargs)
            finally:
                self._set_phase("")

        return clip

    def _set_phase(self, phase: str) -> None:
        self._recorder.parents.phase = phase

    @contextmanager
    def _dumping(self) -> Iterator[None]:
        with unrecorded(), torch._C._DisableFuncTorch(), self._recorder.dumping():
            yield


def _as_tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _emptied(value: object) -> object:
    """The lists and dictionaries of a value, with nothing in place of what they hold."""
    if isinstance(value, dict):
        return {key: _emptied(item) for key, item in value.items()}
    return [_emptied(item) for item in value] if isinstance(value, (list, tuple)) else None


# Operands of collectives that hold nothing yet, or are results: by position, or by name.   Source: msprobe.
_UNSET: dict[str, tuple[int | str, ...]] = {
    "recv": (0,),
    "irecv": (0, "tensor"),
    "all_gather": (0,),
    "gather": (1,),
    "scatter": (0,),
    "reduce_scatter": (0,),
    "_reduce_scatter_base": (0,),
    "_all_gather_base": (0,),
    "all_to_all_single": (0,),
    "all_to_all": (0,),
    "all_gather_into_tensor": (0,),
    "reduce_scatter_tensor": (0,),
}
_UNSET_RESULTS: dict[str, tuple[int | str, ...]] = {"isend": (0,)}


def _without_unset(name: str, operands: object, unset_by_name: Mapping[str, tuple[int | str, ...]]) -> Any:
    """Operands of a call, with None for those without data yet."""
    prefix, _, rest = name.partition(".")
    unset = unset_by_name.get(rest.partition(".")[0], ()) if prefix == DISTRIBUTED else ()
    if unset and isinstance(operands, tuple):
        return tuple(None if number in unset else value for number, value in enumerate(operands))
    if unset and isinstance(operands, dict):
        return {key: None if key in unset else value for key, value in operands.items()}
    return operands

"""`msdump.watch`: a block in which every operator of PyTorch is dumped, without `torch.compile`."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType

import torch
from torch._dynamo import eval_frame
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.frontends.torch.eager.native import uses_native
from msdump.frontends.torch.eager.program import EagerProgram
from msdump.frontends.torch.session import open_session, steps_of
from msdump.graph.graph import Graph
from msdump.process import sessions
from msdump.process.report import Report

log = logging.getLogger("msdump")

# Threads that are in a block.
_active: set[int] = set()


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows operators to a program, but where it lets them through as they are.

    is_blind  inside of what the program shows as a whole
    is_idle   in an iteration that is not dumped, where it cannot be taken from the stack of modes
    """

    supports_higher_order_operators = True

    def __init__(self, program: EagerProgram) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._program: EagerProgram | None = program
        self._shown_to: EagerProgram | None = program
        self.is_blind = self.is_idle = False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """So Dynamo compiles what it compiles without this mode.   Source: PyTorch 2.9 and later."""
        return True

    def end(self) -> None:
        """Let operators through as they are: a thread may keep the mode that somebody else has ended."""
        self._program = self._shown_to = None

    def let_through(self, is_blind: bool | None = None, is_idle: bool | None = None) -> None:
        """None: as before."""
        self.is_blind = self.is_blind if is_blind is None else is_blind
        self.is_idle = self.is_idle if is_idle is None else is_idle
        self._shown_to = None if self.is_blind or self.is_idle else self._program

    def __torch_dispatch__(
        self,
        function: torch._ops.OperatorBase,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if self._shown_to is None:
            return function(*args, **(kwargs or {}))
        return self._shown_to.run(function, args, kwargs or {})


class Watch(contextlib.ContextDecorator):
    """See `msdump.watch`."""

    def __init__(
        self, model: torch.nn.Module | None, config: opening.Config | None, is_whole_script: bool = False
    ) -> None:
        """is_whole_script: whether all of a script runs inside, so that it builds its model before the first step"""
        if model is not None and not isinstance(model, torch.nn.Module):
            raise ConfigError(
                f"msdump.watch: expected a torch.nn.Module, or None for all modules, got {type(model).__name__}. "
                "Give the configuration as `config=...`."
            )
        self._model = model
        self._is_whole_script = is_whole_script
        self._config = config
        self._dump: opening.DumpBlock | None = None
        # Not what the stack of modes says: while an operator is shown, the mode is not on it.
        self._is_on = False
        self._stays_on = False
        self._mode: _Mode | None = None
        self._thread = 0
        self._program: EagerProgram | None = None

    def __enter__(self) -> Watch:
        if threading.get_ident() in _active:
            raise ConfigError(
                "msdump.watch: expected one block in a thread, got one inside of another. Leave out the inner one: "
                "what it covers is watched already."
            )
        with sessions.lock:  # another thread may begin a dump of its own meanwhile
            config = self._config
            if config is None and not self._is_whole_script and not opening.is_anything_said():
                config = opening.default_config()
            if config is not None:
                self._dump = opening.dump(config)
                self._dump.__enter__()
            session = open_session()
        if session is not None:
            self._program = EagerProgram(
                session,
                steps_of(session),
                self._model,
                self._look,
                self._sees_thread,
                self._blind,
                has_setup=self._is_whole_script,
                hold=self._hold,
            )
            self._mode = _Mode(self._program)
            if uses_native():
                self._program.use_native()
            self._program.begin()
            self._look(True)
        self._thread = threading.get_ident()
        _active.add(self._thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _active.discard(self._thread)
        try:
            if self._program is not None and self._mode is not None:
                if threading.get_ident() == self._thread:
                    self._stays_on = False
                    self._look(False)
                else:
                    log.warning(
                        "msdump.watch: expected the block to be left in the thread that entered it, got another one. "
                        "The dump has ended; operators of the first thread stay a little slower. Leave it there."
                    )
                self._mode.end()
                self._program.end()
        finally:
            if self._dump is not None:
                self._dump.__exit__(kind, error, trace)

    def _look(self, is_on: bool) -> None:
        """Enter the mode that sees operators, or leave it: without it they cost what they cost without msdump.

        Where the script has entered another mode since, or in another thread, it stays as it is. Where iterations begin
        inside of a call of what `torch.compile` made, it stays too, and lets operators through: when such a call ends,
        PyTorch restores what it has noted of modes when it began.
        """
        native = None if self._program is None else self._program.native
        if native is not None and self._program is not None:
            is_native = native.look(is_on and self._program.prefers_native)
            is_on = is_on and not is_native
        mode = self._mode
        assert mode is not None
        if is_on == self._is_on and is_on != mode.is_idle:
            return
        self._stays_on = self._stays_on or _is_in_compiled_call()
        if self._stays_on or is_on:
            mode.let_through(is_idle=not is_on)
        if is_on and not self._is_on:
            _push_mode(mode)
            self._is_on = True
        elif not is_on and not self._stays_on and _get_current_dispatch_mode() is mode:
            _pop_mode()
            self._is_on = False

    def _hold(self) -> None:
        """Inside of a call of what `torch.compile` made the mode may have been entered: when the call ends, PyTorch
        restores the keys that operators look for, but not the stack of modes, and would miss the next operator.
        """
        mode = self._mode
        assert mode is not None
        is_held = torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.Python)
        if self._is_on and not is_held and _get_current_dispatch_mode() is mode:
            _pop_mode()
            _push_mode(mode)

    @contextlib.contextmanager
    def _blind(self) -> Iterator[None]:
        """No operator is seen: what runs in here meets no mode of msdump's, where it is the innermost one."""
        mode = self._mode
        assert mode is not None
        if _get_current_dispatch_mode() is mode:
            _pop_mode()
            try:
                yield
            finally:
                _push_mode(mode)
        else:
            was_blind = mode.is_blind
            mode.let_through(is_blind=True)
            try:
                yield
            finally:
                mode.let_through(is_blind=was_blind)

    def _sees_thread(self) -> bool:
        return self._mode in _get_current_dispatch_mode_stack()

    def step(self) -> None:
        """The iteration ends here. Needed only where no module is called, or where several calls are one step."""
        if self._program is not None:
            self._program.step()

    def continue_at(self, iteration: int) -> None:
        """The next iteration has this number, and the script says by `step` when one ends.

        Edges: numbers never go back: where the dump has come further, it goes on from there.
        """
        if self._program is not None:
            self._program.step()
            self._program.session.continue_at(iteration)

    def pause(self) -> None:
        """Between two iterations: what runs now is not dumped, such as a validation."""
        if self._program is not None:
            self._program.pause()

    def resume(self) -> None:
        """Undo `pause`."""
        if self._program is not None:
            self._program.resume()

    def close(self) -> None:
        """End the dump of the block, where it has one of its own.

        Raises: DumpError when that is not complete, at each call, also behind the block.
        """
        if self._dump is not None:
            self._dump.close()

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The operators that were met so far, in a graph for each of forward pass, backward pass and update.

        Edges: () where nothing is dumped; a whole script has a fourth graph, of what runs before its first step.
        """
        return () if self._program is None else tuple(stage.graph for stage in self._program.stages)

    def report(self) -> Report | None:
        """Counts up to now; None when nothing is dumped."""
        if self._dump is not None:
            return self._dump.report()
        return None if self._program is None else self._program.session.report()


def _is_in_compiled_call() -> bool:
    """Whether what runs was called by a function that `torch.compile` made.   Source: PyTorch 2.8 and later."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_code.co_filename == eval_frame.__file__:
            return True
        frame = frame.f_back
    return False

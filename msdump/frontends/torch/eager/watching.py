"""`msdump.watch`: a block in which every operator of PyTorch is dumped, without `torch.compile`."""

from __future__ import annotations

import contextlib
import logging
import threading
from types import TracebackType

import torch

from msdump.config.environment import is_native_used
from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.frontends.torch.eager.program import EagerProgram
from msdump.frontends.torch.session import open_session, steps_of
from msdump.graph.graph import Graph
from msdump.process import sessions
from msdump.process.report import Report

log = logging.getLogger("msdump")

# Threads that are in a block.
_active: set[int] = set()


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
            try:
                session = open_session()
            except BaseException:
                if self._dump is not None:
                    self._dump.__exit__(None, None, None)
                raise
        if session is not None:
            self._program = EagerProgram(session, steps_of(session), self._model, has_setup=self._is_whole_script)
            if is_native_used():
                self._program.use_native()
            self._program.begin()
        self._thread = threading.get_ident()
        _active.add(self._thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _active.discard(self._thread)
        try:
            if self._program is not None:
                expected = self._program.mode.close()
                if expected:
                    log.warning(
                        "msdump.watch: expected the block to be left %s, got another one. "
                        "The dump has ended; operators of the first thread stay a little slower. Leave it there.",
                        expected,
                    )
                self._program.end()
        finally:
            if self._dump is not None:
                self._dump.__exit__(kind, error, trace)

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

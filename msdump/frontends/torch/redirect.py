"""Runs unmodified scripts through msdump's backend: `msdump run --torch-backend`, `--torch-module`."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from msdump.config.environment import RANK_ID, TORCH_RANK
from msdump.errors import ConfigError, DumpError, did_you_mean
from msdump.frontends.torch import backend, check_version, inductor_backend
from msdump.process import sessions


def redirect_torch(backend_name: str | None, module: str | None, has_rnn: bool, is_eager: bool = False) -> None:
    """Do what the options `--torch-...` say; None: the option is not given.

    Raises: ConfigError for a backend that PyTorch does not know, or a PyTorch that is too old.
    """
    check_version()
    _follow_processes(is_eager)
    if has_rnn:
        capture_rnn()
    if backend_name is not None:
        redirect_compile(backend_name)
    if module is not None:
        compile_module(module, backend_name or "msdump")


def _whole_script() -> AbstractContextManager[object]:
    from msdump.frontends.torch.eager.watching import Watch

    return Watch(None, None, is_whole_script=True)


# The block around a script that began with PyTorch imported, until the process ends or starts others.
_own = ExitStack()


def reset_for_tests() -> None:
    """Leave the block around a whole script: the process of a test goes on after it."""
    with suppress(DumpError):
        _own.close()


# Is set while a process starts others that are to dump in its place.
_SPAWNED = "MSDUMP_SPAWNED"


def _follow_processes(is_watched: bool) -> None:
    """Let this process, and those that it starts with `torch.multiprocessing.spawn`, dump as ranks of a job.

    Each of these has the rank that it is given as its first argument, unless the environment says another one.

    is_watched   whether all that runs in them is dumped, not only what is compiled; a process that starts others then
                 leaves the dump to them from there on
    """
    # The package has a function of the same name.
    spawning: Any = importlib.import_module("torch.multiprocessing.spawn")
    if os.environ.pop(_SPAWNED, ""):
        run = spawning._wrap

        def followed(function: Callable[..., object], index: int, *rest: Any) -> None:
            if not os.environ.get(TORCH_RANK):
                os.environ.setdefault(RANK_ID, str(index))
            if is_watched:
                _whole_script().__enter__()
            run(function, index, *rest)

        spawning._wrap = followed
        return
    if is_watched:
        _own.enter_context(_whole_script())
    start = spawning.start_processes

    @functools.wraps(start)
    def started(*args: Any, **keywords: Any) -> Any:
        bound = inspect.signature(start).bind(*args, **keywords)
        bound.apply_defaults()
        if bound.arguments.get("start_method") == "fork":
            # They are no new Pythons: nothing in them can take over.
            return start(*args, **keywords)
        if is_watched:
            _own.close()
            with suppress(DumpError):  # an incomplete dump is reported at the end, and shown in the exit status
                sessions.close_all()
        os.environ[_SPAWNED] = "1"
        try:
            return start(*args, **keywords)
        finally:
            del os.environ[_SPAWNED]

    spawning.start_processes = started
    setattr(torch.multiprocessing, start.__name__, started)


_SHOWN = 12
Backend = str | Callable[..., Callable[..., object]]
# Known here too, so that msdump need not be installed.
_OWN = {"msdump": backend, "msdump-inductor": inductor_backend}


def redirect_compile(name: str) -> None:
    """Let every `torch.compile` of this process use the backend of that name, not the one that the script names.

    Edges:   `mode` and `options` of the script are for its own backend and are left out.
    Raises:  ConfigError for a name that PyTorch does not know.
    """
    chosen = backend_of(name)
    original = torch.compile

    @functools.wraps(original)
    def redirected(model: Any = None, **settings: Any) -> Any:
        for setting in ("backend", "mode", "options"):
            settings.pop(setting, None)
        return original(model, backend=chosen, **settings)

    torch.compile = redirected


def compile_module(name: str, backend_name: str) -> None:
    """Compile the module of that name when it is first called: an instance in the script's namespace, or a class.

    `why_not_compiled` says afterwards when no such module was called.

    Raises: ConfigError for a backend that PyTorch does not know.
    """
    global _search
    chosen = backend_of(backend_name)
    original = torch.nn.Module.__call__
    search = _search = _ModuleSearch(name)

    def call(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        search.classes[type(self).__name__] = None
        if type(self).__name__ == name:
            _compile_instances(type(self), original, chosen)
        elif vars(sys.modules["__main__"]).get(name) is self:
            self.compile(backend=chosen)
        else:
            return original(self, *args, **kwargs)
        search.is_over = True
        # From here on the capture must see the module's own way to be called.
        torch.nn.Module.__call__ = original  # type: ignore[method-assign]
        return self(*args, **kwargs)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign]


@dataclass
class _ModuleSearch:
    """The module that `compile_module` waits for; `classes` of the modules that were called before it."""

    name: str
    classes: dict[str, None] = field(default_factory=dict)
    is_over: bool = False


_search: _ModuleSearch | None = None


def why_not_compiled() -> str:
    """A sentence when the module that `compile_module` was to compile was never called; else ""."""
    if _search is None or _search.is_over:
        return ""
    names = vars(sys.modules["__main__"]).items()
    instances = [name for name, value in names if isinstance(value, torch.nn.Module)]
    candidates = list(dict.fromkeys((*instances, *_search.classes)))
    text = f"--torch-module: expected a module of the script that is called, got {_search.name!r}."
    if not candidates:
        return f"{text} The script called no torch.nn.Module."
    listed = ", ".join(candidates[:_SHOWN]) + (", ..." if len(candidates) > _SHOWN else "")
    return " ".join(filter(None, (text, did_you_mean(_search.name, candidates), f"It has {listed}.")))


def capture_rnn() -> None:
    """Let Dynamo capture nn.RNN, nn.LSTM and nn.GRU.   Raises: ConfigError for a PyTorch that cannot."""
    if not hasattr(torch._dynamo.config, "allow_rnn"):
        raise ConfigError(
            f"--torch-rnn: expected a PyTorch with torch._dynamo.config.allow_rnn, got {torch.__version__}. "
            "Install a newer one with: pip install --upgrade torch"
        )
    torch._dynamo.config.allow_rnn = True


def backend_of(name: str) -> Backend:
    """What `torch.compile` takes for a backend.   Raises: ConfigError naming what PyTorch knows."""
    if name in _OWN:
        return _OWN[name]
    backends = torch._dynamo.list_backends(exclude_tags=())
    if name not in backends:
        hint = did_you_mean(name, (*_OWN, *backends))
        raise ConfigError(
            f"--torch-backend: expected msdump or one of {sorted({*_OWN, *backends})}, got {name!r}. {hint}".rstrip()
        )
    return name


def _compile_instances(kind: type[torch.nn.Module], original: Callable[..., object], backend: Backend) -> None:
    """Compile each instance of a class when it is first called."""

    def call(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        if self._compiled_call_impl is None and not torch.compiler.is_compiling():
            self.compile(backend=backend)
        return original(self, *args, **kwargs)

    kind.__call__ = call  # type: ignore[method-assign]

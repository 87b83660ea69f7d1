"""Lets scripts that know nothing of msdump run through its backend: `msdump run --torch-backend`, `--torch-module`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from msdump.errors import ConfigError
from msdump.frontends.torch import backend as own_backend


def redirect_compile(name: str) -> None:
    """Let every `torch.compile` of this process use the backend of that name, whatever the script asks for.

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

    Raises: ConfigError for a backend that PyTorch does not know.
    """
    chosen = backend_of(backend_name)
    original = torch.nn.Module.__call__

    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if type(self).__name__ == name:
            _compile_instances(type(self), original, chosen)
        elif vars(sys.modules["__main__"]).get(name) is self:
            self.compile(backend=chosen)
        else:
            return original(self, *args, **kwargs)
        # From here on the capture must see the module's own way to be called.
        torch.nn.Module.__call__ = original  # type: ignore[method-assign]
        return self(*args, **kwargs)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign]


def backend_of(name: str) -> Any:
    """What `torch.compile` takes for a backend.   Raises: ConfigError naming what PyTorch knows."""
    if name == "msdump":
        return own_backend
    known = torch._dynamo.list_backends(exclude_tags=())
    if name not in known:
        raise ConfigError(f"--torch-backend: expected msdump or one of {sorted(known)}, got {name!r}.")
    return name


def _compile_instances(kind: type[torch.nn.Module], original: Callable[..., Any], backend: Any) -> None:
    """Compile each instance of a class when it is first called."""

    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is None and not torch.compiler.is_compiling():
            self.compile(backend=backend)
        return original(self, *args, **kwargs)

    kind.__call__ = call  # type: ignore[method-assign]

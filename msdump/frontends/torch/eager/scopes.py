"""Scopes: the modules around an operator, by hooks on all modules of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as hooks

from msdump.frontends.torch.places import ROOT


class Scopes:
    """Where each thread is among the modules that are called.

    is_looking  whether `current` is wanted from the next outermost module on; otherwise only those are told of
    is_ours     whether what runs in this thread belongs to the program: hooks hear the modules of all threads
    on_enter    called with the outermost module before it runs
    on_leave    called with the outermost module and its result

    The hooks are those of the process: one in a module would be copied and saved with it.
    """

    def __init__(
        self,
        is_ours: Callable[[], bool],
        on_enter: Callable[[torch.nn.Module], None],
        on_leave: Callable[[torch.nn.Module, Any], None],
    ) -> None:
        self.is_looking = True
        self._is_ours = is_ours
        self._on_enter = on_enter
        self._on_leave = on_leave
        self._threads = _Calls()
        self._handles: list[Any] = []

    def begin(self) -> None:
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def current(self) -> str:
        """Modules around what runs now, outermost first: `Default/features-Sequential/0-Conv2d`."""
        texts = self._threads.texts
        return texts[-1] if texts else ROOT

    @property
    def is_inside(self) -> bool:
        """Whether a module is being called in this thread."""
        return bool(self._threads.texts)

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        if not self._is_ours():
            return
        calls = self._threads
        texts = calls.texts
        if not texts:
            self._on_enter(module)
            calls.paths = {id(part): name for name, part in module.named_modules()} if self.is_looking else {}
            texts.append(ROOT)
            calls.names.append("")
            return
        above = calls.names[-1]
        if not self.is_looking:
            texts.append(ROOT)
            calls.names.append(above)
            return
        kind = type(module).__name__
        name = calls.paths.get(id(module))
        if name is None:
            text, name = kind, above
        else:
            own = name[len(above) + 1 :] if above and name.startswith(f"{above}.") else name
            text = f"{own}-{kind}"
        texts.append(f"{texts[-1]}/{text.replace('/', '_')}")
        calls.names.append(name)

    def _leave(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        calls = self._threads
        if calls.texts:
            calls.texts.pop()
            calls.names.pop()
            if not calls.texts:
                self._on_leave(module, result)


class _Calls(threading.local):
    """The calls that are under way in a thread: scopes, names below the outermost module, and the names of that."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.names: list[str] = []
        self.paths: dict[int, str] = {}

"""Scopes: the modules around an operator, by hooks on all modules of the process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as hooks

from msdump.frontends.torch.places import ROOT


class Scopes:
    """Where each thread is among the modules that are called.

    on_enter  called with the outermost module before it runs
    on_leave  called with the outermost module and its result
    """

    def __init__(
        self,
        on_enter: Callable[[torch.nn.Module], None],
        on_leave: Callable[[torch.nn.Module, Any], None],
    ) -> None:
        self._on_enter = on_enter
        self._on_leave = on_leave
        self._threads = _Calls()
        # Of each outermost module: its modules by identity, with their names.
        self._paths: weakref.WeakKeyDictionary[torch.nn.Module, dict[int, str]] = weakref.WeakKeyDictionary()
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
        calls = self._threads
        if not calls.texts:
            self._on_enter(module)
            self._paths[module] = {id(part): name for name, part in module.named_modules()}
            calls.paths = self._paths[module]
            calls.texts.append(ROOT)
            calls.names.append("")
            return
        kind = type(module).__name__
        name = calls.paths.get(id(module))
        above = calls.names[-1]
        if name is None:
            text, name = kind, above
        else:
            own = name[len(above) + 1 :] if above and name.startswith(f"{above}.") else name
            text = f"{own}-{kind}"
        calls.texts.append(f"{calls.texts[-1]}/{text.replace('/', '_')}")
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

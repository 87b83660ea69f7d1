"""What a module consists of, looked at once for as long as it stays the same: a model has hundreds of parts."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

import torch

# `torch.compile` puts a module into another one, under this name.
_COMPILED = "_orig_mod"
_DICTS = attrgetter("_parameters", "_buffers", "_modules")
_MAX_MODULES = 64


class ModuleParts:
    """Of one module; keeps nothing of it alive.

    paths   names of the parts, by their identities
    scopes  by the scope around a part, and its identity: its own scope and its name; filled by who needs them
    """

    def __init__(self, module: torch.nn.Module) -> None:
        parts = list(module.modules())
        self.paths = {id(part): plain_name(name) for name, part in module.named_modules()}
        self.scopes: dict[tuple[str, int], tuple[str, str]] = {}
        self.can_be_known = all(isinstance(each, dict) for part in parts for each in _DICTS(part))
        if self.can_be_known:
            tensors = [each for part in parts for own in (part._parameters, part._buffers) for each in own.values()]
            self._parts = [weakref.ref(part) for part in parts]
            self._tensors = [weakref.ref(each) for each in tensors if each is not None]
            self._state = _state_of(parts)

    def are_those_of(self, module: torch.nn.Module) -> bool:
        parts = [part() for part in self._parts]
        return (
            parts[0] is module
            and all(part is not None for part in parts)
            and all(tensor() is not None for tensor in self._tensors)
            and _state_of(parts) == self._state  # type: ignore[arg-type]
        )


def _state_of(parts: Sequence[torch.nn.Module]) -> tuple[list[object], ...]:
    """Identities of the dicts of modules and of what they hold, and their keys."""
    dicts = list(chain.from_iterable(map(_DICTS, parts)))
    values = chain.from_iterable(map(dict.values, dicts))
    return list(map(id, dicts)), list(chain.from_iterable(dicts)), list(map(id, values))


_known: dict[int, ModuleParts] = {}


def parts_of(module: torch.nn.Module) -> ModuleParts | None:
    """The same object as long as the module consists of the same; None where nobody can tell."""
    parts = _known.get(id(module))
    if parts is None or not parts.are_those_of(module):
        parts = ModuleParts(module)
        if not parts.can_be_known:
            return None
        if len(_known) >= _MAX_MODULES:
            _known.clear()
        _known[id(module)] = parts
    return parts


def plain_name(name: str) -> str:
    """Of a part of a module, without the modules that `torch.compile` put around parts of it."""
    if _COMPILED not in name:
        return name
    return ".".join(part for part in name.split(".") if part != _COMPILED)

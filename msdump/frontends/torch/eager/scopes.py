"""Scopes: the modules around an operator, or around the one that a backward operator computes the gradient of."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch._dynamo import OptimizedModule

from msdump.frontends.torch.eager.stage import FORWARD, SETUP, UPDATE, Named
from msdump.frontends.torch.places import BACKWARD_ROOT, ROOT

if TYPE_CHECKING:
    from torch.autograd.graph import Node

# `torch.compile` puts a module into another one, under this name.
_COMPILED = "_orig_mod"
# Operators of earlier iterations whose backward may still come.
_MAX_NODES = 1 << 17

_sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr")  # noqa: B009 - not for type checkers


class Scopes:
    """Where each thread is among the modules that are called.

    is_looking  whether `current` is wanted from the next outermost module on; otherwise only those are told of
    on_enter    called with the outermost module before it runs
    """

    def __init__(self, on_enter: Callable[[torch.nn.Module], None]) -> None:
        self.is_looking = True
        self._on_enter = on_enter
        self._threads = _Calls()

    @property
    def current(self) -> str:
        """Modules around what runs now, outermost first: `Default/features-Sequential/0-Conv2d`."""
        texts = self._threads.texts
        return texts[-1] if texts else ROOT

    @property
    def is_inside(self) -> bool:
        """Whether a module is being called in this thread."""
        return bool(self._threads.texts)

    @property
    def needs_no_more(self) -> bool:
        """Whether modules that are called inside of those that are being called make no difference."""
        return not self.is_looking

    def enter(self, module: torch.nn.Module) -> None:
        """A module is called. One that `torch.compile` made stands for the one inside of it."""
        calls = self._threads
        texts = calls.texts
        inner = calls.inner
        calls.inner = None
        if inner is module:
            texts.append(texts[-1])
            calls.names.append(calls.names[-1])
            return
        shown = module
        if isinstance(module, OptimizedModule):
            calls.inner = shown = module._orig_mod
        if not texts:
            self._on_enter(shown)
            calls.paths = _paths(shown) if self.is_looking else {}
            texts.append(ROOT)
            calls.names.append("")
            return
        above = calls.names[-1]
        if not self.is_looking:
            texts.append(ROOT)
            calls.names.append(above)
            return
        kind = type(shown).__name__
        name = calls.paths.get(id(module))
        if name is None:
            text, name = kind, above
        else:
            own = name[len(above) + 1 :] if above and name.startswith(f"{above}.") else name
            text = f"{own}-{kind}"
        texts.append(f"{texts[-1]}/{text.replace('/', '_')}")
        calls.names.append(name)

    def leave(self) -> None:
        """The last module that was entered has been left, be it by an exception."""
        calls = self._threads
        calls.inner = None
        if calls.texts:
            calls.texts.pop()
            calls.names.pop()


def plain_name(name: str) -> str:
    """Of a part of a module, without the modules that `torch.compile` put around parts of it."""
    if _COMPILED not in name:
        return name
    return ".".join(part for part in name.split(".") if part != _COMPILED)


def _paths(module: torch.nn.Module) -> dict[int, str]:
    return {id(part): plain_name(name) for name, part in module.named_modules()}


class _Calls(threading.local):
    """The calls that are under way in a thread: scopes, names below the outermost module, and the names of that.

    inner   the module that is about to be called by the one around it, which `torch.compile` made
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.names: list[str] = []
        self.paths: dict[int, str] = {}
        self.inner: torch.nn.Module | None = None


class NodeOperators:
    """The operator that each node of autograd is the gradient of, by the number of the node, and its scope.

    Nodes are numbered in the order in which they are made, so that one entry stands for all that were made for one
    operator. Source: PyTorch, the sequence number of a node, which each thread counts for itself.
    """

    def __init__(self) -> None:
        self._lasts: list[int] = []
        # Beside each other: as pairs they would be one object more for each operator that runs.
        self._scopes: list[str] = []
        self._operators: list[Named | None] = []

    def __len__(self) -> int:
        return len(self._lasts)

    def note(self, number: int, scope: str, operator: Named | None) -> None:
        """The nodes up to this number of which nothing is known yet were made for this operator."""
        lasts = self._lasts
        if not lasts or number > lasts[-1]:
            lasts.append(number)
            self._scopes.append(scope)
            self._operators.append(operator)

    def find(self, number: int) -> tuple[str, Named | None]:
        """Scope and operator; `ROOT` and None where they are not known."""
        index = bisect_left(self._lasts, number)
        return (self._scopes[index], self._operators[index]) if index < len(self._lasts) else (ROOT, None)

    def note_all(self, numbers: Sequence[int], scopes: Sequence[str], operators: Sequence[Named | None]) -> None:
        """As `note`, of nodes whose numbers rise, and are larger than all before."""
        self._lasts += numbers
        self._scopes += scopes
        self._operators += operators

    def forget(self, kept: int) -> None:
        """Keep so many entries, the newest; between two iterations, as a backward pass may reach back over some."""
        del self._lasts[:-kept], self._scopes[:-kept], self._operators[:-kept]


class OperatorScopes:
    """Scopes of the operators of all stages. Those of the backward have the scope of what they are the gradient of.

    forward   what the last one of the backward that was found is the gradient of; None where that is not known
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._nodes = NodeOperators()
        self._backward: dict[str, str] = {}
        self._around = ROOT
        self.forward: Named | None = None

    def begin(self) -> None:
        """An iteration begins."""
        self._nodes.forget(_MAX_NODES)

    def find(self, part: int, node: Node | None, optimizers: Sequence[str]) -> str:
        """Of an operator that is about to run.

        node        of autograd, which runs the operator; None outside of a backward pass
        optimizers  names of those whose steps are under way, the innermost last
        """
        scopes = self._scopes
        number = None if node is None or scopes.is_inside else node._sequence_nr()
        return self.find_at(part, scopes.current, number, optimizers)

    def find_at(self, part: int, current: str, number: int | None, optimizers: Sequence[str]) -> str:
        """The same of one that has run.

        current   `Scopes.current` when it ran
        number    of the node of autograd that ran it; None outside of a backward pass, and where a module is called
        """
        if part == UPDATE:
            self._around = f"{ROOT}/{optimizers[-1]}" if optimizers else current
            return self._around
        if part in (FORWARD, SETUP):
            scope = self._around = current
            return scope
        if number is None:
            scope, self.forward = current, None
        else:
            scope, self.forward = self._nodes.find(number)
        self._around = scope
        backward = self._backward.get(scope)
        if backward is None:
            backward = self._backward[scope] = BACKWARD_ROOT + scope.removeprefix(ROOT)
        return backward

    def note_nodes(self, operator: Named | None) -> None:
        """Nodes of autograd that were made since the last call are those of this operator, whose scope was found."""
        if torch.is_grad_enabled():
            # The first operator since a node of autograd was made is that of the node.
            self.note_made(_sequence_number() - 1, operator)

    def made_since(self, count: int) -> tuple[list[int], list[str], list[Named | None]]:
        """Numbers, scopes and operators of the entries since there were so many."""
        nodes = self._nodes
        return nodes._lasts[count:], nodes._scopes[count:], nodes._operators[count:]

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def note_all(self, numbers: Sequence[int], scopes: Sequence[str], operators: Sequence[Named | None]) -> None:
        """As `NodeOperators.note_all`."""
        self._nodes.note_all(numbers, scopes, operators)

    def note_made(self, number: int, operator: Named | None) -> None:
        """As `note_nodes`, of nodes up to this number."""
        self._nodes.note(number, self._around, operator)

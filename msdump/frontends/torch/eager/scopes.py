"""Scopes: the modules around an operator, or around the one that a backward operator computes the gradient of."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch._dynamo import OptimizedModule

from msdump.frontends.torch.eager.module_parts import ModuleParts, parts_of
from msdump.frontends.torch.eager.stage import FORWARD, SETUP, UPDATE, Named
from msdump.frontends.torch.places import BACKWARD_ROOT, ROOT

if TYPE_CHECKING:
    from torch.autograd.graph import Node

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
    def innermost(self) -> str | None:
        """The same; None where no module is being called in this thread."""
        texts = self._threads.texts
        return texts[-1] if texts else None

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
            parts = (parts_of(shown) or ModuleParts(shown)) if self.is_looking else None
            calls.paths, calls.scopes = ({}, {}) if parts is None else (parts.paths, parts.scopes)
            texts.append(ROOT)
            calls.names.append("")
            return
        above = calls.names[-1]
        if not self.is_looking:
            texts.append(ROOT)
            calls.names.append(above)
            return
        around = texts[-1]
        known = calls.scopes.get((around, id(module)))
        if known is None:
            known = self._scope_of(module, shown, around, above)
            if id(module) in calls.paths:  # as long as these are so, no other module has its identity
                calls.scopes[around, id(module)] = known
        texts.append(known[0])
        calls.names.append(known[1])

    def _scope_of(self, module: torch.nn.Module, shown: torch.nn.Module, around: str, above: str) -> tuple[str, str]:
        """Scope and name.   above: the name of the module around it"""
        calls = self._threads
        kind = type(shown).__name__
        name = calls.paths.get(id(module))
        if name is None:
            text, name = kind, above
        else:
            own = name[len(above) + 1 :] if above and name.startswith(f"{above}.") else name
            text = f"{own}-{kind}"
        return f"{around}/{text.replace('/', '_')}", name

    def leave(self) -> None:
        """The last module that was entered has been left, be it by an exception."""
        calls = self._threads
        calls.inner = None
        if calls.texts:
            calls.texts.pop()
            calls.names.pop()


class _Calls(threading.local):
    """The calls that are under way in a thread: scopes, names below the outermost module, and the names of that.

    paths, scopes  as of `ModuleParts`, of the outermost module
    inner   the module that is about to be called by the one around it, which `torch.compile` made
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.names: list[str] = []
        self.paths: dict[int, str] = {}
        self.scopes: dict[tuple[str, int], tuple[str, str]] = {}
        self.inner: torch.nn.Module | None = None


# Numbers of nodes, and the scope and operator of each.
Made = tuple[list[int], list[str], list["Named | None"]]


class NodeOperators:
    """The operator that each node of autograd is the gradient of, by the number of the node, and its scope.

    Nodes are numbered in the order in which they are made, so that one entry stands for all that were made for one
    operator. Source: PyTorch, the sequence number of a node, which each thread counts for itself.
    """

    def __init__(self) -> None:
        # Entries in pieces, so that what a program makes in each iteration is there once: of each piece what its
        # numbers count from, and its last number.
        self._pieces: list[Made] = []
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def begin(self, first: int = 0, made: Made | None = None) -> Made:
        """A further piece.

        first   what its numbers count from
        made    its entries, of nodes whose numbers rise, and are larger than all before; None: they come one by one
        """
        piece: Made = ([], [], []) if made is None else made
        last = self._ends[-1] if self._ends else -1
        self._pieces.append(piece)
        self._firsts.append(first)
        self._ends.append(first + piece[0][-1] if piece[0] else last)
        self._count += len(piece[0])
        return piece

    def note(self, number: int, scope: str, operator: Named | None) -> None:
        """The nodes up to this number of which nothing is known yet were made for this operator."""
        if not self._pieces:
            self.begin()
        if number > self._ends[-1]:
            self._ends[-1] = number
            self._count += 1
            numbers, scopes, operators = self._pieces[-1]
            numbers.append(number - self._firsts[-1])
            scopes.append(scope)
            operators.append(operator)

    def find(self, number: int) -> tuple[str, Named | None]:
        """Scope and operator; `ROOT` and None where they are not known."""
        piece = bisect_left(self._ends, number)
        while piece < len(self._ends) and not self._pieces[piece][0]:
            piece += 1
        if piece == len(self._ends):
            return ROOT, None
        numbers, scopes, operators = self._pieces[piece]
        index = bisect_left(numbers, number - self._firsts[piece])
        return scopes[index], operators[index]

    def forget(self, kept: int) -> None:
        """Keep so many entries, the newest; between two iterations, as a backward pass may reach back over some."""
        old = 0
        while old < len(self._pieces) and self._count - len(self._pieces[old][0]) >= kept:
            self._count -= len(self._pieces[old][0])
            old += 1
        del self._pieces[:old], self._firsts[:old], self._ends[:old]
        more = self._count - kept
        if more > 0:
            numbers, scopes, operators = self._pieces[0]
            self._pieces[0] = numbers[more:], scopes[more:], operators[more:]
            self._count = kept


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
        self._nodes.begin()

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

    def begin_part(self, first: int, made: Made | None = None) -> Made:
        """As `NodeOperators.begin`."""
        return self._nodes.begin(first, made)

    def note_made(self, number: int, operator: Named | None) -> None:
        """As `note_nodes`, of nodes up to this number."""
        self._nodes.note(number, self._around, operator)

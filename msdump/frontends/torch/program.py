"""Program: an FX graph as a list of calls, made once; values are freed after their last use."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import fx

from msdump.errors import GraphError

# What one call reads from the slots: a tuple of positional arguments.
Gather = Callable[[list[object]], Any]


@dataclass(frozen=True, slots=True)
class FxCall:
    """One node. `frees`: slots that are not read again."""

    node: fx.Node
    function: Callable[..., Any]
    gather: Gather
    keywords: Callable[[list[object]], dict[str, object]] | None
    out: int
    frees: tuple[int, ...]

    def run(self, slots: list[object]) -> Any:
        keywords = self.keywords(slots) if self.keywords is not None else {}
        return self.function(*self.gather(slots), **keywords)


class HasGraph(Protocol):
    """What holds an FX graph, and the constants that its get_attr nodes name."""

    @property
    def graph(self) -> fx.Graph: ...


class FxProgram:
    """Calls over a list of slots: first the placeholders, then constants and results.

    Boxed: the list of arguments is emptied, so that an argument is freed after its last use.
    """

    def __init__(self, module: HasGraph) -> None:
        self.placeholders: list[fx.Node] = []
        self.slot_by_node: dict[fx.Node, int] = {}
        self._start: list[object] = []
        calls: list[fx.Node] = []
        output: fx.Node | None = None
        for node in module.graph.nodes:
            self.slot_by_node[node] = len(self._start)
            self._start.append(None)
            if node.op == "placeholder":
                self.placeholders.append(node)
            elif node.op == "get_attr":
                self._start[-1] = operator.attrgetter(str(node.target))(module)
            elif node.op == "output":
                output = node
            elif node.op == "call_function":
                calls.append(node)
            else:
                raise GraphError(f"%{node.name}: expected a call of an operator, got {node.op} of {node.target}.")
        assert output is not None
        self._outputs = self._values(output.args[0])
        frees = self._last_uses(calls, output)
        self.calls = [self._call(node, frees.get(node, ())) for node in calls]
        self._quick = [(c.function, c.gather, c.keywords, c.out, c.frees) for c in self.calls]

    def begin(self, args: list[object]) -> list[object]:
        """The slots of one run; takes the arguments out of their list."""
        slots = self._start.copy()
        # Placeholders come first in every graph.
        slots[: len(args)] = args
        args.clear()
        return slots

    def outputs(self, slots: list[object]) -> Any:
        return self._outputs(slots)

    def run(self, args: list[object]) -> Any:
        """Run once, without observers."""
        slots = self.begin(args)
        for function, gather, keywords, out, frees in self._quick:
            if keywords is None:
                slots[out] = function(*gather(slots))
            else:
                slots[out] = function(*gather(slots), **keywords(slots))
            for slot in frees:
                slots[slot] = None
        return self._outputs(slots)

    # -- building ---------------------------------------------------------------------------------

    def _call(self, node: fx.Node, frees: Sequence[int]) -> FxCall:
        function: Any = node.target
        keywords = self._keywords(node.kwargs) if node.kwargs else None
        return FxCall(node, function, self._arguments(node.args), keywords, self.slot_by_node[node], tuple(frees))

    def _last_uses(self, calls: Sequence[fx.Node], output: fx.Node) -> dict[fx.Node, list[int]]:
        last: dict[fx.Node, fx.Node] = {}
        for node in (*self.placeholders, *calls):
            last[node] = node
            for used in node.all_input_nodes:
                last[used] = node
        kept = set(output.all_input_nodes)
        frees: dict[fx.Node, list[int]] = {}
        for used, user in last.items():
            is_constant = used.op == "get_attr"
            if used not in kept and not is_constant and user.op == "call_function":
                frees.setdefault(user, []).append(self.slot_by_node[used])
        return frees

    def _constant(self, value: object) -> int:
        self._start.append(value)
        return len(self._start) - 1

    def _arguments(self, args: Sequence[object]) -> Gather:
        """Flat arguments are fetched in one go; nested ones are built anew."""
        if any(isinstance(arg, tuple | list | dict | slice) and _has_node(arg) for arg in args):
            return self._values(tuple(args))
        slots = [self.slot_by_node[arg] if isinstance(arg, fx.Node) else self._constant(arg) for arg in args]
        if len(slots) > 1:
            return operator.itemgetter(*slots)
        if not slots:
            return lambda _: ()
        (only,) = slots
        return lambda values: (values[only],)

    def _keywords(self, kwargs: Mapping[str, object]) -> Callable[[list[object]], dict[str, object]]:
        if not any(_has_node(value) for value in kwargs.values()):
            constant = dict(kwargs)
            return lambda _: constant
        return self._values(dict(kwargs))

    def _values(self, value: Any) -> Gather:
        """What builds a nested value from the slots."""
        if isinstance(value, fx.Node):
            return operator.itemgetter(self.slot_by_node[value])
        if not _has_node(value):
            return lambda _: value
        if isinstance(value, dict):
            parts = {name: self._values(item) for name, item in value.items()}
            return lambda slots: {name: part(slots) for name, part in parts.items()}
        if isinstance(value, slice):
            start, stop, step = (self._values(item) for item in (value.start, value.stop, value.step))
            return lambda slots: slice(start(slots), stop(slots), step(slots))
        items = [self._values(item) for item in value]
        if isinstance(value, tuple):
            return lambda slots: tuple([item(slots) for item in items])
        return lambda slots: [item(slots) for item in items]


def _has_node(value: object) -> bool:
    if isinstance(value, fx.Node):
        return True
    if isinstance(value, dict):
        return any(_has_node(item) for item in value.values())
    if isinstance(value, slice):
        return any(_has_node(item) for item in (value.start, value.stop, value.step))
    return isinstance(value, tuple | list) and any(_has_node(item) for item in value)

"""Control edges for `torchair.ops.record` and `torchair.ops.wait`, as the streams of the FX graph say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from msdump.frontends.torchair.ge.graph import CONST, GeOp
from msdump.frontends.torchair.ops.library import RECORD, SCOPE_ENTER, SCOPE_EXIT, WAIT
from msdump.frontends.torchair.scope import STREAM, stream_of


class Event:
    """What `record` gave: the last operator of its stream at that moment; None when there was none."""

    def __init__(self, last: GeOp | None) -> None:
        self.last = last


class Streams:
    """The streams of one graph while it is converted, by the label of `scope.npu_stream_switch`; None: the default one.

    Source: TorchAir; an event is the last operator of the stream, and whatever the waiting stream does next gets a
    control edge from it.
    """

    def __init__(self) -> None:
        self._last: dict[str | None, GeOp] = {}
        self._awaited: dict[str | None, list[GeOp]] = {}
        self._entered: list[str | None] = []

    def is_for(self, node: fx.Node) -> bool:
        """Is it a node that orders others, and becomes no operator?"""
        return str(node.target) in (RECORD, WAIT, SCOPE_ENTER, SCOPE_EXIT)

    def call(self, node: fx.Node, args: Any) -> Event | None:
        """Such a node.   args: with Events and GeTensors in place of nodes"""
        stream = self._stream(node)
        target = str(node.target)
        if target == RECORD:
            return Event(self._last.get(stream))
        if target == WAIT:
            before = [item.last if isinstance(item, Event) else item.op for item in args[0]]
            self._awaited.setdefault(stream, []).extend(op for op in before if op is not None)
        elif target == SCOPE_ENTER:
            # A scope that says nothing about streams stays in the stream that it is in.
            self._entered.append(dict(zip(*args, strict=False)).get(STREAM, stream))
        elif self._entered:
            self._entered.pop()
        return None

    def note(self, node: fx.Node, created: Iterable[GeOp]) -> None:
        """Operators that an FX node became: the first ones after a wait come after what it waited for."""
        ops = [op for op in created if op.type != CONST]
        if not ops:
            return
        stream = self._stream(node)
        for before in self._awaited.pop(stream, ()):
            for op in ops:
                if before not in op.producers and before not in op.controls:
                    op.controls.append(before)
        self._last[stream] = ops[-1]

    def _stream(self, node: fx.Node) -> str | None:
        return self._entered[-1] if self._entered else stream_of(node)

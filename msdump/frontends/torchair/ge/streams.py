"""Control edges for `torchair.ops.record` and `torchair.ops.wait`, as the streams of the FX graph say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import fx

from msdump.frontends.torchair.ge.graph import CONST, GeOp, GeTensor
from msdump.frontends.torchair.scope import stream_of


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

    def record(self, node: fx.Node) -> Event:
        return Event(self._last.get(stream_of(node)))

    def wait(self, node: fx.Node, awaited: Sequence[Event | GeTensor]) -> None:
        before = [item.last if isinstance(item, Event) else item.op for item in awaited]
        self._awaited.setdefault(stream_of(node), []).extend(op for op in before if op is not None)

    def note(self, node: fx.Node, created: Iterable[GeOp]) -> None:
        """Operators that an FX node became: the first ones after a wait come after what it waited for."""
        ops = [op for op in created if op.type != CONST]
        if not ops:
            return
        stream = stream_of(node)
        for before in self._awaited.pop(stream, ()):
            for op in ops:
                if before not in op.producers and before not in op.controls:
                    op.controls.append(before)
        self._last[stream] = ops[-1]

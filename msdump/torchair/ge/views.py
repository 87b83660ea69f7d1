"""Chains of views: they wait until the last one is read, and become as few operators as it needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._prims_common import make_contiguous_strides_for

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import CONST, DATA, AtenCall, GeTensor, Size
from msdump.torchair.ge.registry import converter_of
from msdump.torchair.passes.fake_values import are_same, is_same, tensor_of
from msdump.torchair.scope import is_marked

log = logging.getLogger("msdump")

_RESHAPES = frozenset(("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"))
_TRANSPOSES = frozenset(("aten.permute.default", "aten.transpose.int", "aten.t.default"))

# Told the node and the tensor that stands for it, once it is made.
Finish = Callable[[fx.Node, GeTensor], None]


class NodeValues(dict[fx.Node, Any]):
    """What stands for each node of the FX graph. A view that waits is made when it is read."""

    def __init__(self, chains: ViewChains) -> None:
        super().__init__()
        self._chains = chains

    def __missing__(self, node: fx.Node) -> Any:
        self[node] = self._chains.make(node)
        return self[node]


@dataclass(frozen=True, eq=False, slots=True)
class _View:
    """A view that no operator stands for yet.

    base     what the first view of its chain reads
    nodes    the views of the chain, in order
    args     the arguments of each, after the tensor
    virtual  FakeTensor that the chain makes of a contiguous base: its strides say where an element comes from
    """

    base: GeTensor
    nodes: tuple[fx.Node, ...]
    args: tuple[tuple[object, ...], ...]
    virtual: Any

    @property
    def call(self) -> AtenCall:
        """The views of PyTorch, one after the other: a view as that of the FX graph, to the last stride."""
        first, *others = zip(self.nodes, self.args, strict=True)
        call = AtenCall(first[0], (self.base, *first[1]), {}, (None,))
        for node, args in others:
            call = AtenCall(node, (call, *args), {}, (None,))
        return call


class ViewChains:
    """The views of one FX graph while it is converted.

    Edges:  views of what does not lie contiguous, or has sizes that only a run tells, are made one by one; so are those
            inside of `scope.data_dump`, which are to be seen. Nothing waits across an operator that writes.
    Source: TorchAir, `enable_view_optimize`.
    """

    def __init__(self, ge: Builder, finish: Finish) -> None:
        self._ge = ge
        self._finish = finish
        self._waiting: dict[fx.Node, _View] = {}
        # Symbol, or what is reckoned from symbols -> the tensor that gives it; of so many operators.
        self._sizes: dict[object, GeTensor] = {}
        self._looked_at = 0
        # Bases that stand for a view which the graph returns.
        self._returned: set[GeTensor] = set()
        self.values = NodeValues(self)

    def takes(self, node: fx.Node) -> bool:
        """Whether a node is a view that can wait; it does then."""
        if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
            for waiting in list(self._waiting):
                self.values[waiting]
        if str(node.target) not in _RESHAPES | _TRANSPOSES or node.kwargs or is_marked(node):
            return False
        source: Any = node.args[0]
        view = self._waiting.get(source)
        longer = None if view is None else self._longer(node, view)
        if longer is None:
            base = self.values[source]
            longer = self._longer(node, _View(base, (), (), _contiguous(self._ge, base)))
        if longer is None:
            return False
        self._waiting[node] = longer
        return True

    def make(self, node: fx.Node) -> GeTensor:
        """The tensor that stands for a view."""
        view = self._waiting.pop(node)
        before, self._ge.node = self._ge.node, node
        start = len(self._ge.graph.ops)
        self._find_sizes()
        try:
            result = self._operators(view)
        except (LookupError, RuntimeError) as error:
            # Sizes that torch cannot reckon with: the views one by one are as good.
            log.debug("%s: its views stay operators each, as %s", node.name, error)
            self._ge.graph.take_back(start)
            result = self._plain(view)
        self._finish(node, result)
        self._ge.node = before
        return result

    def _longer(self, node: fx.Node, view: _View) -> _View | None:
        """The chain with one view more; None where that is no view of the base any more."""
        if view.virtual is None or tensor_of(node) is None:
            return None
        target: Any = node.target
        args: Any = fx.map_arg(node.args[1:], lambda item: item.meta["val"])
        try:
            with self._ge.fake_mode, enable_python_dispatcher(), torch.no_grad():
                virtual = target(view.virtual, *args)
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
            log.debug("%s: not a view of the chain before it, as %s", node.name, error)
            return None
        is_view = virtual.untyped_storage()._cdata == view.virtual.untyped_storage()._cdata
        if not is_view or any(_hint(number) is None for number in (*virtual.shape, *virtual.stride())):
            return None
        given = fx.map_arg(node.args[1:], self.values.__getitem__)
        return _View(view.base, (*view.nodes, node), (*view.args, given), virtual)

    def _find_sizes(self) -> None:
        """Learn which sizes the operators give that came since the last time."""
        for op in self._ge.graph.ops[self._looked_at :]:
            for tensor in op.outputs:
                if tensor.is_host and isinstance(tensor.value, torch.SymInt):
                    self._sizes.setdefault(tensor.value.node.expr, tensor)
        self._looked_at = len(self._ge.graph.ops)

    def _plain(self, view: _View) -> GeTensor:
        result = view.base
        for node, args in zip(view.nodes, view.args, strict=True):
            result = converter_of(node.target)(self._ge, result, *args)
        return result

    def _operators(self, view: _View) -> GeTensor:
        """Reshape, Transpose, Reshape, without those that change nothing; axes of size 1 are not transposed."""
        sizes = list(view.nodes[-1].meta["val"].shape)
        axes = [axis for axis, size in enumerate(sizes) if not is_same(size, 1)]
        strides = [_hint(stride) or 0 for stride in view.virtual.stride()]
        order = sorted(axes, key=strides.__getitem__, reverse=True)
        is_transposed = order != axes
        is_alone = len(view.nodes) == 1
        if is_alone and (len(axes) == len(sizes) if is_transposed else str(view.nodes[0].target) in _RESHAPES):
            return self._plain(view)
        result = view.base
        if is_transposed:
            result = self._reshaped(result, [sizes[axis] for axis in order])
            result = self._ge.op("Transpose", {"x": result, "perm": [order.index(axis) for axis in axes]})
        if not is_transposed and are_same(result.shape, sizes) and self._is_its_base(view):
            return result
        result = self._reshaped(result, sizes, is_new=result is view.base)
        result.op.exact = view.call
        return result

    def _is_its_base(self, view: _View) -> bool:
        """Whether the base can stand for the view: it lies in the same way, and one tensor is not returned for two."""
        node, read = view.nodes[-1], view.nodes[0].args[0]
        if not are_same(node.meta["val"].stride(), view.base.fake.stride()):
            return False
        if not _is_returned(node):
            return True
        is_taken = view.base.op.type in (DATA, CONST) or view.base in self._returned or _is_returned(read)
        self._returned.add(view.base)
        return not is_taken

    def _reshaped(self, x: GeTensor, sizes: Sequence[int | torch.SymInt], is_new: bool = False) -> GeTensor:
        if are_same(x.shape, sizes) and not is_new:
            return x
        given = [self._size(size, x) for size in sizes]
        if given.count(-1) > 1:
            raise LookupError(f"{sizes}: expected at most one unknown size (-1).")
        return self._ge.op("Reshape", {"x": x, "shape": self._ge.sizes(given)})

    def _size(self, size: int | torch.SymInt, x: GeTensor) -> Size:
        """A number, or what gives it in a run: a size that the graph has, or one of x; -1 where there is none."""
        if isinstance(size, int):
            return size
        if size.node.expr in self._sizes:
            return self._sizes[size.node.expr]
        axis = next((axis for axis, length in enumerate(x.shape) if is_same(length, size)), None)
        return -1 if axis is None else converter_of("aten.sym_size.int")(self._ge, x, axis)


def _contiguous(ge: Builder, base: object) -> torch.Tensor | None:
    """A FakeTensor as the base, in memory of its own; None for a base that is not contiguous."""
    fake = base.fake if isinstance(base, GeTensor) else None
    if fake is None or fake.layout is not torch.strided:
        return None
    if not are_same(fake.stride(), make_contiguous_strides_for(fake.shape)):
        return None
    with ge.fake_mode:
        return torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)


def _is_returned(node: Any) -> bool:
    return any(user.op == "output" for user in node.users)


def _hint(number: int | torch.SymInt) -> int | None:
    """The number that a size has where the graph was traced; None for one that only a run tells."""
    if isinstance(number, int):
        return number
    node = number.node
    return int(node.hint) if node.has_hint() else None

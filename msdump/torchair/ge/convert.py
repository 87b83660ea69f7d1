"""convert: an FX graph becomes a GeGraph, node by node."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from msdump.errors import GraphError
from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.torchair.ge.registry import NoConverterError, converter_of, is_registered
from msdump.torchair.ge.views import ViewChains
from msdump.torchair.ge.whole_call import can_call, convert_call, note_call
from msdump.torchair.ops.library import (
    RECORD,
    SCOPE_ENTER,
    SCOPE_EXIT,
    TAGGED_RECORD,
    TAGGED_STREAM,
    TAGGED_WAIT,
    WAIT,
    name_of,
)
from msdump.torchair.scope import NEVER_TIMEOUT, STREAM, attributes_of, stream_of


def convert(module: fx.GraphModule, graph_id: int, merges_views: bool = False) -> GeGraph:
    """Operator by operator, in the order of the FX graph.

    merges_views  views wait until they are read, and chains of them become few operators
    Inputs are Data operators of the placeholders' names; NetOutput gathers the distinct tensors that are returned.
    Edges:  what has no converter, or none for its arguments, is one operator that makes the call as it is.
    Raises: NoConverterError for a call that cannot be an operator; GraphError when a converter's result is not what
            the FX node promises, or a scope is left that nothing has entered.
    Source: TorchAir, FX to GE; it refuses what has no converter.
    """
    graph = GeGraph(graph_id)
    builder = Builder(graph, _fake_mode(module))
    chains = ViewChains(builder, _settle)
    values = chains.values
    streams, scopes = Streams(), OperatorScopes()
    for node in module.graph.nodes:
        builder.node = node
        if node.op == "placeholder":
            values[node] = _data(graph, node)
        elif node.op == "get_attr":
            attribute = operator.attrgetter(str(node.target))(module)
            # A graph in the graph is for the converter of its caller.
            values[node] = builder.const(attribute) if isinstance(attribute, torch.Tensor) else attribute
        elif node.op == "call_function":
            scopes.note(node)
            if _is_empty(node) or not (merges_views and chains.takes(node)):
                start = len(graph.ops)
                values[node] = _call(builder, streams, node, values)
                streams.note(node, graph.ops[start:])
        elif node.op == "output":
            _finish(builder, node, values)
        else:
            raise GraphError(f"%{node.name}: expected a call of an operator, got {node.op} of {node.target}.")
    builder.node = None
    scopes.mark(graph.ops)
    graph.lint()
    return graph


def _fake_mode(module: fx.GraphModule) -> Any:
    """The mode that made the graph's FakeTensors, so that one can compute with their sizes."""
    for node in module.graph.nodes:
        for value in _flat(node.meta.get("val")):
            if hasattr(value, "fake_mode"):
                return value.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True)


def _data(graph: GeGraph, node: fx.Node) -> GeTensor | None:
    val = node.meta.get("val")
    # What is no tensor and no number (None, a generator) is not handed over.
    index = len(graph.inputs)
    op = GeOp(node.name, DATA, attrs={"index": index}, fx_node=node)
    if isinstance(val, torch.Tensor):
        op.outputs = (GeTensor(op, 0, fake=val),)
    else:
        op.outputs = (GeTensor(op, 0, value=val),)
    graph.add(op)
    return op.outputs[0]


def _call(builder: Builder, streams: Streams, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    if streams.is_for(node):
        return streams.call(node, fx.map_arg(node.args, values.__getitem__))

    def value_of(used: fx.Node) -> Any:
        return _tensor_of(builder, used, values)

    args: Any = fx.map_arg(node.args, value_of)
    keywords: Any = fx.map_arg(node.kwargs, value_of)
    if node.target is operator.getitem:
        return args[0][args[1]]
    if _is_empty(node):
        result = _empty(builder, node.meta["val"])
        _name_outputs(node, result)
        return result
    start = len(builder.graph.ops)
    try:
        return _converted(builder, node, args, keywords)
    except NoConverterError:
        # What the script's own converter says is not to be passed over.
        if is_registered(node.target) or not can_call(node):
            raise
    # What the converter made before it gave up.
    builder.graph.take_back(start)
    result = convert_call(builder, node, values)
    _name_outputs(node, result)
    return result


def _converted(builder: Builder, node: fx.Node, args: tuple[object, ...], keywords: dict[str, object]) -> Any:
    """The operators that stand for a node.   Raises: NoConverterError where there are none for these arguments."""
    function = converter_of(node.target)
    start = len(builder.graph.ops)
    try:
        result = function(builder, *args, **keywords)
    except TypeError as error:
        if not any(isinstance(value, GeTensor) and value.is_host for value in _flat([*args, *keywords.values()])):
            raise
        raise NoConverterError(
            f"torch.ops.{node.target} ge_converter takes no size where one is given: {error}\n"
            f"%{node.name}: expected a number that is fixed when the graph is compiled, got a size that is open. "
            "Compile with dynamic=False, or dump with config.debug.data_dump, which takes every operator."
        ) from error
    _settle(node, result)
    note_call(node, args, keywords, result, builder.graph.ops[start:])
    return result


def _settle(node: fx.Node, result: object) -> None:
    """Hold what stands for a node against the node.   Raises: GraphError where it is something else."""
    _name_outputs(node, result)
    _check(node, result)
    _adopt(node, result)


def _tensor_of(builder: Builder, node: fx.Node, values: dict[fx.Node, object]) -> Any:
    """The value of a node; an event that something reads is the empty tensor which `record` returns."""
    if isinstance(values[node], RecordedEvent):
        values[node] = _empty(builder, node.meta["val"])
    return values[node]


def _is_empty(node: fx.Node) -> bool:
    """True for what has nothing to compute: every output is a tensor without elements, and nothing else happens.

    Source: TorchAir, zero-element outputs.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable or getattr(node.target, "namespace", "") != "aten":
        return False
    outputs = _flat(node.meta.get("val"))
    return bool(outputs) and all(
        isinstance(output, torch.Tensor) and all(type(size) is int for size in output.shape) and output.numel() == 0
        for output in outputs
    )


def _empty(builder: Builder, promised: Any) -> Any:
    if isinstance(promised, list | tuple):
        return tuple(_empty(builder, item) for item in promised)
    with unset_fake_temporarily():
        value = torch.empty(promised.shape, dtype=promised.dtype, device=promised.device)
    return builder.const(value)


def _name_outputs(node: fx.Node, result: object) -> None:
    """Note which output of the FX node a GE output is. A view of an input keeps the name that it has."""
    results = result if isinstance(result, list | tuple) else (result,)
    for index, tensor in enumerate(results):
        if isinstance(tensor, GeTensor) and not tensor.fx_name and tensor.op.fx_node is node:
            tensor.fx_name = f"{node.name}-{node.target}.OUTPUT.{index}"


def _check(node: fx.Node, result: object) -> None:
    """Check here what a converter gave, so that a wrong one does not show first in a loss."""
    expected, actual = _flat(node.meta.get("val")), _flat(result)
    for index, (promised, tensor) in enumerate(zip(expected, actual, strict=False)):
        if not isinstance(promised, torch.Tensor) or not isinstance(tensor, GeTensor):
            continue
        if tensor.dtype != promised.dtype or not _fits(tensor.shape, promised.shape):
            raise GraphError(
                f"%{node.name} ({node.target}): expected output {index} as {promised.dtype}{list(promised.shape)}, "
                f"its converter gave {tensor.dtype}{list(tensor.shape)}."
            )


def _adopt(node: fx.Node, result: object) -> None:
    """Sizes that are open are those of the FX graph, so that all computations with them mean the same symbols."""
    for promised, tensor in zip(_flat(node.meta.get("val")), _flat(result), strict=False):
        if not isinstance(tensor, GeTensor) or tensor.op.fx_node is not node or promised is None:
            continue
        if isinstance(promised, torch.Tensor) and not tensor.is_host:
            tensor.fake = promised
        elif tensor.is_host and not isinstance(promised, torch.Tensor):
            tensor.value = promised


def _fits(actual: Sequence[object], expected: Sequence[object]) -> bool:
    """Sizes that are open are not looked at: asking them would pin them down."""
    return len(actual) == len(expected) and all(
        mine == theirs for mine, theirs in zip(actual, expected, strict=True) if type(mine) is type(theirs) is int
    )


def _finish(builder: Builder, node: fx.Node, values: dict[fx.Node, object]) -> None:
    graph = builder.graph
    returned = node.args[0] if isinstance(node.args[0], list | tuple) else (node.args[0],)
    graph.outputs = [_tensor_of(builder, item, values) if isinstance(item, fx.Node) else item for item in returned]
    distinct = list(dict.fromkeys(tensor for tensor in graph.outputs if isinstance(tensor, GeTensor)))
    inputs = {f"input{index}": tensor for index, tensor in enumerate(distinct)}
    graph.add(GeOp("", NET_OUTPUT, dict(inputs), output_names=(), fx_node=node))


def _flat(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


class RecordedEvent:
    """Result of `record`: the last operator of its stream at that moment; None when there was none."""

    def __init__(self, last: GeOp | None) -> None:
        self.last = last


class Streams:
    """The streams of one graph while it is converted, by the label of `scope.npu_stream_switch`; None: the default one.

    Source: TorchAir; an event is the last operator of the stream, and the next operator of the waiting stream gets a
    control edge from it.
    """

    def __init__(self) -> None:
        self._last: dict[str | None, GeOp] = {}
        self._awaited: dict[str | None, list[GeOp]] = {}
        self._entered: list[str | None] = []
        self._tagged: dict[str, RecordedEvent] = {}

    def is_for(self, node: fx.Node) -> bool:
        """Is it a node that orders others, and becomes no operator?"""
        return name_of(node.target) in (
            RECORD, WAIT, SCOPE_ENTER, SCOPE_EXIT, TAGGED_RECORD, TAGGED_WAIT, TAGGED_STREAM,
        )  # fmt: skip

    def call(self, node: fx.Node, args: Any) -> RecordedEvent | None:
        """Such a node.   args: with Events and GeTensors in place of nodes"""
        stream = self._stream(node)
        target = name_of(node.target)
        if target == RECORD:
            return RecordedEvent(self._last.get(stream))
        if target == TAGGED_RECORD:
            self._tagged[args[0]] = RecordedEvent(self._last.get(stream))
        elif target == TAGGED_WAIT:
            event = self._tagged.get(args[0])
            self._wait(stream, [event.last if event is not None else None])
        elif target == WAIT:
            self._wait(stream, [item.last if isinstance(item, RecordedEvent) else item.op for item in args[0]])
        elif target == SCOPE_ENTER:
            # A scope that says nothing about streams stays in the stream that it is in.
            self._entered.append(dict(zip(*args, strict=False)).get(STREAM, stream))
        elif target == SCOPE_EXIT:
            self._entered.pop()
        return None

    def _wait(self, stream: str | None, before: Iterable[GeOp | None]) -> None:
        self._awaited.setdefault(stream, []).extend(op for op in before if op is not None)

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


class OperatorScopes:
    """Attributes that scopes set on operators of a graph, from functions and from passes.

    Source: TorchAir; all attributes are text but for one, and inner scopes come after outer ones.
    """

    def __init__(self) -> None:
        self._entered: list[dict[str, str]] = []
        self._said: dict[fx.Node, dict[str, str | bool]] = {}

    def note(self, node: fx.Node) -> None:
        """The next node of the graph.   Raises: GraphError where it leaves a scope that nothing has entered."""
        target = name_of(node.target)
        if target == SCOPE_ENTER:
            keys, values = node.args
            self._entered.append(dict(zip(keys, values, strict=False)))  # type: ignore[arg-type]
        elif target == SCOPE_EXIT:
            if not self._entered:
                raise GraphError(
                    f"%{node.name}: expected an air.scope_enter before it, got none. Put the scope "
                    "around the operators that it is for, or leave out the exit."
                )
            self._entered.pop()
        said = attributes_of(node)
        for entered in self._entered:
            said |= entered
        if said:
            self._said[node] = {key: value == "True" if key == NEVER_TIMEOUT else value for key, value in said.items()}

    def mark(self, ops: Iterable[GeOp]) -> None:
        """All operators have been made, those of views too, which wait until they are read."""
        for op in ops:
            if op.fx_node in self._said:
                op.scope = dict(self._said[op.fx_node])

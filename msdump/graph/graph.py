"""Graph: a program as data. SSA values, nodes in execution order, and which bytes each operand holds."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.primitive import Primitive, PrimitiveDef, definition_of
from msdump.graph.types import SourceLine, TensorType
from msdump.tensors.arrays import Array
from msdump.tensors.records import DEFAULT_FORMAT, OpInfo, TensorInfo, TensorKey

INPUT, PARAMETER, CONSTANT, RESULT = "input", "parameter", "constant", "result"
# An input that an earlier graph of the same step, or a loop around the nodes that read it, has made; it is no input of
# the user's, so it has no file of its own.
SAVED = "saved"
# Source: MindSpore, `set_dump`: forward and backward of these are one operator, so a mark shows the backward only.
_SHOWN_BACKWARD = frozenset({"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})


@dataclass(eq=False, slots=True)
class Parameter:
    """Named memory that outlives a run: a weight, an optimizer state.

    `array` is written in place by operators that mutate it and is never replaced by another array of other
    shape or dtype; a graph binds to this very memory.
    """

    name: str
    array: Array
    dtype: str


@dataclass(eq=False, slots=True)
class Value:
    """One tensor of the program; equal only to itself.

    kind       "input", "saved", "parameter", "constant" or "result"
    node, index   who makes it and as which output; None, 0 unless kind is "result"
    parameter  the memory behind kind "parameter"
    constant   the data behind kind "constant" (read only)
    format     device format, DefaultFormat unless a pass chose another; `sub_format` is its group count, if any
    original   name and output of the operator that it is in the program as the user wrote it; None where unknown
    """

    id: int
    type: TensorType
    kind: str
    name: str = ""
    node: Node | None = None
    index: int = 0
    parameter: Parameter | None = None
    constant: Array | None = None
    format: str = DEFAULT_FORMAT
    sub_format: int = 0
    original: tuple[str, int] | None = None


@dataclass(eq=False, slots=True)
class Node:
    """One call of a primitive.

    scope     full name without the last component ("Default/network-WithLossCell/...")
    op_id     number at the end of the full name; unique in the graph once `Graph.number` ran
    source    the user's lines, outermost first
    forward   for a backward node: the forward node it belongs to
    stage     "forward", "backward" or "update" (optimizer): what the scheduler goes by
    has_mark  the script marked the cell or primitive that made it (`set_dump`)
    name      full name that the model gives it; "": one of scope, type and number
    regions   of a node that decides what runs: the parts of the program that it runs
    owner     the node that decides whether and how often it runs, which ends after it; None: it runs once
    loops     of a node that runs several times: lengths of the beginnings of its name behind which the name of one
              of its runs has the number of that run, outermost loop first
    """

    id: int
    primitive: Primitive
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    scope: str
    source: tuple[SourceLine, ...] = ()
    forward: Node | None = None
    stage: str = "forward"
    op_id: int = -1
    stream_id: int = 0
    has_mark: bool = False
    name: str = ""
    regions: tuple[Graph, ...] = ()
    owner: Node | None = None
    loops: tuple[int, ...] = ()

    @property
    def op_type(self) -> str:
        return self.primitive.op_type

    @property
    def definition(self) -> PrimitiveDef:
        return self.primitive.definition or definition_of(self.primitive.op_type)

    @property
    def full_name(self) -> str:
        """Source: MindSpore IR, `{scope}/{Type}-op{N}`."""
        if self.name:
            return self.name
        last = f"{self.op_type}-op{self.op_id}"
        return f"{self.scope}/{last}" if self.scope else last

    @property
    def run_pattern(self) -> re.Pattern[str] | None:
        """What the names of its runs are like; None for a node that has one name."""
        if not self.loops:
            return None
        ends = (0, *self.loops, len(self.full_name))
        pieces = [re.escape(self.full_name[begin:end]) for begin, end in itertools.pairwise(ends)]
        return re.compile("[0-9]+/".join(pieces))

    @property
    def is_marked(self) -> bool:
        """Marked itself, or as the backward of a marked node.   Source: MindSpore, `set_dump`."""
        return self.has_mark or (self.forward is not None and self.forward.is_marked)

    @property
    def where(self) -> str:
        """For messages: the node as text and the innermost user line."""
        operands = ", ".join(f"%{value.name or value.id}" for value in self.inputs)
        text = f"%{self.id} = {self.op_type}({operands})"
        return f"{text} at {self.source[-1]}" if self.source else text


@dataclass(eq=False)
class Graph:
    """A compiled program: `nodes` is the execution order.

    Parameters are listed in the order in which they are dumped and shown in the IR.
    held       ids of values whose memory is immutable while it is referenced: they need no copies
    borrowed   ids of values in user memory, which is stable until the run ends
    is_dynamic  compiled for inputs whose shape the script has declared open
    gradient_of  id of an output -> name of the input of the model whose gradient it is, where another library tells it
    is_entry   where a run of the program begins; False for the further graphs of a program with control flow
    written    ids of parameters that an operator of the program writes
    is_open    more operators may come: of a program that runs without having been compiled
    """

    name: str = "kernel_graph_0"
    graph_id: int = 0
    inputs: list[Value] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    parameter_order: list[Value] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    borrowed: set[int] = field(default_factory=set)
    is_dynamic: bool = False
    gradient_of: dict[int, str] = field(default_factory=dict)
    is_entry: bool = True
    written: set[int] = field(default_factory=set)
    is_open: bool = False
    # The next id, in a list that graphs of one program share.
    _next_id: list[int] = field(default_factory=lambda: [0])

    # -- building ---------------------------------------------------------------------------------

    def _new_id(self) -> int:
        self._next_id[0] += 1
        return self._next_id[0] - 1

    def part(self) -> Graph:
        """An empty graph of the same program: ids of nodes and values are unique in all of it."""
        return Graph(self.name, self.graph_id, is_entry=False, written=self.written, _next_id=self._next_id)

    def add_input(self, name: str, type: TensorType, kind: str = INPUT) -> Value:
        """`kind`: "input", "saved", or "parameter" for one whose memory another library owns."""
        value = Value(self._new_id(), type, kind, name)
        (self.parameters if kind == PARAMETER else self.inputs).append(value)
        return value

    def add_parameter(self, parameter: Parameter) -> Value:
        """The value of a parameter; asking twice for the same parameter gives the same value."""
        for known in self.parameters:
            if known.parameter is parameter:
                return known
        type = TensorType(parameter.dtype, tuple(parameter.array.shape))
        value = Value(self._new_id(), type, PARAMETER, parameter.name, parameter=parameter)
        self.parameters.append(value)
        return value

    def add_constant(self, array: Array, dtype: str, name: str = "") -> Value:
        data = np.array(array, copy=True, order="C")
        data.flags.writeable = False
        value = Value(self._new_id(), TensorType(dtype, tuple(data.shape)), CONSTANT, name, constant=data)
        self.constants.append(value)
        return value

    def add_node(
        self,
        primitive: Primitive,
        inputs: Sequence[Value],
        scope: str,
        source: Iterable[SourceLine] = (),
        forward: Node | None = None,
        stage: str = "forward",
    ) -> Node:
        """Append a node; its outputs get the types that `infer` gives.

        Raises: KernelNotFoundError for an unknown type, GraphError when operands do not fit.
        """
        definition = primitive.definition or definition_of(primitive.op_type)
        node = Node(self._new_id(), primitive, tuple(inputs), (), scope, tuple(source), forward, stage)
        if definition.infer is None:
            raise GraphError(f"{node.where}: {primitive.op_type} has no shape rule (infer).")
        try:
            types = definition.infer([value.type for value in inputs], primitive.attrs)
        except GraphError as error:
            raise type(error)(f"{node.where}: {error}") from error
        node.outputs = tuple(Value(self._new_id(), t, RESULT, node=node, index=i) for i, t in enumerate(types))
        self.written.update(inputs[slot].id for slot in definition.mutates if inputs[slot].kind == PARAMETER)
        self.nodes.append(node)
        return node

    def add_foreign_node(
        self,
        primitive: Primitive,
        inputs: Sequence[Value],
        output_types: Sequence[TensorType],
        scope: str,
        source: Iterable[SourceLine] = (),
        forward: Node | None = None,
        stage: str = "forward",
        name: str = "",
    ) -> Node:
        """Append a node of another library's operator, whose output types that library has found out."""
        node = Node(self._new_id(), primitive, tuple(inputs), (), scope, tuple(source), forward, stage, name=name)
        node.outputs = tuple(Value(self._new_id(), t, RESULT, node=node, index=i) for i, t in enumerate(output_types))
        self.nodes.append(node)
        return node

    # -- after building ---------------------------------------------------------------------------

    def number(self, first: int = 0) -> None:
        """Give every node its op id, in execution order, so that full names are unique in the graph."""
        for op_id, node in enumerate(self.nodes, first):
            node.op_id = op_id

    @property
    def owners(self) -> set[int]:
        """Ids of the nodes that run other nodes of the graph: what they give, those have made."""
        return {node.owner.id for node in self.nodes if node.owner is not None}

    @property
    def handed_in(self) -> list[Value]:
        """The inputs that come from outside of the program."""
        return [value for value in self.inputs if value.kind != SAVED]

    @property
    def kernels(self) -> list[Node]:
        """Nodes that are launched, in execution order; bookkeeping nodes (Depend) are not among them."""
        return [node for node in self.nodes if node.definition.is_kernel]

    def dumped_parameters(self) -> list[Value]:
        """Graph inputs in dump order: `parameter_order` when a frontend set it, else parameters then inputs."""
        return self.parameter_order or [*self.parameters, *self.inputs]

    def lint(self) -> None:
        """Check that the program is well formed.

        Raises: GraphError naming node and source line: an operand used before it is made, an unknown operand,
        output types that disagree with infer, two nodes of one name, an unknown graph output.
        """
        known = {value.id for value in (*self.inputs, *self.parameters, *self.constants)}
        names: dict[str, Node] = {}
        for node in self.nodes:
            for slot, value in enumerate(node.inputs):
                if value.id not in known:
                    raise GraphError(
                        f"{node.where}: input {slot} (%{value.name or value.id}) is used before it is made."
                    )
            definition = node.definition
            if definition.infer is not None:
                expected = definition.infer([value.type for value in node.inputs], node.primitive.attrs)
                actual = tuple(value.type for value in node.outputs)
                if expected != actual:
                    raise GraphError(f"{node.where}: expected outputs {_types(expected)}, got {_types(actual)}.")
            if node.op_id >= 0 and names.setdefault(node.full_name, node) is not node:
                raise GraphError(f"{node.where}: the name {node.full_name} is taken by {names[node.full_name].where}.")
            known.update(value.id for value in node.outputs)
        for value in self.outputs:
            if value.id not in known:
                raise GraphError(f"graph {self.name}: output %{value.name or value.id} is made by no node.")

    def op_infos(self) -> list[OpInfo]:
        """Static identity of every kernel, with the TensorKey of each operand, in execution order.

        Task ids are launch ordinals. A mutated parameter read before and after has two keys.
        """
        keys = KeyTable(self)
        differentiated = {node.forward.id for node in self.nodes if node.forward is not None}
        infos: list[OpInfo] = []
        for node in self.nodes:
            input_keys = [keys.of(value) for value in node.inputs]
            keys.run(node)
            if not node.definition.is_kernel:
                continue
            index = len(infos)
            infos.append(
                OpInfo(
                    self.graph_id,
                    index,
                    node.op_type,
                    node.full_name,
                    index,
                    node.stream_id,
                    tuple(_info(v, k) for v, k in zip(node.inputs, input_keys, strict=True)),
                    tuple(_info(v, keys.of(v)) for v in node.outputs),
                    node.definition.mutates,
                    node.is_marked and not (node.op_type in _SHOWN_BACKWARD and node.id in differentiated),
                )
            )
        return infos

    def final_keys(self) -> dict[int, TensorKey]:
        """Value id -> key of each parameter and input after the last node ran."""
        keys = KeyTable(self)
        for node in self.nodes:
            keys.run(node)
        return {value.id: keys.of(value) for value in (*self.parameters, *self.inputs)}


def run_name(full_name: str, loops: Sequence[int], numbers: Sequence[int]) -> str:
    """Name of one run of a node that runs several times: `loop/body/add` is `loop/body/2/add` in the third.

    loops     as of `Node`
    numbers   of the run, counted from 0, in each of the loops
    """
    ends = (0, *loops, len(full_name))
    pieces = [full_name[begin:end] for begin, end in itertools.pairwise(ends)]
    return pieces[0] + "".join(f"{number}/{piece}" for number, piece in zip(numbers, pieces[1:], strict=True))


class KeyTable:
    """TensorKeys while walking the execution order: `of` before and after `run` of a node."""

    def __init__(self, graph: Graph) -> None:
        self._version: dict[int, int] = {}
        self._fixed: dict[int, TensorKey] = {}
        self._storage: dict[int, int] = {}
        for value in (*graph.inputs, *graph.parameters, *graph.constants):
            self._storage[value.id] = value.id

    def of(self, value: Value) -> TensorKey:
        """Key of `value` as it stands now."""
        fixed = self._fixed.get(value.id)
        if fixed is not None:
            return fixed
        storage = self._storage[value.id]
        return TensorKey(storage, self._version.get(storage, 0))

    def run(self, node: Node) -> None:
        """Account for what `node` writes."""
        definition = node.definition
        for slot in definition.mutates:
            storage = self.of(node.inputs[slot]).value_id
            self._version[storage] = self._version.get(storage, 0) + 1
        for value in node.outputs:
            if value.index in definition.aliases:
                self._storage[value.id] = self.of(node.inputs[definition.aliases[value.index]]).value_id
            elif value.index in definition.views:
                self._fixed[value.id] = self.of(node.inputs[definition.views[value.index]])
            else:
                self._storage[value.id] = value.id


def _info(value: Value, key: TensorKey) -> TensorInfo:
    return TensorInfo(key, value.type.dtype, value.type.shape, value.format, value.sub_format, value.original)


def _types(types: Sequence[Any]) -> str:
    return "(" + ", ".join(str(type) for type in types) + ")"

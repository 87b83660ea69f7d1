"""GeGraph: operators in execution order, with the names and edges that Ascend's graph engine gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from msdump.errors import GraphError

DATA, CONST, NET_OUTPUT, ASSIGN = "Data", "Const", "NetOutput", "Assign"


@dataclass(eq=False, slots=True)
class GeTensor:
    """One output of an operator.

    index    which output
    fake     FakeTensor with its dtype and shape; None for a host value
    value    what is known of it when the graph is compiled: the number or list of a Const, ints and SymInts of a
             shape; None when nothing is. A host value (`is_host`) is never a tensor while the graph runs either. That
             of a text is the text itself, which only a run tells: any str stands for it
    fx_name  `add-aten.add.Tensor.OUTPUT.0`: the output of the FX node that it is; "" when it is in between
    view_of  the input of its operator whose memory it shares; None for memory of its own
    """

    op: GeOp
    index: int
    fake: Any = None
    value: Any = None
    fx_name: str = ""
    view_of: GeTensor | None = None

    @property
    def is_host(self) -> bool:
        """True for sizes, Python ints or lists of them, and for text."""
        return self.fake is None

    @property
    def is_text(self) -> bool:
        """True for a string."""
        return self.fake is None and isinstance(self.value, str)

    @property
    def original(self) -> tuple[str, int] | None:
        """The FX node's name, and which of its outputs it is; None when it is in between."""
        node, _, index = self.fx_name.rpartition(".OUTPUT.")
        return (node.partition("-")[0], int(index)) if node else None

    @property
    def path(self) -> Path:
        """Its index in what its operator returns."""
        if self.op.call is not None:
            return self.op.call.paths[self.index]
        return () if len(self.op.outputs) == 1 else (self.index,)

    @property
    def name(self) -> str:
        """`Add_1:0`, as edges say it."""
        return f"{self.op.name}:{self.index}"

    @property
    def dtype(self) -> torch.dtype:
        """Its dtype; that of a Python value is the one that torch gives it."""
        return _size_dtype(self.value) if self.fake is None else self.fake.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes: ints, and SymInts where they are open."""
        if self.fake is not None:
            return tuple(self.fake.shape)
        return (len(self.value),) if isinstance(self.value, list | tuple) else ()


# A number as an argument of the FX graph, or what a kernel gets for one; in a fake run an open size passes for an int.
Scalar = int | float | complex
# What a converter gets for a size, and for a number: the tensor that gives it where only a run tells.
Size = int | GeTensor
Dims = int | Sequence[int] | None
Operand = GeTensor | int | float | complex


def _size_dtype(value: object) -> torch.dtype:
    """What GE holds a Python value in."""
    item = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(item, bool | torch.SymBool):
        return torch.bool
    return torch.float32 if isinstance(item, float | torch.SymFloat) else torch.int64


@dataclass(frozen=True, slots=True)
class AtenCall:
    """The call of the FX graph that several operators stand for; one of its results is the operator's output.

    args, keywords  with GeTensors in place of nodes, or with the calls that come before
    indices         which result each output is; None where the call has one
    """

    node: fx.Node
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    indices: tuple[int | None, ...]


# Path to a value in what a call returns: indices into tuples, from the outermost.
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArgumentSlot:
    """Index of an operator's input among the arguments of a call."""

    index: int


@dataclass(frozen=True, eq=False, slots=True)
class WholeCall:
    """The call of the FX graph that an operator without a GE form makes as it is.

    args, keywords  with Slots in place of what comes in
    paths           where each output of the operator lies in what the call returns
    tells_aliases   the target says which of its results share memory with what it reads; others may, unsaid
    """

    target: Callable[..., Any]
    args: tuple[object, ...]
    keywords: dict[str, object]
    paths: tuple[Path, ...]
    tells_aliases: bool

    def run(self, *inputs: object, **_: object) -> Any:
        """_: the attributes, which are in the arguments already"""
        args, keywords = _filled((self.args, self.keywords), inputs)
        return self.target(*args, **keywords)


def _filled(value: object, inputs: Sequence[object]) -> Any:
    if isinstance(value, ArgumentSlot):
        return inputs[value.index]
    if isinstance(value, tuple | list):
        return type(value)([_filled(item, inputs) for item in value])
    if isinstance(value, dict):
        return {name: _filled(item, inputs) for name, item in value.items()}
    return value


@dataclass(eq=False, slots=True)
class GeOp:
    """One operator.

    name      unique in its graph
    inputs    by the name of the operator's interface, in order; None: an optional one that nothing feeds
    attrs     bool, int, float, str, and lists of these
    scope     attributes that `torchair.scope` has set; a kernel knows nothing of them
    constant  tensor of a Const; None for others
    hints     what the kernel has to know and GE has no attribute for; goes into no graph dump
    is_inline a Const that the converter gave as a plain Python value
    fx_node   the FX node that it comes from; None for what passes add
    controls  operators that must have run before
    exact     what gives its output to the last bit, where operators one by one would round in between
    call      what it computes, where its type has no kernel; None: the kernel of its type
    open_attrs  names of inputs, the last ones, that are attributes whose value only a run tells, such as a size
    """

    name: str
    type: str
    inputs: dict[str, GeTensor | None] = field(default_factory=dict)
    attrs: dict[str, object] = field(default_factory=dict)
    output_names: tuple[str, ...] = ("y",)
    outputs: tuple[GeTensor, ...] = ()
    constant: torch.Tensor | None = None
    hints: dict[str, Any] = field(default_factory=dict)
    is_inline: bool = False
    fx_node: fx.Node | None = None
    controls: list[GeOp] = field(default_factory=list)
    open_attrs: frozenset[str] = frozenset()
    scope: dict[str, str | bool] = field(default_factory=dict)
    exact: AtenCall | None = None
    call: WholeCall | None = None

    @property
    def producers(self) -> Iterator[GeOp]:
        """Operators whose outputs it reads, one per input that is fed."""
        return (tensor.op for tensor in self.inputs.values() if tensor is not None)


class GeGraph:
    """One graph. `ops` is the execution order; what reads a value comes after what makes it.

    name         `graph_1`
    arguments    Data operators, one per argument of the FX graph, those included that passes took out
    outputs      what it returns, one per output of the FX graph; None where that returns None, and Python values as
                 such
    write_backs  tensors that end in an argument's memory, each with its Data, in the order of writing
    """

    def __init__(self, graph_id: int) -> None:
        self.graph_id = graph_id
        self.name = f"graph_{graph_id}"
        self.ops: list[GeOp] = []
        self.arguments: list[GeOp] = []
        self.outputs: list[object] = []
        self.write_backs: list[tuple[GeOp, GeTensor]] = []
        self._names: set[str] = set()
        self._next_of_type: dict[str, int] = {}

    @property
    def inputs(self) -> list[GeOp]:
        """Data operators that are left, in the order of the arguments."""
        return [op for op in self.ops if op.type == DATA]

    def add(self, op: GeOp) -> GeOp:
        """Append an operator; an empty name becomes the next free one of its type: Add, Add_1, ...

        Raises: GraphError for a name that is taken.
        Source: TorchAir, names of GE operators.
        """
        op.name = self._free_name(op.type) if not op.name else self._claimed(op.name)
        self.ops.append(op)
        if op.type == DATA:
            self.arguments.append(op)
        return op

    def rename(self, op: GeOp, name: str) -> None:
        """Raises: GraphError for a name that is taken."""
        op.name = self._claimed(name)

    def insert_after(self, earlier: GeOp, op: GeOp) -> GeOp:
        """As `add`, right after another operator."""
        self.add(op)
        self.ops.insert(self.ops.index(earlier) + 1, self.ops.pop())
        return op

    def remove(self, ops: Iterable[GeOp]) -> None:
        """Take operators out. Their names stay taken."""
        gone = set(map(id, ops))
        self.ops = [op for op in self.ops if id(op) not in gone]

    def take_back(self, start: int) -> None:
        """Remove the operators from this index on, as if they had never been added."""
        for op in self.ops[start:]:
            self._names.discard(op.name)
            # The next search begins at the first name.
            self._next_of_type.pop(op.type, None)
        del self.ops[start:]

    def replace_uses(self, old: GeTensor, new: GeTensor) -> None:
        """Let every reader of `old` read `new`, the graph's outputs and what is written back included."""
        for op in self.ops:
            for name, tensor in op.inputs.items():
                if tensor is old:
                    op.inputs[name] = new
        self.outputs = [new if output is old else output for output in self.outputs]
        self.write_backs = [(data, new if tensor is old else tensor) for data, tensor in self.write_backs]

    def readers(self, tensor: GeTensor) -> list[GeOp]:
        """Operators that read it; NetOutput is one of them where the graph returns it."""
        return [op for op in self.ops if any(read is tensor for read in op.inputs.values())]

    def lint(self) -> None:
        """Raises: GraphError naming an operator that reads what is not made before it, or a name that is taken."""
        computed: set[int] = set()
        names: set[str] = set()
        for op in self.ops:
            if op.name in names:
                raise GraphError(f"{self.name}: expected one operator of the name {op.name}, got two.")
            names.add(op.name)
            for name, tensor in op.inputs.items():
                if tensor is not None and id(tensor) not in computed:
                    raise GraphError(f"{self.name}: {op.name} reads {name} = {tensor.name} before it is made.")
            computed.update(map(id, op.outputs))
        for output in (*self.outputs, *(tensor for _, tensor in self.write_backs)):
            if isinstance(output, GeTensor) and id(output) not in computed:
                raise GraphError(f"{self.name}: output {output.name} is made by no operator.")

    def _free_name(self, op_type: str) -> str:
        number = self._next_of_type.get(op_type, 0)
        while (name := f"{op_type}_{number}" if number else op_type) in self._names:
            number += 1
        self._next_of_type[op_type] = number + 1
        return self._claimed(name)

    def _claimed(self, name: str) -> str:
        if name in self._names:
            raise GraphError(f"{self.name}: expected a name of its own for each operator, got {name} twice.")
        self._names.add(name)
        return name

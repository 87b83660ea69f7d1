"""Operators that have no GE form of their own: each becomes one GE operator that makes the call of the FX graph.

So are custom operators, and those that call other graphs (cond, while_loop, flex_attention): one operator, whose inputs
and outputs are those of the call.

Where several GE operators stand for an ATen operator, they would round where ATen does not: the last of them then gives
the result of ATen itself; those in between compute what their types say.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import fx

from msdump.frontends.torch.operators import is_collective, op_type, plain
from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import (
    CONST,
    DATA,
    NET_OUTPUT,
    ArgumentSlot,
    AtenCall,
    GeOp,
    GeTensor,
    Path,
    WholeCall,
)
from msdump.torchair.ge.registry import has_kernel
from msdump.torchair.passes.fake_values import computed

_UNKNOWN = object()
_TELLING_NAMESPACES = ("aten", "prims", "_c10d_functional")


def can_call(node: fx.Node) -> bool:
    """Whether the call of a node can be an operator: what it gives is known, and it writes into nothing that it reads.

    Edges: custom operators that write are no such nodes; AOT Autograd wraps them, and the wrapper copies first.
    """
    schema = getattr(node.target, "_schema", None)
    is_pure = schema is None or not schema.is_mutable
    return callable(node.target) and is_pure and _promised(node) is not _UNKNOWN


def _promised(node: fx.Node) -> Any:
    """What the call gives: its FakeTensors.

    Edges:  the wrappers that checkpoint puts around random operators come without; the readers of their results know.
    """
    if "val" in node.meta:
        return node.meta["val"]
    items: dict[Any, Any] = {
        user.args[1]: user.meta["val"] for user in node.users if user.target is operator.getitem and "val" in user.meta
    }
    if items and len(items) == len(node.users):
        return tuple(items.get(index) for index in range(max(items) + 1))
    value = computed(node.target, node.args, node.kwargs)
    return _UNKNOWN if value is None else value


def convert_call(ge: Builder, node: fx.Node, values: Mapping[fx.Node, object]) -> Any:
    """One operator for the call; what it returns has the form of what the node returns.

    Its type is made from the operator's name, its inputs and attributes have the names of the arguments. Of a list
    with tensors each item is an input or an attribute of its own: `operands0`, `operands1`.
    """
    target: Any = node.target
    args = _Arguments(values)
    named = list(_named(target, node.args, node.kwargs))
    count = len(node.args)
    given = tuple(args.place(name, value) for name, value in named[:count])
    keywords = {key: args.place(name, value) for key, (name, value) in zip(node.kwargs, named[count:], strict=True)}
    promised = _promised(node)
    results = dict(_leaves(promised))
    call = WholeCall(
        _waiting(target) if is_collective(target) else target,
        given,
        keywords,
        tuple(results),
        getattr(target, "namespace", "") in _TELLING_NAMESPACES,
    )
    outputs = ge.call(
        ge_type(target, node.args), args.inputs, args.attrs, _output_names(target, results), results, call
    )
    return _rebuilt(promised, dict(zip(results, outputs, strict=True)), ())


def ge_type(target: object, args: tuple[object, ...] = ()) -> str:
    """`Histc` for aten.histc.default: the words of the name, without those of its overload.

    Edges: an operator that calls another one, such as run_and_save_rng_state, has that one's name. A type that is taken
           has the namespace before it: `MylibAdd`.
    """
    target = _inner(target, args) or target
    parts = op_type(target).split(".")
    namespace, name = (parts[0], parts[1]) if isinstance(target, torch._ops.OpOverload) else ("torch", parts[-1])
    camel = _camel(name) or "Call"
    is_taken = has_kernel(camel) or camel in (DATA, CONST, NET_OUTPUT)
    return _camel(namespace) + camel if is_taken else camel


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _inner(target: object, args: tuple[object, ...]) -> torch._ops.OpOverload | None:
    """The operator that an operator of higher order is told to call; None where there is none."""
    if not isinstance(target, torch._ops.HigherOrderOperator):
        return None
    return next((arg for arg in args if isinstance(arg, torch._ops.OpOverload)), None)


def _named(target: object, args: tuple[object, ...], keywords: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Name and value of each argument, in order."""
    names = _argument_names(target) + _argument_names(_inner(target, args))
    names += [f"arg{index}" for index in range(len(names), len(args))]
    yield from zip(names, args, strict=False)
    yield from ((name.strip("_"), value) for name, value in keywords.items())


def _argument_names(target: Any) -> list[str]:
    """Names of arguments that are given by place, as far as they are known."""
    if target is None:
        return []
    if isinstance(target, torch._ops.OpOverload):
        return [argument.name for argument in target._schema.arguments]
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name.strip("_") for parameter in parameters if parameter.kind in by_place]


class _Arguments:
    """Takes the arguments of a call apart.

    inputs  what comes in, by name
    attrs   the rest, as far as it can be told
    """

    def __init__(self, values: Mapping[fx.Node, object]) -> None:
        self.inputs: dict[str, GeTensor] = {}
        self.attrs: dict[str, object] = {}
        self._values = values

    def place(self, name: str, value: object) -> object:
        """What stands for an argument in the call."""
        if isinstance(value, fx.Node):
            stored = self._values[value]
            if stored is None or isinstance(stored, GeTensor | tuple | list):
                return self.place(name, stored)
            # A graph that the operator calls.
            self.attrs[self._free(name)] = str(value.target)
            return stored
        if isinstance(value, GeTensor):
            self.inputs[self._free(name)] = value
            return ArgumentSlot(len(self.inputs) - 1)
        if isinstance(value, tuple | list) and _has_input(value):
            items = [self.place(f"{name}{index}", item) for index, item in enumerate(value)]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, dict) and _has_input(list(value.values())):
            return {key: self.place(f"{name}_{key}", item) for key, item in value.items()}
        if value is not None and value != {}:
            self.attrs[self._free(name)] = plain(value)
        return value

    def _free(self, name: str) -> str:
        while name in self.inputs or name in self.attrs:
            name += "_"
        return name


def _has_input(values: tuple[object, ...] | list[object]) -> bool:
    return any(
        isinstance(value, fx.Node | GeTensor)
        or (isinstance(value, tuple | list) and _has_input(value))
        or (isinstance(value, dict) and _has_input(list(value.values())))
        for value in values
    )


def _leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """What a call returns, tensors and numbers, with the place of each."""
    if isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    elif value is not None:
        yield path, value


def _rebuilt(value: object, outputs: Mapping[Path, GeTensor], path: Path) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_rebuilt(item, outputs, (*path, index)) for index, item in enumerate(value))
    return outputs.get(path)


def _output_names(target: object, results: Mapping[Path, object]) -> list[str]:
    """`y` for one; those of the schema where all have one."""
    if len(results) == 1:
        return ["y"]
    returns = [each.name for each in getattr(getattr(target, "_schema", None), "returns", ())]
    if len(returns) == len(results) and all(returns):
        return returns
    return [f"y{index}" for index in range(len(results))]


def _waiting(target: Callable[..., object]) -> Callable[..., object]:
    """A collective that is done when it returns."""

    def call(*args: object, **keywords: object) -> Any:
        result = target(*args, **keywords)
        for tensor in result if isinstance(result, tuple | list) else (result,):
            torch.ops._c10d_functional.wait_tensor.default(tensor)
        return result

    return call


# -- calls that give exact results -------------------------------------------------------------------------------------

# Operator -> which of its results are rounded on the way.
_ROUNDED: dict[str, tuple[int, ...]] = {
    "aten._weight_norm_interface.default": (0, 1),
    "aten._weight_norm_interface_backward.default": (0, 1),
    "aten.addmm.default": (0,),
    "aten.addmv.default": (0,),
    "aten.baddbmm.default": (0,),
    "aten.convolution_backward.default": (0, 1, 2),
    "aten.exp2.default": (0,),
    "aten.huber_loss.default": (0,),
    "aten.huber_loss_backward.default": (0,),
    "aten.native_group_norm.default": (2,),
    "aten.std.correction": (0,),
    "aten.std_mean.correction": (0,),
    "aten.sub.Scalar": (0,),
    "aten.sub.Tensor": (0,),
}
_OF_ANOTHER_FORM = ("aten.exp2.default",)


def note_call(
    node: fx.Node, args: tuple[object, ...], keywords: dict[str, object], result: object, ops: list[GeOp]
) -> None:
    """Remember the call where its operators round on the way.   ops: the operators that it became"""
    indices = _ROUNDED.get(str(node.target), ())
    is_chain = sum(op.type != CONST for op in ops) > 1 or str(node.target) in _OF_ANOTHER_FORM
    if not indices or not is_chain:
        return
    results = result if isinstance(result, list | tuple) else (result,)
    has_many = isinstance(result, list | tuple)
    for index in indices:
        tensor = results[index]
        if isinstance(tensor, GeTensor) and tensor.op in ops and len(tensor.op.outputs) == 1 and _is_float(tensor):
            tensor.op.exact = AtenCall(node, args, keywords, (index if has_many else None,))


def pick(results: Any, indices: tuple[int | None, ...], *_: object) -> Any:
    """The results of a call that an operator gives: a tuple where it has several outputs.   _: what it reads"""
    chosen = tuple([results if index is None else results[index] for index in indices])
    return chosen[0] if len(chosen) == 1 else chosen


def _is_float(tensor: GeTensor) -> bool:
    return (
        tensor.fake is not None
        and isinstance(tensor.dtype, torch.dtype)
        and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    )

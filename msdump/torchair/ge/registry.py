"""Converters: which GE operators stand for an ATen operator. Kernels: what a GE operator computes, in torch."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from msdump.errors import MsdumpError
from msdump.torchair.ge.graph import CONST, GeOp, GeTensor

Function = TypeVar("Function", bound=Callable[..., object])


class NoConverterError(MsdumpError, NotImplementedError):
    """An operator that has no GE form. Source: TorchAir, where it is a NotImplementedError."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a GE operator computes.

    function  takes the inputs in the order of the operator's interface (None where nothing feeds one), then the
              attributes by name; returns a tensor, a tuple of them, or a host value
    host      names of inputs that it gets as Python values: numbers and lists, not tensors
    numbers   names of inputs that it gets as a Python number when a Const of one feeds them, else as tensors; torch
              reckons with a number in more digits than a tensor of a short dtype has, and quicker
    mutates   name of the input that it writes; "" for none
    """

    function: Callable[..., Any]
    host: frozenset[str] = frozenset()
    mutates: str = ""
    numbers: frozenset[str] = frozenset()


_CONVERTERS: dict[object, Callable[..., object]] = {}
# Converters that a script brings; they come before the others.
_OWN: dict[str, Callable[..., object]] = {}
_KERNELS: dict[str, Kernel] = {}
_SIZE_KERNELS: dict[str, Kernel] = {}


def converter(*targets: str | Callable[..., object]) -> Callable[[Function], Function]:
    """Register a function as the converter of these operators.

    targets   names as FX shows them (`aten.add.Tensor`), or Python functions such as `operator.add`
    The function gets the Builder, then the node's arguments, GeTensors in place of nodes; it returns what the node
    returns: a GeTensor, a tuple of them, None.
    """

    def register(function: Function) -> Function:
        for target in targets:
            if target in _CONVERTERS:
                raise ValueError(f"{target}: expected one converter, got two.")
            _CONVERTERS[target] = function
        return function

    return register


def register_own(target: str, function: Callable[..., object]) -> None:
    """As `converter`, for one that a script brings; the last one for an operator counts."""
    _OWN[target] = function


def kernel(
    *types: str, host: tuple[str, ...] = (), mutates: str = "", numbers: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Register a function as the kernel of these GE operators; see Kernel."""

    def register(function: Function) -> Function:
        for op_type in types:
            if op_type in _KERNELS:
                raise ValueError(f"{op_type}: expected one kernel, got two.")
            _KERNELS[op_type] = Kernel(function, frozenset(host), mutates, frozenset(numbers))
        return function

    return register


def size_kernel(*types: str) -> Callable[[Function], Function]:
    """Register what these GE operators compute from sizes: Python ints, or lists of them, in and out."""

    def register(function: Function) -> Function:
        for op_type in types:
            if op_type in _SIZE_KERNELS:
                raise ValueError(f"{op_type}: expected one kernel for sizes, got two.")
            _SIZE_KERNELS[op_type] = Kernel(function)
        return function

    return register


def converter_of(target: object) -> Callable[..., Any]:
    """The converter of an FX node's target.

    Raises: NoConverterError with the names that are near.
    Source: TorchAir, its first line.
    """
    _load()
    function = _OWN.get(str(target)) or _CONVERTERS.get(target) or _CONVERTERS.get(str(target))
    if function is None:
        name = str(target)
        near = difflib.get_close_matches(name, [key for key in _CONVERTERS if isinstance(key, str)], 3, 0.6)
        advice = f" Converters of near names: {', '.join(near)}." if near else ""
        raise NoConverterError(
            f"torch.ops.{name} ge_converter is not implemented!\n"
            f"{name}: expected an operator that has a GE form, got one without.{advice} Add one: "
            f"@torchair.register_fx_node_ge_converter(torch.ops.{name}). Or dump with config.debug.data_dump, which "
            "takes every operator, or keep it out of the graph with torch._dynamo.disable."
        )
    return function


def is_registered(target: object) -> bool:
    """Whether the script brought the converter."""
    return str(target) in _OWN


def has_converter(target: object) -> bool:
    """True when an FX node of this target has a converter, of msdump or of the script."""
    _load()
    return str(target) in _OWN or target in _CONVERTERS or str(target) in _CONVERTERS


def has_kernel(op_type: str) -> bool:
    """True when GE operators of this type can run."""
    _load()
    return op_type in _KERNELS or op_type in _SIZE_KERNELS


def host_inputs(op: GeOp) -> frozenset[str]:
    """Names of the inputs that the operator's kernel gets as Python values.

    Those that the kernel declares, and all sizes; beside a size, constants that were given as Python values stay such,
    so that arithmetic on sizes stays in Python.
    """
    declared = kernel_for(op)
    sizes = {name for name, tensor in op.inputs.items() if tensor is not None and tensor.is_host}
    if sizes or _is_of_sizes(op):
        sizes.update(name for name, tensor in op.inputs.items() if tensor is not None and tensor.op.is_inline)
    # Of constants alone there has to come a tensor.
    if declared.numbers and any(producer.type != CONST for producer in op.producers):
        sizes.update(name for name in declared.numbers if _is_number(op.inputs.get(name)))
    return declared.host | sizes


def _is_number(tensor: GeTensor | None) -> bool:
    return tensor is not None and tensor.op.type == CONST and isinstance(tensor.value, int | float)


def _is_of_sizes(op: GeOp) -> bool:
    """True where nothing but sizes, and numbers given as such, comes in."""
    fed = [tensor for tensor in op.inputs.values() if tensor is not None]
    return bool(fed) and all(tensor.is_host or tensor.op.is_inline for tensor in fed)


def kernel_for(op: GeOp) -> Kernel:
    """What an operator runs: its own call, the kernel of its type, or the one for sizes where only sizes come in.

    Edges: an operator whose values come from a call of PyTorch needs none; it is given one that is not called.
    """
    _load()
    if op.call is not None:
        return Kernel(op.call.run)
    if op.type in _SIZE_KERNELS and _is_of_sizes(op):
        return _SIZE_KERNELS[op.type]
    if op.exact is not None and op.type not in _KERNELS:
        return _NO_KERNEL
    return kernel_of(op.type)


def _uncalled(*_: object, **__: object) -> NoReturn:
    raise AssertionError("an operator without a kernel takes its values from a call of PyTorch")


_NO_KERNEL = Kernel(_uncalled)


def kernel_of(op_type: str) -> Kernel:
    """The kernel of a type; the one for sizes where there is no other.

    Raises: MsdumpError for an operator that no kernel stands for.
    """
    _load()
    entry = _KERNELS.get(op_type) or _SIZE_KERNELS.get(op_type)
    if entry is None:
        raise MsdumpError(
            f"GE operator {op_type}: expected an operator that PyTorch's kernels can compute, got one that they "
            "cannot. Dump with config.debug.data_dump, which takes every operator."
        )
    return entry


@functools.cache
def _load() -> None:
    """Import every file of operators, once."""
    from msdump.torchair.ge import ops

    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")

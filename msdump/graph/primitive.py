"""Primitive: an operator's description; PrimitiveDef: what the registry knows about its type.

kernels/ fills the registry; graph/ only looks things up in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msdump.errors import GraphError, KernelNotFoundError, did_you_mean
from msdump.graph.saturation import in_mode
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array

Attrs = Mapping[str, Any]
Infer = Callable[[Sequence[TensorType], Attrs], tuple[TensorType, ...]]
Kernel = Callable[[Sequence[Array], Attrs, Sequence[Array]], None]
# (inputs, attrs, out) that stay where they are -> the kernel for these alone, which prepares nothing at each call.
Bind = Callable[[Sequence[Array], Attrs, Sequence[Array]], Kernel]


@dataclass(frozen=True)
class Primitive:
    """Operator type and attributes, no data. Attribute values are plain: bool, int, float, str, dtype name, tuples.

    definition  what is known about an operator of another library, or about this one alone; None: it stands in the
                registry
    """

    op_type: str
    attrs: Attrs = field(default_factory=dict)
    instance_name: str = ""
    definition: PrimitiveDef | None = field(default=None, compare=False, repr=False)


@dataclass
class PrimitiveDef:
    """All that is known about an op type.

    mutates       input slots whose memory the kernel writes; each makes a new version of that storage
    aliases       output slot -> mutated input slot whose storage it *is* (ApplyMomentum: {0: 0})
    views         output slot -> input slot whose bytes it shows unchanged under another shape (Reshape: {0: 0})
    is_kernel     False for bookkeeping nodes (Depend): no launch, no data file, no line in the execution order
    has_side_effect  must run even when no node reads its outputs (Print, Assign)
    grad_scope    last scope component of the operators that its bprop adds ("gradConv2D-expand")
    compute       in place of infer and kernels where only the data decide the shapes of the results
    binds         provider -> what makes its kernel for operands that stay where they are, where that saves work
    """

    op_type: str
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ("output",)
    mutates: tuple[int, ...] = ()
    aliases: Mapping[int, int] = field(default_factory=dict)
    views: Mapping[int, int] = field(default_factory=dict)
    is_kernel: bool = True
    has_side_effect: bool = False
    grad_scope: str = ""
    infer: Infer | None = None
    bprop: Callable[..., Sequence[Any]] | None = None
    compute: Callable[[Sequence[Array], Attrs], Sequence[Array]] | None = None
    kernels: dict[str, Kernel] = field(default_factory=dict)
    binds: dict[str, Bind] = field(default_factory=dict)

    def kernel(self, where: str) -> Kernel:
        """Its kernel, of the preferred provider if it has one, else of the other provider.

        Raises: KernelNotFoundError that begins with `where`.
        """
        kernel: Kernel = in_mode(self.op_type, self.kernels[self.provider_for(where)])
        return kernel

    def bound_kernel(self, where: str, inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> Kernel:
        """As `kernel`, for calls with these operands alone, which are prepared now.   Raises: as that."""
        provider = self.provider_for(where)
        bind = self.binds.get(provider)
        kernel: Kernel = in_mode(self.op_type, self.kernels[provider] if bind is None else bind(inputs, attrs, out))
        return kernel

    def provider_for(self, where: str) -> str:
        """Which of the libraries computes it.   Raises: KernelNotFoundError when none does."""
        order = _ORDERS[provider_choice]
        for provider in order:
            if provider in self.kernels:
                return provider
        raise KernelNotFoundError(f"{where}: {self.op_type} has no kernel of {' or '.join(order)}.")


# Libraries that compute operators, the reference first; and those in use by choice, the preferred one first.
PROVIDERS = ("numpy", "torch")
_ORDERS = {"auto": PROVIDERS, "numpy": PROVIDERS[:1], "torch": PROVIDERS[::-1]}
provider_choice = "auto"
"""What `choose_providers` was told last."""


def choose_providers(name: str) -> None:
    """Which library computes operators from now on, where both can.

    name    "auto": numpy, and PyTorch for what numpy cannot; "torch": the other way round; "numpy": nothing else
    Raises: GraphError for another name.
    """
    global provider_choice
    if name not in _ORDERS:
        raise GraphError(f"kernels: expected auto, numpy or torch, got {name!r}.")
    provider_choice = name


REGISTRY: dict[str, PrimitiveDef] = {}


def def_primitive(
    op_type: str,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = ("output",),
    *,
    mutates: Sequence[int] = (),
    aliases: Mapping[int, int] | None = None,
    views: Mapping[int, int] | None = None,
    is_kernel: bool = True,
    has_side_effect: bool = False,
    grad_scope: str = "",
) -> PrimitiveDef:
    """Register an op type. Call once, before def_infer / def_kernel / def_bprop of the same type."""
    if op_type in REGISTRY:
        raise GraphError(f"registry: {op_type} is defined twice.")
    definition = PrimitiveDef(
        op_type,
        tuple(input_names),
        tuple(output_names),
        tuple(mutates),
        dict(aliases or {}),
        dict(views or {}),
        is_kernel,
        has_side_effect or bool(mutates),
        grad_scope or f"grad{op_type}-expand",
    )
    REGISTRY[op_type] = definition
    return definition


def def_infer(*op_types: str) -> Callable[[Infer], Infer]:
    """Decorator: `infer(input types, attrs) -> output types`. Raises GraphError on operands that do not fit."""

    def register(infer: Infer) -> Infer:
        for op_type in op_types:
            definition_of(op_type).infer = infer
        return infer

    return register


def def_kernel(op_type: str, provider: str = "numpy") -> Callable[[Kernel], Kernel]:
    """Decorator: `kernel(inputs, attrs, out) -> None`, writing every element of each `out` array."""

    def register(kernel: Kernel) -> Kernel:
        definition_of(op_type).kernels[provider] = kernel
        return kernel

    return register


def def_bind(op_type: str, provider: str) -> Callable[[Bind], Bind]:
    """Decorator: `bind(inputs, attrs, out) -> kernel` for operands that stay where they are."""

    def register(bind: Bind) -> Bind:
        definition_of(op_type).binds[provider] = bind
        return bind

    return register


def definition_of(op_type: str) -> PrimitiveDef:
    """Registry entry.   Raises: KernelNotFoundError that names the nearest known type."""
    definition = REGISTRY.get(op_type)
    if definition is None:
        hint = did_you_mean(op_type, REGISTRY)
        raise KernelNotFoundError(f"{op_type}: no such operator is registered. {hint}".rstrip())
    return definition

"""Operators that PyTorch computes: kernel, shape rule and gradient all come from one function of its tensors.

The shape rule is the function on tensors of the meta device, the gradient an operator of its own that is the function's
vector-Jacobian product, and so on for gradients of gradients. PyTorch is imported when one of them is first used.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msdump.errors import ExecutionError, GraphError, KernelNotFoundError, OperandTypeError, OperandValueError
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import (
    REGISTRY,
    Attrs,
    Bind,
    Infer,
    Kernel,
    def_bind,
    def_infer,
    def_kernel,
    def_primitive,
    definition_of,
)
from msdump.graph.types import TensorType
from msdump.mindspore.program.autodiff import Bprop, GradBuilder, Grads, def_bprop, no_gradient
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.unseen import hidden

# (tensors of PyTorch, attributes of the operator) -> tensors of PyTorch; it changes none of its operands.
Compute = Callable[[Sequence[Any], Attrs], Sequence[Any]]

# Attribute of gradients: for each derivative, the outermost first, (number of operands of what it is the gradient of,
# slots of those whose gradients are wanted, slots of the results that have a gradient).
_DERIVATIVES = "derivatives"

# What PyTorch says where it has no kernel for a dtype.
_NO_KERNEL = ("not implemented for", "doesn't support tensors of type")

# Words of what PyTorch says about dtypes, for which MindSpore raises TypeError.
_OF_DTYPE = re.compile(
    r"not implemented for|dtype|data ?type|scalar type|[Ii]nput type|floating|(Half|Bool|Byte|Int|Long)\b"
)

# What the libraries raise about operands.
_REFUSALS = (RuntimeError, TypeError, ValueError, LookupError, AssertionError)

# What `torch_operator` declared.
_COMPUTES: dict[str, Compute] = {}

# Op types that were registered here, their gradients included.
op_types: set[str] = set()


def torch_of(op_type: str) -> Any:
    """PyTorch.   Raises: KernelNotFoundError that says what to install."""
    try:
        import torch
    except ImportError as error:
        raise KernelNotFoundError(
            f"{op_type}: expected PyTorch, which computes this operator here, got {error}. "
            "Install it with pip install 'msdump[torch]'."
        ) from error
    return torch


def def_torch_operator(
    op_type: str, compute: Compute, input_names: Sequence[str], *, has_gradient: bool = True,
    constants: Sequence[int] = (), is_sized_by_data: bool = False, is_update: bool = False,
) -> None:  # fmt: skip
    """Register an op type whose results are those of `compute`.

    has_gradient      False: no gradient flows through it
    constants         slots of operands that have no gradient
    is_sized_by_data  only the data decide the shapes of the results, so that it has no place in a compiled graph
    is_update         its result is written to its first operand
    """
    updated = {"mutates": (0,), "aliases": {0: 0}} if is_update else {}
    definition = def_primitive(op_type, input_names, **updated)  # type: ignore[arg-type]
    op_types.add(op_type)
    _def_torch_kernel(op_type, compute)
    if is_sized_by_data:
        definition.compute = _computing(op_type, compute)
    else:
        def_infer(op_type)(_infer(op_type, compute))
    def_bprop(op_type)(torch_bprop(compute, constants) if has_gradient else no_gradient)


def torch_operator(
    op_type: str, inputs: str, outputs: str = "output", *, infer: Infer, gradient: Bprop | None = None, scope: str = ""
) -> Callable[[Callable[..., Any]], Compute]:
    """Decorator: a function (PyTorch, operand, ..., attribute=..., or **attrs) is the operator; gives its `Compute`.

    inputs, outputs  MindSpore's names
    infer            its shape rule, which checks the operands
    gradient         the rule that adds MindSpore's own operators of the gradient; None: `{type}Grad` of PyTorch
    scope            of the operators that the rule adds, where it has another name than most
    Two-byte floats go through float32 and are rounded once.
    """

    def declare(function: Callable[..., Any]) -> Compute:
        definition = def_primitive(op_type, inputs.split(), outputs.split(), grad_scope=scope)
        parameters = inspect.signature(function).parameters
        takes_all = "attrs" in parameters
        names = {name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY}

        def compute(tensors: Sequence[Any], attrs: Attrs) -> Sequence[Any]:
            wide = [each.float() if each.itemsize == 2 and each.is_floating_point() else each for each in tensors]
            given = {name: value for name, value in attrs.items() if takes_all or name in names}
            result = function(torch_of(op_type), *wide, **given)
            return result if isinstance(result, tuple | list) else (result,)

        op_types.add(op_type)
        _COMPUTES[op_type] = compute
        _def_torch_kernel(op_type, compute)
        definition.infer = infer
        def_bprop(op_type)(torch_bprop(compute) if gradient is None else gradient)
        return compute

    return declare


# -- values ------------------------------------------------------------------------------------------------------------


def _refused(inputs: Sequence[Array], error: Exception) -> GraphError:
    """What a kernel raises for an error of a library.   Source: MindSpore raises TypeError for a dtype."""
    if isinstance(error, GraphError):
        return error
    got = ", ".join(f"{array.dtype}{list(array.shape)}" for array in inputs)
    kind = OperandTypeError if _is_about_dtypes(error) else ExecutionError
    reason = str(error).strip().partition("\n")[0]
    return kind(f"expected operands that it takes, got {got}: {reason}")


def _is_about_dtypes(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or _OF_DTYPE.search(str(error).partition("\n")[0]) is not None


def _has_elements(arrays: Sequence[Array]) -> bool:
    """PyTorch does not compute every operator where there is nothing to compute."""
    return any(array.size for array in arrays)


def unbound(bind: Bind) -> Kernel:
    """The kernel that prepares its operands at each call."""

    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        bind(inputs, attrs, out)(inputs, attrs, out)

    return kernel


def _nothing(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """The kernel where there is nothing to compute."""


def tensors_of(arrays: Sequence[Array]) -> list[Any]:
    """Tensors of PyTorch on the memory of arrays."""
    from msdump.tensors.torch_arrays import tensor_of

    return [hidden(tensor_of, array) for array in arrays]


def _def_torch_kernel(op_type: str, compute: Compute) -> None:
    @def_bind(op_type, "torch")
    def bind(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> Kernel:
        torch_of(op_type)
        if not _has_elements(out):
            return _nothing
        try:
            operands, results = tensors_of(inputs), tensors_of(out)
        except _REFUSALS as error:
            raise _refused(inputs, error) from error

        def run(attrs: Attrs) -> None:
            try:
                made = computed(compute, operands, attrs)
            except RuntimeError as error:
                made = computed(compute, _signed(operands, error), attrs)
            for tensor, result in zip(results, made, strict=True):
                tensor.copy_(result)

        def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
            try:
                hidden(run, attrs)
            except _REFUSALS as error:
                raise _refused(inputs, error) from error

        return kernel

    def_kernel(op_type, "torch")(unbound(bind))


def computed(compute: Compute, tensors: Sequence[Any], attrs: Attrs) -> Sequence[Any]:
    """Two-byte floats go through float32 where PyTorch has no kernel for them."""
    import torch

    with torch.no_grad():
        try:
            return compute(tensors, attrs)
        except RuntimeError as error:
            halves = {tensor.dtype for tensor in tensors} & {torch.float16, torch.bfloat16}
            if not halves or not any(text in str(error) for text in _NO_KERNEL):
                raise
            wide = [tensor.float() if tensor.dtype in halves else tensor for tensor in tensors]
            half = halves.pop()
            return [result.to(half) if result.dtype == torch.float32 else result for result in compute(wide, attrs)]


def _signed(tensors: Sequence[Any], error: RuntimeError) -> list[Any]:
    """Whole numbers without a sign as int64, for which PyTorch has all kernels; a result is cut to its own bits.

    Raises: the error itself where that is not why it came, or where a number does not fit.
    """
    import torch

    kinds = (torch.uint16, torch.uint32, torch.uint64)
    if not any(tensor.dtype in kinds for tensor in tensors) or not any(text in str(error) for text in _NO_KERNEL):
        raise error
    signed = [tensor.long() if tensor.dtype in kinds else tensor for tensor in tensors]
    if any(tensor.dtype == torch.uint64 and bool((own < 0).any()) for tensor, own in zip(tensors, signed, strict=True)):
        raise error
    return signed


def _computing(op_type: str, compute: Compute) -> Callable[[Sequence[Array], Attrs], Sequence[Array]]:
    def computing(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
        try:
            torch_of(op_type)
            from msdump.tensors.torch_arrays import array_like

            operands = tensors_of(inputs)
            return [array_like(result) for result in hidden(computed, compute, operands, attrs)]
        except _REFUSALS as error:
            raise _refused(inputs, error) from error

    return computing


# -- shapes ------------------------------------------------------------------------------------------------------------


def _infer(op_type: str, compute: Compute) -> Infer:
    @lru_cache(maxsize=1024)
    def inferred(types: tuple[TensorType, ...], attrs: tuple[tuple[str, Any], ...]) -> tuple[TensorType, ...]:
        torch_of(op_type)
        try:
            return hidden(_types_of_tensors, compute, types, dict(attrs))
        except _REFUSALS as error:
            got = ", ".join(str(type_) for type_ in types)
            reason = str(error).strip().partition("\n")[0]
            is_of_dtype = _is_about_dtypes(error) or _fits_as_floats(compute, types, dict(attrs))
            kind = OperandTypeError if is_of_dtype else OperandValueError
            raise kind(f"expected operands that it takes, got {got}: {reason}") from error

    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return inferred(tuple(types), tuple(attrs.items()))

    return infer


def _fits_as_floats(compute: Compute, types: Sequence[TensorType], attrs: Attrs) -> bool:
    """Whether the operator takes float32 in the place of dtypes that are neither floats of four bytes nor indices."""
    usual = ("float32", "float64", "int32", "int64")
    floats = [type_ if type_.dtype in usual else TensorType("float32", type_.shape) for type_ in types]
    if floats == list(types):
        return False
    try:
        hidden(_types_of_tensors, compute, floats, attrs)
    except (*_REFUSALS, OperandValueError):
        return False
    return True


def _types_of_tensors(compute: Compute, types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    import torch

    from msdump.tensors.torch_arrays import dtype_name, torch_dtype

    def results(device: str) -> Sequence[Any]:
        operands = [torch.zeros(type_.shape, dtype=torch_dtype(type_.dtype), device=device) for type_ in types]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of dtypes of results that are refused below
            return computed(compute, operands, attrs)

    try:
        made = results("meta")
    except NotImplementedError:
        made = results("cpu")  # this function has no form for the meta device
    named: list[TensorType] = []
    for tensor in made:
        name = dtype_name(tensor.dtype)
        if name is None:
            raise TypeError(f"its result has dtype {tensor.dtype}, which no file can hold.")
        named.append(TensorType(name, tuple(tensor.shape)))
    return tuple(named)


# -- gradients ---------------------------------------------------------------------------------------------------------


def torch_bprop(compute: Compute, constants: Sequence[int] = ()) -> Bprop:
    """The gradient rule of an operator whose results are those of `compute`: an operator `{type}Grad`.

    Its operands are those of the operator, then the gradients of those results that have one.

    constants  slots of operands that have no gradient
    """

    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        kinds = [dtypes.dtype(value.type.dtype).kind for value in node.inputs]
        smooth = {slot for slot, kind in enumerate(kinds) if kind in (dtypes.FLOAT, dtypes.COMPLEX)} - set(constants)
        wanted = tuple(slot for slot, is_wanted in enumerate(builder.wanted) if is_wanted and slot in smooth)
        given = tuple(slot for slot, gradient in enumerate(outer) if gradient is not None)
        results: list[Value | None] = [None] * len(node.inputs)
        if not wanted or not given:
            return results
        op_type = _def_gradient(node.op_type, compute)
        attrs = dict(node.primitive.attrs)
        attrs[_DERIVATIVES] = ((len(node.inputs), wanted, given), *attrs.get(_DERIVATIVES, ()))
        gradients = [gradient for gradient in outer if gradient is not None]
        for slot, value in zip(wanted, builder.add_all(op_type, [*node.inputs, *gradients], attrs), strict=True):
            results[slot] = value
        return results

    return bprop


def gradient_of(op_type: str, tensors: Sequence[Any], attrs: Attrs, gradients: Sequence[Any], wanted: int) -> list[Any]:
    """Gradients of the first `wanted` operands of a declared operator, for those of its first results."""
    rule = (len(tensors), tuple(range(wanted)), tuple(range(len(gradients))))
    product = _vector_jacobian_product(op_type, _COMPUTES[op_type])
    return list(product([*tensors, *gradients], {**attrs, _DERIVATIVES: (rule,)}))


def _def_gradient(forward_type: str, forward: Compute) -> str:
    """Register the gradient of an op type at its first use."""
    op_type = f"{forward_type}Grad"
    compute = _vector_jacobian_product(forward_type, forward)
    if op_type not in REGISTRY:
        definition = definition_of(forward_type)
        def_primitive(op_type, (*definition.input_names, "dout"))
        op_types.add(op_type)
        _def_torch_kernel(op_type, compute)
        def_infer(op_type)(_infer_gradient)
        def_bprop(op_type)(torch_bprop(compute))
    return op_type


def _infer_gradient(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    _, wanted, _ = attrs[_DERIVATIVES][0]
    return tuple(types[slot] for slot in wanted)


def _vector_jacobian_product(op_type: str, forward: Compute) -> Compute:
    def compute(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
        import torch

        (count, wanted, given), *inner = attrs[_DERIVATIVES]
        own = {**attrs, _DERIVATIVES: tuple(inner)}
        is_differentiated = any(tensor.requires_grad for tensor in tensors)
        with torch.enable_grad():
            operands = list(tensors[:count])
            for slot in wanted:
                if not operands[slot].requires_grad:
                    operands[slot] = operands[slot].detach().requires_grad_()
            results = forward(operands, own)
            pairs = [
                (results[slot], gradient)
                for slot, gradient in zip(given, tensors[count:], strict=True)
                if results[slot].requires_grad
            ]
            leaves = [operands[slot] for slot in wanted]
            if not pairs:
                raise GraphError(f"{op_type}: PyTorch, which computes this operator here, has no derivative of it.")
            try:
                gradients = torch.autograd.grad(
                    [result for result, _ in pairs],
                    leaves,
                    [gradient for _, gradient in pairs],
                    create_graph=is_differentiated,
                    allow_unused=True,
                )
            except NotImplementedError as error:
                raise GraphError(f"{op_type}: PyTorch, which computes this operator here: {error}") from error
        return [
            torch.zeros_like(leaf) if gradient is None else gradient
            for leaf, gradient in zip(leaves, gradients, strict=True)
        ]

    return compute

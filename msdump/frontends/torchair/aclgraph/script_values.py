"""Values of a graph as text of a script: inputs to make up, constants to carry along, names to import."""

from __future__ import annotations

import base64
import math
import types
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node

from msdump.frontends.torch.arrays import bytes_of

# Constants up to this size go into the script; larger ones are made up.
_CONSTANT_LIMIT_BYTES = 1 << 20


def first_run_sizes(module: GraphModule, real: Sequence[Any]) -> list[Any]:
    """Inputs of the script: shapes and strides of tensors as fakes, numbers for the rest.

    A symbolic integer gets 2 + its index, and shapes follow from that; where the graph does not run with such sizes,
    everything gets the sizes of the first call.   Source: TorchAir, the inputs of output_code.py.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    numbers: dict[Any, int] = {}
    for index, node in enumerate(placeholders):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            numbers.setdefault(value.node.expr, 2 + index)
    with FakeTensorMode() as mode:
        actual = [_fake(value, tuple(value.shape), value.stride()) if _is_tensor(value) else value for value in real]
        if not numbers:
            return actual
        try:
            made_up = [
                _substituted(node.meta.get("val"), value, numbers)
                for node, value in zip(placeholders, real, strict=True)
            ]
            with torch.no_grad(), mode:
                constants = GraphModule(module, module.graph)
                torch.fx.Interpreter(_faked(constants, mode)).run(*made_up)
        except Exception:  # noqa: BLE001 - any complaint means that the graph wants other sizes
            return actual
    return made_up


def _faked(module: GraphModule, mode: FakeTensorMode) -> GraphModule:
    """The module with fakes for constants; the graph is the same."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and "." not in str(node.target):
            value = getattr(module, str(node.target))
            if _is_tensor(value):
                delattr(module, str(node.target))
                setattr(module, str(node.target), mode.from_tensor(value))
    return module


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _fake(tensor: torch.Tensor, shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    return torch.empty_strided(tuple(shape), tuple(stride), dtype=tensor.dtype, device=tensor.device)


def _substituted(symbolic: Any, real: Any, numbers: dict[Any, int]) -> Any:
    if _is_tensor(symbolic) and _is_tensor(real):
        shape = [_number(size, numbers) for size in symbolic.shape]
        return _fake(real, shape, [_number(size, numbers) for size in symbolic.stride()])
    return _number(symbolic, numbers) if isinstance(symbolic, torch.SymInt) else real


def _number(size: Any, numbers: dict[Any, int]) -> int:
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    return int(size) if expression is None else int(expression.subs(numbers))


def input_text(name: str, value: Any) -> str:
    """Line that makes an input up: values are random for floats and 0 for integers, which are always legal indices."""
    if _is_tensor(value):
        shape, stride = tuple(value.shape), tuple(value.stride())
        return f"{name} = rand_strided({shape}, {stride}, device={str(value.device)!r}, dtype={value.dtype})"
    return f"{name} = {_literal(value)}"


def check_text(name: str, value: Any) -> str:
    """Line that refuses a tensor of another shape; "" for what is no tensor."""
    if not _is_tensor(value):
        return ""
    return f"assert_size_stride({name}, {tuple(value.shape)}, {tuple(value.stride())})"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value) if isinstance(value, (int, float, bool, str, type(None))) else "None"


def constant_text(value: torch.Tensor) -> str:
    """Expression that gives a constant of the graph again, to the last bit."""
    tensor = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    shape, dtype, device = tuple(value.shape), value.dtype, str(value.device)
    size = tensor.numel() * tensor.element_size()
    if not size:
        return f"torch.empty({shape}, dtype={dtype}, device={device!r})"
    if size > _CONSTANT_LIMIT_BYTES:
        return f"rand_strided({shape}, {tuple(tensor.stride())}, dtype={dtype}, device={device!r})  # {size} bytes"
    packed = base64.b85encode(zlib.compress(bytes_of(tensor))).decode()
    return f"_constant({packed!r}, {dtype}, {shape}, {device!r})"


def import_text(name: str, value: Any) -> str:
    """Line that binds a name that the graph's code uses."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}" if "." in value.__name__ else f"import {value.__name__}"
    if isinstance(value, float):
        return f"{name} = float({str(value)!r})"
    if value is type(None):
        return f"{name} = type(None)"
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module in (None, "__main__") or qualified is None or "." in qualified:
        return f"{name} = None  # {type(value).__name__}: bind it yourself, this script cannot import it"
    return f"from {module} import {qualified} as {name}" if qualified != name else f"from {module} import {name}"


def custom_namespaces(module: GraphModule) -> list[str]:
    """Namespaces of operators that PyTorch does not bring along."""
    own = {"aten", "prims", "_c10d_functional", "higher_order", "prim", "quantized", "mkldnn", "profiler"}
    found = {node.target.namespace for node in module.graph.nodes if _is_operator(node)}
    return sorted(found - own)


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)

"""Operators of PyTorch by the names that dumps give them ("aten.log.default"), called again through `torch.ops`.

`plan_of` places what a dump holds by the operator's schema; `run` makes the call, here and in a script of
`msdump replay -o`, which gets its source. Imports PyTorch when it is called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msdump.analysis.replay._call import DumpedCall
from msdump.errors import ConfigError
from msdump.operators.traits import makes_unset
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs

# Whose operators compute from their arguments alone. What a program registers itself is not there to be called, and
# collectives need the other ranks.
NAMESPACES = ("aten", "prims", "quantized_decomposed", "torchvision")
# "tensors[1]", the operand of a list.
_ITEM = re.compile(r"(?P<name>\w+)\[(?P<index>[0-9]{1,5})\]")
_CONSTANTS = ("Layout", "MemoryFormat", "ScalarType")
_WIDER = {"complex32": "complex128", "complex64": "complex128"}
REFUSED = {
    "from_file": "reads a file, which a dump does not hold",
    "_local_scalar_dense": "gives a number, which a dump does not hold",
    **dict.fromkeys(
        ("as_strided", "as_strided_", "resize_", "resize_as_", "set_"),
        "reads memory as it lies, of which a dump holds the elements alone",
    ),
}
# Arguments by which an operator that can draw random numbers is told not to.
_DRAWS_NOTHING = {"dropout_p": 0.0, "p": 0.0, "dropout": 0.0, "train": False, "training": False}


def is_operator(op_type: str) -> bool:
    """Whether a type is one of PyTorch's dispatcher, as its graph file spells it: with a namespace."""
    return "." in op_type


def overload_of(op_type: str) -> Any:
    """The registered operator of a name.

    Raises:  ConfigError for a namespace that is not of `NAMESPACES`, a name that is not registered, and without torch.
    """
    try:
        import torch
    except ImportError as error:
        raise ConfigError(f"{op_type}: torch is not installed (pip install torch).") from error
    parts = op_type.split(".")
    if len(parts) != 3 or parts[0] not in NAMESPACES:
        raise ConfigError(f"{op_type}: expected an operator of {', '.join(NAMESPACES)}; others cannot be run alone.")
    _register(parts[0])
    # A name is looked up among what is registered, and nothing else of these objects is reached by it.
    packet: Any = None if parts[1].startswith("__") else getattr(getattr(torch.ops, parts[0]), parts[1], None)
    is_packet = isinstance(packet, torch._ops.OpOverloadPacket)
    if is_packet and parts[2] in packet.overloads():
        return getattr(packet, parts[2])
    raise ConfigError(f"{op_type}: torch {torch.__version__} has no such operator.")


def _register(namespace: str) -> None:
    """Let the library that brings a namespace register it; without that library its operators are not found."""
    module = {"torchvision": "torchvision", "quantized_decomposed": "torch.ao.quantization.fx._decomposed"}
    if namespace in module:
        import importlib

        try:
            importlib.import_module(module[namespace])
        except (ImportError, OSError, RuntimeError) as error:
            raise ConfigError(f"{module[namespace]} cannot be imported: {error}") from error


def plan_of(
    op_type: str,
    operands: Sequence[tuple[str, str]],
    attrs: Attrs,
    outputs: Sequence[str] = (),
    precision: str = "",
) -> dict[str, Any]:
    """A call of an operator as plain values, which `run` takes.

    operands   name and dtype of each dumped tensor, in order: "self", "tensors[0]"
    outputs    dtypes of the dumped results, for the memory that `out=` arguments name
    precision  "float32" or "float64": what all floating-point operands and dtypes become; "" leaves them

    Edges:   an argument that the dump does not hold is the schema's default; devices are the CPU.
    Raises:  ConfigError for an operator that draws random numbers, gives memory that nothing has written, reads what no
             dump holds, or needs an argument that is not there; as `overload_of`.
    """
    overload = overload_of(op_type)
    _refuse(op_type, overload, attrs)
    tensors: dict[str, Any] = {}
    for number, (name, dtype) in enumerate(operands):
        tensor = {"input": number, "dtype": _widened(dtype, precision)}
        item = _ITEM.fullmatch(name)
        if item is None:
            tensors[name] = tensor
        else:
            tensors.setdefault(item["name"], {})[int(item["index"])] = tensor
    plan: dict[str, Any] = {"operator": tuple(op_type.split(".")), "arguments": [], "keywords": {}, "written": []}
    memory = iter(outputs)
    names = set()
    for argument in overload._schema.arguments:
        names.add(argument.name)
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        spec: object = None
        if argument.name in tensors:
            spec = _listed(op_type, argument, tensors[argument.name])
        elif argument.name in attrs:
            spec = _value(op_type, argument, attrs[argument.name], precision)
        elif argument.kwarg_only and is_written:
            spec = {"empty": _widened(next(memory, "float32"), precision)}
        elif argument.has_default_value():
            if argument.kwarg_only:
                continue
            spec = _value(op_type, argument, argument.default_value, precision)
        elif not str(argument.type).startswith("Optional"):
            raise ConfigError(f"{op_type}: expected its argument {argument.name} in the dump, got none.")
        if is_written:
            plan["written"].append(argument.name if argument.kwarg_only else len(plan["arguments"]))
        if argument.kwarg_only:
            plan["keywords"][argument.name] = spec
        else:
            plan["arguments"].append(spec)
    unknown = sorted(set(tensors) - names)
    if unknown:
        raise ConfigError(f"{op_type}: expected operands of its schema, got {', '.join(unknown)}: another version's?")
    return plan


def _refuse(op_type: str, overload: Any, attrs: Attrs) -> None:
    import torch

    name = op_type.split(".")[1]
    if name in REFUSED:
        raise ConfigError(f"{op_type}: it {REFUSED[name]}, and cannot be replayed.")
    if makes_unset(op_type):
        raise ConfigError(f"{op_type}: it gives memory that nothing has written, and cannot be replayed.")
    if torch.Tag.nondeterministic_seeded in overload.tags:
        given = {each.name: each.default_value for each in overload._schema.arguments if each.has_default_value()}
        given.update(attrs)
        if not any(name in given and given[name] == value for name, value in _DRAWS_NOTHING.items()):
            raise ConfigError(
                f"{op_type}: it draws random numbers, which do not follow from its inputs: it cannot be replayed."
            )


def _listed(op_type: str, argument: Any, spec: dict[Any, Any]) -> object:
    """A tensor, or a list of tensors and of None where it has none."""
    if "input" in spec:
        return spec
    size = max(spec) + 1
    if len(spec) < size and "Optional" not in str(argument.type):
        raise ConfigError(f"{op_type}: expected all tensors of {argument.name} in the dump, got {len(spec)} of {size}.")
    return [spec.get(index) for index in range(size)]


def _value(op_type: str, argument: Any, value: object, precision: str) -> object:
    """An argument that is no tensor, as the graph file or the schema has it.

    Edges:   dtypes, layouts and memory formats are names, complex numbers text; a default of the schema is a number.
    """
    import torch

    kind = str(getattr(argument, "real_type", argument.type))
    if value is None or "Generator" in kind:
        return None
    if "Device" in kind:
        return "cpu"
    if argument.name == "pin_memory":
        return None
    if any(name in kind for name in _CONSTANTS):
        if isinstance(value, int):  # PyTorch's own default, which it takes back as it is
            return value
        constant = getattr(torch, value, None) if isinstance(value, str) and value.isidentifier() else None
        if not isinstance(constant, torch.dtype | torch.layout | torch.memory_format):
            raise ConfigError(f"{op_type}: expected a dtype, layout or format as {argument.name}, got {value!r}.")
        return {"torch": _widened(str(value), precision)}
    return value if "str" in kind else _numbers(op_type, argument.name, value)


def _numbers(op_type: str, name: str, value: object) -> object:
    if isinstance(value, list | tuple):
        return [_numbers(op_type, name, item) for item in value]
    if not isinstance(value, str):
        return value
    # Numbers that no graph file has a form for are text in it: complex ones, and integers of more than 64 bits.
    for number in (int, float, complex):
        try:
            parsed = number(value)
        except (ValueError, OverflowError):
            continue
        return {"complex": (parsed.real, parsed.imag)} if isinstance(parsed, complex) else parsed
    raise ConfigError(f"{op_type}: expected the number {name}, got the name {value!r}: its value is not in the dump.")


def _widened(dtype: str, precision: str) -> str:
    """The name of a dtype in another precision; integers, bool, layouts and formats stay as they are."""
    if not precision:
        return dtype
    if dtype.startswith("complex"):
        return _WIDER.get(dtype, dtype) if precision == "float64" else dtype
    is_float = dtype.startswith("bfloat") or (dtype.startswith("float") and dtype != "float64")
    return precision if is_float else dtype


def run(inputs: Any, attrs: Attrs) -> list[Any]:
    """What an operator returns, or what it writes where it returns nothing. It gets copies of its inputs."""
    import torch

    def value(spec: Any) -> Any:
        if isinstance(spec, list):
            return [value(item) for item in spec]
        if not isinstance(spec, dict):
            return spec
        if "input" in spec:
            return inputs[spec["input"]].detach().to(getattr(torch, spec["dtype"]), copy=True)
        if "torch" in spec:
            return getattr(torch, spec["torch"])
        if "empty" in spec:
            return torch.empty(0, dtype=getattr(torch, spec["empty"]))
        return complex(*spec["complex"])

    def tensors_in(result: Any) -> list[Any]:
        if isinstance(result, torch.Tensor):
            return [result]
        if isinstance(result, (list, tuple)):
            return [tensor for item in result for tensor in tensors_in(item)]
        return []

    namespace, name, overload = attrs["operator"]
    operator = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    arguments = [value(spec) for spec in attrs["arguments"]]
    keywords = {key: value(spec) for key, spec in attrs["keywords"].items()}
    with torch.no_grad():
        results = tensors_in(operator(*arguments, **keywords))
    written = [keywords[key] if isinstance(key, str) else arguments[key] for key in attrs["written"]]
    return results or tensors_in(written)


def outputs_of(plan: Mapping[str, Any], inputs: Iterable[Any]) -> list[Any]:
    """Arrays that the call of a plan gives.

    Edges:   results that no dump has room for (sparse, quantized) are left out, as dumps leave them out.
    Raises:  ConfigError for what torch refuses.
    """
    import torch

    from msdump.tensors.torch_arrays import array_like, dtype_name, tensor_of

    op_type = ".".join(plan["operator"])
    try:
        tensors = run([tensor_of(array) for array in inputs], plan)
        return [
            array_like(tensor)
            for tensor in tensors
            if tensor.layout is torch.strided and dtype_name(tensor.dtype) is not None
        ]
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError, NotImplementedError, MemoryError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"{op_type}: torch refuses it: {first}") from error


def aten_plan(call: DumpedCall, precision: str = "") -> dict[str, Any]:
    """The call of an operator of PyTorch as `run` takes it.   Raises: ConfigError as `plan_of`."""
    names = [dtypes.dtype_from_numpy(array.dtype).name for array in call.inputs]
    outputs = [dtypes.dtype_from_numpy(array.dtype).name for _, array in sorted(call.outputs.items())]
    operands = list(zip(call.names, names, strict=True))
    return plan_of(call.op_type, operands, call.attrs, outputs, precision)


def run_aten(call: DumpedCall, precision: str = "") -> list[Array]:
    """Outputs of an operator of PyTorch, in its own precision or in another one.

    Raises: ConfigError as `plan_of`, and for what torch refuses.
    """
    return outputs_of(aten_plan(call, precision), call.inputs)


# Equal operators of the table of numpy, where a call has no argument but its tensors.
_NUMPY_TYPES = {
    **{
        f"aten.{name.lower()}.default": name
        for name in (
            "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Maximum", "Minimum", "Neg", "Reciprocal", "ReLU",
            "Rsqrt", "Sigmoid", "Sin", "Sqrt", "Tanh",
        )
    },
    **{f"aten.{name.lower()}.Tensor": name for name in ("Add", "Div", "Mul", "Sub")},
    "aten.mm.default": "MatMul",
    "aten.bmm.default": "BatchMatMul",
}  # fmt: skip
_UNTRANSPOSED = {"transpose_a": False, "transpose_b": False}


def numpy_form(op_type: str, attrs: Attrs) -> tuple[str, dict[str, Any]] | None:
    """Type and attributes of the same call in the table of numpy; None where it has none."""
    name = _NUMPY_TYPES.get(op_type)
    if name is None or any(
        not (key == "alpha" and value == 1 and math.isfinite(value)) for key, value in attrs.items()
    ):
        return None
    return name, dict(_UNTRANSPOSED) if name.endswith("MatMul") else {}

"""Functions of PyTorch by the names that msprobe gives them ("Functional.linear", "Tensor.add_"), called again.

`plan_of` places what a dump holds; `run` makes the call, here and in a script of `msdump replay -o`, which gets its
source. Imports PyTorch when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msdump.analysis.replay._aten import REFUSED
from msdump.errors import ConfigError
from msdump.operators.traits import makes_unset
from msdump.process.front_ends import front_end
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs

# By the prefix of a record: where its functions are, below torch.
_OWNERS = {
    "Functional": ("nn", "functional"),
    "Tensor": ("Tensor",),
    "Torch": (),
    "VF": ("_VF",),
    "Aten": ("ops", "aten"),
}
# MindSpore's mint has PyTorch's functions under PyTorch's names.
_OF_MINT = {"Mint": "Torch", "MintFunctional": "Functional"}
_RNNS = frozenset(
    ("gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"),
)
# Types of tensors, as dump.json names them.
TENSORS = (
    "torch.Tensor",
    *("mindspore.Tensor", "mindspore.common.tensor.Tensor", "mindspore.common.parameter.Parameter"),
)
_MAX_DEPTH = 50
_WIDER = {"complex32": "complex128", "complex64": "complex128"}


def functions_of(name: str) -> list[tuple[str, ...]]:
    """Where torch has the functions that a record of this name may be of, the likeliest first: "Torch.norm" is
    torch.norm or torch.linalg.norm.

    Raises: ConfigError for a name that msprobe records no function of, and for functions that cannot run alone.
    """
    prefix, _, function = name.partition(".")
    if prefix == "Distributed":
        raise ConfigError(f"{name}: its results come from other processes too: it cannot be replayed alone.")
    if prefix == "NPU":
        raise ConfigError(f"{name}: it is a function of torch_npu, which runs on a device alone.")
    plain = function.rpartition(".")[2]
    if plain in REFUSED:
        raise ConfigError(f"{name}: it {REFUSED[plain]}, and cannot be replayed.")
    if makes_unset(f"aten.{plain}.default"):
        raise ConfigError(f"{name}: it gives memory that nothing has written, and cannot be replayed.")
    prefix = _OF_MINT.get(prefix, prefix)
    if prefix not in _OWNERS:
        raise ConfigError(f"{name}: expected a function of {', '.join((*_OWNERS, *_OF_MINT))}; others cannot be run.")
    owner = _OWNERS[prefix]
    if prefix == "Aten":
        return [(*owner, function)]
    if prefix == "VF":
        found = [(*owner, function)] if function in _RNNS else []
    else:
        # The names that are looked up are those of this list; a dump's own are never.
        known = front_end("msprobe", "function_names").names_of(prefix)
        paths = [path for path in known if function in (path, path.rpartition(".")[2])]
        found = [(*owner, *path.split(".")) for path in sorted(paths, key=lambda path: (path.count("."), path))]
    if not found:
        raise ConfigError(f"{name}: expected a function that msprobe records, got another one: it is not called.")
    return found


def resolved(name: str, path: Sequence[str]) -> Callable[..., Any]:
    """The function at a path of `functions_of`.   Raises: ConfigError where this PyTorch has none, or without it."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(f"{name}: torch is not installed (pip install torch).") from error
    if path[:2] == ("ops", "aten"):
        packet = None if path[2].startswith("__") else getattr(torch.ops.aten, path[2], None)
        if isinstance(packet, torch._ops.OpOverloadPacket):
            return packet
    else:
        owner: Any = torch
        for part in path:
            owner = getattr(owner, part, None)
        if callable(owner):
            return owner  # type: ignore[no-any-return]
    raise ConfigError(f"{name}: torch {torch.__version__} has no torch.{'.'.join(path)}.")


class Arguments:
    """Makes plain values of the arguments of a record, which `run` takes.

    tensor     of the description of a tensor: its number among the inputs, and whether gradients flow into it
    precision  "float32" or "float64": what all floating-point operands and dtypes become; "" leaves them
    """

    def __init__(self, name: str, tensor: Callable[[Mapping[str, Any]], dict[str, Any]], precision: str) -> None:
        self._name = name
        self._tensor = tensor
        self._precision = precision

    def of(self, value: Any, where: str, depth: int = 0) -> Any:
        """Raises: ConfigError for what dump.json does not tell."""
        if depth > _MAX_DEPTH:
            raise self._unknown(where, "lists in lists")
        if value is None:
            return None
        if isinstance(value, list):
            return [self.of(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            raise self._unknown(where, f"{str(value)[:60]}")
        kind = value.get("type")
        if kind is None and value and "class_type" not in value:
            return {"dict": {str(key): self.of(item, f"{where}.{key}", depth + 1) for key, item in value.items()}}
        return self._plain(kind, value, where)

    def _plain(self, kind: Any, value: Mapping[str, Any], where: str) -> Any:
        plain = value.get("value")
        if not isinstance(kind, str):
            raise self._unknown(where, "a value without a description")
        if kind in TENSORS:
            spec = self._tensor(value)
            return {**spec, "dtype": widened(spec["dtype"], self._precision)}
        if kind == "torch.device":
            return "cpu"
        if kind in ("bool", "int", "str") and type(plain).__name__ == kind:
            return plain
        if kind == "float" and isinstance(plain, int | float):
            return float(plain)
        if kind == "ellipsis":
            return {"ellipsis": True}
        if kind == "complex" and isinstance(plain, str):
            try:
                number = complex(plain)
            except ValueError:
                raise self._unknown(where, plain[:60]) from None
            return {"complex": (number.real, number.imag)}
        if kind == "slice" and isinstance(plain, list) and len(plain) == 3 and all(map(_is_end, plain)):
            return {"slice": plain}
        if kind == "torch.Size" and isinstance(plain, list) and all(type(size) is int for size in plain):
            return list(plain)
        if kind == "torch.dtype":
            dtype = str(plain).rpartition(".")[2]
            if dtype in dtypes.BY_NAME:
                return {"torch": widened(dtype, self._precision)}
        if kind == "torch.memory_format" and isinstance(value.get("format"), str) and value["format"] in _FORMATS:
            return {"torch": value["format"]}
        if kind in dtypes.BY_NAME and isinstance(plain, bool | int | float):  # a number of numpy
            return plain
        raise self._unknown(where, f"a {kind[:60]}")

    def _unknown(self, where: str, what: str) -> ConfigError:
        return ConfigError(f"{self._name}: expected a value of {where} in dump.json that a call can take, got {what}.")


_FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")


def _is_end(value: object) -> bool:
    return value is None or type(value) is int


def widened(dtype: str, precision: str) -> str:
    """The name of a dtype in another precision; integers and bool stay as they are."""
    row = dtypes.BY_NAME.get(dtype)
    if not precision or row is None:
        return dtype
    if dtype.startswith("complex"):
        return _WIDER.get(dtype, dtype) if precision == "float64" else dtype
    return precision if row.is_float and dtype != "float64" else dtype


def run(inputs: Any, attrs: Attrs) -> list[Any]:
    """The results of a function at `attrs["outputs"]`. It gets copies of its inputs.

    With gradients: what the last step of its backward makes of them, which is what a dump shows; `by_argument`: the
    gradients of its arguments.
    """
    import torch

    def value(spec: Any) -> Any:
        if isinstance(spec, (list, tuple)):
            return tuple(value(item) for item in spec)
        if not isinstance(spec, dict):
            return spec
        if "input" in spec:
            tensor = inputs[spec["input"]].detach().to(getattr(torch, spec["dtype"]), copy=True)
            if not spec.get("grad"):
                return tensor
            # An operand that a function writes in place is no leaf, or autograd refuses it.
            leaves[spec["input"]] = tensor.requires_grad_()
            operand = tensor.clone()
            makers.append(operand.grad_fn)
            return operand
        if "torch" in spec:
            return getattr(torch, spec["torch"])
        if "slice" in spec:
            return slice(*spec["slice"])
        if "complex" in spec:
            return complex(*spec["complex"])
        if "dict" in spec:
            return {key: value(item) for key, item in spec["dict"].items()}
        return ...

    def tensors_in(result: Any) -> list[Any]:
        if isinstance(result, torch.Tensor):
            return [result]
        items = result.values() if isinstance(result, dict) else result
        return [tensor for item in items for tensor in tensors_in(item)] if isinstance(items, (list, tuple)) else []

    def at(result: Any, path: Any) -> Any:
        result = result if isinstance(result, tuple) else (result,)
        for step in path:
            result = result[step] if isinstance(step, int) or isinstance(result, dict) else getattr(result, step)
        return result

    def gradients(result: Any) -> Any:
        node, caught = tensors_in(result)[0].grad_fn, []
        if any(node is maker for maker in makers):
            raise ValueError("it gave its operand back: this shows the backward of the call that made the operand")
        node.register_hook(lambda made, given: caught.append(made))
        made_by_node = {one.output_nr: one for one in tensors_in(result) if one.grad_fn is node}
        given = [(made_by_node[n], one) for n, one in enumerate(value(attrs["gradients"])) if one is not None]
        torch.autograd.backward([one for one, _ in given], [gradient for _, gradient in given])
        if attrs["by_argument"]:
            specs = [one if isinstance(one, dict) else {} for one in attrs["arguments"]]
            return tuple(leaves[one["input"]].grad if one.get("grad") else None for one in specs)
        return caught[0]

    leaves: dict[int, Any] = {}
    makers: list[Any] = []
    function: Any = torch
    for part in attrs["function"]:
        function = getattr(function, part)
    with torch.set_grad_enabled("gradients" in attrs):
        result = function(*value(attrs["arguments"]), **{key: value(item) for key, item in attrs["keywords"].items()})
        if "gradients" in attrs:
            result = gradients(result)
    return [at(result, path).detach() for path in attrs["outputs"]]


def outputs_of(name: str, plan: Mapping[str, Any], inputs: Sequence[Array]) -> list[Array]:
    """Arrays that the call of a plan gives.

    Raises: ConfigError for what torch refuses, and for a function that draws random numbers.
    """
    import torch

    from msdump.tensors.torch_arrays import array_like, tensor_of

    before = torch.get_rng_state()
    try:
        tensors = run([tensor_of(array) for array in inputs], plan)
        has_drawn = not torch.equal(before, torch.get_rng_state())
        arrays = [array_like(tensor) for tensor in tensors]
    except (
        RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, NotImplementedError, MemoryError,
        AssertionError, StopIteration,
    ) as error:  # fmt: skip
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"{name}: torch refuses it: {first}") from error
    finally:
        torch.set_rng_state(before)
    if has_drawn:
        raise ConfigError(
            f"{name}: it draws random numbers, which do not follow from its inputs: it cannot be replayed."
        )
    return arrays

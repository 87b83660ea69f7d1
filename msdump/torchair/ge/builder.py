"""What a converter builds GE operators with, and how it spells dtypes, devices and memory formats for the kernels."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from msdump.errors import DtypeError, GraphError
from msdump.tensors import dtypes
from msdump.tensors.torch_arrays import dtype_name, torch_dtype
from msdump.torchair.ge.graph import CONST, GeGraph, GeOp, GeTensor, Operand, Path, Size, WholeCall
from msdump.torchair.ge.registry import host_inputs, kernel_for

# What may be given for an input: plain values become a Const.
Feed = GeTensor | torch.Tensor | int | float | complex | Sequence[Size] | Sequence[Sequence[int]] | None


class Builder:
    """Appends operators to a graph while one FX node after the other is converted.

    node       the FX node that is being converted
    item       which of the node's results, while an operator over lists is converted tensor by tensor; None: all
    fake_mode  in which shapes and dtypes of results are found out, by running the kernels
    """

    def __init__(self, graph: GeGraph, fake_mode: FakeTensorMode) -> None:
        self.graph = graph
        self.fake_mode = fake_mode
        self.node: fx.Node | None = None
        self.item: int | None = None

    def op(
        self,
        op_type: str,
        inputs: Mapping[str, Feed],
        attrs: Mapping[str, object] | None = None,
        output: str = "y",
        name: str = "",
        hints: Mapping[str, object] | None = None,
    ) -> GeTensor:
        """Append an operator with one output, and return that.

        inputs   by the interface's names, in its order; None: an optional one that stays unfed; a number or a list
                 becomes a Const (ints INT64, floats FLOAT32: give `const` for another dtype)
        hints    what only the kernel has to know, see GeOp
        Edges:   shapes and dtypes of the outputs are those that the kernel gives.
        """
        (tensor,) = self.multi_op(op_type, inputs, (output,), attrs, name, hints)
        return tensor

    def multi_op(
        self,
        op_type: str,
        inputs: Mapping[str, Feed],
        outputs: Sequence[str],
        attrs: Mapping[str, Any] | None = None,
        name: str = "",
        hints: Mapping[str, object] | None = None,
    ) -> tuple[GeTensor, ...]:
        """As `op`, for an operator with any number of outputs.

        Edges: an attribute is fixed when the graph is compiled; one that is a size becomes an input of its name. An
               operator without outputs has nothing to find out: its kernel waits for the run.
        """
        fed = {key: self._fed(value) for key, value in inputs.items()}
        fixed = {key: value for key, value in (attrs or {}).items() if not _is_open(value)}
        opened = {key: self._fed(value) for key, value in (attrs or {}).items() if key not in fixed}
        op = GeOp(name, op_type, {**fed, **opened}, fixed, tuple(outputs), fx_node=self.node, hints=dict(hints or {}))
        op.open_attrs = frozenset(opened)
        results = self._run_fake(op) if outputs else ()
        if len(results) != len(op.output_names):
            raise GraphError(f"{op_type}: expected {len(op.output_names)} outputs, its kernel gave {len(results)}.")
        op.outputs = tuple(
            GeTensor(op, index, fake=result, view_of=_viewed(op, result))
            if isinstance(result, torch.Tensor)
            else GeTensor(op, index, value=result)
            for index, result in enumerate(results)
        )
        self.graph.add(op)
        return op.outputs

    def foreign_op(
        self,
        op_type: str,
        inputs: Mapping[str, Feed],
        attrs: Mapping[str, object],
        outputs: Sequence[str],
        name: str = "",
    ) -> GeOp:
        """Append an operator that no kernel computes. What its outputs are has to be noted in them, and in `exact`."""
        fed = {key: self._fed(value) for key, value in inputs.items()}
        op = GeOp(name, op_type, fed, dict(attrs), tuple(outputs), fx_node=self.node)
        op.outputs = tuple(GeTensor(op, index) for index in range(len(outputs)))
        return self.graph.add(op)

    def call(
        self,
        op_type: str,
        inputs: Mapping[str, GeTensor],
        attrs: Mapping[str, object],
        outputs: Sequence[str],
        results: Mapping[Path, object],
        call: WholeCall,
    ) -> tuple[GeTensor, ...]:
        """Append an operator that makes a call of the FX graph.

        results   what the FX graph promises, with the path of each in what the call returns
        """
        op = GeOp("", op_type, dict(inputs), dict(attrs), tuple(outputs), fx_node=self.node, call=call)
        op.outputs = tuple(
            GeTensor(op, index, fake=result, view_of=_viewed(op, result))
            if isinstance(result, torch.Tensor)
            else GeTensor(op, index, value=result)
            for index, result in enumerate(results.values())
        )
        self.graph.add(op)
        return op.outputs

    def const(self, value: Feed, dtype: torch.dtype | None = None, is_inline: bool = False) -> GeTensor:
        """Append a Const: a number, a list of numbers, or a tensor.

        dtype   None: INT64 for ints, FLOAT32 for floats, BOOL for bools, that of a tensor
        """
        op = const_op(value, dtype, self.fake_mode, is_inline, self.node)
        self.graph.add(op)
        return op.outputs[0]

    def number(self, value: Operand, dtype: torch.dtype) -> GeTensor:
        """A number as an input: a Const of that dtype, or the size that it is."""
        return value if isinstance(value, GeTensor) else self.const(value, dtype)

    def sizes(self, sizes: Sequence[Size]) -> GeTensor:
        """A list of sizes as an input: a Const, or a Pack of scalars when some of them are open.

        sizes   ints and GeTensors of host values
        """
        if not any(isinstance(size, GeTensor) for size in sizes):
            return self.const(list(sizes), torch.int64, is_inline=True)
        packed = {f"x{index}": self._scalar(size) for index, size in enumerate(sizes)}
        return self.op("Pack", packed, {"N": len(sizes), "axis": 0, "_force_unknown_shape": True})

    def cast(self, tensor: GeTensor, dtype: torch.dtype) -> GeTensor:
        """A Cast, or the tensor itself when it has that dtype."""
        if tensor.dtype == dtype:
            return tensor
        return self.op("Cast", {"x": tensor}, {"dst_type": ge_number(dtype)})

    def promoted(self, *values: Operand, dtype: torch.dtype) -> tuple[GeTensor, ...]:
        """Operands of one dtype: tensors are cast, numbers become Consts of it."""
        return tuple(
            self.cast(value, dtype) if isinstance(value, GeTensor) and not value.is_host else self.number(value, dtype)
            for value in values
        )

    @property
    def result(self) -> Any:
        """What the FX node returns: its FakeTensor, or a tuple of them. Tells a converter the dtype to end with."""
        assert self.node is not None
        promised = self.node.meta["val"]
        return promised if self.item is None else promised[self.item]

    def is_read(self, output: int) -> bool:
        """Whether this output of the FX node is read. An unread output needs no operator."""
        assert self.node is not None
        return any(user.target is operator.getitem and user.args[1] == output for user in self.node.users)

    def _scalar(self, size: Size) -> GeTensor:
        return size if isinstance(size, GeTensor) else self.const(int(size), torch.int64, is_inline=True)

    def _fed(self, value: Feed) -> GeTensor | None:
        if value is None or isinstance(value, GeTensor):
            return value
        if isinstance(value, list | tuple) and any(isinstance(item, GeTensor) for item in value):
            return self.sizes(value)
        return self.const(value, is_inline=True)

    def _run_fake(self, op: GeOp) -> tuple[object, ...]:
        host = host_inputs(op)
        given = {
            name: None if tensor is None else tensor.value if name in host and _has_value(tensor) else tensor.fake
            for name, tensor in op.inputs.items()
        }
        opened = {name: given.pop(name) for name in op.open_attrs}
        # Some kernels of torch know open sizes in their Python form only.
        with self.fake_mode, enable_python_dispatcher(), torch.no_grad():
            result = kernel_for(op).function(*given.values(), **opened, **op.attrs, **op.hints)
        return tuple(result) if isinstance(result, tuple) else (result,)


def const_op(
    value: Feed,
    dtype: torch.dtype | None,
    fake_mode: FakeTensorMode,
    is_inline: bool = False,
    node: fx.Node | None = None,
) -> GeOp:
    """A Const that is in no graph yet; see `Builder.const`."""
    # A backend may be called inside of the mode that its compiler traces in. A constant holds real numbers.
    with unset_fake_temporarily():
        if isinstance(value, torch.Tensor):
            constant = value.detach()
            plain_value: object = (
                constant.tolist() if constant.numel() <= 64 and constant.device.type == "cpu" else None
            )
        else:
            plain_value = list(value) if isinstance(value, list | tuple) else value
            constant = torch.tensor(plain_value, dtype=dtype or _dtype_of(plain_value))
    op = GeOp("", CONST, constant=constant, is_inline=is_inline, fx_node=node)
    op.outputs = (GeTensor(op, 0, fake=fake_mode.from_tensor(constant, static_shapes=True), value=plain_value),)
    return op


def real(value: GeTensor | float) -> GeTensor | float:
    """A float; a size as it is."""
    return value if isinstance(value, GeTensor) else float(value)


def _is_open(value: object) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(item, GeTensor) for item in items)


def _has_value(tensor: GeTensor) -> bool:
    return tensor.is_host or tensor.value is not None


def _viewed(op: GeOp, result: torch.Tensor) -> GeTensor | None:
    """The input whose memory a result is in. A fake tensor has none, but knows which one it would have.

    Edges: of a call that does not tell, the first tensor that it reads, which is to be on the safe side.
    """
    fed = [tensor for tensor in op.inputs.values() if tensor is not None and tensor.fake is not None]
    if result.layout is torch.strided:
        memory = result.untyped_storage()._cdata
        for tensor in fed:
            if tensor.fake.layout is torch.strided and tensor.fake.untyped_storage()._cdata == memory:
                return tensor
    return fed[0] if fed and op.call is not None and not op.call.tells_aliases else None


def _dtype_of(value: object) -> torch.dtype:
    items = value if isinstance(value, list) else [value]
    while items and isinstance(items[0], list):
        items = items[0]
    if items and all(isinstance(item, bool) for item in items):
        return torch.bool
    return torch.float32 if any(isinstance(item, float) for item in items) else torch.int64


@functools.cache
def ge_number(dtype: torch.dtype) -> int:
    """Raises: DtypeError for a dtype that GE does not have."""
    name = dtype_name(dtype)
    number = None if name is None else dtypes.dtype(name).ge_number
    if number is None:
        raise DtypeError(f"{dtype}: expected a dtype that GE has, got one without a number. Cast it before.")
    return number


@functools.cache
def dtype_of_number(number: int) -> torch.dtype:
    """The other way round."""
    dtype: torch.dtype = torch_dtype(dtypes.BY_GE_NUMBER[number].name)
    return dtype


def placement_hints(
    memory_format: torch.memory_format | None = None, device: torch.device | str | None = None
) -> dict[str, str]:
    """Hints of a converter: nothing for the CPU and for the layout that an operator chooses itself."""
    hints: dict[str, str] = {}
    if memory_format is not None and memory_format is not torch.preserve_format:
        hints["memory_format"] = str(memory_format).removeprefix("torch.")
    if device is not None and torch.device(device).type != "cpu":
        hints["device"] = str(device)
    return hints


def memory_format_of(name: str) -> torch.memory_format:
    """The inverse; "" is the format of the input."""
    chosen: torch.memory_format = getattr(torch, name or "preserve_format")
    return chosen

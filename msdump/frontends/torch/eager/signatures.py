"""What the schema of an operator says of its operands, read once for each operator."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from msdump.frontends.torch.operators import op_type


class Tensor(NamedTuple):
    """A tensor that a call is given. A tuple, as there are several for each operator.

    name        of the argument, with its index in a list: "tensors[1]"
    is_written  the call may write it
    is_read     False: memory for a result, `out=`
    """

    name: str
    tensor: torch.Tensor
    is_written: bool
    is_read: bool = True


# They write the running mean and variance of which their schemas say that they are only read.
_BATCH_NORMS = ("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm")
_WRITTEN_UNSAID = dict.fromkeys(_BATCH_NORMS, ("running_mean", "running_var"))
# Collectives on the tensors of the caller. Their schemas do not say that they write.
_COLLECTIVES = "c10d"
# Messages from one rank to another. Waiting for one right away would stop two ranks that first send to each other.
_SEND, _RECEIVES = "c10d::send", ("c10d::recv_", "c10d::recv_any_source_")
# Arguments of these types hold no tensor.
_WITHOUT_TENSORS = ("BoolType", "DeviceObjType", "FloatType", "IntType", "NumberType", "StringType")


class Signature:
    """An operator as its schema describes it.

    is_mutable  it may write what it reads
    is_waited   its result is there only after a wait
    is_send, is_receive  of a message to or from another rank, which may be under way when the call returns
    is_message  either
    is_view     its results share memory with what it reads, which it does not look into
    """

    __slots__ = (
        "_arguments",
        "_operands",
        "is_message",
        "is_mutable",
        "is_receive",
        "is_send",
        "is_view",
        "is_waited",
        "name",
        "op_type",
    )

    def __init__(self, function: torch._ops.OpOverload) -> None:
        schema = function._schema
        self.op_type = op_type(function)
        self.name = schema.name
        self.is_send, self.is_receive = self.name == _SEND, self.name in _RECEIVES
        self.is_message = self.is_send or self.is_receive
        is_waited = function.namespace in (_COLLECTIVES, "_c10d_functional", "_c10d_functional_autograd")
        self.is_waited = is_waited and not self.is_send and not self.is_receive
        is_collective = function.namespace == _COLLECTIVES and not self.is_send
        unsaid = _WRITTEN_UNSAID.get(schema.name, ())
        self._arguments = [
            (
                argument.name,
                is_collective
                or argument.name in unsaid
                or (argument.alias_info is not None and argument.alias_info.is_write),
                argument.kwarg_only,
            )
            for argument in schema.arguments
        ]
        # Place, name, and whether it is a keyword, is written and is read, of each argument that may hold tensors.
        # Source: PyTorch, native/README.md: what an operator writes of its keywords is memory for its results.
        self._operands = [
            (index, name, is_keyword, is_written, not (is_written and is_keyword))
            for index, (name, is_written, is_keyword) in enumerate(self._arguments)
            if not _has_no_tensor(schema.arguments[index].type)
        ]
        self.is_mutable = schema.is_mutable or is_collective or bool(unsaid)
        aliases = [argument.alias_info for argument in schema.arguments if argument.alias_info is not None]
        self.is_view = bool(aliases) and not self.is_mutable

    def tensors(self, args: Sequence[object], keywords: Mapping[str, object]) -> list[Tensor]:
        """The tensors among the arguments of a call, in the order of the schema; elements of lists are operands too."""
        found: list[Tensor] = []
        count = len(args)
        for index, name, is_keyword, is_written, is_read in self._operands:
            if index < count and not is_keyword:
                value = args[index]
            elif name in keywords:
                value = keywords[name]
            else:
                continue
            if isinstance(value, torch.Tensor):
                found.append(Tensor(name, value, is_written, is_read))
            elif isinstance(value, list | tuple):
                found += [Tensor(place, tensor, is_written, is_read) for place, tensor in tensors_in(value, name)]
        return found

    def attributes(self, args: Sequence[object], keywords: Mapping[str, object]) -> dict[str, object]:
        """Arguments that hold no tensor."""
        return {
            name: value
            for name, value, _ in self._bound(args, keywords)
            if not any(True for _ in tensors_in(value, name))
        }

    def _bound(self, args: Sequence[object], keywords: Mapping[str, object]) -> Iterator[tuple[str, object, bool]]:
        for index, (name, is_written, is_keyword) in enumerate(self._arguments):
            if index < len(args) and not is_keyword:
                yield name, args[index], is_written
            elif name in keywords:
                yield name, keywords[name], is_written


def _has_no_tensor(type: torch._C.JitType) -> bool:
    """Of an argument; of lists and of what may be left out by its element."""
    while type.kind() in ("OptionalType", "ListType"):
        type = type.getElementType()
    return type.kind() in _WITHOUT_TENSORS


@functools.cache
def signature_of(function: torch._ops.OpOverload) -> Signature:
    return Signature(function)


def tensors_in(value: object, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from tensors_in(item, f"{name}[{index}]")

"""The .air file of a model: weights become constants or files beside it, the graph a ModelDef of ge_ir.proto."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from msdump.formats.atomic import write_file
from msdump.frontends.torch.convert import bytes_of
from msdump.graph._proto import ge_ir_pb2
from msdump.torchair.debug_save.safe_files import FILE_MODE, refuse_link
from msdump.torchair.ge.builder import ge_number
from msdump.torchair.ge.graph import CONST, DATA, GeGraph, GeOp
from msdump.torchair.ge.numbers import DataType
from msdump.torchair.ge.passes import mutated_input
from msdump.torchair.graph_dump.definition import LAYOUT, graph_definition

REF_DATA, FILE_CONSTANT = "RefData", "FileConstant"
# protobuf takes 2 GiB at most.   Source: TorchAir, which keeps 200 MiB of it for the graph.
LIMIT_BYTES = (2048 - 200) << 20


@dataclass(frozen=True)
class WeightFolder:
    """Where weights get a file each: raw elements in row-major order, under their name with `_` for each dot."""

    path: Path

    def file_of(self, name: str) -> Path:
        """Path of the file of a weight."""
        return self.path / name.replace(".", "_")

    def write(self, name: str, tensor: torch.Tensor) -> None:
        """Raises: WriteError."""
        file = self.file_of(name)
        refuse_link(file)
        write_file(file, [bytes_of(tensor)], FILE_MODE, replace=True)


def store_weights(graph: GeGraph, args: Sequence[object], named: dict[str, torch.Tensor], folder: WeightFolder) -> None:
    """Turn inputs that are weights into constants; the other inputs are numbered anew, those that are written last.

    args   what the graph is called with: one per argument of the graph
    named  parameters and buffers of the model by name
    Edges: above LIMIT_BYTES all weights have files. A buffer that the model writes stays an input: a constant has no
           place for what is written.
    Source: TorchAir, dynamo_export.
    """
    name_by_key = {_key(tensor): name for name, tensor in named.items() if tensor.layout is torch.strided}
    present = set(map(id, graph.ops))
    written = {id(ref.op) for op in graph.ops if (ref := mutated_input(op)) is not None}
    weights: dict[GeOp, tuple[str, torch.Tensor]] = {}
    for op, value in zip(graph.arguments, args, strict=True):
        if id(op) not in present or id(op) in written or not isinstance(value, torch.Tensor):
            continue
        name = name_by_key.get(_key(value)) if value.layout is torch.strided else None
        if name is not None:
            weights[op] = name, value
    size = sum(tensor.numel() * tensor.element_size() for _, tensor in weights.values())
    for op, (name, tensor) in weights.items():
        if size > LIMIT_BYTES:
            folder.write(name, tensor)
            _become_file(op, tensor, folder.file_of(name))
        else:
            op.type, op.attrs, op.constant, op.hints = CONST, {}, tensor.detach(), {"is_weight": True}
    _number_inputs(graph, args, written)


def _key(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def _become_file(op: GeOp, tensor: torch.Tensor, file: Path) -> None:
    op.type = FILE_CONSTANT
    op.output_names = ("y",)
    op.attrs = {
        "shape": list(tensor.shape),
        "dtype": DataType(ge_number(tensor.dtype)),
        "file_path": str(file),
        "file_id": "",
    }


def _number_inputs(graph: GeGraph, args: Sequence[Any], written: set[int]) -> None:
    """Data first, then RefData: inputs that the model writes, with what tells their memory apart in their name."""
    value_by_op = dict(zip(map(id, graph.arguments), args, strict=True))
    inputs = [op for op in graph.ops if op.type == DATA]
    plain = [op for op in inputs if id(op) not in written]
    references = [op for op in inputs if id(op) in written]
    for index, op in enumerate([*plain, *references]):
        op.attrs["index"] = index
    for op in references:
        value = value_by_op[id(op)]
        sizes, strides = ("_".join(map(str, numbers)) for numbers in (value.shape, value.stride()))
        op.type = REF_DATA
        graph.rename(op, f"{REF_DATA}_{sizes}_{strides}_{value.storage_offset()}_{op.attrs['index']}")


_INPUTS = ("Data", "RefData")
_ND = 2
# Source: an .air file that TorchAir wrote. ATC finds out what these are when it compiles the model.
_MODEL_NUMBERS = ("event_num", "label_num", "memory_size", "p2p_memory_size", "stream_num", "weight_size")
_TARGET = b"MINI"
# The loader has no use for them.
_NOT_IN_A_FILE = ("_input_placements", "_output_dtypes")


def air_bytes(graph: GeGraph) -> bytes:
    """Equal graphs give equal bytes with one version of protobuf.

    Descriptors have no names, as operators list those of their inputs and outputs, and say their format as CANN does;
    an input has one edge that nothing feeds.
    Source: TorchAir, dynamo_export; the constants of the graph have their values in it.
    """
    model = ge_ir_pb2.ModelDef()
    definition = model.graph.add()
    definition.ParseFromString(graph_definition(graph, is_optimized=True).SerializeToString())
    for name in _NOT_IN_A_FILE:
        definition.attr.pop(name, None)
    for op in definition.op:
        if op.type in _INPUTS:
            op.input.append("")
            for descriptor in op.input_desc:
                descriptor.attr.pop("_meta", None)
        descriptors = [*op.input_desc, *op.output_desc]
        if "value" in op.attr:
            descriptors.append(op.attr["value"].t.desc)
        for descriptor in descriptors:
            _say_format(descriptor)
    inputs = sorted((op for op in definition.op if op.type in _INPUTS), key=lambda op: op.attr["index"].i)
    definition.input.extend(f"{op.name}:0" for op in inputs)
    for name in _MODEL_NUMBERS:
        model.attr[name].i = 0
    model.attr["target_type"].s = _TARGET
    return model.SerializeToString(deterministic=True)


def _say_format(descriptor: Any) -> None:
    descriptor.name = ""
    descriptor.attr["origin_format"].s = LAYOUT.encode()
    descriptor.attr["format_for_int"].i = _ND
    descriptor.attr["origin_format_for_int"].i = _ND
    descriptor.attr["origin_shape_initialized"].b = False

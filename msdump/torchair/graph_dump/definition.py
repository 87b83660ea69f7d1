"""A GeGraph as a GraphDef of ge_ir.proto, with the attributes that TorchAir gives it and its maps in order.

Maps are lists of entries: the same bytes and text, in the order in which they fill. protobuf prints a map in an order
of its own, another one in each version; graph files are made to be compared, by eye and by diff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from torch._subclasses.fake_tensor import unset_fake_temporarily

from msdump.errors import DtypeError
from msdump.frontends.torch.convert import bytes_of
from msdump.graph._proto import ge_ir_pb2
from msdump.tensors import dtypes
from msdump.tensors.torch_arrays import dtype_name
from msdump.torchair.ge.builder import ge_number
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.torchair.ge.numbers import DataType


def _without_maps() -> Any:
    file = FileDescriptorProto()
    ge_ir_pb2.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        _spell_out_maps(message)
    return DescriptorPool().AddSerializedFile(file.SerializeToString())


def _spell_out_maps(message: DescriptorProto) -> None:
    """A map is a repeated message of a key and a value, marked as such: take the mark away."""
    message.options.ClearField("map_entry")
    for nested in message.nested_type:
        _spell_out_maps(nested)


_FILE = _without_maps()
GraphDef: Any = GetMessageClass(_FILE.message_types_by_name["GraphDef"])
TensorDescriptor: Any = GetMessageClass(_FILE.message_types_by_name["TensorDescriptor"])


def attr(owner: Any, name: str) -> Any:
    """The AttrDef of a new attribute."""
    return owner.attr.add(key=name).value


LAYOUT = "ND"
UNKNOWN_SIZE = -1
UNDEFINED = 28
HOST, DEVICE = "CPU", "NPU"
_List = ge_ir_pb2.AttrDef.ListValue


def graph_definition(graph: GeGraph, is_optimized: bool = False) -> Any:
    """The graph as TorchAir holds it: a GraphDef whose maps are in order.

    is_optimized  after all passes: descriptors have a layout and a dtype, operators list the names of their inputs and
                  outputs, and the graph says what it takes and returns
    Source: TorchAir, txt files of graph_dump.
    """
    return _Definition(graph, is_optimized).build()


def device_type(tensor: GeTensor) -> str:
    """Where GE has the tensor: on its host, or on its one kind of device, which is called NPU whatever it is."""
    is_device = tensor.fake is not None and tensor.fake.device.type != "cpu"
    return DEVICE if is_device else HOST


def known_sizes(tensor: GeTensor) -> list[int]:
    """Sizes with UNKNOWN_SIZE for those that are open."""
    return [size if type(size) is int else UNKNOWN_SIZE for size in tensor.shape]


class _Definition:
    def __init__(self, graph: GeGraph, is_optimized: bool) -> None:
        self.graph = graph
        self.is_optimized = is_optimized
        self._descriptors: dict[GeTensor, object] = {}

    def build(self) -> Any:
        definition = GraphDef(name=self.graph.name)
        for op in self.graph.ops:
            # Made in place: protobuf copies what is appended.
            self._fill(definition.op.add(), op)
        if self.is_optimized:
            self._describe_interface(definition)
        return definition

    def _fill(self, target: Any, op: GeOp) -> None:
        target.name, target.type = op.name, op.type
        target.input.extend("" if tensor is None else tensor.name for tensor in op.inputs.values())
        target.input.extend(f"{before.name}:-1" for before in op.controls)
        for name, value in (*op.attrs.items(), *op.scope.items()):
            _set_attr(attr(target, name), value)
        if op.type == CONST:
            self._fill_const(target, op)
        elif op.type in (DATA, "RefData"):
            self._fill_data(target, op.outputs[0])
        else:
            for name, tensor in op.inputs.items():
                self._add_input(target, name, tensor)
            for name, tensor in zip(op.output_names, op.outputs, strict=True):
                self._describe(target.output_desc.add(), name, tensor)
        if self.is_optimized:
            _name_ends(target, "input", [descriptor.name for descriptor in target.input_desc])
            _name_ends(target, "output", [descriptor.name for descriptor in target.output_desc])

    def _fill_const(self, target: Any, op: GeOp) -> None:
        (tensor,) = op.outputs
        content = attr(target, "value").t
        self._describe(content.desc, "", tensor)
        content.data = _raw(op.constant)
        if not op.hints.get("is_weight"):
            readable = tensor.value if tensor.value is not None else op.constant
            attr(target, "_readable_value").s = repr(readable).encode()
        self._describe(target.output_desc.add(), "", tensor)

    def _fill_data(self, target: Any, tensor: GeTensor) -> None:
        for descriptor, name in ((target.input_desc.add(), "x"), (target.output_desc.add(), "y")):
            self._describe(descriptor, name, tensor)
            descriptor.layout = LAYOUT

    def _add_input(self, target: Any, name: str, tensor: GeTensor | None) -> None:
        descriptor = target.input_desc.add()
        if tensor is not None:
            self._describe(descriptor, name, tensor)
            return
        descriptor.name = name
        attr(descriptor, "_is_unfed_optional").i = 1
        if self.is_optimized:
            descriptor.dtype, descriptor.layout = ge_ir_pb2.DT_FLOAT, LAYOUT

    def _describe(self, descriptor: Any, name: str, tensor: GeTensor) -> None:
        """Each reader of a tensor has a copy of its descriptor, under a name of its own."""
        if tensor not in self._descriptors:
            self._descriptors[tensor] = self._descriptor(tensor)
        descriptor.CopyFrom(self._descriptors[tensor])
        descriptor.name = name

    def _descriptor(self, tensor: GeTensor) -> Any:
        descriptor = TensorDescriptor(dtype=_proto_number(tensor), device_type=device_type(tensor))
        if self.is_optimized:
            descriptor.layout = LAYOUT
            descriptor.dtype = descriptor.dtype or ge_ir_pb2.DT_FLOAT
        # A scalar has a shape without sizes, which is there all the same.
        descriptor.shape.SetInParent()
        descriptor.shape.dim.extend(known_sizes(tensor))
        if tensor.fx_name or tensor.op.type == DATA:
            attr(descriptor, "_meta").s = _meta(tensor).encode()
        if tensor.fx_name:
            attr(descriptor, "_fx_tensor_name").s = tensor.fx_name.encode()
        return descriptor

    def _describe_interface(self, definition: object) -> None:
        inputs = [op.outputs[0] for op in self.graph.inputs]
        returned = [
            tensor
            for op in self.graph.ops
            if op.type == NET_OUTPUT
            for tensor in op.inputs.values()
            if tensor is not None
        ]
        placements = [int(device_type(tensor) == DEVICE) for tensor in inputs]
        attr(definition, "_output_dtypes").list.i.extend(number_or_undefined(tensor.dtype) for tensor in returned)
        attr(definition, "_input_placements").list.i.extend(placements)
        attr(definition, "_executor_type").i = max(placements, default=0)


def number_or_undefined(dtype: torch.dtype) -> int:
    """GE's number of a dtype, UNDEFINED for one that it does not have."""
    try:
        return ge_number(dtype)
    except DtypeError:
        return UNDEFINED


def _proto_number(tensor: GeTensor) -> int:
    if tensor.is_text:
        return ge_ir_pb2.DT_STRING
    name = dtype_name(tensor.dtype)
    return ge_ir_pb2.DT_UNDEFINED if name is None else dtypes.dtype(name).acl_number or ge_ir_pb2.DT_UNDEFINED


def _proto_number_of(number: int) -> int:
    row = dtypes.BY_GE_NUMBER.get(number)
    return (row.acl_number if row is not None else None) or ge_ir_pb2.DT_UNDEFINED


def _meta(tensor: GeTensor) -> str:
    if tensor.fake is None:
        return str(tensor.value)
    return f"Tensor(dtype={tensor.dtype}, shape={torch.Size(tensor.shape)})"


def _raw(constant: torch.Tensor | None) -> bytes:
    """The elements in little-endian order."""
    assert constant is not None
    with unset_fake_temporarily():
        return bytes_of(constant)


def _name_ends(target: object, side: str, names: Sequence[str]) -> None:
    if names:
        attr(target, f"_{side}_name_key").list.s.extend(name.encode() for name in names)
        attr(target, f"_{side}_name_value").list.i.extend(range(len(names)))


def _set_attr(field: Any, value: Any) -> None:
    """The one field that the value needs. What has none, such as an open size, is told as text."""
    if isinstance(value, DataType):
        field.dt = _proto_number_of(value)
    elif isinstance(value, bool):
        field.b = value
    elif isinstance(value, int):
        field.i = value
    elif isinstance(value, float):
        field.f = value
    elif isinstance(value, list | tuple):
        _set_list(field, value)
    else:
        field.s = str(value).encode()


def _set_list(field: Any, values: Sequence[Any]) -> None:
    if not values:
        field.list.SetInParent()
    elif all(isinstance(value, bool) for value in values):
        field.list.b.extend(values)
        field.list.val_type = _List.VT_LIST_BOOL
    elif all(type(value) is int for value in values):
        field.list.i.extend(values)
        field.list.val_type = _List.VT_LIST_INT
    elif all(isinstance(value, int | float) for value in values):
        field.list.f.extend(float(value) for value in values)
        field.list.val_type = _List.VT_LIST_FLOAT
    elif all(isinstance(value, list | tuple) and all(type(item) is int for item in value) for value in values):
        for value in values:
            field.list_list_int.list_list_i.add().list_i.extend(value)
    else:
        field.list.s.extend(str(value).encode() for value in values)
        field.list.val_type = _List.VT_LIST_STRING

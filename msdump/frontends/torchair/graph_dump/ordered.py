"""Messages of ge_ir.proto whose maps are lists of entries: the same bytes and text, in the order in which they fill.

protobuf prints a map in an order of its own, another one in each version; graph files are made to be compared, by eye
and by diff.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from msdump._proto import ge_ir_pb2


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

"""The bytes of an .air file: a ModelDef of ge_ir.proto with one graph."""

from __future__ import annotations

from typing import Any

from msdump._proto import ge_ir_pb2
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.definition import LAYOUT, graph_definition

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

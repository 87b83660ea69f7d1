"""Types of all values of a model: element types once, shapes for each set of input shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx.shape_inference

from msdump.errors import FormatError
from msdump.frontends.onnx.nodes import WHOLE_ELEMENTS, ModelConstant
from msdump.frontends.onnx.ort_values import dtype_name, type_text
from msdump.graph.types import TensorType
from msdump.tensors import dtypes

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class DeclaredTensor:
    """An input or output as the model declares it.

    dtype   name of the dtype table, or ONNX's own where the table has none ("string", "seq")
    shape   a size, the name of one that is open, or None for one without a name; None when even the rank is open
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


def spec_of(value: onnx.ValueInfoProto) -> DeclaredTensor:
    """The declaration of a graph input or output."""
    kind = value.type.WhichOneof("value") or "tensor_type"
    if kind != "tensor_type":
        return DeclaredTensor(value.name, kind.removesuffix("_type"), None)
    tensor = value.type.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(_declared_size(dim) for dim in tensor.shape.dim)
    return DeclaredTensor(value.name, type_text(tensor.elem_type), shape)


class Inference:
    """Asks onnx for types. Holds the model without its weights."""

    def __init__(self, model: onnx.ModelProto, constants: Mapping[str, ModelConstant]) -> None:
        self._skeleton = _skeleton(model, constants)
        self._inputs = [value.name for value in self._skeleton.graph.input]

    def types(self) -> dict[str, onnx.TypeProto]:
        """Type of every value that onnx knows one of, by name; shapes as the model declares them."""
        return _infer(self._skeleton)

    def shapes(self, inputs: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor that onnx knows one of, for these shapes of the inputs; -1 for an open size."""
        model = onnx.ModelProto()
        model.CopyFrom(self._skeleton)
        for value in model.graph.input:
            if value.name in inputs:
                shape = value.type.tensor_type.shape
                del shape.dim[:]
                shape.SetInParent()
                for size in inputs[value.name]:
                    shape.dim.add(dim_value=size)
        # What was declared for other shapes would win over what follows from these.
        del model.graph.value_info[:]
        for value in model.graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        shapes: dict[str, tuple[int, ...]] = {}
        for name, type in _infer(model).items():
            if type.HasField("tensor_type") and type.tensor_type.HasField("shape"):
                shapes[name] = tuple(_known_size(dim) for dim in type.tensor_type.shape.dim)
        return shapes


def tensor_type(elem_type: int, shape: tuple[int, ...] | None) -> TensorType | None:
    """A type for the Graph; None for dtypes that no file of a dump can hold.   Edges: an open rank is (-1,)."""
    name = dtype_name(elem_type)
    if name is None or not dtypes.dtype(name).is_dumped:
        return None
    return TensorType(name, (UNKNOWN,) if shape is None else shape)


def _infer(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise FormatError(f"model: expected types that fit, got {str(error).strip().splitlines()[0]}") from error
    graph = inferred.graph
    types = {value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}
    return {name: type for name, type in types.items() if type.WhichOneof("value") is not None}


def _skeleton(model: onnx.ModelProto, constants: Mapping[str, ModelConstant]) -> onnx.ModelProto:
    """The model with large constants as inputs: nothing of it is big."""
    graph = model.graph
    skeleton = onnx.ModelProto(ir_version=max(4, model.ir_version), opset_import=model.opset_import)
    skeleton.graph.name = graph.name or "graph"
    skeleton.graph.input.extend(value for value in graph.input if value.name not in constants)
    skeleton.graph.output.extend(graph.output)
    skeleton.graph.value_info.extend(graph.value_info)
    for name, constant in constants.items():
        size = 1 if constant.array is None else constant.array.size
        if size <= WHOLE_ELEMENTS:
            tensor = skeleton.graph.initializer.add()
            tensor.CopyFrom(constant.proto)
            tensor.name = name
        else:
            skeleton.graph.input.append(
                onnx.helper.make_tensor_value_info(name, constant.elem_type, list(constant.proto.dims))
            )
    made_here = {tensor.name for tensor in skeleton.graph.initializer} | {v.name for v in skeleton.graph.input}
    skeleton.graph.node.extend(node for node in graph.node if not set(node.output) & made_here)
    return skeleton


def _declared_size(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def _known_size(dim: onnx.TensorShapeProto.Dimension) -> int:
    return int(dim.dim_value) if dim.HasField("dim_value") else UNKNOWN

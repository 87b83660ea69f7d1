"""One operator of a model alone: a model of one node, which runs on given arrays.

nodes = ModelNodes.read("net.onnx")
node = nodes.find(["fc/MatMul"], "MatMul")
lone = nodes.lone(node, {"x": x, "w": w})
lone.run({"x": x})                  # in onnxruntime
lone.run_reference({"x": x})        # in numpy, by onnx's own definition of the operator
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from msdump.errors import ConfigError, did_you_mean
from msdump.formats.paths.acl import safe_piece
from msdump.formats.paths.parse import safe_text
from msdump.frontends.onnx.inference import Inference, tensor_type
from msdump.frontends.onnx.model_file import read_model
from msdump.frontends.onnx.node_session import (
    IR_VERSION,
    chooses_kernels,
    error_text,
    is_ort_error,
    run_options,
    session_options,
)
from msdump.frontends.onnx.nodes import (
    ModelConstant,
    ModelNode,
    Scope,
    model_constants,
    model_nodes,
    subgraphs,
)
from msdump.frontends.onnx.ort_values import array_of, dtype_name, elem_type_of, raw_data_of, type_text, value_of
from msdump.operators.traits import is_collective, is_random
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_T = onnx.TensorProto
_MAX_BYTES = (1 << 31) - (1 << 20)  # protobuf writes no larger message
# Attributes that are the number of a dtype.
_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")
_HALVES = (_T.FLOAT16, _T.BFLOAT16)
# What inputs and weights become, and what is widened so.
_WIDER = {"float32": (_T.FLOAT, _HALVES), "float64": (_T.DOUBLE, (_T.FLOAT, *_HALVES))}


class ModelNodes:
    """The operators of a model, their constants and what is known of the types of values. Nothing of it runs.

    where   for messages
    """

    def __init__(self, model: onnx.ModelProto, where: str) -> None:
        self.where = where
        self._opsets = tuple(model.opset_import)
        self._constants = model_constants(model.graph)
        inputs = [value.name for value in model.graph.input if value.name not in self._constants]
        self.nodes = tuple(model_nodes(model.graph, [*self._constants, *inputs], Scope()))
        self._types = Inference(model, self._constants).types()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ModelNodes:
        """Raises: FormatError for what is not ONNX; GraphError for an operator set that is not known here."""
        return cls(read_model(path)[0], os.fspath(path))

    def find(self, names: Iterable[str], op_type: str) -> ModelNode:
        """The node of a dumped operator: by its name, as a name of a file spells it, by a name that it had before; else
        the only one of its type in a model of one node.

        Raises: ConfigError where the model has no such operator, or several.
        """
        wanted = [name for name in dict.fromkeys(names) if name]
        spelt = {safe(name) for name in wanted for safe in (safe_text, safe_piece)}
        for fits in (
            lambda node: node.name in wanted,
            lambda node: not spelt.isdisjoint((safe_text(node.name), safe_piece(node.name))),
            lambda node: not set(wanted).isdisjoint(node.originals),
            lambda node: len(self.nodes) == 1 and node.op_type == op_type,
        ):
            found = [node for node in self.nodes if fits(node)]
            if len(found) == 1:
                return found[0]
            if found:
                names_found = ", ".join(node.name for node in found[:5])
                raise ConfigError(
                    f"{self.where}: expected one operator {wanted[0]}, got {len(found)} whose names files of a dump "
                    f"spell alike: {names_found}."
                )
        around = next((node for node in self.nodes if any(name.startswith(f"{node.name}/") for name in wanted)), None)
        if around is not None and any(True for _ in subgraphs(around.proto)):
            raise ConfigError(
                f"{self.where}: expected an operator of the model itself, got {wanted[0]}, which runs inside of "
                f"{around.name} ({around.op_type}). Replay that one: its inputs are in the dump as well."
            )
        advice = did_you_mean(wanted[0] if wanted else op_type, [node.name for node in self.nodes])
        raise ConfigError(
            f"{self.where}: expected the model that was dumped, got one without an operator "
            f"{wanted[0] if wanted else op_type}. {advice}".rstrip()
        )

    def operands(self, node: ModelNode) -> tuple[str, ...]:
        """Names of what it reads, as the inputs of a dump count them."""
        return tuple(name for name in (*node.proto.input, *node.captured) if name and self._is_shown(name))

    def results(self, node: ModelNode) -> tuple[str, ...]:
        """Names of what it makes, as the outputs of a dump count them."""
        return tuple(name for name in node.makes if self._is_shown(name))

    def is_constant(self, name: str) -> bool:
        return name in self._constants

    def constant(self, name: str) -> Array | None:
        """The array of a constant; None for what is none, or none of numbers."""
        constant = self._constants.get(name)
        return None if constant is None else constant.array

    def lone(self, node: ModelNode, arrays: Mapping[str, Array], precision: str = "") -> LoneNode:
        """The operator alone. Constants have the bytes of `arrays` where that holds them, else those of the model.

        arrays     what it reads, by name: of the inputs only shapes and dtypes count
        precision  "float32" or "float64": what floating-point inputs, constants and attributes of a narrower dtype
                   become; "" leaves them

        Raises: ConfigError for an operator that draws random numbers, needs other processes, reads or makes what no
                dump holds, or is too large.
        """
        self._refuse(node, arrays)
        graph = onnx.GraphProto(name="node")
        graph.node.add().CopyFrom(node.proto)
        del graph.node[0].metadata_props[:]
        graph.node[0].doc_string = ""
        feeds = []
        for name in node.reads:
            constant = self._constants.get(name)
            if constant is not None:
                _add_constant(graph, constant, arrays.get(name))
            elif name in arrays:
                array = arrays[name]
                number = elem_type_of(dtypes.dtype_from_numpy(array.dtype).name)
                graph.input.append(onnx.helper.make_tensor_value_info(name, number, array.shape))
                feeds.append(name)
            else:
                raise ConfigError(
                    f"{node.op_type}: expected its operand {name} in the dump, got none: {self._why(name)}."
                )
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.results(node))
        if precision:
            _widen(graph, *_WIDER[precision])
        model = onnx.ModelProto(ir_version=IR_VERSION, opset_import=self._opsets, graph=graph)
        if model.ByteSize() > _MAX_BYTES:
            raise ConfigError(f"{node.op_type}: expected weights below 2 GB, got {model.ByteSize()} bytes.")
        return LoneNode(model, tuple(feeds), self.results(node))

    # -- parts ------------------------------------------------------------------------------------

    def _is_shown(self, name: str) -> bool:
        """Whether files of a dump hold a value; one of unknown type is a tensor."""
        constant, type = self._constants.get(name), self._types.get(name)
        if constant is not None:
            return constant.array is not None and tensor_type(constant.elem_type, ()) is not None
        if type is None or (type.HasField("tensor_type") and not type.tensor_type.elem_type):
            return True
        return type.HasField("tensor_type") and tensor_type(type.tensor_type.elem_type, ()) is not None

    def _why(self, name: str) -> str:
        type = self._types.get(name)
        if self._is_shown(name) or type is None:
            return 'dump inputs as well ("dump_mode": "all")'
        kind = type.WhichOneof("value") or "value"
        shown = type_text(type.tensor_type.elem_type) if kind == "tensor_type" else kind.removesuffix("_type")
        return f"a dump holds no value of type {shown}"

    def _refuse(self, node: ModelNode, arrays: Mapping[str, Array]) -> None:
        for inner in (node.proto, *_nodes_inside(node.proto)):
            op_type = str(inner.op_type)
            if is_random(op_type) and (op_type != "Dropout" or self._drops(inner, arrays)):
                raise ConfigError(
                    f"{op_type}: it draws random numbers, which do not follow from its inputs: it cannot be replayed."
                )
            if is_collective(op_type):
                raise ConfigError(f"{op_type}: its results come from other processes too: it cannot be replayed alone.")

    def _drops(self, node: onnx.NodeProto, arrays: Mapping[str, Array]) -> bool:
        """Whether a Dropout drops anything: since set 12 its third operand says so, before set 7 an attribute."""
        version = next((entry.version for entry in self._opsets if entry.domain in ("", "ai.onnx")), 12)
        if version < 7:
            return not any(attribute.name == "is_test" and attribute.i for attribute in node.attribute)
        if len(node.input) < 3 or not node.input[2]:
            return False
        name = node.input[2]
        value = arrays.get(name, self.constant(name))
        return value is None or bool(np.any(value))


@dataclass(frozen=True, slots=True)
class LoneNode:
    """A model of one operator.

    feeds    names of its inputs, those that are no constants
    results  names of its outputs
    """

    model: onnx.ModelProto
    feeds: tuple[str, ...]
    results: tuple[str, ...]

    def run(self, arrays: Mapping[str, Array]) -> list[Array]:
        """Outputs of onnxruntime, with the kernel that a dump of the model takes.

        Dtypes:  of the inputs: widened as the model was.
        Raises:  ConfigError with what onnxruntime says against it.
        """
        given = self._given(arrays)
        try:
            options = session_options(1, chooses_kernels())
            session = onnxruntime.InferenceSession(
                self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            feeds = {name: value_of(array, dtypes.dtype_from_numpy(array.dtype).name) for name, array in given.items()}
            # The values outlive their memory no longer than the arrays that are copied from them.
            values = session._sess.run_with_ort_values(feeds, list(self.results), run_options())
            return [np.array(array_of(value)) for value in values]
        except Exception as error:
            # Every class of onnxruntime's errors derives from Exception alone.
            if not (is_ort_error(error) or isinstance(error, KeyError)):
                raise
            raise ConfigError(f"onnxruntime refuses it: {error_text(error)}") from error

    def run_reference(self, arrays: Mapping[str, Array]) -> list[Array]:
        """Outputs of onnx.reference, which computes in numpy.   Raises: ConfigError for what it cannot run."""
        given = self._given(arrays)
        try:
            # Definitions of operators are Python code of onnx, and raise whatever they raise.
            outputs = ReferenceEvaluator(self.model).run(list(self.results), given)
            return [np.asarray(output) for output in outputs]
        except Exception as error:
            raise ConfigError(f"onnx.reference cannot run it: {error_text(error)}") from error

    def script_model(self, outputs: Sequence[str]) -> tuple[bytes, tuple[str, ...], tuple[str, ...]]:
        """The model as a program with numpy alone feeds it: the bytes of its file, names of its inputs, in the order of
        `feeds`, and of its outputs. What numpy has no dtype for goes in and out in that which .npy files have, and is
        cast.

        outputs   dtypes of its outputs
        """
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        taken = {name for node in graph.node for name in (*node.input, *node.output)}
        for value in graph.input:
            number = value.type.tensor_type.elem_type
            row = dtypes.dtype(str(dtype_name(number)))
            if row.is_widened:
                wide = _free(f"{value.name}_wide", taken)
                graph.node.insert(0, onnx.helper.make_node("Cast", [wide], [value.name], to=number))
                value.name, value.type.tensor_type.elem_type = wide, elem_type_of(row.npy_name)
        for value, dtype in zip(graph.output, outputs, strict=True):
            row = dtypes.dtype(dtype)
            if row.is_widened:
                wide = _free(f"{value.name}_wide", taken)
                cast = onnx.helper.make_node("Cast", [value.name], [wide], to=elem_type_of(row.npy_name))
                graph.node.append(cast)
                value.name = wide
        inputs = tuple(str(value.name) for value in graph.input)
        return model.SerializeToString(), inputs, tuple(str(value.name) for value in graph.output)

    def _given(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Inputs in the dtypes of the model, contiguous."""
        given = {}
        for value in self.model.graph.input:
            row = dtypes.dtype(dtype_name(value.type.tensor_type.elem_type) or "")
            given[str(value.name)] = np.array(arrays[value.name], order="C").astype(row.numpy, copy=False)
        return given


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _add_constant(graph: onnx.GraphProto, constant: ModelConstant, dumped: Array | None) -> None:
    tensor = graph.initializer.add()
    array = constant.array if dumped is None else dumped
    if array is None:
        tensor.CopyFrom(constant.proto)
        tensor.name = constant.name
        return
    dtype = dtypes.dtype_from_numpy(array.dtype).name
    tensor.name, tensor.data_type = constant.name, elem_type_of(dtype)
    tensor.dims.extend(array.shape)
    tensor.raw_data = raw_data_of(np.ascontiguousarray(array), dtype)


def _nodes_inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Of its subgraphs, and of theirs."""
    for graph in subgraphs(node):
        for inner in graph.node:
            yield inner
            yield from _nodes_inside(inner)


def _widen(graph: onnx.GraphProto, wide: int, narrow: Sequence[int]) -> None:
    """Put one dtype in the place of narrower ones, in subgraphs too."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in narrow:
            value.type.tensor_type.elem_type = wide
    for tensor in graph.initializer:
        _widen_tensor(tensor, wide, narrow)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _DTYPE_ATTRIBUTES and attribute.i in narrow:
                attribute.i = wide
            elif attribute.type == onnx.AttributeProto.TENSOR:
                _widen_tensor(attribute.t, wide, narrow)
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                floats = [attribute.f] if attribute.name == "value_float" else list(attribute.floats)
                array = np.array(floats if attribute.name == "value_floats" else floats[0], np.float32)
                wider = onnx.TensorProto()
                wider.CopyFrom(numpy_helper.from_array(array))
                _widen_tensor(wider, wide, narrow)
                attribute.CopyFrom(onnx.helper.make_attribute("value", wider))
        for body in subgraphs(node):
            _widen(body, wide, narrow)


def _widen_tensor(tensor: onnx.TensorProto, wide: int, narrow: Sequence[int]) -> None:
    if tensor.data_type not in narrow:
        return
    array = np.asarray(numpy_helper.to_array(tensor)).astype(dtypes.dtype(str(dtype_name(wide))).numpy)
    name = tensor.name
    tensor.CopyFrom(numpy_helper.from_array(array, name))

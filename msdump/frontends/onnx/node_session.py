"""Sessions of onnxruntime that hold one operator each; equal operators share one."""

from __future__ import annotations

import copy
import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnxruntime

from msdump.config.environment import ONNX_OPTIMIZATION
from msdump.errors import ConfigError, GraphError
from msdump.frontends.onnx.nodes import ModelConstant, ModelNode, subgraphs
from msdump.frontends.onnx.ort_values import is_packed, raw_data_of, type_text, value_of
from msdump.tensors import dtypes

# onnxruntime and onnx are released apart: a model of one node needs nothing that came after this version.
IR_VERSION = 10
# Larger constants stay in their own memory, which the session reads.
_SMALL_BYTES = 1024
# "[ONNXRuntimeError] : 1 : FAIL : "
_NUMBER = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
# Sessions of one node log nothing of use; errors come as exceptions.
_LOG_FATAL = 4
# Each session starts threads of its own; a model with more sessions than this gets no own threads.
_THREADS = min(2, os.cpu_count() or 1)
_THREADED_SESSIONS = 256
# Their kernels depend on the number of channels, which onnxruntime knows of the whole model.
_POOLS = frozenset(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"))


@dataclass(frozen=True, slots=True)
class NodeSession:
    """One operator, ready to run.

    feeds    (name in the session, name in the model) of each operand that is no constant
    fetches  (name in the session, name in the model) of each output
    output_types  as onnxruntime writes them: "tensor(float)"
    """

    native: Any
    feeds: tuple[tuple[str, str], ...]
    fetches: tuple[tuple[str, str], ...]
    output_types: tuple[str, ...]


class SessionMaker:
    """Makes the sessions of one model. Owns the memory of the constants that they read.

    opset_imports   of the model
    is_optimized    whether operators get the kernels that onnxruntime takes when left alone, or plain ones
    """

    def __init__(
        self,
        opset_imports: Sequence[onnx.OperatorSetIdProto],
        constants: Mapping[str, ModelConstant],
        is_optimized: bool,
    ) -> None:
        self._opset_imports = tuple(opset_imports)
        self._version_by_domain = {_short(entry.domain): entry.version for entry in opset_imports}
        self._constants = constants
        self._is_optimized = is_optimized
        # By id of the constant: subgraphs may have others of the same name.
        self._values: dict[int, Any] = {}
        self._alive = [constants]
        self._by_key: dict[bytes, Any] = {}

    def within(self, constants: Mapping[str, ModelConstant]) -> SessionMaker:
        """For the operators of a subgraph, which see these constants. Equal ones share a session with those here."""
        maker = copy.copy(self)
        maker._constants = constants
        # Their ids are keys, also where the subgraph is not used in the end.
        self._alive.append(constants)
        return maker

    def make(self, node: ModelNode, types: Mapping[str, onnx.TypeProto]) -> NodeSession:
        """A session for the node, given the types of what it reads.

        Raises: GraphError with what onnxruntime says against it.
        """
        # Bodies of subgraphs name outer values; renaming them is not worth what sharing would save.
        keeps_names = bool(node.captured)
        inside = {name: name if keeps_names else f"i{index}" for index, name in enumerate(node.reads)}
        outside = {name: name if keeps_names else f"o{index}" for index, name in enumerate(node.makes)}
        model, large = self._model(node, types, inside, outside)
        held = (f"{local}={id(self._constants[name])}" for local, name in large)
        key = model.SerializeToString(deterministic=True) + "\0".join(held).encode()
        session = self._by_key.get(key)
        if session is None:
            session = self._by_key[key] = self._start(node, model, large)
        feeds = tuple((inside[name], name) for name in node.reads if name not in self._constants)
        fetches = tuple((outside[name], name) for name in node.makes)
        output_types = {meta.name: str(meta.type) for meta in session.get_outputs()}
        return NodeSession(session._sess, feeds, fetches, tuple(output_types[name] for name, _ in fetches))

    def _model(
        self,
        node: ModelNode,
        types: Mapping[str, onnx.TypeProto],
        inside: Mapping[str, str],
        outside: Mapping[str, str],
    ) -> tuple[onnx.ModelProto, list[tuple[str, str]]]:
        """A model of the node alone, and (name in it, constant) of each large constant, whose data it leaves out."""
        model = onnx.ModelProto(ir_version=IR_VERSION, opset_import=self._opset_imports)
        graph = model.graph
        graph.name = "node"
        proto = graph.node.add()
        proto.CopyFrom(node.proto)
        proto.doc_string = ""
        del proto.metadata_props[:]
        _clear_names(proto)
        proto.name = "node"
        proto.input[:] = [inside.get(name, "") for name in node.proto.input]
        proto.output[:] = [outside.get(name, "") for name in node.proto.output]
        large: list[tuple[str, str]] = []
        for name, local in inside.items():
            constant = self._constants.get(name)
            if constant is None:
                type_ = _type_of(node, name, types, self._is_expanded_by_shapes(node))
                graph.input.append(onnx.ValueInfoProto(name=local, type=type_))
            elif constant.array is None or constant.array.nbytes <= _SMALL_BYTES:
                tensor = graph.initializer.add()
                tensor.CopyFrom(constant.proto)
                tensor.name = local
            else:
                graph.initializer.add(name=local, data_type=constant.elem_type, dims=constant.proto.dims)
                large.append((local, name))
        graph.output.extend(onnx.ValueInfoProto(name=local) for local in outside.values())
        return model, large

    def _start(self, node: ModelNode, model: onnx.ModelProto, large: Sequence[tuple[str, str]]) -> Any:
        options = session_options(_THREADS if len(self._by_key) < _THREADED_SESSIONS else 1, self._is_optimized)
        large_names = dict(large)
        for tensor in model.graph.initializer:
            name = large_names.get(tensor.name)
            if name is not None:
                array = self._constants[name].array
                assert array is not None
                dtype = dtypes.dtype_from_numpy(array.dtype).name
                if not is_packed(dtype):
                    options.add_initializer(tensor.name, onnxruntime.OrtValue(self._value(name)))
                # onnxruntime wants data in the model as well, although it reads those of the OrtValue.
                tensor.raw_data = raw_data_of(array, dtype)
        try:
            return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            # Every class of onnxruntime's errors derives from Exception alone.
            if not is_ort_error(error):
                raise
            version = onnxruntime.__version__
            if self._is_expanded_by_shapes(node):
                expected = f"operands of known shapes, by which onnxruntime {version} expands {node.op_type}"
                fix = "Run onnx.shape_inference over the model, or export it with fixed shapes."
            else:
                dtypes_read = dict.fromkeys(
                    type_text(one.type.tensor_type.elem_type)
                    for one in model.graph.input
                    if one.type.HasField("tensor_type")
                )
                kinds = f" for {', '.join(dtypes_read)}" if dtypes_read else ""
                expected = f"an operator that onnxruntime {version} knows{kinds}"
                fix = "Export the model with another opset_version, or as other operators."
            raise GraphError(f"{node.where}: expected {expected}, got {error_text(error)} {fix}") from error

    def _is_expanded_by_shapes(self, node: ModelNode) -> bool:
        """True for an operator that is a function of others, made anew for the types and shapes of its operands."""
        domain = _short(node.proto.domain)
        version = self._version_by_domain.get(domain)
        return version is not None and _has_function_of_shapes(node.op_type, version, domain)

    def _value(self, name: str) -> Any:
        constant = self._constants[name]
        if id(constant) not in self._values:
            assert constant.array is not None
            self._values[id(constant)] = value_of(constant.array, dtypes.dtype_from_numpy(constant.array.dtype).name)
        return self._values[id(constant)]


def _clear_names(node: onnx.NodeProto) -> None:
    """Leave out the names of a node and of those in its subgraphs: onnxruntime takes none twice, and needs none."""
    node.name = ""
    for graph in subgraphs(node):
        for inner in graph.node:
            _clear_names(inner)


def _short(domain: str) -> str:
    """ONNX's own domain has two names."""
    return "" if domain == "ai.onnx" else domain


@functools.cache
def _has_function_of_shapes(op_type: str, version: int, domain: str) -> bool:
    try:
        return bool(onnx.defs.get_schema(op_type, version, domain).has_context_dependent_function)  # type: ignore[attr-defined]
    except onnx.defs.SchemaError:
        return False


def chooses_kernels(optimization: str | None = None) -> bool:
    """Whether operators get the kernels that onnxruntime takes when left alone ("all"), or plain ones ("none").

    optimization   None: MSDUMP_ONNX_OPTIMIZATION
    Raises: ConfigError for another word.
    """
    where = "optimization" if optimization is not None else ONNX_OPTIMIZATION
    value = os.environ.get(ONNX_OPTIMIZATION, "") or "all" if optimization is None else optimization
    if value not in ("all", "none"):
        raise ConfigError(
            f"{where}: expected all (kernels as onnxruntime chooses them) or none (plain kernels), got {value!r}."
        )
    return value == "all"


def run_options() -> Any:
    """How every operator is run: onnxruntime says nothing itself, as all it would say is raised."""
    options = onnxruntime.RunOptions()
    options.log_severity_level = _LOG_FATAL
    return options


def is_ort_error(error: BaseException) -> bool:
    """True for what onnxruntime raises; it has no common class."""
    return type(error).__module__.startswith("onnxruntime") or isinstance(error, RuntimeError | ValueError)


def error_text(error: BaseException) -> str:
    """The first line of what onnxruntime says, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = _NUMBER.sub("", lines[0] if lines else type(error).__name__)
    return text if text.endswith(".") else f"{text}."


def _type_of(node: ModelNode, name: str, types: Mapping[str, onnx.TypeProto], has_shape: bool) -> onnx.TypeProto:
    """The type of an operand, fit for any shape that the model allows; `has_shape`: with all that is known of it."""
    type_ = types.get(name)
    if type_ is None:
        raise GraphError(
            f"{node.where}: expected an operand of a known type, got {name}. Run onnx.shape_inference over the model."
        )
    type = onnx.TypeProto()
    type.CopyFrom(type_)
    if type.HasField("tensor_type") and not node.has_subgraphs and not has_shape:
        # So that operators on other shapes share the session. Scan needs what is known of its operands.
        sizes = type.tensor_type.shape.dim
        if node.proto.op_type in _POOLS and len(sizes) > 1:
            for index, size in enumerate(sizes):
                if index != 1:
                    size.Clear()
        else:
            type.tensor_type.ClearField("shape")
    return type


def session_options(threads: int, is_optimized: bool) -> Any:
    options = onnxruntime.SessionOptions()
    # In a graph of one node there is nothing to fuse, but a convolution gets its blocked kernel, which is faster.
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if is_optimized else level.ORT_DISABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    # One arena for each of hundreds of sessions would keep the largest result of each: they share one.
    options.enable_cpu_mem_arena = _has_shared_arena()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = _LOG_FATAL
    # There may be hundreds of such threads: none of them waits by spinning.
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@functools.cache
def _has_shared_arena() -> bool:
    """Register the arena that all sessions of this process may share; True when there is one."""
    kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    memory_info = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, onnxruntime.OrtMemType.DEFAULT)
    try:
        onnxruntime.create_and_register_allocator(memory_info, None)
    except Exception as error:
        if not is_ort_error(error):
            raise
        # Slower, and no other numbers.
        return False
    return True


def type_proto(text: str) -> onnx.TypeProto | None:
    """The type that onnxruntime writes as "tensor(float)"; None for one that is no tensor."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    number = dict(onnx.TensorProto.DataType.items()).get(inner.upper())
    if not text.startswith("tensor(") or number is None:
        return None
    return onnx.helper.make_tensor_type_proto(number, None)

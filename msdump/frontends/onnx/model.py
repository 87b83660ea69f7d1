"""OnnxModel: a model that is loaded, what it takes and gives, and its runs."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from msdump.errors import ExecutionError, GraphError, did_you_mean
from msdump.frontends.onnx.arena import Arena, NodeKernel
from msdump.frontends.onnx.flow import FlowMaker
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph, graph_from_onnx
from msdump.frontends.onnx.inference import DeclaredTensor, Inference, spec_of
from msdump.frontends.onnx.model_file import read_model
from msdump.frontends.onnx.node_session import SessionMaker, chooses_kernels
from msdump.frontends.onnx.nodes import Scope, model_constants, model_nodes
from msdump.frontends.onnx.observed_program import ObservedOnnxProgram
from msdump.frontends.onnx.program import NodeCall, OnnxProgram
from msdump.graph.run import Observer
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_next_graph_id = itertools.count()

Shapes = Mapping[str, tuple[int, ...]]


def load_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    observers: Sequence[Observer] = (),
    graph_ids: Iterator[int] | None = None,
    has_arena: bool = False,
    kernels: Mapping[str, NodeKernel] | None = None,
    optimization: str | None = None,
) -> OnnxModel:
    """Load a model and make everything that its runs need.

    source      path of a `.onnx` file, its bytes, or the message
    observers   who watches its runs
    graph_ids   numbers for its graphs, one for each set of input shapes; None: counted in this process
    has_arena   results lie side by side in one block of memory, as on a device: what writes past the end of its
                output hits its neighbour. Runs wait for each other then.
    kernels     operator's name -> function of its inputs and of the outputs that it fills, which runs in its place;
                they need the arena, so there is one
    optimization  "all": each operator has the kernel that onnxruntime takes for it when left alone; "none": the one
                that it takes with ORT_DISABLE_ALL. Results differ in their last bits. None: MSDUMP_ONNX_OPTIMIZATION
    Raises: ConfigError for another `optimization`; FormatError for what is not ONNX (an `.om` file: only a device can
            run it); GraphError for operators that onnxruntime does not know, and for kernels of operators that the
            model does not have.
    """
    is_optimized = chooses_kernels(optimization)
    model, file_name = read_model(source)
    return OnnxModel(model, file_name, observers, graph_ids or _next_graph_id, has_arena, kernels or {}, is_optimized)


class OnnxModel:
    """A loaded model. Owns its weights. Runs without observers may overlap; watched ones wait for each other.

    file_name   stem of the file's name; "" for a model from memory
    model_name  what the model calls itself: `model_name` of its metadata, else the graph's name
    metadata    its `metadata_props`
    inputs, outputs   as it declares them
    originals   other name of an operator -> its names here: operators that were renamed, or fused into another
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        file_name: str,
        observers: Sequence[Observer],
        graph_ids: Iterator[int],
        has_arena: bool = False,
        kernels: Mapping[str, NodeKernel] | None = None,
        is_optimized: bool = True,
    ) -> None:
        graph = model.graph
        self.file_name = file_name
        self.metadata = {entry.key: entry.value for entry in model.metadata_props}
        self.model_name = self.metadata.get("model_name") or graph.name or file_name
        self._constants = model_constants(graph)
        declared = [value for value in graph.input if value.name not in self._constants]
        self.inputs = tuple(spec_of(value) for value in declared)
        self.outputs = tuple(spec_of(value) for value in graph.output)
        scope = Scope()
        self._nodes = model_nodes(graph, [*self._constants, *(spec.name for spec in self.inputs)], scope)
        self._inference = Inference(model, self._constants)
        self._program = OnnxProgram(
            self._nodes,
            self._constants,
            [spec.name for spec in self.inputs],
            [spec.name for spec in self.outputs],
            self._inference.types(),
            SessionMaker(model.opset_import, self._constants, is_optimized),
            FlowMaker(model.opset_import, scope),
        )
        self.originals = self._other_names()
        for spec in (*self.inputs, *self.outputs):
            if self._program.is_native(spec.name) and self._program.dtype_of(spec.name) is None:
                raise GraphError(
                    f"model {self.model_name}: expected inputs and outputs of dtypes that arrays have, "
                    f"got {spec.dtype} for {spec.name}. Put a Cast between."
                )
        self._kernels = dict(kernels or {})
        for name in self._kernels:
            if name not in self.node_names:
                advice = did_you_mean(name, self.node_names)
                raise GraphError(
                    f"model {self.model_name}: it has no operator {name} to run a kernel for. {advice}".rstrip()
                )
        self._has_arena = has_arena or bool(self._kernels)
        self._observers = tuple(observers)
        self._graph_ids = graph_ids
        self._observed: dict[tuple[tuple[int, ...], ...], ObservedOnnxProgram] = {}
        self._next_iteration = itertools.count()
        self._lock = threading.Lock()

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of its operators, in the order in which they run."""
        return tuple(node.name for node in self._nodes)

    def watch(self, observers: Sequence[Observer]) -> None:
        """Choose who watches its runs, before the first one: that may depend on what the model is called."""
        self._observers = tuple(observers)

    def run(self, inputs: Mapping[str, Any], iteration: int | None = None) -> dict[str, Any]:
        """Run once.

        Shapes:  those of `inputs`; an open size may be any, and is another graph for observers.
        Dtypes:  those of `inputs`, never converted.
        iteration   None: how often it ran before
        Returns: arrays by name, read only; sequences as lists, maps as dicts.
        Raises:  ExecutionError for an input that is missing, unknown or of another type; for an operator that fails.
        """
        arrays = self._check(inputs)
        number = next(self._next_iteration) if iteration is None else iteration
        program = self._program
        slots = program.begin(arrays)
        if not self._observers and not self._has_arena:
            program.run(slots)
            return program.results(slots, arrays)
        with self._lock:
            seen = self._seen(arrays)
            watched = seen.seen.begin(number)
            if watched is not None or seen.arena is not None:
                seen.run(watched, slots, arrays)
            else:
                program.run(slots)
            results = program.results(slots, arrays)
            return results if seen.arena is None else seen.arena.own(results)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run once with inputs and outputs in the order of the model."""
        if len(inputs) != len(self.inputs):
            raise ExecutionError(
                f"model {self.model_name}: expected {len(self.inputs)} inputs "
                f"({', '.join(str(spec.name) for spec in self.inputs)}), got {len(inputs)}."
            )
        results = self.run({spec.name: array for spec, array in zip(self.inputs, inputs, strict=True)})
        return [results[spec.name] for spec in self.outputs]

    def graph(self, shapes: Shapes, graph_id: int) -> OnnxGraph:
        """The Graph of the model for these shapes of its inputs."""
        return self._graph(graph_id, self._inference.shapes(shapes))

    def skipped(self) -> Counter[str]:
        """Why values of the model are not shown to observers -> how many: strings, sequences, maps."""
        # Shapes have no say in it, and to infer them takes longest.
        return self._graph(0, {}).skipped

    def unseen(self) -> Counter[str]:
        """Type of an operator that onnxruntime has to run whole -> how many operators its subgraphs hold."""
        counts: Counter[str] = Counter()
        for call in self._calls():
            if call.flow is None and call.node.has_subgraphs:
                counts[call.node.op_type] += call.node.inner_operators
        return +counts

    def arenas(self) -> tuple[Arena, ...]:
        """The arena of each of the observed graphs; none without `has_arena`."""
        return tuple(seen.arena for seen in self._observed.values() if seen.arena is not None)

    # -- parts ------------------------------------------------------------------------------------

    def _calls(self) -> Iterator[NodeCall]:
        """Of the model, then of subgraphs."""
        programs = [self._program]
        for program in programs:
            yield from program.calls
            programs += [body.program for call in program.calls if call.flow is not None for body in call.flow.bodies]

    def _other_names(self) -> dict[str, tuple[str, ...]]:
        """In a subgraph operators have the name of the file as well, unless one of the model has it."""
        names: dict[str, tuple[str, ...]] = {}
        own = set(self.node_names)
        for call in self._calls():
            node = call.node
            others = node.originals if node.name in own else {*node.originals, str(node.proto.name)} - own
            for name in filter(None, others):
                names[name] = (*names.get(name, ()), node.name)
        return names

    def _graph(self, graph_id: int, shapes: Shapes) -> OnnxGraph:
        """`shapes`: of all values, as far as they are known."""
        return graph_from_onnx(
            graph_id,
            self._program,
            [spec.name for spec in self.inputs],
            shapes,
            has_views=not self._has_arena,
        )

    def _seen(self, arrays: Mapping[str, Any]) -> ObservedOnnxProgram:
        shapes = {name: array.shape for name, array in arrays.items() if isinstance(array, np.ndarray)}
        key = tuple(shapes.values())
        if key not in self._observed:
            onnx_graph = self.graph(shapes, next(self._graph_ids))
            self._observed[key] = ObservedOnnxProgram(
                self._program, onnx_graph, self._observers, self._has_arena, self._kernels
            )
        return self._observed[key]

    def _check(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs in the model's order, as arrays that onnxruntime can read in place."""
        names = [spec.name for spec in self.inputs]
        for name in inputs:
            if name not in names:
                advice = did_you_mean(name, names)
                expected = f"expected inputs {', '.join(names) or 'none'}"
                raise ExecutionError(f"model {self.model_name}: {expected}, got {name}. {advice}".rstrip())
        arrays: dict[str, Any] = {}
        for spec in self.inputs:
            if spec.name not in inputs:
                raise ExecutionError(
                    f"model {self.model_name}: expected input {spec.name} as {spec}, got nothing. Give it as well."
                )
            dtype = self._program.dtype_of(spec.name)
            arrays[spec.name] = inputs[spec.name] if dtype is None else self._array(spec, inputs[spec.name], dtype)
            if dtype is not None:
                self._check_shape(spec, arrays[spec.name].shape)
        return arrays

    def _array(self, spec: DeclaredTensor, given: Any, dtype: str) -> Array:
        array = np.asarray(given)
        expected = dtypes.dtype(dtype).numpy
        if array.dtype.newbyteorder("=") != expected:
            raise ExecutionError(
                f"model {self.model_name}: expected input {spec.name} as {spec}, got {array.dtype}{list(array.shape)}. "
                f"Convert it with astype."
            )
        # ascontiguousarray would make a scalar one-dimensional.
        return np.asarray(array, expected, order="C")

    def _check_shape(self, spec: DeclaredTensor, shape: tuple[int, ...]) -> None:
        """Open sizes are free, also those of one name: that is what onnxruntime goes by."""
        if spec.shape is None:
            return
        fits = len(shape) == len(spec.shape) and all(
            not isinstance(expected, int) or expected == actual
            for expected, actual in zip(spec.shape, shape, strict=True)
        )
        if not fits:
            raise ExecutionError(
                f"model {self.model_name}: expected input {spec.name} as {spec}, got shape {list(shape)}. "
                "Give it the shape that the model was exported for."
            )

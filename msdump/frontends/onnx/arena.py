"""Arena: the results of a model's operators side by side in one block of memory, as a device holds them.

Where every result has memory of its own, an operator that writes past the end of its output does no harm; in an arena
it hits its neighbour, and a watcher sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as ort_native

from msdump.errors import GraphError
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph
from msdump.frontends.onnx.node_session import is_ort_error, run_options
from msdump.frontends.onnx.ort_values import array_of, value_of
from msdump.frontends.onnx.program import Launch, NodeCall, OnnxProgram, Slots
from msdump.graph.graph import Node, Value
from msdump.graph.memory import PAGE, plan_memory
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Inputs (read only) and outputs, which it fills, in the order of the operator's.
NodeKernel = Callable[[Sequence[Array], Sequence[Array]], None]


class Arena:
    """Memory and launches of one graph. One run at a time.

    launches    of the operators, in their order
    arrays      value id -> its memory here, read only; values that are not here have memory of their own: those
                whose size only the data decide, and those without elements
    size_bytes  of the block
    """

    def __init__(
        self,
        program: OnnxProgram,
        onnx_graph: OnnxGraph,
        is_reused: bool,
        kept: Iterable[Value] = (),
        kernels: Mapping[str, NodeKernel] | None = None,
    ) -> None:
        """
        found      a graph without views: each operator writes its own bytes
        is_reused  two results may share bytes when one is dead before the other is made
        kept       results that keep their bytes to the end all the same
        kernels    operator's name -> what runs in its place

        Raises: GraphError for a kernel whose outputs cannot be in the arena.
        """
        plan = plan_memory(onnx_graph.graph, is_reused, kept)
        self.size_bytes = plan.size_bytes
        self.arrays: dict[int, Array] = {}
        self._program = program
        self._values = onnx_graph.values
        self._offset = plan.offset
        self._written: dict[int, Array] = {}
        self._is_kernel: list[bool] = []
        self._placed: dict[int, list[Value]] = {}
        raw = np.zeros(plan.size_bytes + PAGE, np.uint8)
        start = -raw.ctypes.data % PAGE
        self._block = raw[start : start + plan.size_bytes]
        self.launches: list[Launch] = [
            self._launch(call, node, kernels or {}) for call, node in zip(program.calls, onnx_graph.nodes, strict=True)
        ]

    def offset(self, name: str) -> int:
        """First byte of a result in the block.   Raises: KeyError for one that is not here."""
        value = self._values[name]
        if value.id not in self.arrays:
            raise KeyError(name)
        return self._offset[value.id]

    def has_kernel(self, number: int) -> bool:
        """Whether a kernel of one's own runs in the place of an operator."""
        return self._is_kernel[number]

    def place(self, number: int, results: Sequence[Any]) -> Sequence[Any]:
        """Results of an operator that runs those of its subgraphs, moved to where they lie in the block.

        Edges:  as of other operators, where a result has another shape than was foreseen.
        """
        placed = self._placed.get(number)
        if placed is None:
            return results
        arrays = [array_of(result) for result in results]
        if any(array.shape != value.type.shape for array, value in zip(arrays, placed, strict=True)):
            self._drop(placed)
            del self._placed[number]
            return results
        for array, value in zip(arrays, placed, strict=True):
            np.copyto(self._written[value.id], array)
        return [value_of(self._written[value.id], value.type.dtype) for value in placed]

    def own(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Results of a run, with copies of those that the next run overwrites."""
        return {
            name: result.copy() if name in self._values and self._values[name].id in self.arrays else result
            for name, result in results.items()
        }

    # -- parts ------------------------------------------------------------------------------------

    def _launch(self, call: NodeCall, node: Node | None, kernels: Mapping[str, NodeKernel]) -> Launch:
        outputs = [self._values.get(name) for name in call.node.makes]
        placed = [value for value in outputs if value is not None and self._has_buffer(value)]
        kernel = kernels.get(call.node.name)
        self._is_kernel.append(kernel is not None)
        if len(placed) != len(outputs) or not placed or node is None:
            if kernel is not None:
                raise GraphError(
                    f"{call.node.where}: expected outputs whose shapes are known before it runs, as a kernel of one's "
                    "own fills preallocated memory. Give the model fixed sizes."
                )
            return call.launch
        for value in placed:
            self._bind(value)
        if kernel is not None:
            return self._kernel_launch(kernel, node, placed)
        if call.session is None:
            self._placed[len(self._is_kernel) - 1] = placed
            return call.launch
        feeds = [name for _, name in call.session.feeds]
        if not all(self._program.is_native(name) for name in feeds):
            self._drop(placed)
            return call.launch
        return self._bound_launch(call, placed)

    def _has_buffer(self, value: Value) -> bool:
        # onnxruntime packs what an array has in whole bytes.
        is_whole = dtypes.dtype(value.type.dtype).bits >= 8
        return is_whole and value.id in self._offset and value.type.size_bytes > 0

    def _bind(self, value: Value) -> None:
        first = self._offset[value.id]
        flat = self._block[first : first + value.type.size_bytes]
        written = flat.view(dtypes.dtype(value.type.dtype).numpy).reshape(value.type.shape)
        self._written[value.id] = written
        shown = written.view()
        shown.flags.writeable = False
        self.arrays[value.id] = shown

    def _drop(self, values: Iterable[Value]) -> None:
        for value in values:
            del self.arrays[value.id], self._written[value.id]

    def _bound_launch(self, call: NodeCall, outputs: Sequence[Value]) -> Launch:
        """onnxruntime writes to given buffers.

        Edges:  where it makes another shape than was foreseen, the results get memory of their own from then on.
        """
        assert call.session is not None
        native, options = call.session.native, run_options()
        binding = ort_native.SessionIOBinding(native)
        results = [value_of(self._written[value.id], value.type.dtype) for value in outputs]
        for (fetch, _), result in zip(call.session.fetches, results, strict=True):
            binding.bind_ortvalue_output(fetch, result)
        feeds = [(feed, self._program.slot_by_name[name]) for feed, name in call.session.feeds]
        is_bound = True

        def launch(slots: Slots) -> Sequence[Any]:
            nonlocal is_bound
            if not is_bound:
                return call.launch(slots)
            for feed, slot in feeds:
                binding.bind_ortvalue_input(feed, slots[slot])
            try:
                native.run_with_iobinding(binding, options)
            except Exception as error:
                if not is_ort_error(error):
                    raise
                # An operator that fails does so again; what it then raises says nothing of the binding.
                values = call.launch(slots)
                is_bound = False
                self._drop(outputs)
                return values
            finally:
                binding.clear_binding_inputs()
            return results

        return launch

    def _kernel_launch(self, kernel: NodeKernel, node: Node, outputs: Sequence[Value]) -> Launch:
        results = [value_of(self._written[value.id], value.type.dtype) for value in outputs]
        written = [self._written[value.id] for value in outputs]
        name_by_id = {value.id: name for name, value in self._values.items()}
        slot_by_id = {value.id: self._program.slot_by_name[name_by_id[value.id]] for value in node.inputs}

        def operand(value: Value, slots: Slots) -> Array:
            if value.constant is not None:
                return value.constant
            array = self.arrays.get(value.id)
            return array_of(slots[slot_by_id[value.id]]) if array is None else array

        def launch(slots: Slots) -> Sequence[Any]:
            kernel([operand(value, slots) for value in node.inputs], written)
            return results

        return launch

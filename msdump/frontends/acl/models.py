"""LoadedModel: a model behind its id, run on memory that a script names by addresses."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump import dtypes
from msdump.errors import ExecutionError, FormatError, GraphError, MsdumpError
from msdump.events import Array
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.frontends.acl.const import ACL_FORMAT_ND
from msdump.frontends.acl.dataset import DataBuffer, Dataset, desc_of, find_buffer, set_desc
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import UNKNOWN, TensorDesc, dtype_number, size_bytes

if TYPE_CHECKING:
    from msdump.frontends.onnx import OnnxModel, TensorSpec

Shape = tuple[int, ...]
INSTALL = "pip install 'msdump[onnx]'"


@dataclass(frozen=True, slots=True)
class Operand:
    """An input or output. Open sizes are -1; `dtype` is a name of the dtype table."""

    name: str
    dtype: str
    shape: Shape

    @property
    def is_dynamic(self) -> bool:
        return any(size < 0 for size in self.shape)

    @property
    def size(self) -> int:
        """Bytes; 0 when a size is open, as the original says then."""
        return 0 if self.is_dynamic else size_bytes(dtype_number(self.dtype), self.shape)

    def __str__(self) -> str:
        sizes = ", ".join("?" if size < 0 else str(size) for size in self.shape)
        return f"{self.dtype}[{sizes}]"


class LoadedModel:
    """A loaded model. Runs may come from any thread.

    fixed_shapes   index of an input -> shape that a call chose for its open sizes
    """

    def __init__(self, onnx_model: OnnxModel) -> None:
        self.onnx = onnx_model
        self.inputs = tuple(map(_operand, onnx_model.inputs))
        self.fixed_shapes: dict[int, Shape] = {}
        self._outputs_by_shapes: dict[tuple[Shape, ...], tuple[Operand, ...]] = {}
        self.outputs = self.outputs_for([operand.shape for operand in self.inputs])
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.onnx.file_name or self.onnx.model_name

    def outputs_for(self, shapes: Sequence[Shape]) -> tuple[Operand, ...]:
        """The outputs for these shapes of the inputs, as far as they follow from them."""
        key = tuple(shapes)
        if key not in self._outputs_by_shapes:
            known = {
                operand.name: shape
                for operand, shape in zip(self.inputs, shapes, strict=True)
                if all(size >= 0 for size in shape)
            }
            values = self.onnx.graph(known, 0).values
            found = []
            for spec in self.onnx.outputs:
                operand = _operand(spec)
                value = values.get(spec.name)
                shape = operand.shape if value is None else tuple(value.type.shape)
                found.append(Operand(operand.name, operand.dtype, shape))
            self._outputs_by_shapes[key] = tuple(found)
        return self._outputs_by_shapes[key]

    def current_shapes(self) -> list[Shape]:
        """Shapes of the inputs as calls have chosen them."""
        return [self.fixed_shapes.get(at, operand.shape) for at, operand in enumerate(self.inputs)]

    # -- runs -------------------------------------------------------------------------------------

    def execute(self, inputs: Dataset, outputs: Dataset) -> None:
        """Run once, from memory to memory.

        Raises: CallError 100017 for inputs that do not fit, 100018 for outputs, 500002 for an operator that fails.
        """
        arrays = self.arrays(inputs)
        self._check_count("output", len(self.outputs), outputs)
        self.copy_out(self.run(arrays), outputs)

    def arrays(self, inputs: Dataset) -> dict[str, Array]:
        """The inputs by name, as views of the script's memory."""
        self._check_count("input", len(self.inputs), inputs)
        return {operand.name: self._array(at, operand, inputs) for at, operand in enumerate(self.inputs)}

    def run(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Run once.   Raises: CallError 100017, 500002."""
        try:
            return self.onnx.run(arrays)
        except ExecutionError as error:
            raise CallError(codes.GE_FAILURE, str(error)) from error

    def copy_out(self, found: dict[str, Any], outputs: Dataset) -> None:
        """Put the outputs into the script's memory, and their shapes into the descriptions."""
        for at, operand in enumerate(self.outputs):
            array = found[operand.name]
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                raise CallError(
                    codes.MODEL_OUTPUT_NOT_MATCH,
                    f"model {self.name}: expected outputs that memory can hold, got {operand.dtype} for {operand.name}",
                )
            buffer = find_buffer(outputs.buffers[at])
            if buffer.size < array.nbytes:
                raise CallError(
                    codes.MODEL_OUTPUT_NOT_MATCH,
                    f"model {self.name}: expected at least {array.nbytes} bytes for output {operand.name} of "
                    f"{operand.dtype}{list(array.shape)}, got a buffer of {buffer.size}",
                )
            write_array(buffer, array, f"output {operand.name}")
            old = desc_of(outputs, at)
            number = dtype_number(dtypes.dtype_from_numpy(array.dtype).name)
            form = ACL_FORMAT_ND if old is None else old.format
            set_desc(outputs, at, TensorDesc(number, tuple(array.shape), form, operand.name))

    # -- runs that nobody waits for ---------------------------------------------------------------

    def begin(self) -> None:
        """A run was handed to a stream."""
        with self._lock:
            self._pending += 1

    def end(self) -> None:
        """The stream has done it."""
        with self._lock:
            self._pending -= 1

    @property
    def pending(self) -> int:
        """Runs that streams have not done yet."""
        return self._pending

    # -- parts ------------------------------------------------------------------------------------

    def _check_count(self, io: str, expected: int, dataset: Dataset) -> None:
        got = len(dataset.buffers)
        if got != expected:
            code = codes.MODEL_INPUT_NOT_MATCH if io == "input" else codes.MODEL_OUTPUT_NOT_MATCH
            raise CallError(code, f"model {self.name}: expected {expected} {io} buffers in the dataset, got {got}")

    def _array(self, at: int, operand: Operand, inputs: Dataset) -> Array:
        buffer = find_buffer(inputs.buffers[at])
        shape = self._shape(at, operand, inputs, buffer)
        needed = size_bytes(dtype_number(operand.dtype), shape)
        if buffer.size < needed:
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected {needed} bytes for input {operand.name} of "
                f"{operand.dtype}{list(shape)}, got a buffer of {buffer.size}. Is its shape or dtype another?",
            )
        return read_array(buffer, operand.dtype, shape, f"input {operand.name}")

    def _shape(self, at: int, operand: Operand, inputs: Dataset, buffer: DataBuffer) -> Shape:
        """Shape of an input: from its description, from a call on the model, from the model, from its size."""
        desc = desc_of(inputs, at)
        shape = desc.shape if desc is not None else self.fixed_shapes.get(at, operand.shape)
        if not fits(shape, operand.shape):
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected input {operand.name} as {operand}, got shape {list(shape)}",
            )
        open_sizes = [place for place, size in enumerate(shape) if size < 0]
        if len(open_sizes) == 1:
            rest = math.prod(size for size in shape if size >= 0) * dtypes.dtype(operand.dtype).itemsize
            if rest and buffer.size % rest == 0:
                return tuple(buffer.size // rest if size < 0 else size for size in shape)
        if open_sizes:
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected a shape for input {operand.name}, which is {operand}; got a buffer of "
                f"{buffer.size} bytes alone. Call acl.mdl.set_dataset_tensor_desc for it",
            )
        return shape


def load(source: str | bytes, function: str) -> int:
    """Load a model with the dumps that are in force; gives its id.   Raises: CallError with GE's or ACL's number."""
    from msdump.config.acl_error import NULL

    process.check_initialized(function)
    if isinstance(source, bytes) and not source:
        raise CallError(codes.INVALID_PARAM, f"{function}: expected a model, got 0 bytes", NULL)
    model_id = next(process.model_ids)
    process.models[model_id] = LoadedModel(open_model(source, model_id))
    return model_id


def open_model(source: str | bytes, model_id: int) -> OnnxModel:
    """Load a model and let the dumps that are in force watch it.

    Raises: CallError 145002 for no file, 200006 for an .om file, 100012 for no ONNX, 100013 for an operator or
            operator set that is not known here.
    """
    dumps, device_id = process.dump.in_force(), process.device_id
    model = open_unwatched(source, has_arena=any(dump.wants_arena(device_id) for dump in dumps))
    process.watch(model, dumps, model_id)
    return model


def open_unwatched(source: str | bytes, has_arena: bool = False) -> OnnxModel:
    """Load a model.   Raises: as `open_model`."""
    if isinstance(source, str) and not Path(source).is_file():
        raise CallError(codes.GE_EXEC_MODEL_PATH_INVALID, f"{source}: expected a model file, got none there")
    load_model = loader()
    try:
        model: OnnxModel = load_model(source, has_arena=has_arena)
    except FormatError as error:
        is_om = "an .om file" in str(error)
        raise CallError(codes.FEATURE_UNSUPPORTED if is_om else codes.DESERIALIZE_MODEL, str(error)) from error
    except GraphError as error:
        raise CallError(codes.PARSE_MODEL, str(error)) from error
    return model


def loader() -> Any:
    """`load_model` of the ONNX frontend.   Raises: MsdumpError with the line that installs what it needs."""
    try:
        from msdump.frontends.onnx import load_model
    except ImportError as error:
        raise MsdumpError(f"models: expected onnx and onnxruntime, got: {error}. Install them: {INSTALL}.") from error
    return load_model


def find_model(model_id: int) -> LoadedModel:
    """The model behind an id.   Raises: CallError 145003."""
    model = process.models.get(model_id)
    if model is None:
        raise CallError(codes.GE_EXEC_MODEL_ID_INVALID, f"model_id: expected the id of a loaded model, got {model_id}")
    return model


def fits(shape: Shape, declared: Shape) -> bool:
    """True when a shape may stand where a declared one has open sizes."""
    return len(shape) == len(declared) and all(
        size == expected or expected == UNKNOWN for size, expected in zip(shape, declared, strict=True)
    )


def read_array(buffer: DataBuffer, dtype: str, shape: Shape, name: str) -> Array:
    """The tensor that begins where a buffer does, in place where the memory allows it."""
    row = dtypes.dtype(dtype)
    count = math.prod(shape)
    memory = process.memory.array(buffer.address, count * row.itemsize, name)
    if buffer.address % max(row.itemsize, 1):
        memory = memory.copy()
    return memory.view(row.numpy).reshape(shape)


def write_array(buffer: DataBuffer, array: Array, name: str) -> None:
    """Put a tensor where a buffer begins."""
    if array.nbytes:
        memory = process.memory.array(buffer.address, array.nbytes, name, is_written=True)
        memory[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _operand(spec: TensorSpec) -> Operand:
    sizes = () if spec.shape is None else spec.shape
    shape = tuple(size if isinstance(size, int) else UNKNOWN for size in sizes)
    return Operand(spec.name, spec.dtype, shape if spec.shape is not None else (UNKNOWN,))

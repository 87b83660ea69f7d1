"""LoadedModel: a model behind its id, run on memory that a script names by addresses."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.errors import ExecutionError, FormatError, GraphError, MsdumpError
from msdump.frontends.acl import codes
from msdump.frontends.acl.atc import BATCH, DIMS, IMAGE, Atc, atc_of
from msdump.frontends.acl.callbacks import tell_exception
from msdump.frontends.acl.calls import CallError, bad_argument
from msdump.frontends.acl.const import ACL_DYNAMIC_TENSOR_NAME, ACL_FORMAT_ND
from msdump.frontends.acl.dataset import DataBuffer, Dataset, desc_of, find_buffer, set_desc
from msdump.frontends.acl.operand import ModelOperand, Shape, operand_of
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import TensorDesc, dtype_number
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import pack, packed_size, unpack

if TYPE_CHECKING:
    from msdump.frontends.onnx import OnnxModel

INSTALL = "pip install onnx onnxruntime"


class LoadedModel:
    """A loaded model. Runs may come from any thread.

    inputs, outputs  those of the model; ATC's options have fixed some sizes
    control          the input that says which gear a run is in; None for a model without gears
    fixed_shapes     index of an input -> shape that a call chose for its open sizes
    """

    def __init__(self, onnx_model: OnnxModel, atc: Atc | None = None, where: str = "") -> None:
        """Raises: CallError 100013 for options of ATC that do not fit the model."""
        self.onnx = onnx_model
        self.atc = atc or Atc()
        self.inputs = self.atc.operands(tuple(map(operand_of, onnx_model.inputs)), where)
        self.control: ModelOperand | None = None
        self.fixed_shapes: dict[int, Shape] = {}
        self._outputs_by_shapes: dict[tuple[Shape, ...], tuple[ModelOperand, ...]] = {}
        if self.atc.kind:
            self._add_gears()
        else:
            self.outputs = self.outputs_for([operand.shape for operand in self.inputs])
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.onnx.file_name or self.onnx.model_name

    @property
    def fed(self) -> tuple[ModelOperand, ...]:
        """What a dataset of inputs has a buffer for."""
        return self.inputs if self.control is None else (*self.inputs, self.control)

    def outputs_for(self, shapes: Sequence[Shape]) -> tuple[ModelOperand, ...]:
        """The outputs for these shapes of the inputs, as far as they follow from them."""
        key = tuple(shapes)
        if key not in self._outputs_by_shapes:
            values = self.onnx.graph(self.known_shapes(shapes), 0).values
            specs = []
            for spec in self.onnx.outputs:
                operand = operand_of(spec)
                value = values.get(spec.name)
                shape = operand.shape if value is None else tuple(value.type.shape)
                specs.append(ModelOperand(operand.name, operand.dtype, shape))
            self._outputs_by_shapes[key] = tuple(specs)
        return self._outputs_by_shapes[key]

    def known_shapes(self, shapes: Sequence[Shape]) -> dict[str, Shape]:
        """Those without open sizes, by the names of the inputs."""
        return {
            operand.name: shape
            for operand, shape in zip(self.inputs, shapes, strict=True)
            if all(size >= 0 for size in shape)
        }

    def largest_shapes(self) -> list[Shape]:
        """Shapes of the inputs in the largest gear; those that the model declares where there are no gears."""
        return [operand.largest or operand.shape for operand in self.inputs]

    def current_shapes(self) -> list[Shape]:
        """Shapes of the inputs as calls have chosen them."""
        return [self.fixed_shapes.get(index, operand.shape) for index, operand in enumerate(self.inputs)]

    # -- gears ------------------------------------------------------------------------------------

    def choose_gear(self, kind: str, gear: Shape, dataset: Dataset, index: int) -> None:
        """Write a gear to where the next runs with the dataset look for it.

        index    of the control input
        Raises: CallError 100000 for another index, 145012 for a buffer that is too small, 145013 for no such gear.
        """
        control = self.control
        assert control is not None
        if index != len(self.inputs) or index >= len(dataset.buffers):
            raise bad_argument(
                f"index: expected {len(self.inputs)}, the input {control.name} of model {self.name}, with a buffer in "
                f"the dataset; got {index} and {len(dataset.buffers)} buffers"
            )
        if kind != self.atc.kind or gear not in self.atc.gears:
            setter = {BATCH: "set_dynamic_batch_size", IMAGE: "set_dynamic_hw_size", DIMS: "set_input_dynamic_dims"}
            raise CallError(
                codes.GE_DYNAMIC_BATCH_SIZE_INVALID,
                f"model {self.name}: expected a gear of --{self.atc.kind}, "
                f"{'; '.join(','.join(map(str, gear)) for gear in self.atc.gears)}, by acl.mdl."
                f"{setter[self.atc.kind]}; got {','.join(map(str, gear))}",
            )
        buffer = find_buffer(dataset.buffers[index])
        if buffer.size < control.size:
            raise CallError(
                codes.GE_DYNAMIC_INPUT_LENGTH_INVALID,
                f"model {self.name}: expected {control.size} bytes for input {control.name}, got {buffer.size}",
            )
        write_array(buffer, np.array(gear, np.int64), f"input {control.name}")
        self.fixed_shapes = dict(enumerate(self.atc.gear_shapes(self.inputs, gear)))

    def _add_gears(self) -> None:
        """Inputs get the largest shape that a gear gives them, outputs their shape in the gear that makes them largest.

        Source: ACL, `aclmdlGetOutputDims`: in a model with gears it tells of the largest.
        """
        shapes_by_gear = [self.atc.gear_shapes(self.inputs, gear) for gear in self.atc.gears]
        self.inputs = tuple(
            ModelOperand(operand.name, operand.dtype, operand.shape, (), tuple(map(max, *shapes, shapes[0])))
            for operand, *shapes in zip(self.inputs, *shapes_by_gear, strict=True)
        )
        self.control = ModelOperand(ACL_DYNAMIC_TENSOR_NAME, "int64", (len(self.atc.gears[0]),))
        by_gear = [self.outputs_for(self.atc.gear_shapes(self.inputs, gear)) for gear in self.atc.largest_gears()]
        self.outputs = tuple(max(outputs, key=lambda output: output.size) for outputs in zip(*by_gear, strict=True))

    def _gear(self, inputs: Dataset) -> list[Shape]:
        """Shapes of all inputs, as the control input says.   Raises: CallError 100017 when it names no gear."""
        assert self.control is not None
        index = len(self.inputs)
        gear = tuple(self._read(index, self.control, inputs, self.control.shape).tolist())
        if gear not in self.atc.gears:
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected a gear of --{self.atc.kind} in input {self.control.name}, got {gear}. "
                "Call acl.mdl.set_dynamic_batch_size, set_dynamic_hw_size or set_input_dynamic_dims first",
            )
        return self.atc.gear_shapes(self.inputs, gear)

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
        self._check_count("input", len(self.fed), inputs)
        if self.control is None:
            shapes = [self._shape(index, operand, inputs) for index, operand in enumerate(self.inputs)]
        else:
            shapes = self._gear(inputs)
        return {
            operand.name: self._read(index, operand, inputs, shape)
            for index, (operand, shape) in enumerate(zip(self.inputs, shapes, strict=True))
        }

    def run(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Run once.   Raises: CallError 100017, 500002."""
        try:
            return self.onnx.run(arrays)
        except ExecutionError as error:
            tell_failure(self.onnx, error)
            raise CallError(codes.GE_FAILURE, str(error)) from error

    def copy_out(self, results: dict[str, Any], outputs: Dataset) -> None:
        """Put the outputs into the script's memory, and their shapes into the descriptions."""
        for index, operand in enumerate(self.outputs):
            array = results[operand.name]
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                raise CallError(
                    codes.MODEL_OUTPUT_NOT_MATCH,
                    f"model {self.name}: expected outputs that memory can hold, got {operand.dtype} for {operand.name}",
                )
            buffer, needed = find_buffer(outputs.buffers[index]), device_size(array)
            if buffer.size < needed:
                raise CallError(
                    codes.MODEL_OUTPUT_NOT_MATCH,
                    f"model {self.name}: expected at least {needed} bytes for output {operand.name} of "
                    f"{operand.dtype}{list(array.shape)}, got a buffer of {buffer.size}",
                )
            write_array(buffer, array, f"output {operand.name}")
            old = desc_of(outputs, index)
            number = dtype_number(dtypes.dtype_from_numpy(array.dtype).name)
            form = ACL_FORMAT_ND if old is None else old.format
            set_desc(outputs, index, TensorDesc(number, tuple(array.shape), form, operand.name))

    # -- asynchronous runs ------------------------------------------------------------------------

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

    def _read(self, index: int, operand: ModelOperand, inputs: Dataset, shape: Shape) -> Array:
        buffer = find_buffer(inputs.buffers[index])
        needed = packed_size(operand.dtype, math.prod(shape))
        if buffer.size < needed:
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected {needed} bytes for input {operand.name} of "
                f"{operand.dtype}{list(shape)}, got a buffer of {buffer.size}. Is its shape or dtype another?",
            )
        return read_array(buffer, operand.dtype, shape, f"input {operand.name}")

    def _shape(self, index: int, operand: ModelOperand, inputs: Dataset) -> Shape:
        """Shape of an input: from its description, from a call on the model, from the model, from its size."""
        desc, buffer = desc_of(inputs, index), find_buffer(inputs.buffers[index])
        shape = desc.shape if desc is not None else self.fixed_shapes.get(index, operand.shape)
        if not operand.fits(shape):
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected input {operand.name} as {operand}, got shape {list(shape)}",
            )
        open_sizes = [axis for axis, size in enumerate(shape) if size < 0]
        if len(open_sizes) == 1:
            rest = math.prod(size for size in shape if size >= 0) * dtypes.dtype(operand.dtype).bits
            if rest and buffer.size * 8 % rest == 0:
                return tuple(buffer.size * 8 // rest if size < 0 else size for size in shape)
        if open_sizes:
            raise CallError(
                codes.MODEL_INPUT_NOT_MATCH,
                f"model {self.name}: expected a shape for input {operand.name}, which is {operand}; got a buffer of "
                f"{buffer.size} bytes alone. Call acl.mdl.set_dataset_tensor_desc for it",
            )
        return shape


def load(source: str | bytes, function: str) -> int:
    """Load a model with the dumps that are in force; gives its id.   Raises: CallError with GE's or ACL's number."""
    from msdump.config.acl_file import NULL

    process.check_initialized(function)
    if isinstance(source, bytes) and not source:
        raise CallError(codes.INVALID_PARAM, f"{function}: expected a model, got 0 bytes", NULL)
    model_id = next(process.model_ids)
    process.models[model_id] = described(source, open_model(source, model_id))
    return model_id


def described(source: str | bytes, model: OnnxModel) -> LoadedModel:
    """A model with ATC's options for it.   Raises: CallError 100013."""
    atc, where = atc_of(source, model.metadata)
    return LoadedModel(model, atc, where)


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


def loader() -> Callable[..., OnnxModel]:
    """`load_model` of the ONNX frontend.   Raises: MsdumpError with the line that installs what it needs."""
    try:
        from msdump.frontends.onnx import load_model
    except ImportError as error:
        raise MsdumpError(f"models: expected onnx and onnxruntime, got: {error}. Install them: {INSTALL}.") from error
    return load_model


def find_model(model_id: int) -> LoadedModel:
    """The model behind an id.   Raises: CallError 145003."""
    model = process.models.get(model_id)
    if not isinstance(model, LoadedModel):
        raise CallError(codes.GE_EXEC_MODEL_ID_INVALID, f"model_id: expected the id of a loaded model, got {model_id}")
    return model


def tell_failure(model: OnnxModel, error: ExecutionError) -> None:
    """Call the script's function for operators that fail, with the ids that a dump gives the operator."""
    if process.exception_callback is None or not error.operator:
        return
    for op in model.graph({}, 0).graph.op_infos():
        if op.full_name == error.operator:
            tell_exception(op.task_id, op.stream_id)


def read_array(buffer: DataBuffer, dtype: str, shape: Shape, name: str) -> Array:
    """The tensor that begins where a buffer does, in place where the memory allows it."""
    row = dtypes.dtype(dtype)
    memory = process.memory.array(buffer.address, packed_size(dtype, math.prod(shape)), name)
    if row.bits < 8:
        return unpack(memory, dtype, shape)
    if buffer.address % max(row.itemsize, 1):
        memory = memory.copy()
    return memory.view(row.numpy).reshape(shape)


def write_array(buffer: DataBuffer, array: Array, name: str) -> None:
    """Put a tensor where a buffer begins; elements of less than a byte are packed, as on a device."""
    if array.nbytes:
        data = pack(array, dtypes.dtype_from_numpy(array.dtype).name)
        process.memory.array(buffer.address, data.nbytes, name, is_written=True)[:] = data


def device_size(array: Array) -> int:
    """Bytes of a tensor on a device."""
    return packed_size(dtypes.dtype_from_numpy(array.dtype).name, array.size)

"""acl.op: operators that are called by themselves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, SupportsFloat, SupportsIndex, TypeVar

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    as_text,
    returns_code,
    returns_nothing,
    returns_value,
    unknown_name,
)
from msdump.frontends.acl.dataset import DataBuffer, find_buffer
from msdump.frontends.acl.operand import Shape
from msdump.frontends.acl.process import process
from msdump.frontends.acl.single_ops import SingleOp, SingleOps, models_in, operator_of
from msdump.frontends.acl.tensor_desc import TensorDesc
from msdump.frontends.acl.tensor_desc import find as find_desc

log = logging.getLogger("msdump")
V = TypeVar("V")


@dataclass(slots=True)
class OpAttr:
    """Attributes of an operator by name."""

    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpHandle:
    """An operator that was looked up before its calls, and the descriptions of its inputs as they were."""

    op: SingleOp
    inputs: tuple[TensorDesc, ...]


# -- attributes -------------------------------------------------------------------------------------


def create_attr() -> int:
    """`attr = acl.op.create_attr()`."""
    return process.handles.add(OpAttr())


@returns_nothing("aclopDestroyAttr")
def destroy_attr(attr: int) -> None:
    """Destroy attributes; an invalid handle is logged and ignored."""
    process.handles.remove(as_int(attr, "attr"), OpAttr, "attr")


def _as_bool(value: SupportsIndex, name: str) -> bool:
    return bool(as_int(value, name))


def _as_float(value: SupportsFloat, name: str) -> float:
    return float(value)


def _setter(kind: str, read: Callable[[V, str], object]) -> Callable[[int, str, V], int]:
    @returns_code(f"aclopSetAttr{kind}")
    def call(attr: int, attr_name: str, attr_value: V) -> None:
        _set(attr, attr_name, read(attr_value, "attr_value"))

    return call


def _list_setter(kind: str, read: Callable[[V, str], object]) -> Callable[[int, str, Sequence[V]], int]:
    @returns_code(f"aclopSetAttrList{kind}")
    def call(attr: int, attr_name: str, values: Sequence[V]) -> None:
        _set(attr, attr_name, [read(value, "values") for value in values])

    return call


set_attr_bool, set_attr_list_bool = _setter("Bool", _as_bool), _list_setter("Bool", _as_bool)
set_attr_int, set_attr_list_int = _setter("Int", as_int), _list_setter("Int", as_int)
set_attr_data_type, set_attr_list_data_type = _setter("DataType", as_int), _list_setter("DataType", as_int)
set_attr_float, set_attr_list_float = _setter("Float", _as_float), _list_setter("Float", _as_float)
set_attr_string, set_attr_list_string = _setter("String", as_text), _list_setter("String", as_text)


# -- calls ------------------------------------------------------------------------------------------


@returns_code("aclopSetModelDir")
def set_model_dir(model_dir: str) -> None:
    """Take the models of single operators of a folder: `.onnx` files. Without one, every operator of ONNX is known."""
    process.check_initialized("aclopSetModelDir")
    for path in models_in(as_text(model_dir, "model_dir")):
        if path.suffix.lower() == ".om":
            log.warning(
                "%s: an .om file, which only a device can run, is left out. Operators of ONNX need no file.", path
            )
        else:
            _ops().load(str(path))


@returns_code("aclopLoad")
def load(model: int, model_size: int) -> None:
    """Take the model of a single operator from the bytes at an address."""
    process.check_initialized("aclopLoad")
    address, size = as_int(model, "model"), as_int(model_size, "model_size")
    _ops().load(process.memory.array(address, size, "model").tobytes())


def _execute(c_name: str, tells_shapes: bool) -> Callable[..., int]:
    @returns_code(c_name)
    def execute(
        op_type: str,
        input_desc: Sequence[int],
        inputs: Sequence[int],
        output_desc: Sequence[int],
        outputs: Sequence[int],
        attr: int,
        stream: int,
    ) -> None:
        """Run an operator once, after all that its stream has to do; it has run when this returns.

        Open sizes of `output_desc` become those of the results in `execute_v2`.
        """
        process.check_initialized(c_name)
        shapes = _run(_operator(op_type, input_desc, output_desc, attr), inputs, outputs, stream, input_desc)
        if tells_shapes:
            _tell_shapes(output_desc, shapes)

    return execute


execute, execute_v2 = _execute("aclopExecute", False), _execute("aclopExecuteV2", True)


def _compile_and_execute(c_name: str, tells_shapes: bool) -> Callable[..., int]:
    @returns_code(c_name)
    def compile_and_execute(
        op_type: str,
        input_desc: Sequence[int],
        inputs: Sequence[int],
        output_desc: Sequence[int],
        outputs: Sequence[int],
        attr: int,
        engine_type: int,
        compile_flag: int,
        op_path: str,
        stream: int,
    ) -> None:
        """As `execute`: operators are made when they are called first."""
        process.check_initialized(c_name)
        shapes = _run(_operator(op_type, input_desc, output_desc, attr), inputs, outputs, stream, input_desc)
        if tells_shapes:
            _tell_shapes(output_desc, shapes)

    return compile_and_execute


compile_and_execute = _compile_and_execute("aclopCompileAndExecute", False)
compile_and_execute_v2 = _compile_and_execute("aclopCompileAndExecuteV2", True)


@returns_code("aclopInferShape")
def infer_shape(
    op_type: str,
    in_desc_list: Sequence[int],
    in_list: Sequence[int],
    num_outputs: int,
    out_desc_list: Sequence[int],
    attr: int,
) -> None:
    """Put the shapes that an operator gives into the descriptions of its outputs. Nothing is dumped.

    in_list   buffers of the operands; a size that their values decide is found by running the operator
    """
    process.check_initialized("aclopInferShape")
    count = as_int(num_outputs, "num_outputs")
    if count != len(out_desc_list) or len(in_list) != len(in_desc_list):
        raise CallError(
            codes.INVALID_PARAM,
            f"{as_text(op_type, 'op_type')}: expected a description for each of {count} outputs and a buffer for each "
            f"of {len(in_desc_list)} inputs, got {len(out_desc_list)} and {len(in_list)}",
        )
    descs = [find_desc(desc) for desc in out_desc_list]
    op = _operator(op_type, in_desc_list, out_desc_list, attr)
    for desc, shape in zip(descs, _ops().shapes(op, _sources(in_list, in_desc_list)), strict=True):
        desc.shape = shape


@returns_code("aclopUpdateParams")
def update_params(op_type: str, input_desc: Sequence[int], output_desc: Sequence[int], attr: int) -> None:
    """Make an operator before its first call."""
    process.check_initialized("aclopUpdateParams")
    _ops().model(_operator(op_type, input_desc, output_desc, attr))


@returns_code("aclopCompile")
def compile(
    op_type: str,
    input_desc: Sequence[int],
    output_desc: Sequence[int],
    attr: int,
    engine_type: int,
    compile_flag: int,
    op_path: str,
) -> None:
    """Make an operator before its first call."""
    process.check_initialized("aclopCompile")
    _ops().model(_operator(op_type, input_desc, output_desc, attr))


@returns_value("aclopCreateHandle", 0)
def create_handle(op_type: str, input_desc: Sequence[int], output_desc: Sequence[int], attr: int) -> int:
    """`handle, ret = acl.op.create_handle(op_type, input_desc, output_desc, attr)`."""
    process.check_initialized("aclopCreateHandle")
    op = _operator(op_type, input_desc, output_desc, attr)
    _ops().model(op)
    return process.handles.add(OpHandle(op, tuple(find_desc(desc) for desc in input_desc)))


@returns_nothing("aclopDestroyHandle")
def destroy_handle(handle: int) -> None:
    """Destroy an operator; an invalid handle is logged and ignored."""
    process.handles.remove(as_int(handle, "handle"), OpHandle, "handle")


@returns_code("aclopExecWithHandle")
def execute_with_handle(handle: int, inputs: Sequence[int], outputs: Sequence[int], stream: int) -> None:
    """Run an operator that `create_handle` looked up."""
    process.check_initialized("aclopExecWithHandle")
    held = process.handles.find(as_int(handle, "handle"), OpHandle, "handle")
    _run(held.op, inputs, outputs, stream, held.inputs)


@returns_code("aclopCast")
def cast(src_desc: int, src_buffer: int, dst_desc: int, dst_buffer: int, truncate: int, stream: int) -> None:
    """Convert to the dtype of `dst_desc`."""
    process.check_initialized("aclopCast")
    source, target = find_desc(src_desc, "src_desc"), find_desc(dst_desc, "dst_desc")
    op = operator_of("Cast", [source], [target], {"dst_type": target.dtype})
    _run(op, [src_buffer], [dst_buffer], stream, [source])


# -- parts ------------------------------------------------------------------------------------------


def _ops() -> SingleOps:
    with process.lock:
        ops = process.single_ops
        if not isinstance(ops, SingleOps):
            ops = process.single_ops = SingleOps()
        return ops


def _operator(op_type: str, input_desc: Sequence[int], output_desc: Sequence[int], attr: int) -> SingleOp:
    """Edges: a null handle stands for no attributes."""
    name, handle = as_text(op_type, "op_type"), as_int(attr, "attr")
    attributes = process.handles.find(handle, OpAttr, "attr").values if handle else {}
    inputs = [find_desc(desc, f"input_desc[{index}]") for index, desc in enumerate(input_desc)]
    outputs = [find_desc(desc, f"output_desc[{index}]") for index, desc in enumerate(output_desc)]
    return operator_of(name, inputs, outputs, attributes)


def _run(
    op: SingleOp,
    inputs: Sequence[int],
    outputs: Sequence[int],
    stream: int,
    input_desc: Sequence[int | TensorDesc],
) -> list[Shape]:
    """Run it once; gives the shapes of the results."""
    queue = process.stream(as_int(stream, "stream"))
    for io, buffers, signature, code in (
        ("input", inputs, op.inputs, codes.OP_INPUT_NOT_MATCH),
        ("output", outputs, op.outputs, codes.OP_OUTPUT_NOT_MATCH),
    ):
        if len(buffers) != len(signature):
            raise CallError(
                code,
                f"{op.op_type}: expected {len(signature)} {io} buffers, one for each description; got {len(buffers)}",
            )
    sources, targets = _sources(inputs, input_desc), [find_buffer(buffer) for buffer in outputs]
    queue.drain()
    return _ops().run(op, sources, targets)


def _sources(inputs: Sequence[int], input_desc: Sequence[int | TensorDesc]) -> list[DataBuffer]:
    descs = [desc if isinstance(desc, TensorDesc) else find_desc(desc) for desc in input_desc]
    return [_source_of(desc, find_buffer(buffer)) for desc, buffer in zip(descs, inputs, strict=True)]


def _tell_shapes(output_desc: Sequence[int], shapes: Sequence[Shape]) -> None:
    for handle, shape in zip(output_desc, shapes, strict=True):
        desc = find_desc(handle)
        if any(size < 0 for size in desc.shape):
            desc.shape = shape


def _set(attr: int, name: str, value: object) -> None:
    held = process.handles.find(as_int(attr, "attr"), OpAttr, "attr")
    held.values[as_text(name, "attr_name")] = value


def _source_of(desc: TensorDesc, buffer: DataBuffer) -> DataBuffer:
    """Where an operator reads an input: its constant data, or the buffer."""
    if desc.const is None:
        return buffer
    address = process.memory.lend(desc.const, desc.const.ctypes.data, desc.const.nbytes, False)
    return DataBuffer(address, desc.const.nbytes)


def __getattr__(name: str) -> NoReturn:
    raise unknown_name("acl.op", name, globals())

"""ModelDesc: inputs and outputs of a model, and the calls that return them: acl.mdl.get_*."""

from __future__ import annotations

from dataclasses import dataclass, field

from msdump.frontends.acl.atc import BATCH, DIMS, IMAGE
from msdump.frontends.acl.calls import (
    as_int,
    as_text,
    bad_argument,
    returns_code,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.const import ACL_DT_UNDEFINED, ACL_FORMAT_ND, ACL_FORMAT_UNDEFINED
from msdump.frontends.acl.models import LoadedModel, described, find_model, open_unwatched
from msdump.frontends.acl.operand import ModelOperand, Shape
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import dtype_number

# What pyACL gives as the struct of C: its fields by name.
Fields = dict[str, str | int | list[int] | list[list[int]]]
_NO_DIMS: Fields = {}
_NO_GEARS: list[Fields] = []


@dataclass(slots=True)
class ModelDesc:
    """What `get_desc` filled in. It outlives its model."""

    inputs: tuple[ModelOperand, ...] = ()
    outputs: tuple[ModelOperand, ...] = ()
    models: list[LoadedModel] = field(default_factory=list)


def create_desc() -> int:
    """`desc = acl.mdl.create_desc()`; empty until `get_desc`."""
    return process.handles.add(ModelDesc())


@returns_code("aclmdlDestroyDesc")
def destroy_desc(model_desc: int) -> None:
    process.handles.remove(as_int(model_desc, "model_desc"), ModelDesc, "model_desc")


@returns_code("aclmdlGetDesc")
def get_desc(model_desc: int, model_id: int) -> None:
    """Fill a description in: `ret = acl.mdl.get_desc(desc, model_id)`."""
    desc, model = _find(model_desc), find_model(as_int(model_id, "model_id"))
    desc.inputs, desc.outputs, desc.models = model.fed, model.outputs, [model]


@returns_code("aclmdlGetDescFromFile")
def get_desc_from_file(model_desc: int, model_path: str) -> None:
    """Fill a description in without loading the model: `ret = acl.mdl.get_desc_from_file(desc, "net.onnx")`."""
    _fill(model_desc, as_text(model_path, "model_path"))


@returns_code("aclmdlGetDescFromMem")
def get_desc_from_mem(model_desc: int, model: int, model_size: int) -> None:
    """As `get_desc_from_file`, from the bytes at an address."""
    address, size = as_int(model, "model"), as_int(model_size, "model_size")
    _fill(model_desc, process.memory.array(address, size, "model").tobytes())


@returns_plain("aclmdlGetTensorRealName", "")
def get_tensor_real_name(model_desc: int, name: str) -> str:
    """The name itself: names are never cut here."""
    held, short = _find(model_desc), as_text(name, "name")
    names = [operand.name for operand in (*held.inputs, *held.outputs)]
    if short not in names:
        raise bad_argument(f"name: expected one of {', '.join(names) or 'none'}, got {short}")
    return short


@returns_plain("aclmdlGetNumInputs", 0)
def get_num_inputs(model_desc: int) -> int:
    return len(_find(model_desc).inputs)


@returns_plain("aclmdlGetNumOutputs", 0)
def get_num_outputs(model_desc: int) -> int:
    return len(_find(model_desc).outputs)


@returns_plain("aclmdlGetInputSizeByIndex", 0)
def get_input_size_by_index(model_desc: int, index: int) -> int:
    """Bytes of an input, in the largest gear where there are gears; 0 when a size may be any."""
    return _input(model_desc, index).size


@returns_plain("aclmdlGetOutputSizeByIndex", 0)
def get_output_size_by_index(model_desc: int, index: int) -> int:
    """Bytes of an output, in the largest gear where there are gears; 0 when a size may be any."""
    return _output(model_desc, index).size


@returns_value("aclmdlGetInputDims", _NO_DIMS)
def get_input_dims(model_desc: int, index: int) -> Fields:
    """`dims, ret = acl.mdl.get_input_dims(desc, index)`; dims is {"name", "dimCount", "dims"}, -1 an open size."""
    return _dims(_input(model_desc, index))


@returns_value("aclmdlGetInputDimsV2", _NO_DIMS)
def get_input_dims_v2(model_desc: int, index: int) -> Fields:
    return _dims(_input(model_desc, index))


@returns_value("aclmdlGetOutputDims", _NO_DIMS)
def get_output_dims(model_desc: int, index: int) -> Fields:
    return _dims(_output(model_desc, index))


@returns_value("aclmdlGetCurOutputDims", _NO_DIMS)
def get_cur_output_dims(model_desc: int, index: int) -> Fields:
    """Dims of an output for the sizes of the inputs that calls such as `set_dynamic_batch_size` chose."""
    _output(model_desc, index)
    model = _find(model_desc).models[0]
    return _dims(model.outputs_for(model.current_shapes())[as_int(index, "index")])


@returns_value("aclmdlGetInputDimsRange", {"rangeCount": 0, "range": []})
def get_input_dims_range(model_desc: int, index: int) -> dict[str, object]:
    """`range, ret = acl.mdl.get_input_dims_range(desc, index)`: [least, most] of each size; [1, -1] for any.

    Edges:  none for an input with gears.
    """
    operand = _input(model_desc, index)
    if operand.largest is not None and operand.is_dynamic:
        return {"rangeCount": 0, "range": []}
    ranges = operand.ranges or tuple((1, -1) if size < 0 else (size, size) for size in operand.shape)
    return {"rangeCount": len(ranges), "range": [list(ends) for ends in ranges]}


@returns_value("aclmdlGetDynamicBatch", _NO_DIMS)
def get_dynamic_batch(model_desc: int) -> Fields:
    """`batch, ret = acl.mdl.get_dynamic_batch(desc)`; batch is {"batchCount", "batch"}, 0 and [] without such gears."""
    sizes = [gear[0] for gear in _gears(model_desc, BATCH)]
    return {"batchCount": len(sizes), "batch": sizes}


@returns_value("aclmdlGetDynamicHW", _NO_DIMS)
def get_dynamic_hw(model_desc: int, index: int) -> Fields:
    """`hw, ret = acl.mdl.get_dynamic_hw(desc, -1)`; hw is {"hwCount", "hw"}, each [height, width]."""
    as_int(index, "index")
    sizes = [list(gear) for gear in _gears(model_desc, IMAGE)]
    return {"hwCount": len(sizes), "hw": sizes}


@returns_value("aclmdlGetInputDynamicGearCount", 0)
def get_input_dynamic_gear_count(model_desc: int, index: int) -> int:
    """`count, ret = acl.mdl.get_input_dynamic_gear_count(desc, -1)`: gears of `--dynamic_dims`."""
    as_int(index, "index")
    return len(_gears(model_desc, DIMS))


@returns_value("aclmdlGetInputDynamicDims", _NO_GEARS)
def get_input_dynamic_dims(model_desc: int, index: int, gear_count: int) -> list[Fields]:
    """`dims, ret = acl.mdl.get_input_dynamic_dims(desc, -1, gear_count)`: all sizes of all inputs in each gear."""
    as_int(index, "index")
    gears, count = _gears(model_desc, DIMS), as_int(gear_count, "gear_count")
    if not 0 <= count <= len(gears):
        raise bad_argument(f"gear_count: expected at most the {len(gears)} gears of the model, got {count}")
    dims: list[Fields] = []
    for gear in gears[:count]:
        model = _find(model_desc).models[0]
        sizes = [size for shape in model.atc.gear_shapes(model.inputs, gear) for size in shape]
        dims.append({"name": "", "dimCount": len(sizes), "dims": sizes})
    return dims


@returns_plain("aclmdlGetInputDataType", ACL_DT_UNDEFINED)
def get_input_data_type(model_desc: int, index: int) -> int:
    return dtype_number(_input(model_desc, index).dtype)


@returns_plain("aclmdlGetOutputDataType", ACL_DT_UNDEFINED)
def get_output_data_type(model_desc: int, index: int) -> int:
    return dtype_number(_output(model_desc, index).dtype)


@returns_plain("aclmdlGetInputFormat", ACL_FORMAT_UNDEFINED)
def get_input_format(model_desc: int, index: int) -> int:
    """Always ND: ONNX leaves the meaning of axes to its operators."""
    _input(model_desc, index)
    return ACL_FORMAT_ND


@returns_plain("aclmdlGetOutputFormat", ACL_FORMAT_UNDEFINED)
def get_output_format(model_desc: int, index: int) -> int:
    """Always ND."""
    _output(model_desc, index)
    return ACL_FORMAT_ND


@returns_plain("aclmdlGetInputNameByIndex", "")
def get_input_name_by_index(model_desc: int, index: int) -> str:
    return _input(model_desc, index).name


@returns_plain("aclmdlGetOutputNameByIndex", "")
def get_output_name_by_index(model_desc: int, index: int) -> str:
    return _output(model_desc, index).name


@returns_value("aclmdlGetInputIndexByName", 0)
def get_input_index_by_name(model_desc: int, name: str) -> int:
    return _index(_find(model_desc).inputs, name)


@returns_value("aclmdlGetOutputIndexByName", 0)
def get_output_index_by_name(model_desc: int, name: str) -> int:
    return _index(_find(model_desc).outputs, name)


def _fill(model_desc: int, source: str | bytes) -> None:
    desc, model = _find(model_desc), described(source, open_unwatched(source))
    desc.inputs, desc.outputs, desc.models = model.fed, model.outputs, [model]


def _gears(model_desc: int, kind: str) -> tuple[Shape, ...]:
    """The gears of one kind; none for a description that was not filled in."""
    models = _find(model_desc).models
    return models[0].atc.gears if models and models[0].atc.kind == kind else ()


def _find(model_desc: int) -> ModelDesc:
    return process.handles.find(as_int(model_desc, "model_desc"), ModelDesc, "model_desc")


def _input(model_desc: int, index: int) -> ModelOperand:
    return _operand_at(_find(model_desc).inputs, index, "inputs")


def _output(model_desc: int, index: int) -> ModelOperand:
    return _operand_at(_find(model_desc).outputs, index, "outputs")


def _operand_at(operands: tuple[ModelOperand, ...], index: int, io: str) -> ModelOperand:
    position = as_int(index, "index")
    if not 0 <= position < len(operands):
        raise bad_argument(f"index: expected one of {len(operands)} {io}, got {position}")
    return operands[position]


def _index(operands: tuple[ModelOperand, ...], name: str) -> int:
    names = [operand.name for operand in operands]
    if as_text(name, "name") not in names:
        raise bad_argument(f"name: expected one of {', '.join(names) or 'none'}, got {name}")
    return names.index(name)


def _dims(operand: ModelOperand) -> Fields:
    return {"name": operand.name, "dimCount": len(operand.shape), "dims": list(operand.shape)}

"""acl.mdl: models and their dump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from msdump.frontends.acl import codes, const
from msdump.frontends.acl.aipp import (
    create_aipp,
    destroy_aipp,
    get_aipp_type,
    get_first_aipp_info,
    set_aipp_ax_swap_switch,
    set_aipp_by_input_index,
    set_aipp_crop_params,
    set_aipp_csc_params,
    set_aipp_dtc_pixel_mean,
    set_aipp_dtc_pixel_min,
    set_aipp_input_format,
    set_aipp_padding_params,
    set_aipp_pixel_var_reci,
    set_aipp_rbuv_swap_switch,
    set_aipp_scf_params,
    set_aipp_src_image_size,
    set_input_aipp,
)
from msdump.frontends.acl.callbacks import deliver_to
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    as_text,
    bad_argument,
    returns_code,
    returns_value,
    unknown_name,
)
from msdump.frontends.acl.dataset import (
    add_dataset_buffer,
    create_dataset,
    destroy_dataset,
    find_dataset,
    get_dataset_buffer,
    get_dataset_num_buffers,
    get_dataset_tensor_desc,
    set_dataset_tensor_desc,
)
from msdump.frontends.acl.dynamic_sizes import set_dynamic_batch_size, set_dynamic_hw_size, set_input_dynamic_dims
from msdump.frontends.acl.model_desc import (
    create_desc,
    destroy_desc,
    get_cur_output_dims,
    get_desc,
    get_desc_from_file,
    get_desc_from_mem,
    get_dynamic_batch,
    get_dynamic_hw,
    get_input_data_type,
    get_input_dims,
    get_input_dims_range,
    get_input_dims_v2,
    get_input_dynamic_dims,
    get_input_dynamic_gear_count,
    get_input_format,
    get_input_index_by_name,
    get_input_name_by_index,
    get_input_size_by_index,
    get_num_inputs,
    get_num_outputs,
    get_output_data_type,
    get_output_dims,
    get_output_format,
    get_output_index_by_name,
    get_output_name_by_index,
    get_output_size_by_index,
    get_tensor_real_name,
)
from msdump.frontends.acl.models import described, find_model, load, open_unwatched
from msdump.frontends.acl.process import process

__all__ = [
    "add_dataset_buffer",
    "create_aipp",
    "create_config_handle",
    "create_dataset",
    "create_desc",
    "destroy_aipp",
    "destroy_config_handle",
    "destroy_dataset",
    "destroy_desc",
    "dump_reg_callback",
    "dump_unreg_callback",
    "execute",
    "execute_async",
    "finalize_dump",
    "get_aipp_type",
    "get_cur_output_dims",
    "get_dataset_buffer",
    "get_dataset_num_buffers",
    "get_dataset_tensor_desc",
    "get_desc",
    "get_desc_from_file",
    "get_desc_from_mem",
    "get_dynamic_batch",
    "get_dynamic_hw",
    "get_first_aipp_info",
    "get_input_data_type",
    "get_input_dims",
    "get_input_dims_range",
    "get_input_dims_v2",
    "get_input_dynamic_dims",
    "get_input_dynamic_gear_count",
    "get_input_format",
    "get_input_index_by_name",
    "get_input_name_by_index",
    "get_input_size_by_index",
    "get_num_inputs",
    "get_num_outputs",
    "get_output_data_type",
    "get_output_dims",
    "get_output_format",
    "get_output_index_by_name",
    "get_output_name_by_index",
    "get_output_size_by_index",
    "get_tensor_real_name",
    "init_dump",
    "load_from_file",
    "load_from_file_with_mem",
    "load_from_mem",
    "load_from_mem_with_mem",
    "load_with_config",
    "query_size",
    "query_size_from_mem",
    "set_aipp_ax_swap_switch",
    "set_aipp_by_input_index",
    "set_aipp_crop_params",
    "set_aipp_csc_params",
    "set_aipp_dtc_pixel_mean",
    "set_aipp_dtc_pixel_min",
    "set_aipp_input_format",
    "set_aipp_padding_params",
    "set_aipp_pixel_var_reci",
    "set_aipp_rbuv_swap_switch",
    "set_aipp_scf_params",
    "set_aipp_src_image_size",
    "set_config_opt",
    "set_dataset_tensor_desc",
    "set_dump",
    "set_dynamic_batch_size",
    "set_dynamic_hw_size",
    "set_input_aipp",
    "set_input_dynamic_dims",
    "unload",
]


# -- dump -------------------------------------------------------------------------------------------


@returns_code("aclmdlInitDump")
def init_dump() -> None:
    """Begin: `set_dump` may follow."""
    process.dump.init_dump()


@returns_code("aclmdlSetDump")
def set_dump(dump_cfg_path: str | None = None) -> None:
    """Dump what an acl.json asks for, of models that are loaded from now on. No path at all is a null pointer."""
    process.dump.set_dump(None if dump_cfg_path is None else as_text(dump_cfg_path, "dump_cfg_path"))


@returns_code("aclmdlFinalizeDump")
def finalize_dump() -> None:
    """Finish the dump, after all that streams still do."""
    if process.dump.is_dump_on:
        process.drain()
    process.dump.finalize_dump()


@returns_code("acldumpRegCallback")
def dump_reg_callback(fn: Callable[[dict[str, str | int]], object], flag: int) -> None:
    """Hand dumps to a function instead of writing files.

    fn     gets one dict: file_name, data_buf (address), buf_len, is_last_chunk, offset (-1 = append), flag. It comes
           from another thread; the memory is valid until it returns. A number other than 0 that it returns means
           that it failed.
    flag   must be 0
    """
    if not callable(fn):
        raise TypeError(f"fn: expected a function, got {type(fn).__name__}.")
    process.check_initialized("acldumpRegCallback")
    if as_int(flag, "flag") != 0:
        raise bad_argument(f"flag: expected 0, got {flag}")
    process.dump.register(deliver_to(fn))


def dump_unreg_callback() -> None:
    """Write files again."""
    process.dump.register(None)


# -- loading ----------------------------------------------------------------------------------------


@returns_value("aclmdlLoadFromFile", 0)
def load_from_file(model_path: str) -> int:
    """`model_id, ret = acl.mdl.load_from_file("resnet50.onnx")`."""
    return load(as_text(model_path, "model_path"), "aclmdlLoadFromFile")


@returns_value("aclmdlLoadFromMem", 0)
def load_from_mem(model: int, model_size: int) -> int:
    """Load a model from the bytes at an address; only the name inside of it counts."""
    return load(_bytes(model, model_size), "aclmdlLoadFromMem")


@returns_value("aclmdlLoadFromFileWithMem", 0)
def load_from_file_with_mem(model_path: str, work_ptr: int, work_size: int, weight_ptr: int, weight_size: int) -> int:
    """As `load_from_file`; the memory is the script's and is left alone."""
    return load(as_text(model_path, "model_path"), "aclmdlLoadFromFileWithMem")


@returns_value("aclmdlLoadFromMemWithMem", 0)
def load_from_mem_with_mem(
    model: int, model_size: int, work_ptr: int, work_size: int, weight_ptr: int, weight_size: int
) -> int:
    """As `load_from_mem`; the memory for its run is the script's and is left alone."""
    return load(_bytes(model, model_size), "aclmdlLoadFromMemWithMem")


@returns_code("aclmdlUnload")
def unload(model_id: int) -> None:
    """Forget a model.   Returns: 148051 while a stream has runs of it to do."""
    number = as_int(model_id, "model_id")
    model = find_model(number)
    if model.pending:
        runs = "1 run" if model.pending == 1 else f"{model.pending} runs"
        raise CallError(
            codes.RELATIVE_RESOURCE_NOT_CLEARED,
            f"model {model.name} (id {number}): a stream has {runs} of it to do. Call acl.rt.synchronize_stream first",
        )
    process.models.pop(number, None)


def query_size(file_name: str) -> tuple[int, int, int]:
    """`work_size, weight_size, ret = acl.mdl.query_size(path)`. Bytes; open sizes count as nothing."""
    (work, weight), ret = _query(as_text(file_name, "file_name"))
    return work, weight, ret


def query_size_from_mem(model: int, model_size: int) -> tuple[int, int, int]:
    """`work_size, weight_size, ret = acl.mdl.query_size_from_mem(address, size)`."""
    (work, weight), ret = _query_at(model, model_size)
    return work, weight, ret


@returns_value("aclmdlQuerySize", (0, 0))
def _query(source: str) -> tuple[int, int]:
    return _sizes(source)


@returns_value("aclmdlQuerySizeFromMem", (0, 0))
def _query_at(model: int, model_size: int) -> tuple[int, int]:
    return _sizes(_bytes(model, model_size))


# -- runs -------------------------------------------------------------------------------------------


@returns_code("aclmdlExecute")
def execute(model_id: int, input: int, output: int) -> None:
    """Run once: `ret = acl.mdl.execute(model_id, input_dataset, output_dataset)`."""
    process.check_initialized("aclmdlExecute")
    model = find_model(as_int(model_id, "model_id"))
    model.execute(find_dataset(input, "input"), find_dataset(output, "output"))


@returns_code("aclmdlExecuteAsync")
def execute_async(model_id: int, input: int, output: int, stream: int) -> None:
    """Let a stream run it. Argument errors are raised here, execution errors by `synchronize_stream`."""
    process.check_initialized("aclmdlExecuteAsync")
    model = find_model(as_int(model_id, "model_id"))
    inputs, outputs = find_dataset(input, "input"), find_dataset(output, "output")
    queue = process.stream(as_int(stream, "stream"))
    model.arrays(inputs)

    def work() -> None:
        try:
            model.execute(inputs, outputs)
        finally:
            model.end()

    model.begin()
    queue.submit(work)


# -- parts ------------------------------------------------------------------------------------------


def _bytes(model: int, model_size: int) -> bytes:
    address, size = as_int(model, "model"), as_int(model_size, "model_size")
    return process.memory.array(address, size, "model").tobytes()


def _sizes(source: str | bytes) -> tuple[int, int]:
    """(bytes of the results of all operators in the largest gear, bytes of the weights)."""
    model = described(source, open_unwatched(source))
    graph = model.onnx.graph(model.known_shapes(model.largest_shapes()), 0).graph
    types = [value.type for node in graph.nodes for value in node.outputs]
    work = sum(type.size_bytes for type in types if all(size >= 0 for size in type.shape))
    return work, sum(value.constant.nbytes for value in graph.constants if value.constant is not None)


def __getattr__(name: str) -> NoReturn:
    raise unknown_name("acl.mdl", name, globals())


# -- config handles: how a model is to be loaded, option by option -----------------------------------------------------

_PRIORITIES = range(8)
_FROM_FILE = (const.ACL_MDL_LOAD_FROM_FILE, const.ACL_MDL_LOAD_FROM_FILE_WITH_MEM)
_FROM_MEM = (const.ACL_MDL_LOAD_FROM_MEM, const.ACL_MDL_LOAD_FROM_MEM_WITH_MEM)
_WITH_QUEUES = (const.ACL_MDL_LOAD_FROM_FILE_WITH_Q, const.ACL_MDL_LOAD_FROM_MEM_WITH_Q)
_KNOWN = range(const.ACL_MDL_WORKSPACE_MEM_OPTIMIZE + 1)


@dataclass(slots=True)
class ConfigHandle:
    """Options that a script has set, by their numbers of aclmdlConfigAttr."""

    options: dict[int, int | str] = field(default_factory=dict)


def create_config_handle() -> int:
    """`handle = acl.mdl.create_config_handle()`."""
    return process.handles.add(ConfigHandle())


@returns_code("aclmdlDestroyConfigHandle")
def destroy_config_handle(config_handle: int) -> None:
    process.handles.remove(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")


@returns_code("aclmdlSetConfigOpt")
def set_config_opt(config_handle: int, attr: int, attr_value: int | str) -> None:
    """Set an option: `ret = acl.mdl.set_config_opt(handle, acl.const.ACL_MDL_PATH_PTR, "net.onnx")`.

    attr_value   the path as a str, everything else as an int
    """
    held = process.handles.find(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")
    number = as_int(attr, "attr")
    if number not in _KNOWN:
        raise bad_argument(f"attr: expected a number of aclmdlConfigAttr up to {_KNOWN[-1]}, got {number}")
    value = as_text(attr_value, "attr_value") if number == const.ACL_MDL_PATH_PTR else as_int(attr_value, "attr_value")
    if number == const.ACL_MDL_PRIORITY_INT32 and value not in _PRIORITIES:
        raise bad_argument(f"attr_value: expected a priority from 0 to 7, got {value}")
    held.options[number] = value


@returns_value("aclmdlLoadWithConfig", 0)
def load_with_config(config_handle: int) -> int:
    """`model_id, ret = acl.mdl.load_with_config(handle)`.

    Memory for weights and work is the script's and is left alone; priorities change nothing.
    Returns: 100000 without a load type, or without what the type needs; 200006 for queues.
    """
    held = process.handles.find(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")
    kind = _option(held, "ACL_MDL_LOAD_TYPE_SIZET")
    if kind in _WITH_QUEUES:
        raise CallError(codes.FEATURE_UNSUPPORTED, "config_handle: expected a load type without queues of a device")
    if kind in _FROM_FILE:
        return load(str(_option(held, "ACL_MDL_PATH_PTR")), "aclmdlLoadWithConfig")
    if kind not in _FROM_MEM:
        raise bad_argument(f"config_handle: expected a load type from 1 to 6, got {kind}")
    address, size = _option(held, "ACL_MDL_MEM_ADDR_PTR"), _option(held, "ACL_MDL_MEM_SIZET")
    data = process.memory.array(as_int(address, "model"), as_int(size, "model_size"), "model")
    return load(data.tobytes(), "aclmdlLoadWithConfig")


def _option(held: ConfigHandle, name: str) -> int | str:
    value = held.options.get(getattr(const, name))
    if value is None:
        raise bad_argument(f"config_handle: expected the option {name}, got none. Call acl.mdl.set_config_opt for it")
    return value

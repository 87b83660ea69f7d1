"""Data buffers and datasets: which memory the inputs and outputs of a model are in."""

from __future__ import annotations

from dataclasses import dataclass, field

from msdump.frontends.acl.calls import as_int, bad_argument, returns_code, returns_plain, returns_value
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import TensorDesc
from msdump.frontends.acl.tensor_desc import find as find_desc


@dataclass(slots=True)
class DataBuffer:
    """An address and a size. The memory is the script's."""

    address: int
    size: int


@dataclass(slots=True)
class Dataset:
    """Handles of the buffers of all inputs, or all outputs, of a model, in its order.

    descs   index -> handle of the description that the script set for it, or the last run left
    """

    buffers: list[int] = field(default_factory=list)
    descs: dict[int, int] = field(default_factory=dict)


# -- data buffers: acl.* ----------------------------------------------------------------------------


@returns_plain("aclCreateDataBuffer", 0)
def create_data_buffer(data_addr: int, size: int) -> int:
    """`buffer = acl.create_data_buffer(data_addr, size)`. The memory is looked at when it is used."""
    return process.handles.add(_buffer(data_addr, size))


@returns_code("aclDestroyDataBuffer")
def destroy_data_buffer(data_buffer: int) -> None:
    process.handles.remove(as_int(data_buffer, "data_buffer"), DataBuffer, "data_buffer")


@returns_code("aclUpdateDataBuffer")
def update_data_buffer(data_buffer: int, new_data: int, new_size: int) -> None:
    buffer, new = find_buffer(data_buffer), _buffer(new_data, new_size)
    buffer.address, buffer.size = new.address, new.size


@returns_plain("aclGetDataBufferAddr", 0)
def get_data_buffer_addr(data_buffer: int) -> int:
    return find_buffer(data_buffer).address


@returns_plain("aclGetDataBufferSize", 0)
def get_data_buffer_size(data_buffer: int) -> int:
    return find_buffer(data_buffer).size


@returns_plain("aclGetDataBufferSizeV2", 0)
def get_data_buffer_size_v2(data_buffer: int) -> int:
    return find_buffer(data_buffer).size


def find_buffer(data_buffer: int) -> DataBuffer:
    """The buffer behind a handle.   Raises: CallError."""
    return process.handles.find(as_int(data_buffer, "data_buffer"), DataBuffer, "data_buffer")


def _buffer(address: int, size: int) -> DataBuffer:
    address, size = as_int(address, "data_addr"), as_int(size, "size")
    if address < 0 or size < 0:
        raise bad_argument(f"data_addr, size: expected numbers from 0, got {address}, {size}")
    return DataBuffer(address, size)


# -- datasets: acl.mdl.* ----------------------------------------------------------------------------


def create_dataset() -> int:
    """`dataset = acl.mdl.create_dataset()`."""
    return process.handles.add(Dataset())


@returns_code("aclmdlDestroyDataset")
def destroy_dataset(dataset: int) -> None:
    """Forget a dataset; its buffers stay, as they are the script's to destroy."""
    held = process.handles.remove(as_int(dataset, "dataset"), Dataset, "dataset")
    for handle in held.descs.values():
        process.handles.discard(handle)


@returns_value("aclmdlAddDatasetBuffer", 0)
def add_dataset_buffer(dataset: int, data_buffer: int) -> int:
    """`dataset, ret = acl.mdl.add_dataset_buffer(dataset, data_buffer)`."""
    held = find_dataset(dataset)
    find_buffer(data_buffer)
    held.buffers.append(as_int(data_buffer, "data_buffer"))
    return as_int(dataset, "dataset")


@returns_plain("aclmdlGetDatasetBuffer", 0)
def get_dataset_buffer(dataset: int, index: int) -> int:
    held = find_dataset(dataset)
    return held.buffers[_index(held, index)]


@returns_plain("aclmdlGetDatasetNumBuffers", 0)
def get_dataset_num_buffers(dataset: int) -> int:
    return len(find_dataset(dataset).buffers)


@returns_value("aclmdlSetDatasetTensorDesc", 0)
def set_dataset_tensor_desc(dataset: int, tensor_desc: int, index: int) -> int:
    """Say which shape an input of open sizes has: `dataset, ret = acl.mdl.set_dataset_tensor_desc(...)`.

    The description is copied: the script may destroy it immediately.
    """
    held, desc = find_dataset(dataset), find_desc(tensor_desc)
    set_desc(held, _index(held, index), TensorDesc(desc.dtype, desc.shape, desc.format, desc.name))
    return as_int(dataset, "dataset")


@returns_plain("aclmdlGetDatasetTensorDesc", 0)
def get_dataset_tensor_desc(dataset: int, index: int) -> int:
    """Description that was set, or for an output the one of the last run; 0 when there is none. It is not to be
    destroyed."""
    held = find_dataset(dataset)
    return held.descs.get(_index(held, index), 0)


def find_dataset(dataset: int, name: str = "dataset") -> Dataset:
    """The dataset behind a handle.   Raises: CallError."""
    return process.handles.find(as_int(dataset, name), Dataset, name)


def desc_of(dataset: Dataset, index: int) -> TensorDesc | None:
    """The description that is in force for one of its buffers."""
    handle = dataset.descs.get(index)
    return None if handle is None else process.handles.get(handle, TensorDesc)


def set_desc(dataset: Dataset, index: int, desc: TensorDesc) -> None:
    """Put a description in the place of an earlier one; the handle stays, as scripts keep it over many runs."""
    held = desc_of(dataset, index)
    if held is None:
        dataset.descs[index] = process.handles.add(desc)
    else:
        held.dtype, held.shape, held.format, held.name = desc.dtype, desc.shape, desc.format, desc.name


def _index(dataset: Dataset, index: int) -> int:
    position = as_int(index, "index")
    if not 0 <= position < len(dataset.buffers):
        raise bad_argument(f"index: expected a buffer of {len(dataset.buffers)}, got {position}")
    return position

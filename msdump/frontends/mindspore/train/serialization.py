"""Checkpoints: parameters <-> .ckpt files.   Source: the wire format of MindSpore's `Checkpoint` message."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.arrays import Array
from msdump.errors import FormatError, did_you_mean
from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.plain_files import plain_opener

# A bigger tensor is cut into several entries of one tag, as protobuf messages must stay below 2 GiB.
_SLICE_BYTES = 512 * 1024 * 1024
_BY_IR_NAME = {row.ir_name: row for row in dtypes.TABLE}


def _named_tensors(save_obj: Any) -> list[tuple[str, Tensor]]:
    """Raises: TypeError for anything but a Cell, a dict, or a list of {"name", "data"}."""
    if isinstance(save_obj, Cell):
        return [(parameter.name, parameter) for parameter in save_obj.parameters_dict().values()]
    if isinstance(save_obj, Mapping):
        return [(name, _as_tensor(name, data)) for name, data in save_obj.items()]
    if isinstance(save_obj, Iterable) and not isinstance(save_obj, str | bytes):
        items = list(save_obj)
        if all(isinstance(item, Parameter) for item in items):
            return [(item.name, item) for item in items]
        if all(isinstance(item, Mapping) and {"name", "data"} <= set(item) for item in items):
            return [(item["name"], _as_tensor(item["name"], item["data"])) for item in items]
    raise TypeError(
        f"For 'save_checkpoint', the argument 'save_obj' should be nn.Cell or list, but got {type(save_obj)}."
    )


def _as_tensor(name: str, data: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data
    if isinstance(data, bool | int | float | np.ndarray | np.generic):
        return Tensor(data)
    raise TypeError(f"save_checkpoint: expected a tensor or number for {name!r}, got {type(data).__name__}.")


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str,
    integrated_save: bool = True,
    async_save: bool = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    **options: Any,
) -> None:
    """Write all parameters to one file, which appears whole or not at all.

    Edges:   a name without ".ckpt" gets it; `append_dict` adds numbers and tensors.
    Raises:  TypeError for objects that hold no parameters, ValueError for an empty name or encryption.
    """
    from msdump._proto.checkpoint_pb2 import Checkpoint

    if not isinstance(ckpt_file_name, str) or not ckpt_file_name:
        raise ValueError(
            f"For 'save_checkpoint', the argument 'ckpt_file_name' must be a name, but got {ckpt_file_name!r}."
        )
    if enc_key is not None:
        raise ValueError("enc_key: expected None, got a key. Encrypted checkpoints are not supported.")
    path = os.path.realpath(ckpt_file_name if ckpt_file_name.endswith(".ckpt") else ckpt_file_name + ".ckpt")
    checkpoint = Checkpoint()
    tensors = _named_tensors(save_obj)
    tensors += [(name, _as_tensor(name, data)) for name, data in (append_dict or {}).items()]
    for name, tensor in tensors:
        _add_entries(checkpoint, name, tensor)
    sibling = f"{path}.{os.getpid()}.tmp"
    with open(sibling, "wb", opener=plain_opener(0o666)) as file:
        file.write(checkpoint.SerializeToString())
    os.replace(sibling, path)


def _add_entries(checkpoint: Any, name: str, tensor: Tensor) -> None:
    row = dtypes.dtype(tensor.type_.dtype)
    array = np.ascontiguousarray(tensor.array)
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    for start in range(0, max(len(content), 1), _SLICE_BYTES):
        entry = checkpoint.value.add()
        entry.tag = name
        # Source: MindSpore writes the dims of a 0-d tensor as one zero.
        entry.tensor.dims.extend(tensor.shape or (0,))
        entry.tensor.tensor_type = row.ir_name
        entry.tensor.tensor_content = content[start : start + _SLICE_BYTES]


def load_checkpoint(
    ckpt_file_name: str,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | list[str] | tuple[str, ...] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | list[str] | tuple[str, ...] | None = None,
    choice_func: Any = None,
    **options: Any,
) -> dict[str, Parameter]:
    """Parameters of a file by name; with `net` they are put into it, too.

    Raises: ValueError for a missing or empty file, a name that does not end in .ckpt, or when nothing is left after
    the filters; FormatError for a file that is no checkpoint.
    """
    if not isinstance(ckpt_file_name, str) or not ckpt_file_name.endswith(".ckpt"):
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file should end with '.ckpt', but got {ckpt_file_name!r}."
        )
    if not os.path.exists(ckpt_file_name):
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file: {ckpt_file_name} does not exist. Check the path."
        )
    if dec_key is not None:
        raise ValueError("dec_key: expected None, got a key. Encrypted checkpoints are not supported.")
    with open(ckpt_file_name, "rb") as file:
        content = file.read()
    if not content:
        raise ValueError(f"For 'load_checkpoint', the checkpoint file: {ckpt_file_name} is empty.")
    selected = {
        name: Parameter(Tensor.of_array(array), name)
        for name, array in _read(content, ckpt_file_name)
        if _is_chosen(name, filter_prefix, specify_prefix) and (choice_func is None or choice_func(name))
    }
    if not selected:
        raise ValueError(f"The loaded parameter dict is empty after filter or specify, in {ckpt_file_name}.")
    if net is not None:
        load_param_into_net(net, selected, strict_load)
    return selected


def _is_chosen(name: str, filtered: Any, specified: Any) -> bool:
    def begins(prefixes: Any) -> bool:
        return name.startswith((prefixes,) if isinstance(prefixes, str) else tuple(prefixes))

    return not (filtered and begins(filtered)) and (not specified or begins(specified))


def _read(content: bytes, path: str) -> list[tuple[str, Array]]:
    from google.protobuf.message import DecodeError

    from msdump._proto.checkpoint_pb2 import Checkpoint

    try:
        checkpoint = Checkpoint.FromString(content)
    except DecodeError as error:
        raise FormatError(f"{path}: expected a MindSpore checkpoint, got something else. Is the file whole?") from error
    parts: dict[str, list[bytes]] = {}
    heads: dict[str, tuple[tuple[int, ...], str]] = {}
    for entry in checkpoint.value:
        parts.setdefault(entry.tag, []).append(entry.tensor.tensor_content)
        heads.setdefault(entry.tag, (tuple(entry.tensor.dims), entry.tensor.tensor_type))
    return [(name, _array(path, name, b"".join(parts[name]), *head)) for name, head in heads.items()]


def _array(path: str, name: str, content: bytes, dims: tuple[int, ...], ir_name: str) -> Array:
    row = _BY_IR_NAME.get(ir_name)
    if row is None or row.numpy_type is None:
        raise FormatError(f"{path}: {name}: dtype {ir_name!r} is not in the table.")
    shape = () if dims == (0,) and len(content) == row.itemsize else dims
    expected = int(np.prod(shape, dtype=np.int64)) * row.itemsize
    if len(content) != expected:
        raise FormatError(f"{path}: {name}: expected {expected} bytes for {row.name}{list(shape)}, got {len(content)}.")
    return np.frombuffer(content, row.numpy.newbyteorder("<")).astype(row.numpy).reshape(shape)


def load_param_into_net(
    net: Cell, parameter_dict: Mapping[str, Parameter], strict_load: bool = False
) -> tuple[list[str], list[str]]:
    """Copy values by name. Returns the names of the net that were not loaded, and of the dict that were not used.

    Edges:   when nothing fits, names are matched without a prefix that all names of the net share with one more dot,
             unless strict_load.
    Raises:  TypeError for anything but a Cell and a dict of parameters; RuntimeError for another shape or dtype.
    """
    if not isinstance(net, Cell):
        raise TypeError(f"For 'load_param_into_net', the argument 'net' should be a Cell, but got {type(net)}.")
    if not isinstance(parameter_dict, Mapping):
        raise TypeError(
            "For 'load_param_into_net', the argument 'parameter_dict' should be a dict, "
            f"but got {type(parameter_dict)}."
        )
    missing: list[str] = []
    used: set[str] = set()
    ours = net.parameters_dict()
    theirs = dict(parameter_dict)
    if not strict_load and not set(ours) & set(theirs):
        theirs = _without_prefix(theirs, ours)
    for name, parameter in ours.items():
        new = theirs.get(name)
        if new is None:
            missing.append(name)
            continue
        if not isinstance(new, Parameter):
            raise TypeError(f"parameter_dict[{name!r}]: expected a Parameter, got {type(new).__name__}.")
        _check_fit(parameter, new)
        parameter.set_data(new)
        used.add(new.name)
    return missing, [name for name, new in parameter_dict.items() if new.name not in used]


def _without_prefix(theirs: dict[str, Parameter], ours: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Source: MindSpore drops the longest prefix that the net's names have and the file's have not."""
    by_tail: dict[str, Parameter] = {}
    for name in ours:
        tail = name.partition(".")[2]
        if tail in theirs:
            by_tail[name] = theirs[tail]
    return by_tail or theirs


def _check_fit(parameter: Parameter, new: Parameter) -> None:
    if parameter.shape != new.shape and not (parameter.size == new.size == 1):
        raise RuntimeError(
            f"For 'load_param_into_net', {new.name} in the argument 'net' should have the same shape as {new.name} in "
            f"the argument 'parameter_dict'. But got its shape {parameter.shape} in the argument 'net' and shape "
            f"{new.shape} in the argument 'parameter_dict'. Did the net change since the file was saved?"
        )


def export(net: Cell, *inputs: Any, file_name: str, file_format: str, **kwargs: Any) -> None:
    """Raises: ValueError: msdump runs and dumps models; it does not translate them."""
    hint = did_you_mean(file_format, ["AIR", "ONNX", "MINDIR"])
    raise ValueError(
        f"export: writing {file_format} files is not supported. Use save_checkpoint for weights. {hint}".rstrip()
    )


publish(__name__)

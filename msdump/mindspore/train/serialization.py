"""Checkpoints: parameters of a network <-> files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import did_you_mean
from msdump.formats.atomic import make_dirs, write_file
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.compiler import traced_program
from msdump.mindspore.mindir.reader import LoadedGraph, from_mindir
from msdump.mindspore.mindir.writer import to_mindir
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.train import checkpoint_files as files
from msdump.tensors.arrays import Array

_FORMATS = ("ckpt", "safetensors")
_MODEL_MODE = 0o600


def _named_values(save_obj: Any) -> list[tuple[str, Any]]:
    """Raises: TypeError for anything but a Cell, a dict, or a list of {"name", "data"}."""
    if isinstance(save_obj, Cell):
        return [(parameter.name, parameter) for parameter in save_obj.parameters_dict().values()]
    if isinstance(save_obj, Mapping):
        return list(save_obj.items())
    if isinstance(save_obj, Iterable) and not isinstance(save_obj, str | bytes):
        items = list(save_obj)
        if all(isinstance(item, Parameter) for item in items):
            return [(item.name, item) for item in items]
        if all(isinstance(item, Mapping) and {"name", "data"} <= set(item) for item in items):
            return [(item["name"], item["data"]) for item in items]
    raise TypeError(
        f"For 'save_checkpoint', the argument 'save_obj' should be nn.Cell or list, but got {type(save_obj)}."
    )


def _value_of(name: str, data: Any) -> Array | str:
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, str):
        return data
    if isinstance(data, bool | int | float | np.ndarray | np.generic):
        return Tensor(data).array
    raise TypeError(f"save_checkpoint: expected a tensor, number or text for {name!r}, got {type(data).__name__}.")


def save_checkpoint(
    save_obj: Any, ckpt_file_name: str, integrated_save: bool = True, async_save: bool | str = False,
    append_dict: Mapping[str, Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None, crc_check: bool = False, format: str = "ckpt", **options: Any,
) -> None:  # fmt: skip
    """Write all parameters to one file, which appears whole or not at all.

    append_dict   further numbers, tensors and, in a ckpt file, texts
    choice_func   name of a parameter -> is it written?
    async_save    write on a thread of its own; the values are those of now
    crc_check     append a checksum to a ckpt file, which `load_checkpoint` can compare
    Edges:   a name without the format's ending gets it.
    Raises:  TypeError for objects that hold no parameters, ValueError for an empty name, format or encryption.
    """
    if not isinstance(ckpt_file_name, str) or not ckpt_file_name:
        raise (ValueError if isinstance(ckpt_file_name, str) else TypeError)(
            f"For 'save_checkpoint', the argument 'ckpt_file_name' must be a name, but got {ckpt_file_name!r}."
        )
    _check_format("save_checkpoint", format)
    if enc_key is not None:
        raise ValueError("enc_key: expected None, got a key. Encrypted checkpoints are not supported.")
    if async_save not in (True, False, "thread", "process"):
        raise ValueError(f"For 'save_checkpoint', 'async_save' must be bool, 'thread' or 'process', got {async_save}.")
    ending = f".{format}"
    path = os.path.realpath(ckpt_file_name if ckpt_file_name.endswith(ending) else ckpt_file_name + ending)
    values = {
        name: _value_of(name, data)
        for name, data in _named_values(save_obj)
        if choice_func is None or choice_func(name)
    }
    values.update((name, _value_of(name, data)) for name, data in (append_dict or {}).items())
    content = files.to_safetensors(values) if format == "safetensors" else files.to_checkpoint(values, crc_check)
    if async_save:
        files.write_later(path, content)
    else:
        files.wait_for_saving()
        files.write(path, content)


def async_ckpt_thread_status() -> bool:
    """Is a checkpoint still being written in the background?"""
    return files.is_writing()


def _check_format(name: str, format: str) -> None:
    if format not in _FORMATS:
        raise ValueError(f"For '{name}', the format must be 'ckpt' or 'safetensors', but got {format}.")


def load_checkpoint(
    ckpt_file_name: str, net: Cell | None = None, strict_load: bool = False,
    filter_prefix: str | list[str] | tuple[str, ...] | None = None, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", specify_prefix: str | list[str] | tuple[str, ...] | None = None, choice_func: Any = None,
    crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt",
) -> dict[str, Any]:  # fmt: skip
    """Parameters of a file by name, and its texts; with `net` the parameters are put into it, too.

    Raises: ValueError for a missing or empty file, a name without the format's ending, a checksum that differs, or when
    nothing is left after the filters; FormatError for a file that is no checkpoint.
    """
    _check_format("load_checkpoint", format)
    if not isinstance(ckpt_file_name, str) or not ckpt_file_name.endswith(f".{format}"):
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file should end with '.{format}', but got {ckpt_file_name!r}."
        )
    files.wait_for_saving()
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
    if format == "safetensors":
        values = files.from_safetensors(content, ckpt_file_name)
    else:
        content = files.without_checksum(content, ckpt_file_name, crc_check)
        values = files.from_checkpoint(content, ckpt_file_name)
    selected = {
        name: value if isinstance(value, str) else Parameter(Tensor.of_array(value), name)
        for name, value in values.items()
        if _is_chosen(name, filter_prefix, specify_prefix) and (choice_func is None or choice_func(name))
    }
    if not selected:
        raise ValueError(f"The loaded parameter dict is empty after filter or specify, in {ckpt_file_name}.")
    if net is not None:
        load_param_into_net(net, _parameters(selected), strict_load)
    return selected


def _parameters(values: Mapping[str, Any]) -> dict[str, Parameter]:
    return {name: value for name, value in values.items() if not isinstance(value, str)}


def _is_chosen(name: str, filtered: Any, specified: Any) -> bool:
    def begins(prefixes: Any) -> bool:
        return name.startswith((prefixes,) if isinstance(prefixes, str) else tuple(prefixes))

    return not (filtered and begins(filtered)) and (not specified or begins(specified))


def load_param_into_net(
    net: Cell, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
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
    theirs = _parameters(parameter_dict)
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
    return missing, [name for name, new in _parameters(parameter_dict).items() if new.name not in used]


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


def _converter(source: str, target: str) -> Any:
    def convert(
        file_path: str, save_path: str | None = None, name_map: Mapping[str, str] | None = None,
        file_name_regex: str | None = None, processes_num: int = 1,
    ) -> None:  # fmt: skip
        start = Path(file_path)
        if not start.is_dir() and (start.suffix != f".{source}" or not start.is_file()):
            raise ValueError(f"file_path: expected a folder or a file that ends with .{source}, got {file_path!r}.")
        folder, found = (start, start.rglob(f"*.{source}")) if start.is_dir() else (start.parent, [start])
        for path in (each for each in found if re.search(file_name_regex or "", each.stem)):
            values = load_checkpoint(str(path), format=source)
            place = Path(save_path or folder) / path.relative_to(folder).with_suffix(f".{target}")
            make_dirs(place.parent)
            save_checkpoint({(name_map or {}).get(n, n): v for n, v in values.items()}, str(place), format=target)

    convert.__name__ = convert.__qualname__ = f"{source}_to_{target}"
    convert.__doc__ = f"""Write a {source} file, or all below a folder, as {target}, beside it or below `save_path`.

    name_map         other names for parameters
    file_name_regex  what the name of a file, without its ending, has in it
    Raises: ValueError for a path that is neither, FormatError for a file that is no checkpoint.
    """
    return convert


ckpt_to_safetensors, safetensors_to_ckpt = _converter(*_FORMATS), _converter(*reversed(_FORMATS))


def _path_of(file_name: Any, ending: str) -> Path:
    """Raises: TypeError for anything but text."""
    if not isinstance(file_name, str):
        raise TypeError(f"file_name: expected text, got {type(file_name).__name__}.")
    return Path(file_name if file_name.endswith(ending) else f"{file_name}{ending}")


def export(net: Any, *inputs: Any, file_name: str, file_format: str, **kwargs: Any) -> None:
    """Write a network with its weights as a MINDIR file, which `load` and MindSpore read.

    inputs  example tensors: their shapes and dtypes become those of the file
    Edges:  the network is written as it is, for training or evaluation; the ending .mindir is added.
    Raises: ValueError for another format, or an operator that such files have no place for here; TypeError for a net
            that is neither a cell nor a function.
    """
    if file_format != "MINDIR":
        hint = did_you_mean(str(file_format), ["MINDIR"])
        raise ValueError(f"export: expected file_format 'MINDIR', got {file_format!r}. {hint}".rstrip())
    if set(kwargs) - {"incremental"}:
        raise ValueError(f"export: expected no further arguments, got {', '.join(kwargs)}. Leave them out.")
    if not callable(net):
        raise TypeError(f"export: expected a Cell or a function, got {type(net).__name__}.")
    if any(not isinstance(each, Tensor) for each in inputs):
        raise ValueError("export: expected tensors as inputs. Give one example tensor for each argument.")
    cell = net if isinstance(net, Cell) else None
    graph, outputs = traced_program(net if cell is None else cell.construct, inputs, cell)
    name = type(net).__name__ if cell is not None else getattr(net, "__name__", "function")
    path = _path_of(file_name, ".mindir")
    make_dirs(path.parent)
    write_file(path, [to_mindir(graph, outputs, f"{name}_construct")], _MODEL_MODE, replace=True)


def load(file_name: str, **kwargs: Any) -> LoadedGraph:
    """The graph of a MINDIR file, for `nn.GraphCell`.

    Raises: ValueError for a missing file, or an operator that cannot run here; FormatError for another file.
    """
    if kwargs:
        raise ValueError(f"load: expected no further arguments, got {', '.join(kwargs)}. Encrypted files are not read.")
    if not isinstance(file_name, str) or not file_name.endswith(".mindir"):
        raise ValueError(f"For 'load', the MindIR file should end with mindir, but got {file_name!r}.")
    try:
        content = Path(file_name).read_bytes()
    except OSError as error:
        raise ValueError(f"For 'load', the MindIR file: {file_name} cannot be read: {error.strerror}.") from error
    return from_mindir(content, file_name)


def load_mindir(file_name: str) -> None:
    """Raises: ValueError: scripts do not get the messages of a file."""
    raise ValueError(f"load_mindir: {file_name}: the messages of a file are not given out. Use load and nn.GraphCell.")


publish(__name__)

"""Files of `torch.save` (`.pt`, `.pth`, `.ckpt`, `pytorch_model.bin`): a tensor, or dictionaries and lists of tensors.

They are read without PyTorch, and nothing that such a file says is run: it can do less than one that PyTorch reads with
`weights_only=True`. Tensors are found, and what only code could make is passed over.

Source: torch.serialization, format of the zip file; files that PyTorch 2.13 wrote.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Mapping
from typing import IO, Any, cast

from msdump.errors import FormatError
from msdump.formats.other_tools.members import MAX_PARTS, Member, Members
from msdump.formats.other_tools.torch_pickle import Foreign, Pairs, TensorView, read_pickle
from msdump.formats.zip_members import LimitedFile, small_member, stored_place
from msdump.storage.files import OpenFile, open_file
from msdump.tensors import dtypes

_DIRECTORY_BYTES = 16 << 20
_PICKLE_BYTES = 64 << 20
_ORDER_BYTES = 16
_MAX_DEPTH = 50
_FEW_VALUES = 1000
_MAX_KEY = 1000
_DATA = "data.pkl"


def read_torch_archive(path: str) -> Members:
    """Tensors of a file by their places in its dictionaries and lists, in the order of the file.

    Edges:  of two values of one key the later one counts; tensors that are no plain memory are problems.
    Raises: FormatError for what is no such file, or holds no tensor but code; OSError.
    """
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(cast("IO[bytes]", LimitedFile(file, _DIRECTORY_BYTES))) as archive:
                root = _root(archive)
                content = small_member(archive, file, f"{root}{_DATA}", _PICKLE_BYTES)
                value = read_pickle(content)
                order = f"{root}byteorder"
                if order in archive.NameToInfo and small_member(archive, file, order, _ORDER_BYTES) != b"little":
                    raise ValueError("the bytes of another machine's order")
                # A value takes a byte at least, and few values are there twice.
                views, foreign = _views(value, max(_FEW_VALUES, len(content)))
                return _located(path, file, archive, root, views, foreign)
        except (zipfile.BadZipFile, struct.error, EOFError, NotImplementedError) as error:
            raise FormatError(f"{path}: expected a file of torch.save, got a damaged one: {_shown(error)}.") from error
        except FormatError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise FormatError(f"{path}: expected a file of torch.save, got something else: {_shown(error)}.") from error


def _shown(error: Exception) -> str:
    return str(error)[:200]


def _root(archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.NameToInfo if name == _DATA or name.endswith(f"/{_DATA}")]
    if len(names) != 1:
        raise ValueError(f"{len(names)} members {_DATA}")
    return names[0].removesuffix(_DATA)


def _located(
    path: str,
    file: OpenFile,
    archive: zipfile.ZipFile,
    root: str,
    views: Mapping[str, TensorView],
    foreign: Mapping[str, str],
) -> Members:
    problems = [
        FormatError(f"{path}, {name[:200]}: expected a tensor, got an array of numpy. Save `torch.from_numpy(array)`.")
        for name, what in foreign.items()
        if what.startswith("numpy") and what.endswith("._reconstruct")
    ]
    if not views and foreign and not problems:
        code = next(iter(foreign.values()))[:160]
        raise FormatError(
            f"{path}: expected tensors in dictionaries and lists, got {code}, which only code of the file could make. "
            "It is never run: save `model.state_dict()`, or a dictionary of tensors."
        )
    places: dict[str, tuple[int, int]] = {}
    found: list[Member] = []
    for name, view in views.items():
        try:
            if view.problem:
                raise ValueError(view.problem)
            if view.key not in places:
                places[view.key] = stored_place(archive, file, f"{root}data/{view.key}")
            found.append(_member(name, view, *places[view.key]))
        except (ValueError, KeyError, EOFError, struct.error) as error:
            where = f"{path}, {name[:200]}" if name else path
            problems.append(FormatError(f"{where}: expected a tensor in plain memory, got {_shown(error)}."))
    return Members(tuple(found), tuple(problems))


def _views(value: Any, most: int) -> tuple[dict[str, TensorView], dict[str, str]]:
    """Tensors by name, in order, and what only code could make by name.

    most    values that are looked at, of which there may be endlessly many where values hold themselves
    """
    views: dict[str, TensorView] = {}
    foreign: dict[str, str] = {}
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    seen = 0
    while waiting:
        name, one, depth = waiting.pop()
        seen += 1
        if seen > most or depth > _MAX_DEPTH or len(waiting) > MAX_PARTS:
            raise ValueError(f"more than {most} values, or dictionaries that are {_MAX_DEPTH} deep")
        if isinstance(one, TensorView):
            views[name] = one
        elif isinstance(one, Foreign):
            foreign[name] = one.name
        elif isinstance(one, Pairs):
            waiting += reversed([(_joined(name, key), item, depth + 1) for key, item in one.items])
        elif isinstance(one, list | tuple):
            waiting += reversed([(_joined(name, index), item, depth + 1) for index, item in enumerate(one)])
    return views, foreign


def _joined(name: str, key: Any) -> str:
    text = key if isinstance(key, str) else str(key) if isinstance(key, int | float | bool | None) else "?"
    return f"{name}/{text[:_MAX_KEY]}" if name else text[:_MAX_KEY]


def _member(name: str, view: TensorView, place: int, size: int) -> Member:
    item = dtypes.dtype(view.dtype).itemsize
    count = math.prod(view.shape)
    reach = 1 + sum((length - 1) * step for length, step in zip(view.shape, view.strides, strict=True)) if count else 0
    start, needed = view.offset * item, reach * item
    if needed and start + needed > size:
        raise ValueError(f"a storage of {size} bytes, where {start + needed} are needed")
    dense = [math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    axes = zip(view.strides, dense, view.shape, strict=True)
    is_dense = not count or all(step == own or length == 1 for step, own, length in axes)
    if count * item > max(size, needed) * 64:
        raise ValueError(f"{count} elements in {needed} bytes")
    strides = None if is_dense else view.strides
    return Member(name, view.dtype, view.shape, place + start, needed, strides=strides, size_bytes=count * item)

"""Which files of other tools hold tensors, and which tensors: by the first bytes of a file, never by an option.

    .safetensors                         safetensors
    .pt .pth .ckpt .bin                  torch.save, where they begin as a zip archive
    .npz                                 np.savez
    .json                                Polygraphy, where it begins as its results or inputs do

Only files that the grammars of dump files do not know come here.
"""

from __future__ import annotations

import functools

from msdump.errors import FormatError
from msdump.formats.other_tools.members import Members
from msdump.storage.files import content_id, open_file

SAFETENSORS, TORCH, NPZ, POLYGRAPHY = ".safetensors", ".pt", ".npz", ".json"
_KIND_BY_SUFFIX = {
    ".safetensors": SAFETENSORS,
    ".pt": TORCH, ".pth": TORCH, ".ckpt": TORCH, ".bin": TORCH,
    ".npz": NPZ,
    ".json": POLYGRAPHY,
}  # fmt: skip
# Names that only such files have: one that begins otherwise is damaged, and no other tool's.
_OWN = frozenset((".pt", ".pth"))
_KEPT = 1 << 14  # files whose members are known while the process lasts
_ZIP, _PICKLE = b"PK\x03\x04", b"\x80"


def suffix_of(name: str) -> str:
    """The suffix of a name that may be one of these files, in small letters; "" for any other."""
    suffix = f".{name.rpartition('.')[2].lower()}"
    return suffix if suffix in _KIND_BY_SUFFIX and len(name) > len(suffix) else ""


def is_container(path: str, name: str) -> bool:
    """Whether a file is one of these; `name` is what it is called.   Raises: FormatError; OSError."""
    suffix = suffix_of(name)
    kind = _KIND_BY_SUFFIX.get(suffix)
    if kind is None:
        return False
    if kind == POLYGRAPHY:
        return _is_polygraphy(path, *content_id(path))
    if kind != TORCH or suffix in _OWN:
        return True
    with open_file(path) as file:
        return file.read(0, len(_ZIP)) == _ZIP


def members_of(path: str, name: str) -> Members:
    """Tensors of such a file. It is read once, as long as it does not change.

    Raises: FormatError for a damaged one, and for one that needs code to be run; OSError.
    """
    return _members(path, _KIND_BY_SUFFIX[suffix_of(name)], *content_id(path))


@functools.lru_cache(maxsize=_KEPT)
def _is_polygraphy(path: str, *_stamp: int) -> bool:
    from msdump.formats.other_tools.polygraphy import is_polygraphy

    return is_polygraphy(path)


@functools.lru_cache(maxsize=_KEPT)
def _members(path: str, kind: str, *_stamp: int) -> Members:
    # Each reader is imported where a folder has such a file: few folders have any.
    if kind == TORCH:
        from msdump.formats.other_tools.torch_archive import read_torch_archive as read

        _check_torch(path)
    elif kind == NPZ:
        from msdump.formats.other_tools.npz import read_npz as read
    elif kind == SAFETENSORS:
        from msdump.formats.other_tools.safetensors import read_safetensors as read
    else:
        from msdump.formats.other_tools.polygraphy import read_polygraphy as read
    return read(path)


def _check_torch(path: str) -> None:
    """Raises: FormatError for the form that PyTorch wrote before 1.6."""
    with open_file(path) as file:
        start = file.read(0, 1)
    if start == _PICKLE:
        raise FormatError(
            f"{path}: expected the zip file of torch.save, got a bare pickle, as PyTorch before 1.6 wrote it. "
            "Load it and save it again with PyTorch."
        )

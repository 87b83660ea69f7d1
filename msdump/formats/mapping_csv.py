"""mapping.csv: which short name stands for a file name that the filesystem would refuse as too long."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from msdump.errors import FormatError
from msdump.formats.append_file import append_text
from msdump.formats.atomic import Folder
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.plain_files import read_plain

_HASH_BYTES = 8


def mapped_name(original: str, suffix: str, is_taken: Callable[[str], bool]) -> str:
    """Decimal number that stands for a name: its 64-bit hash, or the next one that is free.

    Stable: the same name gives the same number while nobody else has it.
    Source: MindSpore dump guide, mapping.csv; the number itself is not specified.
    """
    digest = hashlib.blake2b(original.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).digest()
    number = int.from_bytes(digest, "big")
    while is_taken(f"{number}{suffix}"):
        number = (number + 1) % (1 << (8 * _HASH_BYTES))
    return f"{number}{suffix}"


def append_mapping(folder: Folder, mapped: str, original: str, mode: int = 0o400) -> None:
    """Add the line `{mapped},{original}` to the folder's mapping.csv.   Raises: WriteError."""
    append_text(os.path.join(folder.path, MAPPING_FILE), f"{mapped},{original}\n", mode, folder)


def read_mapping(path: str | os.PathLike[str]) -> dict[str, str]:
    """Original name by mapped name; a later line wins. A last line without its end is a cut one and left out.

    Raises: FormatError with the line's number; OSError when the file cannot be opened.
    """
    lines = read_plain(path).split(b"\n")[:-1]
    original_by_mapped = {}
    for number, line in enumerate(lines, 1):
        try:
            mapped, comma, original = line.decode().partition(",")
        except UnicodeDecodeError as error:
            raise FormatError(f"{os.fspath(path)}, line {number}: expected UTF-8 text, got {line[:80]!r}.") from error
        if not (mapped and comma and original) or "/" in mapped or "\0" in mapped:
            raise FormatError(f"{os.fspath(path)}, line {number}: expected `mapped,original`, got {line[:80]!r}.")
        original_by_mapped[mapped] = original
    return original_by_mapped

"""Small files beside the tensors: the csv files of execution_order, mapping.csv, .dump_metadata, the JSON for ACL."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.errors import FormatError, WriteError, value_without_secrets
from msdump.formats.append_file import append_text
from msdump.formats.atomic import Folder, make_dirs, write_file
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.process.command import Command, command_as_value, command_from_value
from msdump.storage.files import exists, read_file
from msdump.storage.plain import unreadable

ORDER_TITLE = "NodeExecutionOrder-FullNameWithScope"
_HASH_BYTES = 8
CONFIG_COPY_FILE = "data_dump.json"
CONFIG_FILE = "config.json"
COMMAND_FILE = "command.json"
LOST_FILE = "lost.json"
_MODE = 0o400
# A step that never comes: ACL is started before the first step that is asked for.
_NEVER = "2147483647"


# -- execution_order: which operators run in which order, and in which iterations a graph ran --------------------------


def write_order(path: str | os.PathLike[str], text: str) -> None:
    """Write the order of one graph over that of an earlier run.   Raises: WriteError."""
    make_dirs(os.path.dirname(os.fspath(path)) or ".")
    write_file(path, [text.encode()], _MODE, replace=True)


def append_history(path: str | os.PathLike[str], iteration: int) -> None:
    """Note that the graph ran in a dumped iteration.   Raises: WriteError."""
    make_dirs(os.path.dirname(os.fspath(path)) or ".")
    append_text(path, f"{iteration}\n", _MODE)


def read_order(path: str | os.PathLike[str]) -> list[str]:
    """Full names of operators in launch order.

    Raises: FormatError; OSError when the file cannot be opened.
    """
    lines = _read_lines(path)
    if not lines or lines[0] != ORDER_TITLE:
        got = lines[0][:80] if lines else "nothing"
        raise FormatError(f"{os.fspath(path)}, line 1: expected {ORDER_TITLE}, got {got}.")
    for number, name in enumerate(lines[1:], 2):
        if not name:
            raise FormatError(f"{os.fspath(path)}, line {number}: expected the full name of an operator, got nothing.")
    return lines[1:]


def read_history(path: str | os.PathLike[str]) -> list[int]:
    """Dumped iterations in the order in which they ran; other columns of later versions are left out.

    Raises: FormatError with the line's number; OSError when the file cannot be opened.
    """
    iterations = []
    for number, line in enumerate(_read_lines(path), 1):
        first = line.split(",", 1)[0].strip()
        if not (first.isascii() and first.isdigit() and len(first) <= 20):
            raise FormatError(f"{os.fspath(path)}, line {number}: expected an iteration number, got {line[:80]!r}.")
        iterations.append(int(first))
    return iterations


def _read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Whole lines; a last line without its end was cut and is left out."""
    data = read_file(path)
    try:
        return data.decode().replace("\r\n", "\n").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise FormatError(f"{os.fspath(path)}: expected UTF-8 text, got byte {data[error.start]}.") from error


# -- mapping.csv: which short name stands for a file name that the filesystem would refuse as too long -----------------


def mapped_name(original: str, suffix: str, is_taken: Callable[[str], bool]) -> str:
    """Decimal number that stands for a name: its 64-bit hash, or the next one that is free.

    Stable: the same name gives the same number while no other name has it.
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
    lines = read_file(path).split(b"\n")[:-1]
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


# -- .dump_metadata: what the user asked for and for which device ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DumpMetadata:
    """Content of .dump_metadata. Without a config.json the target is "Ascend", as MindSpore's readers take it."""

    config_text: bytes
    device_target: str = "Ascend"
    ms_version: str | None = None


def write_metadata(
    directory: str | os.PathLike[str],
    config_text: bytes,
    device_target: str,
    ms_version: str,
    kernels: str = "",
) -> bool:
    """Write both files; False when an earlier run has left them, which are then kept as they are.

    kernels   the library that was chosen to compute operators; "": none was, and MindSpore's file has no such key

    Raises: WriteError.
    Source: MindSpore 2.0.0: a byte copy of the user's JSON, and a compact config.json without a line end.
    """
    facts = {"device_target": device_target, "ms_version": ms_version, **({"kernels": kernels} if kernels else {})}
    config = json.dumps(facts, separators=(",", ":"))
    return _write_new(directory, {CONFIG_COPY_FILE: config_text, CONFIG_FILE: config.encode()})


def _write_new(directory: str | os.PathLike[str], content_by_name: Mapping[str, bytes]) -> bool:
    """Write files that stay as the first run has written them; False where one was there.   Raises: WriteError."""
    make_dirs(directory)
    is_new = True
    with Folder(directory) as folder:
        for name, content in content_by_name.items():
            if folder.has(name):
                is_new = False
                continue
            try:
                folder.write(name, [content], _MODE)
            except WriteError:
                if not folder.has(name):  # another process of the same rank was faster
                    raise
                is_new = False
    return is_new


def read_metadata(directory: str | os.PathLike[str]) -> DumpMetadata:
    """Both files.   Raises: FormatError for a damaged config.json; OSError when the user's JSON is not there."""
    config_text = read_file(Path(directory) / CONFIG_COPY_FILE)
    path = Path(directory) / CONFIG_FILE
    if not exists(path):
        return DumpMetadata(config_text)
    try:
        config = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON, got something else: {error}.") from error
    if not isinstance(config, dict) or not isinstance(config.get("device_target"), str):
        raise FormatError(f'{path}: expected an object with "device_target", got {str(config)[:120]}.')
    version = config.get("ms_version")
    return DumpMetadata(config_text, config["device_target"], None if version is None else str(version))


def write_command(directory: str | os.PathLike[str], command: Command) -> None:
    """Write how the dump was made, without the passwords of addresses; an earlier run's file stays.

    Edges:  nothing where nothing is known of it. MindSpore's readers open the two other files by their names.
    Raises: WriteError.
    """
    if command.target or command.is_compiled_only:
        value = value_without_secrets(command_as_value(command))
        _write_new(directory, {COMMAND_FILE: json.dumps(value, indent=1).encode()})


def read_command(directory: str | os.PathLike[str]) -> Command | None:
    """How the dump was made; None where no file of this version tells it, as in dumps of MindSpore.

    Edges: a damaged file is as none: nothing but hints for people comes from it.
    """
    try:
        return command_from_value(json.loads(read_file(Path(directory) / COMMAND_FILE)))
    except (OSError, FormatError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Lost:
    """What a dump that is not complete lacks.

    tensors  that were chosen and are not on the disk, of the step in which the dump ended or was interrupted
    reason   what went wrong
    """

    tensors: int
    reason: str


_MOST_LOST = 1 << 53
_LONGEST_REASON = 2000


def write_lost(directory: str | os.PathLike[str], lost: Lost) -> None:
    """Write that the dump of a rank is not complete, over what an earlier run said of itself.   Raises: WriteError."""
    make_dirs(directory)
    value = {"version": 1, "tensors": lost.tensors, "reason": lost.reason[:_LONGEST_REASON]}
    write_file(Path(directory) / LOST_FILE, [(json.dumps(value, indent=1) + "\n").encode()], _MODE, replace=True)


def read_lost(path: str | os.PathLike[str]) -> Lost:
    """Raises: FormatError."""
    try:
        value = json.loads(read_file(path))
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{os.fspath(path)}: expected JSON, got something else: {error}.") from error
    match value:
        case {"version": 1, "tensors": int(tensors), "reason": str(reason)} if 0 <= tensors <= _MOST_LOST:
            return Lost(tensors, reason[:_LONGEST_REASON])
    raise FormatError(f"{os.fspath(path)}: expected version 1 with tensors and a reason, got {str(value)[:120]}.")


# -- the JSON that MindSpore hands to ACL before each step; `MS_ACL_DUMP_CFG_PATH` -------------------------------------


def acl_json_path(root: Path, device_id: int) -> Path:
    return root / f"acl_dump_{device_id}.json"


def initial_acl_json(root: Path) -> str:
    """Text of the file before any step."""
    return _acl_json({"dump": {"dump_path": str(root), "dump_step": _NEVER}})


def step_acl_json(folder: Path, dump_mode: str, layers: Sequence[str], op_debug_mode: int) -> str:
    """Text of the file for one step.

    folder     of the step, `{path}/{step_id}`
    dump_mode  "all", "input" or "output"
    layers     names that `kernels` lists; none: every operator
    Edges:     overflow detection (3) and the exception dump (4) have keys of their own, and stand alone: ACL refuses
               a scene beside `dump_op_switch`.
    """
    if op_debug_mode == 3:
        return _acl_json({"dump": {"dump_path": str(folder), "dump_debug": "on"}})
    if op_debug_mode == 4:
        return _acl_json({"dump": {"dump_path": str(folder), "dump_scene": "lite_exception"}})
    dump: dict[str, Any] = {
        "dump_list": [{"layer": list(layers)}] if layers else [],
        "dump_mode": dump_mode,
        "dump_op_switch": "on",
        "dump_path": str(folder),
    }
    return _acl_json({"dump": dump})


def write_acl_json(path: Path, text: str) -> None:
    """Raises: WriteError."""
    make_dirs(path.parent)
    write_file(path, [text.encode()], _MODE, replace=True)


def _acl_json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))

"""A JSON file as text -> values, as strictly as MindSpore reads it, with errors that show the line."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from msdump.errors import ConfigError, FormatError, did_you_mean
from msdump.storage.plain import CONFIG_BYTES, read_plain

_LARGEST_UNSIGNED = 2**64 - 1
_SHOWN_CHARACTERS = 80
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


Stamp = tuple[int, ...]


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """What changes when a file is written, replaced, or reached by another link: one `stat`; None: it is not there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


@dataclass(frozen=True)
class JsonFile:
    """One file that was read: real path, its bytes, what they mean, and keys that came twice in one object.

    given   absolute path as the user wrote it, which a link may lead elsewhere later; None: it came from no file
    stamp   of the file just before it was read, see `stamp_of`
    """

    path: Path
    text: bytes
    value: Any
    duplicate_keys: tuple[str, ...] = ()
    given: Path | None = field(default=None, compare=False)
    stamp: Stamp | None = field(default=None, compare=False)


def read_json_file(path: str | os.PathLike[str]) -> JsonFile:
    """Read a configuration file.

    Raises: ConfigError: no such file, a name that does not end in .json, a file that cannot be read, is no plain file
            or has more than 16 MiB, no JSON.
    Source: MindSpore; the first lines are its own, in its order.
    """
    given = Path(os.path.abspath(path))
    stamp = stamp_of(given)
    real_path = _real_path(path)
    _check_suffix(real_path)
    try:
        text = read_plain(real_path, CONFIG_BYTES)
    except OSError as error:
        raise ConfigError(
            f"Dump file:{real_path} open failed. Errno:{error.errno}\n"
            f"{real_path}: expected a file that can be read, got: {error.strerror}."
        ) from error
    except FormatError as error:
        number = errno.EISDIR if real_path.is_dir() else errno.EINVAL
        raise ConfigError(f"Dump file:{real_path} open failed. Errno:{number}\n{error}") from error
    value, duplicate_keys = parse_json(text, real_path)
    return JsonFile(real_path, text, value, duplicate_keys, given, stamp)


def mapping_as_file(config: Mapping[str, Any], name: str) -> JsonFile:
    """A mapping as the JSON file that would hold it.   name: for messages

    Raises: ConfigError for values that JSON cannot write, and as `parse_json`.
    """
    try:
        text = json.dumps(dict(config)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        advice = "Use dictionaries, lists, texts, numbers, True, False and None."
        raise ConfigError(f"{name}: expected values that a JSON file can hold, got: {error}. {advice}") from error
    return JsonFile(Path(name), text, *parse_json(text, Path(name)))


def parse_json(text: bytes, path: Path) -> tuple[Any, tuple[str, ...]]:
    """Values of a JSON text, and keys that came twice in one object (the last one counts).

    Raises: ConfigError with line, column and the line itself; comments, trailing commas, NaN and the like are
    errors, as they are for MindSpore.
    """
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8-sig")
        _refuse_text(before, len(before), f"{error.reason} (not UTF-8)", path, "Save the file as UTF-8.")
    duplicate_keys: list[str] = []

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            duplicate_keys.extend(key for key in content if counts[key] > 1)
        return content

    decoder = json.JSONDecoder(
        object_pairs_hook=as_object, parse_int=_number, parse_float=_number, parse_constant=_refuse_constant
    )
    try:
        value = decoder.decode(decoded)
        _check_surrogates(decoded, value, path)
        return value, tuple(duplicate_keys)
    except json.JSONDecodeError as error:
        _refuse_text(decoded, error.pos, error.msg, path)
    except _ConstantFoundError as error:
        _refuse_text(decoded, max(decoded.find(str(error)), 0), f"{error} is no JSON value", path)
    except _NumberOverflowError as error:
        raise ConfigError(
            f"Parse dump json failed, error:[json.exception.out_of_range.406] number overflow parsing '{error}'\n"
            f"{path}: expected numbers that a double can hold, got {error}."
        ) from None
    except RecursionError:
        _refuse_text(decoded, 0, "lists and objects are nested too deeply", path)


def shown(value: Any) -> str:
    """A value as its JSON text, cut when it is long, for messages."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def expanded_advice(path: str) -> str:
    """What to write in place of a path that a shell would change; "" for any other path."""
    expanded = os.path.expanduser(os.path.expandvars(path))
    if expanded == path:
        return ""
    return f'"~" and variables are not replaced here; write "{os.path.abspath(expanded)}".'


def json_type(value: Any) -> str:
    """Name of a value's JSON type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, dict) else "array"


class _ConstantFoundError(Exception):
    """NaN or Infinity, which Python's parser takes and JSON does not have."""


class _NumberOverflowError(Exception):
    """A number beyond double."""


def _refuse_constant(text: str) -> NoReturn:
    raise _ConstantFoundError(text)


def _number(text: str) -> int | float:
    """Integers up to 64 bits stay integers, larger ones become doubles.   Source: MindSpore's parser."""
    if text.lstrip("-").isdigit() and len(text) <= 20:
        value = int(text)
        if value <= _LARGEST_UNSIGNED:
            return value
    as_float = float(text)
    if math.isinf(as_float):
        raise _NumberOverflowError(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
    return as_float


def _check_surrogates(text: str, value: Any, path: Path) -> None:
    """Refuse half a character, which Python's parser takes and which is no Unicode."""
    escape = _SURROGATE.search(text)
    if escape is None:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        _refuse_text(text, escape.start(), "a surrogate without its other half", path)


def _real_path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        advice = _neighbours(Path(path))
        raise ConfigError(
            f"Get dump config file failed\n{path}: expected a JSON file, got: {reason}. {advice}".rstrip()
        ) from error


def _neighbours(path: Path) -> str:
    """The nearest file name in the same folder."""
    try:
        names = sorted(os.listdir(path.parent))
    except (OSError, ValueError):
        return f"There is no folder {path.parent} that can be read; give the absolute path of the file."
    return did_you_mean(path.name, names)


def _check_suffix(path: Path) -> None:
    stem, dot, suffix = path.name.rpartition(".")
    if not dot:
        raise ConfigError(f"Invalid json file name:{path}\n{path}: expected a name that ends in .json. Rename it.")
    if suffix != "json":
        raise ConfigError(
            f"[DataDump] dump config file suffix only supports json! But got:.{suffix}\n"
            f'{path}: expected a name that ends in .json, got ".{suffix}". Rename the file to {stem}.json.'
        )


def _refuse_text(text: str, position: int, reason: str, path: Path, fix: str | None = None) -> NoReturn:
    """Raise with the offending line and a mark under the column; without a `fix` the text tells one."""
    line_number = text.count("\n", 0, position) + 1
    line_begin = text.rfind("\n", 0, position) + 1
    column = position - line_begin + 1
    line = text[line_begin:].partition("\n")[0].rstrip("\r")
    cut = max(0, column - _SHOWN_CHARACTERS)
    mark = " " * (column - 1 - cut) + "^"
    fix = _text_advice(text, position) if fix is None else fix
    advice = f"expected JSON, got what is marked below. {fix}".rstrip()
    raise ConfigError(
        f"Parse dump json failed, error:[json.exception.parse_error.101] parse error at line {line_number}, "
        f"column {column}: {reason}\n{path}:{line_number}:{column}: {advice}\n"
        f"    {line[cut : cut + 2 * _SHOWN_CHARACTERS]}\n    {mark}"
    )


def _text_advice(text: str, position: int) -> str:
    """How to fix the usual mistakes; empty for the others."""
    rest, before = text[position:].lstrip(), text[:position].rstrip()
    if not text.strip():
        return "The file is empty."
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments: take it out."
    if rest.startswith("'"):
        return "JSON strings stand in double quotes, not in single ones."
    # Python 3.13 marks the comma, older ones what comes after it.
    is_after_comma = before.endswith(",") or rest.startswith(",")
    if is_after_comma and rest.lstrip(", \n\r\t")[:1] in ("}", "]"):
        return "Take out the comma after the last element."
    if rest.startswith(("True", "False", "None")):
        return "JSON writes true, false and null."
    if rest.startswith('"') and before.endswith(('"', "]", "}", "e", *"0123456789")):
        return "A comma is missing before it."
    return ""

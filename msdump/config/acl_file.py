"""acl.json as a file: what ACL checks before it looks at any key, in its order; and AclConfigError for all refusals.

ConfigError
+- AclConfigError   with the two numbers that ACL gives for it, the aclError and the EP code
"""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from msdump.config.json_file import JsonFile, parse_json, shown, stamp_of
from msdump.errors import ConfigError, FormatError, refused
from msdump.process import dry_run
from msdump.storage.plain import read_plain

INVALID_PARAM = 100000
INVALID_FILE = 100003
PARSE_FILE = 100006
INVALID_DUMP_CONFIG = 100009

CONTENT, CHOICE, VALUE, SYNTAX, CONFLICT, NULL = "EP0001", "EP0002", "EP0003", "EP0004", "EP0005", "EP0007"
LARGEST_FILE = 10 << 20
DEEPEST_NESTING = 10
_ALL_BYTES = bytes(range(256))


class AclConfigError(ConfigError):
    """A configuration that ACL refuses.

    acl_error  what `aclInit` and `aclmdlSetDump` return for it
    ep_code    of the line that they log
    item       path of the configuration item, such as dump_list[0].layer[1]; "" when it is the whole file
    """

    def __init__(
        self, message: str, acl_error: int = INVALID_DUMP_CONFIG, ep_code: str = CONTENT, item: str = ""
    ) -> None:
        super().__init__(message)
        self.acl_error = acl_error
        self.ep_code = ep_code
        self.item = item

    def with_line(self, line: str) -> AclConfigError:
        """The same refusal with one line more."""
        return AclConfigError(f"{self}\n{line}", self.acl_error, self.ep_code, self.item)


def item_refusal(ep_code: str, item: str, reason: str, expected: str, value: Any, fix: str = "") -> AclConfigError:
    """Error for one item: the code with its reason, then where, what came and how to fix it."""
    text = refused(f"{ep_code}: {item}: {reason}", item, expected, shown(value), fix)
    return AclConfigError(text, INVALID_DUMP_CONFIG, ep_code, item)


def missing_item(item: str, expected: str, fix: str = "") -> AclConfigError:
    """Error for an item that must be there."""
    text = refused(f"{CONTENT}: {item}: the item is not found", item, expected, "no such key", fix)
    return AclConfigError(text, INVALID_DUMP_CONFIG, CONTENT, item)


def conflict(reason: str, item: str, expected: str, value: Any, fix: str) -> AclConfigError:
    """Error for an item that cannot stand beside another one."""
    text = refused(f"{CONFLICT}: {reason}", item, expected, shown(value), fix)
    return AclConfigError(text, INVALID_DUMP_CONFIG, CONFLICT, item)


def file_refusal(acl_error: int, path: object, reason: str, expected: str, got: str, fix: str = "") -> AclConfigError:
    """Error for the file itself."""
    return AclConfigError(refused(f"{SYNTAX}: {path}: {reason}", str(path), expected, got, fix), acl_error, SYNTAX)


def read_acl_file(path: str | os.PathLike[str] | None) -> JsonFile:
    """Read an acl.json.

    Edges:  0 bytes are an empty object. The name may end in anything.
    Raises: AclConfigError: None 100000; no regular file of at most 10 MiB 100003; nested too deeply 100006;
            no JSON 100009.
    Source: ACL, `aclmdlSetDump`; the nesting is counted on the raw text, strings included.
    """
    path = dry_run.acl_json or path
    if path is None:
        raise AclConfigError(
            f"{NULL}: dumpCfgPath: the argument is a null pointer\n"
            "dumpCfgPath: expected the path of an acl.json, got None. Give the path of the file.",
            INVALID_PARAM,
            NULL,
        )
    given = Path(os.path.abspath(path))
    stamp = stamp_of(given)
    real_path = _real_path(path)
    try:
        _check_size(_size(real_path), real_path)
        text = read_plain(real_path, LARGEST_FILE)
    except (OSError, FormatError) as error:
        reason = str((isinstance(error, OSError) and error.strerror) or error)
        raise file_refusal(
            INVALID_FILE, real_path, "the file cannot be read", "a file that can be read", reason
        ) from error
    return replace(acl_file(text, real_path), given=given, stamp=stamp)


def acl_file(text: bytes, path: Path) -> JsonFile:
    """An acl.json by its content, with the edges and errors of `read_acl_file`."""
    _check_size(len(text), path)
    check_nesting(text, path)
    if not text:
        return JsonFile(path, text, {})
    try:
        return JsonFile(path, text, *parse_json(text, path))
    except ConfigError as error:
        # The first line is MindSpore's; what follows is line, column and advice.
        advice = str(error).partition("\n")[2]
        raise AclConfigError(
            f"{SYNTAX}: {path}: the file cannot be parsed\n{advice}", INVALID_DUMP_CONFIG, SYNTAX
        ) from None


def _check_size(size: int, path: Path) -> None:
    if size > LARGEST_FILE:
        limit = f"at most {LARGEST_FILE} bytes"
        raise file_refusal(INVALID_FILE, path, "the file is too large", limit, f"{size} bytes")


def check_nesting(text: bytes, path: Path) -> None:
    """Refuse more than 10 open braces, or more than 10 open square brackets.   Raises: AclConfigError 100006."""
    for name, opening, closing in (("objects", b"{", b"}"), ("arrays", b"[", b"]")):
        depth = 0
        for byte in text.translate(None, _ALL_BYTES.translate(None, opening + closing)):
            depth += 1 if byte == opening[0] else -1
            if depth > DEEPEST_NESTING:
                raise file_refusal(
                    PARSE_FILE,
                    path,
                    f"{name} are nested too deeply",
                    f"{name} at most {DEEPEST_NESTING} deep",
                    f"a {opening.decode()} inside {DEEPEST_NESTING} others",
                    "Brackets inside strings count too.",
                )


def _real_path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise file_refusal(
            INVALID_FILE,
            f"dumpCfgPath {path!r}" if not os.fspath(path) else path,
            "the path cannot be resolved",
            "an acl.json",
            str(reason),
            "Give the path of a file that exists.",
        ) from error


def _size(path: Path) -> int:
    """Size of a regular file.   Raises: AclConfigError for anything else, OSError."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "something that is no regular file"
        raise file_refusal(INVALID_FILE, path, "the path is no regular file", "an acl.json", kind)
    return status.st_size

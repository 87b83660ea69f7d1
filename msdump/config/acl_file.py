"""acl.json as a file: what ACL checks before it looks at any key, in its order."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msdump import measuring
from msdump.config.acl_error import (
    INVALID_DUMP_CONFIG,
    INVALID_FILE,
    INVALID_PARAM,
    NULL,
    PARSE_FILE,
    SYNTAX,
    AclConfigError,
    file_refusal,
)
from msdump.config.json_file import JsonFile, parse_json
from msdump.errors import ConfigError

LARGEST_FILE = 10 << 20
DEEPEST_NESTING = 10
_ALL_BYTES = bytes(range(256))


def read_acl_file(path: str | os.PathLike[str] | None) -> JsonFile:
    """Read an acl.json.

    Edges:  0 bytes are an empty object. The name may end in anything.
    Raises: AclConfigError: None 100000; no regular file of at most 10 MiB 100003; nested too deeply 100006;
            no JSON 100009.
    Source: ACL, `aclmdlSetDump`; the nesting is counted on the raw text, strings included.
    """
    path = measuring.acl_json or path
    if path is None:
        raise AclConfigError(
            f"{NULL}: dumpCfgPath: the argument is a null pointer\n"
            "dumpCfgPath: expected the path of an acl.json, got None. Give the path of the file.",
            INVALID_PARAM,
            NULL,
        )
    real_path = _real_path(path)
    try:
        size = _size(real_path)
        if size > LARGEST_FILE:
            raise file_refusal(
                INVALID_FILE,
                real_path,
                "the file is too large",
                f"at most {LARGEST_FILE} bytes",
                f"{size} bytes",
            )
        text = real_path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise file_refusal(
            INVALID_FILE, real_path, "the file cannot be read", "a file that can be read", reason
        ) from error
    check_nesting(text, real_path)
    if not text:
        return JsonFile(real_path, text, {})
    try:
        value, duplicate_keys = parse_json(text, real_path)
    except ConfigError as error:
        # The first line is MindSpore's; what follows is line, column and advice.
        advice = str(error).partition("\n")[2]
        raise AclConfigError(
            f"{SYNTAX}: {real_path}: the file cannot be parsed\n{advice}", INVALID_DUMP_CONFIG, SYNTAX
        ) from None
    return JsonFile(real_path, text, value, duplicate_keys)


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

"""Every exception that msdump raises, and texts without the credentials of the addresses in them.

MsdumpError
+- ConfigError (RuntimeError, ValueError)   what the user asked for cannot be done
|  +- NothingFoundError                     ... because nothing there is what was named or selected
|  +- FolderError (WriteError)              ... because no dump can begin in the folder that was named
+- DtypeError (TypeError)                   a dtype that is not supported here
+- LayoutError (ValueError)                 a device format that does not fit the shape
+- GraphError (RuntimeError)                the program is wrong
|  +- OperandValueError (ValueError)        ... operands of shapes or values that an operator cannot take
|  +- OperandTypeError (TypeError)          ... operands of dtypes that an operator cannot take
|  +- TracedValueError                      ... it asks for a value that only a run knows
|  +- UncompilableError                     ... no graph can hold it
|  +- KernelNotFoundError                   no kernel is registered for this operator
|  +- ExecutionError                        an operator failed while it ran
+- DumpError (RuntimeError)                 a dump is incomplete
|  +- WriteError                            a file could not be written
+- FormatError (ValueError)                 a file is not what its name says
   +- TruncatedFileError                    ... because it ends too early
   +- UnknownDtypeError                     ... because its dtype is not in the table
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

HIDDEN_SECRET = "***"
# A scheme has two letters at least: one is a drive. Paths of the standard library's have one slash less.
_ADDRESS = re.compile(r"(?<![\w+.-])([A-Za-z][A-Za-z0-9+.-]+:)(/{1,2})([^\s\"'<>|`]+)")
_QUERY = re.compile("[?#]")
_PORT = re.compile(r"\d{1,5}")
# Azure: the container and the account, not a user.
_CONTAINER_SCHEMES = ("abfs:", "abfss:", "wasb:", "wasbs:")
_WEB_SCHEMES = ("http:", "https:")


class MsdumpError(Exception):
    """Base of all errors that msdump raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(arg) if isinstance(arg, str) else arg for arg in args))


class ConfigError(MsdumpError, RuntimeError, ValueError):
    """A configuration that cannot be honoured.

    The first line is the original tool's, word for word where it is known; the lines after it say
    where and how to fix it.   Source: MindSpore raises RuntimeError for these.
    """


class NothingFoundError(ConfigError):
    """Nothing that is there is what the user named or selected."""


class DtypeError(MsdumpError, TypeError):
    """A dtype that is not in the table, or not supported here."""


class LayoutError(MsdumpError, ValueError):
    """A device format whose index rule does not fit the shape or dtype."""


class GraphError(MsdumpError, RuntimeError):
    """A program that is not well formed."""


class OperandValueError(GraphError, ValueError):
    """Operands whose shape, number or value an operator cannot take.   Source: MindSpore raises ValueError."""


class OperandTypeError(GraphError, TypeError):
    """Operands whose dtype an operator cannot take.   Source: MindSpore raises TypeError."""


class TracedValueError(GraphError):
    """Python asks for the value of a tensor that is known only when the graph runs."""


class UncompilableError(GraphError):
    """A program that no graph can hold: what it computes next depends on values in a way that only Python can follow.

    cells  those that took part until that was clear, with the flags that they had
    """

    cells: tuple[Any, ...] = ()


class BranchTypeError(MsdumpError, TypeError):
    """Branches, or runs of a loop, that give different kinds of things."""


class BranchShapeError(MsdumpError, ValueError):
    """Branches, or runs of a loop, that give tensors of different shapes; a condition of several elements."""


class KernelNotFoundError(GraphError):
    """An operator without a definition or without a kernel."""


class ExecutionError(GraphError):
    """An operator that failed while it ran.   `operator`: its name; "" where it is not known."""

    operator = ""


class DumpError(MsdumpError, RuntimeError):
    """A dump that is not complete; the message counts what was lost."""


class WriteError(DumpError):
    """A file of a dump that could not be written.

    unwritten   records that earlier calls of the writer took and that are not on disk after all; those of the call that
                failed are not among them
    """

    def __init__(self, message: str, unwritten: int = 0) -> None:
        super().__init__(message)
        self.unwritten = unwritten


class FolderError(ConfigError, WriteError):
    """No dump can begin in the folder that was named. Raised before anything is dumped or run."""


def unwritten(error: BaseException) -> int:
    """Records that a writer had taken before and reports as lost with this error."""
    return error.unwritten if isinstance(error, WriteError) else 0


class FormatError(MsdumpError, ValueError):
    """A file whose bytes or name break its format."""


class TruncatedFileError(FormatError):
    """A file that is shorter than its header says."""


class UnknownDtypeError(FormatError):
    """A file that names a dtype outside the table."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Sentence that offers the nearest known name, or "" when none is near.

    Edges: comparison ignores case; at most three names, best first.
    """
    candidates = list(dict.fromkeys(known))
    by_lower = {candidate.lower(): candidate for candidate in reversed(candidates)}
    import difflib  # only where something goes wrong

    near = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.6)
    if not near:
        return ""
    return "Did you mean " + " or ".join(f'"{by_lower[match]}"' for match in near) + "?"


def shortened(items: Sequence[str], most: int = 5) -> list[str]:
    """The first items, and how many more there are: ["a", "b", "and 3 more"]."""
    return [*items[:most], f"and {len(items) - most} more"] if len(items) > most + 1 else list(items)


def refused(first_line: str, where: str, expected: str, got: str, fix: str = "") -> str:
    """The text of an error about one value of a configuration: two lines.

    first_line  what the library says that reads this configuration on an NPU; "" where msdump alone reads it
    Edges:      paths of the system need not be UTF-8; the text is.
    """
    text = f"{where}: expected {expected}, got {got}. {fix}".rstrip()
    lines = f"{first_line}\n{text}" if first_line else text
    return lines.encode("utf-8", "backslashreplace").decode("utf-8")


def without_secrets(text: str) -> str:
    """The text with *** for the user and password of each address in it, and for each value of its query and fragment.

    Example: `https://user:PW@host/x?sig=abc` is `https://***@host/x?sig=***`.
    Edges:   a password may hold slashes, as keys of S3 do. A text without an address is the same object.
    """
    return text if ":/" not in text else _ADDRESS.sub(_shown, text)


def shown_argument(text: str) -> str:
    """A text that should be an address and may lack its scheme, as `without_secrets`."""
    shown = without_secrets(text)
    return (
        f"{HIDDEN_SECRET}@{text.rpartition('@')[2]}" if shown == text and "://" not in text and "@" in text else shown
    )


def value_without_secrets(value: Any) -> Any:
    """A value for JSON, whose texts are as `without_secrets` has them; keys stay."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: value_without_secrets(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [value_without_secrets(part) for part in value]
    return value


def _shown(match: re.Match[str]) -> str:
    scheme, slashes, rest = match[1], match[2], match[3]
    begin = _QUERY.search(rest)
    location, query = (rest, "") if begin is None else (rest[: begin.start()], rest[begin.start() :])
    if query and "/" not in location and "@" in query:
        return f"{scheme}{slashes}{HIDDEN_SECRET}"  # a password with a mark in it, or a query with an @: all of it
    end = _credentials_end(scheme.lower(), slashes, location)
    shown = f"{HIDDEN_SECRET}@{location[end:]}" if end else location
    return f"{scheme}{slashes}{shown}{query[:1]}{_shown_query(query[1:])}"


def _credentials_end(scheme: str, slashes: str, location: str) -> int:
    """Where the host begins behind a user and password; 0 where there is none."""
    authority = location.partition("/")[0]
    if "@" in authority:
        user = authority.rpartition("@")[0]
        # A path with an @ is likelier behind one slash.
        is_user = ":" in user or (slashes == "//" and scheme not in _CONTAINER_SCHEMES)
        return len(user) + 1 if is_user else 0
    _, colon, port = authority.rpartition(":")
    if colon and "@" in location and not (scheme in _WEB_SCHEMES and _PORT.fullmatch(port)):
        return location.rindex("@") + 1
    return 0


def _shown_query(query: str) -> str:
    """Names of parameters, without their values; a value without a name may be a token."""
    parts = re.split("([&;#])", query)
    return "".join(part if number % 2 else _shown_parameter(part) for number, part in enumerate(parts))


def _shown_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        return HIDDEN_SECRET if name else ""
    return f"{name}={HIDDEN_SECRET}" if value else text

"""Exit codes of msaccucmp, and the error that carries one.   Source: CANN, error codes of the comparison tool."""

from __future__ import annotations

from enum import IntEnum

from msdump.errors import DtypeError, FormatError, LayoutError, UnknownDtypeError, WriteError


class ExitCode(IntEnum):
    """Exit status of msaccucmp's process."""

    NONE = 0
    UNKNOWN = 1
    NO_DUMP_FILE = 2
    INVALID_PATH = 3
    PARSE_DUMP_FILE = 4
    MALLOC_MEMORY = 5
    INVALID_PARAM = 6
    OPEN_FILE = 7
    CLOSE_FILE = 8
    OPEN_DIR = 9
    CLOSE_DIR = 10
    INVALID_DUMP_DATA = 11
    INDEX_OUT_OF_BOUNDS = 12
    PARSER_JSON_FILE = 13
    MEMSET = 14
    LEFT_DUMP_ZERO = 15
    RIGHT_DUMP_ZERO = 16
    MATCH_MORE_FILE = 17
    DUMP_FILE = 18
    WRITE_FILE = 19
    INVALID_DUMP_TYPE = 20
    INVALID_DATA_TYPE = 21
    INVALID_FORMAT = 22
    INVALID_SHAPE = 23
    INVALID_TYPE = 24
    INVALID_TARGET = 25
    INVALID_CONVERT_FUNC = 26
    SHAPE_CONVERT = 27
    INVALID_GOLDEN_ENV = 28
    INVALID_JSON_FILE = 29
    UNSUPPORTED_COMPARE = 30
    INVALID_ALGORITHM = 31
    DELETE_FILE = 32
    INVALID_FILE = 33
    INVALID_FRACTAL_NZ_DUMP_DATA = 34
    INVALID_OVERFLOW_TYPE = 35
    INVALID_OVERFLOW_STATUS = 36
    INVALID_TASK_TYPE = 37
    MISSING_FILE = 38
    UNMATCH_STANDARD_DUMP_SIZE = 39
    UNMATCH_DATA_SHAPE = 40
    INVALID_SLICE_DATA = 41
    INVALID_INPUT_MAPPING = 42
    FILE_TOO_LARGE = 43
    SYMLINK = 44
    FILE_EXISTS = 45
    DANGER_FILE = 46
    PARSE_NANO = 47


class AnalysisError(FormatError):
    """A file or a request that cannot be served; `code` is what msaccucmp would end with."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def exit_code_of(error: BaseException) -> ExitCode:
    """msaccucmp's code for an error that a file or a disk caused."""
    if isinstance(error, AnalysisError):
        return error.code
    if isinstance(error, (UnknownDtypeError, DtypeError)):
        return ExitCode.INVALID_DATA_TYPE
    if isinstance(error, LayoutError):
        return ExitCode.INVALID_SHAPE
    if isinstance(error, FormatError):
        return ExitCode.INVALID_DUMP_DATA
    if isinstance(error, WriteError):
        return ExitCode.WRITE_FILE
    return ExitCode.OPEN_FILE if isinstance(error, OSError) else ExitCode.UNKNOWN

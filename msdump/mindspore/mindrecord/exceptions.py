"""Exceptions of `mindspore.mindrecord`: a table of names and texts, all of them `MindRecordException`."""

from __future__ import annotations

from msdump.errors import MsdumpError
from msdump.mindspore.names import publish


class MindRecordException(MsdumpError, RuntimeError):  # noqa: N818 - MindSpore's name
    """Base of what goes wrong with a MindRecord file. MindSpore derives it from Exception alone."""


class ParamTypeError(MindRecordException, TypeError):
    """An argument of another type."""


class ParamValueError(MindRecordException, ValueError):
    """An argument of another value."""


class PathNotExistsError(MindRecordException, ValueError):
    """No such file."""


class MRMOpenError(MindRecordException, ValueError):
    """A file that cannot be opened, or that is no MindRecord file."""


class MRMInvalidPageSizeError(MindRecordException, ValueError):
    """A size of pages that the format does not have."""


class MRMInvalidHeaderSizeError(MindRecordException, ValueError):
    """A size of the header that the format does not have."""


class MRMInvalidSchemaError(MindRecordException, ValueError):
    """A schema with types or names that the format does not have."""


class MRMAddSchemaError(MindRecordException):
    """A schema that cannot be added."""


class MRMDefineIndexError(MindRecordException, ValueError):
    """An index of fields that are not in the schema or have no single value."""


class MRMValidateDataError(MindRecordException, ValueError):
    """A row that does not fit the schema."""


class MRMWriteDatasetError(MindRecordException):
    """Rows that cannot be written."""


class MRMCommitError(MindRecordException):
    """A file that cannot be finished."""


class MRMFetchDataError(MindRecordException, ValueError):
    """A row that cannot be read: the file is damaged."""


publish(__name__, tells_line=False)

"""`mindspore.dataset.text.utils`: names of ways to normalize and to cut, and strings to bytes and back."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.names import explain_missing, publish
from msdump.tensors.arrays import Array


class NormalizeForm(IntEnum):
    """Forms of Unicode."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def to_bytes(array: Any, encoding: str = "utf8") -> Array:
    """Encoded bytes of an array of str.   Raises: TypeError."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "U":
        raise TypeError(f"to_bytes: expected an array of str, got {getattr(array, 'dtype', type(array).__name__)}.")
    return np.char.encode(array, encoding)


def to_str(array: Any, encoding: str = "utf8") -> Array:
    """Decoded str of an array of bytes.   Raises: TypeError."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "S":
        raise TypeError(f"to_str: expected an array of bytes, got {getattr(array, 'dtype', type(array).__name__)}.")
    return np.char.decode(array, encoding)


publish(__name__)

__getattr__ = explain_missing(__name__)


def text_array(where: str, value: Any) -> Array:
    """An array of str.   Raises: ConfigError for what is no text."""
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf8")
    if array.dtype.kind != "U":
        raise ConfigError(f"{where}: expected text, got {array.dtype}.")
    return array


def single_text(where: str, value: Any) -> str:
    """One str.   Raises: ConfigError for an array of several, or for what is no text."""
    array = text_array(where, value)
    if array.ndim:
        raise ConfigError(f"{where}: expected one string, got an array of shape {array.shape}.")
    return str(array)

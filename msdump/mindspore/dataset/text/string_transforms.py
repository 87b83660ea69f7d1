"""Transforms of strings and of lists of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.text.tokenizers import compiled, normalized
from msdump.mindspore.dataset.text.utils import NormalizeForm, text_array
from msdump.tensors.arrays import Array


class _EachString:
    """A function of each string of an array."""

    def __call__(self, text: Any) -> Array:
        array = text_array(type(self).__name__, text)
        return np.array([self._changed(str(word)) for word in array.reshape(-1)] or [""]).reshape(array.shape)

    def _changed(self, text: str) -> str:
        raise NotImplementedError


class CaseFold(_EachString):
    """Lower case, folded as Unicode says."""

    def _changed(self, text: str) -> str:
        return normalized(text.casefold(), NormalizeForm.NFKC)


class NormalizeUTF8(_EachString):
    """A form of Unicode."""

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        if not isinstance(normalize_form, NormalizeForm):
            raise TypeError(f"NormalizeUTF8(normalize_form): expected a NormalizeForm, got {normalize_form!r}.")
        self._form = normalize_form

    def _changed(self, text: str) -> str:
        return normalized(text, self._form)


class RegexReplace(_EachString):
    """Matches of `pattern` replaced by `replace` ($1 stands for the first group): all of them, or the first."""

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self._pattern = compiled("RegexReplace(pattern)", pattern)
        groups = compiled("RegexReplace", r"\$(\d)")
        self._replacement = groups.sub(r"\\g<\1>", replace.replace("\\", "\\\\"))
        self._count = 0 if replace_all else 1

    def _changed(self, text: str) -> str:
        return str(self._pattern.sub(self._replacement, text, count=self._count))


class Ngram:
    """Each `n` neighboring tokens as one, for one or several n; padded with (token, how many) on both sides."""

    def __init__(
        self,
        n: int | Sequence[int],
        left_pad: tuple[str, int] = ("", 0),
        right_pad: tuple[str, int] = ("", 0),
        separator: str = " ",
    ) -> None:
        sizes = list(n) if isinstance(n, (list, tuple)) else [n]
        self._sizes = [checks.whole_number("Ngram(n)", size) for size in sizes]
        for name, side in (("left_pad", left_pad), ("right_pad", right_pad)):
            if not isinstance(side, tuple) or len(side) != 2 or not isinstance(side[0], str):
                raise TypeError(f"Ngram({name}): expected (token, how many), got {side!r}.")
            checks.whole_number(f"Ngram({name})", side[1], 0)
        self._left, self._right, self._separator = left_pad, right_pad, separator

    def __call__(self, text: Any) -> Array:
        words = text_array("Ngram", text)
        if words.ndim != 1:
            raise ConfigError(f"Ngram: expected a 1-d value, got shape {words.shape}.")
        grams: list[str] = []
        for size in self._sizes:
            left, right = min(size - 1, self._left[1]), min(size - 1, self._right[1])
            padded = [self._left[0]] * left + [str(word) for word in words] + [self._right[0]] * right
            grams += [self._separator.join(padded[at : at + size]) for at in range(len(padded) - size + 1)] or [""]
        return np.array(grams)


class SlidingWindow:
    """Each `width` neighboring values as a row.   Shapes: (N,) -> (N - width + 1, width)"""

    def __init__(self, width: int, axis: int = 0) -> None:
        self._width = checks.whole_number("SlidingWindow(width)", width)
        if axis not in (0, -1):
            raise ConfigError(f"SlidingWindow(axis): expected 0 or -1, got {axis!r}.")

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.ndim != 1:
            raise ConfigError(f"SlidingWindow: expected a 1-d value, got shape {array.shape}.")
        if len(array) < self._width:
            return np.zeros(0, array.dtype)
        return np.lib.stride_tricks.sliding_window_view(array, self._width).copy()


class ToNumber:
    """Numbers of strings.   Raises: ExecutionError for no number, or for one outside of the dtype."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = DType(dtype_name(data_type)).numpy
        if self._dtype.kind not in "iuf":
            raise TypeError(f"ToNumber(data_type): expected a type of numbers, got {data_type}.")

    def __call__(self, text: Any) -> Array:
        words = text_array("ToNumber", text)
        return np.array([self._number(str(word)) for word in words.reshape(-1)], self._dtype).reshape(words.shape)

    def _number(self, text: str) -> float | int:
        try:
            if self._dtype.kind == "f":
                return float(text)
            number = int(text) if text.strip().lstrip("+-").isdigit() else int(float(text))
        except (ValueError, OverflowError) as error:
            raise ExecutionError(f"ToNumber: expected a number, got {text!r}.") from error
        limits = np.iinfo(self._dtype)
        if not limits.min <= number <= limits.max:
            raise ExecutionError(
                f"ToNumber: expected a number of {self._dtype} [{limits.min}, {limits.max}], got {text!r}."
            )
        return number


class TruncateSequencePair:
    """Two lists cut from their ends, always the longer one (the second of two equal ones), to `max_length` in all."""

    def __init__(self, max_length: int) -> None:
        self._max_length = checks.whole_number("TruncateSequencePair(max_length)", max_length, 0)

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        one, other = np.asarray(first), np.asarray(second)
        if one.ndim != 1 or other.ndim != 1:
            raise ConfigError(f"TruncateSequencePair: expected two 1-d values, got {one.shape} and {other.shape}.")
        left, right = len(one), len(other)
        while left + right > self._max_length:
            left, right = (left - 1, right) if left > right else (left, right - 1)
        return one[:left], other[:right]


class Truncate:
    """The first `max_seq_len` values of the last axis."""

    def __init__(self, max_seq_len: int) -> None:
        self._length = checks.whole_number("Truncate(max_seq_len)", max_seq_len)

    def __call__(self, data: Any) -> Array:
        array = np.asarray(data)
        if array.ndim not in (1, 2):
            raise ConfigError(f"Truncate: expected a value of rank 1 or 2, got shape {array.shape}.")
        return array[..., : self._length]


class AddToken:
    """A token before (`begin`) or after the last axis."""

    def __init__(self, token: str, begin: bool = True) -> None:
        if not isinstance(token, str):
            raise TypeError(f"AddToken(token): expected a str, got {type(token).__name__}.")
        self._token, self._begin = token, bool(begin)

    def __call__(self, text: Any) -> Array:
        words = text_array("AddToken", text)
        if words.ndim not in (1, 2):
            raise ConfigError(f"AddToken: expected a value of rank 1 or 2, got shape {words.shape}.")
        extra = np.full((*words.shape[:-1], 1), self._token)
        return np.concatenate([extra, words] if self._begin else [words, extra], axis=-1)

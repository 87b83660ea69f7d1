"""`Vocab`: words and their numbers; `Lookup`, which replaces the ones by the others; forms and bytes of text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError, FormatError
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import Dataset
from msdump.mindspore.dataset.rows import define_enums
from msdump.mindspore.names import publish
from msdump.tensors.arrays import Array


class NormalizeForm(IntEnum):
    """Forms of Unicode."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


define_enums(NormalizeForm)


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


class Vocab:
    """Words with their numbers. Made by the functions `from_...`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: dict[int, str] = {}

    @classmethod
    def from_list(
        cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None, special_first: bool = True
    ) -> Vocab:
        """Numbers in the order of the list; `special_tokens` before or after.   Raises: TypeError, ConfigError."""
        words = _checked_words("Vocab.from_list(word_list)", word_list)
        special = _checked_words("Vocab.from_list(special_tokens)", special_tokens or [])
        both = set(words) & set(special)
        if both:
            raise ConfigError(f"Vocab.from_list: expected special_tokens that are no words, got {sorted(both)}.")
        ordered = [*special, *words] if special_first else [*words, *special]
        return cls._of({word: number for number, word in enumerate(ordered)})

    @classmethod
    def from_dict(cls, word_dict: Mapping[str, int]) -> Vocab:
        """The words and numbers of a dictionary.   Raises: TypeError, ConfigError."""
        if not isinstance(word_dict, Mapping):
            raise TypeError(f"Vocab.from_dict(word_dict): expected a dict, got {type(word_dict).__name__}.")
        _checked_words("Vocab.from_dict(word_dict)", list(word_dict))
        numbers = [checks.whole_number("Vocab.from_dict(word_dict)", number, 0) for number in word_dict.values()]
        return cls._of(dict(zip(word_dict, numbers, strict=True)))

    @classmethod
    def from_file(
        cls, file_path: str | os.PathLike[str], delimiter: str = "", vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None, special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """A word in each line, up to `delimiter`; at most `vocab_size` of them.   Raises: ConfigError, FormatError."""
        path = Path(checks.path_like("Vocab.from_file(file_path)", file_path))
        if not path.is_file():
            raise ConfigError(f"Vocab.from_file(file_path): expected a file, got none at {str(path)!r}.")
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}: expected UTF-8 text, got: {error}") from error
        words = [line.partition(delimiter)[0] if delimiter else line for line in lines if line]
        limit = None if vocab_size is None else checks.whole_number("Vocab.from_file(vocab_size)", vocab_size)
        return cls.from_list(words[:limit], special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, columns: str | Sequence[str] | None = None,
        freq_range: tuple[int | None, int | None] | None = None, top_k: int | None = None,
        special_tokens: Sequence[str] | None = None, special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """The words of a dataset, the most frequent first, equally frequent ones in order of the alphabet.

        freq_range   (least, most) times that a word comes; None: no limit
        """
        names = checks.column_names("Vocab.from_dataset(columns)", columns)
        counts: Counter[str] = Counter()
        for row in dataset.create_tuple_iterator(names, num_epochs=1, output_numpy=True):
            for value in row:
                counts.update(str(word) for word in text_array("Vocab.from_dataset", value).reshape(-1))
        low, high = freq_range or (None, None)
        chosen = [
            word
            for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if (low is None or count >= low) and (high is None or count <= high)
        ]
        limit = None if top_k is None else checks.whole_number("Vocab.from_dataset(top_k)", top_k)
        return cls.from_list(chosen[:limit], special_tokens, special_first)

    @classmethod
    def _of(cls, numbers: dict[str, int]) -> Vocab:
        vocab = cls()
        vocab._numbers, vocab._words = numbers, {number: word for word, number in numbers.items()}
        return vocab

    def vocab(self) -> dict[str, int]:
        """Word -> number."""
        return dict(self._numbers)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """Number of a word, or of each of a list; -1 for one that is not there."""
        if isinstance(tokens, str):
            return self._numbers.get(tokens, -1)
        return [self._numbers.get(str(token), -1) for token in tokens]

    def ids_to_tokens(self, ids: Any) -> Any:
        """Word of a number, or of each of a list; "" for one that is not there."""
        if isinstance(ids, (int, np.integer)):
            return self._words.get(int(ids), "")
        return [self._words.get(int(number), "") for number in ids]


def _checked_words(where: str, words: Any) -> list[str]:
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"{where}: expected a list of str, got {type(words).__name__}.")
    repeated = [word for word, count in Counter(words).items() if count > 1]
    if repeated:
        raise ConfigError(f"{where}: expected each word once, got {repeated[0]!r} more than once.")
    return list(words)


class Lookup:
    """Numbers of the words in `vocab`; words that are not there have that of `unknown_token`.

    Dtypes: `data_type` (int32)
    Raises: ConfigError (unknown_token is not in vocab), ExecutionError (a word is not, and no unknown_token).
    """

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = "int32") -> None:
        if not isinstance(vocab, Vocab):
            raise TypeError(f"Lookup(vocab): expected a Vocab, got {type(vocab).__name__}.")
        if unknown_token is not None and unknown_token not in vocab.vocab():
            raise ConfigError(f"Lookup(unknown_token): expected a word of the vocab, got {unknown_token!r}.")
        self._numbers = vocab.vocab()
        self._unknown = None if unknown_token is None else self._numbers[unknown_token]
        self._dtype = DType(dtype_name(data_type)).numpy

    def __call__(self, text: Any) -> Array:
        words = text_array("Lookup", text)
        return np.array([self._number(str(word)) for word in words.reshape(-1)], self._dtype).reshape(words.shape)

    def _number(self, word: str) -> int:
        number = self._numbers.get(word, self._unknown)
        if number is None:
            raise ExecutionError(f"Lookup: expected words of the vocab, got {word!r}. Give unknown_token.")
        return number


publish(__name__)

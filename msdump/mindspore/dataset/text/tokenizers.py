"""Tokenizers: a string into strings; with `with_offsets` also where each begins and ends, in bytes of UTF-8, uint32."""

from __future__ import annotations

import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.declared import Declared
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import define_enums
from msdump.mindspore.dataset.text.vocab import NormalizeForm, Vocab, single_text, text_array
from msdump.tensors.arrays import Array

Span = tuple[int, int]  # of characters
_UNUSED_TOKEN = re.compile(r"\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\]")
# CJK blocks whose characters are words of their own.   Source: BERT's tokenizer
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class _Tokenizer(Declared, ABC, takes="with_offsets:bool=False"):
    """Cuts one string into spans of it."""

    def __call__(self, text: Any) -> Any:
        return self.result([single_text(type(self).__name__, text)])

    @abstractmethod
    def spans(self, text: str) -> Iterable[Span]:
        """Where the tokens are."""

    def prepared(self, text: str) -> str:
        """The text whose spans count."""
        return text

    def result(self, texts: Sequence[str]) -> Any:
        """Tokens of the texts; one empty string when there are none."""
        tokens: list[str] = []
        offsets: list[Span] = []
        for text in map(self.prepared, texts):
            for first, last in self.spans(text):
                tokens.append(text[first:last])
                start = len(text[:first].encode())
                offsets.append((start, start + len(text[first:last].encode())))
        return _together(self, tokens, offsets)


def _together(tokenizer: Declared, tokens: list[str], offsets: list[Span]) -> Any:
    """Tokens, and with offsets their starts and ends; one empty token when there are none."""
    places = np.array(offsets or [(0, 0)], np.uint32)
    words = np.array(tokens or [""])
    return (words, places[:, 0].copy(), places[:, 1].copy()) if tokenizer.with_offsets else words


class WhitespaceTokenizer(_Tokenizer):
    """Words between white space."""

    def spans(self, text: str) -> Iterable[Span]:
        return (match.span() for match in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_Tokenizer):
    """Characters."""

    def spans(self, text: str) -> Iterable[Span]:
        return ((place, place + 1) for place in range(len(text)))


class JiebaMode(IntEnum):
    """How `JiebaTokenizer` cuts: by both of its ways, by the most likely words, or by characters alone."""

    MIX = 0
    MP = 1
    HMM = 2


define_enums(JiebaMode)


class JiebaTokenizer(_Tokenizer, takes="hmm_path mp_path mode:JiebaMode=JiebaMode.MIX with_offsets:bool=False"):
    """Chinese words, by the package jieba with the dictionary `mp_path`; its model of characters is its own, so that
    `hmm_path` only has to be a file."""

    def _set_up(self, hmm_path: str, mp_path: str) -> None:
        try:
            import jieba
        except ImportError as error:
            raise ImportError("JiebaTokenizer: needs jieba. Install it: pip install jieba") from error
        for name, path in (("hmm_path", hmm_path), ("mp_path", mp_path)):
            if not os.path.isfile(checks.path_like(f"JiebaTokenizer({name})", path)):
                raise ConfigError(f"JiebaTokenizer({name}): expected a file, got none at {path!r}.")
        self._jieba = jieba.Tokenizer(os.path.abspath(mp_path))

    def add_word(self, word: str, freq: int | None = None) -> None:
        """Take a word into the dictionary; without `freq` so often that it stays whole."""
        if not isinstance(word, str) or not word:
            raise TypeError(f"JiebaTokenizer.add_word(word): expected a word, got {word!r}.")
        self._jieba.add_word(word, freq)

    def add_dict(self, user_dict: Any) -> None:
        """Take the words of a dictionary {word: freq}, or of a file of lines "word" or "word freq"."""
        if not isinstance(user_dict, dict):
            lines = Path(checks.path_like("JiebaTokenizer.add_dict", user_dict)).read_text("utf-8").splitlines()
            user_dict = {word: int(freq[0]) if freq else None for word, *freq in map(str.split, filter(None, lines))}
        for word, freq in user_dict.items():
            self.add_word(word, freq)

    def spans(self, text: str) -> Iterable[Span]:
        from jieba import finalseg

        is_hmm = self.mode is JiebaMode.HMM
        words = finalseg.cut(text) if is_hmm else self._jieba.cut(text, HMM=self.mode is JiebaMode.MIX)
        place = 0
        for word in words:
            yield place, place + len(word)
            place += len(word)


def runs(text: str, kind_of: Callable[[str, str], str]) -> Iterator[Span]:
    """Spans of neighboring characters of one kind; `kind_of` gets a character and the kind before it."""
    first, before = 0, ""
    for place, character in enumerate(text):
        kind = kind_of(character, before)
        if place and kind != before:
            yield first, place
            first = place
        before = kind
    if text:
        yield first, len(text)


class BasicTokenizer(
    _Tokenizer,
    takes="lower_case=False keep_whitespace=False normalization_form:NormalizeForm=NormalizeForm.NONE "
    "preserve_unused_token=True with_offsets:bool=False",
):
    """BERT's first step: normal form, blanks for control characters, and words, punctuation and CJK characters apart.

    Edges: `lower_case` folds case and drops accents; `preserve_unused_token` keeps [CLS], [unused1] ... whole.
    """

    def prepared(self, text: str) -> str:
        parts: list[str] = []
        place = 0
        for match in _UNUSED_TOKEN.finditer(text) if self.preserve_unused_token else ():
            parts += [self._normal(text[place : match.start()]), match.group()]
            place = match.end()
        return "".join([*parts, self._normal(text[place:])])

    def _normal(self, text: str) -> str:
        if self.lower_case:
            folded = unicodedata.normalize("NFD", normalized(text, NormalizeForm.NFKC).casefold())
            text = "".join(character for character in folded if unicodedata.category(character) != "Mn")
        else:
            text = normalized(text, self.normalization_form)
        return "".join(" " if unicodedata.category(character) in ("Cc", "Cf") else character for character in text)

    def spans(self, text: str) -> Iterable[Span]:
        place = 0
        for match in _UNUSED_TOKEN.finditer(text) if self.preserve_unused_token else ():
            yield from self._words(text, place, match.start())
            yield match.span()
            place = match.end()
        yield from self._words(text, place, len(text))

    def _words(self, text: str, start: int, end: int) -> Iterator[Span]:
        for first, last in runs(text[start:end], _basic_kind):
            kind = _basic_kind(text[start + first], "")
            if kind == "single":
                yield from ((start + place, start + place + 1) for place in range(first, last))
            elif kind == "word" or self.keep_whitespace:
                yield start + first, start + last


def _basic_kind(character: str, before: str) -> str:
    if character.isspace():
        return "space"
    code = ord(character)
    if any(low <= code <= high for low, high in _CJK) or unicodedata.category(character).startswith("P"):
        return "single"
    is_ascii_sign = 33 <= code <= 126 and not character.isalnum()
    return "single" if is_ascii_sign else "word"


def normalized(text: str, form: NormalizeForm) -> str:
    """`text` in a form of Unicode."""
    return text if form is NormalizeForm.NONE else unicodedata.normalize(form.name, text)  # type: ignore[arg-type]


class WordpieceTokenizer(
    Declared, takes="vocab suffix_indicator='##' max_bytes_per_token:whole_from_0=100 unknown_token='[UNK]' "
    "with_offsets:bool=False"
):  # fmt: skip
    """BERT's second step: words into the longest pieces that are in `vocab`, marked after the first one of a word.

    Edges: a word of more than `max_bytes_per_token` bytes, or with a rest that is not there, is `unknown_token`;
           with unknown_token="" it stays, or its rest is left out.
    """

    def _set_up(self, vocab: Vocab) -> None:
        if not isinstance(vocab, Vocab):
            raise TypeError(f"{type(self).__name__}(vocab): expected a Vocab, got {type(vocab).__name__}.")
        self._words = set(vocab.vocab())

    def __call__(self, text: Any) -> Any:
        words = [str(word) for word in text_array("WordpieceTokenizer", text).reshape(-1)]
        return self.pieces_of(words, [0] * len(words))

    def pieces_of(self, words: Sequence[str], starts: Sequence[int]) -> Any:
        """Pieces of words that begin at these bytes."""
        tokens: list[str] = []
        offsets: list[Span] = []
        for word, start in zip(words, starts, strict=True):
            for piece, (first, last) in self._pieces(word):
                tokens.append(piece)
                offsets.append((start + len(word[:first].encode()), start + len(word[:last].encode())))
        return _together(self, tokens, offsets)

    def _pieces(self, word: str) -> list[tuple[str, Span]]:
        whole = [(self.unknown_token or word, (0, len(word)))]
        if len(word.encode()) > self.max_bytes_per_token:
            return whole
        pieces: list[tuple[str, Span]] = []
        place = 0
        while place < len(word):
            mark = self.suffix_indicator if place else ""
            end = next((end for end in range(len(word), place, -1) if mark + word[place:end] in self._words), None)
            if end is None:
                if self.unknown_token or not pieces:
                    return whole
                rest = (mark + word[place:], (place, len(word)))
                return [*pieces, rest]
            pieces.append((mark + word[place:end], (place, end)))
            place = end
        return pieces


class BertTokenizer(
    Declared, takes="vocab suffix_indicator='##' max_bytes_per_token=100 unknown_token='[UNK]' lower_case=False "
    "keep_whitespace=False normalization_form=NormalizeForm.NONE preserve_unused_token=True with_offsets=False"
):  # fmt: skip
    """`BasicTokenizer`, then `WordpieceTokenizer`."""

    def _set_up(self, vocab: Vocab, **settings: Any) -> None:
        for_pieces = {name: settings.pop(name) for name in WordpieceTokenizer.settings}
        self._basic = BasicTokenizer(**settings, with_offsets=True)
        self._pieces = WordpieceTokenizer(vocab, **for_pieces)

    def __call__(self, text: Any) -> Any:
        words, starts, _ = self._basic(text)
        return self._pieces.pieces_of([str(word) for word in words], [int(start) for start in starts])


class PythonTokenizer:
    """The words that a Python function makes of a string."""

    def __init__(self, tokenizer: Callable[[str], Sequence[str]]) -> None:
        if not callable(tokenizer):
            raise TypeError(f"PythonTokenizer(tokenizer): expected a function, got {type(tokenizer).__name__}.")
        self._tokenizer = tokenizer

    def __call__(self, text: Any) -> Array:
        if not isinstance(text, np.ndarray):
            raise TypeError(f"PythonTokenizer: expected an array, got {type(text).__name__}.")
        return np.array([str(word) for word in self._tokenizer(single_text("PythonTokenizer", text))] or [""])


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

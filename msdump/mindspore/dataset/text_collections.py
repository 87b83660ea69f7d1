"""The collections of texts of MindSpore's documentation: a table of files and columns for each."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.file_lists import Entry, FileList, chosen_parts, parameters
from msdump.mindspore.dataset.text_files import (
    LINE_OPTIONS,
    LineSource,
    Shuffle,
    Values,
    lines_of,
    matching_files,
)
from msdump.tensors.arrays import Array

Files = Mapping[str, Sequence[str]]

NO_ANSWER = 2**32 - 1  # MindSpore's answer_start of a question without an answer


class TextCollection(LineSource):
    """A folder whose files a table names. Subclasses are rows of that table.

    FILES     usage -> names of files
    COLUMNS   columns of a row
    """

    FILES: ClassVar[Files] = {"train": ("train.csv",), "test": ("test.csv",)}
    COLUMNS: Sequence[str] = ("text",)
    DEFAULT_USAGE = "all"
    HAS_ALL = True

    PARAMETERS = parameters(f"dataset_dir usage {LINE_OPTIONS}", usage=None, shuffle=Shuffle.GLOBAL)

    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        folder, usage = checks.existing_folder(where, given["dataset_dir"]), given["usage"]
        usages = [*self.FILES, *(["all"] if self.HAS_ALL else [])]
        checks.one_of(f"{where}(usage)", usage, usages)
        self._usage = usage or self.DEFAULT_USAGE
        parts = list(self.FILES) if self._usage == "all" else [self._usage]
        files = []
        for name in (name for part in parts for name in self.FILES[part]):
            matches = sorted(str(path) for path in folder.glob(name) if path.is_file())
            if not matches:
                raise ConfigError(f"{where}({os.fspath(given['dataset_dir'])!r}): expected the file {name}, got none.")
            files += matches
        return files, self.COLUMNS


# As some of MindSpore's classes have it.
_WORKERS_LAST = parameters(
    "dataset_dir usage num_samples shuffle num_shards shard_id num_parallel_workers cache",
    usage=None,
    shuffle=Shuffle.GLOBAL,
)


class _CsvCollection(TextCollection):
    def parsed(self, path: str) -> Iterator[Values]:
        with open(path, encoding="utf-8", newline="") as file:
            for number, fields in enumerate(csv.reader(file)):
                if fields and len(fields) != len(self.COLUMNS):
                    raise FormatError(f"{path}, line {number + 1}: expected {len(self.COLUMNS)} fields, got {fields}.")
                if fields:
                    yield fields


class AGNewsDataset(_CsvCollection):
    """News in four classes; all columns are strings."""

    COLUMNS = ("index", "title", "description")


class AmazonReviewDataset(_CsvCollection):
    """Reviews with their rating; all columns are strings."""

    COLUMNS = ("label", "title", "content")


class DBpediaDataset(_CsvCollection):
    """Articles in 14 classes; all columns are strings."""

    COLUMNS = ("class", "title", "content")


class SogouNewsDataset(_CsvCollection):
    """Chinese news in five classes; all columns are strings."""

    PARAMETERS = _WORKERS_LAST
    COLUMNS = ("index", "title", "content")


class YelpReviewDataset(_CsvCollection):
    """Reviews with their rating; all columns are strings."""

    PARAMETERS = _WORKERS_LAST
    COLUMNS = ("label", "text")


class YahooAnswersDataset(_CsvCollection):
    """Questions and answers in ten classes; all columns are strings."""

    COLUMNS = ("class", "title", "content", "answer")


class _LineCollection(TextCollection):
    def parsed(self, path: str) -> Iterator[Values]:
        return ((line,) for line in lines_of(path) if line)


class PennTreebankDataset(_LineCollection):
    """Lines of the Penn Treebank."""

    FILES: ClassVar[Files] = {part: (f"ptb.{part}.txt",) for part in ("train", "test", "valid")}


class WikiTextDataset(_LineCollection):
    """Lines of WikiText-2 or WikiText-103."""

    FILES: ClassVar[Files] = {part: (f"wiki.{part}.tokens",) for part in ("train", "test", "valid")}


class EnWik9Dataset(LineSource):
    """Lines of the first 10**9 bytes of the English Wikipedia."""

    PARAMETERS = parameters(f"dataset_dir {LINE_OPTIONS}", shuffle=True)

    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        folder = checks.existing_folder(where, given["dataset_dir"])
        return matching_files(where, str(folder / "enwik9")), ["text"]

    def parsed(self, path: str) -> Iterator[Values]:
        return ((line,) for line in lines_of(path))


class _TaggedCollection(TextCollection):
    """Sentences: one word and its tags in each line, an empty line after each sentence."""

    SEPARATOR: str | None = None

    def parsed(self, path: str) -> Iterator[Values]:
        sentence: list[list[str]] = []
        for number, line in enumerate(lines_of(path)):
            if line.strip():
                words = line.rstrip("\r").split(self.SEPARATOR)
                if len(words) != len(self.COLUMNS):
                    raise FormatError(f"{path}, line {number + 1}: expected {len(self.COLUMNS)} words, got {words}.")
                sentence.append(words)
            elif sentence:
                yield [np.array(column) for column in zip(*sentence, strict=True)]
                sentence = []
        if sentence:
            yield [np.array(column) for column in zip(*sentence, strict=True)]


class CoNLL2000Dataset(_TaggedCollection):
    """Sentences with parts of speech and chunks."""

    PARAMETERS = _WORKERS_LAST
    FILES: ClassVar[Files] = {part: (f"{part}.txt",) for part in ("train", "test")}
    COLUMNS = ("word", "pos_tag", "chunk_tag")


class UDPOSDataset(_TaggedCollection):
    """Sentences with universal and Stanford tags."""

    PARAMETERS = _WORKERS_LAST
    FILES: ClassVar[Files] = {
        part: (f"en-ud-tag.v2.{name}.txt",) for part, name in (("train", "train"), ("test", "test"), ("valid", "dev"))
    }
    COLUMNS = ("word", "universal", "stanford")
    SEPARATOR = "\t"


class SST2Dataset(TextCollection):
    """Sentences of film reviews with their sentiment; the test part has no labels."""

    FILES: ClassVar[Files] = {part: (f"{part}.tsv",) for part in ("train", "test", "dev")}
    DEFAULT_USAGE, HAS_ALL = "train", False

    def get_col_names(self) -> list[str]:
        return ["sentence"] if self._usage == "test" else ["sentence", "label"]

    def parsed(self, path: str) -> Iterator[Values]:
        for number, line in enumerate(lines_of(path)):
            fields = line.rstrip("\r").split("\t")
            if number == 0 or not line:
                continue
            if len(fields) != 2:
                raise FormatError(f"{path}, line {number + 1}: expected 2 fields, got {fields}.")
            yield fields[1:] if self._usage == "test" else fields


class SQuADDataset(TextCollection):
    """Questions, each with its paragraph and its answers; `answer_start` is uint32."""

    FILES: ClassVar[Files] = {part: (f"{part}-v*.json",) for part in ("train", "dev")}
    COLUMNS = ("context", "question", "text", "answer_start")

    def parsed(self, path: str) -> Iterator[Values]:
        with open(path, encoding="utf-8") as file:
            articles = json.load(file)["data"]
        for paragraph in (paragraph for article in articles for paragraph in article["paragraphs"]):
            for question in paragraph["qas"]:
                answers = question["answers"] or [{"text": "", "answer_start": NO_ANSWER}]
                texts = np.array([answer["text"] for answer in answers])
                starts = np.array([answer["answer_start"] for answer in answers], np.uint32)
                yield paragraph["context"], question["question"], texts, starts


class Multi30kDataset(LineSource):
    """Sentences with their translations. `language_pair`: ["en", "de"] (default) or the other way round."""

    _PARTS: ClassVar[Mapping[str, str]] = {
        "train": "training/train",
        "valid": "validation/val",
        "test": "mmt16_task1_test/test",
    }

    PARAMETERS = parameters(
        f"dataset_dir usage language_pair {LINE_OPTIONS}", usage=None, language_pair=None, shuffle=None
    )

    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        super()._open(where, {**common, "shuffle": True if common["shuffle"] is None else common["shuffle"]}, given)

    def listed(self, where: str, **given: Any) -> tuple[Sequence[str], Sequence[str]]:
        folder = checks.existing_folder(where, given["dataset_dir"])
        parts = chosen_parts(where, given["usage"], self._PARTS)
        self._languages = list(given["language_pair"] or ["en", "de"])
        if sorted(self._languages) != ["de", "en"]:
            raise ConfigError(f'{where}(language_pair): expected "en" and "de", got {given["language_pair"]!r}.')
        files = [str(folder / self._PARTS[part]) for part in parts]
        for file in (f"{file}.{language}" for file in files for language in self._languages):
            if not os.path.isfile(file):
                raise ConfigError(f"{where}: expected the file {file!r}, got none.")
        return files, ["text", "translation"]

    def parsed(self, path: str) -> Iterator[Values]:
        first, second = (list(lines_of(f"{path}.{language}")) for language in self._languages)
        if len(first) != len(second):
            raise FormatError(f"{path}: expected as many lines in both languages, got {len(first)} and {len(second)}.")
        return ((one, other) for one, other in zip(first, second, strict=True) if one or other)


class IMDBDataset(FileList):
    """Film reviews: `text`, and `label` int32: 1 for positive, 0 for negative."""

    PARAMETERS = parameters(
        "dataset_dir usage num_samples num_parallel_workers shuffle sampler num_shards shard_id cache", usage=None
    )
    COLUMNS = ("text", "label")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        files: list[Entry] = []
        for part in chosen_parts(where, given["usage"], {"train": 0, "test": 0}):
            for name, label in (("pos", 1), ("neg", 0)):
                checks.existing_folder(where, folder / part / name)
                files += [(path, np.int32(label)) for path in sorted((folder / part / name).glob("*.txt"))]
        if not files:
            raise ConfigError(f"{where}({os.fspath(given['dataset_dir'])!r}): expected .txt files, got none.")
        return files

    def _value(self, value: Any) -> Array:
        return np.asarray(value.read_text(encoding="utf-8").rstrip("\n") if isinstance(value, Path) else value)

    def num_classes(self) -> int | None:
        return 2

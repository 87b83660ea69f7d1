"""Collections of speech and music in WAV files (16-bit PCM), read with Python's own module."""

from __future__ import annotations

import wave
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.file_lists import (
    Entry,
    FileList,
    class_folders,
    existing_file,
    parameters,
)
from msdump.mindspore.dataset.rows import Row
from msdump.mindspore.dataset.text_files import lines_of
from msdump.tensors.arrays import Array

_TAIL = "sampler num_shards shard_id cache"
_LARGEST_SAMPLE = np.float32(32767.0)


def read_wave(path: Path) -> tuple[Array, int]:
    """Samples, in [-1, 1], and their rate.   Shapes: -> (channels, samples) float32   Raises: FormatError."""
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise FormatError(f"{path}: expected a WAV file, got: {error}. Is it cut short?") from error
    if width != 2 or len(data) % (2 * channels):
        raise FormatError(f"{path}: expected 16-bit samples, got {8 * width}-bit ones, {len(data)} bytes.")
    samples = np.frombuffer(data, "<i2").reshape(-1, channels).T.astype(np.float32) / _LARGEST_SAMPLE
    return np.ascontiguousarray(samples), rate


class _WaveList(FileList):
    """The first value of an entry is a WAV file; its rows have the samples and the rate instead."""

    RATE_TYPE: type = np.int32

    def row_at(self, place: int) -> Row:
        path, *others = self._entries[place]

        def read() -> tuple[Array, ...]:
            samples, rate = read_wave(path)
            return samples, np.asarray(self.RATE_TYPE(rate)), *(np.asarray(value) for value in others)

        return read


class YesNoDataset(_WaveList):
    """Eight words, each yes (1) or no (0), as the name of the file says."""

    PARAMETERS = parameters(f"dataset_dir num_samples num_parallel_workers shuffle {_TAIL}")
    COLUMNS = ("waveform", "sample_rate", "label")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        for path in sorted(folder.glob("*.wav")):
            words = path.stem.split("_")
            if len(words) != 8 or any(word not in ("0", "1") for word in words):
                raise FormatError(f"{path}: expected a name of eight 0 and 1, got {path.stem!r}.")
            yield path, np.array([int(word) for word in words], np.int32)

    def labels(self) -> list[int]:
        raise FormatError("YesNoDataset: expected another sampler: a row has eight labels.")


class GTZANDataset(_WaveList):
    """Music in folders of genres."""

    PARAMETERS = parameters(f"dataset_dir usage num_samples num_parallel_workers shuffle {_TAIL}", usage=None)
    COLUMNS = ("waveform", "sample_rate", "label")
    RATE_TYPE = np.uint32

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        if given["usage"] not in (None, "all"):
            raise FormatError('GTZANDataset(usage): expected None or "all": msdump has not the lists of the parts.')
        for genre in class_folders(where, folder):
            yield from ((path, genre.name) for path in sorted(genre.glob("*.wav")))


class LJSpeechDataset(_WaveList):
    """Sentences of one speaker, with their text and their normalized text."""

    PARAMETERS = parameters(f"dataset_dir num_samples num_parallel_workers shuffle {_TAIL}")
    COLUMNS = ("waveform", "sample_rate", "transcription", "normalized_transcription")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        listing = existing_file(where, folder / "metadata.csv")
        for number, line in enumerate(lines_of(str(listing))):
            fields = line.split("|")
            if len(fields) != 3 or "/" in fields[0]:
                raise FormatError(f"{listing}, line {number + 1}: expected name|text|normalized text, got {line!r}.")
            yield existing_file(where, folder / "wavs" / f"{fields[0]}.wav"), fields[1], fields[2]


class SpeechCommandsDataset(_WaveList):
    """Spoken words in folders of words; testing_list.txt and validation_list.txt name the parts."""

    PARAMETERS = parameters(f"dataset_dir usage num_samples num_parallel_workers shuffle {_TAIL}", usage=None)
    COLUMNS = ("waveform", "sample_rate", "label", "speaker_id", "utterance_number")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        checks.one_of(f"{where}(usage)", given["usage"], ["train", "test", "valid", "all"])
        names = {"test": "testing_list.txt", "valid": "validation_list.txt"}
        lists = {
            part: {line.strip() for line in lines_of(str(existing_file(where, folder / name)))}
            for part, name in names.items()
            if given["usage"] not in (None, "all")
        }
        for word in class_folders(where, folder):
            if word.name == "_background_noise_":
                continue
            for path in sorted(word.glob("*.wav")):
                part = next((part for part, files in lists.items() if f"{word.name}/{path.name}" in files), "train")
                speaker, mark, number = path.stem.partition("_nohash_")
                if not mark or not number.isdigit():
                    raise FormatError(f"{path}: expected a name <speaker>_nohash_<number>, got {path.stem!r}.")
                if given["usage"] in (None, "all", part):
                    yield path, word.name, speaker, np.int32(number)

    def labels(self) -> list[int]:
        names = sorted({entry[1] for entry in self._entries})
        return [names.index(entry[1]) for entry in self._entries]

"""Dump files to npy, raw, torch or safetensors files, in the dump's format or another one; overflow files to JSON.

    for result in convert_files(dump_sources("dump"), ConvertOptions(output=Path("out"))):
        print(result.path, result.problems)

Files are mapped and written as they lie. Source: CANN, `msaccucmp.py convert`; where msdump differs on purpose, see
the compatibility page.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from msdump.analysis.convert._task_slices import with_thread_shapes
from msdump.analysis.convert._tensor_form import (
    Chunk,
    DecodedTensor,
    decode,
    npy_chunks,
    raw_chunks,
    raw_value,
    safetensors_chunks,
    size_of,
    torch_chunks,
)
from msdump.analysis.convert.target_format import CustomFormats, parse_format, short_format, to_format
from msdump.analysis.exit_codes import AnalysisError, ExitCode, exit_code_of
from msdump.errors import DtypeError, FormatError, LayoutError, WriteError
from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.bin import BUFFER, SPACE, BinFile, BinTensor
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import read_dump
from msdump.formats.opdebug import is_new_content, opdebug_json, parse_opdebug_content
from msdump.formats.paths import parse
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.formats.sidecars import append_mapping, read_mapping
from msdump.storage import files as storage
from msdump.storage.plain import populate
from msdump.tensors.records import INPUT, OUTPUT

NPY, BIN, MSNPY, PT, SAFETENSORS = "npy", "bin", "msnpy", "pt", "safetensors"
FILE_TYPES = (NPY, BIN, MSNPY, PT, SAFETENSORS)
OVERFLOW_PREFIX = "Opdebug.Node_OpDebug."
_LONGEST_NAME = 254  # characters
_PARTS = 5  # of a dump file's usual name
_FILE_MODE, _DIR_MODE = 0o600, 0o700
_OVERFLOW_TYPES = 4


@dataclass(frozen=True)
class ConvertOptions:
    """Output form of each file.

    output         folder; made when it is missing
    format         format to convert to; None leaves each tensor as it was dumped
    shape          of the tensor without padding, where the files do not tell it or tell it wrong
    only           (io, slot) of the only tensor to convert
    custom         the user's own format converters
    container      "2.0" or "1.0" to take no other; None decides for each file
    """

    output: Path
    file_type: str = NPY
    format: str | None = None
    shape: tuple[int, ...] | None = None
    only: tuple[str, int] | None = None
    custom: CustomFormats | None = None
    container: str | None = None

    def __post_init__(self) -> None:
        if self.file_type not in FILE_TYPES:
            types = ", ".join(FILE_TYPES)
            raise AnalysisError(ExitCode.INVALID_PARAM, f'--type: expected one of {types}, got "{self.file_type}".')
        if self.file_type == PT and importlib.util.find_spec("torch") is None:
            raise AnalysisError(
                ExitCode.INVALID_PARAM, "--type pt: expected torch to be installed, got none. Run: pip install torch"
            )
        if self.format is None and (self.shape or self.only or self.custom):
            raise AnalysisError(
                ExitCode.INVALID_PARAM,
                "--shape, --output_tensor, --input_tensor and --custom_script_path need --format.",
            )
        if self.format is not None:
            object.__setattr__(self, "format", parse_format(self.format))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to convert.

    name      what it is called; differs from the path's last part where mapping.csv had shortened it
    folder    below the output folder where its results go
    """

    path: str
    name: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ConversionProblem:
    """A failed conversion. `tensor` is "output:0", or None for the whole file."""

    tensor: str | None
    code: ExitCode
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """Result of converting a file.

    code   0, or the code of what went wrong first
    """

    path: str
    written: tuple[str, ...]
    written_bytes: int
    code: ExitCode
    problems: tuple[ConversionProblem, ...] = ()


def dump_sources(path: str | os.PathLike[str], options: ConvertOptions) -> list[SourceFile]:
    """Everything below a path that can be converted, with its folders and with long names restored.

    Edges:   npy files only when they become something else.
    """
    dump = DumpDir.open(path)
    root = dump.path if storage.is_folder(dump.path) else dump.path.parent
    forms = {parse.BIN, parse.OVERFLOW}
    if options.file_type not in (NPY, MSNPY) or options.format is not None:
        forms.add(parse.NPY)
    files = [*dump.files(), *dump.overflow_files()]
    return [
        SourceFile(file.path, file.original_name, storage.folder_below(root, file.path))
        for file in files
        if file.form in forms and not file.path.endswith(".json")
    ]


def convert_dump(
    dump: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    file_type: str = NPY,
    format: str | None = None,
    thread_count: int | None = None,
) -> list[Result]:
    """Convert every file of a dump into `target`, below which the folders of the dump are kept.

    file_type     "npy", "bin" (raw elements), "msnpy" (named as MindSpore names converted files), "pt" or "safetensors"
    format        "NCHW", "NHWC", "ND", ... to convert to; None leaves each tensor as it was dumped
    thread_count  None: one for each core, at most eight

    Edges:   one result for each file, in the order of the dump; a file that cannot be converted has `problems` in its
             result and stops no other. Files that are already what they would become have no result.
    Raises:  AnalysisError for an unknown file type or format, or "pt" without torch; FormatError when there is
             nothing at the path; WriteError when the folder cannot be made.
    """
    options = ConvertOptions(Path(target), file_type, format)
    return list(convert_files(dump_sources(dump, options), options, thread_count))


def named_sources(paths: Sequence[str]) -> list[SourceFile]:
    """Exactly these files; names that are digits are restored from the `mapping.csv` beside them."""
    originals: dict[str, dict[str, str]] = {}
    sources = []
    for path in paths:
        folder, name = os.path.split(path)
        if name.isdigit():
            if folder not in originals:
                originals[folder] = _mapping(os.path.join(folder, MAPPING_FILE))
            name = originals[folder].get(name, name)
        sources.append(SourceFile(path, name))
    return sources


def _mapping(path: str) -> dict[str, str]:
    """Rows of a mapping.csv; a damaged one restores nothing."""
    try:
        return read_mapping(path)
    except (FormatError, OSError):
        return {}


def convert_files(
    sources: Sequence[SourceFile], options: ConvertOptions, threads: int | None = None
) -> Generator[Result, None, None]:
    """Convert many files; results come in the order of the sources; a file that fails does not stop the others.

    Closing the iterator stops: what runs ends, nothing new begins.
    """
    with Converter(options) as converter, ThreadPoolExecutor(threads or min(8, os.cpu_count() or 1)) as pool:
        try:
            yield from pool.map(converter.convert, sources)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class Converter:
    """Converts files into one output folder, whose folders it keeps open. Any thread may call `convert`."""

    def __init__(self, options: ConvertOptions) -> None:
        self.options = options
        self._folders: dict[str, Folder] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()

    def convert(self, source: SourceFile) -> Result:
        """Convert one file. Never raises for what a file or a disk does; the result tells it."""
        try:
            # Checked first: nothing is made for a file that is not there or says nothing.
            content = read_dump(source.path, self.options.container)
            if len(source.name.split(".")) > 5:
                content = with_thread_shapes(content, source.name)
            folder = self._folder(source.folder)
        except (FormatError, LayoutError, WriteError, OSError) as error:
            return _failed(source.path, error)
        job = _Job(source, content, self.options, folder)
        try:
            job.run()
        except (WriteError, OSError, AnalysisError) as error:
            job.problems.append(ConversionProblem(None, exit_code_of(error), str(error)))
        return job.result()

    def _folder(self, name: str) -> Folder:
        with self._lock:
            folder = self._folders.get(name)
            if folder is None:
                path = os.path.join(self.options.output, name)
                make_dirs(path, _DIR_MODE)
                folder = self._folders[name] = Folder(path)
            return folder


class _Job:
    """Conversion of a file."""

    def __init__(self, source: SourceFile, content: BinFile, options: ConvertOptions, folder: Folder) -> None:
        self.source = source
        self.content = content
        self.options = options
        self.folder = folder
        self.problems: list[ConversionProblem] = []
        self.written: list[str] = []
        self.written_bytes = 0

    def result(self) -> Result:
        code = next((problem.code for problem in self.problems), ExitCode.NONE)
        return Result(self.source.path, tuple(self.written), self.written_bytes, code, tuple(self.problems))

    def run(self) -> None:
        options = self.options
        if options.format is None and self.source.name.startswith(OVERFLOW_PREFIX):
            self._write_all(self.content.of(OUTPUT), self._write_overflow)
            return
        tensors = [tensor for tensor in self.content.tensors if tensor.io in (INPUT, OUTPUT)]
        if options.only is not None:
            tensors = [tensor for tensor in tensors if (tensor.io, tensor.slot) == options.only]
            if not tensors:
                raise AnalysisError(
                    ExitCode.INDEX_OUT_OF_BOUNDS,
                    f"{self.source.path}: expected {options.only[0]} {options.only[1]}, the file has none.",
                )
        if options.file_type == SAFETENSORS:
            self._write_together(tensors)
        else:
            self._write_all(tensors, self._write_tensor)
        if options.format is None:
            for block in self.content.tensors:
                if block.io in (BUFFER, SPACE):
                    self._publish(
                        f".{block.io}.{block.slot}", ".bin", raw_chunks(DecodedTensor(block.payload, "uint8"))
                    )

    def _write_all(self, tensors: Sequence[BinTensor], write: Callable[[BinTensor], None]) -> None:
        for tensor in tensors:
            try:
                write(tensor)
            except (FormatError, LayoutError, DtypeError) as error:
                self.problems.append(
                    ConversionProblem(f"{tensor.io}:{tensor.slot}", exit_code_of(error), _text(tensor, error))
                )

    def _write_tensor(self, tensor: BinTensor) -> None:
        options = self.options
        suffix = f".{tensor.io}.{tensor.slot}"
        populate(tensor.payload)
        value = decode(tensor, is_raw=options.file_type == BIN and options.format is None)
        shown_format = tensor.format
        if options.format is not None:
            try:
                value = self._converted(tensor, value)
            except AnalysisError:
                if options.file_type == MSNPY:
                    self._publish_named(tensor, tensor.format, value, suffix)
                raise
            shown_format = options.format
        if options.file_type == MSNPY:
            self._publish_named(tensor, shown_format, value, suffix)
        elif options.file_type == BIN:
            raw = raw_value(value)
            # Source: msaccucmp names the elements of a tensor that it has not reshaped, and it reshapes none but these.
            has_shape = options.format is not None or not value.array.size
            shape = "_".join(map(str, value.array.shape)) if has_shape else str(value.array.size)
            self._publish(f"{suffix}.{shape}.{raw.dtype}.{short_format(shown_format)}", ".bin", raw_chunks(raw))
        else:
            shape = "" if options.format is None else "." + "x".join(map(str, value.array.shape))
            chunks = torch_chunks(value) if options.file_type == PT else npy_chunks(value)
            self._publish(f"{suffix}{shape}", f".{options.file_type}", chunks)

    def _converted(self, tensor: BinTensor, value: DecodedTensor) -> DecodedTensor:
        assert self.options.format is not None
        shape = self.options.shape or tensor.original_shape
        array = to_format(
            value.array, tensor.format, self.options.format, shape, tensor.sub_format, self.options.custom
        )
        if array.dtype != value.array.dtype:
            # A converter of the user's may compute as well.
            from msdump.tensors.dtypes import dtype_from_numpy

            return DecodedTensor(array, dtype_from_numpy(array.dtype).name)
        return DecodedTensor(array, value.dtype)

    def _publish_named(self, tensor: BinTensor, shown_format: str, value: DecodedTensor, suffix: str) -> None:
        """With the format; a name of five parts gets the operator's own name where the header tells it."""
        suffix = f"{suffix}.{short_format(shown_format)}"
        parts = self.source.name.split(".")
        if len(parts) != _PARTS or not self.content.op_name:
            self._publish(suffix, ".npy", npy_chunks(value))
            return
        parts[1] = self.content.op_name.rsplit("/", 1)[-1]
        text = f"{'.'.join(parts)}{suffix}"
        self._write(text, text, ".npy", npy_chunks(value))

    def _write_together(self, tensors: Sequence[BinTensor]) -> None:
        values: dict[str, DecodedTensor] = {}

        def add(tensor: BinTensor) -> None:
            value = decode(tensor)
            if self.options.format is not None:
                value = self._converted(tensor, value)
            safetensors_chunks({"x": value}, {})  # refused here, it takes no other tensor with it
            values[f"{tensor.io}.{tensor.slot}"] = value

        self._write_all(tensors, add)
        if values:
            metadata = {"op_name": self.content.op_name, "source": self.source.name}
            self._publish("", ".safetensors", safetensors_chunks(values, metadata))

    def _write_overflow(self, tensor: BinTensor) -> None:
        text = overflow_json_text(tensor)
        self._publish(f".{tensor.io}.{tensor.slot}", ".json", [text.encode()])

    def _publish(self, suffix: str, extension: str, chunks: Sequence[Chunk]) -> None:
        """Under the dump file's name; one that is too long keeps the digits that stand for it."""
        actual = os.path.basename(self.source.path)
        self._write(f"{self.source.name}{suffix}", f"{actual}{suffix}", extension, chunks)

    def _write(self, name: str, short: str, extension: str, chunks: Sequence[Chunk]) -> None:
        """Publish under the first of: the name, the short name, a digest; `mapping.csv` tells what was replaced."""
        file_name = name + extension
        published = file_name
        if not _fits(file_name):
            published = short + extension
            if not _fits(published):
                published = uuid.uuid3(uuid.NAMESPACE_DNS, file_name).hex + extension
            append_mapping(self.folder, published, file_name, _FILE_MODE)
        # A free name needs no detour over a second one.
        self.folder.write(published, chunks, _FILE_MODE, replace=self.folder.has(published))
        self.written.append(os.path.join(self.folder.path, published))
        self.written_bytes += size_of(chunks)


def overflow_json_text(tensor: BinTensor) -> str:
    """What an overflow file says, as msaccucmp's converter shows it.

    Raises:  AnalysisError for an unknown accelerator, FormatError for other contents.
    """
    content = tensor.payload.tobytes()
    if is_new_content(content) and len(content) >= 16:
        accelerator = int.from_bytes(content[12:16], "little")
        if accelerator >= _OVERFLOW_TYPES:
            raise AnalysisError(
                ExitCode.INVALID_OVERFLOW_TYPE, f"expected acc_type 0 to {_OVERFLOW_TYPES - 1}, got {accelerator}."
            )
    return json.dumps(opdebug_json(parse_opdebug_content(content, tensor.where)), indent=4)


def _failed(path: str, error: Exception) -> Result:
    code = exit_code_of(error)
    return Result(path, (), 0, code, (ConversionProblem(None, code, str(error)),))


def _text(tensor: BinTensor, error: Exception) -> str:
    """The error, prefixed once with its path."""
    text = str(error)
    return text if tensor.where in text else f"{tensor.where}: {text}"


def _fits(name: str) -> bool:
    return (
        len(name) <= _LONGEST_NAME
        and len(name.encode(errors="surrogateescape")) <= _LONGEST_NAME + 1
        and ("/" not in name and "\0" not in name)
    )

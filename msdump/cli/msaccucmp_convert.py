"""`msaccucmp convert`: msaccucmp's options, exit codes and output names."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.cli.options import path_argument
from msdump.cli.printing import log

if TYPE_CHECKING:
    from msdump.analysis.convert.files import ConvertOptions, Result

FAILED_LIST = "convert_failed_file_list.txt"
_SHAPE = re.compile(r"([0-9]+,)+[0-9]+")
_NUMBER = re.compile(r"[0-9]+")
_FORMATS_FOLDER = "format_convert"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this sub-command."""
    add = parser.add_argument
    add("-d", "--dump_file", dest="dump_file", required=True, type=path_argument,
        help="a file, files with commas between them, or a folder, whose own folders are left out")  # fmt: skip
    add("-f", "--format", dest="format", help="format to convert to")
    add("-s", "--shape", dest="shape", help="shape without padding, such as 1,3,224,224; with -f")
    add("-o", "--output_tensor", dest="output_tensor", help="the only output; with -f")
    add("-i", "--input_tensor", dest="input_tensor", help="the only input; with -f")
    add("-c", "--custom_script_path", dest="custom_script_path", type=path_argument,
        help="folder that holds format_convert; with -f")  # fmt: skip
    add("-out", "--output", dest="output", default="", type=path_argument, help="folder for the results (.)")
    add("-v", "--version", dest="dump_version", type=int, choices=(1, 2), default=2,
        help="1: protobuf files, 2: files of container 2.0 (2)")  # fmt: skip
    add("-t", "--type", dest="type", choices=("npy", "bin", "msnpy", "pt", "safetensors"), default="npy",
        help="form of the results (npy)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Convert; the result is msaccucmp's code."""
    from msdump.analysis.convert.files import convert_files

    options = _options(args)
    sources = _sources(args.dump_file)
    if isinstance(sources, ExitCode):
        return sources
    code = ExitCode.NONE
    failed: list[Result] = []
    empty_count = 0
    for result in convert_files(sources, options):
        _tell(result)
        empty_count += not (result.code or result.written)
        if result.code:
            failed.append(result)
            code = code or result.code
    if failed and (len(sources) > 1 or os.path.isdir(args.dump_file)):
        _write_failed_list(failed, options)
    rest = f", {empty_count} hold nothing to convert" if empty_count else ""
    log("INFO", f"{len(sources) - len(failed) - empty_count} of {len(sources)} dump files are converted{rest}.")
    return code


def _options(args: argparse.Namespace) -> ConvertOptions:
    """Raises: AnalysisError with msaccucmp's code."""
    from pathlib import Path

    from msdump.analysis.convert.files import ConvertOptions
    from msdump.analysis.convert.target_format import CustomFormats

    needs_format = (args.shape, args.output_tensor, args.input_tensor, args.custom_script_path)
    if args.format is None and any(value is not None for value in needs_format):
        raise AnalysisError(ExitCode.INVALID_PARAM, "-s, -o, -i and -c: expected -f with them, got none.")
    if args.output_tensor is not None and args.input_tensor is not None:
        raise AnalysisError(ExitCode.INVALID_PARAM, "-o and -i: expected one of them, got both.")
    shape, only = _shape_and_tensor(args)
    if os.path.islink(args.output.rstrip("/")) or os.path.isfile(args.output):
        raise AnalysisError(ExitCode.INVALID_PATH, f"{args.output}: expected a folder, got a link or a file.")
    custom = None
    if args.custom_script_path and args.format:
        if not os.path.isdir(args.custom_script_path):
            raise AnalysisError(ExitCode.INVALID_PATH, f"-c: expected a folder, got {args.custom_script_path}.")
        if os.path.isdir(os.path.join(args.custom_script_path, _FORMATS_FOLDER)):
            custom = CustomFormats(args.custom_script_path)
        else:
            log("WARNING", f'-c: {args.custom_script_path} holds no "{_FORMATS_FOLDER}"; nothing is taken from it.')
    container = {1: "1.0", 2: "2.0"}[args.dump_version]
    return ConvertOptions(Path(args.output or "."), args.type, args.format or None, shape, only, custom, container)


def _shape_and_tensor(args: argparse.Namespace) -> tuple[tuple[int, ...] | None, tuple[str, int] | None]:
    """-s, and -o or -i.   Raises: AnalysisError."""
    if not args.format:
        return None, None
    shape = None
    if args.shape:
        shape = tuple(int(size) for size in args.shape.split(",")) if _SHAPE.fullmatch(args.shape) else ()
        if not shape or min(shape) < 1:
            raise AnalysisError(
                ExitCode.INVALID_PARAM, f'-s: expected sizes from 1 on with commas, such as 1,3,4, got "{args.shape}".'
            )
    for io, text in (("output", args.output_tensor), ("input", args.input_tensor)):
        if text:
            if not _NUMBER.fullmatch(text):
                raise AnalysisError(ExitCode.INVALID_PARAM, f'-o, -i: expected a number from 0 on, got "{text}".')
            return shape, (io, int(text))
    return shape, None


def _sources(dump_file: str) -> Any:
    """Files to convert, or the code that ends the command."""
    from msdump.analysis.convert.files import named_sources
    from msdump.formats.paths.sync import MAPPING_FILE

    if os.path.isdir(dump_file):
        with os.scandir(dump_file) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        if not listed:
            log("ERROR", f"{dump_file}: expected a folder with dump files, got an empty one.")
            return ExitCode.INVALID_PARAM
        folder = os.path.realpath(dump_file)
        names_of_files = [entry.name for entry in listed if entry.is_file() and entry.name != MAPPING_FILE]
        return named_sources([os.path.join(folder, name) for name in names_of_files])
    names = [name.strip() for name in dump_file.split(",")]
    paths = [os.path.realpath(name) for name in names if os.path.isfile(name)]
    for name in names:
        if not os.path.isfile(name):
            log("ERROR" if len(names) == 1 else "WARNING", f"{name}: expected a dump file, got nothing.")
    return named_sources(paths) if paths else ExitCode.INVALID_PATH


def _tell(result: Result) -> None:
    for problem in result.problems:
        log("ERROR" if result.code else "WARNING", problem.message)
    for path in result.written:
        log("INFO", f"{path} is written.")


def _write_failed_list(failed: list[Result], options: ConvertOptions) -> None:
    """`path`, or `path,output:0,...` of the tensors that have no way to the format of -f."""
    from msdump.formats.atomic import make_dirs, write_file

    lines = []
    for result in failed:
        tensors = [problem.tensor for problem in result.problems if problem.tensor and options.format is not None]
        lines.append(",".join([result.path, *tensors]))
    make_dirs(options.output)
    path = options.output / FAILED_LIST
    write_file(path, ["".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")], 0o600, replace=True)
    log("ERROR", f"{len(failed)} dump files could not be converted as a whole; {path} names them.")

"""`msdump convert PATH...`: every dump file below the paths as npy, bin, torch or safetensors files."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, INCOMPLETE, NOTHING
from msdump.cli.options import add_json_option, add_output_option, write_json
from msdump.cli.printing import FILES, complain, progress_bar, say
from msdump.cli.report_text import format_count
from msdump.config.environment import format_size
from msdump.errors import ConfigError

if TYPE_CHECKING:
    from msdump.analysis.convert.files import ConvertOptions, Result

_SHOWN_FAILURES = 20
_EPILOG = """
Folders keep their places below DIR. A name that is too long is recorded in mapping.csv beside the file.
`msdump msaccucmp convert` takes the command lines of CANN's tool.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Convert dump files, and all files below folders, to files that other tools read."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="a dump, any folder of one, or a file")
    add_output_option(parser, "for the results (%(default)s)", "DIR", "converted", ("-out",))
    add("-t", "--type", default="npy", choices=("npy", "bin", "msnpy", "pt", "safetensors"), help="what to write (npy)")
    add("-f", "--format", default=None, metavar="FORMAT", help="convert to NCHW, NHWC, HWCN, ND, NCDHW or FRACTAL_Z")
    add("-s", "--shape", default=None, metavar="N,N,...", help="shape without padding, where files lack it")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--output-tensor", type=int, default=None, metavar="N", help="only this output; with --format")
    side.add_argument("--input-tensor", type=int, default=None, metavar="N", help="only this input; with --format")
    add("-c", "--custom", default=None, metavar="DIR", help="folder that holds format_convert, your own converters")
    add("--threads", type=int, default=None, metavar="N", help="files at a time (one for each core, at most 8)")
    add("-q", "--quiet", action="store_true", help="only failures")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Convert; the result is the exit status that `--help` explains."""
    from msdump.analysis.convert.files import convert_files, dump_sources

    options = _options(args)
    sources = [source for path in args.paths for source in dump_sources(path, options)]
    if not sources:
        complain("msdump convert: expected dump files, found none.")
        return NOTHING
    started = time.perf_counter()
    results: list[Result] = []
    with progress_bar("convert", sys.stderr, args.quiet, FILES) as advance:
        for result in convert_files(sources, options, args.threads):
            results.append(result)
            advance(len(results), len(sources))
    failed = [result for result in results if result.problems]
    _print_failures(failed)
    if not write_json(args, lambda: _value(options, results)) and not args.quiet:
        seconds = time.perf_counter() - started
        files = sum(len(result.written) for result in results)
        written = sum(result.written_bytes for result in results)
        say(
            f"{format_count(len(sources), 'dump file')}: {format_count(files, 'file')} in {options.output}, "
            f"{format_size(written)}, {seconds:.1f} s" + (f"; {len(failed)} with failures" if failed else "")
        )
    return INCOMPLETE if failed else FINE


def _value(options: ConvertOptions, results: list[Result]) -> dict[str, Any]:
    return {
        "output": options.output,
        "files": [
            {
                "file": result.path,
                "written": result.written,
                "written_bytes": result.written_bytes,
                "problems": [{"tensor": problem.tensor, "problem": problem.message} for problem in result.problems],
            }
            for result in results
        ],
    }


def _options(args: argparse.Namespace) -> ConvertOptions:
    """Raises: ConfigError for options that do not go together."""
    from msdump.analysis.convert.files import ConvertOptions
    from msdump.analysis.convert.target_format import CustomFormats
    from msdump.analysis.exit_codes import AnalysisError

    only = None
    if args.output_tensor is not None:
        only = ("output", args.output_tensor)
    elif args.input_tensor is not None:
        only = ("input", args.input_tensor)
    try:
        shape = None if args.shape is None else tuple(int(size) for size in args.shape.split(","))
    except ValueError as error:
        raise ConfigError(f'--shape: expected numbers with commas, such as 1,3,4, got "{args.shape}".') from error
    if shape is not None and min(shape) < 1:
        raise ConfigError(f'--shape: expected sizes from 1 on, got "{args.shape}".')
    if args.threads is not None and args.threads < 1:
        raise ConfigError(f"--threads: expected a number from 1 on, got {args.threads}.")
    try:
        custom = None if args.custom is None else CustomFormats(args.custom)
        return ConvertOptions(Path(args.output), args.type, args.format, shape, only, custom)
    except AnalysisError as error:
        raise ConfigError(str(error)) from error


def _print_failures(failed: list[Result]) -> None:
    messages = [
        problem.message if result.path in problem.message else f"{os.path.basename(result.path)}: {problem.message}"
        for result in failed
        for problem in result.problems
    ]
    for message in messages[:_SHOWN_FAILURES]:
        complain(f"msdump convert: {message}")
    if len(messages) > _SHOWN_FAILURES:
        complain(f"msdump convert: and {len(messages) - _SHOWN_FAILURES} more.")

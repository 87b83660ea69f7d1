"""`msdump acl run MODEL`: an ONNX model run from the command line, with the dump that an acl.json asks for."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, NOTHING, exit_help
from msdump.cli.options import add_output_option, add_verbose_option, tell_skipped
from msdump.cli.plan import explain_acl_json
from msdump.cli.printing import HelpFormatter, print_table
from msdump.cli.report_text import conclude, print_report, print_warning, say_next_of
from msdump.errors import ConfigError, DumpError, ExecutionError, FormatError, did_you_mean
from msdump.process.command import ACL_RUN, Command, noted
from msdump.storage.plain import open_plain

if TYPE_CHECKING:
    from msdump.frontends.onnx import DeclaredTensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = actions.add_parser(
        "run",
        help="run a model",
        epilog=exit_help("acl"),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    run.add_argument("model", metavar="MODEL", help="an .onnx file")
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="an input: by its name, or in the order of the model; may be given several times",
    )
    run.add_argument(
        "--random", type=int, metavar="SEED", help="draw the inputs that are not given; open sizes become 1"
    )
    run.add_argument(
        "--dump", metavar="ACL.JSON", help="what to dump; without it statistics of everything go to ./msdump_dump"
    )
    run.add_argument("--no-dump", action="store_true", help="just run the model")
    add_output_option(run, "where the outputs go, one .npy file for each", "DIR")
    add_verbose_option(run)
    run.add_argument("--times", type=int, default=1, metavar="N", help="how often the model runs (1)")
    check = actions.add_parser(
        "check", help="check an acl.json, and explain what it dumps", formatter_class=HelpFormatter, allow_abbrev=False
    )
    check.add_argument("config", metavar="ACL.JSON")
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    """Do what the action says; the result is the exit status that `--help` explains."""
    return explain_acl_json(args.config, sys.stdout).status if args.action == "check" else _run(args)


def _run(args: argparse.Namespace) -> int:
    tell_skipped(args)
    if args.times < 1:
        raise ConfigError(f"--times: expected a number from 1, got {args.times}.")
    from msdump.cli.unconfigured import answer, says_nothing, statistics_of_models
    from msdump.dumpers.limits import check_folder
    from msdump.frontends.acl import dump, load

    if args.output is not None:
        check_folder(Path(args.output), "--output")
    default = statistics_of_models() if args.dump is None and not args.no_dump and says_nothing() else None
    config = args.dump if default is None else default.config
    scope = None if config is None else dump(config)
    outputs: dict[str, Any] = {}
    try:
        with noted(Command(ACL_RUN, (), tuple(_typed(args)), os.getcwd())), scope or contextlib.nullcontext():
            model = load(args.model)
            inputs = _inputs(args.input, args.random, model.inputs)
            for _ in range(args.times):
                outputs = model(inputs)
    except DumpError:
        pass  # the report says it
    except BaseException:
        if default is not None:
            default.remove_empty()
        # Also Ctrl-C and SIGTERM: what came before is on disk, and the user looks for it.
        report = None if scope is None else scope.report()
        if report is not None and report.files:
            print_report(report, sys.stderr)
        raise
    _show(outputs, args.output)
    if scope is None:
        return FINE
    report = scope.report()
    if report is None:
        # What is wrong with the file stands in the warnings above.
        print_warning(f"Nothing was dumped: {args.dump} selects nothing.", sys.stderr)
        return NOTHING
    print_report(report, sys.stderr)
    status = conclude([report], False, sys.stderr)
    if default is None:
        say_next_of([report], sys.stderr)
    elif report.tensors_written:
        answer([str(default.folder)])
    return status


def _typed(args: argparse.Namespace) -> Iterator[str]:
    """The model, and the options that decide what runs."""
    yield os.path.join(".", args.model) if args.model.startswith("-") else args.model
    for name in args.input:
        yield from ("--input", name)
    if args.random is not None:
        yield from ("--random", str(args.random))
    if args.times != 1:
        yield from ("--times", str(args.times))


def _inputs(given: Sequence[str], seed: int | None, specs: Sequence[DeclaredTensor]) -> dict[str, Any]:
    """Arrays by name.   Raises: FormatError for a file that is no array; ExecutionError for a name that is none."""
    import numpy as np

    spec_by_name = {spec.name: spec for spec in specs}
    names = list(spec_by_name)
    inputs: dict[str, Any] = {}
    waiting = []
    for text in given:
        name, is_named, path = text.partition("=")
        if is_named and name in names:
            inputs[name] = _read(path, spec_by_name[name])
        elif is_named and not Path(text).exists():
            raise ExecutionError(
                f"--input {text}: expected one of {', '.join(names) or 'no inputs'}, got {name}. "
                f"{did_you_mean(name, names)}".rstrip()
            )
        else:
            waiting.append(text)
    free = [name for name in names if name not in inputs]
    if len(waiting) > len(free):
        raise ExecutionError(f"--input: expected at most {len(names)} inputs ({', '.join(names)}), got {len(given)}.")
    inputs.update({name: _read(path, spec_by_name[name]) for name, path in zip(free, waiting, strict=False)})
    if seed is not None:
        rng = np.random.default_rng(seed)
        inputs.update({spec.name: _draw(rng, spec) for spec in specs if spec.name not in inputs})
    for spec in specs:
        if spec.name not in inputs:
            raise ExecutionError(
                f"--input: expected {spec.name} as {spec}, got nothing. Give {spec.name}=FILE.npy, or --random SEED."
            )
    return inputs


def _read(path: str, spec: DeclaredTensor) -> Any:
    """An input from a file. One of a dtype that .npy files do not have stands there in a wider one, as in a dump."""
    import numpy as np

    from msdump.tensors import dtypes

    try:
        with open_plain(path) as file:
            array = np.load(file, allow_pickle=False)
    except FormatError:
        raise
    except OSError as error:
        raise FormatError(f"{path}: expected an array, got {error.strerror or error}.") from error
    except (ValueError, EOFError) as error:
        # What numpy says is about pickles, for whatever is no array.
        raise FormatError(
            f"{path}: expected an array in a .npy file, got another file, one that is cut short, or Python objects. "
            "Write it with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise FormatError(f"{path}: expected one array in a .npy file, got an archive of several. Use numpy.save.")
    row = dtypes.BY_NAME.get(spec.dtype)
    if row is None or row.numpy_type is None or not row.is_widened or array.dtype.name != row.npy_name:
        return array
    narrowed = array.astype(row.numpy)
    if not np.array_equal(narrowed.astype(array.dtype), array, equal_nan=row.is_float):
        raise FormatError(f"{path}: expected {array.dtype} values that {row.name} holds exactly, got others.")
    return narrowed


def _draw(rng: Any, spec: DeclaredTensor) -> Any:
    """Standard normal numbers; small ones from 0 for integers.   Raises: ExecutionError for what is no number."""
    import numpy as np

    from msdump.tensors import dtypes

    row = dtypes.BY_NAME.get(spec.dtype)
    if row is None or row.kind == dtypes.OTHER or spec.shape is None:
        raise ExecutionError(
            f"--random: expected inputs of numbers with a number of axes, got {spec.name} as {spec}. "
            "Give it with --input."
        )
    shape = [size if isinstance(size, int) else 1 for size in spec.shape]
    if row.kind in (dtypes.INT, dtypes.UINT, dtypes.BOOL):
        return rng.integers(0, 2, shape).astype(row.numpy)
    return np.asarray(rng.standard_normal(shape)).astype(row.numpy)


def _show(outputs: Mapping[str, Any], folder: str | None) -> None:
    """A line for each output, and its file when a folder is named."""
    import numpy as np

    rows = []
    for number, (name, value) in enumerate(outputs.items()):
        if not isinstance(value, np.ndarray):
            rows.append((name, type(value).__name__, "", ""))
            continue
        path = "" if folder is None else _write(Path(folder), number, name, value)
        rows.append((name, str(value.dtype), str(list(value.shape)), path))
    print_table(("output", "dtype", "shape", "file"), rows, sys.stdout, wraps=(3,))


def _write(folder: Path, number: int, name: str, array: Any) -> str:
    """Raises: WriteError."""
    from msdump.formats.atomic import make_dirs, write_file
    from msdump.formats.npy import npy_array, numpy_chunks
    from msdump.tensors import dtypes

    make_dirs(folder)
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    path = folder / f"{number}_{plain[:200]}.npy"
    dtype = dtypes.dtype_from_numpy(array.dtype).name
    write_file(path, numpy_chunks(npy_array(array, dtype)), 0o644, replace=True)
    return str(path)

"""`msdump demo`: trains AlexNet for a few steps on real pictures, as it is and with a planted fault, and shows what
msdump says of both, and of the same fault in PyTorch where that is installed; or dumps all tensors of a step, and shows
what is there."""

from __future__ import annotations

import argparse
import importlib.resources
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from msdump.cli.exit_status import FINE, FOUND
from msdump.cli.options import add_output_option
from msdump.cli.printing import print_table, say, say_next
from msdump.config.environment import CONTAINER, DUMP_CONFIG, STRICT, UPLOAD, format_size
from msdump.errors import ConfigError, DumpError, FolderError
from msdump.formats.paths.sync import SyncPaths, parse_data_file_name, short_op_name
from msdump.formats.sidecars import read_order
from msdump.process.default_folder import numbered
from msdump.process.front_ends import front_end
from msdump.tables.messages import message

NET_NAME = "AlexNet"
SCRIPT, CONFIG, DIGITS, DUMP = "train_alexnet.py", "data_dump.json", "datasets/digits", "dump"
HEALTHY, FAULTY, FAULTY_SCRIPT, REPORT = "healthy", "faulty", "train_alexnet_faulty.py", "report.html"
# The line of the script that the planted one follows.
BEFORE_FAULT = "        x = self.flatten(x)\n"
FAULT = "        x = ops.log(x - x.mean())  # the planted fault: half of these numbers are negative\n"
_IMPORTS = "from mindspore import nn\n"
TORCH_SCRIPT, TORCH_FAULTY_SCRIPT, TORCH_FAULTY = (
    "train_alexnet_torch.py",
    "train_alexnet_torch_faulty.py",
    "faulty_torch",
)
TORCH_FAULT = FAULT.replace("ops.log", "torch.log")
# What one dumped step needs: weights and momenta before and after, gradients (five times 58.3 million floats), and what
# each picture adds. 1.27 GB were measured with a batch of 8.
STATISTICS_BYTES = 50_000_000
SPACE_BYTES = 5 * 4 * 58_300_000
SPACE_BYTES_PER_PICTURE = 13_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Train AlexNet for a few steps on real pictures, with and without a planted fault, and show what is found."
    )
    parser.add_argument("--steps", type=int, default=3, help="training steps (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8, help="pictures in each step (default %(default)s)")
    parser.add_argument("--full", action="store_true", help="dump all tensors of the first step instead, 1.2 GB")
    add_output_option(parser, "folder for everything (default %(default)s)", "DIR", "msdump_demo", ("--out",))


def run(args: argparse.Namespace) -> int:
    """Prepare data, train with a dump, show it. The result is the exit status of the first command that fails."""
    for option, number in (("--steps", args.steps), ("--batch-size", args.batch_size)):
        if number < 1:
            raise ConfigError(f"{option}: expected a number of at least 1, got {number}.")
    from msdump.dumpers.limits import why_not_writable

    folder = Path(args.output).absolute()
    if problem := why_not_writable(folder):
        raise FolderError(f"--output: {problem}")
    training = ["--data_path", DIGITS, "--steps", str(args.steps), "--batch_size", str(args.batch_size)]
    return (_show_tensors if args.full else _show_fault)(folder, training, args.batch_size)


def _show_fault(folder: Path, training: list[str], _: int) -> int:
    """Two runs, and the report of the second one."""
    _prepare(folder, STATISTICS_BYTES)
    source = (folder / SCRIPT).read_text(encoding="utf-8")
    faulty = source.replace(BEFORE_FAULT, BEFORE_FAULT + FAULT, 1).replace(_IMPORTS, f"{_IMPORTS[:-1]}, ops\n", 1)
    (folder / FAULTY_SCRIPT).write_text(faulty, encoding="utf-8")
    line = faulty[: faulty.index(FAULT)].count("\n") + 1
    healthy_dump, faulty_dump = (_unused(folder, name).name for name in (HEALTHY, FAULTY))
    say(f"In {folder}, in about a minute:")
    status = _run(folder, ["run", "--out", healthy_dump, SCRIPT, *training])
    if status == FINE:
        say(f"\nThe same with a fault, in line {line} of {FAULTY_SCRIPT}:\n  {FAULT.strip()}\n")
        status = _run(folder, ["run", "--out", faulty_dump, FAULTY_SCRIPT, *training])
    if status == FINE:
        say()
        status = _run(folder, ["report", faulty_dump, "-o", REPORT])
    if status == FINE:
        say(f"\nOpen it in a browser: {(folder / REPORT).as_uri()}")
    if status == FINE and importlib.util.find_spec("torch") is not None:
        status = _show_torch(folder, training)
    if status == FINE:
        say("\nNow your own: msdump run train.py")
    return status


def _show_torch(folder: Path, training: list[str]) -> int:
    """The same fault in the same training with PyTorch: the finding alone."""
    source = (folder / TORCH_SCRIPT).read_text(encoding="utf-8")
    (folder / TORCH_FAULTY_SCRIPT).write_text(
        source.replace(BEFORE_FAULT, BEFORE_FAULT + TORCH_FAULT), encoding="utf-8"
    )
    dump = _unused(folder, TORCH_FAULTY).name
    say("\nThe same training and fault with PyTorch:\n")
    status = _run(folder, ["run", "--out", dump, TORCH_FAULTY_SCRIPT, *training], is_silent=True)
    if status == FINE:
        say()
        status = _run(folder, ["nan", "--brief", dump], found=2)
    return status


def _show_tensors(folder: Path, training: list[str], batch_size: int) -> int:
    """One step with all tensors, and where they are."""
    dump = _unused(_prepare(folder, SPACE_BYTES + SPACE_BYTES_PER_PICTURE * batch_size), DUMP)
    (folder / CONFIG).write_text(_configuration(dump), encoding="utf-8")
    say(f"In {folder}:")
    status = _run(folder, ["run", "--config", CONFIG, SCRIPT, *training])
    if status != FINE:
        return status
    say("\nDumped in the first step:")
    print_summaries(summaries(dump, NET_NAME), sys.stdout)
    say(f"\nWhere to look next, from {folder}:")
    say(find_example(dump, NET_NAME, folder))
    from msdump.analysis.find.hints import command_line

    name = str(dump.relative_to(folder))
    say_next(
        [
            (command_line("nan", name), message("the first NaN or Inf")),
            (command_line("report", name), message("all of it as a page")),
        ]
    )
    return FINE


def _run(folder: Path, command: list[str], is_silent: bool = False, found: int | None = None) -> int:
    """Say a command of msdump and run it.

    is_silent  what it prints is shown where it fails alone
    found      only so many lines of its answer, which a finding is no failure of
    """
    say(f"$ msdump {' '.join(command)}", flush=True)
    is_shown = not is_silent and found is None
    done = subprocess.run(
        [sys.executable, "-m", "msdump", *command],
        cwd=folder, env=_environment(), check=False, text=True, errors="backslashreplace",
        stdout=None if is_shown else subprocess.PIPE, stderr=None if is_shown else subprocess.STDOUT,
    )  # fmt: skip
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    if found is not None and status == FOUND:
        status = FINE
        say("\n".join(done.stdout.splitlines()[:found]))
    elif not is_shown and status != FINE:
        say(done.stdout)
    return status


def _prepare(folder: Path, needed_bytes: int) -> Path:
    """Write pictures and script.   Returns: the folder

    Raises: ConfigError (no scikit-learn, no space on the disk), FolderError.
    """
    from msdump.dumpers.limits import disk_usage

    free_bytes = disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise ConfigError(
            f"{folder}: expected {needed_bytes / 1e9:.2g} GB of free space for the dump, got "
            f"{free_bytes / 1e9:.2g} GB. Use --output to choose another disk."
        )
    front_end("mindspore", "dataset.digits").write_digits_as_cifar10(folder / DIGITS)
    try:
        for name in (SCRIPT, TORCH_SCRIPT):
            source = importlib.resources.files("msdump.cli.samples").joinpath(name)
            (folder / name).write_bytes(source.read_bytes())
    except OSError as error:
        raise FolderError(f"{folder}: expected to write the demo there, got {error.strerror}. Try --output.") from error
    return folder


def _unused(folder: Path, name: str) -> Path:
    """A dump folder that no earlier demo has filled: dump, dump_2, dump_3, ..."""
    return next(dump for dump in numbered(folder / name) if not dump.exists())


def _configuration(dump: Path) -> str:
    settings = {
        "dump_mode": 0,
        "path": str(dump),
        "net_name": NET_NAME,
        "iteration": "0",
        "saved_data": "full",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    }
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    return json.dumps(config, indent=4) + "\n"


def _environment() -> dict[str, str]:
    """The environment with this very msdump first, also when it is not installed. The tour leads to files of a folder,
    with a configuration that the strict mode refuses."""
    home = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    unset = (STRICT, CONTAINER, UPLOAD, DUMP_CONFIG)
    return {name: value for name, value in os.environ.items() if name not in unset} | {"PYTHONPATH": path}


LINE = "x = self.conv3(x)"
PARAMETER_TYPE = "Parameter"  # how the layout calls the operator type of graph inputs
_OPERATOR = "conv3-Conv2d/Conv2D-op"
_TITLES = ("operator type", "operators", "files", "bytes")


@dataclass
class TypeSummary:
    """Files of all operators of one type; the type of parameters has files but no operators."""

    op_type: str
    operators: set[str] = field(default_factory=set)
    files: int = 0
    size_bytes: int = 0


def summaries(dump: Path, net_name: str) -> list[TypeSummary]:
    """Operator types of the first dumped iteration, largest first."""
    by_type: dict[str, TypeSummary] = {}
    with os.scandir(SyncPaths(dump, 0, net_name).data_dir(0, 0)) as entries:
        for entry in entries:
            name = parse_data_file_name(entry.name)
            if name is not None:
                summary = by_type.setdefault(name.op_type, TypeSummary(name.op_type))
                if name.op_type != PARAMETER_TYPE:
                    summary.operators.add(name.op_name)
                summary.files += 1
                summary.size_bytes += entry.stat().st_size
    return sorted(by_type.values(), key=lambda summary: (-summary.size_bytes, summary.op_type))


def find_example(dump: Path, net_name: str, start: Path) -> str:
    """Lines that lead from a line of the script to the operator and to the file with its result.

    Raises: DumpError when the dump does not hold it.
    """
    paths = SyncPaths(dump, 0, net_name)
    names = [
        name for name in read_order(paths.order_file(0)) if _OPERATOR in name and not name.startswith("Gradients/")
    ]
    files = [
        file for name in names for file in paths.data_dir(0, 0).glob(f"Conv2D.{short_op_name(name)}.*.output.0.*.npy")
    ]
    graph = paths.graph_file(0, "ir")
    lines = [number for number, text in enumerate(graph.read_text(encoding="utf-8").splitlines(), 1) if LINE in text]
    if not files or not lines:
        raise DumpError(
            f"{dump}: expected the operator of {LINE!r} in the graph and on disk, got no such file or line."
        )
    shown_file, shown_graph = (os.path.relpath(path, start) for path in (files[0], graph))
    return (
        f"  the operator of `{LINE}`, with its inputs, attributes and source line:\n"
        f"    {shown_graph}:{lines[0]}\n"
        f"  what it computed in the first step:\n"
        f'    numpy.load("{shown_file}")\n'
        f"  minimum, maximum, mean, NaN count, ... of every tensor:\n"
        f"    {os.path.relpath(paths.statistic_file(0, 0), start)}"
    )


def _cells(title: str, operators: int, files: int, size_bytes: int) -> tuple[str, str, str, str]:
    return title, str(operators or "-"), str(files), format_size(size_bytes)


def print_summaries(rows: list[TypeSummary], stream: TextIO) -> None:
    """Write the summaries and their total as a table."""
    cells = [_cells(row.op_type, len(row.operators), row.files, row.size_bytes) for row in rows]
    total = _cells(
        "total",
        sum(len(row.operators) for row in rows),
        sum(row.files for row in rows),
        sum(row.size_bytes for row in rows),
    )
    print_table(_TITLES, [*cells, total], stream, numbers=(1, 2, 3), named=range(4), styles={len(cells): "bold"})

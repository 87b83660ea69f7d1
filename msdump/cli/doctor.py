"""`msdump doctor [DIR]`: what an issue should say of a machine and of a dump: versions, disk, environment."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msdump._version import __version__
from msdump.cli.exit_status import FINE, FOUND
from msdump.cli.options import add_json_option, write_json
from msdump.cli.printing import complain, print_table, say
from msdump.config.environment import (
    MS_ADDRESS,
    TORCH_ADDRESS,
    VARIABLES,
    Environment,
    async_buffer,
    container,
    disk_limits,
    format_size,
    is_native_used,
    is_serving_watched,
    kernels,
    upload_address,
)
from msdump.errors import ConfigError

# What msdump reads, runs on, or is asked about in issues.
PACKAGES = (
    "numpy", "ml_dtypes", "pydantic", "protobuf", "numba", "torch", "onnx", "onnxruntime", "mindspore", "torch-npu",
    "mindstudio-probe", "msdump-native", "pyarrow", "duckdb", "rich", "starlette", "uvicorn",
)  # fmt: skip
_ADDRESSES = (TORCH_ADDRESS, MS_ADDRESS)
_PROBE_BYTES = 64 << 20
Row = tuple[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Say what an issue should say: versions, processor, speed and room of the disk, environment variables, and "
        "what is wrong with them. Folders, and the names of the user and the machine, are left out."
    )
    parser.epilog = "The speed of the disk is measured with a file of 64 MiB, which is removed."
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", default=".", help="a dump, or the folder of one to come (.)"
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Look around; the result is the exit status that `--help` explains."""
    from msdump.viewing.redaction import redacted

    if not os.path.isdir(args.folder):
        raise ConfigError(f"DIR: expected a folder, got {args.folder}. Make it, or leave it out for the current one.")
    problems: list[str] = []
    sections = {
        "versions": _versions(),
        "machine": _machine(),
        "disk": _disk(args.folder, problems),
        "dump": _dump(args.folder),
        "native": _native(problems),
        "environment": _environment(problems),
    }
    plain = {name: [list(row) for row in rows] for name, rows in sections.items()}
    value = redacted({**plain, "problems": problems}, args.folder)
    told = value.pop("problems")
    if not write_json(args, lambda: {**{name: dict(rows) for name, rows in value.items()}, "problems": told}):
        for name, rows in value.items():
            if rows:
                print_table((), rows, sys.stdout, heading=f"{name}:")
                say()
    for problem in told:
        complain(f"problem: {problem}")
    return FOUND if problems else FINE


def _versions() -> list[Row]:
    rows = [("msdump", __version__), ("Python", f"{platform.python_version()} ({platform.python_implementation()})")]
    missing = []
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            if name != "msdump-native":  # it may be built instead, of which `_native` tells
                missing.append(name)
    return [*rows, ("not installed", ", ".join(missing))] if missing else rows


def _native(problems: list[str]) -> list[Row]:
    """Whether compiled code sees the operators of eager PyTorch; nothing without PyTorch, and where it is off."""
    if importlib.util.find_spec("torch") is None or not _uses_native():
        return []
    from msdump.frontends.torch.eager.native import lacks_native, native_sentence

    sentence = native_sentence()
    if sentence and not lacks_native():
        problems.append(f"{sentence}.")
    return [("msdump-native", sentence or "is used for dumps of eager PyTorch")]


def _uses_native() -> bool:
    try:
        return is_native_used()
    except ConfigError:
        return False  # `_environment` says so


def _machine() -> list[Row]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = [("system", f"{platform.system()} {platform.release()} {platform.machine()}"), ("cores", str(cores))]
    for label, key in (("processor", "model name"), ("memory", "MemTotal"), ("free memory", "MemAvailable")):
        path = "/proc/cpuinfo" if label == "processor" else "/proc/meminfo"
        text = _value_in(path, key)
        if text is not None:
            rows.append((label, format_size(int(text.split()[0]) << 10) if text.endswith(" kB") else text))
    return rows


def _value_in(path: str, key: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(key)), None)
    except OSError:
        return None


def _disk(folder: str, problems: list[str]) -> list[Row]:
    status = os.statvfs(folder)
    rows = [("room", format_size(status.f_bavail * status.f_frsize))]
    try:
        seconds = _write_seconds(folder)
        rows.append(("writes", f"{format_size(int(_PROBE_BYTES / seconds))} a second, with fsync"))
    except OSError as error:
        problems.append(f"disk: expected a folder to write into, got: {error.strerror}. Choose another path.")
    return rows


def _write_seconds(folder: str) -> float:
    # Bytes that no file system can squeeze.
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(_PROBE_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - began


def _dump(folder: str) -> list[Row]:
    from msdump.formats.dump_dir import DumpDir

    dump = DumpDir.open(folder)
    folders = [folder for folder in dump.folders() if folder.levels.iteration is not None]
    if not folders:
        return []
    all_levels = [folder.levels for folder in folders]
    ranks = sorted({levels.rank_id for levels in all_levels if levels.rank_id is not None})
    return [
        ("ranks", str(len(ranks))),
        ("graphs", str(len({(levels.model, levels.graph_id) for levels in all_levels}))),
        ("iterations", str(len({levels.iteration for levels in all_levels}))),
        ("layouts", ", ".join(sorted({str(levels.grammar) for levels in all_levels}))),
        ("files", str(sum(len(folder.names) for folder in folders))),
    ]


def _environment(problems: list[str]) -> list[Row]:
    for read in (
        _read_plan,
        disk_limits,
        kernels,
        async_buffer,
        container,
        upload_address,
        is_serving_watched,
        is_native_used,
    ):
        try:
            read()
        except ConfigError as error:
            problems.append(str(error))
    # An address tells nothing of what goes wrong.
    return [(name, "set" if name in _ADDRESSES else os.environ[name]) for name in VARIABLES if name in os.environ]


def _read_plan() -> Any:
    from msdump.config.mindspore import plan_mindspore

    return plan_mindspore(Environment.from_os(), "CPU", None)

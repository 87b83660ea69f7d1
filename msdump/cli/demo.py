"""`msdump demo`: trains AlexNet for a few steps on real pictures, dumps the first step, and shows what is there."""

from __future__ import annotations

import argparse
import importlib.resources
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from msdump.cli.demo_report import find_example, print_summaries, summaries
from msdump.cli.main import COMMANDS
from msdump.cli.printing import say
from msdump.config.environment import STRICT
from msdump.errors import ConfigError, WriteError

NET_NAME = "AlexNet"
SCRIPT, CONFIG, DIGITS, DUMP = "train_alexnet.py", "data_dump.json", "datasets/digits", "dump"
# What one dumped step needs: weights and momenta before and after, gradients (five times 58.3 million floats), and what
# each picture adds. 1.27 GB were measured with a batch of 8.
SPACE_BYTES = 5 * 4 * 58_300_000
SPACE_BYTES_PER_PICTURE = 13_000_000


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = subparsers.add_parser("demo", help=COMMANDS["demo"], description=__doc__, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=3, help="training steps (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8, help="pictures in each step (default %(default)s)")
    parser.add_argument(
        "--out", metavar="DIR", default="msdump_demo", help="folder for everything (default %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Prepare data, train with a dump, show it. The result is the exit status of the training."""
    for option, number in (("--steps", args.steps), ("--batch-size", args.batch_size)):
        if number < 1:
            raise ConfigError(f"{option}: expected a number of at least 1, got {number}.")
    folder = Path(args.out).absolute()
    dump = _prepare(folder, args.batch_size)
    command = ["run", "--config", CONFIG, SCRIPT, "--data_path", DIGITS]
    command += ["--steps", str(args.steps), "--batch_size", str(args.batch_size)]
    say(f"In {folder}:\n$ msdump {' '.join(command)}", flush=True)
    status = subprocess.run(
        [sys.executable, "-m", "msdump", *command], cwd=folder, env=_environment(), check=False
    ).returncode
    if status != 0:
        return status if status > 0 else 128 - status
    say("\nDumped in the first step:")
    print_summaries(summaries(dump, NET_NAME), sys.stdout)
    say(f"\nWhere to look next, from {folder}:")
    say(find_example(dump, NET_NAME, folder))
    return 0


def _prepare(folder: Path, batch_size: int) -> Path:
    """Write pictures, script and configuration; the result is the folder of the dump.

    Raises: ConfigError (no scikit-learn, no room), WriteError.
    """
    from msdump.frontends.mindspore.dataset.digits import write_digits_as_cifar10

    write_digits_as_cifar10(folder / DIGITS)
    try:
        free_bytes = shutil.disk_usage(folder).free
        dump = _unused(folder)
        source = importlib.resources.files("msdump.samples").joinpath(SCRIPT)
        (folder / SCRIPT).write_bytes(source.read_bytes())
        (folder / CONFIG).write_text(_configuration(dump), encoding="utf-8")
    except OSError as error:
        raise WriteError(f"{folder}: expected to write the demo there, got {error.strerror}. Try --out.") from error
    needed_bytes = SPACE_BYTES + SPACE_BYTES_PER_PICTURE * batch_size
    if free_bytes < needed_bytes:
        raise ConfigError(
            f"{folder}: expected {needed_bytes / 1e9:.1f} GB of free space for one dumped step, got "
            f"{free_bytes / 1e9:.1f} GB. Use --out to choose another disk."
        )
    return dump


def _unused(folder: Path) -> Path:
    """A dump folder that no earlier demo has filled: dump, dump_2, dump_3, ..."""
    number, dump = 1, folder / DUMP
    while dump.exists():
        number += 1
        dump = folder / f"{DUMP}_{number}"
    return dump


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
    """The environment with this very msdump first, also when it is not installed, and without the strict mode."""
    home = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    return {name: value for name, value in os.environ.items() if name != STRICT} | {"PYTHONPATH": path}

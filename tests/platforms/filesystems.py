"""Small dumps on file systems that offer or refuse links and flags: python tests/platforms/filesystems.py FOLDER...

Each folder gets a synchronous dump (npy, statistic.csv) and an asynchronous one (bin) of the same short training; their
tensors and statistics are compared with those of a dump in the folder for temporary files. What is
written is removed again. Exit status: 0 when all dumps are complete and equal, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import mmap
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from msdump.formats.direct import filesystem_type  # noqa: E402
from msdump.formats.dump_dir import DumpDir  # noqa: E402
from msdump.formats.statistic_csv import read_statistic_csv  # noqa: E402

# A weight takes 2 MiB, enough for writes past the page cache.
SCRIPT = """
import numpy as np
import mindspore as ms
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(512, 1024)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(1024, 4)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))

ms.set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
rng = np.random.default_rng(0)
x = ms.Tensor(rng.standard_normal((16, 512)).astype(np.float32))
label = ms.Tensor(rng.integers(0, 4, 16).astype(np.int32))
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
for _ in range(2):
    step(x, label)
"""
KINDS = ("sync npy", "async bin")
# What a folder may refuse: name -> (flag of open or None for hard links, error of systems without it).
REFUSALS = {
    "hard links": (0, errno.EPERM),
    "O_TMPFILE": (os.O_TMPFILE, errno.EOPNOTSUPP),
    "O_DIRECT": (os.O_DIRECT, errno.EINVAL),
}
WAYS: tuple[tuple[str, ...], ...] = ((), *((name,) for name in REFUSALS), tuple(REFUSALS))
Content = dict[tuple[object, ...], object]


def refuse(name: str) -> Counter[str]:
    """Let this process meet a file system without hard links, O_TMPFILE or O_DIRECT; counts the calls refused."""
    flag, number = REFUSALS[name]
    real_open: Callable[..., int] = os.open
    calls: Counter[str] = Counter()

    def fail(*_: object, **__: object) -> None:
        calls[name] += 1
        raise OSError(number, os.strerror(number))

    def open_without(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & flag == flag:
            fail()
        return real_open(path, flags, *rest, **options)

    if flag:
        os.open = open_without
    else:
        os.link = fail
    return calls


def run_refused(folder: Path, names: Sequence[str]) -> None:
    """Run the training in this process; leaves the number of calls that were refused in `folder`/refused."""
    counts = [refuse(name) for name in names]
    sys.argv = ["msdump", "run", "--config", str(folder / "dump.json"), str(folder / "train.py")]
    try:
        runpy.run_module("msdump", run_name="__main__")
    finally:
        (folder / "refused").write_text(str(sum(count.total() for count in counts)))


def dump(folder: Path, kind: str, refused: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run the training in a process of its own, with its dump in `folder`."""
    folder.mkdir()
    common = {
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "full" if kind == "sync npy" else "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **({} if kind == "sync npy" else {"file_format": "bin"}),
    }
    settings = {"common_dump_settings": common, "e2e_dump_settings": {"enable": kind == "sync npy", "trans_flag": True}}
    (folder / "dump.json").write_bytes(os.fsencode(json.dumps(settings, ensure_ascii=False)))
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, str(Path(__file__)), "--refuse", ",".join(refused), "--run", str(folder)]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def content(folder: Path) -> Content:
    """Tensors and rows of statistics, without their time stamps.   Raises: FormatError for a damaged file."""
    tensors: Content = {}
    for tensor in DumpDir.open(folder, strict=True).tensors():
        values = tensor.load()
        key = (tensor.iteration, tensor.op_type, tensor.op_name, tensor.task_id, tensor.io, tensor.slot_text)
        tensors[key] = (values.dtype.str, values.shape, values.tobytes())
    for path in sorted(folder.rglob("statistic.csv")):
        for number, row in enumerate(read_statistic_csv(path)):
            tensors[path.parent.name, number] = str(replace(row, timestamp_us=0))
    return tensors


def offers(folder: Path) -> dict[str, bool]:
    """Which of `REFUSALS` the folder's file system has, tried with plain system calls."""
    result = {}
    with contextlib.suppress(OSError):
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o400))
        result["O_TMPFILE"] = True
    plain, second = folder / "plain", folder / "second"
    plain.write_bytes(b"")
    with contextlib.suppress(OSError):
        os.link(plain, second)
        result["hard links"] = True
    with contextlib.suppress(OSError), mmap.mmap(-1, mmap.PAGESIZE) as page:
        fd = os.open(plain, os.O_DIRECT | os.O_WRONLY)
        try:
            result["O_DIRECT"] = os.write(fd, page) == len(page)
        finally:
            os.close(fd)
    for path in (plain, second):
        path.unlink(missing_ok=True)
    return {name: result.get(name, False) for name in REFUSALS}


def try_way(folder: Path, kind: str, refused: tuple[str, ...], expected: Content) -> tuple[bool, str]:
    """One dump: whether it is right, and what it is in words."""
    done = dump(folder, kind, refused)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return False, f"exit status {done.returncode}: {lines[-1] if lines else 'no message'}"
    status = [path.stat() for path in (folder / "dump").rglob("*") if path.is_file()]
    modes = " ".join(sorted({f"{one.st_mode & 0o777:04o}" for one in status}))
    links = len(status) - len({one.st_ino for one in status})
    is_right = content(folder / "dump") == expected
    refused_calls = f", {(folder / 'refused').read_text()} calls refused" if refused else ""
    words = f"{len(status)} files, {links} hard links, modes {modes}{refused_calls}"
    return is_right, f"{'equal' if is_right else 'DIFFERENT'}, {words}"


def try_folder(folder: Path, expected: dict[str, Content]) -> Iterator[bool]:
    """Print what each way of dumping does there; whether it is right."""
    system = filesystem_type(os.stat(folder).st_dev) or "unknown"
    has = ", ".join(f"{name} {'yes' if is_there else 'no'}" for name, is_there in offers(folder).items())
    print(f"{folder} ({system}): {has}", flush=True)
    for kind in KINDS:
        for refused in WAYS:
            place = folder / "msdump-trial"
            try:
                is_right, words = try_way(place, kind, refused, expected[kind])
            finally:
                shutil.rmtree(place, ignore_errors=True)
            print(f"  {kind}, {'without ' + ', '.join(refused) if refused else 'as it is'}: {words}", flush=True)
            yield is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--refuse", default="", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run_refused(args.run, [name for name in args.refuse.split(",") if name])
        return 0
    for folder in args.folders:
        if not folder.is_dir():
            parser.error(f"{folder}: expected a folder, got none. Mount the file system there first.")
    with tempfile.TemporaryDirectory() as name:
        expected = {}
        for kind in KINDS:
            done = dump(Path(name, kind), kind, ())
            if done.returncode:
                sys.exit(f"{name}: expected a complete dump to compare with, got:\n{done.stderr}")
            expected[kind] = content(Path(name, kind, "dump"))
        results = [is_right for folder in args.folders for is_right in try_folder(folder.resolve(), expected)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The tests that compute, as they would run on other machines: `python tests/check.py --machines [NAME ...]`.

A variant is another processor (the libraries are told to use older instructions), fewer cores, less shared memory, or
another way to be started. What this machine cannot play is said, with the reason.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Everything but pages, samples and browsers: they start many processes, and compute nothing that other tests do not.
_TESTS = (
    "--ignore=tests/test_docs.py",
    "--ignore=tests/browser",
    "--ignore-glob=*/test_sample_*.py",
    "--ignore=tests/cli/test_demo.py",
)
_SMALL_SHM = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'


@dataclass(frozen=True)
class Processor:
    """One generation of x86-64, in the spelling of each library that chooses instructions at run time.

    numpy_keeps   levels of numpy's dispatch that stay on; all others of this build are switched off
    flag          the flag in /proc/cpuinfo that a machine needs to play this one
    """

    openblas: str
    numpy_keeps: tuple[str, ...]
    aten: str
    onednn: str
    numba: str
    flag: str

    def environment(self) -> dict[str, str]:
        return {
            "OPENBLAS_CORETYPE": self.openblas,
            "NPY_DISABLE_CPU_FEATURES": " ".join(_numpy_levels(self.numpy_keeps)),
            "ATEN_CPU_CAPABILITY": self.aten,
            "ONEDNN_MAX_CPU_ISA": self.onednn,
            "NUMBA_CPU_NAME": self.numba,
            "NUMBA_CPU_FEATURES": "",
        }


@dataclass(frozen=True)
class Variant:
    """One way to run the tests.

    environment   variables to set; None removes one
    prefix        a command that runs the rest of its command line in another setting
    is_elsewhere  whether a copy of the checkout runs, in a folder whose name has blanks and letters beyond ASCII
    has_mindspore  whether the stand-in for MindSpore and its tests are in the tree; False makes a copy
    tests         the folders of tests to run; all where none is named
    has_lowest_versions  whether the lowest Python and versions of packages that setup.cfg allows run the tests
    """

    name: str
    processor: Processor | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    umask: int = -1
    is_elsewhere: bool = False
    is_shuffled: bool = False
    has_mindspore: bool = True
    tests: Sequence[str] = ()
    has_lowest_versions: bool = False


_HASWELL = Processor("Haswell", ("X86_V2", "X86_V3", "AVX2", "FMA3"), "avx2", "AVX2", "haswell", "avx2")
_NEHALEM = Processor("Nehalem", ("X86_V2",), "default", "SSE41", "nehalem", "sse4_2")
_SKYLAKE_X = Processor(
    *("SkylakeX", ("X86_V2", "X86_V3", "X86_V4", "AVX2", "FMA3", "AVX512F", "AVX512CD", "AVX512_SKX")),
    *("avx512", "AVX512_CORE", "skylake-avx512", "avx512bw"),
)
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")

VARIANTS = (
    Variant("haswell", _HASWELL),
    Variant("nehalem", _NEHALEM),
    Variant("skylake-x", _SKYLAKE_X),
    Variant("one-core", prefix=("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))),
    Variant("small-shm", prefix=(*_NAMESPACE, "sh", "-c", _SMALL_SHM, "sh")),
    Variant("c-locale", environment={"LC_ALL": "C", "LANG": None}),
    Variant("umask-077", umask=0o077),
    Variant("no-home", environment={"HOME": None, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None}),
    Variant("other-user", prefix=("unshare", "--user", "--map-user=65534", "--map-group=65534")),
    Variant("other-path", is_elsewhere=True),
    Variant("random-order", is_shuffled=True),
    Variant("without-mindspore", has_mindspore=False),
    Variant("lowest-versions", has_lowest_versions=True),
)


def variants_of_commit() -> tuple[Variant, ...]:
    """The variant whose turn this commit is (without git, the first), in two halves.

    The tests of all but the stand-in for MindSpore run in a tree without it, those of the stand-in in the whole tree:
    so each commit shows, in the time of one run, that the rest does without it.
    """
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    turn = VARIANTS[int(done.stdout.strip() or "0", 16) % len(VARIANTS)]
    if not turn.has_mindspore:
        return (turn,)
    rest = replace(turn, name=f"{turn.name}, without-mindspore", has_mindspore=False)
    return rest, replace(turn, tests=("tests/mindspore",))


def run_machines(variants: Sequence[Variant], processes: str, has_slow: bool = True) -> int:
    """Run the tests under each variant, those marked slow too; 0 when none failed."""
    results: dict[str, str] = {}
    for variant in variants:
        print(f"== {variant.name}", flush=True)
        started = time.monotonic()
        reason = _reason_to_skip(variant)
        if reason:
            results[variant.name] = f"not run: {reason}"
            continue
        status = _run(variant, processes, has_slow)
        if isinstance(status, str):
            results[variant.name] = f"not run: {status}"
            continue
        results[variant.name] = f"{'passed' if status == 0 else 'FAILED'}, {time.monotonic() - started:.0f} s"
    for name, result in results.items():
        print(f"== {name}: {result}", flush=True)
    return 1 if any(result.startswith("FAILED") for result in results.values()) else 0


def _run(variant: Variant, processes: str, has_slow: bool) -> int | str:
    """Status of the tests; the reason where they cannot run."""
    if variant.has_lowest_versions:
        with tempfile.TemporaryDirectory() as folder:
            reason = _install_lowest(Path(folder))
            return reason or _run_tests(variant, [f"{folder}/bin/python"], processes, has_slow)
    return _run_tests(variant, [sys.executable], processes, has_slow)


def _install_lowest(folder: Path) -> str:
    """Make an environment as CONTRIBUTING.md says; why it cannot be made, "" where it was."""
    commands = [
        ["python3.10", "-m", "venv", str(folder)],
        [f"{folder}/bin/pip", "install", "--quiet", "-c", "tests/lowest.txt", "-e", ".[test]"],
    ]
    for command in commands:
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        except FileNotFoundError:
            return f"{command[0]} is not installed"
        if done.returncode:
            return f"{command[0]}: {done.stderr.strip()[-300:]}"
    return ""


def _run_tests(variant: Variant, python: Sequence[str], processes: str, has_slow: bool) -> int:
    environment: dict[str, str | None] = {**os.environ, **variant.environment}
    if variant.processor is not None:
        environment |= variant.processor.environment()
    command = [*python, "-m", "pytest", "-q", "-n", processes, "--dist", "loadfile", *_TESTS, *variant.tests]
    if not has_slow:
        command += ["-m", "not slow"]
        environment.setdefault("TEST_EXAMPLES", "20")  # of each property; all of them before a release
    if variant.is_shuffled:
        seed = random.SystemRandom().randrange(2**32)
        command += ["-p", "randomly", f"--randomly-seed={seed}", f"--hypothesis-seed={seed}"]
    with _checkout(variant, environment) as folder:
        return subprocess.run(
            [*variant.prefix, *command],
            cwd=folder,
            env={name: value for name, value in environment.items() if value is not None},
            umask=variant.umask,
        ).returncode


@contextmanager
def _checkout(variant: Variant, environment: dict[str, str | None]) -> Iterator[Path]:
    """The folder where the tests run: this checkout, or a copy of it elsewhere."""
    if not variant.is_elsewhere and variant.has_mindspore:
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / ("a folder – überall 文件" if variant.is_elsewhere else "folder")
        left_out = shutil.ignore_patterns(".git", ".venv", "venv", "build", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, folder / "msdump", ignore=left_out, symlinks=True)
        if not variant.has_mindspore:
            for part in ("msdump", "tests"):
                shutil.rmtree(folder / "msdump" / part / "mindspore")
        (folder / "tmp").mkdir()
        environment |= {"PYTHONPATH": str(folder / "msdump"), "TMPDIR": str(folder / "tmp")}
        yield folder / "msdump"


def _reason_to_skip(variant: Variant) -> str | None:
    """Why this machine cannot play the variant; None when it can."""
    if variant.processor is not None:
        info = Path("/proc/cpuinfo")
        flags = info.read_text(encoding="ascii", errors="replace").split() if info.exists() else []
        if variant.processor.flag not in flags:
            return f"this processor has no {variant.processor.flag}"
    if variant.prefix:
        try:
            done = subprocess.run([*variant.prefix, "true"], capture_output=True, text=True)
        except FileNotFoundError:
            return f"{variant.prefix[0]} is not installed"
        if done.returncode:
            return done.stderr.strip()
    return None


def _numpy_levels(kept: Sequence[str]) -> list[str]:
    """Names that this build of numpy would choose from at run time, without the kept ones."""
    import numpy as np

    core = getattr(np, "_core", None) or np.core
    return [name for name in core._multiarray_umath.__cpu_dispatch__ if name not in kept]

"""The tests against an installed wheel: `python -m tests.wheel [--small] [PYTHON ...] [-- OPTIONS]`.

The last commit becomes a source distribution, that a wheel, and the wheel is installed into a fresh environment of each
Python. The tests then run in the source distribution without its package, so that what they import is the wheel's.

python -m tests.wheel                            all but the slow tests, on each Python that setup.cfg names
python -m tests.wheel --small python3.12         what `pip install msdump` without extras must do, in a minute
python -m tests.wheel python3.11 -- tests/cli    options and paths for pytest
python -m tests.wheel --pip "-c tests/lowest.txt" python3.10
                                                 with the lowest versions of all packages
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What a wheel can lack, and what each user has: data files, pages, entry points, scripts, every writer and reader.
SMALL = (
    "tests/test_tiny.py",
    "tests/test_public_api.py",
    "tests/test_imports.py",
    "tests/test_tables.py",
    "tests/cli/test_docs_search.py",
    "tests/cli/test_completion.py",
    "tests/formats/test_npy.py",
    "tests/formats/test_dump_dir.py",
    "tests/analysis/test_dump.py",
)
# They are about the sources in a clone, which an installed package has not.
_OF_A_CLONE = ("--ignore=tests/mutation", "--ignore=tests/browser", "--ignore=tests/test_packaging.py")
# With them `import msdump` would find another one.
_FRESH = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
_WHERE = "import msdump, sys; print(msdump.__file__); sys.exit(not msdump.__file__.startswith(sys.prefix))"


class WheelError(Exception):
    """The wheel cannot be built or installed; the text says what failed."""


def supported_pythons() -> list[str]:
    """("python3.10", ...) of the classifiers in setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    found = re.findall(r"Python :: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)
    return [f"python{version}" for version in found]


def interpreter(name: str) -> str | None:
    """A program that runs, for a name such as "python3.12": on PATH, or the newest one that pyenv has; or for a path.

    Edges: None where there is none.
    """
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    release = re.compile(re.escape(name.removeprefix("python")) + r"\.([0-9]+)")
    found = (release.fullmatch(path.name) for path in versions.glob("*"))
    newest = sorted(filter(None, found), key=lambda match: int(match[1]), reverse=True)
    candidates = [shutil.which(name), *(str(versions / match[0] / "bin" / "python") for match in newest)]
    for candidate in filter(None, candidates):
        # pyenv has a program on PATH for each Python, which fails for those that are not chosen.
        if subprocess.run([candidate, "--version"], capture_output=True).returncode == 0:
            return candidate
    return None


def build(folder: Path) -> tuple[Path, Path]:
    """(source distribution, wheel) of the last commit, the wheel built from the other.   Raises: WheelError."""
    clone = folder / "clone"
    _run(["git", "clone", "--quiet", str(ROOT), str(clone)], folder)
    _run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(clone)], folder)
    (source,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return source, wheel


def tree_without_package(source: Path, folder: Path) -> Path:
    """Unpack a source distribution and remove its package: the tests, and what they read."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    tree = folder / source.name.removesuffix(".tar.gz")
    shutil.rmtree(tree / "msdump")
    return tree


def install(python: str, wheel: Path, folder: Path, is_small: bool, options: Sequence[str] = ()) -> Path:
    """Make an environment with the wheel; its interpreter.   Raises: WheelError."""
    _run([python, "-m", "venv", str(folder)], ROOT)
    own = folder / "bin" / "python"
    wanted = [str(wheel), "pytest", "pytest-xdist", "hypothesis"] if is_small else [f"{wheel}[test]"]
    _run([str(own), "-m", "pip", "install", "--quiet", *wanted, *options], ROOT)
    return own


def run_tests(python: Path, tree: Path, options: Sequence[str]) -> int:
    """pytest's exit status.   Raises: WheelError where something else than the wheel is imported."""
    _run([str(python), "-c", _WHERE], tree)
    return subprocess.run(
        [str(python), "-m", "pytest", "-q", *_OF_A_CLONE, *options], cwd=tree, env=fresh_environment()
    ).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command line asks for; 0 when the tests of each Python that is here passed, and there is one."""
    parser = argparse.ArgumentParser(description="The tests against an installed wheel, in place of the tree.")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="names or paths (default: those of setup.cfg)")
    parser.add_argument("--small", action="store_true", help="no extras, and the tests that a minute has room for")
    parser.add_argument("--pip", default="", metavar="OPTIONS", help="more for `pip install`: packages, constraints")
    words = list(sys.argv[1:] if arguments is None else arguments)
    cut = words.index("--") if "--" in words else len(words)
    args, options = parser.parse_args(words[:cut]), words[cut + 1 :]
    if not options:
        options = ["-n", "auto", "--dist", "loadfile", "-m", "not slow", *(SMALL if args.small else ())]
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, wheel = build(folder)
        for number, wanted in enumerate(args.pythons or supported_pythons()):
            print(f"== {wanted}: {wheel.name}", flush=True)
            started = time.monotonic()
            python = interpreter(wanted)
            if python is None:
                results[wanted] = "not run: it is not installed"
                continue
            place = folder / str(number)
            own = install(python, wheel, place / "venv", args.small, shlex.split(args.pip))
            status = run_tests(own, tree_without_package(source, place), options)
            results[wanted] = f"{'FAILED' if status else 'passed'}, {time.monotonic() - started:.0f} s"
            shutil.rmtree(place)
    for wanted, result in results.items():
        print(f"== {wanted}: {result}", flush=True)
    told = [result.split(",")[0] for result in results.values()]
    return 0 if "passed" in told and "FAILED" not in told else 1


def fresh_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _FRESH}


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, env=fresh_environment(), capture_output=True, text=True)
    if done.returncode:
        raise WheelError(f"{' '.join(command)}: ended with {done.returncode}.\n{(done.stdout + done.stderr)[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())

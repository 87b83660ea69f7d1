"""A copy of the repository, in which mutants are tested one after the other."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.answers.running import KEPT
from tests.forks import TIMEOUT, Command, Forks
from tests.mutation.mutants import Mutant
from tests.mutation.selection import ROOT, files_for, is_net

_LEAST_SECONDS, _TIMES_SECONDS = 30.0, 8
_BASELINE_SECONDS = 7200.0  # programs of docs/answers.md are dumped in it
_BYTES = 8 << 30
# What most test files import; nothing of msdump, which changes.
_LIBRARIES = (
    *("pytest", "hypothesis", "numpy", "hypothesis.extra.numpy", "ml_dtypes", "numba", "pydantic"),
    "google.protobuf.message",
)
_OPTIONS = (
    *("-x", "-q", "-p", "tests.mutation.quick", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "--no-header", "--tb=short", "--basetemp"),
)


class BaselineError(Exception):
    """The tests of a module fail without any mutation."""


@dataclass
class Laboratory:
    """Tests mutants in `folder`, whose files are those of the repository between two calls."""

    folder: Path
    forks: Forks
    output: Path

    def __post_init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}
        self._changes = 0

    def test(self, mutant: Mutant) -> str:
        """`killed`, `timeout` (no end within eight times what the tests take, killed too) or `survived`.

        Raises: BaselineError where the tests fail on the module as it is.
        """
        files = files_for(mutant.spot.module)
        if files not in self._seconds:
            self._seconds[files] = self._baseline(mutant.spot.module, files)
        path = self.folder / mutant.spot.module
        original, times = path.read_text(), path.stat()
        try:
            path.write_text(mutant.text)
            # The caches of Python and numba look at the time in seconds and the size, which two mutants may share.
            self._changes += 1
            os.utime(path, (times.st_atime, times.st_mtime + self._changes))
            status, _ = self._run(files, max(_LEAST_SECONDS, _TIMES_SECONDS * self._seconds[files]))
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return {0: "survived", TIMEOUT: "timeout"}.get(status, "killed")

    def _baseline(self, module: str, files: tuple[str, ...]) -> float:
        status, seconds = self._run(files, _BASELINE_SECONDS)
        if is_net(files):  # their dumps stay; how long the answers take, the next run shows
            status, seconds = self._run(files, _BASELINE_SECONDS)
        if status:
            text = self.output.read_text(errors="replace")
            raise BaselineError(f"{module}: expected tests that pass, got {status} from {', '.join(files)}.\n{text}")
        return seconds

    def _run(self, files: Sequence[str], limit: float) -> tuple[int, float]:
        options = [*_OPTIONS, str(self.folder.parent / "tmp"), *(["-m", "slow"] if is_net(files) else [])]
        words = ["-m", "pytest", *options, *files]
        return self.forks.run(Command(words, str(self.folder), str(self.output), limit=limit, memory=_BYTES))


@contextmanager
def laboratory() -> Iterator[Laboratory]:
    """A copy of this checkout in a temporary folder, which goes with everything that mutants leave in it."""
    with tempfile.TemporaryDirectory() as name:
        folder, output = Path(name, "msdump"), Path(name, "output")
        left_out = shutil.ignore_patterns(
            ".git", ".venv", "venv", "build", "dist", "findings", "__pycache__", ".*_cache"
        )
        shutil.copytree(ROOT, folder, ignore=left_out, symlinks=True)
        environment = {KEPT: str(Path(name, "dumps"))} | os.environ
        environment |= {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(Path(name, "numba"))}
        with Forks(_LIBRARIES, folder, environment) as forks:
            yield Laboratory(folder, forks, output)

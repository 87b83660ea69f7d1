"""`msdump plan [CONFIG] --dry-run SCRIPT`: the first steps of a script with their dump, measured, then removed.

The script runs in a process of its own, this module's `main`, and is ended after the step that is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.cli.exit_status import FAILED
from msdump.cli.printing import complain
from msdump.config.environment import UPLOAD
from msdump.errors import DumpError, MsdumpError, WriteError
from msdump.formats.atomic import scratch_folder
from msdump.process import dry_run
from msdump.process.dry_run import Counts

if TYPE_CHECKING:
    from msdump.cli.ways import Program
    from msdump.config.plan import Plan
    from msdump.process.dry_run import MeasuredDump

# The first step compiles and makes folders; the second is as all others.
_STEPS = 2
_SHOWN_LINES = 20
_ADVICE = "Of a PyTorch script say how it is dumped, as for `msdump run`: --torch-eager, --torch-backend msdump. "
# In place of a configuration: what the script says.
_OWN = "own"


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """One step with its dump. Sizes in bytes, times in seconds.

    iteration        that was measured
    step_seconds     wall time of the step, the dump included
    dump_seconds     of these, what the step spent in the dump
    waiting_seconds  how long files of an asynchronous dump were written after the step had ended
    """

    iteration: int
    files: int
    links: int
    bytes_written: int
    step_seconds: float
    dump_seconds: float
    waiting_seconds: float


def measure(plan: Plan, program: Program) -> MeasuredStep:
    """Run a script until one step was measured; the dump goes to a folder beside `path`, which is removed again.

    Raises: DumpError with the end of what the script printed when it fails, or computes nothing that is dumped;
            WriteError when the folder cannot be created.
    """
    config = json.loads(plan.source.text)
    with _folder_near(plan.where.path) as folder:
        config["common_dump_settings"].update(path=str(folder / "dump"), iteration="all")
        (folder / "dump.json").write_text(json.dumps(config))
        return _measured(folder, "", program, "a network whose device the configuration names")


def measure_script(program: Program, acl_json: Path | None, near: Path) -> MeasuredStep:
    """As `measure`, for a script that configures its dump itself: from one run of a model, or one step, to its next.

    acl_json   read in place of the one that the script names; None: what the script itself configures
    near       a folder on the disk of the dump
    Raises:    as `measure`.
    """
    what = "a model of which operators are dumped" if acl_json is None else f"a model that {acl_json} dumps"
    with _folder_near(near) as folder:
        return _measured(folder, str(acl_json or _OWN), program, what)


def _measured(folder: Path, config: str, program: Program, what: str) -> MeasuredStep:
    # The child's own `msdump` is this one, installed or not.
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder), config, *program.words],
        env=_environment(paths),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    try:
        return MeasuredStep(**json.loads((folder / "measured.json").read_text()))
    except (OSError, ValueError, TypeError):
        text = "\n".join(done.stdout.decode(errors="replace").splitlines()[-_SHOWN_LINES:])
        raise DumpError(
            f"{program.target[0]}: expected a script that runs {what}, got none. {_ADVICE}"
            f"It ended with {done.returncode}:\n{text}"
        ) from None


def _environment(paths: list[str]) -> dict[str, str]:
    """That of this process with these folders first for Python; what is thrown away afterwards is sent to no store."""
    kept = {name: value for name, value in os.environ.items() if name != UPLOAD}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def _folder_near(path: Path) -> Iterator[Path]:
    """On the disk that the dump will go to; it is removed at the end.   Raises: WriteError."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    with contextlib.ExitStack() as stack:
        for parent in (path, Path(tempfile.gettempdir())):
            with contextlib.suppress(WriteError):
                folder = stack.enter_context(scratch_folder(parent))
                break
        else:
            raise WriteError(
                f"{path}: expected a folder to measure in, got none that can be written. Choose another path."
            )
        yield folder


class _Stopwatch:
    """Looks at the dumps between two steps, and ends the script when it has seen enough.

    A step begins with the operator that began the first step.
    """

    def __init__(self, result: Path) -> None:
        self._result = result
        self._iteration = -1
        self._first: Hashable = None
        self._sources: list[MeasuredDump] = []
        self._began = 0.0
        self._before = Counts()

    def begin_run(self, name: Hashable, source: MeasuredDump) -> None:
        """Something that is dumped begins to run.   Raises: SystemExit after the last step."""
        if source not in self._sources:
            self._sources.append(source)
        if self._iteration >= 0 and name != self._first:
            return
        self._first = name
        self.end_step()
        if self._iteration == _STEPS - 1:
            raise SystemExit(0)
        self._iteration += 1
        self._before = self._counts()
        self._began = time.perf_counter()

    def end_step(self) -> None:
        """Write down what the step took; a later one does so again."""
        ended = time.perf_counter()
        for source in self._sources:
            source.flush()
        waited = time.perf_counter() - ended
        errors = [source.error for source in self._sources if source.error]
        if self._iteration < 0 or errors:
            for error in errors:
                complain(error)
            return
        files, links, size, seconds = (
            after - before for after, before in zip(self._counts(), self._before, strict=True)
        )
        measured = MeasuredStep(
            self._iteration, int(files), int(links), int(size), ended - self._began, seconds, waited
        )
        self._result.write_text(json.dumps(asdict(measured)))

    def _counts(self) -> Counts:
        return Counts(*map(sum, zip(*(source.counts() for source in self._sources), strict=True)))


def main(arguments: Sequence[str]) -> int:
    """Run the program of the arguments below the folder that comes first; the result is its exit status.

    The second argument is "" for the folder's dump.json, an acl.json, or "own" for what the script configures.
    """
    from msdump.cli.ways import enter, parse_program
    from msdump.config.environment import DUMP_CONFIG

    folder, config, *words = arguments
    program = parse_program("msdump plan --dry-run", words)
    watch = _Stopwatch(Path(folder, "measured.json"))
    if config:
        os.environ.pop(DUMP_CONFIG, None)
        dry_run.folder = Path(folder, "dump")
        dry_run.folder.mkdir()
        dry_run.acl_json = None if config == _OWN else Path(config)
    else:
        os.environ[DUMP_CONFIG] = os.path.join(folder, "dump.json")
    dry_run.on_run = watch.begin_run
    try:
        enter(program)
        status = program.run()
    except MsdumpError as error:
        complain(error)
        return FAILED
    if status == 0:
        watch.end_step()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

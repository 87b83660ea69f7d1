"""SessionContract: one session from its first graph to its end, whichever front end it belongs to."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from abc import ABC
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from msdump.cli.exit_status import INCOMPLETE, NOTHING
from msdump.cli.report_text import conclude
from msdump.errors import DumpError
from msdump.process import sessions
from msdump.process.report import Inbox
from tests.contracts import session_players
from tests.contracts.session_players import Step

ROOT = Path(__file__).resolve().parents[2]
# The parent dumps; its child, which ends as Python lets it, closes nothing and tells nothing.
SCRIPT = """
import os, sys, threading
from pathlib import Path
from msdump.process import sessions
from tests.contracts import session_players
step = session_players.{player}(Path(sys.argv[1]))
step()
child = os.fork()
if not child:
    sessions.close_all()
    os._exit(len(sessions.reports()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
if sys.argv[2] == "terminated":
    threading.Event().wait(100)
"""


class SessionContract(ABC):
    """Run by each front end.

    player       name of the function in `session_players`
    files        pattern of the files that reports count
    in_one_step  how many of them a step leaves
    can_choose   whether a configuration can leave every operator out
    counts_steps  whether the front end knows when a step ends
    has_threads  whether threads write while the script goes on, so that SIGTERM has to wait for them
    writes_first  whether a step writes a file before its first operator: where that fails, no tensor was selected
    """

    player: ClassVar[str]
    files: ClassVar[str]
    in_one_step: ClassVar[int]
    can_choose: ClassVar[bool] = True
    counts_steps: ClassVar[bool] = True
    has_threads: ClassVar[bool] = True
    writes_first: ClassVar[bool] = False

    def play(self, folder: Path, matches: bool = True) -> Step:
        """A configured process that has dumped nothing so far."""
        function: Callable[[Path, bool], Step] = getattr(session_players, self.player)
        return function(folder, matches)

    def count(self, folder: Path) -> int:
        return sum(path.is_file() for path in folder.rglob(self.files))

    @pytest.fixture(autouse=True)
    def own_process(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What players change of the process is changed back."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "")
        sessions.reset_for_tests()

    def test_one_session_counts_what_lies_on_disk_and_ends_once(self, tmp_path: Path) -> None:
        folder = tmp_path / "dump"
        step = self.play(folder)
        step()
        step()
        (session,) = sessions.used()
        sessions.close_all()
        report = session.report()
        assert report.files + report.links == self.count(folder) == 2 * self.in_one_step <= report.tensors_written
        assert (report.lost, report.failure, report.is_empty) == (0, None, False)
        assert report.iterations_dumped == (2 if self.counts_steps else 0)
        assert session.has_ended
        assert conclude([report], may_be_empty=False, stream=io.StringIO()) == 0
        session.close()
        step()
        sessions.close_all()
        assert sessions.used() == [session]

    def test_a_dump_that_chooses_nothing_ends_with_3(self, tmp_path: Path) -> None:
        if not self.can_choose:
            pytest.skip("everything is dumped")
        self.play(tmp_path / "dump", matches=False)()
        sessions.close_all()
        stream = io.StringIO()
        assert conclude(sessions.reports(), may_be_empty=False, stream=stream) == NOTHING
        assert stream.getvalue().count("Nothing was dumped") == 1
        assert conclude(sessions.reports(), may_be_empty=True, stream=stream) == 0

    def test_what_is_lost_is_reported_once(self, tmp_path: Path) -> None:
        folder = tmp_path / "dump"
        step = self.play(folder)
        step()
        sessions.flush_all()
        shutil.rmtree(folder)
        folder.write_text("")
        for _ in range(3):
            step()
        with pytest.raises(DumpError, match="not complete"):
            sessions.close_all()
        sessions.close_all()
        (report,) = sessions.reports()
        assert report.error and (report.lost > 0) != self.writes_first
        stream = io.StringIO()
        assert conclude([report], may_be_empty=True, stream=stream) == INCOMPLETE
        assert stream.getvalue().count("not complete") == 1

    def test_a_parent_that_waits_hears_of_it_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with Inbox() as inbox:
            owner, folder = os.environ["MSDUMP_REPORTS"].split(":", 1)
            monkeypatch.setenv("MSDUMP_REPORTS", f"{int(owner) + 1}:{folder}")
            self.play(tmp_path / "dump")()
            (begun,) = inbox.read()
            assert begun.error
            sessions.close_all()
            (ended,) = inbox.read()
            (report,) = sessions.reports()
            assert (ended.error, ended.is_empty, ended.tensors_written) == (None, False, report.tensors_written)
            monkeypatch.setenv("MSDUMP_REPORTS", f"{owner}:{folder}")

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["exit", "terminated"])
    def test_whatever_ends_the_process_everything_is_written(self, ending: str, tmp_path: Path) -> None:
        folder = tmp_path / "dump"
        variables = {name: value for name, value in os.environ.items() if name != "MINDSPORE_DUMP_CONFIG"}
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SCRIPT.replace("{player}", self.player), str(folder), ending],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env={**variables, "PYTHONPATH": str(ROOT)},
            text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            of_child = process.stdout.readline()
            if ending == "terminated":
                process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=240)
        assert of_child == "0\n", errors
        status = 0 if ending == "exit" else 128 + signal.SIGTERM if self.has_threads else -signal.SIGTERM
        assert process.returncode == status, errors
        assert self.count(folder) == self.in_one_step > 0
        assert "not complete" not in errors

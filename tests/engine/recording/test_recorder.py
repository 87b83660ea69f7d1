"""`msdump.recorder`: which steps lie on the disk after something has happened, for each front end and each trigger."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.engine import opening
from msdump.engine.recording import ring
from msdump.engine.recording.collecting import collect
from msdump.engine.recording.incidents import Incident, incidents_below, request
from msdump.engine.recording.recorder import StepBook
from msdump.engine.recording.ring import ring_home, take_home
from msdump.errors import ConfigError
from msdump.process.front_ends import is_installed
from tests.engine.recording.programs import FRONT_ENDS, program

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
GOOD, BAD = 1.0, -1.0  # the logarithm of a negative number is NaN


@pytest.fixture(autouse=True)
def default_context() -> Iterator[None]:
    if not is_installed("mindspore"):
        yield
        return
    from msdump.mindspore.context import reset_context

    reset_context()
    yield
    reset_context()


class Job:
    """A program under a recorder.   report: what the dump has done, after `run`"""

    def __init__(self, folder: Path, name: str = "pynative", **settings: Any) -> None:
        self.path = folder / "kept"
        self.ring = folder / "ring"
        self.ring.mkdir()
        self._name = name
        self._settings = {"steps": 2, "budget": "50M", "distance": 3, **settings}
        self.report: Any = None

    def run(self, values: Sequence[float], during: Callable[[int, Any], None] = lambda step, block: None) -> None:
        with ExitStack() as stack:
            block = stack.enter_context(msdump.recorder(self.path, ring=self.ring, **self._settings))
            step = program(self._name, stack)
            for number, value in enumerate(values):
                result = step(value)
                during(number, block)
                block.step(loss=result)
        self.report = block.report()

    def incidents(self) -> list[Incident]:
        return list(incidents_below(self.path))

    def steps(self, number: int = 1) -> list[int]:
        """Iterations with tensors that were kept of an incident."""
        dump = msdump.open(self.path / f"incident_{number:04d}")
        return sorted({tensor.iteration for tensor in dump.tensors() if tensor.iteration is not None})


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_a_nan_keeps_the_steps_around_it(name: str, tmp_path: Path) -> None:
    """Two steps before the one with the NaN, and one behind it; what each holds is what the operators computed."""
    job = Job(tmp_path, name)
    job.run([GOOD, GOOD, GOOD, BAD, GOOD, GOOD])
    (incident,) = job.incidents()
    assert (incident.why, incident.rank, incident.step) == ("nonfinite", 0, 3)
    assert "og" in incident.text
    assert "no input does" in incident.text
    assert job.steps() == [1, 2, 3, 4]
    first = msdump.find_nan(job.path / "incident_0001").first
    assert first is not None
    assert "og" in str(first)
    for tensor in msdump.open(job.path / "incident_0001").tensors(op_type="Parameter"):
        assert set(tensor.load().tolist()) == {BAD if tensor.iteration == 3 else GOOD}
    assert list(job.ring.iterdir()) == []
    assert any("nonfinite in step 3" in line for line in job.report.outside)


@pytest.mark.parametrize("statistics", [0, 4])
def test_statistics_reach_back_further_than_tensors(statistics: int, tmp_path: Path) -> None:
    job = Job(tmp_path, statistics=statistics)
    job.run([GOOD] * 8 + [BAD, GOOD])
    folders = {file.parent.name for file in (job.path / "incident_0001").rglob("statistic.csv")}
    assert job.steps() == [6, 7, 8, 9]
    assert folders == (set() if not statistics else folders | {"6", "7", "8", "9"})
    assert len(folders) <= statistics + 3


def test_nothing_is_kept_where_nothing_happens(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.run([GOOD] * 4)
    assert job.incidents() == []
    assert not list(job.path.glob("incident*"))
    assert list(job.ring.iterdir()) == []
    assert job.report.outside[0].startswith("flight recorder: 4 steps ran, and nothing happened")


@pytest.mark.parametrize("raiser", ["block", "thread"])
def test_an_exception_keeps_the_step_that_it_ended(raiser: str, tmp_path: Path, monkeypatch: Any) -> None:
    job = Job(tmp_path)
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)

    def fail() -> None:
        raise RuntimeError("out of luck\nsecond line")

    def during(step: int, block: Any) -> None:
        if step == 3:
            thread = threading.Thread(target=fail, name="loader")
            thread.start() if raiser == "thread" else fail()
            thread.join() if raiser == "thread" else None

    if raiser == "block":
        with pytest.raises(RuntimeError):
            job.run([GOOD] * 6, during)
    else:
        job.run([GOOD] * 6, during)
    (incident,) = job.incidents()
    assert incident.why == "exception"
    assert incident.text.endswith("RuntimeError: out of luck")
    assert ("in loader" in incident.text) == (raiser == "thread")
    assert job.steps() == [1, 2, 3]


@pytest.mark.parametrize("how", ["call", "file", "signal", "file in two steps"])
def test_people_ask_for_the_steps(how: str, tmp_path: Path) -> None:
    job = Job(tmp_path, on=["signal"])

    def during(step: int, block: Any) -> None:
        if step == 3 and how == "call":
            assert block.trigger("I want them")
        if step == 3 and how.startswith("file"):
            request(job.path, "I want them", 2 if "two" in how else 0)
        if step == 3 and how == "signal":
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.getsignal(signal.SIGUSR1)
    job.run([GOOD] * 8, during)
    (incident,) = job.incidents()
    assert incident.why == "command"
    assert incident.text == ("SIGUSR1" if how == "signal" else "I want them")
    assert job.steps() == ([3, 4, 5, 6] if "two" in how else [1, 2, 3, 4])
    assert signal.getsignal(signal.SIGUSR1) is before
    assert not (job.path / ".msdump" / "trigger.json").exists()


def test_a_loss_that_jumps_is_a_trigger(tmp_path: Path) -> None:
    """log(x) + exp(x) rises from about 2.7 to 22,000 at x = 10."""
    job = Job(tmp_path)
    job.run([GOOD] * 20 + [10.0, GOOD])
    (incident,) = job.incidents()
    assert (incident.why, incident.step) == ("spike", 20)
    assert incident.text.startswith("loss is 22028")


def test_a_rule_of_a_number_is_a_trigger(tmp_path: Path) -> None:
    job = Job(tmp_path, rules=["other > 1", "loss>=1e2"])
    job.run([GOOD, GOOD, GOOD, 5.0, GOOD])
    (incident,) = job.incidents()
    assert (incident.why, incident.step) == ("rule", 3)
    assert incident.text == "loss is 150.023, and the rule is >= 100"
    assert job.steps() == [1, 2, 3, 4]


def test_a_ring_that_others_have_filled_is_smaller(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(ring, "_free", lambda folder: 1000)
    assert ring.choose_ring(str(tmp_path), 2000, tmp_path)[:2] == (tmp_path, 900)
    assert "1000 are free" in ring.choose_ring(str(tmp_path), 2000, tmp_path)[2]
    assert ring.choose_ring(str(tmp_path), 900, tmp_path) == (tmp_path, 900, "")


def test_triggers_that_are_not_listened_for_keep_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path, on=["spike"])
    before = sys.excepthook, threading.excepthook, signal.getsignal(signal.SIGUSR1)
    during = []
    job.run([GOOD, GOOD, BAD, GOOD], lambda step, block: during.append(sys.excepthook))
    assert job.incidents() == []
    assert set(during) == {before[0]}
    assert (sys.excepthook, threading.excepthook, signal.getsignal(signal.SIGUSR1)) == before


def test_a_storm_of_triggers_keeps_few_steps_and_is_counted(tmp_path: Path) -> None:
    """`distance` steps lie between two, `count` are kept; results that stay NaN are one trigger."""
    job = Job(tmp_path, distance=3, count=2)
    job.run([GOOD, BAD, GOOD, BAD, GOOD, GOOD, BAD, GOOD, GOOD, GOOD, BAD, BAD, GOOD, GOOD])
    assert [incident.step for incident in job.incidents()] == [1, 6]
    assert any("triggers kept nothing" in line for line in job.report.outside)
    other = tmp_path / "other"
    other.mkdir()
    job = Job(other, distance=1)
    job.run([GOOD, *[BAD] * 9])
    assert [incident.step for incident in job.incidents()] == [1]


def test_a_script_that_never_ends_a_step_by_hand(tmp_path: Path) -> None:
    """Each run of a graph is a step then."""
    job = Job(tmp_path)
    with msdump.recorder(job.path, ring=job.ring, steps=2, budget="50M"), ExitStack() as stack:
        step = program("graph", stack)
        for value in (GOOD, GOOD, BAD, GOOD, GOOD):
            step(value)
    assert job.steps() == [0, 1, 2, 3]


def test_a_full_ring_drops_its_oldest_steps(tmp_path: Path) -> None:
    """The budget holds about two steps of ten that `steps` allows: the newest ones are there."""
    job = Job(tmp_path, steps=10, budget=2_500, statistics=0)
    job.run([GOOD] * 9 + [BAD])
    assert not job.report.error
    kept = job.steps()
    assert kept == list(range(kept[0], 10))
    assert 1 <= len(kept) < 8


def test_a_second_recorder_for_the_same_folder_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    job = Job(tmp_path)

    def during(step: int, block: Any) -> None:
        if step == 1:
            monkeypatch.setattr(opening, "_graphs", opening._graphs[:1])  # nobody knows of the dump around
            other = msdump.recorder(job.path, ring=job.ring, budget="50M")
            refuses_to_run(other, "RANK_ID")
            monkeypatch.undo()

    job.run([GOOD] * 3, during)
    assert not job.report.error


def refuses_to_run(block: Any, text: str) -> None:
    with ExitStack() as stack, pytest.raises(ConfigError, match=text):
        _run_within(block, stack)


def _run(path: Path, settings: dict[str, Any]) -> None:
    with ExitStack() as stack:
        _run_within(msdump.recorder(path, **settings), stack)


def _run_within(block: Any, stack: ExitStack) -> None:
    stack.enter_context(block)
    program("graph", stack)(GOOD)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ring": "/dev/null/x"}, "expected a folder for the ring"),
        ({"budget": 1 << 62}, "--shm-size"),
        ({"on": ["nonfinit"]}, 'Did you mean "nonfinite"'),
        ({"steps": 0}, "steps"),
        ({"spike": -1.0}, "spike"),
        ({"rules": ["loss"]}, "loss > 10"),
        ({"rules": [5]}, "loss > 10"),
        ({"rules": ["loss > 1.2.3"]}, "loss > 10"),
        ({"budget": "much"}, "512M"),
        ({"stepz": 3}, "steps"),
    ],
)
def test_wrong_settings_fail_before_the_first_step(settings: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=text):
        _run(tmp_path / "kept", {"ring": tmp_path, **settings})
    assert sorted(each.name for each in tmp_path.iterdir()) in ([], ["kept"])


def test_a_forked_child_records_nothing_and_harms_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path, on=["nonfinite", "exception", "signal"])

    def during(step: int, block: Any) -> None:
        if step == 2:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    assert not block.trigger("a child's")
                    block.step(loss=float("nan"))
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        if step == 3:
            assert block.trigger("the parent's")

    job.run([GOOD] * 6, during)
    assert [incident.text for incident in job.incidents()] == ["the parent's"]
    assert job.steps() == [1, 2, 3, 4]


def as_link(place: Path) -> None:
    target = place.with_name("elsewhere")
    target.mkdir()
    (target / "precious").touch()
    place.symlink_to(target)


def as_file(place: Path) -> None:
    place.touch()


def as_folder_of_another(place: Path) -> None:
    place.mkdir(mode=0o777)
    (place / "state_0").mkdir()
    try:
        os.chown(place, 65534, 65534)
    except OSError:
        pytest.skip("only root of the whole machine can give a folder away")


@pytest.mark.parametrize("make", [as_link, as_file, as_folder_of_another])
def test_a_name_that_another_user_took_first_ends_nothing(
    make: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The ring takes another name, which the next process of the rank finds again."""
    job = Job(tmp_path)
    taken = ring_home(job.ring, job.path)
    make(taken)
    before = sorted(job.ring.rglob("*"))
    places = []

    def during(step: int, block: Any) -> None:
        places.append(next(home for home in job.ring.iterdir() if home not in before))
        if step == 2:
            (job.path).mkdir(exist_ok=True)
            (job.path / "incident_0001").write_text("in the way")

    job.run([GOOD, GOOD, GOOD, BAD, GOOD, GOOD], during)
    assert "not complete" in caplog.text and "incident_0001" in caplog.text
    assert f"another user has made {taken}" in caplog.text
    (home,) = set(places)
    assert home.stat().st_mode & 0o777 == 0o700
    (job.path / "incident_0001").unlink()
    job.run([GOOD] * 3)
    assert job.steps() == [1, 2, 3, 4]
    assert sorted(job.ring.rglob("*")) == before
    if taken.is_dir() and not taken.is_symlink():
        shutil.rmtree(taken)


def test_ranks_share_the_folder_that_the_first_of_them_took(tmp_path: Path) -> None:
    path, folder = tmp_path / "kept", tmp_path / "ring"
    folder.mkdir()
    as_link(ring_home(folder, path))
    home = take_home(folder, path, 0)
    assert home != ring_home(folder, path) and take_home(folder, path, 1) == home
    other = Path(tempfile.mkdtemp(prefix=f"{ring_home(folder, path).name}-", dir=folder))
    (other / "state_1").mkdir()
    assert take_home(folder, path, 1) == other and take_home(folder, tmp_path / "other", 1) != home


def test_a_ring_that_cannot_be_copied_is_said_and_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The training goes on; what was pinned waits in the ring for `msdump recorder collect`."""
    job = Job(tmp_path)

    def during(step: int, block: Any) -> None:
        if step == 2:
            (job.path).mkdir(exist_ok=True)
            (job.path / "incident_0001").write_text("in the way")

    job.run([GOOD, GOOD, GOOD, BAD, GOOD, GOOD], during)
    assert "not complete" in caplog.text and "incident_0001" in caplog.text
    home = ring_home(job.ring, job.path)
    assert (home / "state_0" / "incident_0001").is_dir()
    (job.path / "incident_0001").unlink()
    survey = collect(job.path)
    assert [(each.rank, each.kept.whole) for each in survey.collected] == [(0, (1, 2, 3, 4))]
    assert job.steps() == [1, 2, 3, 4]
    assert list(job.ring.iterdir()) == []


def test_a_step_that_hangs_is_kept_while_it_hangs(tmp_path: Path, alarm: None) -> None:
    """With the stacks of all threads."""
    job = Job(tmp_path, hang=0.01)

    def during(step: int, block: Any) -> None:
        if step == 4:
            while not list(job.path.glob("incident_0001/recorder_rank_0.json")):
                time.sleep(0.01)

    job.run([GOOD] * 6, during)
    (incident,) = job.incidents()
    assert (incident.why, incident.step) == ("hang", 4)
    assert "during" in (job.path / "incident_0001" / "rank_0_stacks.txt").read_text()
    assert set(job.steps()) >= {2, 3}


def test_what_a_ring_does_not_obey_is_said(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", "s3://bucket/job")
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    Job(tmp_path).run([GOOD])
    assert caplog.text.count("has no effect on the ring of a flight recorder") == 2
    monkeypatch.setenv("MSDUMP_UPLOAD", "nonsense")
    refuses_to_run(msdump.recorder(tmp_path / "other", budget="50M"), "environment variable MSDUMP_UPLOAD")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), min_size=1, max_size=6),
    st.data(),
)
def test_a_step_is_whole_once_when_all_its_graphs_are_on_the_disk(graphs: list[list[int]], data: st.DataObject) -> None:
    """Whatever order the threads that write tell of their ends in, also after later steps have begun.

    A graph that begins when all before it have ended comes too late for a step that is closed already.
    """
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    waiting: list[tuple[int, int]] = []
    for step, ids in enumerate(graphs):
        for graph in ids:
            book.begin(graph, step)
            waiting.append((graph, step))
        for pair in data.draw(st.lists(st.sampled_from(waiting), unique=True)) if waiting else []:
            waiting.remove(pair)
            book.end(*pair)
            assert pair[1] not in whole or pair[1] < step
    assert book.close() == len(graphs) - 1
    for pair in data.draw(st.permutations(waiting)):
        book.end(*pair)
    assert sorted(whole) == list(range(len(graphs)))


def test_a_step_that_nobody_sees_is_never_whole() -> None:
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    book.begin(-1, 0)
    assert (book.running, book.close(), whole) == (0, 0, [])


def test_durations() -> None:
    clock = Clock()
    book = StepBook(lambda step: None, clock)
    for step, seconds in enumerate((1.0, 2.0, 3.0)):
        book.begin(0, step)
        assert book.seconds == (0.0, float("inf"))
        clock.now += seconds
        book.close()
    assert book.seconds == (0.0, float("inf"))
    book.begin(0, 3)
    clock.now += 7.0
    assert book.seconds == (7.0, 2.0)


def test_any_thread_may_tell() -> None:
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    for step in range(40):
        book.begin(0, step)
        book.close()
    threads = [
        threading.Thread(target=lambda part: [book.end(0, step) for step in range(part, 40, 4)], args=(part,))
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(whole) == list(range(40))

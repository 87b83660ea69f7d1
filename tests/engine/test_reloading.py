"""A configuration that changes while the job runs: one contract for each front end, and the rules of `Reloader`."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.config.json_file import read_json_file
from msdump.config.plan import Plan
from msdump.engine.reloading import ERROR_FILE, Reloader
from msdump.errors import ConfigError
from msdump.process import sessions
from msdump.process.report import Report

# Runs the program once: one iteration.
Step = Callable[[], object]
Edit = Callable[[Path], None]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


# -- programs ----------------------------------------------------------------------------------------------------------


def _mindspore(mode: int) -> Step:
    ms = pytest.importorskip("msdump.mindspore")
    from msdump.mindspore import compiler

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(ms.Tensor(np.ones((2, 3), np.float32)), name="weight")
            self.table = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))

        def construct(self, x: Any) -> Any:
            y = ms.ops.relu(x * self.weight + self.table)
            self.weight = self.weight + y
            return ms.ops.tanh(y).sum() / x

    compiler._next_graph_id = 0
    ms.set_context(mode=mode, device_target="CPU")
    net, x = Net(), ms.Tensor(np.ones((2, 3), np.float32))
    return lambda: net(x)


def graph_mode() -> Step:
    return _mindspore(0)


def pynative() -> Step:
    return _mindspore(1)


def _training(model: Any, forward: Any) -> Step:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 3)

    def step() -> None:
        optimizer.zero_grad()
        forward(x).square().sum().backward()
        optimizer.step()

    return step


def _model() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


def compiled() -> Step:
    import torch

    from msdump.frontends.torch import backend

    torch._dynamo.reset()
    model = _model()
    return _training(model, torch.compile(model, backend=backend))


def with_taps() -> Step:
    import torch

    from tests.frontends.torch.test_taps import tapped

    torch._dynamo.reset()
    model = _model()
    return _training(model, torch.compile(model, backend=tapped))


def eager() -> Step:
    model = _model()
    return _training(model, model)


PROGRAMS: dict[str, Callable[[], Step]] = {
    each.__name__: each for each in (graph_mode, pynative, compiled, with_taps, eager)
}


# -- runs --------------------------------------------------------------------------------------------------------------


def config(folder: Path, is_sync: bool = True, **common: Any) -> dict[str, Any]:
    settings = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "full",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **common,
    }  # fmt: skip
    return {"common_dump_settings": settings, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}


def rewrite(is_sync: bool = True, **common: Any) -> Edit:
    return lambda file: write(file, json.dumps(config(file.parent, is_sync, **common)))


def write(file: Path, text: str) -> None:
    """In place, with a time of its own: two writes may come within one tick of the clock of the file system."""
    file.write_text(text)
    _later(file)


_ticks = iter(range(1, 1_000_000))


def _later(file: Path) -> None:
    moment = 1_700_000_000 + next(_ticks)
    os.utime(file, (moment, moment))


def play(program: str, folder: Path, first: Edit, edits: Mapping[int, Edit], steps: int = 4) -> Report:
    """Run the steps, with edits of the file before some of them."""
    if program not in ("graph_mode", "pynative"):
        pytest.importorskip("torch")
    folder.mkdir(parents=True)
    file = folder / "dump.json"
    first(file)
    step = PROGRAMS[program]()
    with msdump.watch(config=file) if program in ("eager", "failing") else msdump.dump(file) as dump:
        for number in range(steps):
            edits.get(number, lambda _: None)(file)
            step()
    report = dump.report()
    assert report is not None
    return report


_STAMPS = re.compile(r"\d{14,}")
# Operators of eager programs are numbered as they come: those that come first have the first numbers.
_TASKS = re.compile(r"(op\d+[.,])\d+([.,]0[.,]T)")


def _plain(text: str) -> str:
    return _TASKS.sub(r"\1N\2", _STAMPS.sub("T", text))


def data(folder: Path) -> dict[int, dict[str, bytes]]:
    """Iteration -> files, without their time stamps; rows of statistics in the order of their names."""
    files: dict[int, dict[str, bytes]] = {}
    for path in (folder / "dump").rglob("*"):
        if path.is_file() and path.parent.name.isdigit():
            content = path.read_bytes()
            if path.suffix == ".csv":
                content = "\n".join(sorted(_plain(content.decode()).splitlines())).encode()
            name = _plain(str(path.relative_to(folder)))
            assert files.setdefault(int(path.parent.name), {}).setdefault(name, content) is content
    return files


def described(folder: Path) -> dict[str, bytes]:
    """Files of graphs and constants."""
    return {
        _STAMPS.sub("T", str(path.relative_to(folder))): path.read_bytes()
        for path in (folder / "dump").rglob("*")
        if path.is_file() and (path.parent.name in ("constants", "graphs"))
    }


# -- the contract ------------------------------------------------------------------------------------------------------


# The configuration of each step; the first one stays for two.
CONFIGURATIONS: list[dict[str, Any]] = [
    {"dump_mode": 1, "kernels": ["name-regex(.*(?i:relu).*)"], "input_output": 1},
    {},
    {"saved_data": "statistic", "input_output": 2},
    {"iteration": "0-2"},
]
# Each program with one engine, each engine with programs that show operators while they run and afterwards.
CASES = [
    ("graph_mode", True), ("graph_mode", False), ("pynative", True), ("compiled", False), ("with_taps", True),
    ("eager", True), ("eager", False),
]  # fmt: skip


@pytest.mark.parametrize(("program", "is_sync"), CASES)
def test_steps_are_those_of_a_run_that_had_the_configuration(program: str, is_sync: bool, tmp_path: Path) -> None:
    files = [rewrite(is_sync, **settings) for settings in CONFIGURATIONS]
    report = play(program, tmp_path / "changed", files[0], dict(enumerate(files[1:], 2)), 5)
    expected: dict[int, dict[str, bytes]] = {}
    plain = []
    for number, file in enumerate(files):
        plain.append(play(program, tmp_path / str(number), file, {}, 5))
        steps = data(tmp_path / str(number))
        expected |= {step: steps[step] for step in ((0, 1) if not number else (number + 1,)) if step in steps}
    assert data(tmp_path / "changed") == expected and set(expected) == {0, 1, 2, 3}
    assert report.error is None and not report.lost
    assert (report.iterations_run, report.iterations_dumped) == (5, 4)
    # An eager program counts the operators that it has shown.
    assert max(each.operators_seen for each in plain) == report.operators_seen
    assert report.operators_selected == max(each.operators_selected for each in plain)
    assert report.files + report.links == len(_data_files(tmp_path / "changed"))
    if program != "eager":  # its graph files have operators in the order in which they came
        # With constants from the first step that dumps outputs.
        assert described(tmp_path / "changed") == described(tmp_path / "1")


def _data_files(folder: Path) -> list[Path]:
    folders = [path for path in (folder / "dump").rglob("*") if path.is_file()]
    return [path for path in folders if path.parent.name.isdigit() or path.parent.name == "constants"]


# -- triggers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["graph_mode", "eager"])
def test_triggers_come_and_go(program: str, tmp_path: Path) -> None:
    edits = {1: rewrite(False, op_debug_mode=3), 2: rewrite(False, op_debug_mode=0), 3: rewrite(False, op_debug_mode=3)}
    report = play(program, tmp_path / "changed", rewrite(False), edits)
    play(program, tmp_path / "plain", rewrite(False), {})
    plain = data(tmp_path / "plain")
    # Nothing overflows.
    assert data(tmp_path / "changed") == {0: plain[0], 2: plain[2]}
    assert report.overflows == () and report.iterations_dumped == 2 and report.error is None


def failing() -> Step:
    """Each step overflows, then raises, and goes on."""
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: Any, index: Any) -> Any:
            y = (x * 2).exp() * 1e38
            z = (y * 1e38).index_select(0, index)
            return z + 1

    net, x = Net(), torch.ones(3)

    def step() -> None:
        with torch.no_grad():
            net(x, torch.tensor([0]))
            with pytest.raises(IndexError):
                net(x, torch.tensor([7]))

    return step


def failing_compiled() -> Step:
    import torch

    from msdump.frontends.torch import backend

    torch._dynamo.reset()
    x = torch.ones(3)
    compiled = torch.compile(lambda x, index: ((x * 2).exp() * 1e38 * 1e38).index_select(0, index) + 1, backend=backend)

    def step() -> None:
        with torch.no_grad():
            compiled(x, torch.tensor([0]))
            with pytest.raises(IndexError):
                compiled(x, torch.tensor([7]))

    return step


PROGRAMS |= {"failing": failing, "failing_compiled": failing_compiled}


@pytest.mark.parametrize("program", ["failing", "failing_compiled"])
@pytest.mark.parametrize("modes", [(0, 4, 0, 4), (4, 3, 4, 0), (3, 4, 3, 3), (0, 3, 4, 4)])
def test_what_overflows_and_what_raises(
    program: str, modes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mode 4 is that of a dump through ACL, for which both variables name one file. A step has two iterations."""
    edits = {number: rewrite(False, op_debug_mode=mode) for number, mode in enumerate(modes)}
    report = play_through_acl(program, tmp_path / "changed", edits, monkeypatch)
    changed = data(tmp_path / "changed")
    assert report.error is None and not report.lost
    expected: dict[int, dict[str, bytes]] = {}
    for mode in set(modes):
        play_through_acl(program, tmp_path / str(mode), {0: rewrite(False, op_debug_mode=mode)}, monkeypatch)
        steps = data(tmp_path / str(mode))
        same = [2 * number + part for number, other in enumerate(modes) for part in (0, 1) if other == mode]
        expected |= {iteration: steps[iteration] for iteration in same if iteration in steps}
    assert changed == expected
    for number, mode in enumerate(modes):
        whole, failed = (" ".join(changed.get(iteration, ())) for iteration in (2 * number, 2 * number + 1))
        assert [kind in whole for kind in ("exp", "mul", "index_select")] == {
            0: [True, True, True], 3: [False, True, False], 4: [False, False, False],
        }[mode]  # fmt: skip
        assert ("index_select" in failed) == (mode == 4)


def test_overflows_are_counted_over_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = rewrite(False, op_debug_mode=3, overflow_number=3)
    edits = {0: watching, 1: rewrite(False, op_debug_mode=4), 2: watching, 3: watching}
    report = play_through_acl("failing", tmp_path, edits, monkeypatch)
    overflowing = {iteration for iteration, names in data(tmp_path).items() if "mul" in " ".join(names)}
    # Two in the first step, one in the third; then there are as many as were asked for.
    assert overflowing == {0, 1, 4}
    assert report.overflows is not None and sum("mul" in name for name in report.overflows) == 3
    assert report.error is None and not report.lost


def play_through_acl(program: str, folder: Path, edits: Mapping[int, Edit], monkeypatch: pytest.MonkeyPatch) -> Report:
    """As `play`, with the variables of a dump through ACL; edit 0 makes the file."""
    pytest.importorskip("torch")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "dump.json"
    edits[0](file)
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(file))
    monkeypatch.setenv("MS_ACL_DUMP_CFG_PATH", str(file))
    sessions.reset_for_tests()
    step = PROGRAMS[program]()
    with msdump.watch() if program == "failing" else contextlib.nullcontext():
        for number in range(4):
            if number:
                edits.get(number, lambda _: None)(file)
            step()
    sessions.close_all()
    (report,) = sessions.reports()
    return report


# -- the last iterations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "is_sync"), CASES)
def test_the_last_iterations_are_those_of_all_configurations(
    program: str, is_sync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier configuration has left goes, too, and nothing of the present one goes with it."""
    edits = {
        2: rewrite(is_sync, dump_mode=1, kernels=["name-regex(.*(?i:relu).*)"]),
        4: rewrite(is_sync, saved_data="tensor"),
        5: rewrite(is_sync, saved_data="statistic"),
    }
    everything = play(program, tmp_path / "all", rewrite(is_sync), edits, 7)
    whole = data(tmp_path / "all")
    for steps in range(1, 8):
        monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
        own = {number: edit for number, edit in edits.items() if number < steps}
        report = play(program, tmp_path / str(steps), rewrite(is_sync), own, steps)
        last = range(max(0, steps - 2), steps)
        assert data(tmp_path / str(steps)) == {step: whole[step] for step in last}
        assert report.error is None and not report.lost
    assert everything.iterations_dumped == 7


# -- files -------------------------------------------------------------------------------------------------------------


def by_rename(settings: dict[str, Any]) -> Edit:
    def edit(file: Path) -> None:
        fresh = file.with_name("fresh.json")
        write(fresh, json.dumps(settings))
        fresh.replace(file)

    return edit


def by_link(settings: dict[str, Any], number: int) -> Edit:
    """The file is a link, which leads to another one from now on."""

    def edit(file: Path) -> None:
        target = file.with_name(f"settings{number}.json")
        write(target, json.dumps(settings))
        link = file.with_name("link")
        link.symlink_to(target.name)
        link.replace(file)

    return edit


@pytest.mark.parametrize("way", [by_rename, lambda settings: by_link(settings, 2)], ids=["rename", "link"])
def test_a_file_that_is_replaced(way: Callable[[dict[str, Any]], Edit], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    play("graph_mode", folder, by_link(config(folder, iteration="0"), 1), {2: way(config(folder, iteration="2-3"))})
    assert set(data(folder)) == {0, 2, 3}


def warnings(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if part in record.getMessage()]


def test_a_file_that_is_bad_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "run"
    report = play("graph_mode", folder, rewrite(iteration="0-1"), {1: lambda file: write(file, '{"common": [,]}')})
    assert set(data(folder)) == {0, 1} and report.error is None
    (message,) = warnings(caplog, "is invalid")
    assert "dump.json:1:13" in message
    assert (folder / ERROR_FILE).read_text().splitlines()[0] == f"msdump: {folder / 'dump.json'} is not in force"
    assert "dump.json:1:13" in (folder / ERROR_FILE).read_text()


def test_what_cannot_change_is_said_once_and_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "run"
    other = {"path": str(tmp_path / "other"), "net_name": "Other"}
    edits = {1: rewrite(False, iteration="1", **other), 2: rewrite(False, iteration="1-2", **other)}
    play("graph_mode", folder, rewrite(), edits)
    assert set(data(folder)) == {0, 1, 2} and not (tmp_path / "other").exists()
    (message,) = warnings(caplog, "cannot change")
    assert "path, net_name, e2e_dump_settings.enable cannot change" in message
    assert [message.rpartition(" ")[2] for message in warnings(caplog, "in force from")] == ["1.", "2."]


def counted_calls(patch: pytest.MonkeyPatch, end: str) -> list[str]:
    """Names of the calls of the system for files whose path ends so, from now on."""
    calls: list[str] = []
    for name in ("stat", "open", "lstat"):
        plain = getattr(os, name)

        def counted(path: Any, *args: Any, name: str = name, plain: Any = plain, **keywords: Any) -> Any:
            calls.append(name) if str(path).endswith(end) else None
            return plain(path, *args, **keywords)

        patch.setattr(os, name, counted)
    return calls


def test_one_stat_a_step_and_none_without_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_calls(monkeypatch, "dump.json")
    play("graph_mode", tmp_path / "none", rewrite(iteration="9"), {1: lambda _: calls.clear()}, 4)
    assert calls == ["stat"] * 3
    calls.clear()
    step = graph_mode()
    for _ in range(3):
        step()
    assert calls == []


def test_strict_reads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_STRICT", "1")
    folder = tmp_path / "run"
    first, second = ({"iteration": text, "saved_data": "tensor"} for text in ("0", "2"))
    play("graph_mode", folder, rewrite(**first), {1: rewrite(**second)})
    assert set(data(folder)) == {0}


# -- the rules ---------------------------------------------------------------------------------------------------------


class Job:
    """A reloader with a clock of the test's own."""

    def __init__(self, folder: Path) -> None:
        from msdump.config.environment import Environment
        from msdump.config.mindspore import plan_mindspore

        self.file = folder / "dump.json"
        rewrite(iteration="0")(self.file)
        self.now = 0.0

        def read() -> Plan | None:
            return plan_mindspore(Environment.from_os({"MINDSPORE_DUMP_CONFIG": str(self.file)}), "CPU", 0)

        plan = read()
        assert plan is not None
        self.plan: Plan = plan
        self.reloader = Reloader(read_json_file(self.file), read, lambda: self.now)

    def poll(self) -> str:
        """Iterations that are in force."""
        self.plan = self.reloader.poll(self.plan) or self.plan
        return str(self.plan.when.iterations)

    @property
    def error(self) -> Path:
        return self.file.with_name(ERROR_FILE)


def test_a_bad_file_that_is_mended_in_time_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(tmp_path)
    whole = json.dumps(config(tmp_path, iteration="5"))
    for part, now in ((whole[:9], 0.0), ("", 0.9), (whole[:-1], 1.8), (whole, 2.7)):
        job.now = now
        write(job.file, part)
        assert job.poll() == ("5" if part == whole else "0")
    job.now = 9.0
    assert job.poll() == "5"
    job.reloader.close()
    assert not warnings(caplog, "is invalid") and not job.error.exists()


def test_a_bad_file_is_said_once_until_it_is_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(tmp_path)
    for round_ in (1, 2):
        rewrite(iteration="5 to 9")(job.file)
        for _ in range(5):
            job.now += 0.6
            assert job.poll() == ("0" if round_ == 1 else "1")
        assert len(warnings(caplog, "is invalid")) == round_
        assert "iteration" in job.error.read_text()
        rewrite(iteration=str(round_))(job.file)
        assert job.poll() == str(round_) and not job.error.exists()
    job.file.unlink()
    assert job.poll() == "2"
    job.reloader.close()
    job.reloader.close()
    assert len(warnings(caplog, "is invalid")) == 3 and job.error.exists()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_folder(path: Path) -> None:
    path.mkdir()


def as_hole(path: Path) -> None:
    """More bytes than any machine has memory."""
    with path.open("wb") as file:
        file.write(b'{"common_dump_settings": "')
        file.truncate(8 << 40)


@pytest.mark.parametrize("make", [as_pipe, as_link_to_device, as_folder, as_hole])
def test_what_is_no_configuration_changes_nothing(
    make: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture, alarm: None
) -> None:
    """Neither in the place of the configuration, nor in that of the file that tells of an error."""
    job = Job(tmp_path)
    job.file.unlink()
    make(job.file)
    assert job.poll() == "0"
    job.now = 2.0
    assert job.poll() == "0"
    assert len(warnings(caplog, "is invalid")) == 1
    (job.file.unlink if job.file.is_symlink() or not job.file.is_dir() else job.file.rmdir)()
    job.error.unlink()
    make(job.error)
    rewrite(iteration="3")(job.file)
    assert job.poll() == "3" and os.path.lexists(job.error)


def test_a_file_of_that_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    job = Job(tmp_path)
    write(job.file, "{")
    job.poll()
    job.now = 2.0
    job.poll()
    job.error.write_text("notes")
    rewrite(iteration="3")(job.file)
    assert job.poll() == "3" and job.error.read_text() == "notes"


def test_where_the_error_cannot_be_written_the_job_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(tmp_path)
    job.error.mkdir()
    write(job.file, "{")
    job.poll()
    job.reloader.close()
    assert len(warnings(caplog, "expected to write the error there")) == 1


def test_only_a_file_can_be_read_again(tmp_path: Path) -> None:
    from msdump.config.json_file import mapping_as_file

    with pytest.raises(AssertionError, match="no file"):
        Reloader(mapping_as_file(config(tmp_path), "dump.json"), lambda: None)
    with pytest.raises(ConfigError):
        read_json_file(tmp_path / "none.json")

"""Files of PrecisionDebugger and what the environment asks of all dumps: limits, rotation, packs, uploads, links."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from msdump.cli.exit_status import INCOMPLETE  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.cli.report_text import conclude  # noqa: E402
from msdump.config.environment import DiskLimits  # noqa: E402
from msdump.dumpers.limits import DiskGuard  # noqa: E402
from msdump.errors import ConfigError, DumpError, FolderError  # noqa: E402
from msdump.formats.dump_dir import DumpDir  # noqa: E402
from msdump.formats.msprobe_json import read_msprobe_records  # noqa: E402
from msdump.frontends.msprobe.files import StepFiles  # noqa: E402
from msdump.process import sessions  # noqa: E402
from msdump.storage import remote  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe, config_file, records  # noqa: E402
from tests.frontends.msprobe.test_run import run  # noqa: E402

Dump = Callable[..., Path]
TEXTS = {"dump.json", "stack.json", "construct.json"}


@pytest.fixture(autouse=True)
def msprobe() -> Iterator[Any]:
    with as_msprobe():
        import msprobe.pytorch  # type: ignore[import-not-found]

        yield msprobe.pytorch


@pytest.fixture
def store() -> Iterator[str]:
    """An address of a store in memory."""
    pytest.importorskip("fsspec")
    address = f"memory://probe{os.getpid()}"
    yield address
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()


def train(debugger: Any, steps: int) -> None:
    """A small model; every operator meets tensors of its own size."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    for _ in range(steps):
        debugger.start(net, rank_id=0)
        net(torch.ones(5, 3)).square().mean().backward()
        debugger.stop()
        debugger.step()


def dump(msprobe: Any, folder: Path, steps: int = 2, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    debugger = msprobe.PrecisionDebugger(config_file(folder, **{"task": "tensor", "level": "mix", **config}))
    train(debugger, steps)
    return folder / "dump"


def tensors_of(path: Any) -> list[tuple[Any, ...]]:
    return [(one.file.levels.iteration, one.file.original_name, one.load().tobytes()) for one in DumpDir(path, True)]


def inodes(folder: Path) -> dict[int, int]:
    """Sizes of the files of a dump, a file of several names once."""
    statuses = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return {status.st_ino: status.st_size for status in statuses}


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def described(path: Path) -> int:
    """Tensors of which a dump.json tells."""
    return path.read_text().count('"requires_grad"')


def held(address: str) -> set[str]:
    return {one.url.removeprefix(f"{address}/") for one in remote.objects_below(address)}


# -- links -------------------------------------------------------------------------------------------------------------


def test_tensors_of_equal_bytes_are_one_file(msprobe: Any, tmp_path: Path) -> None:
    root = dump(msprobe, tmp_path)
    sessions.close_all()
    by_bytes: dict[tuple[int, bytes], set[int]] = {}
    files = list(root.rglob("*.pt"))
    for path in files:
        by_bytes.setdefault((int(path.parts[-4][4:]), path.read_bytes()), set()).add(path.stat().st_ino)
    assert len(files) > len(by_bytes) and all(len(same) == 1 for same in by_bytes.values())
    assert len({inode for same in by_bytes.values() for inode in same}) == len(by_bytes)
    report = sessions.reports()[-1]
    assert (report.files, report.links) == (len(by_bytes) + 2 * len(TEXTS), len(files) - len(by_bytes))
    assert report.bytes_written == sum(inodes(root).values())
    assert report.bytes_named == sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


names, contents = st.sampled_from("abc"), st.binary(min_size=1, max_size=2)


@given(st.dictionaries(names, contents), st.lists(st.lists(st.tuples(names, contents)), max_size=3))
def test_each_name_holds_what_was_saved_last(there: dict[str, bytes], steps: list[list[tuple[str, bytes]]]) -> None:
    """Whatever an earlier run has left, and also where a step begins anew."""
    with tempfile.TemporaryDirectory() as text:
        root = Path(text)
        folder = root / "step0" / "rank0" / "dump_tensor_data"
        folder.mkdir(parents=True)
        for name, content in there.items():
            (folder / name).write_bytes(content)
        files = StepFiles(root, DiskGuard(root, DiskLimits(floor_bytes=0)), None)
        for step in steps:
            files.open(folder.parent, 0, has_tensors=True)
            for name, content in step:
                assert files.save_tensor(name, content)
            files.end_step()
        files.close()
        expected = {**there, **dict(pair for step in steps for pair in step)}
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["files", "pack"])
@pytest.mark.parametrize("task", ["tensor", "statistics"])
@pytest.mark.parametrize("budget", [2000, 12000, 30000, 35000, 40000, 45000])
def test_the_budget_holds_and_what_is_lost_is_counted(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, task: str, container: str
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", str(budget))
    monkeypatch.setenv("MSDUMP_CONTAINER", container)
    root = dump(msprobe, tmp_path, 4, task=task)
    with pytest.raises(DumpError, match="not complete"):
        sessions.close_all()
    # Headers of members, and the index of a pack, come on top.
    overhead = 2048 * len(tensors_of(root)) if container == "pack" else 0
    assert sum(inodes(root).values()) <= budget + overhead
    (report,) = sessions.reports()
    assert "MSDUMP_DISK_BUDGET" in (report.failure or "")
    on_disk = len(tensors_of(root)) if task == "tensor" else sum(map(described, root.rglob("dump.json")))
    assert report.tensors_written == on_disk
    # The step in which a limit is reached is the last one that has files.
    assert len(list(root.glob("*/*/dump.json"))) - report.iterations_dumped in (0, 1) and report.iterations_dumped < 4
    # Where dump.json or stack.json alone cannot be written, all tensors have their files, or their statistics: how long
    # stack.json is follows from the paths of this checkout.
    assert report.lost > 0 or on_disk
    assert conclude([report], may_be_empty=False, stream=io.StringIO()) == INCOMPLETE
    for path in root.rglob("*.json"):
        json.loads(path.read_text())
    assert not list(root.rglob("*.part")) and not [path for path in root.rglob(".*") if path.is_file()]


def test_nothing_is_made_on_a_full_disk(msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_DISK_FLOOR", "4000T")
    with pytest.raises(FolderError, match="MSDUMP_DISK_FLOOR"):
        dump(msprobe, tmp_path, 3)
    assert not (tmp_path / "dump").exists()


def test_a_file_that_is_written_again_counts_once(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "8000")
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    for _ in range(40):
        debugger.start()
        debugger.stop()
        debugger.config.list = [] if debugger.config.list else ["x"]
    debugger.start()
    torch.ones(2).sigmoid()
    debugger.stop()
    assert list(records(tmp_path)) == ["Tensor.sigmoid.0.forward"]
    report = sessions.reports()[-1]
    assert (report.failure, report.files) == (None, 3)
    assert report.bytes_written == sum(inodes(tmp_path / "dump").values())


def test_folders_of_one_debugger_share_the_budget(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "30000")
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor"))
    for number in range(30):
        debugger.config.dump_path = str(tmp_path / f"dump{number % 3}")
        train(debugger, 1)
    size = sum(sum(inodes(tmp_path / f"dump{number}").values()) for number in range(3))
    assert 20000 < size <= 30000 and "MSDUMP_DISK_BUDGET" in (sessions.reports()[-1].failure or "")


# -- rotation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["files", "pack"])
@pytest.mark.parametrize("task", ["tensor", "statistics", "structure"])
def test_only_the_last_steps_stay(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, container: str
) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
    monkeypatch.setenv("MSDUMP_CONTAINER", container)
    stranger = tmp_path / "dump" / "step1" / "rank0" / "notes.txt"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("kept")
    root = dump(msprobe, tmp_path, 5, task=task)
    sessions.close_all()
    assert sorted(path.name for path in root.iterdir()) == ["step1", "step3", "step4"]
    assert files_below(root / "step1") == {"rank0/notes.txt"} and stranger.read_text() == "kept"
    assert {path.name for path in (root / "step4" / "rank0").iterdir()} >= TEXTS
    assert sessions.reports()[-1].iterations_dumped == 5


def test_what_was_removed_may_be_written_again(msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(inodes(dump(msprobe, tmp_path / "one", 1)).values())
    sessions.reset_for_tests()
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    # dump.json is there twice while it is written again.
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", str(3 * size))
    root = dump(msprobe, tmp_path / "many", 8)
    sessions.close_all()
    assert [path.name for path in root.iterdir()] == ["step7"]
    assert sum(inodes(root).values()) <= 3 * size


@pytest.mark.parametrize("container", ["files", "pack"])
def test_a_step_whose_rank_comes_late_is_removed_too(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, container: str
) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    monkeypatch.setenv("MSDUMP_CONTAINER", container)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor"))
    rank: list[int] = []
    monkeypatch.setattr(debugger._probe, "_current_rank", lambda: rank[0] if rank else None)
    for number in range(3):
        debugger.start()
        torch.ones(2).sigmoid()
        rank = [3]
        debugger.stop()
        debugger.start()
        torch.ones(2).tanh()
        debugger.step()
        folder = tmp_path / "dump" / f"step{number}"
        assert [path.name for path in folder.iterdir()] == ["rank3"]
        assert {one.file.op_name for one in DumpDir(folder, True)} == {
            "Tensor.sigmoid.0.forward", "Tensor.tanh.0.forward",
        }  # fmt: skip
        assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert sessions.reports()[-1].failure is None


# -- packs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def both(msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The same dump as files and in packs."""
    dumps = []
    for container in ("", "pack"):
        sessions.reset_for_tests()
        monkeypatch.setenv("MSDUMP_CONTAINER", container)
        # At one line, which the dump tells.
        dumps.append(dump(msprobe, tmp_path / (container or "plain")))
    plain, packed = dumps
    sessions.close_all()
    assert sessions.reports()[-1].failure is None
    return plain, packed


def test_packs_hold_what_folders_hold(both: tuple[Path, Path]) -> None:
    plain, packed = both
    expected = TEXTS | {"dump_tensor_data.tar"}
    assert files_below(packed) == {f"step{step}/rank0/{name}" for step in range(2) for name in expected}
    assert tensors_of(packed) == tensors_of(plain)
    assert read_msprobe_records(packed / "step1/rank0/dump.json") == read_msprobe_records(
        plain / "step1/rank0/dump.json"
    )
    assert main(["unpack", str(packed)]) == 0
    assert files_below(packed) == files_below(plain)
    for path in plain.rglob("*.pt"):
        other = packed / path.relative_to(plain)
        assert other.read_bytes() == path.read_bytes() and other.stat().st_nlink == path.stat().st_nlink


def test_commands_read_packs(both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    plain, packed = both
    told = []
    for root in both:
        assert main(["stat", str(root)]) == main(["nan", str(root)]) == 0
        assert main(["show", str(root), "Module.0.Linear.forward.0"]) == 0
        told.append(capsys.readouterr().out.replace(str(root), "ROOT"))
    assert told[0] == told[1] and "Functional.linear.0.forward" in told[0]
    assert main(["compare", str(plain), str(packed)]) == 0
    assert "identical" in capsys.readouterr().out


def test_the_first_nan_is_found_in_a_pack(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor"))
    debugger.start()
    torch.sigmoid(torch.sqrt(torch.tensor([-1.0, 4.0])))
    debugger.step()
    assert main(["nan", str(tmp_path / "dump")]) == 1
    assert "Torch.sqrt.0.forward" in capsys.readouterr().out


def test_a_step_that_begins_anew_has_one_pack(msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    for number in range(2):  # The second one is another run into the same folder.
        debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor"))
        for value in (1.0, 2.0):
            debugger.start(rank_id=0)
            torch.full((2,), value + number).sigmoid()
            debugger.service.reset_status()
        sessions.close_all()
        sessions.reset_for_tests()
        assert files_below(tmp_path / "dump/step0/rank0") == TEXTS | {"dump_tensor_data.tar"}
        loaded = [one.load().tolist() for one in DumpDir(tmp_path / "dump", True) if one.io == "input"]
        assert loaded == [[2.0 + number, 2.0 + number]]


def test_a_name_that_comes_twice_in_a_pack_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_CONTAINER", "pack")
    files = StepFiles(tmp_path, DiskGuard(tmp_path, DiskLimits(floor_bytes=0)), None)
    files.open(tmp_path / "step0" / "rank0", 0, has_tensors=True)
    assert [files.save_tensor("a", b"1"), files.save_tensor("a", b"2"), files.save_tensor("b", b"1")] == [
        True, False, True,
    ]  # fmt: skip
    files.close()
    assert files_below(tmp_path) == {"step0/rank0/dump_tensor_data.tar"}


# -- uploads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["files", "pack"])
def test_a_store_gets_what_lies_on_the_disk(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, container: str
) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", store)
    monkeypatch.setenv("MSDUMP_CONTAINER", container)
    # Of another rank, which sends its files itself.
    other = tmp_path / "dump" / "step0" / "rank1" / "dump.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    root = dump(msprobe, tmp_path)
    sessions.close_all()
    assert sessions.reports()[-1].failure is None
    assert held(store) == files_below(root) - {"step0/rank1/dump.json"}
    other.unlink()
    assert tensors_of(store) == tensors_of(root)


def test_steps_that_were_removed_are_in_the_store(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    for name, value in {"UPLOAD": store, "CONTAINER": "pack", "KEEP_ITERATIONS": "1"}.items():
        monkeypatch.setenv(f"MSDUMP_{name}", value)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor"))
    expected = {f"rank0/{name}" for name in (*TEXTS, "dump_tensor_data.tar")}
    for number in range(3):
        train(debugger, 1)
        uploader = debugger._probe._recorder.files._uploader
        while {name for name in held(store) if name.startswith(f"step{number}/")} != {
            f"step{number}/{name}" for name in expected
        }:
            assert uploader._thread.is_alive()
    sessions.close_all()
    assert [path.name for path in (tmp_path / "dump").iterdir()] == ["step2"]
    assert held(store) == {f"step{number}/{name}" for number in range(3) for name in expected}


def test_a_store_that_refuses_makes_the_dump_incomplete(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", store)
    root = dump(msprobe, tmp_path)

    def refuse(*_: Any) -> None:
        raise OSError(0, "busy")

    monkeypatch.setattr("msdump.storage.uploading.put_file", refuse)
    with pytest.raises(DumpError, match="MSDUMP_UPLOAD: expected to send"):
        sessions.close_all()
    assert conclude(sessions.reports(), may_be_empty=False, stream=io.StringIO()) == INCOMPLETE
    assert {path.name for path in (root / "step1" / "rank0").iterdir()} >= TEXTS


def test_a_store_that_no_package_reads_is_an_error_at_the_start(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setenv("MSDUMP_UPLOAD", "nosuch://x/y")
    with pytest.raises(ConfigError, match="expected a package that reads nosuch:// addresses"):
        msprobe.PrecisionDebugger(config_file(tmp_path))
    assert not (tmp_path / "dump").exists()


def test_folders_outside_of_the_first_are_not_sent_and_said(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, store: str
) -> None:
    monkeypatch.setenv("MSDUMP_UPLOAD", store)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    for path in ("dump/actor", "critic", "dump/actor"):
        debugger.config.dump_path = str(tmp_path / path)
        train(debugger, 1)
    sessions.close_all()
    assert caplog.text.count(f"MSDUMP_UPLOAD has no effect on the dump into {tmp_path / 'critic'}") == 1
    assert held(store) == {f"actor/step{step}/rank0/{name}" for step in (0, 2) for name in TEXTS}


# -- the report --------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_gone_ends_the_dump_and_not_the_script(tmp_path: Path) -> None:
    script = f"""
import shutil, torch
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger({config_file(tmp_path, task="tensor")!r})
debugger.start()
torch.ones(2).sigmoid()
shutil.rmtree({str(tmp_path / "dump")!r})
open({str(tmp_path / "dump")!r}, "w").close()
torch.ones(2).tanh()
debugger.step()
print("the script goes on")
"""
    status, output = run(tmp_path, script)
    assert status == INCOMPLETE and "the script goes on" in output and "not complete" in output, output


def test_tensors_are_not_saved_before_a_start_says_so(msprobe: Any, tmp_path: Path) -> None:
    """A gradient that comes after tensor_list was assigned, and before the next start."""
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L1"))
    debugger.start()
    loss = torch.ones(2, requires_grad=True).sigmoid().sum()
    debugger.stop()
    debugger._probe.change(debugger.config.settings().__class__(**{
        **{name: getattr(debugger._probe.settings, name) for name in debugger._probe.settings.__dataclass_fields__},
        "saved_names": ("sigmoid",),
    }))  # fmt: skip
    loss.backward()
    debugger.step()
    assert "Tensor.sigmoid.0.backward" in records(tmp_path)
    assert not list(tmp_path.rglob("*.pt"))

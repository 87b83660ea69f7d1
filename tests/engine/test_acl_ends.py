"""How a dump by acl.json ends: limits, failures, other threads and processes, callbacks."""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from msdump.engine.models import AclDump
from msdump.errors import DumpError
from msdump.formats.acl_chunks import DumpChunk
from msdump.formats.dump_dir import DumpDir
from msdump.mindspore.program.executor import Executor
from msdump.tensors.records import OpEvent
from tests.engine.acl_chains import chain, run
from tests.engine.acl_plans import LONG_SCOPE, Witness, make_dump, make_plan, tensors, tree


class Chunks:
    """Puts chunks together again."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.open: set[str] = set()

    def __call__(self, chunk: DumpChunk) -> None:
        assert (chunk.offset, chunk.flag) == (-1, 0)
        assert self.open <= {chunk.file_name}, "chunks of two files among each other"
        self.files[chunk.file_name] = self.files.get(chunk.file_name, b"") + bytes(chunk.data)
        self.open = set() if chunk.is_last else {chunk.file_name}


@pytest.mark.parametrize("keys", [{}, {"dump_data": "stats"}, {"dump_list": None, "dump_debug": "on"}])
def test_a_callback_gets_the_same_files(tmp_path: Path, keys: dict[str, object]) -> None:
    root = tmp_path / "dump"
    on_disk = make_dump(root, **keys)
    chunks = Chunks()
    in_pieces = AclDump(make_plan(root, **keys), root, callback=chunks)
    for dump in (on_disk, in_pieces):
        run(chain("Neg", "Exp"), dump, -20)
        run(chain("Neg", name="y", scope=LONG_SCOPE), dump, 1, model_id=2)
        dump.close()
    assert not chunks.open
    received = tmp_path / "received"
    for name, data in chunks.files.items():
        (received / name).parent.mkdir(parents=True, exist_ok=True)
        (received / name).write_bytes(data)

    def without_digits(names: list[str]) -> list[str]:
        return sorted(re.sub(r"/\d{16,20}$", "/DIGITS", name) for name in names)

    assert without_digits(tree(received)) == without_digits(tree(root))
    if "dump_data" not in keys:
        assert {place: array.tobytes() for place, array in tensors(received).items()} == {
            place: array.tobytes() for place, array in tensors(root).items()
        }
    assert in_pieces.report().bytes_written == on_disk.report().bytes_written


def test_a_callback_that_fails_ends_the_dump(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(chunk: DumpChunk) -> None:
        raise ValueError("no room")

    (tmp_path / "dump").mkdir()
    dump = AclDump(make_plan(tmp_path / "dump"), tmp_path / "dump", callback=refuse)
    run(chain("Neg"), dump, 1, 2)
    with pytest.raises(DumpError, match="ValueError: no room"):
        dump.close()
    assert len(caplog.records) == 1
    assert not list((tmp_path / "dump").iterdir())


def test_a_full_disk_is_told_once_and_models_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "4000")
    dump = make_dump(tmp_path / "dump")
    executors = [Executor(chain("Neg", graph_id=at), dump.observe_model(at, [f"net{at}"])) for at in range(2)]
    for iteration in range(20):
        for executor in executors:
            [result] = executor.run([np.ones((2, 3), np.float16)], iteration)
            assert (result == -1).all()
    with pytest.raises(DumpError, match=r"not complete, \d+ tensors are missing"):
        dump.close()
    dump.close()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the model continues" in caplog.text
    report = dump.report()
    assert report.error and report.lost
    assert len(list(DumpDir.open(tmp_path / "dump", strict=True))) == report.tensors_written


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    (tmp_path / "dump").chmod(0o500)
    run(chain("Neg"), dump, 1)
    with pytest.raises(DumpError):
        dump.close()


def test_the_last_iterations_of_every_model_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "2")
    for keys in ({}, {"dump_data": "stats"}):
        root = tmp_path / f"dump{len(keys)}"
        dump = make_dump(root, **keys)
        for at in range(2):
            executor = Executor(chain("Neg", graph_id=0), dump.observe_model(at, [f"net{at}"]))
            for iteration in range(5):
                executor.run([np.ones((2, 3), np.float16)], iteration)
        dump.close()
        assert {"/".join(name.split("/")[2:5]) for name in tree(root)} == {
            f"net{at}/{at}/{index}" for at in range(2) for index in (3, 4)
        }


def test_models_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_ASYNC_BUFFER", "4096")
    dump = make_dump(tmp_path / "dump", dump_mode="all")

    def work(at: int) -> None:
        # All graphs have one id: models count their own.
        executor = Executor(chain("Neg", "Neg", "Neg", shape=(64, 64)), dump.observe_model(at, ["net"]))
        for iteration in range(10):
            executor.run([np.full((64, 64), 100 * at + iteration, np.float16)], iteration)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    dump.close()
    for tensor in DumpDir.open(tmp_path / "dump", strict=True):
        place = tensor.file.levels
        assert place.graph_id is not None and place.data_index is not None
        assert abs(tensor.load()).max() == abs(tensor.load()).min() == 100 * place.graph_id + place.data_index
    assert len(tree(tmp_path / "dump")) == 4 * 10 * 4


def test_what_comes_after_the_end_is_not_dumped(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    kept, gone = dump.observe_model(1, ["kept"]), dump.observe_model(2, ["gone"])
    executors = [Executor(chain("Neg", graph_id=at), each) for at, each in enumerate((kept, gone))]
    x = np.ones((2, 3), np.float16)
    executors[1].run([x], 0)
    for observer in gone:
        observer.close()
    for executor in executors:
        executor.run([x], 1)
    dump.close()
    executors[0].run([x], 2)
    assert dump.observe_model(3, ["late"]) == dump.observe_operators() == ()
    names = {"/".join(name.split("/")[2:5]) for name in tree(tmp_path / "dump")}
    assert names == {"kept/1/0", "gone/2/0"}


class Closer(Witness):
    """Ends the dump from another thread, while the model runs."""

    def __init__(self, dump: AclDump) -> None:
        super().__init__()
        self._dump = dump

    def after_op(self, event: OpEvent) -> None:
        thread = threading.Thread(target=self._dump.close)
        thread.start()
        thread.join(60)


def test_a_dump_may_end_while_a_model_runs(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    executor = Executor(chain("Neg", "Exp", "Neg"), [*dump.observe_model(1, ["net"]), Closer(dump)])
    for iteration in range(2):
        executor.run([np.ones((2, 3), np.float16)], iteration)
    assert tree(tmp_path / "dump") == [
        "TIME/0/net/1/0/Data.x.0.0.STAMP",
        "TIME/0/net/1/0/Neg.net_Neg-op0.0.0.STAMP",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_dumps_nothing_and_ends(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump")
    executor = Executor(chain("Neg"), dump.observe_model(1, ["net"]))
    child = os.fork()
    if not child:
        [result] = executor.run([np.ones((2, 3), np.float16)], 0)
        dump.close()
        os._exit(int(result[0, 0] != -1))
    assert os.waitpid(child, 0)[1] == 0
    assert not list((tmp_path / "dump").iterdir())
    executor.run([np.ones((2, 3), np.float16)], 0)
    dump.close()
    assert len(tree(tmp_path / "dump")) == 2


def test_a_root_that_is_gone_is_an_error_at_the_end(tmp_path: Path) -> None:
    for keys in ({}, {"dump_list": None, "dump_debug": "on"}):
        dump = make_dump(tmp_path / "dump", **keys)
        (tmp_path / "dump").rmdir()
        (tmp_path / "dump").write_text("")
        run(chain("Neg", "Exp"), dump, -20, -20)
        with pytest.raises(DumpError, match="expected"):
            dump.close()
        assert dump.report().lost
        (tmp_path / "dump").unlink()


def test_all_calls_of_operators_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDUMP_KEEP_ITERATIONS", "1")
    dump = make_dump(tmp_path / "dump", dump_list=[], dump_op_switch="on")
    observers = dump.observe_operators()
    for number in range(4):
        Executor(chain("Neg", graph_id=number), observers).run([np.ones((2, 3), np.float16)], number)
    dump.close()
    assert len(tree(tmp_path / "dump")) == 4


def test_nothing_overflows_after_the_end(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    executor = Executor(chain("Neg", "Exp"), dump.observe_model(1, ["net"]))
    dump.close()
    with np.errstate(over="ignore"):
        executor.run([np.full((2, 3), -20, np.float16)], 0)
    assert not list((tmp_path / "dump").iterdir())


def test_overflows_of_several_models_are_told_together(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    for model_id in (1, 2):
        run(chain("Neg", "Exp"), dump, -20, names=[f"net{model_id}"], model_id=model_id)
    dump.close()
    report = dump.report()
    assert report.overflows == ("net/Exp-op1",) * 2
    assert (report.tensors_written, report.files, report.lost) == (4, 4, 0)


def test_each_dump_has_a_time_of_its_own(tmp_path: Path) -> None:
    for _ in range(3):
        dump = make_dump(tmp_path / "dump")
        run(chain("Neg"), dump, 1)
        dump.close()
    assert len(list((tmp_path / "dump").iterdir())) == 3


def test_an_operator_that_raises_ends_its_iteration_alone(tmp_path: Path, collective: str) -> None:
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    executor = Executor(chain("Neg", collective), dump.observe_model(1, ["net"]))
    with pytest.raises(Exception, match="NaN"):
        executor.run([np.full((2, 3), np.nan, np.float16)], 0)
    executor.run([np.ones((2, 3), np.float16)], 1)
    dump.close()
    found = tensors(tmp_path / "dump")
    # What the operator read is there; what it would have left is not.
    assert {place[1:3] for place in found if place[0] == 0 and place[1].startswith("net_Hcom")} == {
        ("net_HcomAllReduce-op1", "input")
    }
    assert sum(place[0] == 1 for place in found) == 6
    assert not dump.report().error

"""Wrong configurations stop before the first step; a dump that cannot be written never stops the model."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair
from msdump.errors import ConfigError, FolderError, WriteError
from msdump.formats.atomic import Folder
from msdump.torchair.file_dump import eager
from tests.torchair.dumps import backend_for, config_for, read_steps

torch = pytest.importorskip("torch")

X = torch.ones(2)


def raised_by(path: Path, node_filter: Any) -> str:
    """Text of the ConfigError that compiling a model with this filter gives."""
    with pytest.raises(Exception, match=r"data_dump\.filter") as caught:
        torch.compile(lambda x: x + 1, backend=backend_for(path, node_filter))(X)
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ConfigError):
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert isinstance(error, ConfigError)
    assert not list(path.iterdir())
    return str(error)


@pytest.mark.parametrize(
    ("node_filter", "text"),
    [
        (lambda n: n.no_such, "for node 'arg0_1' (placeholder arg0_1), got AttributeError: 'Node' object has no"),
        (lambda n: {"x": 1}[n.name], "for node 'arg0_1' (placeholder arg0_1), got KeyError: 'arg0_1'"),
        (lambda n: n.prev, "expected node 'arg0_1' itself or None, got node "),
        (lambda n: n.op == "call_function", "expected node 'add' itself or None, got True. Write `n if ... else None`"),
        (lambda: None, "for node 'arg0_1' (placeholder arg0_1), got TypeError"),
    ],
)
def test_a_filter_that_misbehaves_is_an_error_with_the_nodes_name(node_filter: Any, text: str, tmp_path: Path) -> None:
    assert text in raised_by(tmp_path, node_filter)


@pytest.mark.parametrize("nothing", [None, False, 0, ""])
def test_anything_false_leaves_a_node_out(nothing: Any, tmp_path: Path) -> None:
    backend = backend_for(tmp_path, lambda n: n if n.name == "relu" else nothing)
    torch.compile(lambda x: x.relu() + 1, backend=backend)(X)
    ((step,),) = read_steps(tmp_path)
    assert set(step.values) == {"relu"}


def test_options_of_torch_compile_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=re.escape("expected no options for this backend, got {'options':")):
        torch.compile(lambda x: x + 1, backend=backend_for(tmp_path), options={"a": 1})(X)


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_a_folder_in_which_no_dump_can_begin_is_refused_before_the_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match=r"file/dump: expected a folder .* is a file"):
        backend_for(tmp_path / "file" / "dump")


def test_a_file_in_the_way_of_a_rank_is_said_once_and_the_model_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "worldsize1_global_rank0").write_text("")
    compiled = torch.compile(lambda x: x + 1, backend=backend_for(tmp_path))
    for _ in range(3):
        assert torch.equal(compiled(X), X + 1)
    (error,) = errors_of(caplog)
    assert error.startswith("The dump is not complete, the model continues without it. ")
    assert "worldsize1_global_rank0: expected a folder, got a file. Move it away" in error


def test_a_full_disk_is_said_once_and_leaves_whole_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = Folder.write

    def limited(self: Folder, name: str, *arguments: Any, **keywords: Any) -> int:
        if len(written) == 4:
            raise WriteError(f"{name}: expected to write 136 bytes, got No space left on device.")
        written.append(name)
        return write(self, name, *arguments, **keywords)

    monkeypatch.setattr(Folder, "write", limited)
    compiled = torch.compile(lambda x: (x + 1) * 2, backend=backend_for(tmp_path))
    for _ in range(2):
        assert torch.equal(compiled(X), (X + 1) * 2)
    assert len(errors_of(caplog)) == 1
    ((step,),) = read_steps(tmp_path)
    # What add made and mul reads is one file.
    assert sum(len(values) for values in step.values.values()) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FolderError, match="not writable"):
        backend_for(tmp_path)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder where nobody may make one")
def test_a_folder_where_not_even_root_may_write() -> None:
    with pytest.raises(FolderError, match=r"/msdump: expected a folder"):
        backend_for(Path("/proc/self/msdump"))


def test_ctrl_c_in_the_middle_of_a_step_leaves_whole_files_and_the_next_step_its_own(tmp_path: Path) -> None:
    @torch.library.custom_op("msdump_test::ctrl_c", mutates_args=(), schema="(Tensor x) -> Tensor")
    def ctrl_c(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise KeyboardInterrupt
        return x.clone()

    ctrl_c.register_fake(lambda x: torch.empty_like(x))
    compiled = torch.compile(lambda x: ctrl_c(x + 1) * 2, backend=backend_for(tmp_path))
    compiled(X)
    with pytest.raises(KeyboardInterrupt):
        compiled(X - 9)
    assert torch.equal(compiled(X), (X + 1) * 2)
    ((first, stopped, last),) = read_steps(tmp_path)
    assert set(first.values) == set(last.values) == {"add", "ctrl_c", "mul"}
    assert set(stopped.values["ctrl_c"]) == {("INPUT", 0)}
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_another_folder_is_not_concerned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "worldsize1_global_rank0").write_text("")
    config = config_for(tmp_path / "bad")
    compiled = torch.compile(
        lambda x: x.relu(), backend=torchair.get_npu_backend(compiler_config=config), dynamic=False
    )
    compiled(X)
    config.debug.data_dump.path = tmp_path / "good"
    compiled(torch.ones(3))
    compiled(X)
    assert len(errors_of(caplog)) == 1
    ((step,),) = read_steps(tmp_path / "good")
    assert set(step.values) == {"relu"}


def test_an_earlier_dump_in_the_folder_is_said_once_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = tmp_path / "worldsize1_global_rank0" / "graph_1" / "0" / "old.npy"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    compiled = torch.compile(lambda x: x.relu(), backend=backend_for(tmp_path))
    compiled(X)
    compiled(X)
    told = [record.getMessage() for record in caplog.records if "expected an empty folder" in record.getMessage()]
    assert len(told) == 1
    assert old.read_bytes() == b"old"


def test_a_name_that_is_too_long_goes_to_the_mapping(tmp_path: Path) -> None:
    name = "long_" + "x" * 260

    @torch.library.custom_op(f"msdump_test::{name}", mutates_args=(), schema="(Tensor x) -> Tensor")
    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    copied.register_fake(lambda x: torch.empty_like(x))
    assert torch.equal(torch.compile(lambda x: copied(x), backend=backend_for(tmp_path))(X), X)
    (mapping,) = tmp_path.rglob("mapping.csv")
    lines = mapping.read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        short, _, original = line.partition(",")
        assert (mapping.parent / short).is_file() and name in original


@pytest.mark.parametrize(("method", "runs_lost"), [("write", 1), ("close", 0)])
def test_what_a_failure_costs_is_counted(
    method: str, runs_lost: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a run is written, or its folder fails when all of it is; the next run is not dumped at all."""
    torch.compile(lambda x: x + 1, backend=backend_for(tmp_path / "whole"))(X)
    in_one_run = len(list((tmp_path / "whole").rglob("*.npy")))
    compiled = torch.compile(lambda x: x + 1, backend=backend_for(tmp_path / "cut"))
    before = eager.report().lost

    def fail(self: Folder, *_: object, **__: object) -> int:
        raise WriteError("somewhere: expected to write, got a full disk.")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, method, fail)
        for _ in range(2):
            assert torch.equal(compiled(X), X + 1)
    (error,) = errors_of(caplog)
    assert error.endswith("got a full disk.")
    assert eager.report().lost - before == runs_lost * in_one_run
    assert len(list((tmp_path / "cut").rglob("*.npy"))) == (1 - runs_lost) * in_one_run

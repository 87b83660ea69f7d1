"""dump_config: what its options refuse, the file that it may name, and backends that share a process."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.config.acl_file import AclConfigError  # noqa: E402
from msdump.errors import ConfigError  # noqa: E402
from msdump.formats.bin import read_bin  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.torchair.graph_mode_dumps import (  # noqa: E402
    RANK,
    Net,
    backend,
    dumped,
    net,
    steps,
    tree,
)

pytestmark = pytest.mark.usefixtures("own_dump")

# -- a file of options ---------------------------------------------------------------------------------------------


def configured(tmp_path: Path, **content: Any) -> Any:
    file = tmp_path / "acl.json"
    file.write_text(json.dumps({"dump": content}))
    return backend(None, dump_config_path=str(file))


def test_a_file_dumps_the_models_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    function = torch.compile(
        Net(), backend=configured(tmp_path, dump_path=str(tmp_path / "dump"), dump_list=[{"layer": ["Relu"]}])
    )
    steps(function, 2)
    sessions.close_all()
    found = sorted(file.relative_to(tmp_path / "dump").parts for file in (tmp_path / "dump").rglob("Relu.Relu.*"))
    # The file's own folder, without that of the rank.
    assert [(len(parts), parts[1], parts[4]) for parts in found] == [(6, "0", "0"), (6, "0", "1")]
    assert {tensor.io for tensor in read_bin(tmp_path.joinpath("dump", *found[0])).tensors} == {"output"}
    assert not (tmp_path / "ge_dump_data_json").exists()


def test_a_file_asks_for_overflow(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    function = torch.compile(
        lambda x: (x * 1e30) * 1e30 + 1, backend=configured(tmp_path, dump_path=str(tmp_path / "dump"), dump_debug="on")
    )
    assert torch.isinf(function(torch.ones(3))).all()
    sessions.close_all()
    names = [file.name for file in (tmp_path / "dump").rglob("*") if file.is_file()]
    assert any(name.startswith("Mul.Mul_1.") for name in names)
    assert any(name.startswith("Opdebug.") for name in names)
    assert not any(name.startswith(("Mul.Mul.", "Add.")) for name in names)
    (report,) = sessions.reports()
    assert report.overflows is not None
    assert len(report.overflows) == 1


def test_a_file_asks_for_a_watcher(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    function = torch.compile(
        Net(),
        backend=configured(
            tmp_path,
            dump_path=str(tmp_path / "dump"),
            dump_scene="watcher",
            dump_mode="output",
            dump_list=[{"layer": ["Mul_1"], "watcher_nodes": ["Relu"]}],
        ),
    )
    steps(function, 1)
    sessions.close_all()
    names = {".".join(file.name.split(".")[:2]) for file in (tmp_path / "dump").rglob("*") if file.is_file()}
    assert "Relu.Relu" in names
    assert any("Mul_1" in name and "Relu" in name for name in names), names


def test_a_file_beside_other_options_is_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "acl.json"
    file.write_text("{")
    with caplog.at_level(logging.WARNING, "msdump"):
        found = dumped(tmp_path, 1, dump_config_path=str(file))
    assert {graph for graph, _ in found} == {"graph_0", "graph_1"}
    assert sum("dump_config_path" in record.message for record in caplog.records) >= 1


def test_a_bad_file_is_refused_with_its_item(tmp_path: Path) -> None:
    function = torch.compile(Net(), backend=configured(tmp_path, dump_path=str(tmp_path), dump_mode="both"))
    with pytest.raises(Exception, match="EP0002: dump_mode") as caught:
        function(torch.ones(2, 4))
    assert isinstance(getattr(caught.value, "inner_exception", caught.value), AclConfigError)


def test_a_file_without_anything_to_do_changes_nothing(tmp_path: Path) -> None:
    function = torch.compile(Net(), backend=configured(tmp_path, dump_path=str(tmp_path)))
    steps(function, 1)
    assert sessions.reports() == []
    assert [file.name for file in tmp_path.iterdir()] == ["acl.json"]


# -- what is refused -----------------------------------------------------------------------------------------------


def test_two_backends_with_different_options(tmp_path: Path) -> None:
    steps(net(tmp_path, dump_mode="output")[1], 1)
    _, other = net(tmp_path, dump_mode="input")
    with pytest.raises(Exception, match="twice") as caught:
        other(torch.ones(2, 4))
    error = getattr(caught.value, "inner_exception", caught.value)
    assert isinstance(error, ValueError)
    first, *_ = str(error).splitlines()
    assert first == "Unsupport twice initialtion with different options, new option key dump_mode"
    assert "'output'" in str(error)
    assert "'input'" in str(error)


def test_two_backends_with_the_same_options_share_a_dump(tmp_path: Path) -> None:
    for _ in range(2):
        steps(net(tmp_path)[1], 1)
        torch._dynamo.reset()
    sessions.close_all()
    assert len(tree(tmp_path)) == 4
    assert len(list((tmp_path / RANK).iterdir())) == 1


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^Please set legal dir path, {tmp_path}/no is not found"):
        backend(tmp_path / "no")


@pytest.mark.parametrize("obstacle", ["a file in the place of the folder", "a folder in the place of the file"])
def test_options_that_cannot_be_shown_stop_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, obstacle: str
) -> None:
    folder = tmp_path / "ge_dump_data_json"
    if obstacle.startswith("a file"):
        folder.write_text("")
    else:
        (folder / f"dump_options_worldsize1_rank0_pid{os.getpid()}.json" / "x").mkdir(parents=True)
    with caplog.at_level(logging.WARNING, "msdump"):
        found = dumped(tmp_path, 1)
    assert {graph for graph, _ in found} == {"graph_0", "graph_1"}
    assert sum("cannot be written to a file" in record.message for record in caplog.records) == 1


def test_a_rank_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / RANK).write_text("")
    _, function = net(tmp_path)
    with pytest.raises(Exception, match=RANK):
        function(torch.ones(2, 4))


def test_without_the_switch_nothing_happens(tmp_path: Path) -> None:
    _, function = net(None, dump_path=str(tmp_path), dump_layer="Relu")
    steps(function, 1)
    assert list(tmp_path.iterdir()) == []
    assert sessions.reports() == []


def test_the_refusal_is_a_configuration_error() -> None:
    assert issubclass(AclConfigError, ConfigError)


def test_a_run_that_leaves_nothing_says_so_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, torchair\n"
        "config = torchair.CompilerConfig()\n"
        "config.dump_config.enable_dump = True\n"
        "config.dump_config.dump_layer = 'Nope'\n"
        "compiled = torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend(compiler_config=config))\n"
        "compiled(torch.ones(2))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-m", "msdump", "run", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 3, done.stderr
    assert "no graph has an operator Nope" in done.stderr
    assert "Nothing was dumped" in done.stderr

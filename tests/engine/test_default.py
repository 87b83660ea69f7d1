"""`msdump.dump()` and `msdump.watch()` without a configuration: statistics of every step in a folder of their own."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import msdump
from msdump.config.json_file import mapping_as_file
from msdump.config.mindspore import parse_mindspore_config
from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.process.default_folder import claim_folder, release_empty


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_pytorch_runs_is_dumped(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    with caplog.at_level(logging.WARNING, "msdump"), msdump.watch(model) as watch:
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
    assert f"Statistics of every step go to {here / 'msdump_dump'}." in caplog.text
    report = watch.report()
    assert report is not None and report.iterations_dumped == 2
    assert msdump.find_nan("msdump_dump").first is None
    assert {row.step.iteration for row in msdump.stat("msdump_dump").rows} == {0, 1}


def test_a_block_that_is_not_entered_leaves_nothing(here: Path) -> None:
    pytest.importorskip("torch")

    @msdump.watch()
    def train() -> None:
        pass

    msdump.dump()
    assert list(here.iterdir()) == []


def test_a_configuration_counts_before(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    config = opening.default_config()
    config["common_dump_settings"]["path"] = str(here / "other")
    with msdump.dump(config), msdump.watch() as watch:
        torch.ones(1) + 1
    assert watch.report() is not None and watch.report().path == str(here / "other")
    assert not (here / "msdump_dump_2").exists()
    (here / "dump.json").write_text("{}")
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(here / "dump.json"))
    with pytest.raises(ConfigError, match="common_dump_settings"), msdump.watch():
        pass


def test_one_block_is_for_graphs_and_models(here: Path, needs_mindspore: None) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np

    from msdump import acl, mindspore

    text = '<ir_version: 9, opset_import: ["" : 17]> net (float[2] x) => (float[2] y) { [sqrt] y = Sqrt(x) }'
    onnx.save(onnx.parser.parse_model(text), here / "model.onnx")
    with msdump.dump() as dump:
        assert dump.path is None and list(here.glob("msdump_dump/[!.]*")) == []
        acl.load("model.onnx")(np.float32([1, -1]))
        assert dump.path == here / "msdump_dump"
        mindspore.nn.ReLU()(mindspore.Tensor(np.float32([1, 2])))
    assert (here / "msdump_dump/rank_0").is_dir() and list(here.glob("msdump_dump/2*"))
    first = msdump.find_nan(here / "msdump_dump").first
    assert first is not None and first.operator.op_type == "Sqrt"


def test_the_budget_is_that_of_the_environment_where_it_has_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opening.default_config()["common_dump_settings"]["disk_budget"] == "4G"
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "1M")
    assert "disk_budget" not in opening.default_config()["common_dump_settings"]


@pytest.mark.parametrize(("value", "size"), [("4G", 4 << 30), (1000, 1000), ("12K", 12288)])
def test_a_budget_of_the_configuration(here: Path, value: object, size: int) -> None:
    config = opening.default_config()
    config["common_dump_settings"]["disk_budget"] = value
    assert parse_mindspore_config(mapping_as_file(config, "x.json")).common.disk_budget == size


@pytest.mark.parametrize("value", ["much", 0, -1, True, None, 1.5, []])
def test_a_wrong_budget_names_its_path(here: Path, value: object) -> None:
    config = opening.default_config()
    config["common_dump_settings"]["disk_budget"] = value
    with pytest.raises(ConfigError, match=r'common_dump_settings\.disk_budget: expected a size such as "8G"'):
        parse_mindspore_config(mapping_as_file(config, "x.json"))


def test_a_budget_that_is_used_up_ends_the_dump_and_says_so(here: Path) -> None:
    torch = pytest.importorskip("torch")
    config = opening.default_config()
    config["common_dump_settings"]["disk_budget"] = 3000
    with msdump.watch(config=config) as watch:
        for _ in range(50):
            torch.nn.functional.linear(torch.ones(1, 2), torch.ones(2, 2))
            watch.step()
    report = watch.report()
    assert report is not None and report.lost and "(disk_budget)" in str(report.error)
    assert sum(path.stat().st_size for path in here.glob("msdump_dump/rank_0/Net/**/*.csv")) <= 3000


# -- the folder --------------------------------------------------------------------------------------------------------

RANKS = {"MASTER_ADDR": "host", "MASTER_PORT": "1", "WORLD_SIZE": "2"}


def test_folders_are_numbered(tmp_path: Path) -> None:
    base = tmp_path / "a/dump"
    assert [claim_folder(base, {}).name for _ in range(3)] == ["dump", "dump_2", "dump_3"]
    release_empty(tmp_path / "a/dump_2")
    assert claim_folder(base, {}).name == "dump_2"
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes").write_text("mine")
    assert claim_folder(tmp_path / "full", {}).name == "full_2"
    release_empty(tmp_path / "full")
    assert (tmp_path / "full/notes").read_text() == "mine"
    with pytest.raises(ConfigError, match="--output: expected a folder that is empty or not there"):
        claim_folder(tmp_path / "full", {}, is_exact=True)


def test_ranks_of_one_job_meet(tmp_path: Path) -> None:
    base = tmp_path / "dump"
    for rank in "01":
        assert claim_folder(base, {**RANKS, "RANK": rank}) == base
        (base / f"rank_{rank}").mkdir()
    # The same job again: torchrun starts ranks that failed anew.
    assert claim_folder(base, {**RANKS, "RANK": "0"}).name == "dump_2"
    assert claim_folder(base, {**RANKS, "RANK": "1"}).name == "dump_2"
    assert claim_folder(base, {**RANKS, "RANK": "1", "WORLD_SIZE": "4"}).name == "dump_3"
    assert claim_folder(base, {}).name == "dump_4"

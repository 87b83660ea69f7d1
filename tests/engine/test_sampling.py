"""A dump of each n-th iteration, whichever front end runs, and what its report says."""

from __future__ import annotations

from pathlib import Path

import pytest

import msdump
from msdump.graph.graph import Graph
from msdump.graph.run import ObservedGraph
from tests.dumpers.test_sync import dumping


def test_a_graph_is_watched_in_each_third_iteration() -> None:
    with dumping(sampling=3, iteration="2-20") as (session, _):
        seen = ObservedGraph(Graph("kernel_graph_0", 0), session.observers)
        runs = [seen.begin(iteration) for iteration in range(30)]
        assert [number for number, run in enumerate(runs) if run is not None] == [3, 6, 9, 12, 15, 18]
        session.close()
        assert session.report().notes == ("one iteration in 3 was dumped (sampling).",)


def test_eager_pytorch_is_dumped_in_each_fourth_iteration(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.frontends.torch.eager.test_watch import config

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with msdump.watch(model, config(tmp_path, sampling="4")) as watch:
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    report = watch.report()
    assert report is not None and report.iterations_dumped == 3 and report.iterations_run == 10
    assert "one iteration in 4 was dumped (sampling)." in report.notes
    assert sorted(int(folder.name) for folder in (tmp_path / "rank_0/Net/0").iterdir()) == [0, 4, 8]


def test_a_share_of_the_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tests.frontends.torch.eager.test_watch import config

    monkeypatch.setenv("MSDUMP_SAMPLING", "20%")
    model = torch.nn.Linear(3, 2)
    with msdump.watch(model, config(tmp_path)) as watch:
        for _ in range(40):
            model(torch.ones(2, 3)).sum().backward()
    report = watch.report()
    # How many, the speed of the machine decides.
    assert report is not None and 2 <= report.iterations_dumped <= report.iterations_run == 40
    dumped = {int(folder.name) for folder in (tmp_path / "rank_0/Net/0").iterdir()}
    assert {0, 4} <= dumped and len(dumped) == report.iterations_dumped
    assert any("20% of the time (sampling)" in note for note in report.notes)

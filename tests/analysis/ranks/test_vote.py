"""A vote on one operator: the majority's bits are right, who has others is named, a tie blames nobody."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("joblib")

from msdump.analysis.ranks.vote import Ballot, count, replay_everywhere
from msdump.cli.main import main
from tests.analysis.exporting.conftest import golden_dump_folder, home  # noqa: F401  a dump with its graph files

OPERATOR = "Default/*/Sigmoid-op*"


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_the_majority_is_right(hashes: list[str]) -> None:
    vote = count([Ballot(f"host{number}", number, {"numpy": one}) for number, one in enumerate(hashes)])
    most = Counter(hashes).most_common(2)
    if len(most) > 1 and most[0][1] == most[1][1]:
        assert vote.is_tied and not vote.outvoted and not vote.winners
    else:
        assert not vote.is_tied and vote.winners == {"numpy": most[0][0]}
        assert [ballot.process for ballot, _ in vote.outvoted] == [
            number for number, one in enumerate(hashes) if one != most[0][0]
        ]


def test_workers_of_one_machine_agree(golden_dump_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    arguments = [
        "replay",
        str(golden_dump_folder),
        "Default/*/Sigmoid-op*",
        "--iteration",
        "0",
        "--everywhere",
        "--jobs",
        "2",
    ]
    assert main(arguments) == 0
    assert "all 2 workers computed the same bits" in capsys.readouterr().out
    assert main([*arguments, "--engine", "threads", "--json", "-"]) == 0
    workers = json.loads(capsys.readouterr().out)["workers"]
    assert len(workers) == 2 and workers[0]["hashes"] == workers[1]["hashes"] and "numpy" in workers[0]["hashes"]
    assert main([*arguments[:2], "NoSuch", "--everywhere", "--jobs", "1"]) == 2


@pytest.mark.slow
def test_each_worker_of_a_cluster_has_a_vote(golden_dump_folder: Path) -> None:  # noqa: F811
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        engine = f"dask={cluster.scheduler_address}"
        vote = replay_everywhere(golden_dump_folder, OPERATOR, engine=engine, iteration=0)
        assert {ballot.process for ballot in vote.ballots} == {worker.pid for worker in cluster.workers.values()}
    assert not vote.outvoted and not vote.is_tied and vote.winners

"""The same tables from every engine, by parts, and after a rerun; nothing is lost and nothing is written twice."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("duckdb")
pytest.importorskip("joblib")

from msdump.analysis.ranks.job import write_tables
from msdump.analysis.ranks.questions import Tables
from msdump.analysis.ranks.work import each_unit, share_of
from msdump.errors import ConfigError
from tests.analysis.ranks.conftest import MakeJob


def rows(folder: Path) -> list[str]:
    return sorted(map(repr, Tables(folder).sql("select * from tensors").fetchall()))


@pytest.mark.parametrize("engine", ["threads", "processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_every_engine_gives_the_same_rows(make_job: MakeJob, tmp_path: Path, engine: str) -> None:
    if engine == "dask" and importlib.util.find_spec("distributed") is None:
        pytest.skip("needs distributed")
    job = make_job()
    write_tables([job], tmp_path / "one", jobs=1)
    parts = write_tables([job], tmp_path / "other", engine=engine, jobs=2)
    assert len(parts) == 12 and not [part for part in parts if part.problem or part.damaged]
    assert rows(tmp_path / "one") == rows(tmp_path / "other")


def test_parts_are_the_whole_and_a_rerun_does_nothing(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job()
    write_tables([job], tmp_path / "one", jobs=1)
    for number in range(1, 5):
        assert all(part.is_new for part in write_tables([job], tmp_path / "other", jobs=1, part=f"{number}/4"))
    assert rows(tmp_path / "one") == rows(tmp_path / "other")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "one").iterdir()}
    assert not any(part.is_new for part in write_tables([job], tmp_path / "one", jobs=1))
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "one").iterdir()} == before
    assert all(part.is_new for part in write_tables([job], tmp_path / "one", jobs=1, is_forced=True))


def test_little_work_starts_no_process() -> None:
    assert set(each_unit(lambda _: os.getpid(), range(5))) == {os.getpid()}


@given(st.integers(0, 50), st.integers(1, 12))
def test_every_unit_is_in_one_share(count: int, parts: int) -> None:
    shares = [share_of(range(count), f"{number}/{parts}") for number in range(1, parts + 1)]
    assert sorted(unit for share in shares for unit in share) == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_share_of_a_slurm_array(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ID": "7", "MIN": "5", "COUNT": "4"}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    assert share_of(range(9), "slurm") == [2, 6]
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID")
    with pytest.raises(ConfigError, match="SLURM_ARRAY_TASK_ID"):
        share_of(range(9), "slurm")


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "1/0", "-1/2", "a/b", "1/4/2", ""])
def test_wrong_parts(part: str) -> None:
    with pytest.raises(ConfigError, match="--part: expected a part such as"):
        share_of(range(9), part)


@pytest.mark.parametrize("engine", ["thread", "spark", "threads=4", "ray=x"])
def test_wrong_engines(engine: str) -> None:
    with pytest.raises(ConfigError, match="--engine: expected one of"):
        each_unit(str, [1, 2], engine)


@pytest.mark.slow
def test_a_killed_worker_of_dask_loses_nothing(make_job: MakeJob, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    job = make_job(iterations=20)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        killer = threading.Thread(target=lambda: (time.sleep(0.3), os.kill(pids[0], signal.SIGKILL)))
        killer.start()
        parts = write_tables([job], tmp_path / "t", engine=f"dask={cluster.scheduler_address}")
        killer.join()
    assert len(parts) == 80 and not [part for part in parts if part.problem]
    write_tables([job], tmp_path / "one", jobs=1)
    assert rows(tmp_path / "one") == rows(tmp_path / "t")


@pytest.mark.slow
def test_one_table_from_every_engine(make_job: MakeJob, tmp_path: Path) -> None:
    """Threads, processes, a Dask cluster that loses a worker, Ray and four parts: the same rows, nothing is lost."""
    distributed, ray = pytest.importorskip("distributed"), pytest.importorskip("ray")
    job = make_job(iterations=10)
    answers = {}
    for engine in ("threads", "processes"):
        write_tables([job], tmp_path / engine, engine=engine, jobs=2)
        answers[engine] = rows(tmp_path / engine)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        pid = next(iter(cluster.workers.values())).pid
        killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
        killer.start()
        write_tables([job], tmp_path / "dask", engine=f"dask={cluster.scheduler_address}")
        killer.join()
    answers["dask"] = rows(tmp_path / "dask")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        parts = write_tables([job], tmp_path / "ray", engine="ray")
    finally:
        ray.shutdown()
    assert not [part for part in parts if part.problem]
    answers["ray"] = rows(tmp_path / "ray")
    for number in range(1, 5):
        write_tables([job], tmp_path / "parts", jobs=1, part=f"{number}/4")
    answers["parts"] = rows(tmp_path / "parts")
    assert len(answers["threads"]) > 100
    assert all(answer == answers["threads"] for answer in answers.values())


@pytest.mark.slow
def test_each_worker_measures_what_lies_on_its_machine(make_job: MakeJob, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    job = make_job()
    write_tables([job], tmp_path / "one", jobs=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        engine = f"dask={cluster.scheduler_address}"
        parts = write_tables([job], tmp_path / "local", engine=engine, is_local=True)
        with pytest.raises(ConfigError, match="--local: expected a dump"):
            write_tables([tmp_path / "no"], tmp_path / "none", engine=engine, is_local=True)
    assert len(parts) == 12 and not [part for part in parts if part.problem]
    assert rows(tmp_path / "local") == rows(tmp_path / "one")


@pytest.mark.parametrize(("engine", "jobs"), [("processes", 1), ("threads", 2)])
def test_progress_is_told_unit_by_unit(engine: str, jobs: int) -> None:
    told: list[tuple[int, int]] = []
    found = each_unit(abs, [-3, 1, -2], engine, jobs, lambda done, total: told.append((done, total)))
    assert (found, told) == ([3, 1, 2], [(1, 3), (2, 3), (3, 3)])

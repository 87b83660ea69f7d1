"""Sampled dumps: gradients of the iterations in between, for programs that run eagerly and compiled."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis import compare_dumps, find_non_finite  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.formats.dump_dir import DumpDir  # noqa: E402
from msdump.formats.gradients_csv import GradientRow  # noqa: E402

EVERY = 5


def configuration(folder: Path, **settings: object) -> Path:
    file = folder / "dump.json"
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all",
        "saved_data": "statistic", "input_output": 0, "kernels": [], "support_device": [0], "sampling": EVERY,
        **settings,
    }  # fmt: skip
    e2e = {"enable": True, "trans_flag": True}
    file.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": e2e}))
    return file


def train(
    file: Path,
    is_compiled: bool = False,
    count: int = 12,
    bad: int | None = None,
    factor: float = 1.0,
    rate: float = 0.01,
    dtype: torch.dtype = torch.float32,
) -> tuple[list[float], torch.nn.Module]:
    """The L2 norm of all gradients of each step."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).to(dtype)
    optimizer = torch.optim.SGD(net.parameters(), rate)
    called = torch.compile(net, backend="msdump") if is_compiled else net
    norms = []
    watching: AbstractContextManager[object] = msdump.dump(file) if is_compiled else msdump.watch(net, file)
    with watching:
        for number in range(count):
            optimizer.zero_grad()
            loss = called(torch.randn(4, 6, dtype=dtype)).sum()
            if number == bad:
                loss = loss * math.nan
            (loss * factor).backward()
            norms.append(float(torch.cat([each.grad.double().flatten() for each in net.parameters()]).norm()))
            optimizer.step()
    torch._dynamo.reset()
    return norms, net


def rows_of(folder: Path) -> tuple[GradientRow, ...]:
    return DumpDir.open(folder / "dump").gradients.get(0, ())


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_each_step_in_between_has_the_norm_of_its_gradients(
    tmp_path: Path, is_compiled: bool, dtype: torch.dtype
) -> None:
    norms, _ = train(configuration(tmp_path), is_compiled, dtype=dtype)
    rows = rows_of(tmp_path)
    assert [row.iteration for row in rows] == [number for number in range(len(norms)) if number % EVERY]
    for row in rows:
        assert row.l2norm == pytest.approx(norms[row.iteration], rel=1e-5)
        assert (row.optimizer, row.parameters, row.is_bad) == ("SGD", 4, False)
    assert len({row.digest for row in rows}) == len(rows)


def test_without_sampling_nothing_is_read(tmp_path: Path) -> None:
    train(configuration(tmp_path, sampling=1, iteration="0"))
    file = configuration(tmp_path, iteration="0")
    content = json.loads(file.read_text())
    del content["common_dump_settings"]["sampling"]
    file.write_text(json.dumps(content))
    (tmp_path / "other").mkdir()
    content["common_dump_settings"]["path"] = str(tmp_path / "other" / "dump")
    file.write_text(json.dumps(content))
    train(file)
    assert rows_of(tmp_path / "other") == ()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_the_first_nan_is_that_of_the_iteration_in_between(
    tmp_path: Path, is_compiled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configuration(tmp_path), is_compiled, bad=7)
    found = find_non_finite(tmp_path / "dump")
    assert found.between is not None
    assert (found.between.rank, found.between.row.iteration, found.between.row.not_finite) == (0, 7, 4)
    assert found.between.row.first.endswith("0.weight")
    assert found.first is not None and found.first.step.iteration == 10  # which reads the parameters
    assert find_non_finite(tmp_path / "dump", iteration=0).between is None
    assert main(["nan", str(tmp_path / "dump")]) == 1
    first = "first NaN or Inf: gradients of 0.weight and 3 more, rank 0, iteration 7"
    assert capsys.readouterr().out.startswith(first)


def test_a_nan_of_a_dumped_iteration_stands_alone(tmp_path: Path) -> None:
    train(configuration(tmp_path), bad=5)
    found = find_non_finite(tmp_path / "dump")
    assert found.between is None and found.first is not None and found.first.step.iteration == 5


def test_finite_gradients_with_a_large_norm_are_finite(tmp_path: Path) -> None:
    train(configuration(tmp_path), factor=1e25, rate=0.0, count=3)
    rows = rows_of(tmp_path)
    assert [row.is_bad for row in rows] == [False, False]


def test_two_runs_are_compared_in_between(tmp_path: Path) -> None:
    folders = [tmp_path / "mine", tmp_path / "golden"]
    for folder in folders:
        folder.mkdir()
        train(configuration(folder, saved_data="tensor"))
    assert compare_dumps(*(folder / "dump" for folder in folders)).notes == ()
    file = folders[0] / "dump" / "rank_0" / ".dump_metadata" / "gradients.csv"
    file.chmod(0o600)
    lines = file.read_text().splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("8,"))
    values = lines[place].split(",")
    values[3] = repr(2 * float(values[3]))
    lines[place] = ",".join(values)
    file.write_text("\n".join(lines) + "\n")
    (note,) = compare_dumps(*(folder / "dump" for folder in folders)).notes
    assert "gradients of rank 0 first differ in iteration 8" in note


@pytest.mark.parametrize("is_fused", [False, True])
def test_a_step_that_a_scaler_left_out_is_marked(tmp_path: Path, is_fused: bool) -> None:
    """A fused optimizer is called in any case, with gradients as they are scaled."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(net.parameters(), 0.1, fused=is_fused)
    norms = []
    scaler = torch.amp.GradScaler("cpu")
    with msdump.watch(net, configuration(tmp_path)):
        for number in range(4):
            optimizer.zero_grad()
            loss = net(torch.randn(3, 4)).sum() * (math.inf if number == 2 else 1.0)
            scaler.scale(loss).backward()
            gradients = torch.cat([each.grad.flatten() for each in net.parameters()])
            norms.append(float(gradients.norm()) / scaler.get_scale())
            scaler.step(optimizer)
            scaler.update()
    rows = rows_of(tmp_path)
    assert [rows[at].l2norm for at in (0, 2)] == pytest.approx([norms[1], norms[3]], rel=1e-5)
    assert [(row.iteration, row.is_bad, row.is_skipped) for row in rows] == [
        (1, False, False),
        (2, True, True),
        (3, False, False),
    ]
    assert find_non_finite(tmp_path / "dump").between is None


def test_training_goes_on_where_gradients_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(gradients: object) -> Callable[[], None]:
        raise RuntimeError("no numbers here")

    plain, _ = train(configuration(tmp_path))
    monkeypatch.setattr("msdump.frontends.torch.gradients._norms", refuse)
    (tmp_path / "second").mkdir()
    norms, _ = train(configuration(tmp_path / "second"))
    assert norms == plain and rows_of(tmp_path / "second") == ()


def test_training_has_the_same_bits(tmp_path: Path) -> None:
    _, sampled = train(configuration(tmp_path))
    (tmp_path / "plain").mkdir()
    _, plain = train(configuration(tmp_path / "plain", iteration="100"))
    for mine, golden in zip(sampled.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine, golden)

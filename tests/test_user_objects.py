"""Models, parameters and optimizers of a script are under a dump what they are without: copied, saved, transformed.

What hangs on them would be copied and saved with them.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import msdump  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe, config_file  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

Module: Any = nn.Module


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.block = nn.Sequential(nn.LayerNorm(2), nn.ReLU())

    def forward(self, x: Any) -> Any:
        return self.block(self.fc(x))


class Job:
    """A model in training."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), foreach=False)
        self.call: Callable[[Any], Any] = self.model

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.call(torch.ones(4, 3)).square().sum().backward()
        self.optimizer.step()


@contextlib.contextmanager
def nothing(job: Job, folder: Path) -> Iterator[None]:
    yield


@contextlib.contextmanager
def watch(job: Job, folder: Path) -> Iterator[None]:
    with msdump.watch(config=config(folder)):
        yield


@contextlib.contextmanager
def recorder(job: Job, folder: Path) -> Iterator[None]:
    with msdump.recorder(folder / "kept", ring=folder, budget="20M"), msdump.watch():
        yield


@contextlib.contextmanager
def callback(job: Job, folder: Path) -> Iterator[None]:
    from msdump.integrations.training import TrainingDump

    with TrainingDump(config(folder)) as dump:
        dump.begin(0)
        dump.begin_batch()
        yield
        dump.end_batch(is_step=True)


@contextlib.contextmanager
def backend(job: Job, folder: Path) -> Iterator[None]:
    with msdump.dump(config(folder)):
        job.call = torch.compile(job.model, backend="msdump")
        yield


@contextlib.contextmanager
def torchair(job: Job, folder: Path) -> Iterator[None]:
    from tests.torchair.dumps import backend_for

    job.call = torch.compile(job.model, backend=backend_for(folder))
    yield


def debugger(level: str) -> Callable[[Job, Path], Any]:
    @contextlib.contextmanager
    def started(job: Job, folder: Path) -> Iterator[None]:
        with as_msprobe():
            from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-not-found]

            PrecisionDebugger(config_file(folder, level=level))
            PrecisionDebugger.start(job.model)
            yield
            PrecisionDebugger.stop()

    return started


WAYS = {
    "nothing": nothing, "watch": watch, "recorder": recorder, "callback": callback, "backend": backend,
    "torchair": torchair, **{f"msprobe {level}": debugger(level) for level in ("L0", "L1", "mix")},
}  # fmt: skip


def saved(value: Any) -> bytes:
    data = io.BytesIO()
    torch.save(value, data)
    return data.getvalue()


def what_comes_of(job: Job) -> list[Any]:
    """Copies, pickles and transforms of what belongs to the script, as bytes and tensors."""
    from torch.func import functional_call, grad, vmap

    model, optimizer = job.model, job.optimizer
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    rows = torch.arange(6.0).reshape(2, 3)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)

    def loss(values: Any, row: Any) -> Any:
        return functional_call(model, values, (row[None],)).square().sum()

    return [
        pickle.dumps(model),
        saved(model),
        saved(model.state_dict()),
        saved(optimizer.state_dict()),
        pickle.dumps(optimizer),
        pickle.dumps(copy.deepcopy(model)),
        copy.deepcopy(optimizer).state_dict()["state"][0]["exp_avg"],
        pickle.dumps([copy.deepcopy(parameter) for parameter in model.parameters()]),
        averaged(rows).detach(),
        copy.deepcopy(model)(rows).detach(),
        functional_call(model, parameters, (rows,)),
        *grad(loss)(parameters, rows[1]).values(),
        *vmap(grad(loss), in_dims=(None, 0))(parameters, rows).values(),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_objects_of_the_script_stay_what_they_are(way: Any, tmp_path: Path) -> None:
    plain, job = Job(), Job()
    if way in (backend, torchair):  # torch.compile marks parameters
        plain.call = torch.compile(plain.model, backend="eager")
    plain.step()
    expected = what_comes_of(plain)
    with way(job, tmp_path):
        job.step()
        inside = what_comes_of(job)
    for found in (inside, what_comes_of(job)):
        for number, (mine, wanted) in enumerate(zip(found, expected, strict=True)):
            is_equal = torch.allclose(mine, wanted) if isinstance(wanted, torch.Tensor) else len(mine) == len(wanted)
            assert is_equal, number
    assert b"msdump" not in inside[0] + inside[1]


def test_cells_stay_what_they_are(tmp_path: Path) -> None:
    ms = pytest.importorskip("msdump.mindspore")
    from msdump.mindspore import nn as cells

    def job() -> tuple[Any, Any]:
        ms.set_seed(0)
        net = cells.SequentialCell(cells.Dense(3, 2), cells.ReLU())
        train = cells.TrainOneStepCell(
            cells.WithLossCell(net, cells.MSELoss()), cells.Momentum(net.trainable_params(), 0.1, 0.9)
        )
        train(ms.ops.ones((4, 3), ms.float32), ms.ops.ones((4, 2), ms.float32))
        return net, train

    def outcome(net: Any) -> list[Any]:
        twin = copy.deepcopy(net)
        x = ms.ops.ones((1, 3), ms.float32)
        path = tmp_path / "net.ckpt"
        ms.save_checkpoint(net, str(path))
        return [
            twin(x).asnumpy().tolist(),
            pickle.loads(pickle.dumps(net[0].weight.asnumpy())).tolist(),
            len(path.read_bytes()),
        ]

    expected = outcome(job()[0])
    with msdump.dump(config(tmp_path / "dump")):
        assert outcome(job()[0]) == expected

"""Model, callbacks and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Callback, LossMonitor, Model, RunContext, Tensor, TimeMonitor, nn
from tests.mindspore.networks import Batches, rows

DATA = Batches([rows(8), rows(8), rows(4)])


def _model(**options: Any) -> tuple[Model, nn.Cell]:
    net = nn.SequentialCell(nn.Dense(5, 8, "he_uniform"), nn.ReLU(), nn.Dense(8, 3, "he_uniform"))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.3, 0.9)
    return Model(net, loss, optimizer, metrics={"Accuracy": nn.Accuracy(), "loss": nn.Loss()}, **options), net


class Recorder(Callback):
    """Remembers its calls; asks to stop after a step."""

    def __init__(self, last_step: int = 10**9) -> None:
        self.calls: list[str] = []
        self.last_step = last_step

    def begin(self, run_context: RunContext) -> None:
        self.calls.append("begin")

    def epoch_begin(self, run_context: RunContext) -> None:
        self.calls.append(f"epoch {run_context.original_args().cur_epoch_num}")

    def step_end(self, run_context: RunContext) -> None:
        step = run_context.original_args().cur_step_num
        self.calls.append(str(step))
        if step == self.last_step:
            run_context.request_stop()

    def epoch_end(self, run_context: RunContext) -> None:
        self.calls.append("epoch end")

    def end(self, run_context: RunContext) -> None:
        self.calls.append("end")


def test_hooks_in_order(either_mode: int) -> None:
    recorder = Recorder()
    _model()[0].train(2, DATA, callbacks=recorder, dataset_sink_mode=False)
    epochs = ["epoch 1", "1", "2", "3", "epoch end", "epoch 2", "4", "5", "6", "epoch end"]
    assert recorder.calls == ["begin", *epochs, "end"]


def test_request_stop_ends_after_the_step(either_mode: int) -> None:
    recorder = Recorder(last_step=2)
    _model()[0].train(5, DATA, callbacks=[recorder])
    assert recorder.calls == ["begin", "epoch 1", "1", "2", "epoch end", "end"]


def test_training_learns_and_eval_counts(either_mode: int) -> None:
    model, net = _model()
    before = model.eval(DATA)
    model.train(20, DATA)
    after = model.eval(DATA)
    assert after["loss"] < 0.2 * before["loss"]
    expected = np.concatenate([net(x).asnumpy().argmax(1) == y.asnumpy() for x, y in DATA.batches]).mean()
    assert after["Accuracy"] == pytest.approx(float(expected))
    assert model.predict(DATA.batches[0][0]).shape == (8, 3)


def test_loss_monitor_prints_the_original_s_line(capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = _model()
    seen: list[float] = []

    class Keep(Callback):
        def step_end(self, run_context: RunContext) -> None:
            seen.append(float(run_context.original_args().net_outputs))

    model.train(2, DATA, callbacks=[Keep(), LossMonitor(2)])
    steps = [(1, 2), (2, 1), (2, 3)]
    expected = [f"epoch: {e} step: {s}, loss is {seen[at]}" for (e, s), at in zip(steps, (1, 3, 5), strict=True)]
    assert capsys.readouterr().out.splitlines() == expected


def test_loss_monitor_stops_at_nan() -> None:
    bad = Batches([(Tensor(np.full((2, 5), np.nan, np.float32)), rows(2)[1])])
    with pytest.raises(ValueError, match="In epoch: 1 step: 1, loss is NAN or INF"):
        _model()[0].train(1, bad, callbacks=LossMonitor())


def test_time_monitor_prints_milliseconds(capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter(range(100))
    _model()[0].train(1, DATA, callbacks=TimeMonitor(clock=lambda: float(next(ticks))))
    assert capsys.readouterr().out == "Train epoch time: 1000.000 ms, per step time: 333.333 ms\n"


def test_checkpoints_are_written_and_old_ones_go(tmp_path: Path) -> None:
    model, net = _model()
    config = ms.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
    keeper = ms.ModelCheckpoint("net", str(tmp_path), config)
    model.train(3, DATA, callbacks=keeper)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-3_2.ckpt", "net-3_3.ckpt"]
    found = ms.load_checkpoint(keeper.latest_ckpt_file_name)
    np.testing.assert_array_equal(found["0.weight"].asnumpy(), net.parameters_dict()["0.weight"].asnumpy())


def test_wrong_use_is_refused() -> None:
    model, net = _model()
    with pytest.raises(ValueError, match="'epoch' must be int and > 0, but got 0"):
        model.train(0, DATA)
    with pytest.raises(ValueError, match="'metrics' can not be None or empty"):
        Model(net, nn.MSELoss()).eval(DATA)
    with pytest.raises(TypeError, match="'network' must be a Cell"):
        Model(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected Callback objects, got int"):
        model.train(1, DATA, callbacks=[3])
    with pytest.raises(KeyError, match="Did you mean"):
        Model(net, nn.MSELoss(), metrics={"accurcy"})
    with pytest.raises(AttributeError, match="cur_step_num"):
        _ = RunContext(model._arguments(DATA, "train")).original_args().step


def test_metrics_by_hand() -> None:
    predicted = Tensor([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3], [0.2, 0.3, 0.5]])
    labels = Tensor([1, 2, 2])
    accuracy, top2 = nn.Accuracy(), ms.train.TopKCategoricalAccuracy(2)
    for metric in (accuracy, top2):
        metric.update(predicted, labels)
    assert (accuracy.eval(), top2.eval()) == (pytest.approx(2 / 3), 1.0)
    accuracy.clear()
    accuracy.update(predicted, Tensor(np.eye(3)[[1, 0, 2]]))
    assert accuracy.eval() == 1.0
    many = nn.Accuracy("multilabel")
    many.update(Tensor([[0, 1], [1, 1]]), Tensor([[0, 1], [0, 1]]))
    assert many.eval() == 0.5
    mae, mse = nn.MAE(), nn.MSE()
    for error in (mae, mse):
        error.update(Tensor([1.0, 2.0]), Tensor([2.0, 4.0]))
    assert (mae.eval(), mse.eval()) == (1.5, 2.5)
    with pytest.raises(RuntimeError, match="number of samples is 0"):
        nn.Accuracy().eval()

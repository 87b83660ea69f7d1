"""Callbacks of `mindspore.train`, and what `Model.fit` gives them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Model, Tensor, nn, train
from msdump.mindspore.train.callback.base import RunParameters
from tests.mindspore.networks import Batches, rows

DATA = Batches([rows(8), rows(8)])


def model_of(rate: Any = 0.3, **options: Any) -> Model:
    net = nn.SequentialCell(nn.Dense(5, 8, "he_uniform"), nn.ReLU(), nn.Dense(8, 3, "he_uniform"))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
    return Model(net, loss, optimizer, metrics={"accuracy": nn.Accuracy(), "loss": nn.Loss()}, **options)


def context_of(**values: Any) -> train.RunContext:
    args = RunParameters(net_outputs=Tensor(1.0), cur_epoch_num=1, cur_step_num=1, batch_num=2)
    args.update(values)
    return train.RunContext(args)


def test_fit_evaluates_before_the_epoch_ends_and_hands_the_results_over(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, list[str]]] = []
    phases: list[str] = []

    class Mine(train.Callback):
        def on_train_epoch_end(self, run_context: train.RunContext) -> None:
            args = run_context.original_args()
            seen.append((args.cur_epoch_num, sorted(args.eval_results)))

        def on_eval_begin(self, run_context: train.RunContext) -> None:
            phases.append(run_context.original_args().mode)

    history = train.History()
    model_of().fit(3, DATA, DATA, valid_frequency=2, callbacks=[Mine(), history, train.LossMonitor(0)])
    assert seen == [(1, []), (2, ["accuracy", "eval_loss", "loss"]), (3, [])]
    assert phases == ["eval"] and history.epoch == {"epoch": [1, 2, 3]}
    assert [len(history.history[name]) for name in ("net_output", "accuracy")] == [3, 1]
    assert "Eval result: epoch 2, metrics: {'accuracy': " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"epoch": 0}, ValueError),
        ({"epoch": 2, "initial_epoch": 2}, ValueError),
        ({"epoch": 1, "sink_size": 0}, ValueError),
        ({"epoch": 1, "valid_frequency": 0.5}, TypeError),
        ({"epoch": 1, "dataset_sink_mode": 1}, TypeError),
    ],
)
def test_fit_checks_its_arguments(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        model_of().fit(train_dataset=DATA, valid_dataset=DATA, **options)


def test_sink_size_makes_epochs_of_so_many_steps_off_the_cpu() -> None:
    ms.set_context(device_target="Ascend")
    steps: list[tuple[int, int]] = []

    def note(run_context: train.RunContext) -> None:
        args = run_context.original_args()
        steps.append((args.cur_epoch_num, args.cur_step_num))

    watch = train.LambdaCallback(on_train_step_end=note)
    model_of().train(2, DATA, callbacks=watch, dataset_sink_mode=True, sink_size=3)
    assert steps == [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)]


def run_epochs(callback: Any, values: list[float], monitor: str = "eval_loss") -> int:
    """How many epochs a training has that ends when the callback wants it to."""
    net = nn.Dense(2, 2)
    optimizer = nn.Momentum(net.trainable_params(), 1.0, 0.9)
    for number, value in enumerate(values, 1):
        context = context_of(
            eval_results={monitor: value}, train_network=net, optimizer=optimizer, cur_epoch_num=number
        )
        if number == 1:
            callback.on_train_begin(context)
        net.bias.set_data(Tensor(np.full(2, value, np.float32)))
        callback.on_train_epoch_end(context)
        if context.get_stop_requested():
            callback.network = net
            return number
    callback.rate = float(optimizer.learning_rate)
    return len(values)


def test_early_stopping_waits_and_takes_the_best_weights_back(capsys: pytest.CaptureFixture[str]) -> None:
    stop = train.EarlyStopping(patience=2, restore_best_weights=True, verbose=True)
    assert run_epochs(stop, [3.0, 1.0, 2.0, 2.0, 0.5]) == 4
    assert stop.network.bias.asnumpy().tolist() == [1.0, 1.0]
    stop.on_train_end(context_of())
    assert "Epoch 00004: early stopping" in capsys.readouterr().out
    assert run_epochs(train.EarlyStopping("acc", patience=1), [0.1, 0.5, 0.4, 0.9], "acc") == 3
    assert run_epochs(train.EarlyStopping(patience=1, min_delta=-1.0), [3.0, 2.5]) == 2
    assert run_epochs(train.EarlyStopping(patience=3, baseline=1.0), [3.0, 2.0, 1.5, 0.5]) == 3


def test_a_missing_monitor_warns_and_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert run_epochs(train.EarlyStopping("accuracy"), [1.0, 2.0]) == 2
    assert "expected accuracy, got none" in caplog.text


def test_the_learning_rate_falls_on_a_plateau_but_not_below_its_least() -> None:
    lower = train.ReduceLROnPlateau(factor=0.5, patience=1, cooldown=1, min_lr=0.3)
    run_epochs(lower, [1.0, 1.0, 1.0])
    assert lower.rate == pytest.approx(0.3)
    again = train.ReduceLROnPlateau(factor=0.5, patience=1)
    run_epochs(again, [1.0, 1.0, 0.5, 0.6])
    assert again.rate == 0.25
    with pytest.raises(ValueError, match="mode should be"):
        train.ReduceLROnPlateau(mode="best")
    net = nn.Dense(2, 2)
    dynamic = nn.Momentum(net.trainable_params(), [0.1, 0.2], 0.9)
    with pytest.raises(ValueError, match="does not support dynamic learning rate"):
        again.on_train_epoch_end(context_of(optimizer=dynamic, eval_results={"eval_loss": 1.0}))


def test_a_signal_ends_a_training_after_its_step_and_saves(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    steps: list[int] = []

    def note(run_context: train.RunContext) -> None:
        steps.append(run_context.original_args().cur_step_num)
        os.kill(os.getpid(), signal.SIGUSR1)

    try:
        leave = train.OnRequestExit(save_mindir=False, directory=str(tmp_path), sig=signal.SIGUSR1)
        model_of().train(3, DATA, callbacks=[train.LambdaCallback(on_train_step_begin=note), leave])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert steps == [1] and (tmp_path / "rank_0" / "Net_train.ckpt").exists()
    with pytest.raises(ValueError, match="SIGKILL"):
        train.OnRequestExit(sig=signal.SIGKILL)


def test_checkpoints_have_names_of_their_own_and_other_formats(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for _ in range(2):
        config = train.CheckpointConfig(2, format="safetensors", append_info=["epoch_num", {"note": 1.5}])
        model_of().train(1, DATA, callbacks=train.ModelCheckpoint("run", folder, config))
    assert sorted(os.listdir(folder)) == ["run-1_2.safetensors", "run_1-1_2.safetensors"]
    values = ms.load_checkpoint(f"{folder}/run-1_2.safetensors", format="safetensors")
    assert (int(values["epoch_num"]), float(values["note"])) == (1, 1.5)
    named = train.ModelCheckpoint(lambda args: f"at{args.cur_step_num}", folder, train.CheckpointConfig(1))
    model_of().train(1, DATA, callbacks=named)
    assert {"at1.ckpt", "at2.ckpt"} <= set(os.listdir(folder)) and named.latest_ckpt_file_name.endswith("at2.ckpt")


def test_summaries_are_not_written_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with train.SummaryRecord(str(tmp_path)) as record:
        record.set_mode("eval")
        record.add_value("scalar", "loss", Tensor(1.0))
        assert record.record(1) is False
    model_of().train(1, DATA, callbacks=train.SummaryCollector(str(tmp_path), 1))
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="must be one of"):
        record.set_mode("test")


def test_a_network_of_one_s_own_gives_metrics_all_that_it_gives() -> None:
    class Pair(nn.Cell):
        def construct(self, data: Tensor, label: Tensor) -> Any:
            return data, data + 1.0

    model = Model(Pair(), eval_network=Pair(), metrics={"mae"})
    assert model.eval(DATA)["mae"] == pytest.approx(5.0)
    with pytest.raises(ValueError, match="must have 3 elements"):
        Model(Pair(), eval_network=Pair(), eval_indexes=[0, 1], metrics={"mae"})


def test_a_scheduler_gets_the_rate_as_it_was_written(either_mode: int) -> None:
    seen: list[tuple[float, int]] = []

    def schedule(rate: float, step: int) -> float:
        seen.append((rate, step))
        return rate / 2 if step == 2 else rate

    model = model_of(0.3)
    model.train(2, DATA, callbacks=train.LearningRateScheduler(schedule))
    assert seen == [(0.3, 1), (0.3, 2), (0.15, 3), (0.15, 4)]


def test_loops_of_one_s_own_fetch_rows() -> None:
    helper = train.DatasetHelper(DATA, dataset_sink_mode=False)
    assert [len(row) for row in helper] == [2, 2] and helper.types_shapes()[1] == [[8, 5], [8]]
    with pytest.raises(RuntimeError, match="in dataset sink mode"):
        train.connect_network_with_dataset(nn.ReLU(), helper)
    sinking = train.DatasetHelper(DATA, sink_size=3)
    fetching = train.connect_network_with_dataset(model_of().train_network, sinking)
    assert len([fetching() for _ in sinking]) == 3
    with pytest.raises(ValueError, match="device target is CPU"):
        train.data_sink(lambda data, label: data, DATA)
    ms.set_context(device_target="Ascend")
    total = train.data_sink(lambda data, label: data.sum(), DATA, sink_size=2)
    assert float(total()) == float(DATA.batches[1][0].sum())


def test_what_needs_a_cut_network_says_so(tmp_path: Path) -> None:
    net = nn.Dense(2, 2)
    path = str(tmp_path / "rank_0.ckpt")
    ms.save_checkpoint(net, path)
    ms.load_distributed_checkpoint(net, [path])
    with pytest.raises(RuntimeError, match="cuts no parameters"):
        ms.load_distributed_checkpoint(net, [path, path])
    with pytest.raises(RuntimeError, match="instead of thor"):
        ms.ConvertModelUtils.convert_to_thor_model(None)

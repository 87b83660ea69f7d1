"""Iterations of PyNative scripts: a step of training is one, with all the calls that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.mindspore import Tensor, iterations, nn, ops
from msdump.mindspore.experimental import optim as experimental
from tests.mindspore.networks import training_step
from tests.mindspore.test_pynative_dump import config, graphs_of, tensors, watched
from tests.threads import run_at_once

__all__ = ["config"]

Config = Callable[..., Path]
X = Tensor(np.ones((2, 4), np.float32))


@pytest.fixture(autouse=True)
def pynative() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Training:
    """A network, its gradient, and its optimizer, as a script calls them."""

    def __init__(self, features: int = 3, optimizer: Callable[[Any], Any] = lambda all_: nn.SGD(all_, 0.1)) -> None:
        self.net = nn.Dense(4, features)
        self.update = optimizer(self.net.trainable_params())
        self.gradient = ms.value_and_grad(lambda x: self.net(x).square().mean(), None, self.update.parameters)

    def step(self) -> None:
        self.update(self.gradient(X)[1])


def repeat(call: Callable[[], object], count: int) -> None:
    for _ in range(count):
        call()


def iterations_of(config: Config, script: Callable[[], None], **changes: Any) -> list[int]:
    """The iteration of each call of a script that is watched; no graph runs twice in one."""
    with watched(config, **changes) as truth:
        script()
    parts = [(step.iteration, step.graph.graph_id) for step in truth.steps]
    assert len(set(parts)) == len(parts)
    return [iteration for iteration, _ in parts]


@pytest.mark.parametrize(
    "optimizer",
    [lambda each: nn.Adam(each, 1e-3), lambda each: experimental.SGD(each, 0.1), lambda each: nn.Lamb(each, 0.1)],
    ids=["nn", "experimental", "around another"],
)
def test_a_step_ends_with_the_update(config: Config, optimizer: Callable[[Any], Any]) -> None:
    training = Training(optimizer=optimizer)
    assert iterations_of(config, lambda: repeat(training.step, 3)) == [0, 0, 1, 1, 2, 2]


def test_iterations_that_are_not_selected_are_counted_alike(config: Config) -> None:
    root, training = config(iteration="1"), Training()
    for _ in range(3):
        training.step()
    opened = opening.current()
    assert opened is not None
    opened.close()
    report = opened.report()
    assert (report.iterations_run, report.iterations_dumped) == (3, 1)
    (first, second) = sorted(path.parent.name for path in root.glob("rank_0/Net/*/1"))
    assert first != second
    assert not list(root.glob("rank_0/Net/*/0")) and not list(root.glob("rank_0/Net/*/2"))


def test_gradients_that_are_added_up_belong_to_the_update(config: Config) -> None:
    training = Training()

    def script() -> None:
        for _ in range(2):
            sums = None
            for _ in range(3):
                _, gradients = training.gradient(X)
                sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients, strict=True)]
            training.update(sums)

    assert iterations_of(config, script) == [0] * 4 + [1] * 4


def test_files_of_each_part_of_a_batch_are_apart(config: Config) -> None:
    root, training = config(), Training()
    for value in (1, 2):
        _, gradients = training.gradient(Tensor(np.full((2, 4), value, np.float32)))
    training.update(gradients)
    read = [tensors(graph, 0) for graph in graphs_of(root)[:2]]
    assert [float(each["args0", "output", 0].max()) for each in read] == [1, 2]


def test_gradients_that_nothing_trains_are_iterations(config: Config) -> None:
    net = nn.Dense(4, 3)
    gradient = ms.value_and_grad(lambda x: net(x).mean(), None, list(net.trainable_params()))
    other = Training()
    assert iterations_of(config, lambda: repeat(lambda: gradient(X), 3)) == [0, 1, 2]
    assert other.update.parameters


def test_an_optimizer_that_is_called_first_is_an_iteration(config: Config) -> None:
    training = Training()
    zeros = [ops.zeros_like(each) for each in training.update.parameters]

    def script() -> None:
        training.update(zeros)
        training.update(zeros)
        training.step()
        training.update(zeros)

    assert iterations_of(config, script) == [0, 1, 2, 2, 3]


def test_two_optimizers_that_take_turns_make_steps_of_their_own(config: Config) -> None:
    maker, judge = Training(), Training()

    def script() -> None:
        for _ in range(2):
            maker.net(X)
            judge.step()
            maker.step()

    assert iterations_of(config, script) == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]


def test_two_optimizers_of_one_gradient_share_a_step(config: Config) -> None:
    net = nn.SequentialCell([nn.Dense(4, 3), nn.Dense(3, 2)])
    first, second = (nn.SGD(net[number].trainable_params(), 0.1) for number in range(2))
    gradient = ms.grad(lambda x: net(x).mean(), None, [*first.parameters, *second.parameters])

    def script() -> None:
        for _ in range(2):
            gradients = gradient(X)
            first(gradients[:2])
            second(gradients[2:])

    assert iterations_of(config, script) == [0, 0, 0, 1, 1, 1]


def test_cells_between_gradient_and_update_are_part_of_the_step(config: Config) -> None:
    training, clip = Training(), nn.ClipByNorm()

    def script() -> None:
        for _ in range(2):
            _, gradients = training.gradient(X)
            training.update([clip(each, Tensor(1.0)) for each in gradients])

    assert iterations_of(config, script) == [0] * 4 + [1] * 4


def test_a_teacher_is_part_of_the_step_and_evaluation_is_not(config: Config) -> None:
    training, teacher, loss = Training(), nn.Dense(4, 3), nn.MSELoss()

    def script() -> None:
        for _ in range(2):
            teacher(X)
            training.step()
        for _ in range(2):
            loss(training.net(X), X[:, :3])
        teacher(X)
        training.step()

    assert iterations_of(config, script) == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]


def test_a_cell_that_trains_is_a_step_by_each_call(config: Config) -> None:
    net = nn.SequentialCell([nn.Flatten(), nn.Dense(4, 10)])
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    labels = Tensor(np.array([1, 2], np.int32))

    def script() -> None:
        for _ in range(2):
            step(X, labels)
        net(X)
        net(X)
        step(X, labels)

    assert iterations_of(config, script) == [0, 1, 2, 3, 4]


def test_a_cell_that_trains_every_second_time_makes_a_step_of_two_calls(config: Config) -> None:
    class Accumulating(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def construct(self, x: Tensor) -> Any:
            loss, gradients = training.gradient(x)
            self.calls += 1
            if self.calls % 2 == 0:
                training.update(gradients)
            return loss

    training, step = Training(), Accumulating()
    assert iterations_of(config, lambda: repeat(lambda: step(X), 4)) == [0, 0, 1, 1]


def test_an_optimizer_that_is_never_called_makes_no_step_without_end(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterations, "_MOST_CALLS", 3)
    training = Training()

    def script() -> None:
        for _ in range(6):
            training.gradient(X)
        training.step()
        training.step()

    assert iterations_of(config, script) == [0, 0, 0, 1, 2, 3, 4, 4, 5, 5]


def test_an_error_in_a_step_leaves_the_next_one_whole(config: Config) -> None:
    training = Training()

    def script() -> None:
        training.step()
        with pytest.raises(Exception, match="expected"):
            training.gradient(Tensor(np.ones((2, 5), np.float32)))
        training.step()

    assert iterations_of(config, script) == [0, 0, 2, 2]


def test_each_thread_has_steps_of_its_own(config: Config) -> None:
    config()
    trainings = [Training(2 + number) for number in range(3)]
    run_at_once([lambda each=each: repeat(each.step, 4) for each in trainings])  # type: ignore[misc]
    opened = opening.current()
    assert opened is not None
    opened.close()
    assert opened.report().iterations_dumped == 12

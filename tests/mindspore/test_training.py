"""Training gives what plain numpy and torch give, the same in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.tensors.arrays import Array
from tests.mindspore.networks import LeNet5, SmallResNet, digits, graphs_of, rows, training_step

Make = Callable[[list[Parameter]], Any]
OPTIMIZERS: dict[str, Make] = {
    "momentum": lambda p: nn.Momentum(p, 0.05, 0.9),
    "nesterov": lambda p: nn.Momentum(p, 0.05, 0.9, use_nesterov=True),
    "decay": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=1e-2, loss_scale=4.0),
    "list": lambda p: nn.Momentum(p, [0.1, 0.05, 0.01], 0.9),
    "tensor": lambda p: nn.Momentum(p, Tensor(np.array([0.1, 0.05, 0.01], np.float32)), 0.9),
    "schedule": lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.5, 2)),
    "cosine": lambda p: nn.SGD(p, nn.CosineDecayLR(0.01, 0.1, 3)),
    "sgd": lambda p: nn.SGD(p, 0.05, 0.9),
    "adam": lambda p: nn.Adam(p, 0.01),
    "adam_decay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
    "rmsprop": lambda p: nn.RMSProp(p, 0.01),
    "centered": lambda p: nn.RMSProp(p, 0.01, centered=True),
    "groups": lambda p: nn.Momentum([{"params": p[:3], "lr": 0.1}, {"params": p[3:], "weight_decay": 0.1}], 0.01, 0.9),
}


def _losses(make: Make, mode: int, steps: int = 3) -> list[float]:
    ms.set_context(mode=mode)
    ms.set_seed(3)
    rng = np.random.default_rng(5)
    images = Tensor(rng.standard_normal((4, 3, 8, 8)).astype(np.float32))
    labels = Tensor(rng.integers(0, 3, 4).astype(np.int32))
    net = SmallResNet()
    step = training_step(net, make(net.trainable_params()))
    return [float(step(images, labels)) for _ in range(steps)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_modes_give_the_same_losses(name: str) -> None:
    graph = _losses(OPTIMIZERS[name], ms.GRAPH_MODE)
    assert graph == _losses(OPTIMIZERS[name], ms.PYNATIVE_MODE)
    assert graph[-1] < graph[0]


def test_training_equals_numpy(either_mode: int) -> None:
    """Softmax regression with momentum, by hand."""
    x, y = rows()
    net = nn.Dense(5, 3, "normal")
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    w, b = net.weight.asnumpy(), net.bias.asnumpy()
    dw, db = np.zeros_like(w), np.zeros_like(b)
    for _ in range(4):
        logits = x.asnumpy() @ w.T + b
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        expected = -np.log(p[np.arange(8), y.asnumpy()]).mean()
        assert float(step(x, y)) == pytest.approx(float(expected), rel=1e-5)
        p[np.arange(8), y.asnumpy()] -= 1
        dw, db = 0.9 * dw + p.T @ x.asnumpy() / 8, 0.9 * db + p.mean(0)
        w, b = w - 0.1 * dw, b - 0.1 * db
    np.testing.assert_allclose(net.weight.asnumpy(), w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net.bias.asnumpy(), b, rtol=1e-5, atol=1e-6)


def test_training_equals_torch() -> None:
    torch = pytest.importorskip("torch")
    ms.set_context(mode=ms.GRAPH_MODE)
    net = LeNet5()
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.05, 0.9))
    weights = {p.name: torch.tensor(p.asnumpy(), requires_grad=True) for p in net.get_parameters()}
    optimizer = torch.optim.SGD(weights.values(), 0.05, 0.9)
    f = torch.nn.functional
    images, labels = digits(3)
    for _ in range(3):
        x = torch.tensor(images.asnumpy())
        for name in ("conv1", "conv2"):
            x = f.max_pool2d(f.relu(f.conv2d(x, weights[f"{name}.weight"])), 2)
        x = x.flatten(1)
        for name in ("fc1", "fc2", "fc3"):
            x = f.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
            x = x if name == "fc3" else f.relu(x)
        loss = f.cross_entropy(x, torch.tensor(labels.asnumpy()).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert float(step(images, labels)) == pytest.approx(loss.item(), rel=1e-5)
    for name, weight in weights.items():
        found = net.parameters_dict()[name].asnumpy()
        np.testing.assert_allclose(found, weight.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_functional_training(either_mode: int) -> None:
    """The way of the quick start: value_and_grad, then the optimizer on the gradients."""
    x, y = rows()
    model = nn.SequentialCell(nn.Dense(5, 16, "he_uniform"), nn.ReLU(), nn.Dense(16, 3, "he_uniform"))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.SGD(model.trainable_params(), 0.5)

    def forward_fn(data: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        logits = model(data)
        return loss_fn(logits, label), logits

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
    model.set_train()
    losses = []
    for _ in range(20):
        (loss, logits), grads = grad_fn(x, y)
        optimizer(grads)
        losses.append(float(loss))
    assert logits.shape == (8, 3)
    assert losses[-1] < 0.3 * losses[0]
    correct = (model(x).argmax(1) == y).asnumpy().sum()
    assert correct == 8


def test_which_steps_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = rows()

    def types(rate: Any) -> tuple[list[str], Any]:
        net = nn.Dense(5, 3)
        optimizer = nn.Momentum(net.trainable_params(), rate, 0.9)
        step = training_step(net, optimizer)
        step(x, y)
        step(x, y)
        updates = [node.op_type for node in graphs_of(step)[0].nodes if node.stage == "update"]
        return updates, optimizer

    fixed, optimizer = types(0.1)
    assert sorted(fixed) == ["ApplyMomentum", "ApplyMomentum", "AssignAdd"]
    assert int(optimizer.global_step) == 2
    monkeypatch.setenv("MSDUMP_MINDSPORE_VERSION", "2.0")
    fixed, optimizer = types(0.1)
    assert fixed == ["ApplyMomentum", "ApplyMomentum"]
    assert int(optimizer.global_step) == 0
    monkeypatch.delenv("MSDUMP_MINDSPORE_VERSION")
    dynamic, optimizer = types([0.1, 0.2])
    assert sorted(dynamic) == sorted(["Gather", "Reshape", "AssignAdd", "ApplyMomentum", "ApplyMomentum"])
    assert int(optimizer.global_step) == 2


def test_weight_decay_adds_mul_and_add_n() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(5, 3)
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.1))
    step(*rows())
    updates = [node.op_type for node in graphs_of(step)[0].nodes if node.stage == "update"]
    assert sorted(updates) == ["AddN", "AddN", "ApplyMomentum", "ApplyMomentum", "AssignAdd", "Mul", "Mul"]


def test_several_signatures_make_several_graphs() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(5, 3)
    small, large = rows(2)[0], rows(4)[0]
    for x in (small, large, small, small):
        np.testing.assert_allclose(
            net(x).asnumpy(), x.asnumpy() @ net.weight.asnumpy().T + net.bias.asnumpy(), rtol=1e-5, atol=1e-7
        )
    graphs = graphs_of(net)
    assert [graph.inputs[0].type.shape for graph in graphs] == [(2, 5), (4, 5)]
    assert graphs[1].graph_id == graphs[0].graph_id + 1


def test_training_flag_makes_another_graph_and_back_uses_the_first() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = SmallResNet()
    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32))
    evaluated: Array = net(x).asnumpy()
    net.set_train()
    trained: Array = net(x).asnumpy()
    net.set_train(False)
    after: Array = net(x).asnumpy()
    assert len(graphs_of(net)) == 2
    assert not np.array_equal(evaluated, trained)
    assert not np.array_equal(evaluated, after), "training moved the running statistics"


def test_gradients_of_inputs(either_mode: int) -> None:
    x = Tensor(np.array([1.0, -2.0, 3.0], np.float32))

    def cube(a: Tensor, b: Tensor) -> Any:
        return (a * a * a * b).sum()

    only = ms.grad(cube)(x, Tensor(2.0))
    np.testing.assert_allclose(only.asnumpy(), 6 * x.asnumpy() ** 2)
    value, both = ms.value_and_grad(cube, (0, 1))(x, Tensor(2.0))
    assert float(value) == 40.0
    np.testing.assert_allclose(both[1].asnumpy(), 20.0)
    all_of = ops.GradOperation(get_all=True)(cube)(x, Tensor(2.0))
    np.testing.assert_array_equal(all_of[0].asnumpy(), only.asnumpy())
    scaled = ops.GradOperation(sens_param=True)(cube)(x, Tensor(2.0), Tensor(3.0))
    np.testing.assert_allclose(scaled.asnumpy(), 3 * only.asnumpy())


def test_gradient_of_what_the_loss_ignores_is_zero(either_mode: int) -> None:
    gradients = ms.grad(lambda a, b: (a * 2).sum(), (0, 1))(Tensor([1.0, 2.0]), Tensor([[3.0]]))
    np.testing.assert_array_equal(gradients[1].asnumpy(), [[0.0]])


def test_loss_scale_drops_overflowing_steps(either_mode: int) -> None:
    x, y = rows()
    net = nn.Dense(5, 3)
    manager = nn.DynamicLossScaleUpdateCell(2.0**10, 2, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss), optimizer, manager)
    _, overflow, scale = step(x, y)
    assert (bool(overflow), float(scale), float(step.scale_sense)) == (False, 1024.0, 2048.0)
    before = net.weight.asnumpy()
    bad = Tensor(np.full((8, 5), np.inf, np.float32))
    _, overflow, _ = step(bad, y)
    assert bool(overflow) and float(step.scale_sense) == 1024.0
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


def test_mixed_precision_computes_in_float16(either_mode: int) -> None:
    x, y = rows()
    net = nn.SequentialCell(nn.Dense(5, 8, "he_uniform"), nn.ReLU(), nn.Dense(8, 3, "he_uniform"))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.3, 0.9), amp_level="O2")
    steps = [model.train_network(x, y) for _ in range(20)]
    assert [bool(overflow) for _, overflow, _ in steps[:2]] == [True, True], "the first scale is 2 ** 24"
    assert float(steps[-1][0]) < float(steps[0][0])
    assert net[0].weight.dtype == ms.float32
    if either_mode == ms.GRAPH_MODE:
        (graph,) = graphs_of(model.train_network.gradients)
        assert {n.outputs[0].type.dtype for n in graph.nodes if n.op_type == "MatMul"} == {"float16"}


def test_dropout_draws_anew_in_every_run() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dropout(p=0.5).set_train()
    x = Tensor(np.ones((64,), np.float32))
    first, second = net(x).asnumpy(), net(x).asnumpy()
    assert not np.array_equal(first, second)
    assert set(np.unique(first)) == {0.0, 2.0}
    net.set_train(False)
    np.testing.assert_array_equal(net(x).asnumpy(), x.asnumpy())


@pytest.mark.parametrize(("level", "expected"), [("O0", "float32"), ("O2", "float32"), ("O3", "float16")])
def test_batch_normalisation_keeps_float32_below_o3(level: str, expected: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = ms.amp.auto_mixed_precision(SmallResNet(), level)
    assert net(Tensor(np.ones((1, 3, 16, 16), np.float32))).dtype == ms.float32
    (graph,) = graphs_of(net)
    found = {node.inputs[0].type.dtype for node in graph.nodes if node.op_type == "BatchNorm"}
    assert found == {expected}
    convolutions = {node.inputs[0].type.dtype for node in graph.nodes if node.op_type == "Conv2D"}
    assert convolutions == {"float32" if level == "O0" else "float16"}

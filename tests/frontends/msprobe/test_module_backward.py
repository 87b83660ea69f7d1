"""Gradients of modules: the numbers of PyTorch's own hooks, and not one bit of a training changed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.frontends.msprobe.running import as_msprobe, config_file, records  # noqa: E402

Module: Any = nn.Module


@pytest.fixture(autouse=True)
def msprobe() -> Iterator[Any]:
    with as_msprobe():
        import msprobe.pytorch  # type: ignore[import-not-found]

        yield msprobe.pytorch


class Attention(Module):
    """One operand, read by three layers and by the sum after them: hooks of PyTorch add these gradients in another
    order."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return (self.q(x) @ self.k(x).mT).softmax(-1) @ self.v(x)


class Block(Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = Attention(), nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.0), nn.Linear(16, 8))

    def forward(self, x: Any) -> Any:
        x = self.norm(x + self.attention(x))
        return x + self.mlp(x) * x


class Transformer(Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


class Pooled(Module):
    """Two results, the second one made from the first."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.pool = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any, mask: Any = None) -> Any:
        hidden = self.fc(x * mask)
        return {"hidden": hidden, "pooled": [self.pool(hidden).tanh(), None]}


class Outputs(Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Pooled()

    def forward(self, x: Any) -> Any:
        out = self.encoder(x, mask=x.detach())
        return out["hidden"] * 3 + out["pooled"][0] * out["hidden"]


class Recurrent(Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, x: Any) -> Any:
        out, state = self.lstm(x[None])
        again, _ = self.lstm(out, state)
        return again.squeeze(0)


class InPlace(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act, self.norm = nn.Linear(8, 8), nn.ReLU(inplace=True), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.act(self.fc(x)))
        y[0] += 1
        return y + x


class Twice(Module):
    """Self-attention of PyTorch asks whether its operands are one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, x: Any) -> Any:
        return x + self.attention(x, x, x)[0]


MODELS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (Transformer, Outputs, Recurrent, InPlace, Twice)
}


def trained(model: Any, backward: Callable[[Any], None] = lambda loss: loss.backward()) -> list[Any]:
    x = torch.randn(5, 8, requires_grad=True)
    backward(model(x).square().sum())
    return [x.grad, *(parameter.grad for parameter in model.parameters())]


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_gradients_have_the_same_bits_with_a_dump(msprobe: Any, tmp_path: Path, kind: Any, level: str) -> None:
    torch.manual_seed(0)
    plain = trained(kind())
    torch.manual_seed(0)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level=level))
    model = kind()
    debugger.start(model)
    dumped = trained(model)
    debugger.stop()
    assert all(torch.equal(left, right) for left, right in zip(plain, dumped, strict=True))
    assert kind is InPlace or any(".backward." in name for name in records(tmp_path))


@pytest.mark.parametrize("kind", [Transformer, Outputs, Recurrent])
def test_gradients_are_those_of_pytorch_s_own_hooks(msprobe: Any, tmp_path: Path, kind: Any) -> None:
    torch.manual_seed(0)
    model = kind()
    expected: dict[str, tuple[Any, Any]] = {}

    def hook(name: str) -> Callable[..., None]:
        def keep(_: Any, outgoing: Any, incoming: Any) -> None:
            number = sum(key.startswith(f"{name}.") for key in expected)
            expected[f"{name}.{number}"] = outgoing, incoming

        return keep

    handles = [
        module.register_full_backward_hook(hook(f"Module.{name}.{type(module).__name__}.backward"))
        for name, module in model.named_modules()
        if name and name != "encoder"  # PyTorch's hooks look into no dictionary
    ]
    trained(model)
    for handle in handles:
        handle.remove()
    torch.manual_seed(0)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    model = kind()
    debugger.start(model)
    trained(model)
    debugger.stop()
    found = {name: record for name, record in records(tmp_path).items() if ".backward." in name}
    missing = {"Module.encoder.Pooled.backward.0"} if kind is Outputs else set()
    # A call that comes later comes back earlier: both count calls of a module, but not in one order.
    assert {name.rpartition(".")[0] for name in found} == {name.rpartition(".")[0] for name in (*expected, *missing)}
    for name in expected.keys() - {name for name in expected if name.rpartition(".")[0] + ".1" in expected}:
        for side, gradients in zip(("output", "input"), expected[name], strict=True):
            norms = [each["Norm"] for each in found[name][side] if each]
            wanted = [gradient.norm().item() for gradient in gradients if gradient is not None]
            if wanted:
                assert norms == pytest.approx(wanted, rel=1e-4)


def test_a_tensor_that_a_module_gives_back_has_a_gradient_on_either_side(msprobe: Any, tmp_path: Path) -> None:
    class Rest(Module):
        def __init__(self) -> None:
            super().__init__()
            self.rest = nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.rest(x) * 3 + x

    model = Rest()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    x = torch.ones(1, requires_grad=True)
    model(x).backward()
    debugger.stop()
    record = records(tmp_path)["Module.rest.Identity.backward.0"]
    assert (record["input"][0]["Max"], record["output"][0]["Max"], x.grad.item()) == (3.0, 3.0, 4.0)


def test_an_operand_that_is_given_again_shows_its_gradient_once(msprobe: Any, tmp_path: Path) -> None:
    model = Twice()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    trained(model)
    debugger.stop()
    shown = records(tmp_path)["Module.attention.MultiheadAttention.backward.0"]["output"]
    assert [each is not None for each in shown] == [True, False, False]


def test_results_may_be_detached_and_written_to(msprobe: Any, tmp_path: Path) -> None:
    model = nn.ModuleDict({"lstm": nn.LSTM(8, 8), "fc": nn.Linear(8, 8)})
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    debugger.start(model)
    out, (h, _) = model["lstm"](torch.ones(2, 1, 8))
    out.sum().backward()
    h.detach_()
    y = model["fc"](torch.ones(2, 8))
    y.zero_()
    debugger.stop()
    assert not h.requires_grad and y._base is None


def test_a_second_backward_and_one_that_fails_are_recorded(msprobe: Any, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    x = torch.ones(2, 8, requires_grad=True)
    failing = x * 2
    failing.register_hook(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(failing).sum().backward()
    y = model(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    debugger.stop()
    names = [name for name in records(tmp_path) if name.startswith("Module.0.Linear.backward")]
    assert names == ["Module.0.Linear.backward.1", "Module.0.Linear.backward.2"]
    debugger.step()


def test_no_node_is_kept_alive(msprobe: Any, tmp_path: Path) -> None:
    model = Transformer()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    debugger.start(model)
    x = torch.randn(5, 8, requires_grad=True)
    middle = model(x)
    loss = middle.sum()
    watched = weakref.ref(middle)
    loss.backward()
    debugger.stop()
    debugger.step()
    del middle, loss
    gc.collect()
    assert watched() is None

"""The operators that the observer is told are those that a bare TorchDispatchMode sees, in its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

native = pytest.importorskip("msdump_native")

Step = Callable[[], object]
NONE = 0xFFFFFFFF


class Recording(TorchDispatchMode):
    """Names of operators, and the shapes of the tensors that each is given and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[int, ...]], list[tuple[int, ...]]]] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = list(shapes((args, kwargs or {})))
        result = function(*args, **(kwargs or {}))
        self.seen.append((str(function), given, list(shapes(result))))
        return result


def shapes(value: object):
    if isinstance(value, torch.Tensor):
        yield tuple(value.shape)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from shapes(item)
    elif isinstance(value, dict):
        yield from shapes(list(value.values()))


def observed(step: Step) -> list[tuple[str, list[tuple[int, ...]], list[tuple[int, ...]]]]:
    observer = native.Observer()
    observer.enable()
    try:
        step()
    finally:
        observer.disable()
    batch = observer.take()
    assert batch["failure"] == ""

    def shape(tensor: int) -> tuple[int, ...] | None:
        if tensor == NONE:
            return None
        row = batch["tensors"][tensor]
        first = int(row["first_dimension"])
        return tuple(batch["dimensions"][first : first + int(row["dimension_count"])].tolist())

    seen = []
    for row in batch["operators"]:
        operands = batch["operands"][row["first_operand"] : row["first_operand"] + row["operand_count"]]
        given = [shape(each["tensor"]) for each in operands if each["role"] < 2]
        results = [shape(each["tensor"]) for each in operands if each["role"] == 2]
        seen.append((batch["names"][row["name"]], given, results))
    return seen


def training(model: torch.nn.Module, inputs: Callable[[], tuple], optimizer: Callable | None = None) -> Step:
    optimizer = optimizer or (lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9))
    own = optimizer([each for each in model.parameters() if each.requires_grad])

    def step() -> None:
        own.zero_grad()
        result = model(*inputs())
        result = result[0] if isinstance(result, tuple) else result
        loss = result.square().mean() if result.dim() else result
        loss.backward()
        own.step()

    return step


class Function(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.exp() + x.sin()

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * (x.exp() + x.cos())


class Lambda(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor], *shape: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(shape))
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(self.weight, *inputs)


def rand(*shape: int) -> Callable[[], tuple]:
    return lambda: (torch.randn(shape),)


def mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 3))


def in_place(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = (w * x).clone()
    y.add_(1).mul_(w).pow_(2).clamp_(-1, 1)
    y[0] = 2.0
    y[:, 1] += w[:, 0]
    y.masked_fill_(y > 0.9, 0.5)
    return F.relu(y, inplace=True)


def views(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = w.t().reshape(-1).view(2, -1).unsqueeze(0).expand(3, 2, -1)
    parts = y.permute(1, 0, 2).contiguous().split(2, dim=1)
    return torch.cat([*parts, *y.transpose(0, 1).chunk(2, 2)[0].unbind(0)[0:0]], 1) + x.narrow(0, 0, 1).squeeze().sum()


def out(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    room = torch.empty(0)
    with torch.no_grad():
        torch.mm(x, x.t(), out=room)
        torch.add(room, 1, out=room)
        torch.sort(room, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
    return w @ x + room.mean()


def double_backward() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    w = torch.randn(4, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.tanh(x @ w).pow(3).sum(), x, create_graph=True)
    gradient.square().sum().backward()


def many_functions(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = w @ x
    parts = [
        y.softmax(-1),
        y.log_softmax(0),
        y.cumsum(0),
        y.std(),
        y.var(0),
        y.norm(),
        y.logsumexp(1),
        y.max(0).values,
        y.amin(1),
        y.sigmoid(),
        torch.where(y > 0, y, -y),
        y.flip(0),
        y.roll(1, 0),
        y.diagonal(),
        y.tril(),
        torch.stack([y, y]),
        y.index_select(0, torch.tensor([1, 0])),
        y.gather(0, (y > 0).long()),
        y.clamp(min=0.1),
        F.pad(y, (1, 1)),
        F.normalize(y),
        torch.linalg.norm(y),
        torch.linalg.svdvals(y),
        y.scatter_add(0, (y > 0).long(), y),
        torch.cdist(y, y),
        F.huber_loss(y, torch.zeros_like(y)),
        y.median(),
        F.interpolate(y[None, None], scale_factor=2.0, mode="bilinear"),
        F.unfold(y[None, None], 2),
        y.fmod(0.3),
        torch.linalg.solve(y @ y.t() + torch.eye(4), y),
        torch.kron(y, y),
        y.nan_to_num(),
        y.lerp(y + 1, 0.3),
        y.erf(),
        F.grid_sample(y[None, None], torch.zeros(1, 2, 2, 2), align_corners=False),
        torch.linalg.inv(y @ y.t() + 4 * torch.eye(4)),
        y.renorm(2, 0, 1.0),
        y.repeat_interleave(2, 0),
        y.unfold(0, 2, 1),
        torch.trapezoid(y),
        y.atan2(y + 1),
    ]
    return sum(part.sum() for part in parts)


def tokens() -> tuple:
    return torch.randint(0, 10, (3, 5)), torch.randint(0, 4, (15,))


class Language(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 6, padding_idx=0, max_norm=1.0)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, words: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.table(words)).view(-1, 4), classes, label_smoothing=0.1)


def encoder() -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def attention(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    q = w * x
    return F.scaled_dot_product_attention(q, q, q, is_causal=True) + F.scaled_dot_product_attention(
        q, q, q, attn_mask=torch.zeros(5, 5)
    )


def cnn() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 4, 3, groups=2), torch.nn.GroupNorm(2, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
    )  # fmt: skip


def no_grad() -> None:
    with torch.no_grad():
        encoder().eval()(torch.randn(2, 5, 8))
        cnn().eval()(torch.randn(2, 3, 12, 12))


def inference() -> None:
    model = mlp().eval()
    with torch.inference_mode():
        model(torch.randn(2, 4))
        torch.einsum("ij,kj->ik", torch.randn(2, 3), torch.randn(4, 3)).sum().reshape(-1).item()


def autocast() -> None:
    model = mlp()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(torch.randn(2, 4)).float().sum()
    loss.backward()


def functorch() -> None:
    w = torch.randn(3, 3)
    torch.func.vmap(torch.func.grad(lambda x: (w @ x).sin().sum()))(torch.randn(2, 3))


def forward_mode() -> None:
    torch.func.jvp(lambda x: (x @ x).tanh().sum(), (torch.randn(3, 3),), (torch.randn(3, 3),))


def subclass() -> None:
    torch.nn.Parameter(torch.randn(3)).requires_grad_()
    buffer = torch.nn.Buffer(torch.ones(2))
    buffer.data.zero_()
    torch.tensor([1.0, 2.0]).tolist()
    torch.ones(2).numpy()


def custom_operator() -> None:
    x = torch.randn(3, requires_grad=True)
    twice(x).sum().backward()


@torch.library.custom_op("msdump_native_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


twice.register_autograd(lambda context, gradient: gradient * 2)


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def adamw(**options: object) -> Callable:
    return lambda parameters: torch.optim.AdamW(parameters, 0.01, **options)


CASES: dict[str, Callable[[], Step]] = {
    "mlp": lambda: training(mlp(), rand(2, 4)),
    "adamw": lambda: training(mlp(), rand(2, 4), adamw(foreach=False)),
    "adamw foreach": lambda: training(mlp(), rand(2, 4), adamw(foreach=True)),
    "adamw fused": lambda: training(mlp(), rand(2, 4), adamw(fused=True)),
    "adagrad": lambda: training(mlp(), rand(2, 4), lambda parameters: torch.optim.Adagrad(parameters)),
    "rmsprop": lambda: training(mlp(), rand(2, 4), lambda parameters: torch.optim.RMSprop(parameters, centered=True)),
    "cnn": lambda: training(cnn(), rand(2, 3, 12, 12)),
    "lstm": lambda: training(torch.nn.LSTM(4, 5, 2, bidirectional=True), rand(6, 2, 4)),
    "gru": lambda: training(torch.nn.GRU(4, 5), rand(6, 2, 4)),
    "rnn": lambda: training(torch.nn.RNN(4, 5), rand(6, 2, 4)),
    "encoder": lambda: training(encoder(), rand(2, 5, 8), adamw(foreach=False)),
    "language": lambda: training(Language(), tokens),
    "checkpoint": lambda: training(
        Lambda(lambda w, x: checkpoint(lambda y: (w @ y).relu() @ w, x, use_reentrant=False), 4, 4), rand(4, 4)
    ),
    "reentrant checkpoint": lambda: training(
        Lambda(lambda w, x: checkpoint(lambda y: (y @ y).relu(), w @ x, use_reentrant=True), 4, 4), rand(4, 4)
    ),
    "function": lambda: training(Lambda(lambda w, x: Function.apply(w @ x), 4, 4), rand(4, 4)),
    "in place": lambda: training(Lambda(in_place, 4, 4), rand(4, 4)),
    "views": lambda: training(Lambda(views, 4, 4), rand(4, 1)),
    "out": lambda: training(Lambda(out, 4, 4), rand(4, 4)),
    "einsum": lambda: training(Lambda(lambda w, x: torch.einsum("bij,jk->bik", x, w), 4, 4), rand(2, 3, 4)),
    "conv transpose": lambda: training(torch.nn.ConvTranspose2d(3, 4, 3, stride=2), rand(2, 3, 5, 5)),
    "layer norm": lambda: training(torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.RMSNorm(6)), rand(4, 6)),
    "attention": lambda: training(Lambda(attention, 1, 2, 5, 8), rand(1, 2, 5, 8)),
    "index put": lambda: training(
        Lambda(lambda w, x: w.clone().index_put_((torch.tensor([0, 2]),), x[:2], accumulate=True), 4, 4), rand(4, 4)
    ),
    "sort": lambda: training(Lambda(lambda w, x: (w * x).sort().values + (w + x).topk(4).values, 4, 4), rand(4, 4)),
    "functions": lambda: training(Lambda(many_functions, 4, 4), rand(4, 4)),
    "double backward": lambda: double_backward,
    "no grad": lambda: no_grad,
    "inference mode": lambda: inference,
    "autocast": lambda: autocast,
    "transforms": lambda: functorch,
    "forward mode": lambda: forward_mode,
    "parameters": lambda: subclass,
    "custom operator": lambda: custom_operator,
}


# A dispatch mode changes what runs. PyTorch asks `isTensorSubclassLike`, which is true of all tensors under a mode, and
# then takes the variant that does not write in place; `_reshape_alias` becomes `view`.
# Source: PyTorch, FunctionsManual.cpp, input_buffer.cpp, Linear.cpp, TensorShape.cpp.
OF_PLAIN_RUNS = {
    "aten.add_.Tensor": "aten.add.Tensor",
    "aten._reshape_alias.default": "aten.view.default",
    "aten.masked_fill_.Scalar": "aten.masked_fill.Scalar",
    "aten.scatter_add_.default": "aten.scatter_add.default",
    "aten.index_add_.default": "aten.index_add.default",
    "aten.scatter_.src": "aten.scatter.src",
}
# Some formulas have another branch for it. By case: what the mode sees alone, and what a plain run is made of.
OTHER_BRANCHES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    # `value_selecting_reduction_backward` makes its zeros in another way.
    "sort": ({"aten.new_zeros.default": 2}, {"aten.zeros.default": 2}),
    # So do those of `median` and `max`; that of `nan_to_num` and `norm` asks whether there is a zero.
    "functions": (
        {"aten.mul.Tensor": 1, "aten.isnan.default": 1, "aten.logical_and.default": 1, "aten.logical_or_.default": 1},
        {"aten.zeros.default": 1, "aten._local_scalar_dense.default": 1, "aten.masked_fill_.Tensor": 1},
    ),
    # The exception that ends the second forward pass comes from autograd, above the operator and below Python: a mode
    # does not know of it, and the observer says that it has raised.
    "checkpoint": ({}, {"aten.mm.default": 1}),
}


def compared(seen: list[tuple]) -> list[tuple]:
    """Without what only one of them can see.

    profiler.*   PyTorch does not tell observers of it
    aten.detach  what autograd saves of results is detached by a call of an operator only under a mode; a parameter that
                 is made is detached where a mode cannot see it
    """
    return [
        (OF_PLAIN_RUNS.get(name, name), given, results)
        for name, given, results in seen
        if not name.startswith("profiler.") and name != "aten.detach.default"
    ]


def alone(ours: list[tuple], others: list[tuple]) -> dict[str, int]:
    return dict(Counter(name for name, _, _ in ours) - Counter(name for name, _, _ in others))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_as_a_dispatch_mode_sees(name: str) -> None:
    torch.manual_seed(0)
    step = CASES[name]()
    step()  # optimizers make their state
    torch.manual_seed(1)
    with Recording() as mode:
        step()
    torch.manual_seed(1)
    ours, theirs = compared(observed(step)), compared(mode.seen)
    assert len(ours) > 2
    if name in OTHER_BRANCHES:
        assert (alone(theirs, ours), alone(ours, theirs)) == OTHER_BRANCHES[name]
    else:
        assert [each[0] for each in ours] == [each[0] for each in theirs]
        assert ours == theirs

"""What is found where a training mixes up axes, rows, masks or the sides of an average: on both sides of each rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import msdump  # noqa: E402
from tests.frontends.torch.eager.test_learning import dispatch_mode, pytestmark, seed  # noqa: E402, F401
from tests.frontends.torch.eager.test_learning_losses import kinds, run, sgd  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

STEPS, BATCH, WORDS, SIZE = 5, 8, 6, 4


def classified(scores: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores, torch.randint(0, 3, (len(scores),)))


class Layers(nn.Module):
    """A body and a head, with what a test computes in between."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor], inputs: int = SIZE) -> None:
        super().__init__()
        self.body, self.between, self.head = nn.Linear(SIZE, SIZE), between, nn.Linear(inputs, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.between(self.body(x)))
        return scores


def attention(axis: int, is_own: bool = True) -> Callable[[torch.Tensor], torch.Tensor]:
    def attended(h: torch.Tensor) -> torch.Tensor:
        scores = h @ (h if is_own else torch.ones(BATCH, WORDS, SIZE)).transpose(1, 2)
        return (functional.dropout(scores.softmax(axis), 0.1) @ h).mean(1)

    return attended


@pytest.mark.parametrize(
    ("between", "found"),
    [
        (lambda h: h.view(WORDS, BATCH, SIZE)[0], ["reshape"]),
        (lambda h: h.transpose(0, 1).reshape(BATCH, WORDS, SIZE)[:, 0], ["reshape"]),
        (lambda h: h.transpose(0, 1)[0], []),
        (lambda h: h.reshape(BATCH, 2, WORDS // 2, SIZE).mean((1, 2)), []),
        (lambda h: functional.pad(h, (0, 0, 1, 0)).view(WORDS + 1, BATCH, SIZE)[0], []),
        (lambda h: h.flatten(1)[:, :SIZE], []),
        (attention(1), ["attention"]),
        (attention(0), ["attention"]),
        (attention(2), []),
        (attention(-1), []),
        (
            lambda h: (h.softmax(1).transpose(1, 2) @ h).mean(1),
            [],
        ),  # the product sums along the words, as the shares do
        (lambda h: (h.softmax(2).transpose(1, 2) @ h).mean(1), []),  # each word is given to some clusters
    ],
)
def test_axes_of_what_a_forward_pass_computes(
    between: Callable[[torch.Tensor], torch.Tensor], found: list[str], tmp_path: Path
) -> None:
    model = Layers(between)
    assert (
        run(tmp_path, model, lambda _: classified(model(torch.randn(BATCH, WORDS, SIZE))), STEPS, sgd(model)) == found
    )


def test_attention_of_pytorch_moves_its_own_axes(tmp_path: Path) -> None:
    """Of as many heads as rows it makes a shape of the same lengths in another order, and turns that later."""

    class Attended(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(2 * BATCH, 2, batch_first=True), nn.Linear(2 * BATCH, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.head(self.attention(x, x, x)[0].mean(1))
            return scores

    model = Attended()
    assert (
        run(tmp_path, model, lambda _: classified(model(torch.randn(BATCH, WORDS, 2 * BATCH))), STEPS, sgd(model)) == []
    )


def test_states_of_layers_that_become_rows(tmp_path: Path) -> None:
    for name, turned in (("mixed", False), ("moved", True)):
        model = Layers(lambda h, turned=turned: (h.mT if turned else h).reshape(BATCH, -1), 2 * SIZE)  # type: ignore[misc]
        layers = [nn.Linear(SIZE, SIZE) for _ in range(2)]

        def both(h: torch.Tensor, turned: bool = turned, layers: list[nn.Linear] = layers) -> torch.Tensor:
            states = torch.stack([layer(h) for layer in layers])
            return (states.transpose(0, 1) if turned else states).reshape(BATCH, -1)

        model.between = both
        found = run(
            tmp_path / name,
            model,
            lambda _, model=model: classified(model(torch.randn(BATCH, SIZE))),
            STEPS,
            sgd(model),
        )
        assert ("reshape" in found) is not turned


@pytest.mark.parametrize(("axis", "found"), [(0, ["choice"]), (1, [])])
def test_a_choice_along_the_batch(axis: int, found: list[str], tmp_path: Path) -> None:
    model = nn.Linear(SIZE, 3)

    def loss_of(_: int) -> torch.Tensor:
        chosen = model(torch.randn(BATCH, SIZE)).gather(axis, torch.randint(0, 3, (BATCH, 1)))
        return functional.mse_loss(chosen, torch.randn(BATCH, 1))

    model.bias.requires_grad_(False)
    assert [one for one in run(tmp_path, model, loss_of, STEPS, sgd(model)) if one == "choice"] == found


class Reader(nn.Module):
    def __init__(self, is_turned: bool, is_along_batch: bool, padding: int | None) -> None:
        super().__init__()
        self.table = nn.Embedding(9, SIZE, padding_idx=padding)
        self.register_buffer("positions", torch.randn(20, 1, SIZE))
        self.is_turned, self.is_along_batch, self.head = is_turned, is_along_batch, nn.Linear(SIZE, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        count = len(words) if self.is_along_batch else words.shape[1]
        rows = self.positions[:count]
        h = self.table(words) + (rows if self.is_along_batch else rows.transpose(0, 1))
        hidden = words != 0 if self.is_turned else words == 0
        shares = (h @ h.transpose(1, 2)).masked_fill(hidden[:, None], -torch.inf).softmax(-1)
        scores: torch.Tensor = self.head((shares @ h).mean(1))
        return scores


@pytest.mark.parametrize(
    ("is_turned", "is_along_batch", "padding", "found"),
    [
        (False, False, 0, []), (True, False, 0, ["mask"]), (True, False, None, []), (False, True, 0, ["rows"]),
    ],
)  # fmt: skip
def test_masks_and_positions(
    is_turned: bool, is_along_batch: bool, padding: int | None, found: list[str], tmp_path: Path
) -> None:
    model = Reader(is_turned, is_along_batch, padding)

    def loss_of(_: int) -> torch.Tensor:
        words = torch.randint(1, 9, (BATCH, WORDS))
        words[:, -1] = 0
        return classified(model(words))

    found_ones = run(tmp_path, model, loss_of, STEPS, sgd(model))
    assert [one for one in found_ones if one in ("mask", "rows")] == found


@pytest.mark.parametrize(("is_batch_first", "found"), [(False, ["time"]), (True, [])])
def test_a_batch_that_is_taken_for_time(is_batch_first: bool, found: list[str], tmp_path: Path) -> None:
    cell, head = nn.LSTM(SIZE, SIZE, batch_first=is_batch_first), nn.Linear(SIZE, 3)
    model, data = nn.ModuleList((cell, head)), torch.randn(40, WORDS, SIZE)

    def loss_of(_: int) -> torch.Tensor:
        return classified(head(cell(data[torch.randperm(40)[:BATCH]])[0]).flatten(0, 1))

    assert [one for one in run(tmp_path, model, loss_of, STEPS + 2, sgd(model)) if one == "time"] == found


@pytest.mark.parametrize(
    ("how", "found"), [("apart", ["other rows"]), ("together", []), ("one source", []), ("both", [])]
)
def test_rows_of_labels(how: str, found: list[str], tmp_path: Path) -> None:
    model, data, labels = nn.Linear(SIZE, 1), torch.randn(40, SIZE), torch.randn(40, 1)

    def loss_of(_: int) -> torch.Tensor:
        rows, others = torch.randperm(40)[:BATCH], torch.randperm(40)[:BATCH]
        wanted = (data[:, :1] if how == "one source" else labels)[others if how != "together" else rows]
        loss = functional.mse_loss(model(data[rows]), wanted)
        return loss + functional.mse_loss(model(data[others]), labels[others]) if how == "both" else loss

    assert [one for one in run(tmp_path, model, loss_of, STEPS + 1, sgd(model)) if one == "other rows"] == found


@pytest.mark.parametrize(("kept", "found"), [(0.01, ["average"]), (0.1, ["average"]), (0.5, []), (0.99, []), (0.0, [])])
@pytest.mark.parametrize("how", ["in place", "lerp", "sum"])
def test_an_average_of_weights(kept: float, found: list[str], how: str, tmp_path: Path) -> None:
    model, average = nn.Linear(SIZE, 3), nn.Linear(SIZE, 3).requires_grad_(False)
    optimizer = sgd(model)
    with msdump.watch(model, config(tmp_path, saved_data="statistic")):
        for _ in range(STEPS):
            optimizer.zero_grad()
            classified(model(torch.randn(BATCH, SIZE))).backward()
            optimizer.step()
            with torch.no_grad():
                for old, new in zip(average.parameters(), model.parameters(), strict=True):
                    if how == "in place":
                        old.mul_(kept).add_(new, alpha=1 - kept)
                    elif how == "lerp":
                        old.lerp_(new, 1 - kept)
                    else:
                        old.copy_(kept * old + (1 - kept) * new)
    assert kinds(tmp_path) == found


@pytest.mark.parametrize(("momentum", "found"), [(0.99, ["statistics"]), (0.9, ["statistics"]), (0.5, []), (None, [])])
def test_running_statistics_that_forget(momentum: float | None, found: list[str], tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(SIZE, 6), nn.BatchNorm1d(6, momentum=momentum), nn.Linear(6, 3))
    loss_of = lambda _: classified(model(torch.randn(BATCH, SIZE)))  # noqa: E731
    found_ones = run(tmp_path, model, loss_of, 14, sgd(model))
    assert [one for one in found_ones if one == "statistics"] == found


@pytest.mark.parametrize(("scale", "found"), [(0.07, ["scale"]), (0.5, ["scale"]), (0.6, []), (14.0, [])])
def test_a_temperature_that_multiplies(scale: float, found: list[str], tmp_path: Path) -> None:
    model = nn.Linear(SIZE, 16)

    def loss_of(_: int) -> torch.Tensor:
        one, two = (functional.normalize(model(torch.randn(BATCH, SIZE)), dim=-1) for _ in range(2))
        return functional.cross_entropy(one @ two.T * scale, torch.arange(BATCH))

    assert [one for one in run(tmp_path, model, loss_of, STEPS, sgd(model)) if one == "scale"] == found


@pytest.mark.parametrize(
    ("least", "most", "found"), [(0.0, 1.0, []), (-0.1, 1.0, ["chances"]), (0.0, 1.1, ["chances"])]
)
def test_targets_that_are_no_chances(least: float, most: float, found: list[str], tmp_path: Path) -> None:
    model = nn.Linear(SIZE, 1)
    targets = torch.linspace(least, most, BATCH)[:, None]
    loss_of = lambda _: functional.binary_cross_entropy_with_logits(model(torch.randn(BATCH, SIZE)), targets)  # noqa: E731
    assert run(tmp_path, model, loss_of, STEPS, sgd(model)) == found


@pytest.mark.parametrize(("spread", "found"), [(0.005, ["hardly"]), (0.2, [])])
def test_data_that_hardly_differ(spread: float, found: list[str], tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(SIZE, 6), nn.Tanh(), nn.Linear(6, 3))
    loss_of = lambda _: classified(model(2 + spread * torch.rand(BATCH, SIZE)))  # noqa: E731
    assert run(tmp_path, model, loss_of, STEPS, sgd(model)) == found


def test_what_is_thawed_belongs_to_an_optimizer(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(SIZE, 30), nn.Tanh(), nn.Linear(30, 3))
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.01)
    with msdump.watch(model, config(tmp_path, saved_data="statistic")):
        for step in range(STEPS + 1):
            model[0].requires_grad_(step > 1)
            optimizer.zero_grad()
            classified(model(torch.randn(BATCH, SIZE))).backward()
            optimizer.step()
    assert "no optimizer" in kinds(tmp_path)


def test_a_mask_that_chooses_nothing(tmp_path: Path) -> None:
    body, box, score = nn.Linear(SIZE, 6), nn.Linear(6, 2), nn.Linear(6, 1)
    model = nn.ModuleList((body, box, score))

    def loss_of(_: int) -> torch.Tensor:
        h = body(torch.randn(BATCH, SIZE))
        chosen = box(h)[torch.rand(BATCH) > 2]
        return score(h).square().mean() + functional.smooth_l1_loss(chosen, torch.zeros(0, 2), reduction="sum")

    assert "zero gradient" in run(tmp_path, model, loss_of, STEPS, sgd(model))

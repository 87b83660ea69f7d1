"""Programs whose operators `msdump_native` sees: the same rows as under a dispatch mode, and the same training."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("msdump_native")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.frontends.torch.eager.native import why_not_native  # noqa: E402
from msdump.frontends.torch.eager.native_calls import NativeCalls  # noqa: E402
from tests.frontends.torch.eager.native_rows import alike, rows  # noqa: E402

pytestmark = [
    # Dynamo asks for the gradient of each tensor that it is given.
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel"),
]
STEPS = 4
Step = Callable[[int], torch.Tensor]


def trained(model: nn.Module, loss_of: Callable[[int], torch.Tensor], **keywords: float) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **keywords)  # type: ignore[arg-type]

    def step(number: int) -> torch.Tensor:
        loss = loss_of(number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def mlp() -> Step:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
    return trained(model, lambda _: functional.cross_entropy(model(x), y))


def convolutions() -> Step:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    x = torch.randn(3, 2, 8, 8)
    return trained(model, lambda _: model(x).square().mean(), foreach=False)


def recurrent() -> Step:
    model = nn.LSTM(4, 5, batch_first=True)
    x = torch.randn(2, 3, 4)
    return trained(model, lambda _: model(x)[0].sum())


def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 4, 8)
    return trained(model, lambda _: model(x).square().mean(), foreach=False)


def embedding() -> Step:
    model = nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.LayerNorm(4), nn.Linear(4, 10))
    x = torch.randint(0, 10, (2, 5))
    return trained(model, lambda _: functional.cross_entropy(model(x).flatten(0, 1), x.flatten()))


def recomputed() -> Step:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    model = nn.ModuleList([first, second])
    x = torch.randn(3, 4, requires_grad=True)

    def loss(_: int) -> torch.Tensor:
        hidden = checkpoint(lambda value: torch.tanh(first(value)), x, use_reentrant=False)
        return second(torch.relu(hidden)).sum()  # type: ignore[no-any-return]

    return trained(model, loss)


def data_made_between() -> Step:
    model = nn.Linear(4, 2)
    return trained(model, lambda number: model(torch.arange(12.0).reshape(3, 4) + number).square().mean())


def branch() -> Step:
    model = nn.Linear(4, 4)
    x = torch.randn(3, 4)

    def loss(number: int) -> torch.Tensor:
        y = model(x)
        return (torch.sin(y) if number % 2 else y.exp()).mean()

    return trained(model, loss)


def accumulated() -> Step:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parts = torch.randn(2, 3, 4)

    def step(number: int) -> torch.Tensor:
        optimizer.zero_grad()
        total = torch.zeros(())
        for part in parts:
            loss = model(part).square().mean()
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return step


def ended_by_the_script() -> Step:
    """An optimizer writes parameters before the forward pass ends."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    x = torch.randn(4, 3)
    return trained(model, lambda _: model(x).square().sum())


def evaluated() -> Step:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0), nn.BatchNorm1d(4))
    x = torch.randn(5, 4)
    step = trained(model, lambda _: model(x).square().mean())

    def both(number: int) -> torch.Tensor:
        loss = step(number)
        model.eval()
        with torch.no_grad():
            loss = loss + model(x).sum()
        model.train()
        return loss

    return both


def autocast() -> Step:
    model = nn.Linear(4, 2)
    x = torch.randn(3, 4)

    def loss(_: int) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = model(x)
        return y.float().square().mean()

    return trained(model, loss)


class Halves(nn.Module):
    """The second one is compiled, and what follows it is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))).sigmoid()  # type: ignore[no-any-return]


def compiled_part() -> Step:
    torch._dynamo.reset()
    model = Halves()
    model.second.forward = torch.compile(model.second.forward, backend="aot_eager")  # type: ignore[method-assign]
    x = torch.randn(3, 4)
    return trained(model, lambda _: model(x).square().mean())


def nothing_beside() -> Step:
    model = nn.Linear(4, 2)
    nothing, x = torch.empty(0, 4), torch.randn(3, 4)
    return trained(model, lambda _: model(torch.cat([nothing, x])).square().mean())


class RareDtypes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        total = y.sum()
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            eight = (y * 40.0).to(getattr(torch, name))
            total = total + eight.t().float()[1:].sum()
        whole = (x * 10).to(torch.uint8)
        for dtype in (torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16):
            total = total + whole.to(dtype).float().sum()
        spectrum = torch.fft.fft(y)
        spectrum.conj().imag.t()  # a view of negatives
        return total + spectrum.to(torch.complex32).real.float().sum()


def quantized() -> Step:
    """Codes of numbers, per tensor and per channel, and a view of them."""
    model = nn.Linear(4, 3)
    x = torch.randn(3, 4)

    def loss(_: int) -> torch.Tensor:
        y = model(x)
        codes = torch.quantize_per_tensor(y.detach(), 0.05, 3, torch.quint8)
        scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int64)
        channels = torch.quantize_per_channel(y.detach().t(), scales, zeros, 0, torch.qint8)
        return y.sum() + codes.t().dequantize().sum() + channels.dequantize().square().sum()

    return trained(model, loss)


def rare_dtypes() -> Step:
    model = RareDtypes()
    x = torch.rand(4, 8)
    return trained(model, lambda _: model(x))


def smaller_batch() -> Step:
    """A statistic of all batches, whose own shapes do not tell how large a batch is."""
    model, total = nn.Linear(3, 5), torch.ones(5)

    def loss(number: int) -> torch.Tensor:
        y = model(torch.randn(3 if number == 2 else 4, 3))
        with torch.no_grad():
            total.add_(y.mean(0))
        return y.square().mean()

    return trained(model, loss)


def other_tensors() -> Step:
    """Other dtypes, strides and versions in front of the same operators."""
    model = nn.Linear(4, 4)

    def loss(number: int) -> torch.Tensor:
        y = model(torch.randn(4, 4))
        z = y.detach()
        z = (z.t(), z.double(), z.clone().mul_(2), z)[number]
        with torch.no_grad():
            z.argmax()
        return y.square().mean()

    return trained(model, loss)


def models_by_turns() -> Step:
    """Two of them, whose parameters have the same names."""
    models = nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.randn(3, 4)

    def loss(number: int) -> torch.Tensor:
        first, second = (models[each](x.abs() if number == each else x).sum() for each in (0, 1))
        with torch.no_grad():
            models[number % 2].bias.mul_(0.5)
        return first + second

    return trained(nn.ModuleList(models), loss)


def converted() -> Step:
    """Parameters of other dtypes in each iteration, and when it ends."""
    model, x = nn.Linear(4, 4), torch.randn(3, 4)

    def step(number: int) -> torch.Tensor:
        loss = model(x.to(model.weight.dtype)).square().mean()
        loss.backward()
        model.zero_grad()
        model.double() if number % 2 == 0 else model.float()
        return loss.detach()

    return step


def grown() -> Step:
    """Parameters of other shapes."""
    model, x = nn.Linear(4, 2), torch.randn(3, 4)

    def step(number: int) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()
        model.zero_grad()
        with torch.no_grad():
            for each in model.parameters():
                each.data = torch.cat([each, each[:1]])
        return loss.detach()

    return step


PROGRAMS = (
    mlp,
    convolutions,
    recurrent,
    transformer,
    embedding,
    recomputed,
    data_made_between,
    branch,
    accumulated,
    ended_by_the_script,
    evaluated,
    autocast,
    compiled_part,
    nothing_beside,
    rare_dtypes,
    quantized,
    smaller_batch,
    other_tensors,
    models_by_turns,
    converted,
    grown,
)


def configuration(folder: Path, kernels: Sequence[str] = (), **common: object) -> dict[str, object]:
    return {
        "common_dump_settings": {
            "dump_mode": 1 if kernels else 0,
            "path": str(folder),
            "net_name": "Net",
            "iteration": "all",
            "saved_data": "statistic",
            "statistic_category": ["max", "min", "avg", "l2norm", "nan count", "count"],
            "input_output": 0,
            "kernels": list(kernels),
            "support_device": [0],
            **common,
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }


def run(
    folder: Path, program: Callable[[], Step], is_watched: bool = True, kernels: Sequence[str] = (), **common: object
) -> tuple[list[torch.Tensor], dict[str, int]]:
    """Losses, and what was not dumped, by reason."""
    torch.manual_seed(0)
    step = program()
    if not is_watched:
        return [step(number) for number in range(STEPS)], {}
    losses = []
    with msdump.watch(config=configuration(folder, kernels, **common)) as watch:
        for number in range(STEPS):
            losses.append(step(number))
            if program is ended_by_the_script:
                watch.step()
    report = watch.report()
    assert report is not None and not report.error and not report.lost
    return losses, report.skipped


# All; some of all parts of a step; parameters and one operator of a backward pass; none.
KERNELS = {
    "all": [],
    "layers": ["name-regex(.*(addmm|native_layer_norm|sum).*)"],
    "parameters": ["name-regex(Parameter.*|.*addmm.*)", "name-regex(Gradients/.*threshold_backward.*)"],
    "none": ["name-regex(nothing)"],
}


@pytest.mark.parametrize(
    ("program", "kernels"),
    [(program, "all") for program in PROGRAMS]
    + [(each, name) for each in (mlp, transformer, branch) for name in KERNELS],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_rows_are_those_of_a_mode(
    program: Callable[[], Step], kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert why_not_native() == ""
    losses, skipped = run(tmp_path / "native", program, kernels=KERNELS[kernels])
    monkeypatch.setenv(NATIVE, "0")
    expected, expected_skipped = run(tmp_path / "mode", program, kernels=KERNELS[kernels])
    plain, _ = run(tmp_path, program, is_watched=False)
    assert skipped == expected_skipped and (skipped or program is not rare_dtypes)
    for one, other, third in zip(losses, expected, plain, strict=True):
        assert torch.equal(one, other) and torch.equal(one, third)
    native, mode = rows(tmp_path / "native"), rows(tmp_path / "mode")
    assert native.keys() == mode.keys()
    for name in mode:
        assert alike(native[name]) == alike(mode[name]), name


@pytest.mark.parametrize(
    ("program", "input_output", "saved_data"),
    [(program, 0, "tensor") for program in PROGRAMS]
    + [(each, 2, "tensor") for each in (transformer, ended_by_the_script)]
    + [(transformer, 0, "statistic")],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_tensors_are_those_of_a_mode(
    program: Callable[[], Step], input_output: int, saved_data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With MD5, statistics too are made of all bytes.
    settings = {"saved_data": saved_data, "input_output": input_output, "statistic_category": ["md5", "max"]}
    losses, skipped = run(tmp_path / "native", program, **settings)
    monkeypatch.setenv(NATIVE, "0")
    expected, expected_skipped = run(tmp_path / "mode", program, **settings)
    assert all(map(torch.equal, losses, expected)) and skipped == expected_skipped
    native, mode = rows(tmp_path / "native", has_unwritten=False), rows(tmp_path / "mode", has_unwritten=False)
    assert native.keys() == mode.keys() and native
    for name in mode:
        assert alike(native[name]) == alike(mode[name]), name


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("engine", ["native", "mode"])
def test_a_tensor_without_memory_is_counted(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside of a transform of `torch.func`, zeros have none, and all that computes there is transformed."""
    monkeypatch.setenv(NATIVE, "0" if engine == "mode" else "1")
    torch.manual_seed(0)
    model, x = nn.Linear(3, 3), torch.randn(3, 3)
    with msdump.watch(config=configuration(tmp_path, saved_data="tensor")) as watch:
        for _ in range(STEPS):
            torch.func.jvp(model, (x,), (x,))
            torch.func.jacrev(model)(x)
            torch.func.hessian(lambda each: model(each).tanh().sum())(x[0])
            model(x).reshape([3, 3, *[1] * 70]).tanh()  # numpy has at most 64 axes
            watch.step()
    report = watch.report()
    assert report is not None and report.failure is None and not report.lost
    assert report.skipped["tensor that a transform wraps"] and report.skipped["tensor of more than 64 axes"]
    assert not any("cannot be read" in each for each in report.skipped)
    assert report.iterations_dumped == report.iterations_run and report.tensors_written
    assert any("seen by msdump-native" in note for note in report.notes) == (engine == "native")


def test_tensors_come_from_the_observer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    step = mlp()
    with msdump.watch(config=configuration(tmp_path, saved_data="tensor")) as watch:
        for number in range(STEPS):
            step(number)
    report = watch.report()
    assert report is not None and report.notes == (f"operators of {STEPS} iterations were seen by msdump-native.",)


def test_tensors_of_a_selection_come_from_the_mode(tmp_path: Path) -> None:
    """The observer would copy all tensors of the first step before it knows which are selected."""
    torch.manual_seed(0)
    step = mlp()
    with msdump.watch(config=configuration(tmp_path, KERNELS["layers"], saved_data="tensor")) as watch:
        for number in range(STEPS):
            step(number)
    report = watch.report()
    assert report is not None and report.tensors_written
    (note,) = report.notes
    assert note.startswith("msdump-native was not used: it would copy the tensors of all operators")
    assert report.steps is not None and not report.steps.advice


def test_a_program_that_begins_to_run_compiled_code_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    compiled = torch.compile(model, backend="eager")
    with msdump.watch(config=configuration(tmp_path)) as watch:
        for number in range(STEPS):
            (compiled if number > 1 else model)(x).sum().backward()
            watch.step()
    report = watch.report()
    assert report is not None and report.notes == (
        "operators of 2 iterations were seen by msdump-native.",
        "msdump-native was not used any more: the program runs what torch.compile has made.",
    )


@pytest.mark.parametrize("program", [mlp, data_made_between, accumulated], ids=lambda program: program.__name__)
def test_iterations_between_which_nothing_is_dumped(
    program: Callable[[], Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "native", program, iteration="1|3")
    monkeypatch.setenv(NATIVE, "0")
    run(tmp_path / "mode", program, iteration="1|3")
    native, mode = rows(tmp_path / "native"), rows(tmp_path / "mode")
    assert native.keys() == mode.keys() and native
    for name in mode:
        assert alike(native[name]) == alike(mode[name]), name


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda value: value.__name__)
def test_rows_on_a_cuda_device(
    program: Callable[[], Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    torch.set_default_device("cuda")
    request.addfinalizer(lambda: torch.set_default_device(None))
    test_rows_are_those_of_a_mode(program, "all", tmp_path, monkeypatch)
    monkeypatch.delenv(NATIVE)
    report = run(tmp_path / "again", program)[1]
    assert "device tensor" not in report


def test_what_fails_in_msdump_ends_the_dump_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, _ = run(tmp_path, mlp, is_watched=False)
    monkeypatch.setattr(NativeCalls, "show", lambda *_: {}["nothing"])
    torch.manual_seed(0)
    step = mlp()
    with msdump.watch(config=configuration(tmp_path)) as watch:
        losses = [step(number) for number in range(STEPS)]
    assert all(map(torch.equal, losses, plain))
    report = watch.report()
    assert report is not None and report.failure == "KeyError: 'nothing'" and report.lost
    assert caplog.records[0].getMessage() == "Dump stopped, training continues: KeyError: 'nothing'"


def test_an_observer_that_stops_is_told_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no more")

    plain, _ = run(tmp_path, mlp, is_watched=False)
    torch.manual_seed(0)
    step = mlp()
    losses = []
    with msdump.watch(config=configuration(tmp_path)) as watch:
        for number in range(STEPS):
            with monkeypatch.context() as patch:
                if number == 1:
                    patch.setattr(NativeCalls, "expected", refuse)
                losses.append(step(number))
    assert all(map(torch.equal, losses, plain))
    report = watch.report()
    assert report is not None and report.lost == 1 and not report.error
    assert "msdump-native stopped: no more. The dispatch mode took its place." in report.notes
    # Those after it are whole.
    found = rows(tmp_path)
    graphs = {name.split("/")[-3] for name in found}
    for graph in graphs:
        names = [Counter(row[1] for row in found[f"rank_0/Net/{graph}/{number}/statistic.csv"]) for number in (2, 3)]
        assert names[0] == names[1] and names[0]


def test_one_iteration_is_not_plural(tmp_path: Path) -> None:
    step = mlp()
    with msdump.watch(config=configuration(tmp_path, saved_data="tensor")) as watch:
        step(0)
    report = watch.report()
    assert report is not None and report.notes == ("operators of 1 iteration were seen by msdump-native.",)


def test_a_native_part_of_another_release_is_told_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Older:
        """As it was before it had a number."""

        check = staticmethod(lambda: "")

    monkeypatch.setitem(sys.modules, "msdump_native", Older)
    assert "another release" in why_not_native.__wrapped__()

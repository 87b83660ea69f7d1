"""The backend: what lies on disk after a model ran, and that the model did not notice."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from msdump.errors import ConfigError, DumpError, WriteError  # noqa: E402
from msdump.formats.atomic import Folder  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure, one, rows, tensors  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    """A convolution, a normalisation with state, a view, a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        self.fc = nn.Linear(3 * 16, 5)

    def forward(self, x: Any) -> Any:
        return self.fc(self.features(x).flatten(1))


def train(model: Any, called: Any, steps: int = 2) -> list[Any]:
    """Losses, gradients and state of a few steps."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen: list[Any] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(called(torch.randn(4, 1, 6, 6)), torch.tensor([0, 1, 2, 3]))
        loss.backward()
        seen += [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
        optimizer.step()
    return [*seen, *(value.clone() for value in model.state_dict().values())]


def compiled(model: Any) -> Any:
    return torch.compile(model, backend=backend)


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_looking_does_not_change_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sync: bool, saved_data: str
) -> None:
    models = [Net(), Net(), Net()]
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    eager = train(models[0], models[0])
    plain = train(models[1], compiled(models[1]))
    torch._dynamo.reset()
    sessions.reset_for_tests()
    configure(tmp_path, monkeypatch, is_sync=is_sync, saved_data=saved_data)
    dumped = train(models[2], compiled(models[2]))
    report = close()
    assert report.error is None
    assert report.skipped == {}
    assert report.tensors_written > 100
    for before, after in zip(plain, dumped, strict=True):
        assert torch.equal(before, after)
    torch.testing.assert_close(dumped, eager)


def test_files_hold_what_operators_read_and_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    model = Net()
    x = torch.randn(4, 1, 6, 6)
    weight = model.features[0].weight.detach().clone()
    mean = model.features[1].running_mean.clone()
    reference = copy.deepcopy(model)
    loss = compiled(model)(x).square().sum()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    close()
    net = root / "rank_0" / "Net"
    forward, backward = net / "0" / "0", net / "1" / "0"
    np.testing.assert_array_equal(one(forward, "aten.convolution", "input", 0), x)
    np.testing.assert_array_equal(one(forward, "aten.convolution", "input", 1), weight)
    hidden = reference.features(x)
    np.testing.assert_array_equal(one(forward, "aten.relu"), hidden.detach())
    reference.fc(hidden.flatten(1)).square().sum().backward()
    found = one(backward, "convolution_backward", "output", 0)
    np.testing.assert_allclose(found, reference.features[0].weight.grad, rtol=1e-4, atol=1e-5)
    # An operator that writes in place shows what it read and what it left.
    copies = {name: array for name, array in tensors(forward).items() if "copy_" in name[0]}
    olds = [array for (_, io, slot), array in copies.items() if (io, slot) == ("input", 0)]
    assert any(array.shape == (3,) and np.array_equal(array, mean) for array in olds)
    parameters = {path.name.split(".0.0.")[0] for path in forward.glob("Parameter.*")}
    assert {"Parameter.features.0.weight", "Parameter.fc.bias", "Parameter.x"} <= parameters
    after = next(forward.glob("Parameter.features.1.running_mean.*"))
    np.testing.assert_array_equal(np.load(after), reference.features[1].running_mean)
    assert {path.name.split(".")[1] for path in backward.glob("Parameter.*")} == {"tangents_1"}


def test_both_engines_leave_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for is_sync in (True, False):
        folder = tmp_path / str(is_sync)
        folder.mkdir()
        root = configure(folder, monkeypatch, is_sync=is_sync)
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = Net()
        train(model, compiled(model))
        close()
        sessions.reset_for_tests()
        pattern = "rank_0/Net/{}/{}" if is_sync else "*/0/kernel_graph_{0}/{0}/{1}"
        for graph, iteration in ((0, 0), (0, 1), (1, 0), (1, 1)):
            (data,) = root.glob(pattern.format(graph, iteration))
            arrays = sorted((path.name.count("."), np.load(path).tobytes()) for path in data.glob("*.npy"))
            found.append([content for _, content in sorted(arrays, key=lambda item: item[1])])
    assert found[:4] == found[4:]


def test_graph_files_name_modules_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    model = Net()
    train(model, compiled(model), 1)
    close()
    rank = root / "rank_0"
    forward = (rank / "graphs" / "ms_output_trace_code_graph_0.ir").read_text()
    assert "(Default/features-Sequential/0-Conv2d/aten.convolution.default-op0)" in forward
    assert "# In file " in forward
    assert "return self.fc(self.features(x).flatten(1))" in forward
    backward = (rank / "graphs" / "ms_output_trace_code_graph_1.ir").read_text()
    assert "(Gradients/Default/features-Sequential/0-Conv2d/aten.convolution_backward.default-op" in backward
    assert "forward_node_name: aten.convolution.default_" in backward
    order = (rank / "execution_order" / "ms_execution_order_graph_1.csv").read_text().splitlines()
    assert order[-1].startswith("Gradients/Default/features-Sequential/0-Conv2d/aten.convolution_backward")
    history = (rank / "execution_order" / "ms_global_execution_order_graph_1.csv").read_text()
    assert history.split() == ["0"]
    assert (rank / "graphs" / "ms_output_trace_code_graph_0.pb").stat().st_size > 0


def test_selection_by_type_name_and_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = ["aten.convolution", "Default/features-Sequential/2-ReLU/aten.relu.default-op3"]
    root = configure(
        tmp_path, monkeypatch, dump_mode=1, kernels=kernels, iteration="1", input_output=2, saved_data="full"
    )
    model = Net()
    train(model, compiled(model), 3)
    report = close()
    net = root / "rank_0" / "Net"
    assert sorted(path.name for path in (net / "0").iterdir()) == ["1"]
    assert {name for name, _, _ in tensors(net / "0" / "1")} == {
        "aten.convolution.default-op0",
        "aten.relu.default-op3",
    }
    assert {row.op_type for row in rows(net / "1" / "1")} == {"aten_convolution_backward_default"}
    assert report.unmatched == ()


def test_statistics_leave_the_digest_out_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = configure(tmp_path, monkeypatch, saved_data="statistic")
    model = Net()
    x = torch.randn(4, 1, 6, 6)
    compiled(model)(x)
    close()
    (row,) = [
        row for row in rows(root / "rank_0/Net/0/0") if (row.op_name[:9], row.io, row.slot) == ("aten.conv", "input", 0)
    ]
    assert row.md5 is None
    assert (row.shape, row.count) == ((4, 1, 6, 6), 144)
    assert row.max == pytest.approx(float(x.max()), rel=1e-5)
    assert row.negative == int((x < 0).sum())


def test_evaluation_and_training_count_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch, saved_data="statistic")
    model = Net()
    called = compiled(model)
    train(model, called, 2)
    model.eval()
    with torch.no_grad():
        called(torch.randn(4, 1, 6, 6))
        called(torch.randn(4, 1, 6, 6))
    close()
    found = {graph.name: sorted(path.name for path in graph.iterdir()) for graph in (root / "rank_0/Net").iterdir()}
    assert found == {"0": ["0", "1"], "1": ["0", "1"], "2": ["2", "3"]}


def test_two_forward_runs_before_their_backward_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    weight = torch.ones(3, requires_grad=True)

    def model(x: Any) -> Any:
        return torch.tanh(x * weight).exp()

    called = compiled(model)
    first, second = called(torch.zeros(3)), called(torch.ones(3))
    first.backward(torch.full((3,), 5.0))
    second.backward(torch.full((3,), 7.0))
    close()
    for iteration, tangent in ((0, 5), (1, 7)):
        (path,) = (root / f"rank_0/Net/1/{iteration}").glob("Parameter.tangents_1.*")
        assert np.load(path).tolist() == [tangent] * 3


def test_graph_breaks_share_the_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)

    def model(x: Any) -> Any:
        x = x * 2
        torch._dynamo.graph_break()
        return x + 1

    called = compiled(model)
    for _ in range(2):
        called(torch.ones(3))
    close()
    net = root / "rank_0/Net"
    assert one(net / "0/1", "aten.mul").tolist() == [2, 2, 2]
    assert one(net / "1/1", "aten.add").tolist() == [3, 3, 3]
    assert sorted(path.name for path in net.iterdir()) == ["0", "1"]


def test_every_set_of_shapes_is_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)

    def model(x: Any) -> Any:
        return (x.reshape(-1) * x.shape[0]).sum()

    called = torch.compile(model, backend=backend, dynamic=True)
    for size in (2, 5, 2):
        called(torch.ones(size, 3))
    close()
    net = root / "rank_0/Net"
    assert one(net / "0/0", "aten.mul").shape == (6,)
    assert one(net / "1/1", "aten.mul").tolist() == [5] * 15
    assert one(net / "0/2", "aten.sum") == 12
    assert "(15)" in (root / "rank_0/graphs/ms_output_trace_code_graph_1.ir").read_text()


def test_shapes_that_the_data_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        called = torch.compile(lambda x: torch.nonzero(x) * 2, backend=backend, fullgraph=True)
        called(torch.tensor([0.0, 1.0, 1.0]))
        called(torch.tensor([1.0, 1.0, 1.0]))
    close()
    assert one(root / "rank_0/Net/0/0", "nonzero").tolist() == [[1], [2]]
    assert one(root / "rank_0/Net/0/1", "aten.mul").tolist() == [[0], [2], [4]]


DTYPES = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "complex64", "int64", "bool", "uint16"]


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, saved_data: str) -> None:
    root = configure(tmp_path, monkeypatch, saved_data=saved_data)
    called = compiled(lambda x: x.to(getattr(torch, dtype)).clone())
    called(torch.tensor([0.0, 1.0, 1.0]))
    assert close().error is None
    folder = root / "rank_0/Net/0/0"
    if saved_data == "tensor":
        assert one(folder, "aten.clone").astype(np.complex64).tolist() == [0, 1, 1]
    else:
        assert {row.dtype for row in rows(folder)} == {"float32", dtype}


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_what_cannot_be_shown_is_counted_and_the_model_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    result = compiled(lambda x: x.to(torch.complex32).real.float() + 1)
    assert result(torch.ones(2)).tolist() == [2, 2]
    report = close()
    assert report.skipped["dtype complex32"] >= 1
    assert one(root / "rank_0/Net/0/0", "aten.add").tolist() == [2, 2]


def test_views_of_a_tensor_that_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for is_sync in (True, False):
        folder = tmp_path / str(is_sync)
        folder.mkdir()
        root = configure(folder, monkeypatch, is_sync=is_sync)
        torch._dynamo.reset()
        state = torch.arange(6.0).reshape(2, 3)

        def model(x: Any, state: Any = state) -> Any:
            y = state.t() @ x
            state.add_(1)
            return y + state.sum()

        with torch.no_grad():
            compiled(model)(torch.ones(2, 2))
        close()
        sessions.reset_for_tests()
        (data,) = root.glob("rank_0/Net/0/0" if is_sync else "*/0/kernel_graph_0/0/0")
        arrays = [np.load(path) for path in data.glob("*aten*mm*input*0*.npy")]
        found.append(arrays)
        assert any(np.array_equal(array, [[0, 3], [1, 4], [2, 5]]) for array in arrays)
    assert state.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_checkpoint_and_autocast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.checkpoint import checkpoint

    root = configure(tmp_path, monkeypatch)
    model = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 2))

    @torch.compile(backend=backend)
    def run(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return checkpoint(model, x, use_reentrant=False).float().sum()

    run(torch.randn(5, 3)).backward()
    close()
    forward = {name.split("-op")[0] for name, _, _ in tensors(root / "rank_0/Net/0/0")}
    backward = {name.split("-op")[0] for name, _, _ in tensors(root / "rank_0/Net/1/0")}
    assert "aten._to_copy.default" in forward
    assert "aten.sigmoid.default" in forward & backward


def test_a_model_that_raises_in_the_middle_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=False)

    def model(x: Any, index: Any) -> Any:
        return torch.index_select(x * 2, 0, index) + 1

    called = compiled(model)
    called(torch.ones(3), torch.tensor([0, 1]))
    with pytest.raises(IndexError, match="index out of range"):
        called(torch.ones(3), torch.tensor([0, 9]))
    assert called(torch.ones(3), torch.tensor([2, 1])).tolist() == [3, 3]
    assert close().error is None
    (data,) = root.glob("*/0/kernel_graph_0/0")
    assert sorted(path.name for path in data.iterdir()) == ["0", "1", "2"]
    assert len(list((data / "1").glob("*add*"))) == 0


def test_overflow_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=False, op_debug_mode=3, file_format="npy")
    called = compiled(lambda x: (x + 1).exp().log())
    called(torch.tensor([1.0, 1000.0]))
    close()
    names = [path.name for path in root.rglob("*.npy")]
    assert names
    assert all("aten_exp" in name for name in names)


def test_two_models_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch)
    first, second = compiled(lambda x: x + 1), compiled(lambda x: x * 3)
    first(torch.ones(2))
    second(torch.ones(2))
    close()
    assert one(root / "rank_0/Net/0/0", "aten.add").tolist() == [2, 2]
    assert one(root / "rank_0/Net/1/0", "aten.mul").tolist() == [3, 3]


def test_after_the_dump_is_closed_the_model_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, is_sync=False)
    called = compiled(lambda x: x + 1)
    called(torch.ones(2))
    close()
    assert called(torch.ones(2)).tolist() == [2, 2]


def test_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no options"):
        backend(None, [], options={"dump": True})


def test_a_wrong_configuration_is_said_at_the_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, iteration="5-")
    with pytest.raises(Exception, match="iteration"):
        compiled(lambda x: x + 1)(torch.ones(2))


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.3.1+cpu")
    with pytest.raises(ConfigError, match=r"2\.5 or later, got 2\.3\.1"):
        backend(None, [])


def test_statistics_are_those_of_the_step_although_nothing_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=False, saved_data="statistic")
    model, x = nn.Linear(400, 300), torch.ones(200, 400)
    called = compiled(model)
    for value in (1.0, 2.0):
        with torch.no_grad():
            model.weight.fill_(value)
        result = called(x)
        with torch.no_grad():
            # The user's memory again: a reader that came too late would see this.
            model.weight.fill_(-9)
            result.fill_(-9)
    close()
    for iteration, value in enumerate((1.0, 2.0)):
        (folder,) = root.glob(f"*/0/kernel_graph_0/0/{iteration}")
        found = rows(folder)
        assert {row.min for row in found if row.shape == (300, 400)} == {value}
        (output,) = [row for row in found if row.op_name.startswith("aten.addmm") and row.io == "output"]
        assert output.min is not None
        assert output.min > 300 * value


def interrupting(error: BaseException) -> Any:
    """An operator that raises when its input is negative."""

    @torch.library.custom_op("msdump_test::stop", mutates_args=(), schema="(Tensor x) -> Tensor")
    def stop(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise error
        return x.clone()

    stop.register_fake(lambda x: torch.empty_like(x))
    return stop


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("error", [KeyboardInterrupt("Ctrl-C"), MemoryError("too large")], ids=["ctrl_c", "error"])
def test_a_step_that_ends_in_the_middle_leaves_the_next_ones_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sync: bool, error: BaseException
) -> None:
    root = configure(tmp_path, monkeypatch, is_sync=is_sync)
    stop = interrupting(error)
    called = compiled(lambda x: stop(x + 1) * 2)
    called(torch.ones(2))
    with pytest.raises(type(error)):
        called(torch.full((2,), -5.0))
    assert called(torch.ones(2)).tolist() == [4, 4]
    report = close()
    assert (report.error, report.lost) == (None, 0)
    steps = {path.name: path for path in root.glob("rank_0/Net/0/*" if is_sync else "*/0/kernel_graph_0/0/*")}
    assert set(steps) == ({"0", "2"} if is_sync else {"0", "1", "2"})
    names = {
        number: sorted(path.name.split(".")[0] for path in folder.glob("*.npy")) for number, folder in steps.items()
    }
    assert names["0"] == names["2"]
    if not is_sync:
        assert any("add" in name for name in names["1"]) and not any("mul" in name for name in names["1"])


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_a_full_disk_ends_the_dump_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_sync: bool
) -> None:
    models = [Net(), Net()]
    models[1].load_state_dict(models[0].state_dict())
    plain = train(models[0], compiled(models[0]))
    torch._dynamo.reset()
    sessions.reset_for_tests()
    write, written = Folder.write, []

    def limited(self: Folder, name: str, *arguments: Any, **keywords: Any) -> int:
        if len(written) >= 20:
            raise WriteError(f"{name}: expected to write it, got No space left on device.")
        written.append(name)
        return write(self, name, *arguments, **keywords)

    monkeypatch.setattr(Folder, "write", limited)
    configure(tmp_path, monkeypatch, is_sync=is_sync)
    dumped = train(models[1], compiled(models[1]))
    with pytest.raises(DumpError, match="No space left on device"):
        close()
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(dumped, plain, strict=True))
    assert sum("training continues" in record.getMessage() for record in caplog.records) == 1


def test_a_folder_that_cannot_be_made_is_said_at_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    configure(tmp_path, monkeypatch, path=str(tmp_path / "file" / "dump"))
    with pytest.raises(Exception, match="expected a folder"):
        compiled(lambda x: x + 1)(torch.ones(2))


def test_a_missing_pytorch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match=r"got none\. Install it with: pip install torch"):
        backend(None, [])


class Inner(nn.Module):
    """A module whose own name is the one that Dynamo's wrapper uses."""

    def __init__(self) -> None:
        super().__init__()
        self.fn = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.fn(x)


@pytest.mark.parametrize(
    ("model", "names", "scopes"),
    [
        (
            lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
            {"0.weight", "0.bias", "2.weight", "2.bias", "input"},
            {"Default/0-Linear", "Default/1-ReLU", "Default/2-Linear"},
        ),
        (lambda: nn.Linear(4, 2), {"weight", "bias", "input"}, {"Default"}),
        (lambda: nn.Sequential(Inner()), {"0.fn.weight", "0.fn.bias", "input"}, {"Default/0-Inner/fn-Linear"}),
        (Inner, {"fn.weight", "fn.bias", "x"}, {"Default/fn-Linear"}),
    ],
    ids=["sequential", "linear", "nested", "own"],
)
def test_names_begin_below_the_module_that_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any, names: set[str], scopes: set[str]
) -> None:
    """Whether Dynamo calls it through a wrapper of its own (classes of PyTorch) or not (classes of the script)."""
    root = configure(tmp_path, monkeypatch)
    with torch.no_grad():
        compiled(model())(torch.ones(5, 4))
    close()
    found = {
        op_name for op_name, _, _ in tensors(root / "rank_0" / "Net" / "0" / "0") if not op_name.startswith("aten")
    }
    assert found == names
    (ir,) = root.glob("rank_0/graphs/*.ir")
    full_names = re.findall(r"# Fullname with scope: \((.*)\)", ir.read_text())
    assert {name.rpartition("/")[0] for name in full_names if "/aten." in name} == scopes


def test_a_tensor_that_cannot_be_shown_is_named_with_its_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = torch.library.Library("msdump_backend", "DEF")
    library.define("row(Tensor x) -> Tensor")
    library.impl("row", lambda x: x[:1].clone(), "CPU")
    torch.library.register_fake("msdump_backend::row", torch.empty_like, lib=library)
    configure(tmp_path, monkeypatch)
    torch.compile(lambda x: torch.ops.msdump_backend.row(x), backend=backend)(torch.ones(3, 4))
    reasons = close().skipped
    library._destroy()
    assert (
        "tensor of Default/msdump_backend.row.default-op0 that is of another type than the operator declares" in reasons
    )

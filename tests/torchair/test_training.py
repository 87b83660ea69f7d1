"""Forward, backward and inference graphs: numbers, steps, and not one bit of the training changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import msdump.torchair as torchair
from tests.torchair.dumps import backend_for, read_steps

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def small_model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )


def pictures(count: int = 2) -> Any:
    return torch.randn(count, 1, 4, 4, generator=torch.Generator().manual_seed(7))


def train(model: Any, compiled: Callable[..., Any], steps: int = 2, is_autocast: bool = False) -> list[Any]:
    """Losses, gradients and weights of a few steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
            loss = functional.cross_entropy(compiled(pictures()), torch.tensor([0, 2]))
        loss.backward()
        seen += [loss.detach().clone(), *(parameter.grad.clone() for parameter in model.parameters())]
        optimizer.step()
    return [*seen, *(parameter.detach().clone() for parameter in model.state_dict().values())]


@pytest.mark.parametrize("is_autocast", [False, True])
def test_a_dump_changes_no_bit_and_eager_agrees(is_autocast: bool, tmp_path: Path) -> None:
    results = []
    for backend in (torchair.get_npu_backend(), backend_for(tmp_path), None):
        model = small_model()
        compiled = model if backend is None else torch.compile(model, backend=backend, fullgraph=True)
        results.append(train(model, compiled, is_autocast=is_autocast))
        torch._dynamo.reset()
    plain, dumped, eager = results
    for first, second, third in zip(plain, dumped, eager, strict=True):
        assert torch.equal(first, second)
        torch.testing.assert_close(second, third)
    forward, backward = read_steps(tmp_path)
    assert (len(forward), len(backward)) == (2, 2)
    assert ("_to_copy" in forward[0].values) == is_autocast
    assert {"aten.convolution.default", "aten.addmm.default"} <= set(forward[0].targets.values())
    assert "aten.convolution_backward.default" in backward[0].targets.values()


def test_files_hold_the_values_of_the_step(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    compiled = torch.compile(model, backend=backend_for(tmp_path))
    inputs = [torch.randn(4, 3) for _ in range(3)]
    for x in inputs:
        model.zero_grad()
        compiled(x).square().sum().backward()
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        gradient = model.weight.grad.clone()
    forward, backward = read_steps(tmp_path)
    assert [len(forward), len(backward)] == [3, 3]
    for x, step in zip(inputs, forward, strict=True):
        np.testing.assert_array_equal(step.values["addmm"]["INPUT", 0], weights[1])
        np.testing.assert_array_equal(step.values["addmm"]["INPUT", 1], x)
        np.testing.assert_array_equal(step.values["addmm"]["INPUT", 2], weights[0].T)
    outputs = [values[place] for values in backward[-1].values.values() for place in values if place[0] == "OUTPUT"]
    assert any(array.shape == gradient.shape and np.array_equal(array, gradient) for array in outputs)


def test_train_eval_and_no_grad_are_graphs_of_their_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = small_model()
    compiled = torch.compile(model, backend=backend_for(tmp_path))
    compiled(pictures()).sum().backward()
    model.eval()
    with torch.no_grad():
        compiled(pictures())
        compiled(pictures())
    model.train()
    compiled(pictures()).sum().backward()
    forward, backward, inference = read_steps(tmp_path)
    assert [len(forward), len(backward), len(inference)] == [2, 2, 2]
    told = [record for record in caplog.records if "compiles more than one graph" in record.getMessage()]
    assert len(told) == 1 and told[0].levelno == logging.WARNING


def test_two_models_share_the_counter_and_overwrite_nothing(tmp_path: Path) -> None:
    backend = backend_for(tmp_path)
    models = [torch.nn.Linear(3, 2, bias=False), torch.nn.Linear(3, 5, bias=False)]
    compiled = [torch.compile(model, backend=backend) for model in models]
    x = torch.randn(2, 3)
    with torch.no_grad():
        for run in (*compiled, *compiled):
            run(x)
    graphs = read_steps(tmp_path)
    assert [len(steps) for steps in graphs] == [2, 2]
    for model, steps in zip(models, graphs, strict=True):
        for step in steps:
            np.testing.assert_array_equal(step.values["mm"]["OUTPUT", 0], model(x).detach())


# torch's own, when a second part begins with what a first one made.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_graph_breaks_number_each_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def function(x: Any) -> Any:
        y = torch.sin(x * 2)
        torch._dynamo.graph_break()
        torch._dynamo.graph_break()
        return torch.cos(y)

    compiled = torch.compile(function, backend=backend_for(tmp_path))
    x = torch.randn(3, requires_grad=True)
    for _ in range(2):
        compiled(x).sum().backward()
    graphs = read_steps(tmp_path)
    # The backward of the second part is needed, and therefore compiled, before that of the first.
    assert [set(graph[0].values) & {"sin", "cos"} for graph in graphs] == [{"sin"}, {"cos"}, {"sin"}, {"cos"}]
    assert [len(graph) for graph in graphs] == [2] * 4
    assert sum("compiles more than one graph" in record.getMessage() for record in caplog.records) == 1


def test_a_new_shape_is_a_new_graph(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x.relu(), backend=backend_for(tmp_path), dynamic=False)
    for rows in (2, 3, 2):
        compiled(torch.ones(rows))
    graphs = read_steps(tmp_path)
    assert [[step.values["relu"]["INPUT", 0].shape for step in graph] for graph in graphs] == [[(2,), (2,)], [(3,)]]


def test_dynamic_shapes_in_training(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    compiled = torch.compile(model, backend=backend_for(tmp_path), dynamic=True)
    for rows in (2, 5):
        x = torch.randn(rows, 3)
        model.zero_grad()
        compiled(x).square().sum().backward()
        found = model.weight.grad.clone()
        model.zero_grad()
        model(x).square().sum().backward()
        torch.testing.assert_close(found, model.weight.grad)
    graphs = read_steps(tmp_path)
    assert [len(graph) for graph in graphs] == [2, 2]


def test_checkpointing_runs_the_forward_again_in_the_backward_graph(tmp_path: Path) -> None:
    from torch.utils.checkpoint import checkpoint

    def function(x: Any) -> Any:
        return checkpoint(lambda value: torch.sin(value * 2).exp(), x, use_reentrant=False)

    compiled = torch.compile(function, backend=backend_for(tmp_path))
    x = torch.randn(3, requires_grad=True)
    compiled(x).sum().backward()
    expected = torch.randn(3, requires_grad=True)
    expected.data.copy_(x.data)
    torch.sin(expected * 2).exp().sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)
    forward, backward = read_steps(tmp_path)
    assert "aten.sin.default" in forward[0].targets.values()
    assert {"aten.sin.default", "aten.cos.default"} <= set(backward[0].targets.values())


def test_a_second_backward_is_a_further_step(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: (x * x).sin(), backend=backend_for(tmp_path))
    x = torch.randn(3, requires_grad=True)
    y = compiled(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert [len(graph) for graph in read_steps(tmp_path)] == [1, 2]


def test_backward_inside_the_compiled_function(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)

    def step(x: Any) -> None:
        loss = model(x).square().sum()
        loss.backward()

    x = torch.randn(2, 3)
    torch.compile(step, backend=backend_for(tmp_path))(x)
    found = model.weight.grad.clone()
    model.zero_grad()
    step(x)
    torch.testing.assert_close(found, model.weight.grad)
    assert read_steps(tmp_path)


def test_compiled_autograd(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)

    def step(x: Any) -> None:
        model(x).square().sum().backward()

    x = torch.randn(2, 3)
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(step, backend=backend_for(tmp_path))(x)
    found = model.weight.grad.clone()
    model.zero_grad()
    step(x)
    torch.testing.assert_close(found, model.weight.grad)
    targets = {target for graph in read_steps(tmp_path) for target in graph[0].targets.values()}
    assert {"aten.addmm.default", "aten.mm.default"} <= targets


def test_a_model_that_raises_keeps_its_own_error_and_its_folder(tmp_path: Path) -> None:
    @torch.library.custom_op("msdump_test::picky", mutates_args=(), schema="(Tensor x) -> Tensor")
    def picky(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise KeyError("negative")
        return x.clone()

    picky.register_fake(lambda x: torch.empty_like(x))
    compiled = torch.compile(lambda x: picky(x + 1) * 2, backend=backend_for(tmp_path))
    compiled(torch.ones(2))
    with pytest.raises((KeyError, RuntimeError), match="negative"):
        compiled(torch.full((2,), -5.0))
    compiled(torch.ones(2))
    ((first, failed, last),) = read_steps(tmp_path)
    assert set(first.values) == set(last.values) == {"add", "picky", "mul"}
    assert set(failed.values) == {"add", "picky"}
    assert set(failed.values["picky"]) == {("INPUT", 0)}


def test_custom_decompositions_are_used(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = tmp_path
    table = {torch.ops.aten.relu.default: lambda x: torch.ops.aten.clamp_min(x, 0)}
    backend = torchair.get_npu_backend(compiler_config=config, custom_decompositions=table)
    torch.compile(lambda x: x.relu(), backend=backend)(torch.ones(2))
    ((step,),) = read_steps(tmp_path)
    assert set(step.targets.values()) == {"aten.clamp_min.default"}


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: x.relu(),
    "add": lambda x: x + 1,
    "mul": lambda x: x * x,
    "softmax": lambda x: x.softmax(-1),
    "transpose": lambda x: x.t(),
    "sort": lambda x: x.sort(0).values,
    "split": lambda x: torch.cat(x.split(1)),
    "matmul": lambda x: x @ x.t() @ x,
    "dropout": lambda x: functional.dropout(x, 0.5),
    "in place": lambda x: x.clone().mul_(3),
}


def same_bits(first: Any, second: Any) -> bool:
    """Also where both are NaN, which equals nothing."""
    arrays = [tensor.detach().cpu().contiguous() for tensor in (first, second)]
    return first.dtype == second.dtype and arrays[0].numpy().tobytes() == arrays[1].numpy().tobytes()


@settings(max_examples=10)
@example(names=["dropout", "matmul", "matmul", "matmul", "matmul"], seed=0)
@given(names=st.lists(st.sampled_from(sorted(OPERATORS)), min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_any_chain_of_operators_computes_the_same_bits(
    names: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def function(x: Any) -> Any:
        for name in names:
            x = OPERATORS[name](x)
        return x

    path = tmp_path_factory.mktemp("chain")
    results = []
    for run in (backend_for(path), torchair.get_npu_backend()):
        torch._dynamo.reset()
        torch.manual_seed(seed)
        x = torch.randn(3, 2, requires_grad=True)
        y = torch.compile(function, backend=run)(x)
        y.sum().backward()
        results.append((y.detach(), x.grad))
    (output, gradient), (plain_output, plain_gradient) = results
    assert same_bits(output, plain_output) and same_bits(gradient, plain_gradient)
    forward = read_steps(path)[0][0]
    results_on_disk = [
        array for values in forward.values.values() for place, array in values.items() if place[0] == "OUTPUT"
    ]
    assert any(array.shape == output.shape and same_bits(torch.from_numpy(array), output) for array in results_on_disk)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_dump_on_cuda_changes_no_bit(tmp_path: Path) -> None:
    results = []
    for backend in (torchair.get_npu_backend(), backend_for(tmp_path)):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).cuda()
        x = torch.arange(8.0).reshape(2, 4).cuda()
        output = torch.compile(model, backend=backend)(x)
        output.square().sum().backward()
        results.append([output.detach(), *(parameter.grad for parameter in model.parameters())])
    assert all(torch.equal(plain, dumped) for plain, dumped in zip(*results, strict=True))
    forward, backward = (graph[0] for graph in read_steps(tmp_path))
    np.testing.assert_array_equal(forward.values["addmm_1"]["OUTPUT", 0], results[1][0].cpu())
    assert backward.values

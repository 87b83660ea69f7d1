"""Chains of views as GE operators: how few they become, and that every element, stride and alias is that of eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.torchair as torchair

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402

from msdump.process import sessions  # noqa: E402
from msdump.torchair.ge.convert import convert  # noqa: E402
from msdump.torchair.ge.graph import GeGraph  # noqa: E402
from msdump.torchair.ge.program import runnable  # noqa: E402
from tests.torchair.ge_exact import types  # noqa: E402
from tests.torchair.graph_mode_dumps import files, values  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402

VIEWS = ("Reshape", "Transpose")


def _views(graph: GeGraph) -> list[str]:
    return [each for each in types(graph) if each in VIEWS]


def _split_and_turned(x: Any) -> Any:
    return x.view(6, 6).transpose(0, 1).view(3, 2, 2, 3).transpose(1, 3) + 1


def _turned_axis_of_one(x: Any) -> Any:
    rows = x.shape[0] // 32
    return x.view(rows, 32, 1, 128).permute(0, 2, 1, 3).view(rows, 1, 4096).view(rows, 4096) + 1


def _read_twice(x: Any) -> Any:
    turned = x.transpose(0, 2)
    return (turned + 1) + (turned - 1)


# Source: TorchAir, the numbers of operators that its tests of view optimisation expect.
COUNTED: list[tuple[Callable[[Any], Any], list[tuple[int, ...]], list[str]]] = [
    (_split_and_turned, [(36,)], ["Reshape", "Transpose"]),
    (_turned_axis_of_one, [(256, 1, 128), (64, 1, 128)], ["Reshape"]),
    (lambda x: x.transpose(2, 3) + 1, [(6, 6, 4, 1), (8, 8, 5, 1)], ["Reshape"]),
    (_read_twice, [(3, 1, 4), (5, 1, 2)], ["Reshape", "Transpose", "Reshape"]),
    (lambda x: x.t() + 1, [(3, 4), (2, 5)], ["Transpose"]),
    (
        lambda x: x.view(x.shape[1], x.shape[0]).t().reshape(-1) + 1,
        [(3, 4), (2, 5)],
        ["Reshape", "Transpose", "Reshape"],
    ),
    (lambda x: x.view(4, 3).view(2, 6) + 1, [(3, 4)], ["Reshape"]),
    (lambda x: x.t().t() + 1, [(3, 4)], []),
    (lambda x: x.t().reshape(-1) + 1, [(3, 4)], ["Transpose", "Reshape"]),
]


@pytest.mark.parametrize(("function", "shapes", "expected"), COUNTED)
def test_as_few_operators_as_torchair_makes(function: Any, shapes: list[tuple[int, ...]], expected: list[str]) -> None:
    graphs: list[GeGraph] = []
    run = compiled(function, graphs, dynamic=len(shapes) > 1)
    for shape in shapes:
        x = torch.randn(shape)
        assert torch.equal(run(x), function(x))
    assert len(graphs) == 1
    assert _views(graphs[0]) == expected


def _steps(data: Any, x: Any) -> list[tuple[str, Any]]:
    """Some views of a tensor, each of which torch takes."""
    found: list[tuple[str, Any]] = []
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            step = ("permute", data.draw(st.permutations(range(x.dim()))))
        else:
            step = ("reshape", data.draw(st.sampled_from(_factorings(x.numel()))))
        found.append(step)
        x = getattr(x, step[0])(step[1])
    return found


def _strides(x: Any) -> list[int]:
    """Those that say where an element lies: an axis of one element has any stride, as GE's tensors have none."""
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size != 1]


def _factorings(number: int) -> list[list[int]]:
    """Shapes of so many elements, some with axes of size 1."""
    found = [[number], [1, number], [number, 1]]
    for first in range(2, number):
        if number % first == 0:
            found += [[first, *rest] for rest in _factorings(number // first)]
    return found[:40]


def _chain(steps: list[tuple[str, Any]]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        x = seen = x * 2
        for index, (name, argument) in enumerate(steps):
            x = getattr(x, name)(argument)
            if index == 1:
                # Somebody reads a view in the middle.
                seen = x.sin()
        return x, x + 1, seen

    return function


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_chain_gives_what_eager_gives(data: Any) -> None:
    shape = data.draw(st.sampled_from([(12,), (3, 4), (2, 1, 6), (2, 3, 2, 2), (1, 5)]))
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    if data.draw(st.booleans()):
        # What does not lie contiguous is not merged.
        x = x.t().contiguous().t() if x.dim() == 2 else x
    function = _chain(_steps(data, x))
    traced = make_fx(function, tracing_mode="fake")(x)
    merged, plain = convert(traced, 1, merges_views=True), convert(traced, 2)
    assert len(_views(merged)) <= len(_views(plain)) + 4
    for actual, also, expected in zip(runnable(merged)([x]), runnable(plain)([x]), function(x), strict=True):
        assert torch.equal(actual, expected) and torch.equal(also, expected)
        assert _strides(actual) == _strides(expected) == _strides(also)


def _all_three(x: Any) -> Any:
    y = x + 1
    return y, y.t().t(), y.view(3, 2).view(2, 3), x.t().t()


def _one_twice(x: Any) -> Any:
    y = x + 1
    return y.t().t(), y.view(3, 2).view(2, 3)


@pytest.mark.parametrize(("function", "count"), [(_all_three, 3), (_one_twice, 1), (lambda x: [(x + 1).t().t()], 0)])
def test_what_is_returned_is_a_tensor_of_its_own(function: Any, count: int) -> None:
    x = torch.randn(2, 3)
    graph = convert(make_fx(function, tracing_mode="fake")(x), 1, merges_views=True)
    assert _views(graph) == ["Reshape"] * count
    results = [*runnable(graph)([x]), x]
    assert len(set(map(id, results))) == len(results)
    assert len({result.data_ptr() for result in results}) == 2


def test_nothing_waits_across_an_operator_that_writes() -> None:
    graph = fx.Graph()
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = graph.placeholder("x")
    x.meta["val"] = mode.from_tensor(torch.zeros(2, 3))
    turned = graph.call_function(torch.ops.aten.t.default, (x,))
    flat = graph.call_function(torch.ops.aten.reshape.default, (turned, [6]))
    twice = graph.call_function(torch.ops.aten.mul.Tensor, (x, 2))
    written = graph.call_function(torch.ops.aten.copy_.default, (x, twice))
    read = graph.call_function(torch.ops.aten.sin.default, (flat,))
    graph.output((read,))
    with mode:
        for node in (turned, flat, twice, written, read):
            target: Any = node.target
            node.meta["val"] = target(*fx.map_arg(node.args, lambda item: item.meta["val"]))
    made = convert(fx.GraphModule({}, graph), 1, merges_views=True)
    names = types(made)
    assert names.index("Reshape") < names.index("Assign") < names.index("Sin")
    value = torch.arange(6.0).reshape(2, 3)
    expected = value.t().reshape(6).sin()
    assert torch.equal(runnable(made)([value])[0], expected)


def _dumped(path: Path, function: Any, *args: Any, **options: Any) -> dict[tuple[str, str, int], Any]:
    config = torchair.CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(path)
    for name, value in options.items():
        setattr(config.experimental_config, name, value)
    torch._dynamo.reset()
    sessions.reset_for_tests()
    run = torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config))
    assert torch.equal(run(*args), function(*args))
    sessions.close_all()
    ((_, of_folder),) = files(path).items()
    return values(of_folder)


@pytest.mark.usefixtures("own_dump")
def test_the_option_turns_it_off(tmp_path: Path) -> None:
    x = torch.randn(36)
    (tmp_path / "on").mkdir()
    (tmp_path / "off").mkdir()
    merged = _dumped(tmp_path / "on", _split_and_turned, x)
    plain = _dumped(tmp_path / "off", _split_and_turned, x, enable_view_optimize=False)
    assert {name for name, _, _ in merged} == {"arg0_1", "Reshape", "Transpose", "Add"}
    assert {name for name, _, _ in plain} == {"arg0_1", "Reshape", "Transpose", "Reshape_1", "Transpose_1", "Add"}
    assert merged["Transpose", "output", 0].tobytes() == plain["Transpose_1", "output", 0].tobytes()
    assert merged["Reshape", "output", 0].shape == (2, 3, 3, 2)


@pytest.mark.skipif(not hasattr(fx.traceback, "annotate"), reason="this PyTorch marks nothing")
@pytest.mark.usefixtures("own_dump")
def test_views_in_a_scope_that_is_dumped_are_all_there(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        with torchair.scope.data_dump():
            return _split_and_turned(x)

    names = {name for name, _, _ in _dumped(tmp_path, function, torch.randn(36))}
    assert {"Reshape", "Transpose", "Reshape_1", "Transpose_1", "Add"} <= names

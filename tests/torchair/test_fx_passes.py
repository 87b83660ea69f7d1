"""Passes over FX graphs: what each does, and that all of them together change no bit and no memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from msdump.errors import GraphError  # noqa: E402
from msdump.frontends.torch.program import FxProgram  # noqa: E402
from msdump.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from msdump.torchair.passes import pipeline  # noqa: E402
from msdump.torchair.passes.fx_pass import FxPass  # noqa: E402
from msdump.torchair.passes.pipeline import run_fx_passes  # noqa: E402

PASSES = {fx_pass.name: fx_pass for fx_pass in (*pipeline.GE_MODE, *pipeline.NPUGRAPH_EX)}


def captured(function: Callable[..., Any], *inputs: Any, mode: str = "fake") -> Any:
    """The function as AOTAutograd would hand it over: functional but for writes to its inputs at the end."""
    functional = torch.func.functionalize(function, remove="mutations_and_views")
    if mode == "mutations":
        functional, mode = torch.func.functionalize(function, remove="mutations"), "fake"
    with torch.no_grad():
        return make_fx(functional, tracing_mode=mode)(*inputs)


def targets(module: Any) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def after(name: str, module: Any) -> list[str]:
    return targets(run_fx_passes(module, [], CompilerConfig(), [PASSES[name]]))


def ops(function: Callable[..., Any], *inputs: Any, name: str, mode: str = "mutations") -> list[str]:
    return after(name, captured(function, *inputs, mode=mode))


X = torch.linspace(-2, 2, 12).reshape(3, 4)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: (x + 1).clone().sin(), ["aten.add.Tensor", "aten.sin.default"]),
        (lambda x: (x * 1 / 1 - 0).sin(), ["aten.sin.default"]),
        (lambda x: (x + 0).sin(), ["aten.add.Tensor", "aten.sin.default"]),
        (lambda x: x[:].view(3, 4).expand(3, 4).sin(), ["aten.sin.default"]),
        (lambda x: torch.cat([x]).repeat(1, 1).sin(), ["aten.sin.default"]),
        (lambda x: torch.nn.functional.pad(x, (1, -1)).sin(), ["aten.constant_pad_nd.default", "aten.sin.default"]),
        (lambda x: x.clone(), ["aten.clone.default"]),
        (lambda x: ((y := x.sin()), y.clone()), ["aten.sin.default", "aten.clone.default"]),
        (lambda x: x.t().contiguous().sin(), ["aten.t.default", "aten.clone.default", "aten.sin.default"]),
        (lambda x: x.to(torch.float64).sin(), ["aten._to_copy.default", "aten.sin.default"]),
        (lambda x: torch.ops.prims.convert_element_type(x, torch.float32).sin(), ["aten.sin.default"]),
        (
            lambda x: torch.ops.prims.convert_element_type(x, torch.float64).sin(),
            ["prims.convert_element_type.default", "aten.sin.default"],
        ),
        (
            lambda x: (y := x.long()).ceil().floor().round().trunc() * y,
            ["aten._to_copy.default", "aten.mul.Tensor"],
        ),
        (lambda x: x.ceil().sin(), ["aten.ceil.default", "aten.sin.default"]),
        (lambda x: x.slice_scatter(x.cos(), 0, 0, 3).sin(), ["aten.cos.default", "aten.sin.default"]),
        (
            lambda x: x.slice_scatter(x.cos()[:1], 0, 0, 1).sin(),
            ["aten.cos.default", "aten.slice.Tensor", "aten.slice_scatter.default", "aten.sin.default"],
        ),
    ],
)
def test_operators_that_change_nothing_go(function: Any, left: list[str]) -> None:
    assert ops(function, X, name="optimize_noop_ops") == left


def add_to_rows(x: Any) -> None:
    x[1:3] += 1


def select_row(x: Any) -> Any:
    x[0] = x[1].sin()
    return x * 2


def read_old(x: Any) -> Any:
    old = x * 1.5
    x[1:3] += 1
    return old


@pytest.mark.parametrize("function", [add_to_rows, select_row, read_old])
def test_writes_through_a_view_are_recovered(function: Any) -> None:
    module = traced(function, X.clone())
    assert any("scatter" in target for target in targets(module))
    left = after("recover_view_inplace_pattern", module)
    assert not any("scatter" in target for target in left)
    assert left.count("aten.copy_.default") == 1
    same_results(module, run_fx_passes(module, [], CompilerConfig(), [PASSES["recover_view_inplace_pattern"]]), X)


def test_a_write_that_overlaps_what_it_reads_stays() -> None:
    def move_rows(x: Any) -> Any:
        x.copy_(torch.ops.aten.slice_scatter(x, x[0:2], 0, 1, 3))
        return x.sum()

    module = captured(move_rows, X.clone(), mode="mutations")
    assert "aten.slice_scatter.default" in after("recover_view_inplace_pattern", module)


def traced(function: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> Any:
    """The graph that a backend gets from AOTAutograd without gradients."""
    from torch._functorch.aot_autograd import aot_module_simplified

    found = []

    def compiler(module: Any, _: Any) -> Any:
        found.append(module)
        run = FxProgram(module).run

        def boxed(args: list[Any]) -> Any:
            return run(args)

        boxed._boxed_call = True
        return boxed

    def backend(module: Any, example_inputs: Any) -> Any:
        return aot_module_simplified(
            module, example_inputs, fw_compiler=compiler, bw_compiler=compiler, keep_inference_input_mutations=True
        )

    with torch.no_grad():
        torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*inputs)
    torch._dynamo.reset()
    return found[0]


def same_results(module: Any, optimized: Any, *inputs: Any) -> None:
    """Both give the same bits, write the same into their inputs, and return the same memory."""
    seen = []
    for graph in (module, optimized):
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        with torch.no_grad():
            results = [value for value in FxProgram(graph).run(list(given)) if isinstance(value, torch.Tensor)]
        memory = [value.untyped_storage().data_ptr() for value in (*tensors, *results) if value.numel()]
        first = [memory.index(place) for place in memory]
        seen.append(([*results, *tensors], first))
    (values, memory), (others, other_memory) = seen
    assert memory == other_memory
    for value, other in zip(values, others, strict=True):
        assert value.dtype == other.dtype and value.stride() == other.stride()
        assert torch.equal(value, other) or torch.equal(value.isnan(), other.isnan())


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: x + (-x.sin()), ["aten.sin.default", "aten.sub.Tensor"]),
        (lambda x: torch.cat([torch.cat([x, x]), x.sin()]), ["aten.sin.default", "aten.cat.default"]),
        (
            lambda x: torch.cat([torch.cat([x, x], 1), torch.cat([x, x], 1)]),
            ["aten.cat.default", "aten.cat.default", "aten.cat.default"],
        ),
        (
            lambda x: torch.where(x > 0, torch.full((), 3.0), x),
            ["aten.gt.Scalar", "aten.masked_fill.Scalar"],
        ),
        (lambda x: x.permute(1, 0).permute(1, 0).sin(), ["aten.permute.default", "aten.sin.default"]),
        (lambda x: x.double().half(), ["aten._to_copy.default"]),
        (lambda x: x.half().float(), ["aten._to_copy.default", "aten._to_copy.default"]),
        (lambda x: x.double().int(), ["aten._to_copy.default", "aten._to_copy.default"]),
    ],
)
def test_patterns_are_fused(function: Any, left: list[str]) -> None:
    module = captured(function, X, mode="mutations")
    assert after("apply_pattern_passes", module) == left


def test_views_become_reshapes() -> None:
    assert ops(lambda x: x.view(4, 3), X, name="view_to_reshape") == ["aten.reshape.default"]


def test_sizes_are_read_from_tensors() -> None:
    module = traced(lambda x: x.view(-1) * x.shape[0], torch.ones(5, 7), dynamic=True)
    left = run_fx_passes(module, [], CompilerConfig(), [PASSES["optimize_sym_input"]])
    assert "aten.sym_size.int" in targets(left)
    symbols = [node for node in left.graph.nodes if node.op == "placeholder" and "Sym" in str(node.meta["val"])]
    assert not any(node.users for node in symbols)
    same_results(module, left, 5, 7, torch.ones(5, 7))


def test_a_cat_is_computed_in_place() -> None:
    def function(x: Any, y: Any) -> Any:
        return torch.cat([x.sin(), (y + 1).relu(), x * y])

    left = ops(function, X, X, name="remove_cat_ops")
    assert "aten.cat.default" not in left
    assert left.count("aten.slice.Tensor") == 3 and {"aten.sin.out", "aten.relu.out", "aten.mul.out"} <= set(left)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([x.sin(), x.cos()], 1),
        lambda x: torch.cat([x.sin(), x]),
        lambda x: torch.cat([y := x.sin(), y]),
        lambda x: torch.cat([y := x.sin(), x.cos()]) + y.sum(),
        lambda x: torch.cat([x.sum(0, keepdim=True), x.cos()]),
    ],
)
def test_other_cats_stay(function: Any) -> None:
    assert "aten.cat.default" in ops(function, X, name="remove_cat_ops")


def test_dead_code_goes_but_random_numbers_are_drawn() -> None:
    def function(x: Any) -> Any:
        x.sin().cos()
        torch.rand(3)
        return x + 1

    left = ops(function, X, name="eliminate_dead_code")
    assert left == ["aten.rand.default", "aten.add.Tensor"]


@pytest.mark.parametrize(
    ("function", "left"),
    [
        (lambda x: (x + 1).relu().sin(), ["aten.add.Tensor", "aten.relu_.default", "aten.sin_.default"]),
        (lambda x: x.relu(), ["aten.relu.default"]),
        (lambda x: ((y := x + 1), y.relu()), ["aten.add.Tensor", "aten.relu.default"]),
        (lambda x: (y := x + 1).relu() * y, ["aten.add.Tensor", "aten.relu.default", "aten.mul_.Tensor"]),
        (lambda x: (y := x + 1) * y.t().reshape(3, 4), None),
        (lambda x: (x + 1)[0] * 2, ["aten.add.Tensor", "aten.select.int", "aten.mul_.Tensor"]),
        (lambda x: (x + 1) > 0, ["aten.add.Tensor", "aten.gt.Scalar"]),
    ],
)
def test_intermediate_values_are_overwritten(function: Any, left: list[str] | None) -> None:
    module = captured(function, X, mode="mutations")
    optimized = run_fx_passes(module, [], CompilerConfig(), [PASSES["reinplace_inplaceable_ops_pass"]])
    if left is not None:
        assert targets(optimized) == left
    same_results(flat(module), flat(optimized), X)


def flat(module: Any) -> Any:
    """make_fx returns a single tensor bare; a backend's graphs return a list."""
    (output,) = [node for node in module.graph.nodes if node.op == "output"]
    if not isinstance(output.args[0], (tuple, list)):
        output.args = ((output.args[0],),)
    return module


def test_inputs_are_written_where_they_are() -> None:
    def function(x: Any) -> Any:
        x.mul_(2)
        return x.sum()

    module = traced(function, X.clone())
    left = run_fx_passes(module, [], CompilerConfig(), [PASSES["reinplace_input_mutated_ops"]])
    assert targets(left)[0] == "aten.mul_.Tensor" and "aten.copy_.default" not in targets(left)
    same_results(module, left, X)


def test_an_input_that_is_returned_is_copied() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        x.copy_(y)
        return y

    assert "aten.copy_.default" in after("reinplace_input_mutated_ops", traced(function, X.clone()))


@torch.library.custom_op("msdump_test::double_in_place", mutates_args=("x",))
def double_in_place(x: torch.Tensor) -> None:
    x.mul_(2)


def test_custom_operators_that_write_get_their_name_back() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        double_in_place(y)
        return y.sin()

    module = traced(function, X.clone())
    assert any("auto_functionalized" in target for target in targets(module))
    left = run_fx_passes(module, [], CompilerConfig(), [PASSES["decompose_auto_functionalized"]])
    assert "msdump_test.double_in_place.default" in targets(left)
    same_results(module, left, X)


def test_a_tensor_is_not_copied_onto_itself() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.aten.copy_.default, (x, x)),))
    assert after("eliminate_self_copy", torch.fx.GraphModule({}, graph)) == []


def test_the_module_itself_stays_as_it_is() -> None:
    module = captured(lambda x: (x * 1).view(-1).sin(), X, mode="mutations")
    before = module.code
    seen: list[str] = []

    class Observer:
        def fx_graph(self, name: str, _: Any) -> None:
            seen.append(name)

    run_fx_passes(module, [X], CompilerConfig(), pipeline.GE_MODE, [Observer()])
    assert module.code == before
    on = [fx_pass for fx_pass in pipeline.GE_MODE if "custom" not in fx_pass.name]
    assert seen == [f"graph_after_{fx_pass.name}" for fx_pass in on]


def test_a_pass_that_fails_is_named() -> None:
    def broken(*_: Any) -> bool:
        raise ZeroDivisionError("oh")

    module = captured(lambda x: x.sin(), X)
    with pytest.raises(
        GraphError, match="FX pass mine: expected a graph that it can handle, got ZeroDivisionError: oh"
    ):
        run_fx_passes(module, [], CompilerConfig(), [FxPass("mine", broken)])


# -- everything together ------------------------------------------------------------------------------

Step = Callable[[list[Any], int, int], Any]


def _view_write(values: list[Any], i: int, j: int) -> Any:
    values[0][1:3] += values[j % len(values)].reshape(3, 4)[0:2]
    return values[0] * 1


STEPS: list[Step] = [
    lambda v, i, j: v[i % len(v)] + v[j % len(v)],
    lambda v, i, j: v[i % len(v)] * 1,
    lambda v, i, j: v[i % len(v)].clone(),
    lambda v, i, j: v[i % len(v)].relu(),
    lambda v, i, j: v[i % len(v)] + (-v[j % len(v)]),
    lambda v, i, j: v[i % len(v)].reshape(4, 3).t().reshape(3, 4),
    lambda v, i, j: v[i % len(v)].view(3, 4)[:],
    lambda v, i, j: v[i % len(v)].add_(1.5),
    lambda v, i, j: v[i % len(v)].mul_(v[j % len(v)]),
    lambda v, i, j: torch.cat([v[i % len(v)].sin(), v[j % len(v)].cos(), v[i % len(v)] + 2])[3:6],
    lambda v, i, j: torch.cat([torch.cat([v[i % len(v)], v[j % len(v)]]), v[0]])[0:3],
    lambda v, i, j: torch.where(v[i % len(v)] > 0, torch.full((), 0.5), v[j % len(v)]),
    lambda v, i, j: v[i % len(v)].double().float(),
    lambda v, i, j: v[i % len(v)].index_put((torch.tensor([0, 2]),), v[j % len(v)][:2]),
    _view_write,
]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=7),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_all_passes_together_change_no_bit_and_no_memory(steps: list[Any], returned: list[int]) -> None:
    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for kind, i, j in steps:
            values.append(STEPS[kind](values, i, j))
        return [values[place % len(values)].sum(0) if place == 7 else values[place % len(values)] for place in returned]

    inputs = (X.clone(), (X * 3).flip(0))
    module = flat(captured(function, *inputs, mode="mutations"))
    for passes in (pipeline.GE_MODE, pipeline.NPUGRAPH_EX):
        same_results(module, run_fx_passes(module, inputs, CompilerConfig(), passes), *inputs)

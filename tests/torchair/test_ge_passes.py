"""Passes over GE graphs: what each does, and that none changes what a graph computes or writes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from msdump.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from msdump.torchair.ge.builder import Builder  # noqa: E402
from msdump.torchair.ge.graph import DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor  # noqa: E402
from msdump.torchair.ge.passes import GE_PASSES, shares_memory  # noqa: E402
from msdump.torchair.ge.program import runnable  # noqa: E402
from msdump.torchair.ge.registry import kernel  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402

SIZE = 3
PASSES = dict(GE_PASSES)


class Recipe:
    """A graph built by hand: Data of (SIZE, SIZE) matrices, then whatever the test appends."""

    def __init__(self, inputs: int) -> None:
        self.graph = GeGraph(1)
        self.ge = Builder(self.graph, FakeTensorMode(allow_non_fake_inputs=True))
        self.data = [self._data(index) for index in range(inputs)]

    def _data(self, index: int) -> GeTensor:
        op = GeOp(f"arg{index}_1", DATA, attrs={"index": index})
        fake = self.ge.fake_mode.from_tensor(torch.zeros(SIZE, SIZE))
        op.outputs = (GeTensor(op, 0, fake=fake),)
        self.graph.add(op)
        return op.outputs[0]

    def finish(self, *outputs: GeTensor) -> GeGraph:
        self.graph.outputs = list(outputs)
        ends = {f"input{index}": tensor for index, tensor in enumerate(dict.fromkeys(outputs))}
        self.graph.add(GeOp("", NET_OUTPUT, dict(ends), output_names=()))
        self.graph.lint()
        return self.graph

    def transposed(self, x: GeTensor) -> GeTensor:
        return self.ge.op("Transpose", {"x": x, "perm": [1, 0]})


def types(graph: GeGraph) -> list[str]:
    return [op.type for op in graph.ops if op.type not in (DATA, "Const", NET_OUTPUT)]


def passed(graph: GeGraph, *names: str) -> GeGraph:
    """The graph after these passes, or after all."""
    for name in names or PASSES:
        PASSES[name](graph, CompilerConfig())
        graph.lint()
    return graph


def run(graph: GeGraph, count: int) -> tuple[list[Any], list[Any]]:
    """Results, and the inputs as they are afterwards."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randint(-4, 5, (SIZE, SIZE), generator=generator).float() for _ in range(count)]
    results = runnable(graph)([*inputs])
    return [result.clone() for result in results], inputs


# One step of a random program: (what, an earlier value, another one); numbers are taken modulo what there is.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "matmul", "transpose", "reshape", "copy", "assign", "assign_copy", "assign_any", "relu"]
        ),
        st.integers(0, 20),
        st.integers(0, 20),
    ),
    max_size=9,
)


def step(ge: Builder, what: str, x: GeTensor, y: GeTensor, ref: GeTensor) -> GeTensor:
    inputs: dict[str, tuple[str, dict[str, Any]]] = {
        "add": ("Add", {"x1": x, "x2": y}),
        "matmul": ("MatMul", {"x1": x, "x2": y, "bias": None}),
        "transpose": ("Transpose", {"x": x, "perm": [1, 0]}),
        "reshape": ("Reshape", {"x": x, "shape": [SIZE, SIZE]}),
        "copy": ("Identity", {"x": x}),
        "assign": ("Assign", {"ref": ref, "value": y}),
        "assign_any": ("Assign", {"ref": x, "value": y}),
        "relu": ("Relu", {"x": x}),
    }
    if what == "assign_any":
        ref = x
    # Memory cannot be written from itself in another order.
    if what == "assign_copy" or (what.startswith("assign") and shares_memory(ref, y)):
        return ge.op("Assign", {"ref": ref, "value": ge.op("Identity", {"x": y})})
    return ge.op(*inputs[what])


def random_graph(steps: list[tuple[str, int, int]], returned: list[int]) -> GeGraph:
    recipe = Recipe(3)
    values = [*recipe.data]
    for what, first, second in steps:
        x, y = values[first % len(values)], values[second % len(values)]
        values.append(step(recipe.ge, what, x, y, recipe.data[first % 3]))
    return recipe.finish(*(values[index % len(values)] for index in returned))


@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_results_and_written_inputs_stay(steps: list[tuple[str, int, int]], returned: list[int]) -> None:
    expected, expected_inputs = run(random_graph(steps, returned), 3)
    actual, actual_inputs = run(passed(random_graph(steps, returned)), 3)
    for mine, theirs in zip([*actual, *actual_inputs], [*expected, *expected_inputs], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


def test_names_and_order_are_the_originals() -> None:
    assert list(PASSES) == [
        "optimize_sym_pack",
        "remove_dead_data_and_reorder_data_index",
        "optimize_reference_op_redundant_copy",
        "mapping_assign_op_to_graph_output",
        "explicit_order_for_side_effect_nodes",
        "explicit_order_for_cmo",
        "move_transpose_into_mm",
        "move_mm_weight_transpose_after_bitcast",
    ]


def test_an_input_that_nobody_reads_is_no_operator_but_still_an_argument() -> None:
    recipe = Recipe(3)
    graph = passed(recipe.finish(recipe.ge.op("Relu", {"x": recipe.data[2]})))
    assert [(op.name, op.attrs["index"]) for op in graph.inputs] == [("arg2_1", 0)]
    dead, live = torch.zeros(1), -torch.ones(SIZE, SIZE)
    assert torch.equal(runnable(graph)([dead, dead, live])[0], torch.zeros(SIZE, SIZE))


def test_a_written_input_becomes_an_output_and_is_written() -> None:
    recipe = Recipe(1)
    doubled = recipe.ge.op("Add", {"x1": recipe.data[0], "x2": recipe.data[0]})
    recipe.ge.op("Assign", {"ref": recipe.data[0], "value": doubled})
    graph = passed(recipe.finish(recipe.ge.op("Relu", {"x": doubled})))
    assert types(graph) == ["Add", "Relu"]
    (end,) = (op for op in graph.ops if op.type == NET_OUTPUT)
    assert [tensor.name for tensor in end.inputs.values() if tensor is not None] == ["Relu:0", "Add:0"]
    x = torch.ones(SIZE, SIZE)
    assert len(runnable(graph)([x])) == 1
    assert torch.equal(x, torch.full((SIZE, SIZE), 2.0))


def test_an_assign_whose_input_is_read_later_stays() -> None:
    recipe = Recipe(2)
    recipe.ge.op("Assign", {"ref": recipe.data[0], "value": recipe.data[1]})
    graph = passed(recipe.finish(recipe.ge.op("Relu", {"x": recipe.transposed(recipe.data[0])})))
    assert types(graph) == ["Assign", "Transpose", "Relu"]


def test_what_is_assigned_is_not_copied_before() -> None:
    recipe = Recipe(2)
    copy = recipe.ge.op("Identity", {"x": recipe.data[1]})
    recipe.ge.op("Assign", {"ref": recipe.data[0], "value": copy})
    graph = passed(recipe.finish(recipe.data[1]), "optimize_reference_op_redundant_copy")
    assert types(graph) == ["Assign"]


def swapped() -> GeGraph:
    """x, y = y, x: both are copied, then both are written."""
    recipe = Recipe(2)
    copies = [recipe.ge.op("Identity", {"x": tensor}) for tensor in recipe.data]
    for ref, copy in zip(recipe.data, reversed(copies), strict=True):
        recipe.ge.op("Assign", {"ref": ref, "value": copy})
    return recipe.finish(*recipe.data)


def test_inputs_that_are_swapped_are_swapped() -> None:
    _, expected = run(swapped(), 2)
    graph = passed(swapped())
    _, actual = run(graph, 2)
    assert all(map(torch.equal, actual, expected))
    # One of the two copies is kept until it is written.
    assert types(graph).count("Identity") == 1


@pytest.mark.parametrize("is_read_again", [False, True])
def test_what_is_written_is_not_copied_before_unless_somebody_reads_it(is_read_again: bool) -> None:
    recipe = Recipe(1)
    made = recipe.ge.op("Relu", {"x": recipe.data[0]})
    written = recipe.ge.op("Assign", {"ref": recipe.ge.op("Identity", {"x": made}), "value": 7.0})
    outputs = (written, made) if is_read_again else (written,)
    graph = recipe.finish(*outputs)
    expected, _ = run(graph, 1)
    passed(graph)
    assert ("Identity" in types(graph)) == is_read_again
    assert all(map(torch.equal, run(graph, 1)[0], expected))


def test_a_copy_that_reads_what_it_writes_keeps_its_detour() -> None:
    recipe = Recipe(1)
    copy = recipe.ge.op("Identity", {"x": recipe.transposed(recipe.data[0])})
    recipe.ge.op("Assign", {"ref": recipe.data[0], "value": copy})
    graph = passed(recipe.finish(recipe.data[0]), "optimize_reference_op_redundant_copy")
    assert types(graph) == ["Transpose", "Identity", "Assign"]


def test_side_effects_are_ordered_by_control_edges() -> None:
    recipe = Recipe(2)
    first = recipe.ge.op("Assign", {"ref": recipe.data[0], "value": 1.0})
    second = recipe.ge.op("Assign", {"ref": recipe.data[1], "value": 2.0})
    graph = passed(recipe.finish(recipe.data[0]), "explicit_order_for_side_effect_nodes")
    assert second.op.controls == [first.op]
    assert graph.ops[-1].controls == [second.op]


@pytest.mark.parametrize(
    ("op_type", "attrs", "extra"), [("MatMul", "transpose_x2", {"bias": None}), ("BatchMatMul", "adj_x2", {})]
)
def test_a_transposed_operand_becomes_an_attribute(op_type: str, attrs: str, extra: dict[str, Any]) -> None:
    recipe = Recipe(2)
    x, weight = recipe.data
    perm = [1, 0]
    if op_type == "BatchMatMul":
        x, weight = (recipe.ge.op("Unsqueeze", {"x": tensor}, {"axes": [0]}) for tensor in (x, weight))
        perm = [0, 2, 1]
    transposed = recipe.ge.op("Transpose", {"x": weight, "perm": perm})
    product = recipe.ge.op(op_type, {"x1": x, "x2": transposed, **extra})
    graph = recipe.finish(product)
    expected, _ = run(graph, 2)
    passed(graph, "move_transpose_into_mm")
    assert "Transpose" not in types(graph)
    assert product.op.attrs == {attrs: True}
    assert product.op.inputs["x2"] is weight
    assert torch.equal(run(graph, 2)[0][0], expected[0])
    # The list of axes went with it.
    assert not [op for op in graph.ops if op.type == "Const"]


def test_a_transpose_of_other_axes_stays() -> None:
    recipe = Recipe(2)
    cubes = [recipe.ge.op("Unsqueeze", {"x": tensor}, {"axes": [0]}) for tensor in recipe.data]
    turned = recipe.ge.op("Transpose", {"x": cubes[1], "perm": [0, 1, 2]})
    graph = passed(recipe.finish(recipe.ge.op("BatchMatMul", {"x1": cubes[0], "x2": turned})))
    assert types(graph).count("Transpose") == 1


def test_a_transpose_moves_behind_a_bitcast(monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.torchair.ge import registry

    registry.has_converter("aten.relu.default")  # everything is loaded
    monkeypatch.setattr(registry, "_KERNELS", dict(registry._KERNELS))
    registry._KERNELS.pop("Bitcast", None)

    @kernel("Bitcast")
    def bitcast(x: Any, *, type: str) -> Any:
        return x.view(getattr(torch, type))

    recipe = Recipe(2)
    weight = recipe.ge.op("Bitcast", {"x": recipe.transposed(recipe.data[1])}, {"type": "int32"})
    back = recipe.ge.op("Bitcast", {"x": weight}, {"type": "float32"})
    ints = recipe.transposed(recipe.data[1])
    direct = recipe.ge.op("Bitcast", {"x": ints}, {"type": "float32"})
    product = recipe.ge.op("MatMul", {"x1": back, "x2": direct, "bias": None})
    graph = recipe.finish(product)
    expected, _ = run(graph, 2)
    passed(graph)
    assert product.op.attrs == {"transpose_x2": True}
    assert direct.op.inputs["x"] is recipe.data[1]
    assert torch.equal(run(graph, 2)[0][0], expected[0])


def test_sizes_are_packed_once() -> None:
    graphs: list[GeGraph] = []

    def reshaped(x: Any, y: Any) -> Any:
        return x.view(-1, x.shape[0]) + 1, y.view(-1, x.shape[0]) + 2

    function = compiled(reshaped, graphs, dynamic=True)
    for rows in (4, 6):
        x, y = torch.randn(rows, 6), torch.randn(rows, 6)
        for mine, theirs in zip(function(x, y), reshaped(x, y), strict=True):
            assert torch.equal(mine, theirs)
    assert types(graphs[0]).count("Pack") == 1


def test_known_sizes_are_a_constant_and_all_sizes_of_a_tensor_its_shape() -> None:
    recipe = Recipe(1)
    ge, (x,) = recipe.ge, recipe.data
    sizes: list[GeTensor] = []
    for value in (2, SIZE):
        op = GeOp("", "Size", {"x": x})
        op.outputs = (GeTensor(op, 0, value=value),)
        recipe.graph.add(op)
        sizes.append(op.outputs[0])
    shape = GeOp("", "Shape", {"x": x})
    shape.outputs = (GeTensor(shape, 0, value=[SIZE, SIZE]),)
    recipe.graph.add(shape)
    gathered: list[GeTensor] = []
    for index in range(2):
        op = GeOp("", "Gather", {"x": shape.outputs[0], "indices": ge.const(index, is_inline=True)})
        op.outputs = (GeTensor(op, 0, value=SIZE),)
        recipe.graph.add(op)
        gathered.append(op.outputs[0])
    readers: list[GeOp] = []
    for parts in (sizes, gathered):
        pack = GeOp("", "Pack", {f"x{index}": part for index, part in enumerate(parts)}, {"N": 2, "axis": 0})
        pack.outputs = (GeTensor(pack, 0, value=[part.value for part in parts]),)
        recipe.graph.add(pack)
        reader = GeOp("", "BroadcastTo", {"x": x, "shape": pack.outputs[0]})
        reader.outputs = (GeTensor(reader, 0, fake=x.fake),)
        readers.append(recipe.graph.add(reader))
    recipe.finish(*(reader.outputs[0] for reader in readers))
    passed(recipe.graph, "optimize_sym_pack")
    constant = readers[0].inputs["shape"]
    assert constant is not None
    assert (constant.op.type, constant.value) == ("Const", [2, SIZE])
    assert readers[1].inputs["shape"] is shape.outputs[0]
    assert "Pack" not in types(recipe.graph)

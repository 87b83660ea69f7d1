"""The GE graph of small functions: names, edges, and that it computes what eager computes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._functorch.aot_autograd import aot_module_simplified  # noqa: E402

from msdump.errors import GraphError  # noqa: E402
from msdump.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from msdump.torchair.ge.compile import compile_ge  # noqa: E402
from msdump.torchair.ge.graph import GeGraph, GeOp, GeTensor  # noqa: E402
from msdump.torchair.ge.registry import NoConverterError, converter_of  # noqa: E402


def compiled(function: Any, graphs: list[GeGraph], **options: Any) -> Any:
    """The function, run as GE graphs, which are appended to `graphs`."""
    ids = itertools.count(1)

    def compiler(module: Any, example_inputs: Any) -> Any:
        graph, run = compile_ge(module, example_inputs, next(ids), CompilerConfig())
        graphs.append(graph)

        def boxed(args: list[Any]) -> Any:
            return run(args)

        boxed._boxed_call = True
        return boxed

    def backend(module: Any, example_inputs: Any, **_: Any) -> Any:
        return aot_module_simplified(
            module, example_inputs, fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler
        )

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **options)


def halves(x: Any, y: Any) -> Any:
    z = (x + y * 2).relu()
    return z.view(-1, z.shape[0]).permute(1, 0) - 3, z


@pytest.mark.parametrize("dynamic", [False, True])
def test_computes_what_eager_computes(dynamic: bool) -> None:
    graphs: list[GeGraph] = []
    function = compiled(halves, graphs, dynamic=dynamic)
    for rows in (4, 5):
        x, y = torch.randn(rows, 6), torch.randn(rows, 6)
        for actual, expected in zip(function(x, y), halves(x, y), strict=True):
            assert torch.equal(actual, expected)
    assert ("Pack" in {op.type for op in graphs[0].ops}) == dynamic


def test_names_count_per_type_and_know_their_fx_node() -> None:
    graphs: list[GeGraph] = []
    compiled(lambda x: x + x + 1, graphs)(torch.ones(2))
    named = [(op.name, op.type, [tensor.fx_name for tensor in op.outputs]) for op in graphs[0].ops]
    assert named == [
        ("arg0_1", "Data", [""]),
        ("Add", "Add", ["add-aten.add.Tensor.OUTPUT.0"]),
        ("Const", "Const", [""]),
        ("Add_1", "Add", ["add_1-aten.add.Tensor.OUTPUT.0"]),
        ("NetOutput", "NetOutput", []),
    ]


def test_an_operator_without_converter_is_named_with_its_neighbours() -> None:
    with pytest.raises(NoConverterError, match=r"torch.ops.aten.addd.Tensor ge_converter is not implemented!") as error:
        converter_of("aten.addd.Tensor")
    assert "aten.add.Tensor" in str(error.value)


def test_a_graph_that_reads_too_early_is_refused() -> None:
    graph = GeGraph(1)
    late = GeOp("late", "Add")
    late.outputs = (GeTensor(late, 0),)
    graph.add(GeOp("early", "Relu", {"x": late.outputs[0]}))
    graph.add(late)
    with pytest.raises(GraphError, match="early reads x = late:0 before it is made"):
        graph.lint()
    with pytest.raises(GraphError, match="got late twice"):
        graph.add(GeOp("late", "Add"))

"""Execution order: kernels only, in launch order."""

from __future__ import annotations

from hypothesis import given, settings

from msdump.graph.graph import Graph
from msdump.graph.listing import order_csv_text
from msdump.graph.pb import BOOKKEEPING, model_bytes, read_model
from msdump.graph.primitive import REGISTRY, Primitive
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from tests.graph.emit_cases import HIDDEN, emit_graphs, emit_primitives, hand_graph

__all__ = ["emit_primitives"]


def test_kernels_of_the_hand_made_graph() -> None:
    assert order_csv_text(hand_graph()) == (
        "NodeExecutionOrder-FullNameWithScope\n"
        "Default/network-Net/conv3-Conv2d/EmitSame-op7\n"
        "Default/network-Net/EmitPair-op8\n"
        "Gradients/Default/network-Net/conv3-Conv2d/gradEmitSame-expand/EmitSame-op10\n"
        "EmitSame-op11\n"
    )


@settings(max_examples=25, deadline=None)
@given(graph=emit_graphs())
def test_every_kernel_once_and_nothing_else(graph: Graph) -> None:
    lines = order_csv_text(graph).split("\n")
    assert lines[-1] == ""
    assert lines[1:-1] == [node.full_name for node in graph.nodes if node.op_type != HIDDEN]


@settings(max_examples=25, deadline=None)
@given(case=graphs())
def test_the_kernels_of_the_pb_are_the_execution_order(case: GraphCase) -> None:
    graph = case.graph
    graph.add_node(Primitive("Depend"), [graph.outputs[0], graph.outputs[-1]], "Default")
    graph.number()
    kernels = [node.full_name for node in read_model(model_bytes(graph)).kernels]
    assert kernels == order_csv_text(graph).split("\n")[1:-1]


def test_bookkeeping_in_files_is_bookkeeping_in_the_registry() -> None:
    assert [name for name in BOOKKEEPING & set(REGISTRY) if REGISTRY[name].is_kernel] == []
    hidden = {name for name, definition in REGISTRY.items() if not definition.is_kernel}
    assert hidden - {HIDDEN} <= BOOKKEEPING

"""move_mm_weight_transpose_after_bitcast: a product transposes the weight that a Bitcast gives it."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.ge.passes.move_transpose_into_mm import TRANSPOSES
from msdump.frontends.torchair.ge.passes.uses import readers_by_tensor, remove_unread, swaps_last_two


def move_mm_weight_transpose_after_bitcast(graph: GeGraph, config: CompilerConfig) -> None:
    """Transpose -> Bitcast -> MatMul becomes Bitcast -> MatMul(transpose).

    Edges: only between dtypes of one width. Between others a Bitcast takes the last axis apart or together, and what is
    transposed before it is not what is transposed after it.
    """
    readers = readers_by_tensor(graph)
    for op in list(graph.ops):
        source = op.inputs.get("x") if op.type == "Bitcast" else None
        if source is None or not swaps_last_two(source.op) or source.dtype.itemsize != op.outputs[0].dtype.itemsize:
            continue
        result = op.outputs[0]
        products = readers.get(result, [])
        if not products or any(product.type not in TRANSPOSES for product in products):
            continue
        op.inputs["x"] = source.op.inputs["x"]
        result.fake = result.fake.transpose(-1, -2)
        for product in products:
            for operand, attr in TRANSPOSES[product.type].items():
                if product.inputs[operand] is result:
                    product.attrs[attr] = not product.attrs.get(attr, False)
        remove_unread(graph, [source.op])

"""move_transpose_into_mm: a transposed operand becomes an attribute of the product."""

from __future__ import annotations

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph, GeOp
from msdump.frontends.torchair.ge.passes.uses import remove_unread, swaps_last_two

# Operator -> what its attributes are called, by operand.
TRANSPOSES = {
    "MatMul": {"x1": "transpose_x1", "x2": "transpose_x2"},
    "MatMulV2": {"x1": "transpose_x1", "x2": "transpose_x2"},
    "BatchMatMul": {"x1": "adj_x1", "x2": "adj_x2"},
    "BatchMatMulV2": {"x1": "adj_x1", "x2": "adj_x2"},
}


def move_transpose_into_mm(graph: GeGraph, config: CompilerConfig) -> None:
    """Transpose of the last two axes -> MatMul: the product reads what is transposed, and says so.

    Edges: a Transpose that others read stays for them.
    """
    moved: list[GeOp] = []
    for op in graph.ops:
        for operand, attr in TRANSPOSES.get(op.type, {}).items():
            tensor = op.inputs[operand]
            while tensor is not None and swaps_last_two(tensor.op):
                moved.append(tensor.op)
                op.attrs[attr] = not op.attrs.get(attr, False)
                tensor = op.inputs[operand] = tensor.op.inputs["x"]
    # Of two in a row, the one nearer to the product came first in the list: once it is gone, the other is unread.
    for transpose in moved:
        remove_unread(graph, [transpose])

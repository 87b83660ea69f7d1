"""Passes over the GE graph, one file each, in TorchAir's order and under its names.

A pass never changes what the graph computes: dtypes, shapes and bits of the results stay, and inputs that the model
writes are written.
"""

from __future__ import annotations

from collections.abc import Callable

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.ge.passes.explicit_order_for_cmo import explicit_order_for_cmo
from msdump.frontends.torchair.ge.passes.explicit_order_for_side_effect_nodes import (
    explicit_order_for_side_effect_nodes,
)
from msdump.frontends.torchair.ge.passes.mapping_assign_op_to_graph_output import mapping_assign_op_to_graph_output
from msdump.frontends.torchair.ge.passes.move_mm_weight_transpose_after_bitcast import (
    move_mm_weight_transpose_after_bitcast,
)
from msdump.frontends.torchair.ge.passes.move_transpose_into_mm import move_transpose_into_mm
from msdump.frontends.torchair.ge.passes.optimize_reference_op_redundant_copy import (
    optimize_reference_op_redundant_copy,
)
from msdump.frontends.torchair.ge.passes.optimize_sym_pack import optimize_sym_pack
from msdump.frontends.torchair.ge.passes.remove_dead_data_and_reorder_data_index import (
    remove_dead_data_and_reorder_data_index,
)

GePass = Callable[[GeGraph, CompilerConfig], None]

GE_PASSES: tuple[tuple[str, GePass], ...] = tuple(
    (apply.__name__, apply)
    for apply in (
        optimize_sym_pack,
        remove_dead_data_and_reorder_data_index,
        optimize_reference_op_redundant_copy,
        mapping_assign_op_to_graph_output,
        explicit_order_for_side_effect_nodes,
        explicit_order_for_cmo,
        move_transpose_into_mm,
        move_mm_weight_transpose_after_bitcast,
    )
)

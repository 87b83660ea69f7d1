"""What a test author may reuse: hypothesis strategies for tensors, names, records and dumps, and a dump comparison.

Needs hypothesis (`pip install hypothesis`), which nothing else in msdump imports.
"""

from __future__ import annotations

from msdump.testing.dumps import DumpTree, assert_same_dump, dump_trees, write_dump
from msdump.testing.strategies import (
    DTYPES,
    assert_same_array,
    op_names,
    op_types,
    operands_like,
    parameter_names,
    records,
    shapes,
    tensors,
)

__all__ = [
    "DTYPES",
    "DumpTree",
    "assert_same_array",
    "assert_same_dump",
    "dump_trees",
    "op_names",
    "op_types",
    "operands_like",
    "parameter_names",
    "records",
    "shapes",
    "tensors",
    "write_dump",
]

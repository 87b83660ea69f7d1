"""One table each: dtypes, statistic categories and what operators overwrite are listed once and derived elsewhere."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from msdump.graph.primitive import REGISTRY
from msdump.process.front_ends import is_installed
from msdump.statistics.stats import STATISTIC_CATEGORIES
from msdump.tensors import dtypes
from tests.package import PACKAGE

if is_installed("mindspore"):
    importlib.import_module("msdump.mindspore.kernels")  # which fill the registry


# (file, name that the literal is assigned to, or the function that holds it) -> why it lists three or more of them.
DTYPES = {
    ("formats/pt_tensor.py", "STORAGE_DTYPES"): "types of storages in files of torch.save, which go by C's types",
    ("formats/other_tools/safetensors.py", "_BY_NAME"): "codes that are read in safetensors and never written",
    ("mindspore/ops/elementary.py", "invert"): "dtypes for which PyTorch has no bitwise_not",
    ("mindspore/kernels/torch_operator.py", "_signed"): "dtypes for which PyTorch lacks kernels",
    (
        "analysis/distance/bounds.py",
        "BOUNDS",
    ): "how far apart two results of a dtype may be: a judgement, no fact of the dtype",
    ("formats/debug_log.py", "_NAMED_DTYPES"): "dtypes as PyTorch's DebugMode writes them",
    ("frontends/torch/eager/native_tables.py", "_DTYPE_NAMES"): "the numbers that PyTorch's C++ has for dtypes",
    ("statistics/stats.py", "_JOINED"): "which dtypes one call measures for many small tensors",
    ("tables/frames.py", "to_polars"): "types of columns, as polars names them",
    ("tables/frames.py", "to_pandas"): "types of columns, as pandas names them",
    ("mindspore/common/dtype.py", "__all__"): "the names that scripts import",
    ("mindspore/common/dtype.py", "_OF_PYTHON"): "what MindSpore makes of Python's types",
    ("frontends/torch/eager/mode.py", "_NUMBERS"): "what PyTorch makes of Python's numbers",
    ("analysis/learning/updates.py", "_HALF_BIT"): "below what an update of a weight is lost, for what is trained in",
    ("mindspore/common/sparse_tensor.py", "_indices"): "what MindSpore takes for indices",
    ("mindspore/communication/torch_transport.py", "_CARRIERS"): "which dtypes gloo cannot carry",
    ("mindspore/mindir/forms.py", "TYPE_IDS"): "the numbers that attributes of MINDIR files have for dtypes",
    ("mindspore/mindrecord/layout.py", "SCALARS"): "what a MindRecord file can hold",
    ("testing/strategies.py", "_FLOATS"): "the dtypes that operands are drawn in, likely ones first",
    ("testing/strategies.py", "_INTEGERS"): "the dtypes that operands are drawn in, likely ones first",
    ("mindspore/mindrecord/writer.py", "_COLUMN_TYPES"): "what SQL calls a field of a MindRecord index",
    ("mindspore/ops/own_methods.py", "CASTS"): "names of methods of Tensor",
    ("mindspore/dispatch.py", "_ORDER"): "MindSpore's order of promotion",
    ("mindspore/dispatch.py", "_UNCONVERTED"): "dtypes that MindSpore does not promote",
    ("mindspore/ops/own_methods.py", "cumsum"): "dtypes whose running sums are int32",
    ("mindspore/ops/in_place.py", "_MAX_RANDOM"): "integers that random_ draws for a dtype",
    ("mindspore/kernels/torch_operator.py", "_fits_as_floats"): "dtypes that most operators of PyTorch take",
    ("torchair/passes/apply_pattern_passes.py", "_WIDER"): "which casts lose nothing, in dtypes of PyTorch",
    ("statistics/stats.py", "_UNPACK"): "how struct reads the floats that it knows",
    ("tensors/float_bits.py", "FLOATS"): "bits of floats that the kernels are compiled with",
    ("statistics/kernels.py", "_BYTE_FLOATS"): "bits of floats that the kernels are compiled with",
}
CATEGORIES: dict[tuple[str, str], str] = {}
OVERWRITING = {
    ("dumpers/overflow.py", "ATOMIC_OP_TYPES"): "operators that add up in memory, by MindSpore's guide",
    ("mindspore/ops/updates.py", "_ATTRIBUTES"): "attributes of the operator classes",
    ("mindspore/kernels/program.py", ""): "where these are defined",
}

# Name -> what it is a name of.
_DTYPE_NAMES = {
    name: row.name for row in dtypes.TABLE for name in (row.name, row.ir_name, row.ge_name, row.name.upper())
}
_CATEGORY_NAMES = {
    name: each.name
    for each in STATISTIC_CATEGORIES
    for name in (each.name, each.title, each.acl_title or "")
    if " " in name
}
_OVERWRITING = {name: name for name, definition in REGISTRY.items() if definition.mutates}

_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)


def spelt(node: ast.expr | None) -> Iterator[str]:
    """Names that an element of a list or dictionary spells: text, the last part of `torch.float16`, and their pairs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, _DISPLAYS):
        for element in elements(node):
            yield from spelt(element)


def elements(node: ast.expr) -> list[ast.expr | None]:
    return [*node.keys, *node.values] if isinstance(node, ast.Dict) else list(getattr(node, "elts", ()))


def literals(tree: ast.AST, holder: str = "") -> Iterator[tuple[str, ast.expr]]:
    """(name that it is assigned to or function that it stands in, outermost list or dictionary)."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _DISPLAYS):
            yield holder, child
            continue
        inner = holder
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = child.name
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not holder:
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            inner = target.id if isinstance(target, ast.Name) else ast.unparse(target)
        yield from literals(child, inner)


def tables(names: Mapping[str, str], own: str) -> set[tuple[str, str]]:
    """Where names of three or more different things are listed outside the file that owns them."""
    places = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if path == own or "_proto/" in path or path.startswith("samples/"):
            continue
        for holder, spelling in listed(file):
            if len({names[name] for name in spelling if name in names}) >= 3:
                places.add((path, holder))
    return places


@functools.cache
def listed(file: Path) -> list[tuple[str, frozenset[str]]]:
    """(holder, names) of each list or dictionary of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [(holder, frozenset(spelt(literal))) for holder, literal in literals(tree)]


@pytest.mark.parametrize(
    ("names", "own", "allowed"),
    [
        (_DTYPE_NAMES, "tensors/dtypes.py", DTYPES),
        (_CATEGORY_NAMES, "statistics/stats.py", CATEGORIES),
        (_OVERWRITING, "", OVERWRITING),
    ],
    ids=["dtypes", "statistic categories", "operators that overwrite inputs"],
)
@pytest.mark.usefixtures("needs_mindspore")
def test_no_second_table_exists(names: dict[str, str], own: str, allowed: dict[tuple[str, str], str]) -> None:
    """A list of three or more has a reason here, and each reason is for a list that is there."""
    assert len(set(names.values())) >= 3
    assert tables(names, own) == set(allowed)


def test_a_second_table_is_seen() -> None:
    text = 'A = frozenset({"int8", "int16", "uint8"})\ndef f():\n    return {"a": (torch.int8, [torch.int16, "x"])}\n'
    found = [(holder, {*spelt(literal)} & set(_DTYPE_NAMES)) for holder, literal in literals(ast.parse(text))]
    assert found == [("A", {"int8", "int16", "uint8"}), ("f", {"int8", "int16"})]


def test_numbers_and_names_are_of_one_dtype_each() -> None:
    for column in ("name", "ir_name", "debug_number", "acl_number", "ge_number", "onnx_number", "safetensors_name"):
        values = [value for row in dtypes.TABLE if (value := getattr(row, column)) is not None]
        assert len(set(values)) == len(values), column


def test_onnx_numbers_are_those_of_the_package() -> None:
    onnx = pytest.importorskip("onnx")
    numbers = dict(onnx.TensorProto.DataType.items())
    names = {"FLOAT": "float32", "DOUBLE": "float64", "FLOAT8E8M0": "float8_e8m0", "FLOAT4E2M1": "float4_e2m1"}
    for name, number in numbers.items():
        row = dtypes.BY_ONNX_NUMBER.get(number)
        if row is not None:
            assert names.get(name, name.lower()) in (row.name, row.name.replace("_", "", 1)), name
    others = {name for name, number in numbers.items() if number not in dtypes.BY_ONNX_NUMBER}
    assert {name for name in others if not name.startswith("FLOAT6")} <= {"UNDEFINED", "STRING"}

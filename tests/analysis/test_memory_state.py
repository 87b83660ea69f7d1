"""Inputs that an operator overwrites: which they are, and at which moment a dump shows them."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import numpy as np
import pytest

import msdump.analysis
import msdump.mindspore  # declares operators of its own
import msdump.mindspore.kernels  # fills the registry
from msdump.analysis import compare_dumps, compare_statistics, find_non_finite, write_statistic_files
from msdump.graph.primitive import REGISTRY
from msdump.mindspore.other_paths import LEFT_OUT
from msdump.operators.traits import MemoryUse, memory_use, memory_uses
from tests.analysis.small_dump import floats, write_dump

PACKAGE = Path(msdump.analysis.__file__).parent.parent
MEAN, VARIANCE, OUT = ("input", 3), ("input", 4), ("output", 0)
BEFORE, AFTER = floats(0, 0), floats(0.25, -0.5)


def norm(mean: np.ndarray, variance: np.ndarray) -> tuple[str, dict]:  # type: ignore[type-arg]
    read = {("input", slot): floats(slot, 1) for slot in range(3)}
    return "Default/bn-BatchNorm2d/BatchNorm-op0", {**read, MEAN: mean, VARIANCE: variance, OUT: floats(1, 2)}


PARAMETERS = [("Parameter.bn.moving_mean", {OUT: AFTER}), ("Parameter.bn.moving_variance", {OUT: AFTER + 1})]


def both_moments(folder: Path) -> tuple[Path, Path]:
    """A dump that shows what BatchNorm read, and one that shows what it left."""
    read = write_dump(folder / "read", [norm(BEFORE, BEFORE + 1), *PARAMETERS])
    left = write_dump(folder / "left", [norm(AFTER, AFTER + 1), *PARAMETERS])
    return read, left


def test_moving_statistics_of_batch_norm_are_not_compared_across_moments(tmp_path: Path) -> None:
    read, left = both_moments(tmp_path)
    compared = compare_dumps(read, left)
    assert compared.is_agreeing and compared.first_wrong is None
    inputs = next(iter(compared.operators)).inputs
    assert [tensor.status for tensor in inputs] == ["identical"] * 3 + ["not compared"] * 2


def test_statistics_say_the_same(tmp_path: Path) -> None:
    for dump in both_moments(tmp_path / "tensors"):
        write_statistic_files(dump, tmp_path / "statistics" / dump.name)
    compared = compare_statistics(tmp_path / "statistics/read", tmp_path / "statistics/left")
    assert compared.is_agreeing
    assert [tensor.status for tensor in next(iter(compared.operators)).inputs][3:] == ["not compared"] * 2


def test_other_operators_tell_the_moment_where_no_parameter_was_dumped(tmp_path: Path) -> None:
    update = {("input", 1): floats(1, 1), ("input", 3): floats(2, 2), OUT: AFTER}
    momentum = "Default/ApplyMomentum-op1"
    read = write_dump(tmp_path / "read", [norm(BEFORE, BEFORE), (momentum, {("input", 0): BEFORE, **update})])
    left = write_dump(tmp_path / "left", [norm(AFTER, AFTER), (momentum, {("input", 0): AFTER, **update})])
    assert compare_dumps(read, left).is_agreeing


def test_moving_statistics_of_one_moment_are_compared(tmp_path: Path) -> None:
    read, _ = both_moments(tmp_path)
    other = write_dump(tmp_path / "other", [norm(BEFORE + 3, BEFORE + 1), *PARAMETERS])
    assert not compare_dumps(read, other).is_agreeing


def test_a_spoiled_moving_mean_does_not_hide_its_maker(tmp_path: Path) -> None:
    bad = floats(np.nan, 1)
    operator, tensors = norm(bad, AFTER)
    parameters = [("Parameter.bn.moving_mean", {OUT: bad}), ("Parameter.bn.moving_variance", {OUT: AFTER})]
    first = find_non_finite(write_dump(tmp_path, [(operator, {**tensors, OUT: bad}), *parameters])).first
    assert first is not None and first.how == "made"


def test_the_table_agrees_with_the_kernels() -> None:
    declared = {name: MemoryUse(each.mutates, each.aliases, each.views) for name, each in REGISTRY.items()}
    assert {name: memory_use(name) for name in REGISTRY} == declared
    # Dumps of MindSpore hold operators, too, that the stand-in leaves out.
    left_out = {name for names in LEFT_OUT["ops"].values() for name in names}
    assert memory_uses().keys() <= REGISTRY.keys() | left_out


@pytest.mark.parametrize(
    ("op_type", "slots"),
    [
        ("aten.add_.Tensor", (0,)),
        ("aten_add__Tensor", (0,)),
        ("aten_index_put__default", (0,)),
        ("aten.add.Tensor", ()),
        ("aten__softmax_default", ()),
        ("aten_masked_fill_Scalar", ()),
        ("NoSuchOperator", ()),
    ],
)
def test_names_of_aten_say_it_themselves(op_type: str, slots: tuple[int, ...]) -> None:
    assert memory_use(op_type).overwrites == slots


def test_no_second_table_of_in_place_operators_exists() -> None:
    """Two names of such operators in one literal, outside of the kernels, would be one."""
    writers = {name for name, definition in REGISTRY.items() if definition.mutates}
    assert {"BatchNorm", "ApplyMomentum", "Assign"} <= writers
    tables = []
    for folder in ("analysis", "formats", "dump", "cli", "graph_files"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
                    parts = node.keys if isinstance(node, ast.Dict) else node.elts
                    names = {part.value for part in parts if isinstance(part, ast.Constant)}
                    if len(names & writers) > 1:
                        tables.append(f"{path}:{node.lineno}")
    assert not tables


def test_a_real_training_against_its_copy_with_updated_inputs(own_dump: Path, tmp_path: Path) -> None:
    """Every optimizer's inputs are shown as it left them; nothing else is different."""
    copy = Path(shutil.copytree(own_dump, tmp_path / "copy"))
    for path in copy.rglob("ApplyMomentum.*.output.0.*.npy"):
        name = path.name.split(".output.")[0].split(".")[1]
        (read,) = path.parent.glob(f"ApplyMomentum.{name}.*.input.0.*.npy")
        read.unlink()
        read.write_bytes(path.read_bytes())
    compared = compare_dumps(own_dump, copy)
    assert compared.is_agreeing

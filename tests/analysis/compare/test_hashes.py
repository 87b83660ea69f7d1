"""Logs of PyTorch's DebugMode as a side of a comparison: real logs, healthy and with a fault."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils._debug_mode._utils")

from torch import nn  # noqa: E402
from torch.utils._debug_mode import DebugMode  # noqa: E402
from torch.utils._debug_mode._utils import hash_tensor_fn, norm_hash_fn  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import compare_dumps  # noqa: E402
from msdump.analysis.compare.hashes import hash_tensor_hash, norm_hash  # noqa: E402
from msdump.analysis.compare.sentences import headline  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.errors import ConfigError, FormatError  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401

BOTH = ["norm", "hash_tensor"]


class Net(nn.Module):
    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 7), nn.LayerNorm(7), nn.Linear(7, 3)
        self.change = change

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.norm(self.first(x)))
        values, indices = torch.max(hidden, 1)
        hidden = torch.cat([hidden, hidden * 2])[:5]
        hidden.add_(1)
        hidden = torch.sigmoid(self.change(hidden))
        return (self.last(hidden).sum() + values.sum() + indices.sum()) / 3


def same(x: Any) -> Any:
    return x * 3.0


def faulty(x: Any) -> Any:
    return x * 3.1


def run(change: Callable[[Any], Any]) -> None:
    torch.manual_seed(3)
    model = Net(change)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 6)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()


def run_element_by_element(change: Callable[[Any], Any]) -> None:
    """No product is in it, whose last bits change with the place of its operands in memory."""
    torch.manual_seed(3)
    hidden = torch.relu(torch.randn(5, 7)) + 1
    torch.sigmoid(change(hidden)) * 2


def logged(
    path: Path,
    change: Callable[[Any], Any] = same,
    hashes: Any = "norm",
    has_inputs: bool = True,
    program: Callable[[Callable[[Any], Any]], None] = run,
    **options: Any,
) -> str:
    mode = DebugMode(**options)
    hashing = DebugMode.log_tensor_hashes(hash_fn=hashes, hash_inputs=has_inputs)
    with mode, contextlib.nullcontext() if hashes is None else hashing:
        program(change)
    path.write_text(mode.debug_string())
    return str(path)


def dumped(folder: Path, change: Callable[[Any], Any] = same) -> str:
    # DebugMode is a dispatch mode, under which PyTorch takes operators that a plain run does not.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NATIVE, "0")
        with msdump.watch(config=config(folder)):
            run(change)
    return str(folder)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return dumped(tmp_path_factory.mktemp("healthy") / "dump")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> str:
    return dumped(tmp_path_factory.mktemp("wrong") / "dump", faulty)


@pytest.mark.parametrize("hashes", ["norm", "hash_tensor", BOTH], ids=str)
@pytest.mark.parametrize("is_mine", [True, False])
def test_a_healthy_run_agrees_with_its_log(tmp_path: Path, healthy: str, hashes: Any, is_mine: bool) -> None:
    log = logged(tmp_path / "run.txt", hashes=hashes)
    comparison = compare_dumps(log, healthy) if is_mine else compare_dumps(healthy, log)
    assert comparison.is_agreeing and not comparison.damaged
    assert comparison.hashes is not None and list(comparison.hashes.names) == ([hashes] if hashes != BOTH else BOTH)
    operators = list(comparison.operators)
    assert len(operators) > 60
    # Every operator of the log but those that make memory has its counterpart.
    of_log = [one for step in comparison.steps for one in (step.only_mine if is_mine else step.only_golden)]
    assert {one.op_type for one in of_log} <= {"aten_empty_memory_format", "aten_empty_like_default"}
    statuses = [tensor.status for operator in operators for tensor in operator.tensors]
    assert statuses.count("agrees") > 120
    names = " and ".join(comparison.hashes.names)
    assert headline(comparison) == [f"agree: all {len(operators)} pairs of operators agree by their hashes ({names})."]


@pytest.mark.parametrize("hashes", ["norm", "hash_tensor", BOTH], ids=str)
def test_the_first_wrong_operator_is_named_with_its_line_and_the_hash(
    tmp_path: Path, wrong: str, hashes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logged(tmp_path / "run.txt", hashes=hashes)
    name = hashes if isinstance(hashes, str) else "norm"
    assert main(["compare", wrong, log]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("first wrong operator: ") and "(aten_mul_Tensor)" in first
    assert first.endswith("return x * 3.1") and "test_hashes.py:" in first
    assert f"output 0 does not: hash {name} " in second and " against " in second
    # The log knows no lines, the dump does.
    assert main(["compare", log, wrong]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "of run.txt, " in first and first.endswith("return x * 3.1")
    assert f"output 0 does not: hash {name} " in second


def test_the_log_tells_lines_and_modules_where_it_has_them(
    tmp_path: Path, healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logged(tmp_path / "run.txt", faulty, BOTH, record_stack_trace=True, record_nn_module=True, record_ids=True)
    assert main(["compare", "--brief", log, healthy]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("first wrong operator: Net/aten.mul.Tensor-op") and first.endswith("return x * 3.1")


@pytest.mark.parametrize("hashes", ["norm", "hash_tensor"])
def test_two_logs(tmp_path: Path, hashes: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [
        logged(tmp_path / "mine.log", faulty, hashes),
        logged(tmp_path / "golden.log", same, BOTH, record_torchfunction=True),
        logged(tmp_path / "again.log", faulty, BOTH),
    ]
    assert main(["compare", logs[0], logs[2]]) == 0
    assert f"agree by their hashes ({hashes})" in capsys.readouterr().out
    assert main(["compare", "--json", "-", logs[0], logs[1]]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["hashes"] == [hashes] and found["first_wrong"]["op_type"] == "aten_mul_Tensor"
    assert found["agree"] is False and "first wrong operator: aten.mul.Tensor-op" in found["answer"][0]


def test_other_weights_come_in_and_no_operator_is_wrong(tmp_path: Path) -> None:
    log = Path(logged(tmp_path / "run.log"))
    other = tmp_path / "other.log"
    lines = log.read_text().splitlines()
    index = next(index for index, line in enumerate(lines) if "aten::addmm(" in line)
    number = lines[index].split("{'input_hash': ((")[1].split(",")[0]
    lines[index] = lines[index].replace(f"(({number},", f"(({float(number) * 2!r},")
    other.write_text("\n".join(lines))
    comparison = compare_dumps(other, log)
    assert comparison.first_wrong is None and comparison.first_differing is not None
    assert comparison.first_differing.inputs[0].reason.startswith("hash norm ")


def test_without_hashes_of_inputs_the_first_difference_is_named(tmp_path: Path, wrong: str) -> None:
    comparison = compare_dumps(logged(tmp_path / "run.txt", has_inputs=False), wrong)
    first, second = headline(comparison)
    assert first.startswith("first difference: aten.mul.Tensor-op") and "hash norm" in second
    assert second.endswith("whether its inputs agree, no hash tells")
    assert any("hash_inputs=True" in note for note in comparison.notes)


# Of 35 elements: in an exclusive or of an even number of them signs cancel.
def test_a_sign_changes_no_norm_and_hash_tensor_tells_it(tmp_path: Path) -> None:
    def negative(x: Any) -> Any:
        return x * -3.0

    for hashes, decides in (("norm", "sigmoid"), (BOTH, "mul")):
        mine, golden = (
            logged(tmp_path / f"{one.__name__}.log", one, hashes, program=run_element_by_element)
            for one in (negative, same)
        )
        found = compare_dumps(mine, golden).first_wrong
        assert found is not None and decides in found.pair.mine.op_type


def test_rounding_agrees_by_norm_and_a_tolerance_is_taken(tmp_path: Path) -> None:
    def rounded(x: Any) -> Any:
        return x * (3.0 * (1 + 2.0**-22))

    mine, golden = logged(tmp_path / "mine.log", rounded, BOTH), logged(tmp_path / "golden.log", same, BOTH)
    assert compare_dumps(mine, golden).is_agreeing
    assert not compare_dumps(mine, golden, tolerance=1e-9).is_agreeing
    exact = [logged(tmp_path / f"{one.__name__}.log", one, "hash_tensor") for one in (rounded, same)]
    assert not compare_dumps(*exact).is_agreeing


def test_an_operator_more_shifts_no_pair(tmp_path: Path) -> None:
    def longer(x: Any) -> Any:
        return same(x + 0)

    mine, golden = logged(tmp_path / "mine.log", longer), logged(tmp_path / "golden.log", same)
    comparison = compare_dumps(mine, golden)
    assert comparison.is_agreeing
    assert [one.op_type for one in comparison.steps[0].only_mine] == ["aten_add_Tensor"] * 2


def test_an_operator_that_one_log_has_alone_is_named(tmp_path: Path) -> None:
    def other(x: Any) -> Any:
        return torch.tanh(same(x))

    logs = [logged(tmp_path / f"{one.__name__}.log", one) for one in (same, other)]
    assert headline(compare_dumps(logs[1], logs[0]))[0].startswith("first difference: only mine has aten.tanh.default")
    assert headline(compare_dumps(*logs))[0].startswith("first difference: only golden has aten.tanh.default")


def test_one_iteration_of_a_dump_is_chosen_for_a_log_of_it(tmp_path: Path, healthy: str) -> None:
    log = Path(logged(tmp_path / "run.log"))
    lines = log.read_text().splitlines()
    second = [index for index, line in enumerate(lines) if "aten::relu(" in line][1]
    cut = max(index for index, line in enumerate(lines[:second]) if "aten::t(" in line)
    log.write_text("\n".join(lines[cut:]))
    comparison = compare_dumps(log, healthy, iteration=1)
    assert comparison.is_agreeing and len(list(comparison.operators)) > 30
    assert {pair.pair.golden_step.iteration for pair in comparison.operators if pair.pair.golden_step} == {1}


def test_a_mapping_file_comes_before_order(tmp_path: Path) -> None:
    def other(x: Any) -> Any:
        return torch.mul(x, 3.0).clone()

    (tmp_path / "map.json").write_text(
        json.dumps({"types": {"aten_mul_Tensor": ["aten_mul_Tensor", "aten_clone_default"]}})
    )
    logs = [logged(tmp_path / f"{one.__name__}.log", one) for one in (same, other)]
    comparison = compare_dumps(*logs, mapping=tmp_path / "map.json")
    assert comparison.is_agreeing


def test_logs_that_cannot_be_compared_are_refused(
    tmp_path: Path, healthy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = logged(tmp_path / "bare.txt", hashes=None)
    assert main(["compare", bare, healthy]) == 2
    assert "got a log without any. DebugMode writes them inside of" in capsys.readouterr().err
    norm, other = (logged(tmp_path / f"{name}.txt", hashes=name) for name in BOTH)
    with pytest.raises(ConfigError, match="expected a hash that both logs hold, got norm against hash_tensor"):
        compare_dumps(norm, other)
    with pytest.raises(ConfigError, match="reference: expected none beside a log"):
        compare_dumps(norm, healthy, healthy)
    (tmp_path / "foreign.txt").write_text("epoch 1\n")
    with pytest.raises(FormatError, match=r"foreign\.txt, line 1: expected a call"):
        compare_dumps(healthy, tmp_path / "foreign.txt")
    lonely = tmp_path / "lonely.txt"
    lonely.write_text("    my::op(t: f32[2])  ->  t: f32[2]  # {'hash': 1.0}")
    with pytest.raises(ConfigError, match="expected operators in common, got none"):
        compare_dumps(lonely, healthy)


def test_a_damaged_file_of_the_dump_is_named(tmp_path: Path) -> None:
    dump = dumped(tmp_path / "dump")
    log = logged(tmp_path / "run.txt")
    victim = next(Path(dump).rglob("aten_sigmoid*.output.0.*.npy"))
    content = victim.read_bytes()
    victim.unlink()
    victim.write_bytes(content[:-3])
    comparison = compare_dumps(log, dump)
    assert comparison.is_agreeing and [Path(path).name for path, _ in comparison.damaged] == [victim.name]
    assert headline(comparison)[0].startswith("incomplete: ")


DTYPES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.uint8, torch.bool,
    torch.complex64,
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.floats(width=32)),
    dtype=st.sampled_from(DTYPES),
)
def test_hashes_are_those_of_torch(values: list[float], dtype: Any) -> None:
    DebugMode()  # loads what the functions look up
    if not (dtype.is_floating_point or dtype.is_complex):
        values = [float(int(value) % 100) if np.isfinite(value) else 1.0 for value in values]
    tensor = torch.tensor(values, dtype=torch.float64).to(dtype)
    array = (tensor.float() if dtype == torch.bfloat16 else tensor).numpy()
    assert hash_tensor_hash(array) == hash_tensor_fn(tensor, use_scalar=True)
    np.testing.assert_allclose(norm_hash(array), norm_hash_fn(tensor, use_scalar=True), rtol=1e-12)

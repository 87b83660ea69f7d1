"""TensorDump: names, numbers, modes, steps and bytes of its files, in both modes, beside a dump and in gradients."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.mindspore import Tensor, _c_expression, nn, ops
from msdump.mindspore.ops import tensor_dump
from msdump.tensors import dtypes
from tests.mindspore.conftest import execution_order

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, for a process that has written nothing yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tensor_dump, "dumped_files", tensor_dump._Files())
    monkeypatch.setattr(_c_expression, "dumped_files", tensor_dump.dumped_files)
    return tmp_path


def written(folder: Path) -> list[str]:
    """Files in the order of their numbers."""
    paths = [str(path.relative_to(folder)) for path in folder.rglob("*.npy")]
    return sorted(paths, key=lambda path: int(path.removesuffix(".npy").rpartition("_")[2]))


def test_a_name_a_dtype_and_a_number_of_the_process(folder: Path) -> None:
    """As MindSpore 2.7.0 names them."""
    dump = ops.TensorDump()
    for file in ("add", "add", "add.npy", "a.b.c", "a.txt", "sub/dir/name", str(folder / "abs"), "a b", "sub/"):
        assert dump(file, Tensor(X)) is None
    ops.TensorDump("in")("in", Tensor(X))
    ops.tensordump("call", Tensor(X), "out")
    assert written(folder) == [
        "add_float32_0.npy", "add_float32_1.npy", "add_float32_2.npy", "a.b.c_float32_3.npy", "a.txt_float32_4.npy",
        "sub/dir/name_float32_5.npy", "abs_float32_6.npy", "a b_float32_7.npy", "sub/_float32_8.npy",
        "in_float32_9.npy", "call_float32_10.npy",
    ]  # fmt: skip
    path = folder / "add_float32_0.npy"
    np.testing.assert_array_equal(np.load(path), X)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


@given(
    dtype=st.sampled_from([row.name for row in dtypes.TABLE if row.debug_number and row.name != "string"]),
    shape=st.lists(st.integers(0, 3), max_size=3).map(tuple),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tensor(folder: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtypes.dtype(dtype).numpy)
    ops.TensorDump()("x", Tensor(array))
    path = folder / written(folder)[-1]
    assert re.fullmatch(rf"x_{dtype}_\d+\.npy", path.name)
    loaded = np.load(path)
    assert loaded.dtype == array.dtype and loaded.shape == shape
    np.testing.assert_array_equal(loaded, array)


def test_bfloat16_is_written_as_float32(folder: Path) -> None:
    ops.TensorDump()("x", Tensor(X.astype(ml_dtypes.bfloat16)))
    assert written(folder) == ["x_bfloat16_0.npy"]
    loaded = np.load(folder / "x_bfloat16_0.npy")
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, X)


class Net(nn.Cell):
    def __init__(self, mode: str = "out") -> None:
        super().__init__()
        self.dump = ops.TensorDump(mode)

    def construct(self, x: Any) -> Any:
        x = x + 1
        self.dump("add", x)
        x = x * 2
        self.dump("mul", x)
        return x


def test_each_run_of_a_network_writes(folder: Path, either_mode: int) -> None:
    net = Net()
    for _ in range(2):
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), (X + 1) * 2)
    assert written(folder) == ["add_float32_0.npy", "mul_float32_1.npy", "add_float32_2.npy", "mul_float32_3.npy"]
    np.testing.assert_array_equal(np.load("add_float32_2.npy"), X + 1)


def test_the_mode_stands_in_the_names_of_graphs(folder: Path, either_mode: int) -> None:
    Net("in")(Tensor(X))
    infix = "in_" if either_mode == ms.GRAPH_MODE else ""
    assert written(folder) == [f"add_{infix}float32_0.npy", f"mul_{infix}float32_1.npy"]


def test_no_gradient_flows_through_it(folder: Path, either_mode: int) -> None:
    def loss(x: Any) -> Any:
        y = x * 2
        ops.TensorDump()("y", y)
        return (y * y).sum()

    np.testing.assert_array_equal(ms.grad(loss)(Tensor(X)).asnumpy(), 8 * X)
    assert written(folder) == ["y_float32_0.npy"]
    np.testing.assert_array_equal(np.load("y_float32_0.npy"), 2 * X)


@pytest.mark.parametrize("mode", ["in", "out"])
def test_a_gradient_is_written(folder: Path, either_mode: int, mode: str) -> None:
    def loss(x: Any) -> Any:
        y = ops.DumpGradient()("dout", x * 2, mode)
        return (y * y).sum()

    np.testing.assert_array_equal(ms.grad(loss)(Tensor(X)).asnumpy(), 8 * X)
    assert written(folder) == ["dout_float32_0.npy"]
    np.testing.assert_array_equal(np.load("dout_float32_0.npy"), 4 * X)


def test_a_branch_writes_when_it_runs(folder: Path, either_mode: int) -> None:
    @ms.jit
    def chosen(x: Any) -> Any:
        if x.sum() > 0:
            ops.tensordump("positive", x)
            return x + 1
        return x - 1

    chosen(Tensor(-X))
    assert written(folder) == []
    chosen(Tensor(X))
    assert written(folder) == ["positive_float32_0.npy"]


def test_steps_and_ranks(folder: Path) -> None:
    """As MindSpore 2.7.0: the name `<tensordump-update-step>` ends a step; `{step}` and `{rank}` are replaced."""
    dump, end_step = ops.TensorDump(), "<tensordump-update-step>"
    dump("{rank}/{step}/x_{step}", Tensor(X))
    dump(end_step, Tensor(X))
    dump("{step}", Tensor(X))
    _c_expression._tensordump_set_step([1, 3])
    for _ in range(4):
        dump("{step}/y", Tensor(X))
        dump(end_step, Tensor(X))
    _c_expression._tensordump_set_step([])
    dump("z{step}", Tensor(X))
    assert written(folder) == [
        "rank0/step0/x_step0_float32_0.npy", "step1_float32_1.npy", "step1/y_float32_2.npy", "step3/y_float32_3.npy",
        "zstep5_float32_4.npy",
    ]  # fmt: skip
    with pytest.raises(TypeError, match="numbers from 0 on"):
        _c_expression._tensordump_set_step([-1])
    path = _c_expression._tensordump_process_file("{step}/w", "Float32")
    assert path == str(folder / "step5" / "w_float32_5.npy")


def test_graphs_count_their_own_steps(folder: Path) -> None:
    @ms.jit
    def in_graph(x: Any) -> Any:
        ops.tensordump("{step}g", x)
        return x + 1

    ops.tensordump("<tensordump-update-step>", Tensor(X))
    in_graph(Tensor(X))
    ops.tensordump("{step}p", Tensor(X))
    assert written(folder) == ["step0g_float32_0.npy", "step1p_float32_1.npy"]


def test_it_is_an_operator_of_the_dump(either_mode: int, sync_dump: Callable[..., Path]) -> None:
    root = sync_dump()
    Net()(Tensor(X))
    assert [name.rpartition("/")[2] for name in execution_order(root)] == ["Add", "TensorDump", "Mul", "TensorDump"]
    first, second = sorted(root.rglob("TensorDump.*.input.0.*.npy"), key=lambda path: path.stat().st_mtime_ns)
    assert {np.load(path).sum() for path in (first, second)} == {(X + 1).sum(), ((X + 1) * 2).sum()}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.TensorDump("all"), ValueError, "should be one of"),
        (lambda: ops.TensorDump()("", Tensor(X)), ValueError, "empty text"),
        (lambda: ops.TensorDump()(None, Tensor(X)), TypeError, "'file' to be a str"),
        (lambda: ops.TensorDump()("x", X), TypeError, "'input_x' to be a Tensor"),
        (lambda: ops.tensordump(3, Tensor(X)), TypeError, "'file_name'"),
        (lambda: ops.tensordump("x", [Tensor(X)]), TypeError, "'tensor'"),
        (lambda: ops.tensordump("x", Tensor(X), 3), TypeError, "'mode'"),
        (lambda: ops.tensordump("x", Tensor(X), "all"), ValueError, "'mode' to be one of"),
        (lambda: ops.tensordump("n" * 300, Tensor(X)), OSError, "n" * 300),
    ],
)  # fmt: skip
def test_wrong_arguments(folder: Path, call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert written(folder) == []


def test_a_folder_that_cannot_be_made_is_an_error_of_the_script(folder: Path) -> None:
    (folder / "taken").touch()
    with pytest.raises(OSError, match="expected a folder"):
        ops.TensorDump()("taken/x", Tensor(X))

"""Files of a dump: names, counts, folders, steps and values, against the same model run eagerly."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.formats.dump_dir import DumpDir
from tests.torchair.dumps import backend_for, read_steps

torch = pytest.importorskip("torch")

X = torch.arange(6.0).reshape(2, 3) - 2


def run_once(path: Path, function: Any, *inputs: Any, **options: Any) -> Any:
    """Steps[0] of the only graph of an inference."""
    with torch.no_grad():
        torch.compile(function, backend=backend_for(path), fullgraph=True, **options)(*inputs)
    ((step,),) = read_steps(path)
    return step


def test_an_operator_leaves_its_arguments_and_its_result(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: x + 1, X)
    assert step.targets == {"add": "aten.add.Tensor"}
    assert set(step.values["add"]) == {("INPUT", 0), ("INPUT", 1), ("OUTPUT", 0)}
    np.testing.assert_array_equal(step.values["add"]["INPUT", 0], X)
    assert step.values["add"]["INPUT", 1].dtype == np.int64 and step.values["add"]["INPUT", 1] == 1
    np.testing.assert_array_equal(step.values["add"]["OUTPUT", 0], X + 1)
    assert not step.skipped


def test_one_time_stamp_per_node_in_the_order_of_the_run(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: (x + 1).relu().sum(), X)
    (add,), (relu,), (total,) = (step.timestamps[name] for name in ("add", "relu", "sum_1"))
    assert add < relu < total


def test_a_list_of_tensors_leaves_one_file_per_element(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x, y: torch.cat([x, y], 1), X, X + 9)
    assert set(step.values["cat"]) == {("INPUT", 0, 0), ("INPUT", 0, 1), ("INPUT", 1), ("OUTPUT", 0)}
    np.testing.assert_array_equal(step.values["cat"]["INPUT", 0, 1], X + 9)


def test_missing_elements_of_a_list_do_not_hide_the_others(tmp_path: Path) -> None:
    index = torch.tensor([2, 0])
    step = run_once(tmp_path, lambda x: x[:, index], X)
    values = step.values["index"]
    assert values["INPUT", 1, 0] == "None"
    np.testing.assert_array_equal(values["INPUT", 1, 1], index)


def test_several_results(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: x.max(1), X)
    values, indices = X.max(1)
    np.testing.assert_array_equal(step.values["max_1"]["OUTPUT", 0], values)
    np.testing.assert_array_equal(step.values["max_1"]["OUTPUT", 1], indices)
    assert not any("getitem" in name for name in step.values)


def test_keyword_arguments_have_files_of_their_own(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x, y: torch.add(x, y, alpha=3).to(torch.float64), X, X)
    assert step.values["add"]["INPUT", "alpha"] == 3
    assert step.values["_to_copy"]["INPUT", "dtype"] == "torch.float64"


def test_in_place_operators_show_what_they_read_and_what_they_wrote(tmp_path: Path) -> None:
    state = X.clone()

    def function(x: Any) -> Any:
        x.mul_(2)
        return x + 1

    step = run_once(tmp_path, function, state)
    np.testing.assert_array_equal(state, X * 2)
    np.testing.assert_array_equal(step.values["mul"]["INPUT", 0], X)
    np.testing.assert_array_equal(step.values["copy_"]["INPUT", 0], X)
    np.testing.assert_array_equal(step.values["copy_"]["INPUT", 1], X * 2)
    np.testing.assert_array_equal(step.values["copy_"]["OUTPUT", 0], X * 2)


def test_views_and_transposes(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: x.t().reshape(-1)[1:4].view(3, 1) * 2, X)
    assert {step.targets[name] for name in ("t", "slice_1", "view")} == {
        "aten.t.default",
        "aten.slice.Tensor",
        "aten.view.default",
    }
    np.testing.assert_array_equal(step.values["t"]["OUTPUT", 0], X.t())
    np.testing.assert_array_equal(step.values["mul"]["INPUT", 0], X.t().reshape(-1)[1:4].view(3, 1))


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: x * 1.1, X.bfloat16())
    found = step.values["mul"]["OUTPUT", 0]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (X.bfloat16() * 1.1).float())


def test_files_tell_the_dtype_before_it_was_widened(tmp_path: Path) -> None:
    run_once(tmp_path, lambda x: (x * 1.1, x.to(torch.float8_e5m2).float()), X.bfloat16())
    originals = {
        (tensor.op_name, tensor.io, tensor.slot): tensor.original_dtype for tensor in DumpDir.open(tmp_path).tensors()
    }
    assert originals["mul", "input", 0] == originals["mul", "output", 0] == "bfloat16"
    assert "float8_e5m2" in originals.values() and None in originals.values()


def test_eight_bit_floats_conjugates_and_text_do_not_stop_the_model(tmp_path: Path) -> None:
    def function(x: Any, z: Any) -> Any:
        low = x.to(torch.float8_e4m3fn)
        return low.float(), z.conj() * 2, torch.nn.functional.gelu(x, approximate="tanh")

    z = torch.tensor([1 + 2j, 3j])
    step = run_once(tmp_path, function, X, z)
    np.testing.assert_array_equal(step.values["_to_copy"]["OUTPUT", 0], X.to(torch.float8_e4m3fn).float())
    np.testing.assert_array_equal(step.values["mul"]["INPUT", 0], z.conj().resolve_conj())
    assert step.values["gelu"]["INPUT", "approximate"] == "tanh"


def test_what_no_file_can_hold_is_listed(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return torch.empty(3, device="meta") + 1, x * 2

    step = run_once(tmp_path, function, X)
    assert ("OUTPUT", 0) not in step.values["add"]
    np.testing.assert_array_equal(step.values["mul"]["OUTPUT", 0], X * 2)
    lines = [line for line in step.skipped if line.startswith("add-aten.add.Tensor.OUTPUT.0.")]
    assert len(lines) == 1 and lines[0].endswith(".npy: a meta tensor has no data")


def test_dynamic_shapes_use_portable_names(tmp_path: Path) -> None:
    compiled = torch.compile(
        lambda x: x.reshape(x.shape[0] * x.shape[1]) * x.shape[0], backend=backend_for(tmp_path), dynamic=True
    )
    for rows in (2, 5):
        x = torch.ones(rows, 3)
        with torch.no_grad():
            np.testing.assert_array_equal(compiled(x), torch.full((rows * 3,), float(rows)))
    ((first, second),) = read_steps(tmp_path)
    name = next(name for name, target in first.targets.items() if target == "_operator.mul")
    assert (first.values[name]["OUTPUT", 0], second.values[name]["OUTPUT", 0]) == (6, 15)
    assert second.values[name]["INPUT", 0].dtype == np.int64


def test_operators_without_a_converter_are_dumped_too(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: torch.full((2,), 3.0) + torch.nn.functional.softplus(x).amax(), X)
    assert {"aten.full.default", "aten.softplus.default", "aten.amax.default"} <= set(step.targets.values())


def test_custom_operators_and_those_that_write(tmp_path: Path) -> None:
    @torch.library.custom_op("msdump_test::fill", mutates_args={"x"}, schema="(Tensor(a!) x, float value) -> ()")
    def fill(x: torch.Tensor, value: float) -> None:
        x.fill_(value)

    def function(x: Any) -> Any:
        y = x * 2
        fill(y, 5.0)
        return y + 1

    step = run_once(tmp_path, function, X)
    name = next(name for name, target in step.targets.items() if target.startswith("auto_functionalized"))
    np.testing.assert_array_equal(step.values[name]["OUTPUT", 1], torch.full((2, 3), 5.0))
    assert step.values[name]["INPUT", "value"] == 5.0


def test_file_modes_follow_the_umask(tmp_path: Path) -> None:
    run_once(tmp_path / "new", lambda x: x + 1, X)
    plain_file, plain_folder = tmp_path / "plain", tmp_path / "plain_folder"
    plain_file.touch()
    plain_folder.mkdir()
    for path in (tmp_path / "new").rglob("*"):
        expected = plain_folder if path.is_dir() else plain_file
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(expected.stat().st_mode)


@pytest.mark.parametrize("names", [["add_1", "sub"], [], ["no_such"]])
def test_the_filter_of_the_page(names: list[str], tmp_path: Path) -> None:
    calls: list[str] = []

    def node_filter(n: Any) -> Any:
        calls.append(n.name)
        return n if n.name in names else None

    compiled = torch.compile(lambda x: (x + 1 + 2 - 3) * 4, backend=backend_for(tmp_path, node_filter))
    with torch.no_grad():
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), X * 4)
    assert calls == ["arg0_1", "add", "add_1", "sub", "mul", "output"]
    chosen = set(names) & set(calls)
    steps = read_steps(tmp_path)
    assert [[set(step.values) for step in graph] for graph in steps] == ([[chosen] * 2] if chosen else [])
    assert chosen or not list(tmp_path.iterdir())


def test_nothing_is_dumped_without_a_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import msdump.torchair as torchair

    monkeypatch.chdir(tmp_path)
    compiled = torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend())
    np.testing.assert_array_equal(compiled(X), X + 1)
    assert not list(tmp_path.iterdir())


def test_the_current_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import msdump.torchair as torchair

    monkeypatch.chdir(tmp_path)
    config = torchair.CompilerConfig()
    config.debug.data_dump.type.value = "npy"
    torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend(compiler_config=config))(X)
    assert len(read_steps(tmp_path)) == 1


def test_a_higher_order_operator_is_one_node(tmp_path: Path) -> None:
    step = run_once(tmp_path, lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), X)
    (name,) = (name for name, target in step.targets.items() if target == "cond")
    assert set(step.values[name]) == {("INPUT", 0), ("INPUT", 3, 0), ("OUTPUT", 0)}
    np.testing.assert_array_equal(step.values[name]["OUTPUT", 0], torch.sin(X) if X.sum() > 0 else torch.cos(X))
    assert [line.partition(": ")[2] for line in step.skipped] == ["a nested graph, which is not shown"] * 2


def test_threads_that_run_one_graph_have_steps_of_their_own(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    compiled = torch.compile(lambda x: (x * 2).sin(), backend=backend_for(tmp_path))
    compiled(X)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: compiled(X), range(12)))
    ((*steps,),) = read_steps(tmp_path)
    assert len(steps) == 13
    for step in steps:
        np.testing.assert_array_equal(step.values["sin"]["OUTPUT", 0], (X * 2).sin())

"""One operator again: explained or wrong, in numpy, torch and float64; scripts that stand alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import replay_operator, write_repro
from msdump.analysis.replay.replay import NUMPY, TORCH, program_source, run_kernel, run_torch
from msdump.cli.main import main
from msdump.errors import ConfigError, KernelNotFoundError
from tests.analysis.conftest import ROOT

HAS_TORCH = importlib.util.find_spec("torch") is not None
RNG = np.random.default_rng(7)


def image(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


POSITIVE = np.abs(image(3, 4)) + np.float32(0.5)
CONV = {"kernel_size": (3, 3), "dilation": (1, 1, 1, 1), "mode": 1, "out_channel": 6, "format": "NCHW"}
SAME = {**CONV, "stride": (1, 1, 2, 2), "pad_mode": "same", "group": 2}
VALID = {**CONV, "stride": (1, 1, 1, 1), "pad_mode": "valid", "group": 1}
POOL = {"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "pad_mode": "SAME", "format": "NCHW"}
MOMENTUM = {"use_nesterov": False, "gradient_scale": 1.0}
ANY = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Flatten", "Floor", "Neg", "ReLU", "Sigmoid", "Sin", "Square", "Tanh"]
ABOVE_ZERO = ["Log", "Reciprocal", "Rsqrt", "Sqrt"]
TWO = ["Add", "Div", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"]
CASES = {
    **{name: ([image(3, 4)], {}) for name in ANY},
    **{name: ([POSITIVE], {}) for name in ABOVE_ZERO},
    **{name: ([image(3, 4), POSITIVE], {}) for name in TWO},
    "Pow": ([POSITIVE, image(3, 4)], {}),
    "MatMul": ([image(4, 3), image(5, 4)], {"transpose_a": True, "transpose_b": True}),
    "BatchMatMul": ([image(2, 3, 4), image(2, 5, 4)], {"transpose_a": False, "transpose_b": True}),
    "BiasAdd": ([image(2, 3, 4, 4), image(3)], {"format": "NCHW"}),
    "BiasAddGrad": ([image(2, 3, 4, 4)], {"format": "NCHW"}),
    "Conv2D": ([image(2, 4, 7, 7), image(6, 2, 3, 3)], SAME),
    "MaxPool": ([image(2, 3, 7, 7)], POOL),
    "Softmax": ([image(3, 4)], {"axis": (-1,)}),
    "LogSoftmax": ([image(3, 4)], {"axis": -1}),
    "ReduceSum": ([image(3, 4)], {"axis": (1,), "keep_dims": True}),
    "ReduceMean": ([image(3, 4)], {"axis": (), "keep_dims": False}),
    "ReduceMax": ([image(3, 4)], {"axis": 0, "keep_dims": False}),
    "ReduceMin": ([image(3, 4)], {"axis": (0, 1), "keep_dims": False}),
    "ReluGrad": ([image(3, 4), image(3, 4)], {}),
    "Reshape": ([image(3, 4)], {"shape": (2, 6)}),
    "Transpose": ([image(2, 3, 4)], {"perm": (2, 0, 1)}),
    "ApplyMomentum": ([image(3), image(3), np.float32(0.1), image(3), np.float32(0.9)], MOMENTUM),
    "Conv2DBackpropInput": ([image(2, 6, 5, 5), image(6, 3, 3, 3)], {**VALID, "input_sizes": (2, 3, 7, 7)}),
    "Conv2DBackpropFilter": ([image(2, 6, 5, 5), image(2, 3, 7, 7)], {**VALID, "filter_sizes": (6, 3, 3, 3)}),
}


def test_every_operator_of_the_tables_has_a_case() -> None:
    from msdump.analysis.replay import _numpy_equivalents as numpy_equivalents
    from msdump.analysis.replay import _torch_equivalents as torch_equivalents

    for table in (numpy_equivalents, torch_equivalents):
        assert set(table.EXPRESSIONS) | set(table.FUNCTIONS) <= set(CASES)


@pytest.mark.usefixtures("needs_mindspore")
@pytest.mark.parametrize("op_type", CASES)
def test_the_short_forms_compute_what_the_kernels_do(op_type: str) -> None:
    inputs, attrs = CASES[op_type]
    expected = run_kernel(op_type, inputs, attrs)
    source = program_source(op_type, NUMPY)
    forms = 0
    if source is not None:
        scope: dict[str, object] = {"np": np}
        exec(source, scope)
        outputs = scope["run"]([np.array(array) for array in inputs], attrs)  # type: ignore[operator]
        np.testing.assert_allclose(outputs[0], expected[0], rtol=2e-5, atol=1e-5)
        forms += 1
    if HAS_TORCH and program_source(op_type, TORCH) is not None:
        np.testing.assert_allclose(run_torch(op_type, inputs, attrs)[0], expected[0], rtol=2e-5, atol=1e-5)
        forms += 1
    assert forms or not HAS_TORCH


def operators(dump: Path) -> list[str]:
    text = (dump / "rank_0/execution_order/ms_execution_order_graph_0.csv").read_text()
    return [name.rsplit("/", 1)[-1] for name in text.splitlines()[1:]]


def test_every_operator_of_a_run_is_explained(own_dump: Path) -> None:
    one_of_each = {name.rsplit("-op", 1)[0]: name for name in operators(own_dump)}
    assert len(one_of_each) == 14
    for name in one_of_each.values():
        found = replay_operator(own_dump, name, iteration=1)
        assert found.is_explained, (name, found.reason)
        assert not found.runs["numpy"].problem and not found.runs["float64"].problem
        assert all(pair.relative_error == 0 for pair in found.runs["numpy"].errors.values())
        assert all(pair.relative_error < 1e-6 for pair in found.runs["float64"].errors.values())


@pytest.fixture
def broken_dump(own_dump: Path, tmp_path: Path) -> Path:
    """The same dump with one element of the output of the second convolution changed."""
    copy = tmp_path / "broken"
    shutil.copytree(own_dump, copy)
    (path,) = (copy / "rank_0/LeNet/0/0").glob("Conv2D.Conv2D-op3.*.output.0.*")
    array = np.load(path)
    array[1, 2, 3, 4] += 0.01
    path.chmod(0o600)
    np.save(path, array)
    return copy


def test_an_output_that_its_inputs_do_not_give_is_wrong(broken_dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = replay_operator(broken_dump, "Conv2D-op3")
    assert not found.is_explained and "from the exact result" in found.reason
    assert replay_operator(broken_dump, "ReLU-op1").is_explained
    assert main(["replay", str(broken_dump), "Conv2D-op3"]) == 1
    assert capsys.readouterr().out.startswith("WRONG: Default/")
    assert main(["replay", str(broken_dump), "Conv2D-op0"]) == 0
    assert capsys.readouterr().out.startswith("explained: Default/")


def test_what_a_replay_needs_is_said(
    own_dump: Path, real_dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match='Did you mean "Conv2D-op3"'):
        replay_operator(own_dump, "Conv2D-op33")
    with pytest.raises(ConfigError, match="which 2 have"):
        replay_operator(own_dump, "Conv2D-op[03]")
    with pytest.raises(ConfigError, match="expected a graph file"):
        replay_operator(real_dump, "Conv2D-op77")
    copy = tmp_path / "copy"
    shutil.copytree(own_dump, copy)
    next((copy / "rank_0/LeNet/0/0").glob("Conv2D.Conv2D-op3.*.input.1.*")).unlink()
    with pytest.raises(ConfigError, match="got none of number 1"):
        replay_operator(copy, "Conv2D-op3", iteration=0)
    assert main(["replay", str(own_dump), "nothing"]) == 3
    assert capsys.readouterr().err.startswith("msdump replay: OP: expected the name")
    with pytest.raises(KernelNotFoundError):
        run_kernel("NoSuchOperator", [], {})


@pytest.mark.parametrize("library", [NUMPY, TORCH])
@pytest.mark.parametrize("op_name", ["Conv2D-op3", "Conv2DBackpropInput-op38"])
def test_a_script_of_its_own_runs(
    own_dump: Path, broken_dump: Path, tmp_path: Path, library: str, op_name: str
) -> None:
    if library == TORCH and not HAS_TORCH:
        pytest.skip("torch is not installed")

    def run(dump: Path, name: str) -> tuple[int, str, str]:
        script = write_repro(dump, name, tmp_path / dump.name / library, library=library, iteration=0)
        text = script.read_text()
        # Only a numpy script of an operator without a short form leans on msdump.
        environment = {**os.environ, "PYTHONPATH": str(ROOT) if "msdump.analysis" in text else ""}
        done = subprocess.run(
            [sys.executable, "-W", "error::SyntaxWarning", str(script)],
            cwd="/", capture_output=True, text=True, env=environment, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, out, err = run(own_dump, op_name)
    assert (code, err) == (0, "") and "the dumped outputs are what the inputs give" in out
    if op_name == "Conv2D-op3" and library == NUMPY:
        code, out, _ = run(broken_dump, op_name)
        assert code == 1 and "the dumped outputs differ" in out


def test_a_folder_with_files_and_a_missing_equivalent_are_refused(own_dump: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="torch equivalent, got ApplyMomentum"):
        write_repro(own_dump, "ApplyMomentum-op20", tmp_path / "new", library=TORCH, iteration=0)
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").write_text("x")
    with pytest.raises(ConfigError, match="expected a new or empty folder"):
        write_repro(own_dump, "Conv2D-op0", tmp_path / "old", iteration=0)
    assert main(["repro", str(own_dump), "Conv2D-op0", "-o", str(tmp_path / "old")]) == 2

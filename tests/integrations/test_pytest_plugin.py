"""The fixture `golden_dump`, in a pytest of its own, for each front end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MINDSPORE = """
def test_mindspore(golden_dump):
    msdump.install_aliases()
    import mindspore as ms
    from mindspore import ops
    with msdump.dump(golden_dump.config()):
        ms.jit(lambda x: ops.exp(ops.sigmoid(x) * FACTOR))(ms.Tensor(np.ones(3, np.float32)))
    golden_dump.check()
"""
TORCH = """
def test_torch(golden_dump):
    import torch
    with msdump.watch(config=golden_dump.config(path=str(golden_dump.path))):
        (torch.ones(3).sigmoid() * FACTOR).exp()
    golden_dump.check(has_tensors=True)
"""
ONNX = """
def test_onnx(golden_dump, tmp_path):
    from onnx import TensorProto, helper, save
    from msdump.frontends.acl import dump, load
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["s", "f"], ["m"]),
             helper.make_node("Exp", ["m"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    factor = helper.make_tensor("f", TensorProto.FLOAT, [1], [FACTOR])
    save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], [factor]), ir_version=8,
                           opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with dump(golden_dump.acl_config()):
        load(tmp_path / "m.onnx")({"x": np.ones(3, np.float32)})
    golden_dump.check()
"""
TESTS = {"mindspore": MINDSPORE, "torch": TORCH, "onnx": ONNX}
# The first operator that multiplies by another number, in the words of each front end.
FIRST = {"mindspore": "Mul-op", "torch": "aten.mul", "onnx": "Mul"}


def run(folder: Path, name: str, factor: float, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    text = f"import numpy as np\nimport msdump\nFACTOR = {factor}\n{TESTS[name]}"
    (folder / "test_model.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py", *options]
    if "msdump.integrations" not in os.environ.get("PYTEST_PLUGINS", ""):
        command[3:3] = ["-p", "msdump.integrations.pytest_plugin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", TESTS)
def test_it_names_the_first_operator_that_differs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("msdump.mindspore" if name == "mindspore" else name)
    none = run(tmp_path, name, 2.0)
    assert none.returncode == 1 and "expected a golden dump, got none. Make it: pytest --update-golden" in none.stdout
    made = run(tmp_path, name, 2.0, "--update-golden")
    assert made.returncode == 0, made.stdout
    golden = tmp_path / f"golden/test_model/test_{name}"
    files = [path.name for path in golden.rglob("*") if path.is_file()]
    assert files and (name == "torch" or set(files) == {"statistic.csv"})
    same = run(tmp_path, name, 2.0)
    assert same.returncode == 0, same.stdout
    other = run(tmp_path, name, 3.0, "--junit-xml", "x.xml")
    assert other.returncode == 1, other.stdout
    assert re.search(rf"first (wrong operator|difference): .*{FIRST[name]}", other.stdout), other.stdout
    report = re.search(r"^report: (.*)$", other.stdout, re.MULTILINE)
    assert report is not None and Path(report[1]).read_bytes().startswith(b"<!doctype html>")
    assert "msdump report" in (tmp_path / "x.xml").read_text()


@pytest.mark.parametrize("name", TESTS)
def test_a_dump_that_is_not_whole_fails_and_is_no_golden_dump(name: str, tmp_path: Path) -> None:
    pytest.importorskip("msdump.mindspore" if name == "mindspore" else name)
    made = run(tmp_path, name, 2.0, "--update-golden", MSDUMP_DISK_BUDGET="1")
    assert made.returncode == 1 and "expected a whole dump, got" in made.stdout
    assert "MSDUMP_DISK_BUDGET" in made.stdout
    assert not (tmp_path / "golden").exists()

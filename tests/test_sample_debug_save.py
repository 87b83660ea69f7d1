"""sample_code/torch/debug_save.py leaves the trees that TorchAir's page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torchair.debug_saves import expected_files, graph_files, models, run_folder

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "sample_code" / "torch" / "debug_save.py"


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "msdump", "run", str(SCRIPT), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_training_step_and_an_inference(tmp_path: Path) -> None:
    output = run(tmp_path)
    assert re.search(r"^loss: \d+\.\d{4}, gradient: \d+\.\d{4}$", output, re.MULTILINE)
    root = tmp_path / "torch_compile_debug"
    assert f"saved: {run_folder(root).parent}" in output and "doubled: True" in output
    training, inference = models(root)
    assert set(training) == {"", "forward", "backward"} and set(inference) == {"", "forward"}
    for model in (training, inference):
        assert model[""] == ["dynamo_out_graph.txt"]
        assert model["forward"] == expected_files("max-autotune", "forward")
    assert training["backward"] == expected_files("max-autotune", "backward")
    run_dir = run_folder(root).parent
    assert (run_dir / "torchdynamo" / "debug.log").stat().st_size > 0
    # The log goes to the terminal as well.
    lines = (run_dir / "torchair" / "debug.log").read_text().splitlines()
    assert lines and set(lines) <= set(output.splitlines())
    assert len(list((tmp_path / "graphs").iterdir())) == 6


def test_a_capture(tmp_path: Path) -> None:
    assert "doubled: True" in run(tmp_path, "--mode", "reduce-overhead")
    root = tmp_path / "torch_compile_debug"
    (model,) = models(root)
    assert graph_files(model["forward"]) == expected_files("npugraph_ex", "forward")
    assert "output_code.py" in model["forward"]
    trace, dynamo = sorted(model[""], key=len, reverse=True)
    assert re.fullmatch(r"graph_1_id_1_rank_0_pid_\d+_ts_\d{20}\.json", trace) and dynamo == "dynamo_out_graph.txt"
    (script,) = root.glob("run_*/torchair/model__0/forward/output_code.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "output 0: torch.float32 (20, 20)\n", done.stderr

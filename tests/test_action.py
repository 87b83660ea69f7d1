"""action.yml, for GitHub, and the snippet for GitLab: their shell steps run here, on real dumps."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.package import PACKAGE

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops

class Net(nn.Cell):
    def construct(self, x):
        x = ops.exp(x)
        return ops.mul(x, float(sys.argv[1]))

net = Net()
for _ in range(2):
    net(ms.Tensor(np.arange(6, dtype=np.float32)))
"""


@pytest.fixture(scope="module")
def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


class Runner:
    """A job on a runner: its folder stays, and each run of the action is one of its steps."""

    def __init__(self, folder: Path, action: Any) -> None:
        self.folder, self.action = folder / "job", action
        self.folder.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name, command in {"msdump": "-m msdump", "python": ""}.items():
            program = self.programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
            program.chmod(0o755)
        self.summary, self.output = folder / "summary.md", folder / "output"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(PACKAGE.parent),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            **more,
        }

    def run(self, script: str, update: bool) -> tuple[int, str, str]:
        """(exit status of the job, what its steps printed, `result`); the steps of other actions do nothing here."""
        inputs = {"script": script, "update": str(update).lower(), "name": "default", "package": ""}
        self.output.write_text("")
        job, printed = 0, ""
        for step in self.action["runs"]["steps"]:
            condition = step.get("if", "")
            is_wanted = "inputs.update" not in condition or (update and self.output.read_text() != "")
            if step["name"] == "Install" or "run" not in step or (job and "always()" not in condition) or not is_wanted:
                continue
            assert step["shell"] == "bash" and "${{" not in step["run"]
            variables = {name: self.given(text, inputs) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.folder, env=self.environment(**variables), capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            printed += done.stdout + done.stderr
            job = job or done.returncode
        results = re.findall("^result=(.*)$", self.output.read_text(), re.MULTILINE)
        return job, printed, results[0] if results else ""

    @staticmethod
    def given(text: str, inputs: dict[str, str]) -> str:
        """`${{ inputs.script }}` as the runner fills it in."""
        (name,) = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text).groups()  # type: ignore[union-attr]
        return inputs[name]


@pytest.fixture
def runner(needs_mindspore: None, tmp_path: Path, action: Any) -> Runner:
    made = Runner(tmp_path, action)
    (made.folder / "my train.py").write_text(SCRIPT)
    return made


def test_nightly_statistics_are_kept_and_compared(runner: Runner) -> None:
    status, printed, result = runner.run("'my train.py' 2", update=False)
    assert (status, result) == (0, "new"), printed
    assert "::notice::" in printed and not (runner.folder / "msdump_golden").exists()
    status, printed, result = runner.run("'my train.py' 2", update=True)
    assert (status, result) == (0, "new"), printed
    assert (runner.folder / "msdump_golden").is_dir()
    status, printed, result = runner.run("'my train.py' 2", update=False)
    assert (status, result) == (0, "equal"), printed
    status, printed, result = runner.run("'my train.py' 3", update=False)
    assert (status, result) == (1, "different"), printed
    assert re.search(r"first (wrong operator|difference): .*Mul", printed), printed
    assert re.search(r"^::error file=my train\.py,line=10,", printed, re.MULTILINE), printed
    assert "Mul" in runner.summary.read_text()
    assert b"<!doctype html>" in (runner.folder / "msdump_report.html").read_bytes()[:200].lower()
    # A pull request changes no golden statistics; the next night does, and says so once.
    assert runner.run("'my train.py' 3", update=True)[::2] == (1, "different")
    assert runner.run("'my train.py' 3", update=False)[::2] == (0, "equal")


def test_a_script_that_fails_compares_nothing(runner: Runner) -> None:
    status, printed, result = runner.run("'my train.py'", update=True)
    assert status != 0 and "IndexError" in printed and result == ""
    assert not (runner.folder / "msdump_golden").exists()


def test_the_installation_takes_the_commit_of_the_action(tmp_path: Path, action: Any) -> None:
    (step,) = (step for step in action["runs"]["steps"] if step["name"] == "Install")
    assert step["env"] == {"MSDUMP_PACKAGE": "${{ inputs.package || github.action_path }}"}
    for name, text in {"python": 'printf "%s|" "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", step["run"]], env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "MSDUMP_PACKAGE": "a b"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "-m|pip|install|a b|"


def test_the_action_is_one(action: Any) -> None:
    """What GitHub wants of an action; inputs reach a shell as variables alone, so that no value becomes a command."""
    assert action["runs"]["using"] == "composite" and action["name"] and action["description"]
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(action["inputs"])
    for step in action["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step) and step["name"]
        assert "run" not in step or step["shell"] == "bash"
        assert "uses" not in step or re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"])
    keys = [step["with"]["key"] for step in action["runs"]["steps"] if "key" in step.get("with", {})]
    assert len(keys) == 2 and keys[0] == keys[1]


def documented(language: str, start: str) -> str:
    """The block of docs/testing.md that begins with a line."""
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if block.startswith(start))
    return textwrap.dedent(block)


def test_the_template_uses_the_inputs_that_there_are(action: Any) -> None:
    workflow = yaml.safe_load(documented("yaml", "# .github/workflows/"))
    (job,) = workflow["jobs"].values()
    (step,) = (step for step in job["steps"] if "msdump" in step.get("uses", ""))
    assert set(step["with"]) <= set(action["inputs"]) and "script" in step["with"]
    assert set(workflow[True]) == {"schedule", "pull_request"}  # YAML 1.1 reads `on` as true


@pytest.mark.slow
def test_the_snippet_for_gitlab_does_the_same(tmp_path: Path, action: Any) -> None:
    pipeline = yaml.safe_load(documented("yaml", "# .gitlab-ci.yml"))
    job = pipeline["numbers"]
    runner = Runner(tmp_path, action)
    (runner.folder / "train.py").write_text(SCRIPT.replace("sys.argv[1]", "open('factor').read()"))

    def run(factor: str, source: str) -> subprocess.CompletedProcess[str]:
        (runner.folder / "factor").write_text(factor)
        lines = [line for line in job["script"] if "pip install" not in line]
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(lines)], cwd=runner.folder,
            env=runner.environment(CI_PIPELINE_SOURCE=source), capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    first = run("2", "schedule")
    assert first.returncode == 0, first.stdout + first.stderr
    assert (runner.folder / "msdump_golden").is_dir()
    assert run("2", "merge_request_event").returncode == 0
    different = run("3", "merge_request_event")
    assert different.returncode == 1 and "Mul" in different.stdout
    assert (runner.folder / "msdump_report.html").is_file()
    assert run("2", "merge_request_event").returncode == 0
    assert run("3", "schedule").returncode == 1 and run("3", "schedule").returncode == 0
    paths = {*job["artifacts"]["paths"], *job["cache"]["paths"]}
    assert paths == {"msdump_report.html", "msdump_golden/"} and job["artifacts"]["when"] == "always"
    assert job["cache"]["when"] == "always"

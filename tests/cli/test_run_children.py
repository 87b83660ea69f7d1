"""`msdump run` with scripts that start other processes: what these find, dump and report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
Result = subprocess.CompletedProcess[str]

NETWORK = """
import multiprocessing, os, signal, subprocess, sys
import numpy as np
import mindspore as ms
from mindspore import nn

def infer(rank="0"):
    os.environ["RANK_ID"] = rank
    return nn.Dense(4, 3)(ms.Tensor(np.ones((2, 4), np.float32))).shape
"""

TORCH = """
import multiprocessing, os, sys
import torch

def infer(rank="0"):
    os.environ["RANK_ID"] = rank
    return tuple(torch.compile(torch.nn.Linear(4, 3))(torch.ones(2, 4)).shape)
"""


def configure(folder: Path, is_sync: bool = True) -> None:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0,
        "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    sections = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "msdump", "run", "--config", "dump.json", *options, "script.py"]


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def run(folder: Path, script: str, *options: str, begin: str = NETWORK, **variables: str) -> Result:
    if begin is NETWORK:
        pytest.importorskip("msdump.mindspore")
    (folder / "script.py").write_text(begin + textwrap.dedent(script))
    return subprocess.run(
        command(*options), cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=300
    )


def ranks(folder: Path) -> list[str]:
    """Folders of ranks that have data."""
    return sorted({path.relative_to(folder / "dump").parts[0] for path in (folder / "dump").rglob("*.npy")})


# -- processes that are forked ----------------------------------------------------------------------------------------

FORK = """
infer()
child = os.fork()
if not child:
    {work}
    sys.exit({status})
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
infer()
"""


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("work", ["pass", "infer()"])
@pytest.mark.parametrize("status", [0, 5])
def test_a_forked_child_ends_as_it_says(tmp_path: Path, is_sync: bool, work: str, status: int) -> None:
    configure(tmp_path, is_sync)
    done = run(tmp_path, FORK.format(work=work, status=status))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"child {status}\n"
    assert done.stderr.count("dump report") == 1 and "Nothing was dumped" not in done.stderr
    assert done.stderr.count("dumps nothing itself") == (work != "pass")


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_says_nothing_of_its_parents_acl_dump(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: onnxruntime itself hangs when a forked process ends as Python lets it."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    import msdump.acl

    from msdump.cli.run import conclude_run
    from msdump.frontends.acl.process import process
    from tests.frontends.acl.scripts import everything, small_model

    process.reset_for_tests()
    with msdump.acl.dump(everything(tmp_path)):
        msdump.acl.load(small_model(tmp_path))(np.zeros((2, 3), np.float32))
        child = os.fork()
        if not child:
            os._exit(conclude_run(7, "", may_be_empty=True))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert capfd.readouterr().err == ""
        assert conclude_run(7, "", may_be_empty=True) == 7
    assert "1 of 1 dumped" in capfd.readouterr().err
    process.reset_for_tests()


# -- processes that are started anew ----------------------------------------------------------------------------------

START = """
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    children = [context.Process(target=infer, args=(str(rank),)) for rank in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_of_multiprocessing_dump_and_are_reported(tmp_path: Path, method: str) -> None:
    configure(tmp_path)
    done = run(tmp_path, START.format(method=method))
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    assert ranks(tmp_path) == ["rank_0", "rank_1"]
    assert done.stderr.count("dumped 9 tensors") == 2 and "Nothing was dumped" not in done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_get_the_options_of_torch(tmp_path: Path, method: str) -> None:
    pytest.importorskip("torch")
    configure(tmp_path)
    done = run(tmp_path, START.format(method=method), "--torch-backend", "msdump", begin=TORCH)
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    assert ranks(tmp_path) == ["rank_0", "rank_1"]


@pytest.mark.usefixtures("needs_mindspore")
def test_a_python_that_is_started_finds_mindspore(tmp_path: Path) -> None:
    """Below another one that ran `sitecustomize` of the user, whose own modules it finds as well."""
    configure(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys\nsys.own = 'own'")
    (tmp_path / "site" / "acl_helper.py").write_text("VALUE = 3")
    (tmp_path / "child.py").write_text(
        "import sys, mindspore.nn, acl_helper\nprint(sys.own, mindspore.nn.Dense.__module__, acl_helper.VALUE)"
    )
    variables = {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}"}
    done = run(tmp_path, 'subprocess.run([sys.executable, "child.py"])\ninfer()', **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "own msdump.mindspore.nn.layer.basic 3\n"


def test_children_of_a_run_with_the_real_mindspore_get_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "mindspore.py").write_text("WHO = 'real'")
    configure(tmp_path)
    begin = """
import subprocess, sys, mindspore
print(mindspore.WHO, flush=True)
subprocess.run([sys.executable, "-c", "import mindspore, acl; print(mindspore.WHO, acl.__name__)"])
"""
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    done = run(tmp_path, "", "--real-mindspore", begin=begin, PYTHONPATH=path)
    assert done.stdout == "real\nreal msdump.frontends.acl\n", done.stderr


def test_another_python_gets_nothing(tmp_path: Path) -> None:
    configure(tmp_path)
    done = run(tmp_path, """
        import json
        content = json.loads(os.environ["MSDUMP_INHERITED"])
        os.environ["MSDUMP_INHERITED"] = json.dumps({**content, "prefix": "/another"})
        subprocess.run([sys.executable, "-c", "import mindspore"])
        os.environ["MSDUMP_INHERITED"] = "{"
        subprocess.run([sys.executable, "-c", "import mindspore"])
        infer()
    """)  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.count("No module named 'mindspore'") == 2


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_child_that_is_killed_is_an_incomplete_dump(tmp_path: Path, method: str) -> None:
    configure(tmp_path)
    script = """
        def work():
            infer()
            os.kill(os.getpid(), signal.SIGKILL)
        if __name__ == "__main__":
            child = multiprocessing.get_context("METHOD").Process(target=work)
            child.start()
            child.join()
    """
    done = run(tmp_path, script.replace("METHOD", method))
    assert done.returncode == 4, done.stderr
    assert "ended without finishing its dump" in done.stderr


def test_a_child_that_is_terminated_finishes_its_dump(tmp_path: Path) -> None:
    configure(tmp_path)
    done = run(tmp_path, """
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(infer, ["0"]))
    """)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[(2, 3)]\n"), done.stderr
    assert "dumped 9 tensors" in done.stderr


def test_a_child_that_is_terminated_while_it_ends_finishes_its_dump(tmp_path: Path) -> None:
    """A pool sends the signal to workers that may be at their end already."""
    configure(tmp_path)
    done = run(tmp_path, """
        def work():
            from multiprocessing.util import Finalize
            infer()
            Finalize(None, os.kill, (os.getpid(), signal.SIGTERM), exitpriority=10)
        if __name__ == "__main__":
            child = multiprocessing.get_context("spawn").Process(target=work)
            child.start()
            child.join()
            print(child.exitcode)
    """)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "dumped 9 tensors" in done.stderr


# -- processes of one rank --------------------------------------------------------------------------------------------

WAIT = """
infer("0")
print("ready", flush=True)
sys.stdin.readline()
infer("0")
"""


@pytest.mark.usefixtures("needs_mindspore")
def test_two_processes_of_one_rank_are_refused(tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "script.py").write_text(NETWORK + WAIT)
    with subprocess.Popen(
        command(), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as first:  # fmt: skip
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        second = subprocess.run(
            command(), cwd=tmp_path, env=environment(), input="\n", capture_output=True, text=True, timeout=300
        )
        assert second.returncode == 1 and "RANK_ID" in second.stderr and second.stdout == ""
        _, errors = first.communicate("\n", timeout=300)
    assert first.returncode == 0, errors
    assert "iterations  2 of 2 dumped" in errors
    # The folder is free again.
    third = subprocess.run(
        command(), cwd=tmp_path, env=environment(), input="\n", capture_output=True, text=True, timeout=300
    )
    assert third.returncode == 0, third.stderr


@pytest.mark.usefixtures("needs_mindspore")
def test_two_processes_of_one_rank_are_told_apart_where_each_run_has_a_folder(tmp_path: Path) -> None:
    configure(tmp_path, is_sync=False)
    (tmp_path / "script.py").write_text(NETWORK + WAIT)
    processes = [
        subprocess.Popen(command(), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        _, errors = process.communicate("\n", timeout=300)
        assert process.returncode == 0, errors
    assert len(ranks(tmp_path)) == 2  # folders of two times
    assert len(list((tmp_path / "dump").rglob("*.npy"))) == 2 * 2 * 9


def test_a_folder_is_free_when_its_process_was_killed(tmp_path: Path) -> None:
    configure(tmp_path)
    done = run(tmp_path, 'infer("0")\nos.kill(os.getpid(), signal.SIGKILL)')
    assert done.returncode == -signal.SIGKILL
    assert run(tmp_path, 'infer("0")').returncode == 0

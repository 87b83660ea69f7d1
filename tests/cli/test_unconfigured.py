"""`msdump run` without a configuration: from a script that knows nothing of msdump to the line that made the NaN."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from msdump.cli.imports import imports_of
from tests.cli.test_run import environment, write, write_config

EAGER = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        loss = model(torch.randn(4, 8)).square().mean()
        if step == 2:
            loss = loss * torch.log(torch.tensor(-1.0))  # here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
COMPILED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 16)

        def forward(self, x, scale):
            h = torch.relu(self.first(x)).sum(1)
            return torch.log(h * scale)  # here

    torch.manual_seed(0)
    model = torch.compile(Net(), backend="eager")
    for step in range(3):
        model(torch.randn(4, 8), torch.tensor(1.0 if step < 2 else -1.0)).sum().backward()
"""
MINDSPORE = """
    import numpy as np
    import mindspore as ms
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(8, 1)

        def construct(self, x, scale):
            y = self.dense(x)
            return ops.log(y * y * scale).mean()  # here

    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01))
    for number in range(3):
        step(ms.Tensor(np.ones((4, 8), np.float32)), ms.Tensor(np.float32(1 if number < 1 else -1)))
"""
TORCHAIR = """
    import torch, torchair

    def function(x, scale):
        y = torch.relu(x) + 1
        return torch.log(y * scale).sum()  # here

    backend = torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
    compiled = torch.compile(function, backend=backend)
    for step in range(3):
        compiled(torch.ones(4), torch.tensor(1.0 if step < 2 else -1.0))
"""
MSPROBE = """
    import json, torch
    from msprobe.pytorch import PrecisionDebugger

    settings = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    values = {"task": "statistics", "dump_path": "./probe", "rank": [], "step": [], "level": "L1"}
    with open("probe.json", "w") as file:
        json.dump({**values, "statistics": settings}, file)
    debugger = PrecisionDebugger("probe.json")
    model = torch.nn.Linear(4, 2)
    for step in range(2):
        debugger.start(model)
        x = torch.ones(2, 4) * (1 if step == 0 else -1)
        torch.log(model(x) * 0 + x.sum()).sum().backward()  # here
        debugger.stop()
        debugger.step()
"""
ACL = """
    import numpy as np
    import acl

    acl.init()
    acl.rt.set_device(0)
    model, _ = acl.mdl.load_from_file("model.onnx")
    description = acl.mdl.create_desc()
    acl.mdl.get_desc(description, model)

    def memory(size):
        dataset = acl.mdl.create_dataset()
        pointer, _ = acl.rt.malloc(size, 2)
        acl.mdl.add_dataset_buffer(dataset, acl.create_data_buffer(pointer, size))
        return dataset, pointer

    inputs, pointer = memory(acl.mdl.get_input_size_by_index(description, 0))
    outputs, _ = memory(acl.mdl.get_output_size_by_index(description, 0))
    data = np.arange(4, dtype=np.float32).tobytes()
    acl.rt.memcpy(pointer, len(data), acl.util.bytes_to_ptr(data), len(data), 1)
    assert acl.mdl.execute(model, inputs, outputs) == 0
    acl.finalize()
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msdump", "run", *arguments]
    values = {**environment(**variables), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=values, capture_output=True, text=True, timeout=300)


def line_of(script: str) -> int:
    return next(number for number, text in enumerate(script.splitlines(), 1) if "# here" in text)


@pytest.mark.parametrize(
    ("script", "iteration"),
    [(EAGER, 2), (MINDSPORE, 1), (TORCHAIR, 2), (MSPROBE, 1)],
    ids=["eager", "mindspore", "torchair", "msprobe"],
)
def test_one_command_names_the_line(
    script: str, iteration: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if script == MINDSPORE:
        request.getfixturevalue("needs_mindspore")
    else:
        pytest.importorskip("torch")
    write(tmp_path, "train.py", script)
    done = run(tmp_path, "train.py")
    assert done.returncode == 0, done.stderr
    answer = done.stderr.partition("$ msdump nan ")[2]
    assert re.search(rf"^first NaN, made out of finite inputs: .*iteration {iteration}$", answer, re.MULTILINE), answer
    assert f"train.py:{line_of(script)}  " in answer
    assert "in no dump" not in done.stderr
    assert "msdump zoom" in answer or script == MSPROBE


def test_two_commands_name_the_line_inside_of_compiled_code(tmp_path: Path) -> None:
    """The first one leaves the script's backend alone, so that what it runs stays what it was."""
    pytest.importorskip("torch")
    write(tmp_path, "train.py", COMPILED)
    done = run(tmp_path, "train.py")
    assert done.returncode == 0, done.stderr
    assert "what torch.compile makes as a whole: statistics of every step" in done.stderr
    assert "first NaN, made out of finite inputs: Default/compiled.Net.forward-op0" in done.stderr
    (command,) = re.findall(r"^  msdump (run .*)  # the operators inside", done.stderr, re.MULTILINE)
    assert command == "run --torch-eager --torch-backend msdump train.py"
    done = run(tmp_path, *command.split()[1:])
    assert done.returncode == 0, done.stderr
    answer = done.stderr.partition("$ msdump nan msdump_dump_2")[2]
    assert "first NaN, made out of finite inputs: Default/aten.log.default-op" in answer
    assert f"train.py:{line_of(COMPILED)}  " in answer and "in no dump" not in done.stderr


def test_one_command_names_the_operator_of_a_model(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    text = """
        <ir_version: 9, opset_import: ["" : 17]>
        net (float[4] x) => (float[4] y) { bias = Constant <value = float[4] {-3, -3, -3, -3}> ()
            [sum] a = Add(x, bias)
            [log] l = Log(a)
            [relu] y = Relu(l) }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    write(tmp_path, "infer.py", ACL)
    done = run(tmp_path, "infer.py")
    assert done.returncode == 0, done.stderr
    assert "first NaN, made out of finite inputs: log (Log), rank 0" in done.stderr
    assert list(tmp_path.glob("msdump_dump/2*/**/*.csv"))


def test_a_package_is_watched_from_its_first_import_on(tmp_path: Path) -> None:
    """Which looking for its main file must not be."""
    pytest.importorskip("torch")
    write(tmp_path, "trainer/__init__.py", "import torch")
    write(tmp_path, "trainer/__main__.py", EAGER)
    done = run(tmp_path, "-m", "trainer")
    assert done.returncode == 0, done.stderr
    assert f"__main__.py:{line_of(EAGER)}  " in done.stderr.partition("$ msdump nan ")[2]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sitecustomize.py", "import torch"),
        ("wrapper.py", "import torch, runpy\nrunpy.run_module('msdump', run_name='__main__')"),
        ("site/before.pth", "import torch"),
    ],
    ids=["sitecustomize", "wrapper", "pth"],
)
def test_pytorch_may_be_there_before_the_run(file: str, text: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(tmp_path, file, text)
    write(tmp_path, "train.py", EAGER)
    sites = f"import site; site.addsitedir({str(tmp_path / 'site')!r})\n" if file.endswith(".pth") else ""
    start = (
        ["wrapper.py"]
        if file == "wrapper.py"
        else ["-c", f"{sites}import sys; from msdump.cli.main import main; sys.exit(main())"]
    )
    environ = environment(PYTHONPATH=os.pathsep.join([os.getcwd(), str(tmp_path)]))
    command = [sys.executable, *start, "run", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"train.py:{line_of(EAGER)}  " in done.stderr.partition("$ msdump nan ")[2], done.stderr


def test_a_library_may_look_for_pytorch_before_it_is_imported(tmp_path: Path) -> None:
    """As Transformers does: the package is found, and nothing is imported yet."""
    pytest.importorskip("torch")
    look = "import importlib.util\nspec = importlib.util.find_spec('torch')\nassert spec.loader.get_source('torch')\n"
    write(tmp_path, "train.py", look + textwrap.dedent(EAGER))
    done = run(tmp_path, "train.py")
    assert done.returncode == 0, done.stderr
    assert "first NaN" in done.stderr.partition("$ msdump nan ")[2], done.stderr


def test_a_forked_process_leaves_the_folder_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(
        tmp_path, "train.py", "import os, sys\nif os.fork() == 0:\n    sys.exit()\nos.wait()\n" + textwrap.dedent(EAGER)
    )
    done = run(tmp_path, "train.py")
    assert done.returncode == 0 and "first NaN" in done.stderr, done.stderr


def test_each_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(tmp_path, "train.py", EAGER)
    for name in "msdump_dump", "msdump_dump_2":
        assert f"statistics of every step go to {name}. " in run(tmp_path, "train.py").stderr
        assert len(list((tmp_path / name).glob("rank_0/Net/0/*/statistic.csv"))) == 3
    done = run(tmp_path, "--steps", "1", "--out", "msdump_dump", "train.py")
    assert done.returncode == 2 and "--output: expected a folder that is empty or not there" in done.stderr


@pytest.mark.parametrize(("module", "program"), [("mindspore", MINDSPORE), ("torch", EAGER)])
def test_a_dump_that_the_script_configures_goes_where_it_says(module: str, program: str, tmp_path: Path) -> None:
    pytest.importorskip(module)
    write_config(tmp_path)
    own = "import os\nos.environ['MINDSPORE_DUMP_CONFIG'] = os.path.abspath('dump.json')\n"
    write(tmp_path, "train.py", own + textwrap.dedent(program))
    done = run(tmp_path, "train.py")
    assert "A dump that the script itself configures goes where it says." in done.stderr
    assert not (tmp_path / "msdump_dump").exists() and list((tmp_path / "dump").glob("rank_0/*"))


def test_options_choose_what_is_dumped(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(tmp_path, "train.py", EAGER)
    done = run(tmp_path, "--tensors", "1", "--ops", "relu,name-regex(.*addmm.*)", "-o", "own", "train.py")
    assert done.returncode == 0, done.stderr
    assert "tensors and statistics of step 1 go to own." in done.stderr and "finite: " in done.stderr
    files = [path for path in tmp_path.glob("own/rank_0/Net/*/*/*.npy") if not path.name.startswith("Parameter.")]
    assert {path.parent.name for path in files} == {"1"}
    assert {path.name.split(".")[0] for path in files} == {"aten_relu_default", "aten_addmm_default"}
    done = run(tmp_path, "--steps", "0,2", "-o", "steps", "train.py")
    assert {path.parent.name for path in tmp_path.glob("steps/rank_0/Net/0/*/statistic.csv")} == {"0", "2"}
    done = run(tmp_path, "--ops", "Conv2D", "-o", "nothing", "train.py")
    assert done.returncode == 3 and "Never matched: Conv2D" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tensors", "1", "--steps", "2"], "--tensors: expected one of --tensors and --steps, got both"),
        (["--tensors", "x"], "--tensors: expected numbers of steps such as 40"),
        (["--ops", " , "], "--ops: expected names or types of operators"),
        (["--steps", "1", "--config", "dump.json"], "--steps: expected no --config beside it"),
        (["--ops", "Add", "--no-dump"], "--ops: expected no --no-dump beside it"),
    ],
)
def test_wrong_options_leave_nothing(arguments: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path, "train.py", "print('started')")
    write_config(tmp_path)
    done = run(tmp_path, *arguments, "train.py")
    assert (done.returncode, done.stdout) == (2, "") and message in done.stderr
    assert not (tmp_path / "msdump_dump").exists()


@pytest.mark.parametrize(
    ("script", "arguments", "variables"),
    [
        (EAGER, ["--no-dump"], {}),
        (EAGER, [], {"MINDSPORE_DUMP_CONFIG": ""}),
        (
            "import msdump, torch\nwith msdump.watch(config=None) if False else open('x', 'w'): print(torch.ones(1))",
            [],
            {},
        ),
    ],
    ids=["--no-dump", "empty variable", "msdump itself"],
)
def test_nothing_is_dumped_where_something_says_so(
    script: str, arguments: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    write(tmp_path, "train.py", script)
    done = run(tmp_path, *arguments, "train.py", **variables)
    assert done.returncode == 0 and "no dump is configured" in done.stderr, done.stderr
    assert not list(tmp_path.glob("msdump_dump*"))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("MS_ACL_DUMP_CFG_PATH", "only where MINDSPORE_DUMP_CONFIG names the same file"),
        ("ASCEND_DUMP_SCENE", "operators of models (acl) that fail"),
        ("NPU_COLLECT_PATH", "operators of models (acl) that fail"),
    ],
)
def test_the_variable_that_keeps_the_default_away_is_named(name: str, advice: str, tmp_path: Path) -> None:
    write(tmp_path, "train.py", "print('done')")
    done = run(tmp_path, "train.py", **{name: "aic_err_brief_dump"})
    assert done.returncode == 0 and "no dump is configured" in done.stderr, done.stderr
    assert f"environment variable {name} is set: " in done.stderr and advice in done.stderr
    assert not list(tmp_path.glob("msdump_dump*"))


def test_ranks_of_a_job_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(tmp_path, "train.py", EAGER)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = run(tmp_path, *launcher, "train.py")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("msdump_dump/rank_*")} == {"rank_0", "rank_1"}
    assert done.stderr.count("first NaN") == 1
    assert "$ msdump ranks msdump_dump --brief" in done.stderr


def found(folder: Path, target: str = "train.py", is_module: bool = False) -> tuple[set[str], bool, bool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        result = imports_of([target], is_module)
    return result.packages, result.uses_msdump, result.compiles


def test_imports_are_found_in_all_files_of_a_script(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "from src.models import net\nfrom src import data as d\nimport os.path")
    write(tmp_path, "src/__init__.py", "")
    write(tmp_path, "src/models/__init__.py", "from .net import *")
    write(tmp_path, "src/models/net.py", "def build():\n    import torch\n    return torch.compile(torch.nn.ReLU())")
    write(tmp_path, "src/data.py", "from . import more")
    write(tmp_path, "src/more.py", "from msdump import mindspore\nimport train")
    packages, *flags = found(tmp_path)
    assert {"torch", "mindspore", "os"} <= packages and flags == [False, True]
    write(tmp_path, "src/__main__.py", "import acl")
    assert "acl" in found(tmp_path, "src", is_module=True)[0]


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("import msdump; msdump.watch()", (True, False)),
        ("from msdump import dump", (True, False)),
        ("import msdump.torchair", (False, False)),
        ("import msdump; msdump.compare('a', 'b')", (False, False)),
        ("import re; re.compile('x')", (False, False)),
        ("torch.compile(model, backend=own)", (False, True)),
        ("@torch.compile\ndef f(): pass", (False, True)),
        ("x = (", (False, False)),
        ("x = 1\0", (False, False)),
    ],
)
def test_what_calls_say(line: str, flags: tuple[bool, bool], tmp_path: Path) -> None:
    write(tmp_path, "train.py", line)
    assert found(tmp_path)[1:] == flags


def test_the_configuration_that_is_written_is_one_to_go_on_with(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write(tmp_path, "train.py", EAGER)
    run(tmp_path, "train.py")
    config = tmp_path / "msdump_dump/msdump_config.json"
    settings = json.loads(config.read_text())["common_dump_settings"]
    assert settings["saved_data"] == "statistic" and settings["path"] == str(config.parent)
    assert len(config.read_text().splitlines()) < 20
    done = run(tmp_path, "--config", str(config), "--torch-eager", "train.py")
    assert done.returncode == 0 and "next:" in done.stderr, done.stderr

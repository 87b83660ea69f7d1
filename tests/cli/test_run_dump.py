"""`msdump run` with a real training and a real dump: the report, the exit status, the files after a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("needs_mindspore")
TRAIN = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.fc(x))

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
step.set_train()
x = ms.Tensor(np.ones((2, 4), np.float32))
label = ms.Tensor(np.array([0, 2], np.int32))
for number in range(int(sys.argv[1])):
    print("loss", step(x, label).asnumpy(), flush=True)
    if len(sys.argv) > 2:
        exec(sys.argv[2])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def configure(folder: Path, **common: object) -> None:
    settings = {
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **common,
    }
    sections = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "train.py", *arguments]


def train(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    return subprocess.run(command(*arguments), cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def arrays(folder: Path) -> list[Path]:
    return sorted((folder / "dump").rglob("*.npy"))


def assert_all_whole(folder: Path) -> None:
    files = arrays(folder)
    assert files
    for file in files:
        assert np.load(file).size


def test_a_dump_that_worked_says_so_and_ends_with_0(folder: Path) -> None:
    configure(folder, iteration="0-1", saved_data="full")
    done = train(folder, "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 3
    assert "2 of 3 dumped" in done.stderr
    assert str(folder / "dump") in done.stderr
    assert sorted(path.name for path in (folder / "dump/rank_0/Net/0").iterdir() if path.name.isdigit()) == ["0", "1"]
    assert_all_whole(folder)


@pytest.mark.parametrize(
    ("common", "words"),
    [
        ({"dump_mode": 2}, ["no operator is marked", "mindspore.set_dump"]),
        ({"dump_mode": 1, "kernels": ["MutMul"]}, ["No operator matched", "MutMul", 'Did you mean "MatMul"?']),
        ({"iteration": "7-9"}, ["No iteration that ran", "7-9"]),
    ],
)
def test_nothing_matched_is_a_loud_3(folder: Path, common: dict[str, object], words: list[str]) -> None:
    configure(folder, **common)
    done = train(folder, "2")
    assert done.returncode == 3, done.stderr
    assert "!! Nothing was dumped" in done.stderr
    for word in words:
        assert word in done.stderr
    assert not arrays(folder)


def test_a_wrong_configuration_stops_the_script_before_the_first_step(folder: Path) -> None:
    configure(folder, input_output=3)
    done = train(folder, "2")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Dump Json Parse Failed. input_output should be 0, 1, 2" in done.stderr
    assert "launch.py" not in done.stderr


def test_an_error_of_ours_shows_the_scripts_frames_only(folder: Path) -> None:
    missing = folder / "missing.json"
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "MINDSPORE_DUMP_CONFIG": str(missing)}
    command = [sys.executable, "-m", "msdump", "run", "train.py", "1"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    frames = [line for line in done.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) == 1
    assert "train.py" in frames[0]
    assert "During handling" not in done.stderr
    assert str(missing) in done.stderr


def test_a_script_that_fails_keeps_its_status_and_its_dump(folder: Path) -> None:
    configure(folder)
    done = train(folder, "3", "sys.exit(9)")
    assert done.returncode == 9
    assert "1 of 1 dumped" in done.stderr
    assert_all_whole(folder)


def test_a_dump_that_breaks_is_a_loud_4_and_training_goes_on(folder: Path) -> None:
    configure(folder)
    breaking = (
        "import shutil, pathlib; place = pathlib.Path('dump/rank_0/Net/0')\n"
        "if number == 0: shutil.rmtree(place); place.write_text('')"
    )
    done = train(folder, "3", breaking)
    assert done.returncode == 4, done.stderr
    assert done.stdout.count("loss") == 3
    assert "!! The dump is not complete" in done.stderr
    assert "lost" in done.stderr


def test_a_dump_that_is_removed_is_not_begun_anew(folder: Path) -> None:
    """Otherwise the report would tell of iterations that are nowhere."""
    configure(folder)
    done = train(folder, "3", "import shutil; shutil.rmtree('dump', ignore_errors=True)")
    assert done.returncode == 4, done.stderr
    assert done.stdout.count("loss") == 3
    assert "1 of 3 dumped" in done.stderr
    assert "it was removed or renamed" in done.stderr
    assert not (folder / "dump").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_whole_files(folder: Path, number: signal.Signals, status: int) -> None:
    configure(folder)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        command("1000000"), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline().startswith("loss")
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    assert "dump report" in errors
    assert_all_whole(folder)


def test_the_folder_of_an_earlier_run_is_named_in_a_warning(folder: Path) -> None:
    configure(folder, iteration="0")
    assert train(folder, "1").returncode == 0
    first = len(arrays(folder))
    done = train(folder, "1")
    assert done.returncode == 0
    assert "rank_0" in done.stderr
    assert len(arrays(folder)) == 2 * first


def test_verbose_names_what_is_left_out_and_why(folder: Path) -> None:
    configure(folder, dump_mode=1, kernels=["Add"])
    plain = train(folder)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    verbose = [*command()[:4], "-v", *command("1")[4:]]
    told = subprocess.run(verbose, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert told.returncode == 0
    assert "not chosen" not in plain.stderr
    lines = [line for line in told.stderr.splitlines() if line.startswith("not chosen: ")]
    assert lines and all(line.endswith(": the configuration does not name it") for line in lines)
    assert len(set(lines)) == len(lines) and not [line for line in lines if "/Add-op" in line]

"""`msdump.watch`: what lies on disk after PyTorch ran eagerly, and that the program did not notice."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode as current_mode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.errors import ConfigError  # noqa: E402
from msdump.frontends.torch.eager import program  # noqa: E402
from msdump.frontends.torch.operators import results_in  # noqa: E402

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def config(folder: Path, is_sync: bool = True, **common: Any) -> dict[str, Any]:
    settings = {
        "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **common,
    }  # fmt: skip
    return {"common_dump_settings": settings, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}


both_engines = pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])


class Net(nn.Module):
    """A convolution, a normalisation with state, a view, a matrix product, and a module that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        self.fc = nn.Linear(48, 5)
        self.end = nn.Linear(5, 5)

    def forward(self, x: Any) -> Any:
        return self.end(self.end(self.fc(self.features(x).flatten(1))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.cell(x.flatten(1, 2))[0][:, -1]


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.2, batch_first=True)
        self.end = nn.Linear(6, 5)

    def forward(self, x: Any) -> Any:
        y = checkpoint(self.layer, x.flatten(1, 2), use_reentrant=False)
        return self.end(y.mean(1))


def train(model: Any, steps: int = 2, autocast: bool = False) -> list[Any]:
    """Losses, gradients and state of a few steps."""
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    seen: list[Any] = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(model(torch.randn(4, 1, 6, 6)), torch.tensor([0, 1, 2, 3]))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
    return [*seen, *(value.clone() for value in model.state_dict().values())]


@both_engines
@pytest.mark.parametrize("name", ["relu", "nothing"])
def test_an_iteration_without_a_selected_operator_is_none(name: str, is_sync: bool, tmp_path: Path) -> None:
    """The report counts what readers find, as where the last iteration holds what a script prints in the end."""
    model = nn.Linear(3, 2)
    with msdump.watch(model, config(tmp_path, is_sync, dump_mode=1, kernels=[f"name-regex(.*{name}.*)"])) as watch:
        for step in range(4):
            y = model(torch.ones(2, 3))
            (y.relu() if step < 3 else y).sum().backward()
    report = watch.report()
    assert report is not None and report.iterations_run == 4
    iterations = {tensor.iteration for tensor in msdump.open(tmp_path).tensors()} if name == "relu" else set()
    assert report.iterations_dumped == len(iterations) == (3 if name == "relu" else 0)
    assert name == "relu" or "No operator matched" in " ".join(report.advice)


@both_engines
# Not every CPU has an LSTM in bfloat16.
@pytest.mark.parametrize(
    ("kind", "autocast"), [(Net, False), (Net, True), (Recurrent, False), (Attentive, False), (Attentive, True)]
)
def test_training_gives_the_same_bits(kind: type[nn.Module], autocast: bool, is_sync: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = kind()
    plain = train(copy.deepcopy(model), autocast=autocast)
    with msdump.watch(model, config(tmp_path, is_sync)) as watch:
        watched = train(model, autocast=autocast)
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    report = watch.report()
    assert report is not None and report.iterations_dumped == 2 and not report.lost and not report.error
    assert set(report.skipped) <= {"empty tensor"}
    steps = msdump.open(tmp_path).tensors()
    assert {tensor.iteration for tensor in steps} == {0, 1}
    assert current_mode() is None


# -- every operator, bit for bit ---------------------------------------------------------------------------------------


class Recorder(TorchDispatchMode):
    """Copies of what each operator read and made: (type, number of this type, io, slot) -> bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[tuple[str, int, str, int], bytes] = {}
        self._counts: dict[str, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = str(func)
        number = self._counts[name] = self._counts.get(name, -1) + 1
        with _disable_current_modes():
            # Memory for a result is not read.
            given = [*args, *(value for name, value in (kwargs or {}).items() if name != "out")]
            read = [tensor.clone() for value in given for _, tensor in results_in(value)]
        result = func(*args, **(kwargs or {}))
        with _disable_current_modes():
            # Operators on lists return nothing of what they have written.
            made = [tensor.clone() for _, tensor in results_in(args[0] if result is None else result)]
        for io, tensors in ("input", read), ("output", made):
            for slot, tensor in enumerate(tensors):
                with _disable_current_modes():
                    self.bytes[name, number, io, slot] = tensor.contiguous().numpy().tobytes()
        return result


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "add_": lambda x, y: x.add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "view": lambda x, y: x.view(6),
    "turn": lambda x, y: x.view(2, 3).t().reshape(6),
    "write a part": lambda x, y: (x[1:3].zero_(), x)[1],
    "parts": lambda x, y: torch.cat(x.split(2)[::-1]),
    "write through a part": lambda x, y: (x.split(3)[0].mul_(3), x)[1],
    "several results": lambda x, y: x.reshape(2, 3).max(1).values.repeat(3) + y,
    "out": lambda x, y: torch.add(x, y, out=torch.empty(6)),
    "lists in place": lambda x, y: (torch._foreach_add_([x, y], [y, x]), x)[1],
    "out that is an input": lambda x, y: torch.mul(x, y, out=x),
    "lists": lambda x, y: torch._foreach_add([x, y], 1.0)[1],
    "write lists": lambda x, y: (torch._foreach_mul_([x], 0.5), x)[1],
    "set data": lambda x, y: (setattr(x, "data", y.clone()), x)[1],
    "batch norm": lambda x, y: torch.ops.aten.native_batch_norm(
        x.reshape(2, 3), None, None, y[:3], y[3:].abs(), True, 0.5, 1e-5
    )[0].reshape(6),
}  # fmt: skip
Program = list[tuple[str, int, int]]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(program=[("view", 0, 0), ("add_", 0, 1), ("add", 2, 1)], is_sync=True)
@example(program=[("batch norm", 0, 1), ("add", 0, 1)], is_sync=False)
@example(program=[("out that is an input", 0, 0)], is_sync=False)
@given(
    program=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), max_size=8),
    is_sync=st.booleans(),
)
def test_files_hold_what_each_operator_read_and_made(
    program: Program, is_sync: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("dump")
    with msdump.watch(config=config(folder, is_sync)), Recorder() as recorder:
        values = [torch.linspace(-1, 1, 6), torch.linspace(2, 3, 6)]
        for name, first, second in program:
            values.append(STEPS[name](values[first % len(values)], values[second % len(values)]))
    found = {}
    for tensor in msdump.open(folder).tensors():
        kind, _, number = tensor.op_name.rpartition("/")[2].rpartition("-op")
        found[kind, int(number), tensor.io, tensor.slot] = np.ascontiguousarray(tensor.load()).tobytes()
    assert found == recorder.bytes


# -- iterations --------------------------------------------------------------------------------------------------------


def names(folder: Path, iteration: int) -> set[str]:
    return {
        tensor.op_name.rpartition("/")[2] for tensor in msdump.open(folder).tensors() if tensor.iteration == iteration
    }


def test_the_last_iteration_of_a_script_that_closes_nothing(tmp_path: Path) -> None:
    """Python begins no thread any longer when it ends."""
    script = (
        "import json, sys, torch, msdump\n"
        "msdump.watch(config=json.loads(sys.argv[1])).__enter__()\n"
        "torch.nn.Linear(3, 2)(torch.ones(4, 3))\n"
    )
    content = json.dumps(config(tmp_path / "dump", saved_data="full"))
    run = subprocess.run([sys.executable, "-c", script, content], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Traceback" not in run.stderr
    assert len(list((tmp_path / "dump").rglob("*addmm*.output.0.*.npy"))) == 1
    assert len(list((tmp_path / "dump").rglob("statistic.csv"))) == 1


@both_engines
@pytest.mark.parametrize("saved", ["tensor", "statistic", "full"])
def test_shapes_that_are_others_in_each_step_fill_no_memory(
    is_sync: bool, saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators are forgotten and told anew; files and their numbers are those of a run that forgets nothing."""
    dumps = []
    for limit in (10**9, 30):
        monkeypatch.setattr(program, "_MAX_VARIANTS", limit)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        path = tmp_path / f"limit{limit}"
        with msdump.watch(model, config(path, is_sync, saved_data=saved)) as watch:
            for step in range(12):
                model(torch.ones(step % 5 + 1, 3)).square().mean().backward()
            stages = watch._program.stages
            known = sum(stage.variants for stage in stages)
            report = watch.report()
        assert known <= 30 + 40 or limit > 30
        assert not report.error and not report.lost
        rows = [row for file in sorted(path.rglob("statistic.csv")) for row in file.read_text().splitlines()]
        tensors = sorted(
            (tensor.graph_id, tensor.iteration, tensor.op_name, tensor.io, tensor.slot, tensor.load().tobytes())
            for tensor in msdump.open(path).tensors()
        )
        dumps.append((tensors, sorted(_without_numbers(row) for row in rows), report.operators_seen, known))
    assert dumps[0][:3] == dumps[1][:3]
    assert dumps[0][3] > dumps[1][3]


def _without_numbers(row: str) -> str:
    """A row of statistic.csv without task and time stamp."""
    cells = row.split(",")
    return ",".join((*cells[:2], *cells[5:]))


def test_a_block_that_another_thread_leaves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dump ends, with a warning; the first thread computes on, and may enter another block."""
    model = nn.Linear(3, 2)
    first, second = msdump.watch(model, config(tmp_path / "a")), msdump.watch(model, config(tmp_path / "b"))

    def work() -> None:
        first.__enter__()
        model(torch.ones(4, 3))
        thread = threading.Thread(target=first.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        model(torch.ones(5, 3))
        with second:
            model(torch.ones(6, 3))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    rows = [
        {tensor.shape[0] for tensor in msdump.open(tmp_path / name).tensors(io="output") if "addmm" in tensor.op_type}
        for name in "ab"
    ]
    assert rows == [{4}, {6}]
    assert [record.levelname for record in caplog.records if "another one" in record.message] == ["WARNING"]


# -- what else a configuration asks for --------------------------------------------------------------------------------


def test_eager_and_compiled_dumps_agree(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Net()
    other = copy.deepcopy(model)
    with msdump.watch(model, config(tmp_path / "eager")):
        train(model)
    with msdump.dump(config(tmp_path / "compiled")):
        optimizer = torch.optim.Adam(other.parameters(), lr=0.1)
        compiled = torch.compile(other, backend="msdump")
        torch.manual_seed(1)
        for _ in range(2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(compiled(torch.randn(4, 1, 6, 6)), torch.tensor([0, 1, 2, 3]))
            loss.backward()
            nn.utils.clip_grad_norm_(other.parameters(), 1.0)
            optimizer.step()
    torch._dynamo.reset()
    comparison = msdump.compare(tmp_path / "eager", tmp_path / "compiled")
    assert comparison.first_wrong is None
    assert comparison.is_agreeing and len(list(comparison.operators)) > 30


def test_an_overflow_is_found(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with msdump.watch(model, config(tmp_path, False, op_debug_mode=3)) as watch:
        (model(torch.full((1, 3), 1.0)).exp() * 1e38 * 1e38).sum()
    report = watch.report()
    assert report is not None and report.overflows and "aten.mul.Tensor-op1" in report.overflows[0]


def test_statistics(tmp_path: Path) -> None:
    model = Net()
    with msdump.watch(model, config(tmp_path, False, saved_data="statistic")):
        train(model)
    rows = msdump.stat(tmp_path).rows
    assert len(rows) > 100


@both_engines
@pytest.mark.parametrize("input_output", [0, 1, 2])
def test_large_tensors_are_measured_where_they_lie(
    is_sync: bool, input_output: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of copies. The rows are those of a dump that has the tensors too."""
    # Where it sees operators, PyTorch runs others than under a mode, which sees those of the other dump.
    monkeypatch.setenv(NATIVE, "0")

    def rows(saved_data: str) -> list[str]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(200, 300), nn.ReLU(inplace=True), nn.Linear(300, 10))
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        path = tmp_path / saved_data
        columns = ["max", "min", "avg", "l2norm", "nan count", "zero count"]
        common = {"saved_data": saved_data, "input_output": input_output, "statistic_category": columns}
        with msdump.watch(model, config(path, is_sync, **common)) as watch:
            for scale in (1.0, torch.inf):
                optimizer.zero_grad()
                out = model(torch.rand(150, 200) * scale)
                wide = torch.complex(out, out).abs().tile(20, 20).to(torch.bfloat16)
                (wide.float() * (wide > 0)).sum().backward()
                optimizer.step()
        report = watch.report()
        assert report is not None and not report.error and not report.lost
        files = sorted(path.rglob("statistic.csv"))
        return sorted([_without_numbers(row) for file in files for row in file.read_text().splitlines()[1:]])

    measured = rows("statistic")
    assert measured == rows("full")
    assert any("(3000,200)" in row and "bfloat16" in row for row in measured)


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_a_second_block_inside_of_one_is_refused(tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path)), pytest.raises(ConfigError, match="one block in a thread"):
        msdump.watch().__enter__()
    with msdump.watch(config=config(tmp_path / "next")):
        torch.ones(3).sin()
    assert "aten.sin.default-op0" in names(tmp_path / "next", 0)


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a torch\.nn\.Module, or None for all modules, got dict"):
        msdump.watch(config(tmp_path))


def test_a_wrong_configuration_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"common_dump_settings\.saved_data"):
        msdump.watch(config=config(tmp_path, saved_data="tensors")).__enter__()
    assert current_mode() is None


def test_an_empty_variable_lets_nothing_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "")
    with msdump.watch() as watch:
        assert current_mode() is None
    assert watch.report() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_runs_as_it_is(tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path)):
        torch.ones(3).sin()
        pid = os.fork()
        if pid == 0:
            ok = torch.equal(torch.zeros(3).cos(), torch.ones(3))
            os._exit(0 if ok else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert "aten.cos.default-op0" not in names(tmp_path, 0)


_FORKING = """
import json, os, sys, torch, msdump

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.nn.Linear(2, 2)(torch.full((2,), float(index))).detach() * 0 + index

model = torch.nn.Linear(2, 1)
with msdump.watch(config=json.loads(sys.argv[1])) as watch:
    loader = torch.utils.data.DataLoader(Squares(), 2, num_workers=2, multiprocessing_context="fork")
    for batch in loader:
        model(batch).sum().backward()
    if "child" in sys.argv:
        pid = os.fork()
        if pid == 0:
            model(torch.ones(1, 2))
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
print(watch.report().iterations_run)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("has_child", [False, True])
def test_processes_that_load_data_are_no_surprise(has_child: bool, tmp_path: Path) -> None:
    """They run as they are, without a word; another forked process is told how to have its tensors."""
    command = [sys.executable, "-c", _FORKING, json.dumps(config(tmp_path / "dump"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *(["child"] if has_child else [])],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "4\n"
    warning = "dumps nothing itself: fork it before the block of msdump.watch begins, with a RANK_ID of its own"
    assert done.stderr.count("was forked") == done.stderr.count(warning) == has_child


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_script_that_knows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for _ in range(3):\n"
        "    model(torch.ones(4, 3)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    import json

    (tmp_path / "dump.json").write_text(json.dumps(config(tmp_path / "dump")))
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 dumped" in done.stderr
    for iteration in range(3):
        assert {"aten.addmm.default-op0", "aten.mm.default-op0"} <= names(tmp_path / "dump", iteration)

"""Modes that capture and replay: results, the trace, output_code.py, saved tensors, and the backend npugraph_ex."""

from __future__ import annotations

import configparser
import contextlib
import importlib.util
import json
import logging
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair
from msdump.errors import ConfigError
from msdump.torchair import npugraph_ex
from msdump.torchair.debug_save import debug_log
from tests.torchair.debug_saves import (
    CUSTOM,
    backend_for,
    config_for,
    expected_files,
    graph_files,
    models,
    run_folder,
)
from tests.torchair.test_training import small_model, train

torch = pytest.importorskip("torch")

from msdump.torchair.aclgraph import tensor_saving  # noqa: E402

X = torch.linspace(-1, 1, 6).reshape(2, 3)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of this test's debug folders; the save is on."""
    monkeypatch.setenv(debug_log.TORCH_DEBUG, "1")
    monkeypatch.setattr(torch._dynamo.utils, "add_file_handler", contextlib.ExitStack)
    with torch._dynamo.config.patch(debug_dir_root=str(tmp_path / "debug")):
        yield tmp_path / "debug"


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_training_gives_the_same_bits(is_saved: bool, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for mode in ("npugraph_ex", "max-autotune"):
        if not is_saved or mode == "max-autotune":
            monkeypatch.delenv(debug_log.TORCH_DEBUG, raising=False)
        model = small_model()
        results.append(train(model, torch.compile(model, backend=backend_for(mode), fullgraph=True)))
        torch._dynamo.reset()
    for captured, plain in zip(*results, strict=True):
        assert torch.equal(captured, plain)
    assert root.exists() == is_saved


def test_the_trace_of_the_first_run(root: Path) -> None:
    compiled = torch.compile(lambda x: (x @ x.t()).split(1), backend=backend_for("npugraph_ex"), dynamic=False)
    with torch.no_grad():
        for _ in range(2):
            compiled(X)
    (path,) = run_folder(root).glob("model__*/*.json")
    match = re.fullmatch(r"graph_(\d+)_id_(\d+)_rank_0_pid_(\d+)_ts_\d{20}\.json", path.name)
    assert match is not None and int(match[3]) == os.getpid()
    events = json.loads(path.read_text())
    assert [event["name"] for event in events] == [
        "aten.t.default",
        "aten.mm.default",
        "aten.split.Tensor",
        "_operator.getitem",
        "_operator.getitem",
    ]
    for number, event in enumerate(events):
        assert event["ph"] == "X" and event["tid"] == "stream0" and event["pid"] == os.getpid()
        assert event["args"]["Task Id"] == number and event["dur"] > 0
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(end <= after["ts"] for end, after in zip(ends, events[1:], strict=False))
    assert events[1]["args"]["Outputs"] == ["float32[2, 2]"]


def script_of(root: Path) -> Path:
    (path,) = run_folder(root).glob("model__*/forward/output_code.py")
    return path


def loaded(path: Path) -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("output_code_of_a_test", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_runs_in_a_fresh_process_without_msdump(root: Path, tmp_path: Path) -> None:
    table = torch.tensor([0.5, float("inf"), -0.0])

    def function(x: Any) -> Any:
        return (x * table).clamp(max=1e9), x.new_zeros(2, dtype=torch.int64), torch.cat([x.sin(), x.cos()])

    with torch.no_grad():
        torch.compile(function, backend=backend_for("npugraph_ex"), dynamic=False)(X)
    path = script_of(root)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    for part in ("_get_closure_vars()", "compile_configs['mode']", "AclGraphCacheInfo(", "acl_graph.load(", "def main"):
        assert part in text
    assert "msdump" not in text.replace("# File: ", "").replace(__file__, "")
    done = subprocess.run([sys.executable, "-I", path], capture_output=True, text=True, cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "output 0: torch.float32 (2, 3)",
        "output 1: torch.int64 (2,)",
        "output 2: torch.float32 (4, 3)",
    ]


def reproduces(root: Path, function: Any, *inputs: Any, dynamic: bool = False) -> Any:
    """The script gives what the function gives, on its inputs; and it runs on those that it makes up."""
    with torch.no_grad():
        expected = torch.compile(function, backend=backend_for("npugraph_ex"), dynamic=dynamic)(*inputs)
    script = loaded(script_of(root))
    sizes = [size for x in inputs for size in x.shape] if dynamic else []
    given = [*dict.fromkeys(sizes), *inputs] if dynamic else inputs
    for result, value in zip(script.kernel(*given), expected, strict=False):
        assert torch.equal(result, value)
    script.main()
    return script


def test_constants_are_carried_along(root: Path) -> None:
    def function(x: Any) -> Any:
        scale = torch.tensor([[0.5, float("nan"), -0.0], [float("-inf"), 1e-40, 3.0]])
        index = torch.tensor([1, 0])
        return (x[index] * scale).nan_to_num(), torch.tensor([True, False]), torch.tensor(2.5, dtype=torch.bfloat16) * x

    reproduces(root, function, X)


def test_symbolic_sizes_get_two_and_their_index(root: Path) -> None:
    script = reproduces(root, lambda x: (x.view(-1) * x.shape[0],), torch.ones(5, 7), dynamic=True)
    assert script.main()[0].shape == (2 * 3,)


def test_sizes_that_the_graph_refuses_are_those_of_the_first_run(root: Path) -> None:
    script = reproduces(root, lambda x: (x.view(-1, 4, x.shape[1]) + 1,), torch.ones(8, 7), dynamic=True)
    assert script.main()[0].shape == (2, 4, 7)


def test_graphs_in_a_graph(root: Path) -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y.cos() * 2, (x,))

    for x in (X + 5, X - 5):
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(function, backend=backend_for("npugraph_ex"))(x), function(x))
        torch._dynamo.reset()
    script = loaded(sorted(run_folder(root).glob("model__*/forward/output_code.py"))[0])
    assert torch.equal(script.kernel(X + 5)[0], (X + 5).sin() + 1)
    assert torch.equal(script.kernel(X - 5)[0], (X - 5).cos() * 2)


def test_a_script_refuses_other_shapes(root: Path) -> None:
    script = reproduces(root, lambda x: (x + 1,), X)
    script._is_first_run = True
    with pytest.raises(AssertionError, match="expected size"):
        script.kernel(X[:1])


# -- dump_config.enable_dump ---------------------------------------------------------------------------


def dumping(path: Path, stage: str = "optimized") -> Any:
    config = config_for("npugraph_ex")
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(path)
    config.dump_config.data_dump_stage = stage
    return config


@pytest.mark.parametrize(
    ("stage", "nodes"),
    [
        ("original", {"arg0_1", "mul", "add", "getitem", "getitem_1"}),
        ("optimized", {"arg0_1", "add", "getitem", "getitem_1"}),
    ],
)
def test_values_of_a_graph_are_saved(stage: str, nodes: set[str], tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return (x * 1 + 1).topk(2)

    compiled = torch.compile(function, backend=torchair.get_npu_backend(compiler_config=dumping(tmp_path, stage)))
    with torch.no_grad():
        for step in range(2):
            values, _ = compiled(X + step)
    folder = tmp_path / "worldsize1_global_rank0"
    assert {path.name for path in folder.iterdir()} == {
        f"{node}_device_0_{step}.pt" for node in nodes for step in range(2)
    }
    assert torch.equal(torch.load(folder / "arg0_1_device_0_1.pt", weights_only=True), X + 1)
    assert torch.equal(torch.load(folder / "add_device_0_1.pt", weights_only=True), X + 2)
    assert torch.equal(torch.load(folder / "getitem_device_0_1.pt", weights_only=True), values)


def test_a_dump_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = dumping(tmp_path)
    (tmp_path / "worldsize1_global_rank0").write_text("in the way")
    compiled = torch.compile(lambda x: x.sin() + 1, backend=torchair.get_npu_backend(compiler_config=config))
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(compiled(X), X.sin() + 1)
    (error,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "The dump is not complete, the model continues without it." in error.getMessage()


def test_a_view_is_saved_without_what_lies_around_it(tmp_path: Path) -> None:
    tensor_saving.save_npugraph_tensor(torch.zeros(1000, 1000)[0], str(tmp_path / "row.pt"))
    assert (tmp_path / "row_device_0_0.pt").stat().st_size < 10_000


# -- other options of the mode ---------------------------------------------------------------------------


def test_graph_dump_has_the_fx_graphs(tmp_path: Path) -> None:
    config = config_for("npugraph_ex")
    config.debug.graph_dump.type = "py"
    config.debug.graph_dump.path = str(tmp_path / "graphs")
    with torch.no_grad():
        torch.compile(lambda x: (x * 1).view(-1), backend=torchair.get_npu_backend(compiler_config=config))(X)
    original, optimized = sorted((tmp_path / "graphs").iterdir(), reverse=True)
    assert original.name.startswith("dynamo_original_graph_") and "aten.mul" in original.read_text()
    assert optimized.name.startswith("dynamo_optimized_graph_") and "aten.reshape" in optimized.read_text()


@pytest.mark.parametrize("kind", ["txt", "pbtxt"])
def test_graph_dump_of_another_type_is_refused(kind: str, tmp_path: Path) -> None:
    config = config_for("npugraph_ex")
    config.debug.graph_dump.type = kind
    config.debug.graph_dump.path = str(tmp_path)
    compiled = torch.compile(lambda x: x.sin(), backend=torchair.get_npu_backend(compiler_config=config))
    with pytest.raises(Exception, match=f"Graph dump for aclGraph only support 'py' type, but got: {kind}"):
        compiled(X)
    assert not list(tmp_path.iterdir())


def test_run_eagerly(root: Path) -> None:
    config = config_for("npugraph_ex")
    config.debug.run_eagerly = True
    with torch.no_grad():
        torch.compile(lambda x: x.sin(), backend=torchair.get_npu_backend(compiler_config=config))(X)
    (model,) = models(root)
    assert model["forward"] == expected_files("npugraph_ex", "forward")


def test_the_backend_of_that_name(root: Path) -> None:
    seen = []

    def custom(module: Any, example_inputs: Any, config: Any) -> None:
        seen.append(config.mode.value)

    options = {"remove_noop_ops": False, "inplace_pass": False, "post_grad_custom_pre_pass": custom}
    compiled = torch.compile(lambda x: (x * 1).relu(), backend=npugraph_ex.backend, options=options)
    with torch.no_grad():
        assert torch.equal(compiled(X), X.relu())
    (model,) = models(root, "npugraph_ex")
    stages = [name[4:-4] for name in graph_files(model["forward"])]
    assert "aot_forward_graph_after_eliminate_self_copy" in stages
    assert stages.index("aot_forward_graph_after_eliminate_self_copy") + 1 == stages.index(
        "aot_forward_graph_after_replace_dynamic_workspace_ops"
    )
    assert "aot_forward_graph_after_optimize_noop_ops" not in stages
    assert "aot_forward_graph_after_reinplace_inplaceable_ops_pass" not in stages
    assert seen == ["npugraph_ex"] and len(CUSTOM) == 2


def test_options_of_that_backend_say_what_the_configuration_says(tmp_path: Path) -> None:
    config = npugraph_ex.config_from_options(
        {
            "dump_tensor_data": True,
            "data_dump_dir": str(tmp_path),
            "data_dump_stage": "original",
            "force_eager": True,
            "capture_limit": 3,
            "input_inplace_pass": False,
            "capture_error_mode": "relaxed",
        }
    )
    assert config.mode.value == "npugraph_ex" and config.debug.run_eagerly and config.dump_config.enable_dump
    assert config.dump_config.dump_path.value == str(tmp_path)
    assert config.dump_config.data_dump_stage.value == "original"
    assert config.debug.aclgraph.static_capture_size_limit.value == "3"
    assert config.debug.aclgraph.disable_reinplace_input_mutated_ops_pass


OPTIONS: dict[str, tuple[str, Any]] = {
    "frozen_parameter": ("experimental_config.frozen_parameter", True),
    "use_graph_pool": ("aclgraph_config.use_custom_pool", (0, 1)),
    "reuse_graph_pool_in_same_fx": ("debug.aclgraph.disable_mempool_reuse_in_same_fx", False),
    "capture_error_mode": ("experimental_config.aclgraph._capture_error_mode", "relaxed"),
}
FOR_AN_NPU = {
    "clone_input": False,
    "clone_output": True,
    "deadlock_check": True,
    "disable_static_kernel_compile_cache": True,
    "force_recapture": True,
    "static_kernel_compile": True,
    "super_kernel_debug_options": {"debug_per_op_max_core_num": 1},
    "super_kernel_optimize": True,
    "super_kernel_optimize_options": {"early_start": 1},
}


def test_all_options_of_that_backend_are_taken_and_those_for_an_npu_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npugraph_ex, "_warned", set())
    given = {**{name: value for name, (_, value) in OPTIONS.items()}, **FOR_AN_NPU}
    for scale in (2, 3):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, scale=scale: x * scale, backend=npugraph_ex.backend, options=given)
        assert torch.equal(compiled(X), X * scale)
    (record,) = [record for record in caplog.records if "no effect" in record.getMessage()]
    assert all(f"{name} = " in record.getMessage() for name in FOR_AN_NPU)
    assert not any(name in record.getMessage() for name in OPTIONS)
    config: Any = npugraph_ex.config_from_options(given)
    for path, value in OPTIONS.values():
        option = config
        for part in path.split("."):
            option = getattr(option, part)
        assert option.raw == (not value if "disable" in path else value)


def test_defaults_of_that_backend_are_not_worth_a_word(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npugraph_ex, "_warned", set())
    defaults = {"static_kernel_compile": False, "super_kernel_optimize_options": None, "clone_input": True}
    torch.compile(lambda x: x + 1, backend=npugraph_ex.backend, options=defaults)(X)
    assert not [record for record in caplog.records if "no effect" in record.getMessage()]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"static_kernel_compile": "on"}, r"option static_kernel_compile: expected one of \[True, False\], got 'on'"),
        ({"super_kernel_debug_options": [1]}, r"expected dict or None, got \[1\]"),
        ({"force_eagerly": True}, r"^Invalid option 'force_eagerly', allowed options: \['capture_error_mode', .*"),
        ({"capture_error_mode": "loud"}, r"expected one of \['global', 'thread_local', 'relaxed'\], got 'loud'"),
        ({"force_eager": "yes"}, r"Value 'yes' \(type: <class 'str'>\) not in optional list"),
        ({"inplace_pass": "no"}, r"Value 'no'"),
    ],
)
def test_wrong_options_of_that_backend(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        npugraph_ex.config_from_options(options)
    assert isinstance(caught.value, ValueError)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_graphs_replay() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).cuda()
    compiled = torch.compile(model, backend=backend_for("npugraph_ex"), dynamic=False)
    with torch.no_grad():
        results = []
        for step in range(4):
            x = torch.full((4, 8), float(step), device="cuda")
            results.append((compiled(x), model(x)))
    for captured, eager in results:
        torch.testing.assert_close(captured, eager)
    x = torch.randn(4, 8, device="cuda")
    for _ in range(3):
        model.zero_grad()
        compiled(x).sum().backward()
        gradient = model[0].weight.grad.clone()
        model.zero_grad()
        model(x).sum().backward()
        torch.testing.assert_close(gradient, model[0].weight.grad)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("reuses_pool", [False, True])
def test_options_of_a_capture_change_no_result(is_frozen: bool, reuses_pool: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).cuda()
    options = {
        "frozen_parameter": is_frozen,
        "reuse_graph_pool_in_same_fx": reuses_pool,
        "capture_error_mode": "thread_local",
    }
    compiled = torch.compile(model, backend=npugraph_ex.backend, options=options, dynamic=True)
    inputs = [torch.randn(rows, 8, device="cuda") for rows in (4, 5, 4, 6, 5)]
    with torch.no_grad():
        results = [compiled(x) for x in inputs]
        for captured, x in zip(results, inputs, strict=True):
            torch.testing.assert_close(captured, model(x))
        # Weights that are written where they lie, and weights that are put in their place.
        model[0].weight.mul_(2)
        torch.testing.assert_close(compiled(inputs[0]), model(inputs[0]))
        model[0].weight.data = model[0].weight.data + 1
        torch.testing.assert_close(compiled(inputs[0]), model(inputs[0]))


def installed(folder: Path, name: str, backends: str) -> Path:
    """A distribution with these entry points."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[torch_dynamo_backends]\n{backends.strip()}\n")
    return folder


def run_by_name(code: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, root)))}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240)


def own_entry_points() -> str:
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).resolve().parents[2] / "setup.cfg")
    return settings["options.entry_points"]["torch_dynamo_backends"]


def test_pytorch_finds_the_backend_by_its_name(tmp_path: Path) -> None:
    code = (
        "import torch; x = torch.ones(3)\n"
        "f = torch.compile(lambda x: x.sin(), backend='npugraph_ex', options={'remove_noop_ops': False})\n"
        "assert torch.equal(f(x), x.sin())\n"
    )
    done = run_by_name(code, installed(tmp_path, "found", own_entry_points()))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("is_first", "stands_in"),
    [(True, False), (False, False), (True, True)],
    ids=["ours first", "theirs first", "ours first, with the stand-in"],
)
def test_the_name_belongs_to_torchair_where_that_is_installed(is_first: bool, stands_in: bool, tmp_path: Path) -> None:
    ours = installed(tmp_path / "ours", "msdump", own_entry_points())
    theirs = installed(tmp_path / "theirs", "npugraph_ex", "npugraph_ex = real_npugraph_ex:serve")
    (theirs / "real_npugraph_ex.py").write_text(
        "def serve(module, inputs, options=None):\n    print('theirs', options)\n    return module.forward\n"
    )
    code = (
        "import torch, msdump\n"
        f"if {stands_in}:\n    msdump.install_aliases(['torchair'], prefer_real=False)\n    import torchair\n"
        "options = {'remove_noop_ops': False}\n"
        "torch.compile(lambda x: x.sin(), backend='npugraph_ex', options=options)(torch.ones(3))\n"
    )
    done = run_by_name(code, *((ours, theirs) if is_first else (theirs, ours)))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("" if stands_in else "theirs {'remove_noop_ops': False}\n")

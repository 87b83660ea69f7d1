"""TORCH_COMPILE_DEBUG=1: the tree of files, the log, and a training that never notices."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair
from msdump.errors import ConfigError
from msdump.torchair.debug_save import debug_log
from tests.torchair import debug_saves
from tests.torchair.debug_saves import (
    CATS,
    CUSTOM,
    DECOMPOSE,
    MODES,
    NOOPS,
    PATTERNS,
    REINPLACE,
    REINPLACE_INPUTS,
    backend_for,
    config_for,
    expected_files,
    graph_files,
    models,
    run_folder,
)

torch = pytest.importorskip("torch")

from msdump.torchair import ge_mode  # noqa: E402
from msdump.torchair.debug_save import model_folder  # noqa: E402
from msdump.torchair.ge import registry  # noqa: E402

OWN_LOG = torch._dynamo.utils.add_file_handler
X = torch.linspace(-1, 1, 6).reshape(2, 3)
LINE = re.compile(
    r"\[(DEBUG|INFO|WARNING|ERROR|EVENT)\] TORCHAIR\((?P<pid>\d+),(?P<exe>\S+)\):"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\.\d{3} \[\w+\.py:\d+\](?P<tid>\d+) (?P<text>.*)"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder that the debug folders of this test lie in; the save is on."""
    folder = tmp_path / "torch_compile_debug"
    monkeypatch.setenv(debug_log.TORCH_DEBUG, "1")
    monkeypatch.setattr(model_folder, "_numbers", defaultdict(itertools.count))
    # PyTorch leaves its own log open.
    monkeypatch.setattr(torch._dynamo.utils, "add_file_handler", contextlib.ExitStack)
    monkeypatch.setattr(debug_log.incomplete, "_has_warned", False)
    monkeypatch.setattr(ge_mode, "_no_graph", debug_log.OneWarning("The debug save has no GE graph of everything"))
    with torch._dynamo.config.patch(debug_dir_root=str(folder)):
        yield folder


@pytest.fixture
def told() -> Iterator[logging.Logger]:
    """The logger as it is when the variable was set before the import."""
    logger = torchair.logger
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(logging.ERROR)
    for handler in list(logger.handlers):
        if isinstance(handler, logging.FileHandler):
            logger.removeHandler(handler)
            handler.close()


def train(function: Callable[..., Any], backend: Any, **options: Any) -> tuple[Any, Any]:
    """Result and gradient."""
    x = X.clone().requires_grad_()
    result = torch.compile(function, backend=backend, **options)(x)
    result.square().sum().backward()
    return result.detach(), x.grad


def halves(x: Any) -> Any:
    return torch.cat([(x + 1).relu(), x.view(3, 2).view(2, 3) * 1]).sin()


def unchanged(module: Any, example_inputs: Any, config: Any) -> None:
    """A custom pass that only looks."""
    assert len(example_inputs) == len([node for node in module.graph.nodes if node.op == "placeholder"])
    assert config.mode.value in MODES


def model_names(root: Path, tool: str = "torchair") -> list[str]:
    return sorted(path.name for path in run_folder(root, tool).glob("model__*"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("has_custom_passes", [False, True])
def test_files_of_forward_and_backward(
    mode: str, has_custom_passes: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(mode)
    if has_custom_passes:
        config.post_grad_custom_pre_pass = unchanged
        config.post_grad_custom_post_pass = unchanged
    saved = train(halves, torchair.get_npu_backend(compiler_config=config))
    (model,) = models(root)
    assert set(model) == {"", "forward", "backward"}
    without = () if has_custom_passes else CUSTOM
    for phase in ("forward", "backward"):
        assert graph_files(model[phase]) == expected_files(mode, phase, without)
        others = set(model[phase]) - set(graph_files(model[phase]))
        assert others == (set() if mode == "max-autotune" else {"output_code.py"})
    assert len(graph_files(model["forward"])) == (16 if mode == "max-autotune" else 15) + 2 * has_custom_passes
    assert "dynamo_out_graph.txt" in model[""]
    traces = [name for name in model[""] if name.endswith(".json")]
    assert len(traces) == (0 if mode == "max-autotune" else 2)
    torch._dynamo.reset()
    monkeypatch.delenv(debug_log.TORCH_DEBUG)
    for value, expected in zip(saved, train(halves, backend_for("max-autotune")), strict=True):
        assert torch.equal(value, expected)


@pytest.mark.parametrize(
    ("mode", "path", "value", "without"),
    [
        ("max-autotune", "experimental_config.remove_noop_ops", False, (NOOPS,)),
        ("npugraph_ex", "experimental_config.pattern_fusion_pass", False, (PATTERNS,)),
        ("npugraph_ex", "debug.aclgraph.remove_cat_ops", False, (CATS,)),
        ("npugraph_ex", "debug.aclgraph.disable_reinplace_inplaceable_ops_pass", True, (REINPLACE,)),
        (
            "npugraph_ex",
            "debug.aclgraph.disable_reinplace_input_mutated_ops_pass",
            True,
            (REINPLACE_INPUTS, DECOMPOSE),
        ),
    ],
)
def test_a_pass_that_is_off_leaves_no_file(mode: str, path: str, value: Any, without: Any, root: Path) -> None:
    config = config_for(mode)
    owner: Any = config
    *groups, name = path.split(".")
    for group in groups:
        owner = getattr(owner, group)
    setattr(owner, name, value)
    with torch.no_grad():
        torch.compile(halves, backend=torchair.get_npu_backend(compiler_config=config))(X)
    (model,) = models(root)
    assert graph_files(model["forward"]) == expected_files(mode, "forward", (*CUSTOM, *without))


@pytest.mark.parametrize("ge_type", ["txt", "py"])
def test_ge_files_have_the_type_of_the_graph_dump(ge_type: str, root: Path, tmp_path: Path) -> None:
    config = config_for("max-autotune")
    config.debug.graph_dump.type = ge_type
    config.debug.graph_dump.path = str(tmp_path / "graphs")
    with torch.no_grad():
        torch.compile(lambda x: x + x, backend=torchair.get_npu_backend(compiler_config=config))(X)
    (model,) = models(root)
    assert model["forward"] == expected_files("max-autotune", "forward", ge_type=ge_type)
    assert sorted(path.suffix for path in (tmp_path / "graphs").iterdir()) == [f".{ge_type}"] * 2


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo asks for it behind a graph break
@pytest.mark.parametrize("mode", MODES)
def test_every_backward_lies_beside_its_own_forward(mode: str, root: Path) -> None:
    """TorchAir puts both into the folder of the second graph."""

    def broken(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return y.sin()

    result, gradient = train(broken, backend_for(mode), dynamic=False)
    assert torch.equal(result, (X * 2).sin())
    torch.testing.assert_close(gradient, 4 * (2 * X).sin() * (2 * X).cos())
    first, second = models(root)
    for model in (first, second):
        assert set(model) == {"", "forward", "backward"}
        for phase in ("forward", "backward"):
            assert graph_files(model[phase]) == expected_files(mode, phase)
    folders = sorted(run_folder(root).glob("model__*"), key=lambda path: int(path.name[7:]))
    for folder, forward, backward in zip(folders, ("mul", "sin"), ("mul", "cos"), strict=True):
        assert f"aten.{forward}" in (folder / "forward" / f"000_aot_forward_{'graph'}.txt").read_text()
        assert f"aten.{backward}" in (folder / "backward" / "000_aot_backward_graph.txt").read_text()


def test_recompilation_gets_a_model_of_its_own(root: Path) -> None:
    compiled = torch.compile(lambda x: x * 2, backend=backend_for("max-autotune"), dynamic=False)
    for size in (2, 3, 2):
        compiled(torch.ones(size))
    first, second = models(root)
    assert first == second and first["forward"] == expected_files("max-autotune", "forward")
    assert model_names(root) == ["model__0", "model__1"]


@pytest.mark.parametrize("mode", MODES)
def test_models_count_from_when_the_save_is_on(mode: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(lambda x: x * 2, backend=backend_for(mode), dynamic=False)
    for size, value in enumerate(("0", "1", "0", "1"), start=2):
        monkeypatch.setenv(debug_log.TORCH_DEBUG, value)
        compiled(torch.ones(size))
    assert model_names(root) == ["model__0", "model__1"]
    torch.compile(lambda x: x * 3, backend="npugraph_ex")(X)
    assert model_names(root, "npugraph_ex") == ["model__0"]


def test_files_are_what_print_readable_gives_with_the_modes_of_the_original(root: Path) -> None:
    with torch.no_grad():
        torch.compile(halves, backend=backend_for("npugraph_ex"))(X)
    (folder,) = run_folder(root).glob("model__*")
    dynamo = (folder / "dynamo_out_graph.txt").read_text()
    assert "def forward(self, L_x_:" in dynamo and "# File: " in dynamo
    graph = (folder / "forward" / "000_aot_forward_graph.txt").read_text()
    assert graph.startswith("class <lambda>(torch.nn.Module):") and "torch.ops.aten.relu.default" in graph
    last = (folder / "forward" / "014_aot_forward_graph_after_resolve_default_stream_markers.txt").read_text()
    assert last.startswith("class GraphModule(torch.nn.Module):") and "torch.ops.aten.sin_.default" in last
    for path in run_folder(root).parent.rglob("*"):
        if "torchdynamo" not in path.parts:
            expected = 0o750 if path.is_dir() else 0o600 if path.name == "output_code.py" else 0o640
            assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.parametrize("value", [None, "0", "True", "1 ", ""])
@pytest.mark.parametrize("mode", MODES)
def test_nothing_happens_unless_the_variable_is_exactly_1(
    value: str | None, mode: str, root: Path, monkeypatch: pytest.MonkeyPatch, told: logging.Logger
) -> None:
    if value is None:
        monkeypatch.delenv(debug_log.TORCH_DEBUG)
    else:
        monkeypatch.setenv(debug_log.TORCH_DEBUG, value)
    with torch.no_grad():
        assert torch.equal(torch.compile(lambda x: x * 2, backend=backend_for(mode))(X), X * 2)
    assert not root.exists()


def test_lines_of_the_log(root: Path, told: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    with torch.no_grad():
        torch.compile(halves, backend=backend_for("npugraph_ex"))(X)
    path = run_folder(root) / "debug.log"
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert text in capsys.readouterr().out.replace("\r", "")
    messages = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match is None:
            # The rest of a message of several lines: a graph or a table.
            assert line.startswith(" ") and messages, line
            continue
        assert int(match["pid"]) == os.getpid() and match["exe"] == debug_log.executable()
        messages.append(match["text"])
    assert messages[0].startswith("compiler options: {'config.mode': 'npugraph_ex', ")
    assert any(message.startswith("[EVENT]") for message in text.splitlines())
    assert "compiler inputs: ['torch.float32[2, 3] on cpu']" in messages
    assert "graph: graph():" in messages
    noops = [message for message in messages if "(optimize_noop_ops)" in message]
    assert noops == ["After fx graph pass(optimize_noop_ops) optimization:"]
    told_of = text[text.index(noops[0]) :].splitlines()
    assert re.fullmatch(r"    cost [\d.]+s,", told_of[1])
    assert told_of[2] == "    before 9 nodes, after 8 nodes,"
    assert told_of[3].startswith("    removed nodes: ['mul")
    assert messages[-1] == f"[forward] Full debug info saved to: {next(run_folder(root).glob('model__*'))}/forward"


def test_a_second_backend_goes_on_in_the_same_log(root: Path, told: logging.Logger) -> None:
    for _ in range(2):
        backend_for("max-autotune")
    told.debug("hello")
    assert (run_folder(root) / "debug.log").read_text().count("hello") == 1


def test_the_log_is_missing_when_the_variable_came_after_the_import(root: Path) -> None:
    with torch.no_grad():
        torch.compile(lambda x: x + x, backend=backend_for("max-autotune"))(X)
    assert models(root) and not (run_folder(root) / "debug.log").exists()


def test_events_have_a_level_of_their_own() -> None:
    assert debug_log.EVENT == 35 and logging.getLevelName(35) == "EVENT"


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "msdump"]


@pytest.mark.parametrize("mode", MODES)
def test_a_folder_that_cannot_be_made_is_said_once(
    mode: str, root: Path, caplog: pytest.LogCaptureFixture, told: logging.Logger
) -> None:
    root.write_text("in the way")
    result, _ = train(halves, backend_for(mode))
    assert torch.equal(result, halves(X))
    (warning,) = warnings_of(caplog)
    assert warning.startswith("The debug save is not complete, the model continues without it. ")
    assert f"{root}: expected a folder, got a file" in warning


@pytest.mark.parametrize("what", ["file", "folder"])
def test_nothing_is_written_through_a_link(
    what: str, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(torch._dynamo.utils.get_debug_dir()) / "torchair" / "model__0"
    (tmp_path / "elsewhere").mkdir()
    if what == "folder":
        model.parent.mkdir(parents=True)
        model.symlink_to(tmp_path / "elsewhere")
    else:
        (model / "forward").mkdir(parents=True)
        (model / "forward" / "000_aot_forward_graph.txt").symlink_to(tmp_path / "elsewhere" / "file")
    with torch.no_grad():
        assert torch.equal(torch.compile(lambda x: x * 2, backend=backend_for("max-autotune"))(X), X * 2)
    assert not list((tmp_path / "elsewhere").iterdir())
    (warning,) = warnings_of(caplog)
    assert "got a symbolic link" in warning
    assert ("Failed to make directory" if what == "folder" else "Failed to create file") in warning
    if what == "file":
        assert len(list((model / "forward").iterdir())) == 16


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_log_on_a_full_disk_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_log.incomplete, "_has_warned", False)
    handler = debug_log._DebugFile("/dev/full")
    for text in ("one", "two"):
        handler.handle(logging.LogRecord("torchair", logging.DEBUG, __file__, 1, text, (), None))
    with contextlib.suppress(OSError):
        handler.close()
    (warning,) = warnings_of(caplog)
    assert warning.startswith("The debug save is not complete") and "No space left on device" in warning


def test_pytorch_goes_on_without_its_own_log(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._dynamo.utils, "add_file_handler", OWN_LOG)
    root.write_text("in the way")
    debug_log.guard_torch()
    logs = torch._dynamo.utils.setup_compile_debug()
    logs.close()
    assert root.is_file()


def test_the_joint_graph(root: Path) -> None:
    config = config_for("max-autotune")
    config.experimental_config.aot_config_enable_joint_graph = True
    train(halves, torchair.get_npu_backend(compiler_config=config))
    (model,) = models(root)
    assert model["joint"] == ["000_aot_joint_graph.txt"]
    (folder,) = run_folder(root).glob("model__*")
    assert "tangents_1" in (folder / "joint" / "000_aot_joint_graph.txt").read_text()


def test_with_a_data_dump_only_the_first_graph_is_saved(root: Path, tmp_path: Path) -> None:
    config = config_for("max-autotune")
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(tmp_path / "dump")
    train(halves, torchair.get_npu_backend(compiler_config=config))
    (model,) = models(root)
    for phase in ("forward", "backward"):
        assert model[phase] == [f"000_aot_{phase}_graph.txt"]


@torch.library.custom_op("msdump_test::unknown_to_ge", mutates_args=())
def unknown_to_ge(x: torch.Tensor) -> torch.Tensor:
    return x.cos()


@unknown_to_ge.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_an_operator_without_converter_costs_no_file(root: Path) -> None:
    compiled = torch.compile(lambda x: unknown_to_ge(x) + 1, backend=backend_for("max-autotune"))
    with torch.no_grad():
        assert torch.equal(compiled(X), X.cos() + 1)
    (model,) = models(root)
    assert model["forward"] == expected_files("max-autotune", "forward")


@pytest.fixture
def wrong_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that gives another dtype than the operator promises."""

    def convert(ge: Any, x: Any) -> Any:
        return ge.cast(x, torch.float16)

    monkeypatch.setitem(registry._CONVERTERS, "msdump_test.unknown_to_ge.default", convert)


@pytest.mark.usefixtures("wrong_converter")
def test_a_graph_that_cannot_be_made_costs_only_the_ge_files(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(lambda x: unknown_to_ge(x) + 1, backend=backend_for("max-autotune"), dynamic=False)
    with torch.no_grad():
        for size in (3, 4):
            x = torch.ones(size)
            assert torch.equal(compiled(x), x.cos() + 1)
    for model in models(root):
        assert model["forward"] == expected_files("max-autotune", "forward")[:6]
    (warning,) = warnings_of(caplog)
    assert warning.startswith("The debug save has no GE graph of everything, the model continues without it. ")
    assert "unknown_to_ge" in warning


@pytest.mark.usefixtures("wrong_converter")
def test_a_graph_that_was_asked_for_must_be_made(tmp_path: Path) -> None:
    config = config_for("max-autotune")
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = str(tmp_path)
    compiled = torch.compile(lambda x: unknown_to_ge(x) + 1, backend=torchair.get_npu_backend(compiler_config=config))
    with torch.no_grad(), pytest.raises(Exception, match=r"unknown_to_ge.*: expected output 0 as torch.float32"):
        compiled(X)


def test_run_eagerly_runs_the_fx_graph(root: Path) -> None:
    config = config_for("max-autotune")
    config.debug.run_eagerly = True
    with torch.no_grad():
        result = torch.compile(halves, backend=torchair.get_npu_backend(compiler_config=config))(X)
    assert torch.equal(result, halves(X))
    (model,) = models(root)
    assert model["forward"] == expected_files("max-autotune", "forward")


def replaced(module: Any, example_inputs: Any, config: Any) -> Any:
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.add.Tensor:
            node.target = torch.ops.aten.sub.Tensor
    return module


def raising(module: Any, example_inputs: Any, config: Any) -> None:
    raise KeyError("no such node")


def breaking(module: Any, example_inputs: Any, config: Any) -> None:
    nodes = list(module.graph.nodes)
    nodes[1].prepend(nodes[2])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", ["post_grad_custom_pre_pass", "post_grad_custom_post_pass"])
def test_custom_passes_change_the_graph(option: str, mode: str) -> None:
    config = config_for(mode)
    setattr(config, option, replaced)
    with torch.no_grad():
        result = torch.compile(lambda x: x + 1, backend=torchair.get_npu_backend(compiler_config=config))(X)
    assert torch.equal(result, X - 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("custom", "text"),
    [
        (raising, r"\(raising\): expected it to change the FX graph, got KeyError: 'no such node'"),
        (breaking, r"\(breaking\): expected a graph that holds together, got RuntimeError"),
        (lambda module, example_inputs, config: 3, r"expected nothing or the GraphModule .* got int"),
        (lambda module: None, r"got TypeError: .* takes 1 positional argument but 3 were given"),
    ],
)
def test_custom_passes_that_fail_are_named(custom: Any, text: str, mode: str, root: Path) -> None:
    config = config_for(mode)
    config.post_grad_custom_post_pass = custom
    compiled = torch.compile(lambda x: x.sin() + 1, backend=torchair.get_npu_backend(compiler_config=config))
    with torch.no_grad(), pytest.raises(Exception, match=text) as caught:
        compiled(X)
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ConfigError):
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert isinstance(error, ConfigError) and str(error).startswith("config.post_grad_custom_post_pass (")


def test_processes_have_folders_of_their_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = debug_log.run_dir()
    assert parent == Path(torch._dynamo.utils.get_debug_dir()) and parent.parent == root
    pid = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: pid)
    assert debug_log.run_dir() == parent.with_name(f"{parent.name}-pid_{pid}")


def test_ranks_have_folders_of_their_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = debug_log.run_dir()
    monkeypatch.setattr(torch._dynamo.utils, "get_debug_dir", torch._dynamo.utils.get_debug_dir)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 3)
    for _ in range(2):
        assert debug_log.run_dir() == alone.with_name(f"{alone.name}-rank_3")
    assert torch._dynamo.utils.get_debug_dir() == str(debug_log.run_dir())


def test_modes_of_the_page_are_all_here() -> None:
    assert len(debug_saves.FX_OF_GE) + len(debug_saves.GE) == 18
    assert len(debug_saves.ACLGRAPH) == 17

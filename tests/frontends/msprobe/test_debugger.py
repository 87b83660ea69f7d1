"""PrecisionDebugger: when it records, what a failure does, and what it leaves of PyTorch."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from msdump.errors import ConfigError  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe, config_file, records  # noqa: E402


@pytest.fixture(autouse=True)
def msprobe() -> Iterator[Any]:
    with as_msprobe():
        import msprobe.pytorch  # type: ignore[import-not-found]

        yield msprobe.pytorch


class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.fc(x).relu()


def steps_of(folder: Path) -> set[str]:
    return {path.name for path in (folder / "dump").iterdir()} if (folder / "dump").is_dir() else set()


def test_pytorch_is_as_it_was_without_a_debugger(msprobe: Any, tmp_path: Path) -> None:
    before = torch.nn.functional.linear, torch.Tensor.__add__, torch.jit.script, torch.nn.utils.clip_grad_norm_
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    debugger.start(Net())
    assert torch.conv2d is not torch.nn.functional.conv2d
    assert torch.distributed.isend is torch.distributed.distributed_c10d.isend
    assert torch.nn.functional.linear is not before[0] and torch.nn.functional.linear.__name__ == "linear"
    sessions.reset_for_tests()
    after = torch.nn.functional.linear, torch.Tensor.__add__, torch.jit.script, torch.nn.utils.clip_grad_norm_
    assert after == before


def test_there_is_one_debugger(msprobe: Any, tmp_path: Path) -> None:
    first = msprobe.PrecisionDebugger(config_file(tmp_path))
    assert msprobe.PrecisionDebugger(task="tensor") is first
    assert (first.config.task, first.config.dump_path) == ("statistics", str(tmp_path / "dump"))


def test_calls_before_there_is_one_are_refused(msprobe: Any) -> None:
    for call in (msprobe.PrecisionDebugger.start, msprobe.PrecisionDebugger.stop, msprobe.PrecisionDebugger.step):
        with pytest.raises(ConfigError, match="Make one first"):
            call()


def test_a_wrong_configuration_can_be_corrected(msprobe: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="level"):
        msprobe.PrecisionDebugger(config_file(tmp_path, level="L9"))
    msprobe.PrecisionDebugger(config_file(tmp_path))


def test_only_chosen_steps_and_ranks_are_dumped(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, step=[1, 3], rank=[2]), step=["1-2"])
    for _ in range(4):
        debugger.start(rank_id=2)
        torch.ones(2).sigmoid()
        debugger.stop()
        debugger.step()
    assert steps_of(tmp_path) == {"step1", "step2"}
    assert list(records(tmp_path, 1)) == ["Tensor.sigmoid.0.forward"]
    assert (tmp_path / "dump" / "step1" / "rank2").is_dir()
    report = sessions.reports()[-1]
    assert (report.iterations_dumped, report.iterations_run, report.is_empty) == (2, 4, False)


def test_another_rank_leaves_nothing(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, rank=[1]))
    debugger.start()
    torch.ones(2).sigmoid()
    debugger.step()
    assert not steps_of(tmp_path) and sessions.reports()[-1].is_empty


def test_calls_are_counted_from_step_to_step(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    debugger.set_init_step(5)
    x = torch.ones(2)
    debugger.start()
    x.sigmoid()
    debugger.stop()
    x.sigmoid()
    debugger.start()
    x.sigmoid()
    debugger.step()
    x.sigmoid()
    debugger.start()
    x.sigmoid()
    sessions.close_all()
    assert list(records(tmp_path, 5)) == ["Tensor.sigmoid.0.forward", "Tensor.sigmoid.1.forward"]
    assert list(records(tmp_path, 6)) == ["Tensor.sigmoid.0.forward"]


def test_what_ran_is_on_disk_after_stop(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    debugger.start()
    torch.ones(2).sigmoid()
    debugger.stop()
    assert list(records(tmp_path)) == ["Tensor.sigmoid.0.forward"]
    (path,) = (tmp_path / "dump" / "step0").iterdir()
    assert path.name == f"proc{os.getpid()}"
    assert {file.name for file in path.iterdir()} == {"dump.json", "stack.json", "construct.json"}
    assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o600}


def test_a_call_that_raises_disturbs_no_other(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    net = Net()
    debugger.start(net)
    with pytest.raises(RuntimeError):
        net(torch.ones(3))
    net(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    found = records(tmp_path)
    assert "output" in found["Functional.linear.0.forward"] and "Functional.linear.1.forward" not in found
    assert found["Module.fc.Linear.forward.0"]["output"] == [None]
    assert "Module.fc.Linear.backward.1" in found
    assert records(tmp_path, name="construct.json")["Functional.linear.0.forward"] == "Module.fc.Linear.forward.1"


def test_modules_that_autograd_recomputes_are_whole(msprobe: Any, tmp_path: Path) -> None:
    from torch.utils.checkpoint import checkpoint

    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    debugger.start(net)
    checkpoint(net, torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
    debugger.stop()
    construct = records(tmp_path, name="construct.json")
    assert {"Module.0.Linear.forward.1", "Module.0.Linear.backward.0"} <= set(records(tmp_path))
    assert not {parent for parent in construct.values() if parent and parent not in construct}


def test_results_are_the_same_with_a_dump(msprobe: Any, tmp_path: Path) -> None:
    def train() -> Any:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.ReLU(inplace=True))
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            if is_dumped:
                msprobe.PrecisionDebugger.start(net)
            net(torch.randn(2, 3)).square().sum().backward()
            optimizer.step()
            if is_dumped:
                msprobe.PrecisionDebugger.step()
        return [parameter.detach().clone() for parameter in net.parameters()]

    is_dumped = False
    plain = train()
    is_dumped = True
    msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor", level="mix", risk_level="ALL"))
    assert all(torch.equal(left, right) for left, right in zip(plain, train(), strict=True))


def test_a_full_disk_ends_the_dump_and_not_the_script(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "1K")
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor", level="mix"))
    net = Net()
    with caplog.at_level(logging.ERROR, "msdump"):
        for _ in range(2):
            debugger.start(net)
            assert net(torch.ones(1, 2)).shape == (1, 2)
            debugger.stop()
            debugger.step()
    assert len([record for record in caplog.records if "not complete" in record.message]) == 1
    assert "MSDUMP_DISK_BUDGET" in (sessions.reports()[-1].failure or "")


def test_a_forked_process_leaves_the_files_alone(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    debugger.start()
    torch.ones(2).sigmoid()
    child = os.fork()
    if not child:
        try:
            torch.ones(2).tanh()
            debugger.stop()
            debugger.step()
            debugger.start()
        finally:
            os._exit(0 if not records(tmp_path) else 1)
    assert os.waitpid(child, 0)[1] == 0
    debugger.stop()
    assert list(records(tmp_path)) == ["Tensor.sigmoid.0.forward"]


def test_files_of_an_earlier_run_are_said(msprobe: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text("{}")
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    for _ in range(2):
        debugger.start(rank_id=0)
        torch.ones(2).sigmoid()
        debugger.stop()
    assert caplog.text.count("holds files of an earlier run") == 1 and len(records(tmp_path)) == 2


def test_models_are_needed_at_levels_of_modules(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    for model in (None, [Net(), 3], "net"):
        with pytest.raises(ConfigError, match="expected a module or a list of modules at level L0"):
            debugger.start(model)
    debugger.start([Net(), Net()])
    debugger.stop()


def test_a_list_of_models_has_numbers(msprobe: Any, tmp_path: Path) -> None:
    nets = [Net(), Net()]
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(nets)
    for net in nets:
        net(torch.ones(2))
    debugger.stop()
    assert list(records(tmp_path)) == ["Module.0.fc.Linear.forward.0", "Module.1.fc.Linear.forward.0"]


@pytest.mark.parametrize("tokens", [3, [1], [1, 2, 3], [2, 1], [-1, 1], ["a", 1]])
def test_wrong_token_ranges_are_refused(msprobe: Any, tmp_path: Path, tokens: Any) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    with pytest.raises(ConfigError, match="token_range: expected"):
        debugger.start(Net(), token_range=tokens)
    with pytest.raises(ConfigError, match="rank_id: expected"):
        debugger.start(rank_id=-1)
    with pytest.raises(ConfigError, match="with token_range"):
        debugger.start(token_range=[0, 1])


def test_functions_of_the_script_can_be_recorded(msprobe: Any, tmp_path: Path) -> None:
    class Own:
        @staticmethod
        def twice(x: Any) -> Any:
            return x * 2

    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    debugger.register_custom_api(Own, "twice")
    debugger.start()
    Own.twice(torch.ones(2))
    debugger.restore_custom_api(Own, "twice")
    Own.twice(torch.ones(2))
    debugger.stop()
    assert list(records(tmp_path)) == ["Own.twice.0.forward", "Tensor.__mul__.0.forward"]
    with pytest.raises(ConfigError, match="'thrice'"):
        debugger.register_custom_api(Own, "thrice")


def test_a_changed_file_turns_the_dump_on_and_off(
    msprobe: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def step() -> None:
        debugger.start()
        torch.ones(2).sigmoid()
        debugger.stop()
        debugger.step()

    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, dump_enable=False))
    step()
    config_file(tmp_path, dump_enable=True, task="tensor", tensor={})
    step()
    Path(config_file(tmp_path)).write_text("{")
    with caplog.at_level(logging.ERROR, "msdump"):
        step()
    assert steps_of(tmp_path) == {"step1"} and "the dump is off" in caplog.text
    assert len(list((tmp_path / "dump").rglob("*.pt"))) == 2


def test_values_that_cannot_be_saved_are_said(msprobe: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="debug"))
    for value, name in ((object(), "a"), ({1: 2}, "a"), (None, "a"), (1, 2)):
        caplog.clear()
        assert debugger.save(value, name) is None
        assert "PrecisionDebugger.save: expected a te" in caplog.text and "Nothing is saved" in caplog.text
    debugger.save(1, "a", save_backward="yes")
    assert "expected True or False as save_backward, got str" in caplog.text
    debugger.save([1, "x"], "fine")
    debugger.step()
    assert list(records(tmp_path, name="debug.json")) == ["fine.0.debug", "fine_grad.0.debug"]


def test_save_does_nothing_at_other_levels(msprobe: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    msprobe.PrecisionDebugger(config_file(tmp_path)).save(object(), 3)
    assert not caplog.text and not steps_of(tmp_path)


def test_what_runs_before_the_first_token_is_recorded(msprobe: Any, tmp_path: Path) -> None:
    net = Net()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, risk_level="ALL"))
    debugger.start(net, token_range=[1, 1])
    for number in range(4):
        torch.full((1,), float(number)).tanh()
        net(torch.ones(1, 2) * number)
    debugger.stop()
    torch.ones(1).tanh()
    debugger.start()
    net(torch.ones(1, 2))
    torch.ones(1).tanh()
    debugger.stop()
    found = records(tmp_path)
    tokens = [found[f"Torch.full.{number}.forward"]["input_args"][1]["value"] for number in range(2)]
    assert tokens == [0.0, 2.0] and "Torch.full.2.forward" not in found  # Source: msprobe
    inputs = [found[f"Functional.linear.{number}.forward"]["input_args"][0]["Max"] for number in range(2)]
    assert inputs == [1.0, 1.0] and "Tensor.tanh.2.forward" in found


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_one_module_can_be_dumped(msprobe: Any, tmp_path: Path, level: str) -> None:
    net = Net()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level=level))
    msprobe.module_dump(net, "whole")
    msprobe.module_dump(net, "again")
    debugger.start(net)
    net(torch.ones(1, 2)).sum().backward()
    msprobe.module_dump_end()
    torch.ones(2).exp()
    net(torch.ones(1, 2))
    debugger.stop()
    found = list(records(tmp_path))
    assert [name for name in found if "whole" in name] == [
        "Module.whole.Net.forward.0", "Module.whole.Net.backward.0",
    ]  # fmt: skip
    functions = [name for name in found if not name.startswith("Module.")]
    assert functions == ["Tensor.exp.0.forward", "Functional.linear.0.forward", "Tensor.relu.0.forward"]
    assert ("Module.fc.Linear.forward.0" in found) == (level == "mix")


def test_wrong_modules_to_dump_are_refused(msprobe: Any, tmp_path: Path) -> None:
    msprobe.PrecisionDebugger(config_file(tmp_path))
    for arguments in ((Net(), 3), ("net", "x"), (None, None)):
        with pytest.raises(ConfigError, match="module_dump: expected a module and a text"):
            msprobe.module_dump(*arguments)
    msprobe.module_dump_end()


def test_the_backward_of_a_module_without_operands_comes_before_its_gradients(msprobe: Any, tmp_path: Path) -> None:
    net = Net()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(net)
    net(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    names = ["Module.fc.Linear.forward.0", "Module.fc.Linear.backward.0", "Module.fc.Linear.parameters_grad.0"]
    assert list(records(tmp_path)) == names  # Source: msprobe


def test_scripted_and_compiled_functions_still_work(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    debugger.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(torch.nn.Linear(2, 2))
    assert scripted(torch.ones(1, 2)).shape == (1, 2)
    compiled = torch.compile(lambda x: torch.nn.functional.relu(x) + 1, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    debugger.stop()


def test_tensors_of_other_kinds_are_described(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, task="tensor", risk_level="ALL"))
    debugger.start()
    torch.ones(2, 2, device="meta").sigmoid()
    torch.eye(2).to_sparse().abs()
    torch.func.vmap(lambda x: x.sigmoid())(torch.ones(2, 2))
    debugger.stop()
    found = records(tmp_path)
    meta = found["Tensor.sigmoid.0.forward"]["output"][0]
    assert (meta["shape"], meta["Max"], "data_name" in meta) == ([2, 2], None, False)
    assert found["Tensor.sigmoid.1.forward"]["output"][0]["type"] == "BatchedTensor"
    json.dumps(found)


def test_other_names_say_why_they_do_nothing(msprobe: Any) -> None:
    for name, arguments in {
        "random_save": (), "set_fx_dump_config": (1,), "set_ge_dump_config": (1,), "TrainerMon": ("x",),
        "AclGraphDumper": ("x",), "acl_save": (1, "x"),
    }.items():  # fmt: skip
        with pytest.raises(ConfigError, match=rf"msprobe\.pytorch\.{name}: not supported"):
            getattr(msprobe, name)(*arguments)
    for name in ("msprobe.core.common.const", "msprobe.pytorch.monitor", "msprobe.visualization"):
        with pytest.raises(ModuleNotFoundError, match=r"msprobe\.\S+: not supported: .* has PrecisionDebugger"):
            importlib.import_module(name)


@pytest.mark.parametrize(
    "line",
    [
        "from msprobe.pytorch import ConfigChecker",
        "from msprobe.pytorch import PrecisionChecker",
        "from msprobe.pytorch import PrecisionDebugger, TrainerMonitorV2",
        "from msprobe.mindspore import TrainerMon",
        "from msprobe import visualization",
        "from msprobe.core.monitor_v2.trainer import TrainerMonitorV2",
        "from msprobe.pytorch.aclgraph_dumper import AclGraphDumper",
    ],
)
def test_missing_names_are_refused_by_every_form_of_import(msprobe: Any, line: str) -> None:
    with pytest.raises(ImportError, match=r"^msprobe\.\S+: not supported: .* has PrecisionDebugger"):
        exec(line, {})
    assert not hasattr(msprobe, "ConfigChecker")


def test_missing_names_are_refused_as_attributes(msprobe: Any) -> None:
    for module, name in (msprobe, "PrecisionChecker"), (msprobe, "TrainerMonitorV2"), (sys.modules["msprobe"], "core"):
        with pytest.raises(AttributeError, match=rf"^msprobe\.\S*{name}: not supported: .* has PrecisionDebugger"):
            getattr(module, name)


def test_submodules_hold_what_scripts_look_for_there(msprobe: Any) -> None:
    utils = importlib.import_module("msprobe.pytorch.common.utils")
    debugger = importlib.import_module("msprobe.pytorch.dump.debugger.precision_debugger")
    assert utils.seed_all is msprobe.seed_all and debugger.PrecisionDebugger is msprobe.PrecisionDebugger
    assert importlib.import_module("msprobe.version").VERSION == "26.2.0"
    # Source: mindstudio-probe 26.2
    signature = "(config_path=None, task=None, dump_path=None, level=None, step=None)"
    assert str(inspect.signature(msprobe.PrecisionDebugger)) == signature


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MSDUMP_UPLOAD", "nonsense"),
        ("MSDUMP_UPLOAD", "nonsense://"),
        ("MSDUMP_CONTAINER", "zip"),
        ("MSDUMP_DISK_BUDGET", "much"),
        ("MSDUMP_KEEP_ITERATIONS", "0"),
    ],
)
def test_a_wrong_environment_is_an_error_at_the_start(
    msprobe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"environment variable {name}"):
        msprobe.PrecisionDebugger(config_file(tmp_path))

"""What integrations of msprobe read and assign: `debugger.config`, `debugger.service`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from msdump.errors import ConfigError  # noqa: E402
from msdump.frontends.msprobe.config import Settings, Slice  # noqa: E402
from msdump.frontends.msprobe.service import DebuggerConfig  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe, config_file, records  # noqa: E402


@pytest.fixture
def msprobe() -> Iterator[Any]:
    with as_msprobe():
        import msprobe.pytorch  # type: ignore[import-not-found]

        yield msprobe.pytorch


def names_of(folder: Path) -> list[str]:
    return list(records(folder.parent, name="dump.json")) if folder.is_dir() else []


def work(debugger: Any, *names: str) -> None:
    debugger.start()
    for name in names:
        getattr(torch.ones(2), name)()
    debugger.stop()


texts = st.lists(st.text("abc.", min_size=1, max_size=5), max_size=2).map(tuple)
numbers = st.frozensets(st.integers(0, 9), max_size=3)


@given(
    st.builds(
        Settings,
        dump_path=st.just("/x"),
        task=st.sampled_from(["statistics", "tensor"]),
        level=st.sampled_from(["L0", "L1", "mix", "debug"]),
        steps=numbers,
        ranks=numbers,
        names=texts,
        stages=st.sampled_from([frozenset({"forward"}), frozenset({"backward"}), frozenset({"forward", "backward"})]),
        sides=st.sampled_from([frozenset({"input"}), frozenset({"output"}), frozenset({"input", "output"})]),
        summary_mode=st.sampled_from(["statistics", "md5", "xor"]),
        slices=st.lists(st.builds(Slice, st.integers(0, 3), st.integers(0, 2), st.none() | st.integers(3, 4))).map(
            tuple
        ),
        is_precise=st.booleans(),
        has_extra_info=st.booleans(),
        risk_level=st.sampled_from(["CORE", "FOCUS", "ALL"]),
        is_enabled=st.sampled_from([None, True, False]),
    )
)
def test_settings_stay_the_same_through_their_attributes(settings: Settings) -> None:
    assert DebuggerConfig(settings).settings() == settings


def test_each_stage_has_its_folder(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    assert hasattr(debugger, "service") and hasattr(debugger.service, "config")
    for step in range(2):
        for stage, name in (("actor", "sigmoid"), ("critic", "tanh")):
            debugger.service.config.dump_path = str(tmp_path / f"step{step}" / stage / "dump")
            work(debugger, name)
            debugger.service.reset_status()
    for step in range(2):
        for stage, name in (("actor", "sigmoid"), ("critic", "tanh")):
            assert list(records(tmp_path / f"step{step}" / stage)) == [f"Tensor.{name}.0.forward"]
    assert not (tmp_path / "dump").exists()
    report = sessions.reports()[-1]
    assert (report.path, report.is_empty) == (str(tmp_path), False)


def test_a_folder_that_changes_inside_of_a_step_gets_what_comes_then(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    work(debugger, "sigmoid")
    debugger.config.dump_path = str(tmp_path / "other" / "dump")
    work(debugger, "tanh")
    debugger.step()
    assert list(records(tmp_path)) == ["Tensor.sigmoid.0.forward"]
    assert list(records(tmp_path / "other")) == ["Tensor.tanh.0.forward"]


def test_assigned_settings_hold_from_the_next_start_on(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    config = debugger.service.config
    assert (config.step, config.rank, config.list, config.dump_enable, debugger.task) == (
        [],
        [],
        [],
        None,
        "statistics",
    )
    config.list.append("tanh")
    work(debugger, "sigmoid", "tanh")
    config.list = []
    work(debugger, "sigmoid")
    debugger.step()
    assert list(records(tmp_path)) == ["Tensor.tanh.0.forward", "Tensor.sigmoid.1.forward"]
    config.step = [2]
    work(debugger, "sigmoid")
    debugger.step()
    config.dump_enable = False
    work(debugger, "sigmoid")
    config.dump_enable = True
    config.rank = [3]
    work(debugger, "sigmoid")
    assert not (tmp_path / "dump" / "step1").exists() and not (tmp_path / "dump" / "step2").exists()
    config.rank = []
    debugger.task = "tensor"
    config.level = "mix"
    debugger.start(torch.nn.Linear(2, 2))
    torch.ones(2).tanh()
    debugger.stop()
    assert len(list((tmp_path / "dump" / "step2").rglob("*.pt"))) == 2


def test_steps_can_be_counted_by_others(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, step=[5, 9]))
    service = debugger.service
    assert (service.current_iter, service.loop, service.init_step, service.first_start) == (0, 0, 0, True)
    service.current_iter = 5
    work(debugger, "sigmoid")
    assert service.first_start is False and service.dump_iter_dir == str(tmp_path / "dump" / "step5")
    debugger.step()
    assert (service.current_iter, service.loop) == (6, 1)
    service.loop = 4
    work(debugger, "tanh")
    assert list(records(tmp_path, 9)) == ["Tensor.tanh.0.forward"]
    debugger.start()
    assert service.primitive_switch
    debugger.stop()
    assert not service.primitive_switch


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("level", "L9", r"PrecisionDebugger\.config, level: expected one of"),
        ("step", 3, r"PrecisionDebugger\.config, step: expected a list"),
        ("dump_path", None, r"PrecisionDebugger\.config, dump_path: expected a folder"),
        ("bench_path", "/x", r"PrecisionDebugger\.config, statistics\.bench_path: .* not supported"),
    ],
)
def test_wrong_settings_are_named_at_the_next_start(
    msprobe: Any, tmp_path: Path, name: str, value: Any, message: str
) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    setattr(debugger.config, name, value)
    with pytest.raises(ConfigError, match=message):
        debugger.start()


def test_settings_that_msprobe_does_not_have_are_refused(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path))
    with pytest.raises(AttributeError, match=r"got 'dump_pth'\. .*dump_path"):
        debugger.config.dump_pth = "/x"


def test_a_file_that_changes_shows_in_the_attributes(msprobe: Any, tmp_path: Path) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, dump_enable=True))
    config_file(tmp_path, dump_enable=True, level="L0", statistics={"list": ["fc"]})
    debugger.step()
    assert (debugger.config.level, debugger.config.list) == ("L0", ["fc"])

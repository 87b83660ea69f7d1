"""What a report and `msdump doctor` say of compiled code that is missing, or not used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.cli.report_text import report_rows  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.errors import WriteError  # noqa: E402
from msdump.frontends.torch.eager import native, native_builds, program  # noqa: E402
from msdump.frontends.torch.eager.native import _MISSING, native_sentence  # noqa: E402
from msdump.frontends.torch.eager.program import EagerProgram  # noqa: E402
from msdump.process.report import Report, StepTimes  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401

COSTLY = StepTimes(4, 8.0, 4.0, 2.0, None)
COMMAND = "`msdump native`, once, builds compiled code that makes dumps of eager PyTorch several times cheaper"


@pytest.fixture
def is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (native, program):
        monkeypatch.setattr(module, "why_not_native", lambda: _MISSING)


@pytest.mark.usefixtures("is_missing")
def test_where_it_is_missing_a_costly_run_and_the_doctor_name_the_command() -> None:
    assert native_sentence(COSTLY) == native_sentence() == COMMAND


@pytest.mark.usefixtures("is_missing")
@pytest.mark.parametrize(
    "times",
    [StepTimes(4, 8.0, 1.9, 2.0, None), StepTimes(4, 1.0, 0.9, 0.2, None)],
    ids=["a small share", "a short run"],
)
def test_what_is_not_worth_a_line(times: StepTimes) -> None:
    assert native_sentence(times) == ""


@pytest.mark.usefixtures("is_missing")
def test_nothing_is_said_where_it_would_not_be_used() -> None:
    assert native_sentence(COSTLY, "torch.distributed is in use") == ""


def test_why_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "why_not_native", lambda: "")
    assert native_sentence() == ""
    assert native_sentence(refusal="it is so") == "msdump-native was not used: it is so"
    assert native_sentence(refusal="it is so", has_seen=True) == "msdump-native was not used any more: it is so"
    monkeypatch.setattr(native, "why_not_native", lambda: "it is old.")
    assert native_sentence(COSTLY, "it is so") == native_sentence() == "msdump-native was not used: it is old."


def test_a_build_that_is_not_trusted_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise WriteError("its folder is another user's")

    monkeypatch.setattr(native_builds, "existing_build", refuse)
    assert native.why_not_built() == "msdump-native is not loaded. its folder is another user's"
    monkeypatch.setattr(native_builds, "existing_build", lambda: None)
    assert native.why_not_built() == _MISSING


def test_it_joins_what_the_report_says_of_steps() -> None:
    times = StepTimes(4, 8.0, 4.0, 2.0, None, COMMAND)
    (text,) = (text for label, text in report_rows(Report("dump", steps=times)) if label == "time")
    assert text == f"50 % of a dumped step is msdump's: 4.00 s of 8.00 s in 4 steps; {COMMAND}"


@pytest.mark.usefixtures("is_missing")
@pytest.mark.parametrize(("value", "said"), [("1", COMMAND), ("0", "")])
def test_the_report_of_a_run(value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, value)
    monkeypatch.setattr(native, "_WORTH_SECONDS", 0.0)
    monkeypatch.setattr(native, "_WORTH_SHARE", 0.0)
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path, saved_data="statistic", statistic_category=["max"])) as watch:
        net(torch.ones(2, 3)).sum().backward()
        watch.step()
    steps = watch.report().steps
    assert steps is not None and steps.advice == said


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[EagerProgram]:
    """The programs that begin in a test."""
    programs: list[EagerProgram] = []
    begin = EagerProgram.begin

    def noted(program: EagerProgram) -> None:
        programs.append(program)
        begin(program)

    monkeypatch.setattr(EagerProgram, "begin", noted)
    return programs


STATISTICS = {"saved_data": "statistic", "statistic_category": ["max"]}


@pytest.mark.usefixtures("is_missing")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (STATISTICS, ""),
        ({**STATISTICS, "kernels": ["mm"], "dump_mode": 1}, ""),
        ({"saved_data": "tensor"}, ""),
        ({"saved_data": "tensor", "kernels": ["mm"], "dump_mode": 1}, "the configuration selects some"),
        ({"saved_data": "tensor", "op_debug_mode": 3, "is_sync": False}, "looks for overflows"),
        ({"saved_data": "tensor", "is_sync": False}, "the dump is asynchronous"),
        ({**STATISTICS, "is_sync": False}, ""),
    ],
    ids=str,
)
def test_the_reasons_have_words(settings: dict[str, Any], said: str, tmp_path: Path, begun: list[EagerProgram]) -> None:
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path, **settings)) as watch:
        net(torch.ones(2, 3)).sum().backward()
        watch.step()
        text = begun[0].why_not_seen(begun[0].session.plan)
    assert said in text and bool(said) == bool(text)


@pytest.mark.usefixtures("is_missing")
def test_a_job_of_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: list[EagerProgram]) -> None:
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path, **STATISTICS)), monkeypatch.context() as patch:
        patch.setattr(torch.distributed, "is_initialized", lambda: True)
        assert begun[0].why_not_seen(begun[0].session.plan) == "torch.distributed is in use"


@pytest.mark.usefixtures("is_missing")
def test_devices_have_words() -> None:
    why = native.why_not_shown([torch.device("cpu"), torch.device("xla")], keeps=False)
    assert why == "it does not measure tensors on xla"
    assert "copies no tensors" in native.why_not_shown([torch.device("cuda")], keeps=True)
    assert not native.why_not_shown([torch.device("cpu"), torch.device("meta")], keeps=False)

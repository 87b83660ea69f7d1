"""Which iterations are dumped: each n-th, or as many as a share of the time allows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msdump.config.environment import Environment, sampling
from msdump.config.explain import describe
from msdump.config.mindspore import plan_mindspore
from msdump.config.plan import Plan
from msdump.config.sampling import Sampler, Sampling, parse_sampling
from msdump.errors import ConfigError


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(sampler: Sampler, clock: Time, count: int, plain: float, added: float, first: int = 0) -> list[int]:
    """Iterations that are dumped, where each takes `plain` seconds and a dumped one `added` more."""
    taken = []
    for iteration in range(first, first + count):
        is_taken = sampler.takes(iteration)
        # Whoever asks again gets the same answer, also later in the iteration.
        assert sampler.takes(iteration) == is_taken
        clock.now += plain + (added if is_taken else 0.0)
        assert sampler.takes(iteration) == is_taken
        taken += [iteration] * is_taken
    return taken


@given(st.integers(1, 50), st.integers(0, 100), st.integers(1, 300))
def test_each_nth_iteration_from_the_first_on(every: int, first: int, count: int) -> None:
    clock = Time()
    taken = run(Sampler(Sampling(every), first, clock), clock, count, 1.0, 5.0, first)
    assert taken == list(range(first, first + count, every))


@given(st.floats(0.01, 1.0), st.floats(1e-4, 10.0), st.floats(0.0, 100.0))
def test_a_budget_is_kept_behind_the_first_iterations(budget: float, plain: float, factor: float) -> None:
    # At a power of two the last digit of a sum decides.
    assume(not factor or abs(math.log2(factor / budget) - round(math.log2(factor / budget))) > 1e-6)
    clock = Time()
    sampler = Sampler(Sampling(budget=budget), 0, clock)
    added, count = factor * plain, 600
    taken = run(sampler, clock, count, plain, added)
    assert taken[:2] == [0, 4]
    later = [iteration for iteration in taken if iteration > 8]
    distance = sampler.distance
    assert distance & (distance - 1) == 0 and all(iteration % distance == 0 for iteration in later)
    # No more than the budget, and no power of two less than it allows.
    assert factor / distance <= budget * 1.001
    assert distance == 1 or factor / (distance / 2) > budget * 0.999
    assert len(later) == len([each for each in range(9, count) if each % distance == 0])


def test_ranks_of_other_speed_have_iterations_in_common() -> None:
    found = []
    for added in (3.0, 40.0):
        clock = Time()
        found.append(set(run(Sampler(Sampling(budget=0.1), 0, clock), clock, 2000, 1.0, added)))
    assert {number for number in found[1] if number > 4} <= found[0] and len(found[1]) > 3


def test_what_becomes_slower_is_dumped_less_often() -> None:
    clock = Time()
    sampler = Sampler(Sampling(budget=0.1), 0, clock)
    run(sampler, clock, 200, 1.0, 1.0)
    before = sampler.distance
    run(sampler, clock, 800, 1.0, 10.0, first=200)
    assert before == 16 and sampler.distance == 128


def test_a_program_that_goes_back_counts_no_time() -> None:
    clock = Time()
    sampler = Sampler(Sampling(budget=0.5), 0, clock)
    run(sampler, clock, 20, 1.0, 1.0)
    clock.now += 1000.0
    run(sampler, clock, 20, 1.0, 1.0, first=5)
    assert sampler.distance <= 4


def test_graphs_that_run_by_turns_have_one_answer_each() -> None:
    clock = Time()
    sampler = Sampler(Sampling(budget=0.1), 0, clock)
    for number in range(400):
        clock.now += 1.0
        first = sampler.takes(number)
        beside = sampler.takes(10_000 + number)
        clock.now += 5.0 * first
        assert sampler.takes(number) == first and sampler.takes(10_000 + number) == beside


def test_what_the_report_says() -> None:
    clock = Time()
    fixed, sampler = Sampler(Sampling(10)), Sampler(Sampling(budget=0.05), 0, clock)
    assert fixed.notes() == ("one iteration in 10 was dumped (sampling).",)
    assert "too few iterations" in sampler.notes()[0]
    run(sampler, clock, 300, 1.0, 0.5)
    (text,) = sampler.notes()
    assert text.startswith("one iteration in 16 was dumped at the end, so that dumps take 5% of the time")
    assert "they took 3.2" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", Sampling()), (" 20 ", Sampling(20)), ("5%", Sampling(budget=0.05)), ("0.5 %", Sampling(budget=0.005))],
)
def test_texts(text: str, expected: Sampling) -> None:
    assert parse_sampling(text, "here") == expected
    assert sampling({"MSDUMP_SAMPLING": text}) == expected


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "0%", "101%", "5 percent", "%", "x", "1e3", "٣"])
def test_mistakes_name_the_place(text: str) -> None:
    with pytest.raises(ConfigError, match=r'^here: expected a number such as 10.* got "'):
        parse_sampling(text, "here")
    with pytest.raises(ConfigError, match="environment variable MSDUMP_SAMPLING"):
        sampling({"MSDUMP_SAMPLING": text})


def plan_of(folder: Path, **common: object) -> Plan:
    settings = {
        "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "0-99", "input_output": 0, "kernels": [],
        "support_device": [0], **common,
    }  # fmt: skip
    file = folder / "dump.json"
    file.write_text(
        json.dumps({"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}})
    )
    plan = plan_mindspore(Environment(dump_config_path=str(file)), "CPU")
    assert plan is not None
    return plan


def test_the_configuration_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_of(tmp_path).when.sampler is None and plan_of(tmp_path, sampling=1).when.sampler is None
    plan = plan_of(tmp_path, sampling=25)
    assert [number for number in range(200) if plan.when.dumps(number)] == [0, 25, 50, 75]
    assert ("iterations", "0-99 (100 iterations), one in 25 of them") in describe(plan)
    monkeypatch.setenv("MSDUMP_SAMPLING", "3%")
    assert plan_of(tmp_path, sampling="25").when.sampler.sampling == Sampling(25)  # type: ignore[union-attr]
    plan = plan_of(tmp_path)
    assert plan.when.sampler is not None and plan.when.sampler.sampling == Sampling(budget=0.03)
    assert ("iterations", "0-99 (100 iterations), as many of them as take 3% of the time") in describe(plan)


@pytest.mark.parametrize("value", [0, True, 1.5, None, [], "often"])
def test_a_wrong_value_is_refused_with_its_path(value: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"common_dump_settings\.sampling: expected"):
        plan_of(tmp_path, sampling=value)

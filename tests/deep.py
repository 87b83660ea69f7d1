"""Many more examples of every property: `python tests/check.py --deep [MINUTES]`. Also the pytest plugin that it loads.

A round runs each property with `TIMES` times its own examples, in a new order, from a new seed; rounds follow each
other until the time is over. What fails is printed as hypothesis prints it: the smallest example, and the line
`@reproduce_failure(...)` that brings it back.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.detection import is_hypothesis_test

ROOT = Path(__file__).resolve().parent.parent
MINUTES = 60.0
TIMES = 20
# Where hypothesis keeps the settings of a test that `@given` has wrapped.
SETTINGS = "_hypothesis_internal_use_settings"
_NO_TESTS = 5  # exit status of pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("deep")
    group.addoption("--times", type=int, default=1, help="run properties only, with N times their examples")
    group.addoption("--until", type=float, default=float("inf"), help="seconds since the epoch: skip what begins later")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the properties and multiply the examples of each."""
    properties = {id(item): function_of(item) for item in items if is_hypothesis_test(function_of(item))}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in properties])
    items[:] = [item for item in items if id(item) in properties]
    times = config.getoption("--times")
    for function in {id(each): each for each in properties.values()}.values():
        own: settings = getattr(function, SETTINGS, settings.default)
        setattr(function, SETTINGS, settings(own, max_examples=own.max_examples * times, print_blob=True))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > item.config.getoption("--until"):
        pytest.skip("the time is over")


def function_of(item: pytest.Item) -> object:
    """The test itself; methods that several classes inherit are one function."""
    test = getattr(item, "obj", None)
    return getattr(test, "__func__", test)


def run_deep(minutes: float, processes: str) -> int:
    """Rounds until the time is over; 0 when no property failed in any of them."""
    until = time.time() + 60 * minutes
    failed: list[int] = []
    rounds = 0
    while time.time() < until:
        seed = random.SystemRandom().randrange(2**32)
        rounds += 1
        print(f"== round {rounds}: {TIMES} times the examples, seed {seed}", flush=True)
        if subprocess.run(_round(seed, until, processes), cwd=ROOT).returncode not in (0, _NO_TESTS):
            failed.append(seed)
    seeds = f"; failed with the seeds {', '.join(map(str, failed))}" if failed else ""
    print(f"== {rounds} rounds in {minutes:g} minutes: {rounds - len(failed)} passed{seeds}", flush=True)
    return 1 if failed else 0


def _round(seed: int, until: float, processes: str) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "tests.deep"),
        *("--times", str(TIMES), "--until", str(until), "--hypothesis-seed", str(seed)),
        *("-p", "randomly", f"--randomly-seed={seed}"),
    ]

"""A plugin of pytest: a property stops at its first failing example, and always draws the same ones."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.detection import is_hypothesis_test

from tests.deep import SETTINGS, function_of


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Any failure kills a mutant, so none is made smaller; with other seeds the result would be another."""
    for function in {id(each): each for each in map(function_of, items) if is_hypothesis_test(each)}.values():
        own: settings = getattr(function, SETTINGS, settings.default)
        phases = (Phase.explicit, Phase.generate)
        setattr(function, SETTINGS, settings(own, phases=phases, derandomize=True, database=None))

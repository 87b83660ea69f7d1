"""Any damaged input gives a record, a FormatError or a ConfigError, in bounded time and memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.bounds import bounded
from tests.hostile.damaged import damaged, seeds
from tests.hostile.targets import TARGETS, feed

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are those of Linux")


@pytest.mark.parametrize("target", TARGETS)
def test_every_file_of_the_corpus_is_survived(target: str) -> None:
    for data in seeds(target):
        with bounded():
            feed(target, data)


@pytest.mark.parametrize("target", TARGETS)
def test_one_file_of_the_corpus_is_read(target: str) -> None:
    """Else nothing behind the first check is ever reached."""
    for data in seeds(target):
        try:
            TARGETS[target](data)
        except ValueError:
            continue
        return
    pytest.fail("no file of the corpus is accepted")


@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_file_is_survived(target: str) -> None:
    @settings(max_examples=200, deadline=None, database=None)
    @given(damaged(target))
    def survive(data: bytes) -> None:
        with bounded():
            feed(target, data)

    survive()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(TARGETS)), st.binary(max_size=200))
def test_any_bytes_are_survived(target: str, data: bytes) -> None:
    with bounded():
        feed(target, data)

"""Stamps: the time in microseconds, and no two alike."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from msdump.dump.clock import Clock


def test_a_stamp_is_the_time_in_microseconds() -> None:
    before = time.time_ns() // 1000
    stamp = Clock().next_us()
    assert before <= stamp <= time.time_ns() // 1000


@given(st.lists(st.integers(1, 50), min_size=1))
def test_stamps_rise_and_are_never_ahead_without_need(times: list[int]) -> None:
    moments = iter(times)
    clock = Clock(lambda: next(moments))
    stamps = [clock.next_us() for _ in times]
    last = 0
    for moment, stamp in zip(times, stamps, strict=True):
        assert stamp == max(moment, last + 1)
        last = stamp

"""Work on many tensors: every result once, whatever their sizes, and by which thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis._payload import in_runs


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([0, 1, 2047, 2048, 16 << 10, 16385, 1 << 20]), max_size=300), st.integers(1, 3))
def test_each_item_of_runs_has_its_own_result(sizes: list[int], thread_count: int) -> None:
    def work(items: Sequence[int]) -> list[int]:
        return [-item for item in items]

    seen: list[tuple[int, int]] = []
    found = in_runs(
        work,
        {str(number): number for number in range(len(sizes))},
        {str(number): size for number, size in enumerate(sizes)},
        thread_count,
        lambda done, total: seen.append((done, total)),
    )
    assert sorted(found, key=lambda one: -one[1]) == [(str(number), -number) for number in range(len(sizes))]
    assert not sizes or seen[-1] == (sum(sizes), sum(sizes))


def test_tensors_that_cost_python_alone_are_left_to_the_caller() -> None:
    threads: dict[int, set[str]] = {}

    def work(sizes: Sequence[int]) -> Sequence[int]:
        threads.setdefault(sizes[0], set()).add(threading.current_thread().name)
        return sizes

    for size in (256, 2048):
        sizes = dict.fromkeys(range(3000), size)
        assert dict(in_runs(work, sizes, sizes, 2)) == sizes
    assert threads[256] == {threading.current_thread().name}
    assert threads[2048].isdisjoint(threads[256])

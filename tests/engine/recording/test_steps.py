"""StepBook: when a step is whole, and how long steps take."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from msdump.engine.recording.steps import StepBook


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), min_size=1, max_size=6),
    st.data(),
)
def test_a_step_is_whole_once_when_all_its_graphs_are_on_the_disk(graphs: list[list[int]], data: st.DataObject) -> None:
    """Whatever order the threads that write tell of their ends in, also after later steps have begun.

    A graph that begins when all before it have ended comes too late for a step that is closed already.
    """
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    waiting: list[tuple[int, int]] = []
    for step, ids in enumerate(graphs):
        for graph in ids:
            book.begin(graph, step)
            waiting.append((graph, step))
        for pair in data.draw(st.lists(st.sampled_from(waiting), unique=True)) if waiting else []:
            waiting.remove(pair)
            book.end(*pair)
            assert pair[1] not in whole or pair[1] < step
    assert book.close() == len(graphs) - 1
    for pair in data.draw(st.permutations(waiting)):
        book.end(*pair)
    assert sorted(whole) == list(range(len(graphs)))


def test_a_step_that_nobody_sees_is_never_whole() -> None:
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    book.begin(-1, 0)
    assert (book.running, book.close(), whole) == (0, 0, [])


def test_durations() -> None:
    clock = Clock()
    book = StepBook(lambda step: None, clock)
    for step, seconds in enumerate((1.0, 2.0, 3.0)):
        book.begin(0, step)
        assert book.seconds == (0.0, float("inf"))
        clock.now += seconds
        book.close()
    assert book.seconds == (0.0, float("inf"))
    book.begin(0, 3)
    clock.now += 7.0
    assert book.seconds == (7.0, 2.0)


def test_any_thread_may_tell() -> None:
    whole: list[int] = []
    book = StepBook(whole.append, Clock())
    for step in range(40):
        book.begin(0, step)
        book.close()
    threads = [
        threading.Thread(target=lambda part: [book.end(0, step) for step in range(part, 40, 4)], args=(part,))
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(whole) == list(range(40))

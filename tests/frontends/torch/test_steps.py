"""Steps: which iteration a run belongs to."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from msdump.frontends.torch.steps import ForwardRuns, Steps


def make() -> Steps:
    return Steps(itertools.count().__next__)


def test_parts_of_a_broken_graph_share_a_step_until_one_of_them_runs_again() -> None:
    steps = make()
    assert [steps.forward(graph, True) for graph in ("a", "b", "a", "b")] == [0, 0, 1, 1]


def test_forward_after_backward_is_a_new_step() -> None:
    steps = make()
    assert steps.forward("a", True) == 0
    steps.backward()
    assert steps.forward("b", True) == 1


def test_evaluation_does_not_share_the_step_of_the_training_before() -> None:
    steps = make()
    assert [steps.forward("train", True), steps.forward("eval", False)] == [0, 1]
    assert steps.forward("train", True) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=40))
def test_no_graph_runs_forward_twice_in_one_iteration(runs: list[tuple[str, bool, bool]]) -> None:
    steps = make()
    seen = []
    for graph, has_gradients, has_backward in runs:
        seen.append((graph, steps.forward(graph, has_gradients)))
        if has_backward:
            steps.backward()
    assert len(set(seen)) == len(seen)
    iterations = [iteration for _, iteration in seen]
    assert iterations == sorted(iterations)
    assert sorted(set(iterations)) == list(range(len(set(iterations))))


def test_forward_runs_keep_the_newest() -> None:
    runs = ForwardRuns()
    for address in range(5000):
        runs.add(address, address)
    assert runs.find(4999) == 4999
    assert runs.find(0) is None
    runs.add(4998, 1)
    assert runs.find(4998) == 1

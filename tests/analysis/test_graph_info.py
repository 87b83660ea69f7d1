"""Where values come from, through chains of nodes that only pass tensors on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.graph_info import Origin, _Origins

Steps = dict[str, Origin | tuple[str, int | None] | None]
NAMES = [str(number) for number in range(8)]
STEPS = st.one_of(
    st.none(),
    st.builds(Origin, st.sampled_from(["conv", "add"]), st.sampled_from([None, 0])),
    st.tuples(st.sampled_from(NAMES), st.none() | st.integers(0, 5)),
)


def walked(steps: Steps, value: str) -> Origin | None:
    """One value after the other, remembering nothing."""
    slot = None
    for _ in range(len(steps) + 1):
        step = steps[value]
        if not isinstance(step, tuple):
            return step if step is None or step.slot is None else Origin(step.name, slot or step.slot)
        slot = slot if step[1] is None else step[1]
        value = step[0]
    return None


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, STEPS)), st.lists(st.sampled_from(NAMES), min_size=1))
def test_origins_are_those_of_a_plain_walk(steps: Steps, asked: list[str]) -> None:
    origins = _Origins(steps.__getitem__)
    for value in asked:
        assert origins.of(value) == walked(steps, value)


def test_a_long_chain_is_walked_once(alarm: None) -> None:
    """Of 200,000 values that all pass one tensor on, each asked for: the square of that takes hours."""
    size = 200_000
    steps: Steps = {str(number): (str(number - 1), None) for number in range(1, size)}
    steps["0"] = Origin("conv", 0)
    origins = _Origins(steps.__getitem__)
    assert all(origins.of(str(number)) == Origin("conv", 0) for number in reversed(range(size)))

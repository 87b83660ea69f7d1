"""Values of quick makers are those of their classes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.tensors.makers import maker


@dataclass(frozen=True, slots=True)
class Value:
    number: int
    text: str = "a"
    parts: list[int] = field(default_factory=list)
    rest: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Open:
    number: int


@dataclass(slots=True)
class Unfrozen:
    number: int


@dataclass(frozen=True, slots=True)
class Checked:
    number: int

    def __post_init__(self) -> None:
        assert self.number


_value = maker(Value)


@given(st.integers(), st.text(), st.lists(st.integers()), st.integers())
def test_a_made_value_is_one_of_its_class(number: int, text: str, parts: list[int], rest: int) -> None:
    value = Value(number, text, parts, rest)
    for made in (_value(number, text, parts, rest), _value(rest=rest, parts=parts, text=text, number=number)):
        assert type(made) is Value and made == value and repr(made) == repr(value) and made.rest == rest
        assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == value
        assert replace(made, text="b") == replace(value, text="b")
        assert dataclasses.asdict(made) == dataclasses.asdict(value)
        with pytest.raises(FrozenInstanceError):
            made.number = 1  # type: ignore[misc]


def test_defaults_are_those_of_the_class() -> None:
    one, other = _value(1), _value(1)
    assert one == other == Value(1)
    assert one.parts is not other.parts
    with pytest.raises(TypeError):
        _value()  # type: ignore[call-arg]


@pytest.mark.parametrize("cls", [Open, Unfrozen, Checked, int])
def test_other_classes_have_no_maker(cls: type[object]) -> None:
    with pytest.raises(TypeError, match="expected a frozen dataclass with slots"):
        maker(cls)

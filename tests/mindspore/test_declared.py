"""Settings as text: signatures, checks, and the classes and layers that are declared by them."""

from __future__ import annotations

import inspect
import keyword
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.mindspore import Tensor, float16, nn
from msdump.mindspore.common.declared import Declared, Kind, variants
from msdump.mindspore.common.signatures import declared, signature_of
from msdump.mindspore.nn.declared import layers

NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))
DEFAULTS = st.one_of(st.integers(-9, 9), st.booleans(), st.none(), st.sampled_from(["same", "relu"]), st.floats(0, 1))


@given(st.dictionaries(NAMES, DEFAULTS, max_size=6), st.lists(NAMES, max_size=3, unique=True))
def test_text_gives_the_signature_that_it_writes(optional: dict[str, Any], needed: list[str]) -> None:
    needed = [name for name in needed if name not in optional]
    words = [*needed, *(f"{name}:number={default!r}" for name, default in optional.items())]
    signature, kinds = declared(" ".join(words))
    assert list(signature.parameters) == [*needed, *optional]
    assert {name: signature.parameters[name].default for name in optional} == optional
    assert kinds == dict.fromkeys(optional, "number")


def test_marks_of_parameters() -> None:
    signature = signature_of(["x", "*rest", "|", "dtype=float16", "**options"])
    assert [parameter.kind.name for parameter in signature.parameters.values()] == [
        "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD",
    ]  # fmt: skip
    assert signature.parameters["dtype"].default is float16


@given(st.one_of(st.integers(-5, 5), st.floats(-5, 5), st.booleans(), st.text(max_size=3)))
def test_a_kind_takes_its_classes_and_values_alone(value: Any) -> None:
    kind = Kind((int,), lambda each: each > 0, "be > 0")
    if isinstance(value, bool) or not isinstance(value, int):
        with pytest.raises(TypeError, match=r"For 'Layer', the type of 'size' must be int, but got"):
            kind("Layer", "size", value)
    elif value <= 0:
        with pytest.raises(ValueError, match=rf"For 'Layer', the 'size' must be > 0, but got {value}"):
            kind("Layer", "size", value)
    else:
        kind("Layer", "size", value)


class _Line(Declared, takes="slope:number=2.0 offset=1"):
    """Keeps its slope, and hands its offset on."""

    def _set_up(self, offset: int) -> None:
        self.value = self.slope + offset


def test_settings_become_attributes_unless_they_are_handed_on() -> None:
    assert vars(_Line(3.0, offset=4)) == {"slope": 3.0, "value": 7.0}
    assert str(inspect.signature(_Line)) == "(slope=2.0, offset=1)"
    with pytest.raises(TypeError, match=r"For '_Line', got an unexpected keyword argument 'steepness'"):
        _Line(steepness=1)


def test_classes_that_differ_by_attributes() -> None:
    made = variants(_Line, __name__, Steep=("Steep.", {"scale": 9}), Flat=("Flat.", {}))
    assert made["Steep"](1.0).scale == 9 and made["Flat"].__doc__ == "Flat."
    assert {each.__module__ for each in made.values()} == {__name__}


def test_a_row_is_a_layer() -> None:
    def scaled(x: Tensor, *, factor: float, power: int) -> Any:
        """x to a power, times a factor."""
        return x**power * factor

    table = """
        Scaled scaled x
            | factor:number power=1
    """
    layer = layers(table, {"scaled": scaled}, __name__, shows="*")["Scaled"]
    assert repr(layer(2, power=3)) == "Scaled<factor=2, power=3>" and issubclass(layer, nn.Cell)
    np.testing.assert_array_equal(layer(2, power=3)(Tensor([1.0, 2.0])).asnumpy(), [2.0, 16.0])
    assert layer.__doc__ == scaled.__doc__ and list(inspect.signature(layer.construct).parameters) == ["self", "x"]
    with pytest.raises(TypeError, match=r"For 'Scaled', the type of 'factor' must be float or int, but got str"):
        layer("much")

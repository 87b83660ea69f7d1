"""`kernels`: which operators each form of an element means, and what is offered when it means none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.selectors import advice, op_type_of, parse_selector
from msdump.errors import ConfigError
from msdump.testing.configs import kernel_selectors

CONV = "Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/Conv2D-op12"
RELU = "Default/network-WithLossCell/_backbone-AlexNet/relu-ReLU/ReLU-op3"
GRAD = (
    "Gradients/Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/gradConv2D-expand/Conv2DBackpropInput-op20"
)
NAMES = [CONV, RELU, GRAD, "conv1.weight", "learning_rate"]


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        (CONV, [CONV]),
        (CONV.lower(), []),
        ("Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d", []),
        ("Conv2D-op12", []),  # a full name, for it holds "-op"
        ("conv", [CONV, GRAD, "conv1.weight"]),
        ("Conv2D", [CONV, GRAD]),
        ("lu", [RELU]),
        ("AlexNet", []),
        ("", NAMES),
        ("1", ["conv1.weight"]),
        ("name-regex(.*Conv2D-op\\d+)", [CONV]),
        ("name-regex(Default/.*)", [CONV, RELU]),
        ("name-regex(Conv2D)", []),
        ("name-regex(.*ReLU-op[[:digit:]]+)", [RELU]),
        ("name-regex()", []),
        ("name-regex(.*-op1|.*-op12)", [CONV]),
    ],
)
def test_what_each_form_means(text, matched):
    selector = parse_selector(text)
    assert [name for name in NAMES if selector.matches(name)] == matched
    assert selector.text == text


@given(st.data())
def test_drawn_selectors_match_something(data):
    selector = parse_selector(data.draw(kernel_selectors(NAMES)))
    assert any(selector.matches(name) for name in NAMES)


@given(st.text() | st.text("()[]*+?\\-opname-regex(").map(lambda text: f"name-regex({text})"))
def test_any_text_parses_or_raises_config_error(text):
    try:
        selector = parse_selector(text, 3)
    except ConfigError as error:
        message = str(error)
    else:
        assert selector.text == text
        assert selector.matches(CONV) in (True, False)
        return
    assert message.startswith("common_dump_settings.kernels[3]: expected ")


@pytest.mark.parametrize("text", ["name-regex(a(b)", "name-regex(*)", "name-regex([b-a])", "name-regex(.*"])
def test_bad_expressions_name_the_element(text):
    with pytest.raises(ConfigError, match=r"common_dump_settings\.kernels\[1\]: expected"):
        parse_selector(text, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CONV.replace("op12", "op13"), f'Did you mean "{CONV}"'),
        ("Default/network-WithLossCell/_backbone-AlexNet", "It is the scope of 2 operators; write"),
        ("relou", 'Did you mean "ReLU"'),
        ("name-regex(Conv2D-op12)", 'write "name-regex(.*Conv2D-op12.*)"'),
        ("zzzz", ""),
        ("name-regex(zzz)", ""),
    ],
)
def test_advice(text, expected):
    given_advice = advice(parse_selector(text), NAMES)
    assert expected in given_advice
    assert bool(expected) == bool(given_advice)


def test_the_expression_that_is_offered_for_a_scope_selects_what_is_inside():
    text = "Default/network-WithLossCell/_backbone-AlexNet"
    offered = advice(parse_selector(text), NAMES).split('"')[1]
    assert [name for name in NAMES if parse_selector(offered).matches(name)] == [CONV, RELU]


@pytest.mark.parametrize(("name", "op_type"), [(CONV, "Conv2D"), ("a/b-c-op1", "b-c"), ("w.x", "w.x"), ("", "")])
def test_op_type_of(name, op_type):
    assert op_type_of(name) == op_type

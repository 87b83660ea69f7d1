"""Expressions in bounded time: what Python's `re` matches, and nothing else, also where `re` would not end."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.config.linear_regex import LinearPattern, UnboundedPatternError, is_costly
from msdump.config.selectors import parse_selector
from msdump.errors import ConfigError

LETTERS = ["a", "b", "B", "1", "/", "_", "\n", "\u00e9", " "]
ATOMS = [
    *[
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        "[^ab]",
        r"[^\d_\n]",
        r"\d",
        r"\w",
        r"\W",
        r"\s",
        r"\b",
        r"\B",
        "^",
        "$",
        r"\Z",
        "[a-b/]",
        r"[\d_]",
        "(?=a)",
    ],
    *["(?!b)", "(?<=a)", "(?<!a.)", "", "(?i:b)", "(?s:.)", "(?m:$)", "(?m:^)"],
]
EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda some: st.one_of(
        st.tuples(some, some).map("".join),
        st.tuples(some, some).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(some, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=5,
)


@given(EXPRESSIONS, st.lists(st.sampled_from(LETTERS), max_size=5).map("".join))
def test_it_matches_what_re_matches(expression: str, text: str) -> None:
    pattern = re.compile(expression, re.ASCII)
    linear = LinearPattern(pattern)
    assert linear.fullmatch(text) is (pattern.fullmatch(text) is not None)
    assert linear.search(text) is (pattern.search(text) is not None)


@pytest.mark.parametrize("atom", ATOMS)
def test_every_part_matches_what_re_matches_in_every_short_text(atom: str) -> None:
    texts = ["".join(letters) for size in range(3) for letters in itertools.product(LETTERS, repeat=size)]
    for expression in (atom, f"(?s:.){atom}", f"{atom}(?s:.)", f"(?s:.){atom}(?s:.)"):
        pattern = re.compile(expression, re.ASCII)
        linear = LinearPattern(pattern)
        for text in texts:
            assert linear.fullmatch(text) is (pattern.fullmatch(text) is not None), (expression, text)
            assert linear.search(text) is (pattern.search(text) is not None), (expression, text)


@pytest.mark.parametrize(
    "expression",
    ["(a+)+", "(a|a)*", "(a|aa)+", "(a?){1,40}a{40}", "(.*)*x", "((a*)*)*", "(a+)+(?=x)", ".*.*.*.*.*.*x", "(a*?)+?b"],
)
def test_a_name_is_matched_soon(expression: str, alarm: None) -> None:
    selector = parse_selector(f"name-regex({expression})")
    assert selector.matches("a" * 300) is (expression in ("(a+)+", "(a|a)*", "(a|aa)+", "((a*)*)*"))
    assert not selector.matches("a" * 300 + "!")


@pytest.mark.parametrize(
    "expression", [".*Conv2D-op\\d+", "Default/.*", ".*-op1|.*-op12", "[^/]*/[^/]*/x", "(ab)*", "a{3}"]
)
def test_ordinary_expressions_are_left_to_re(expression: str) -> None:
    assert not is_costly(re.compile(expression))


@pytest.mark.parametrize("expression", [r"(a+)+(b)\2", "((a{1,900}){1,900}){1,900}"])
def test_what_cannot_be_bounded_is_refused(expression: str) -> None:
    with pytest.raises(UnboundedPatternError):
        LinearPattern(re.compile(expression))
    with pytest.raises(ConfigError, match=r"kernels\[0\]: expected a regular expression that is matched in bounded"):
        parse_selector(f"name-regex({expression})")

"""Ranges of numbers: text to set and back, against the rules of MindSpore and ACL written down a second time."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msdump.config.acl_file import AclConfigError
from msdump.config.ranges import ACL, EVERY_NUMBER, LAST, MINDSPORE, MINDSPORE_STRICT, NumberRanges, parse_ranges
from msdump.errors import ConfigError
from msdump.testing.acl_configs import step_texts
from msdump.testing.configs import iteration_texts


def is_matched(text: str, iteration: int) -> bool:
    """MindSpore's rule: a number equals, two numbers with one dash enclose, anything else matches nothing."""
    if text == "all":
        return True
    for piece in text.split("|"):
        numbers = [int(number) if number else None for number in piece.split("-")]
        if any(number is None or number > LAST for number in numbers):
            continue
        if len(numbers) == 1 and numbers[0] == iteration:
            return True
        if len(numbers) == 2 and numbers[0] <= iteration <= numbers[1]:
            return True
    return False


@given(iteration_texts(), st.integers(0, 50) | st.integers(0, LAST))
def test_membership(text, iteration):
    assert (iteration in parse_ranges(text)) == is_matched(text, iteration)


@given(st.text("0123456789|-", max_size=12), st.integers(0, 50))
@example("5-2|3", 3)
@example("1-2-3", 2)
@example(f"{2**64}|1", 1)
def test_strict_takes_what_the_original_takes(text, iteration):
    if text:
        assert (iteration in parse_ranges(text, MINDSPORE_STRICT)) == is_matched(text, iteration)


@given(iteration_texts())
def test_parse_format_inverse(text):
    iterations = parse_ranges(text)
    assert parse_ranges(str(iterations)) == iterations
    assert str(parse_ranges(str(iterations))) == str(iterations)


@given(iteration_texts())
def test_ranges_are_sorted_disjoint_and_never_touch(text):
    ranges = parse_ranges(text).ranges
    assert all(first <= last for first, last in ranges)
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(ranges))
    assert parse_ranges(text).count == sum(last - first + 1 for first, last in ranges) > 0


@given(st.text() | st.text("0123456789|- al", max_size=10), st.booleans())
@example("9" * 5000, False)
@example("9" * 5000 + "-1", True)
def test_any_text_parses_or_raises_config_error(text, is_strict):
    try:
        iterations = parse_ranges(text, MINDSPORE_STRICT if is_strict else MINDSPORE)
    except ConfigError:
        return
    assert is_strict or iterations.ranges


def test_zeros_in_front_count_for_nothing():
    assert parse_ranges("0" * 5000 + "3-" + "0" * 5000 + "7") == parse_ranges("3-7")


def test_a_set_of_all_numbers_is_true_and_counts_them():
    assert NumberRanges(((0, LAST),)) and not NumberRanges(())
    assert NumberRanges(((0, LAST),)).count == LAST + 1
    assert None not in parse_ranges("all") and "1" not in parse_ranges("all")


def test_the_guides_example():
    assert parse_ranges("0|5-8|100-120") == NumberRanges(((0, 0), (5, 8), (100, 120)))
    assert parse_ranges("|0|") == parse_ranges("0")
    assert parse_ranges("3-5|0-4|6") == NumberRanges(((0, 6),))
    assert str(parse_ranges("|", MINDSPORE_STRICT)) == "|"


@pytest.mark.parametrize(
    ("text", "piece", "fix"),
    [
        ("0|5-2", "5-2", 'Write "2-5"'),
        ("3-", "3-", 'Write "3-18446744073709551615"'),
        ("-3", "-3", 'Write "0-3"'),
        ("1-2-3", "1-2-3", "first and last iteration only"),
        ("4|-", "-", "it has no numbers"),
        (f"0-{2**64}", f"0-{2**64}", "above the largest iteration"),
    ],
)
def test_pieces_that_never_match_are_named(text, piece, fix):
    with pytest.raises(ConfigError) as caught:
        parse_ranges(text)
    message = str(caught.value)
    assert message.startswith(f'common_dump_settings.iteration: expected "all" or ranges such as "0|5-8", got "{text}"')
    assert f'The piece "{piece}" can never match' in message and fix in message
    assert isinstance(parse_ranges(text, MINDSPORE_STRICT), NumberRanges)


@pytest.mark.parametrize(
    ("text", "advice"), [("ALL", "lower case"), ("", "counted from 0"), ("0, 1", "Leave blanks out")]
)
def test_wrong_characters_get_advice(text, advice):
    with pytest.raises(ConfigError, match=advice) as caught:
        parse_ranges(text, MINDSPORE_STRICT)
    first_line = str(caught.value).splitlines()[0]
    assert first_line == f"iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {text}"


@given(step_texts(), st.integers(0, 50))
def test_a_step_is_in_the_set_when_a_piece_holds_it(text, step):
    ends = [[int(number) for number in piece.split("-")] for piece in text.split("|") if piece]
    assert (step in parse_ranges(text, ACL)) == (not text or any(pair[0] <= step <= pair[-1] for pair in ends))


@given(st.text("0123456789-| a", max_size=12))
def test_any_step_text_is_read_or_refused(text):
    is_right = all(re.fullmatch("[0-9]+(-[0-9]+)?", piece) for piece in text.split("|")) or not text
    found = None
    try:
        parse_ranges(text, ACL)
    except AclConfigError as error:
        found = error
    if found is None:
        assert is_right
    else:
        assert found.ep_code == "EP0003"
        assert not is_right or "must not exceed" in str(found)


def test_huge_steps():
    assert parse_ranges("", ACL) == EVERY_NUMBER
    assert parse_ranges("9" * 5000, ACL).ranges == ((2**63 - 1, 2**63 - 1),)
    assert parse_ranges(f"{LAST + 5}-{2**63 - 1}", ACL).count == 1
    assert 3 in parse_ranges("0" * 5000 + "3", ACL)

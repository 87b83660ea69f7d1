"""Sets of ranks as texts: there and back, and short where ranks are evenly apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.ranks.tables import format_ranks, parse_ranks, shown_ranks


@given(st.sets(st.integers(0, 60)).map(sorted))
def test_there_and_back(ranks: list[int]) -> None:
    text = format_ranks(tuple(ranks))
    assert parse_ranks(text) == ranks
    # What tells sets of several ranks apart from those of one, in SQL.
    assert ("-" in text or "," in text) == (len(ranks) > 1)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (range(1000), "0-999"),
        (range(0, 1000, 8), "0-992/8"),
        ((3, 17), "3,17"),
        ((4, 5), "4-5"),
        ((0, 1, 8, 9), "0-1,8-9"),
        ((), ""),
        ((7,), "7"),
    ],
)
def test_texts(ranks: range, text: str) -> None:
    assert format_ranks(tuple(ranks)) == text


def test_people_see_few_ranks_one_by_one() -> None:
    assert shown_ranks([1, 3, 5]) == "1, 3, 5" and shown_ranks(range(17)) == "0-16"

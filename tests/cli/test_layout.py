"""Text within a width: no line is wider, nothing that tells rows apart is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.cli.layout import filled, shortened, table_lines, terminal_width, text_width, wrapped

WORDS = st.text("ab/.-é中 ", max_size=120)
WIDTHS = st.integers(20, 100)


@given(WORDS, WIDTHS)
def test_no_wrapped_line_is_wider_and_no_letter_is_lost(line: str, width: int) -> None:
    lines = wrapped(line, width)
    assert all(text_width(one) <= max(width, 1) for one in lines) or line.isspace()
    assert "".join("".join(lines).split()) == "".join(line.split())


def test_a_line_that_fits_stays_as_it_is() -> None:
    assert wrapped("  a   b", 20) == ["  a   b"]
    assert wrapped("", 20) == [""]


def test_later_lines_are_indented_and_long_words_part_at_their_joints() -> None:
    assert wrapped("first wrong: Default/net/Conv-op1 (Conv)", 24) == [
        "first wrong:",
        "    Default/net/Conv-op1",
        "    (Conv)",
    ]
    assert wrapped("x Default/network/Conv-op1", 20, 2) == ["x", "  Default/network/", "  Conv-op1"]


@given(WORDS, st.integers(5, 60))
def test_a_shortened_text_keeps_its_ends(text: str, width: int) -> None:
    short = shortened(text, width, "~")
    assert text_width(short) <= width
    if text_width(text) <= width:
        assert short == text
    else:
        head, _, tail = short.partition("~")
        assert text.startswith(head) and text.endswith(tail)


CELLS = st.text("ab/中é", max_size=40)


@given(
    st.integers(1, 6).flatmap(lambda count: st.lists(st.tuples(*[CELLS] * count), min_size=1, max_size=5)),
    WIDTHS,
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
)
def test_no_line_of_a_table_is_wider(
    rows: list[tuple[str, ...]], width: int, numbers: set[int], wraps: set[int]
) -> None:
    titles = [f"t{number}" for number in range(len(rows[0]))]
    columns = list(zip(*rows, strict=True))
    lines = table_lines(titles, columns, width, numbers=numbers, wraps=wraps)
    assert all(text_width(line.text) <= width for line in lines)
    assert {line.row for line in lines} - {None} <= set(range(len(rows)))
    labelled = table_lines((), columns, width)
    assert all(text_width(line.text) <= width for line in labelled)


def lines_of(titles: list[str], rows: list[tuple[str, ...]], width: int, **options: object) -> list[str]:
    columns = list(zip(*rows, strict=True))
    return [line.text for line in table_lines(titles, columns, width, **options)]  # type: ignore[arg-type]


ROWS = [("differs", f"Default/block/MatMul-op{number}", "0", "-", f"0.{number}") for number in range(3)]
TITLES = ["verdict", "operator", "graph", "note", "error"]


def test_what_all_rows_say_is_said_once_and_an_empty_column_goes() -> None:
    assert lines_of(TITLES, ROWS, 60, numbers={4}) == [
        "in each row: graph 0",
        "verdict  operator                  error",
        "differs  Default/block/MatMul-op0    0.0",
        "differs  Default/block/MatMul-op1    0.1",
        "differs  Default/block/MatMul-op2    0.2",
    ]


def test_names_lose_their_middle_before_rows_turn_on_their_side() -> None:
    assert lines_of(TITLES, ROWS, 36, numbers={4})[2] == "differs  Default/...atMul-op0    0.0"
    narrow = lines_of(TITLES, ROWS, 24, numbers={4})
    assert narrow[0] == "in each row: graph 0"
    assert narrow[1].startswith("differs  Defa") and narrow[1].endswith("op0") and narrow[2] == "    error 0.0"


def test_a_text_that_wraps_keeps_every_letter() -> None:
    rows = [("damaged", "x", "expected 24 bytes, got 20: the file is cut short")]
    assert lines_of(["verdict", "tensor", "why"], rows, 50, wraps={2}) == [
        "verdict  tensor  why",
        "damaged  x       expected 24 bytes, got 20: the",
        "                 file is cut short",
    ]


def test_texts_stand_beside_their_labels() -> None:
    assert lines_of([], [("folder", "a b c d e f g h i j k"), ("", "more")], 20) == [
        "folder  a b c d e f",
        "        g h i j k",
        "        more",
    ]


def test_help_texts_are_paragraphs_and_lists() -> None:
    text = "One two three\nfour five.\n\n  a    first second third\nb  x"
    assert filled(text, 20) == "One two three four\nfive.\n\n  a    first second\n       third\nb  x"


@pytest.mark.parametrize(("told", "width"), [("120", 120), ("5", 20), ("", 80), ("x", 80), ("-1", 80)])
def test_the_width_of_the_environment(told: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", told)
    assert terminal_width(None) == width

"""gradients.csv: what is appended is what is read, also of a run that was killed and of one behind another."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.gradients_csv import (
    COLUMNS,
    GRADIENTS_FILE,
    GradientRow,
    append_gradients,
    first_bad,
    first_differing,
    norm_of,
    read_gradients,
)

NAMES = st.text('ab.0,"<b>\n\x1b', max_size=8).map(lambda text: " ".join(text.split()))
NORMS = st.floats(0, 1e30) | st.just(math.inf)
ROWS = st.lists(
    st.builds(
        lambda name, norm, first, digest: GradientRow(0, name, 3, norm, int(bool(first)), first, bool(first), digest),
        NAMES,
        NORMS,
        NAMES,
        st.text("0123456789abcdef", min_size=16, max_size=16),
    ),
    max_size=6,
).map(lambda rows: tuple(replaced(row, iteration) for iteration, row in enumerate(rows)))


def replaced(row: GradientRow, iteration: int) -> GradientRow:
    return GradientRow(iteration, row.optimizer, 3, row.l2norm, row.not_finite, row.first, row.is_skipped, row.digest)


@given(ROWS, st.integers(0, 6))
def test_what_is_appended_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: tuple[GradientRow, ...], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("gradients")
    append_gradients(folder, rows[:cut])
    append_gradients(folder, rows[cut:])
    assert read_gradients(folder / GRADIENTS_FILE) == rows


def test_of_two_runs_in_one_folder_the_last_one_counts(tmp_path: Path) -> None:
    append_gradients(tmp_path, [GradientRow(number, "SGD", 1, 1.0) for number in range(4)], begins_run=True)
    append_gradients(tmp_path, [GradientRow(number, "Adam", 1, 1.0) for number in range(3, 6)], begins_run=True)
    rows = read_gradients(tmp_path / GRADIENTS_FILE)
    assert [(row.iteration, row.optimizer) for row in rows] == [(number, "Adam") for number in range(3, 6)]


def test_rows_of_threads_are_all_read_in_the_order_of_iterations(tmp_path: Path) -> None:
    append_gradients(tmp_path, [GradientRow(number, "SGD", 1, 1.0) for number in (1, 4, 2, 3)], begins_run=True)
    assert [row.iteration for row in read_gradients(tmp_path / GRADIENTS_FILE)] == [1, 2, 3, 4]


@given(st.lists(st.floats(0, 1e150), max_size=9))
def test_the_norm_of_all_is_that_of_one_long_vector(norms: list[float]) -> None:
    assert norm_of(norms) == pytest.approx(math.sqrt(math.fsum(norm * norm for norm in norms)))
    assert norm_of([*norms, math.inf]) == math.inf
    assert math.isnan(norm_of([*norms, math.inf, math.nan]))


def test_a_step_that_a_scaler_has_left_out_is_no_finding() -> None:
    rows = [
        GradientRow(0, "SGD", 1, 1.0),
        GradientRow(1, "SGD", 1, math.inf, 1, "a", is_skipped=True),
        GradientRow(2, "SGD", 1, math.nan, 1, "a"),
    ]
    assert first_bad(rows) == rows[2]
    assert first_bad(rows[:2]) is None


def test_the_first_step_that_differs_is_one_that_both_have() -> None:
    def row(iteration: int, norm: float) -> GradientRow:
        return GradientRow(iteration, "SGD", 1, norm, int(math.isnan(norm)))

    mine = [row(1, 1.0), row(2, math.nan), row(3, 2.0), row(4, 3.0)]
    golden = [row(1, 1.0005), row(2, math.nan), row(4, 3.5)]
    assert first_differing(mine, golden, 1e-3) == (mine[3], golden[2])
    assert first_differing(mine, golden, 0.2) is None
    assert first_differing([row(1, math.nan)], golden, 0.2) is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: expected the columns"),
        ("Iteration\n", "line 1: expected the columns"),
        ("1,SGD,1,1.0,0,,0\n", "line 2: expected 8 values"),
        ("x,SGD,1,1.0,0,,0,0000000000000000\n", "line 2: expected 8 values"),
        ("1,SGD,1,nan,0,,0,0000000000000000\n", "line 2: expected the numbers"),
        ("1,SGD,1,1.0,2,,0,0000000000000000\n", "line 2: expected the numbers"),
        ("-1,SGD,1,1.0,0,,0,0000000000000000\n", "line 2: expected the numbers"),
        ("1,SGD,1,1.0,0,,0,00\n", "line 2: expected the numbers"),
        ("1,SGD,1,1.0,0,,0,g000000000000000\n", "line 2: expected 8 values"),
    ],
)
def test_a_damaged_file_says_where(text: str, words: str, tmp_path: Path) -> None:
    head = ",".join(COLUMNS) + "\n" if "," in text else ""
    file = tmp_path / GRADIENTS_FILE
    file.write_text(head + text)
    with pytest.raises(FormatError, match=words) as caught:
        read_gradients(file)
    assert str(file) in str(caught.value)
    with pytest.raises(FormatError, match="absent"):
        read_gradients(tmp_path / "absent")

"""StepSelection: which folders of a dump a question is about."""

from __future__ import annotations

import pytest

from msdump.formats.paths.parse import FolderLevels
from msdump.formats.selection import ALL_STEPS, StepSelection

LEVELS = FolderLevels(rank_id=1, model="Net", graph_id=2, iteration=3)


@pytest.mark.parametrize(
    ("selection", "is_taken"),
    [
        (ALL_STEPS, True),
        (StepSelection(1, 2, 3), True),
        (StepSelection(rank=(0, 1), iteration=range(4)), True),
        (StepSelection(rank=0), False),
        (StepSelection(iteration={1, 2}), False),
        (StepSelection(graph=0), False),
        (StepSelection(graph="N*"), True),
        (StepSelection(graph="M*"), False),
    ],
)
def test_what_is_selected(selection: StepSelection, is_taken: bool) -> None:
    assert selection.takes(LEVELS) == is_taken


def test_a_folder_that_tells_no_number_fits_no_number() -> None:
    assert ALL_STEPS.takes(FolderLevels())
    assert not StepSelection(rank=0).takes(FolderLevels())
    assert not StepSelection(graph="N*").takes(FolderLevels()) and StepSelection(graph="*").takes(FolderLevels())

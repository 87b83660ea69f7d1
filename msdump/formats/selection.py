"""StepSelection: the ranks, graphs and iterations of a dump that a question is about."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection
from dataclasses import dataclass

from msdump.formats.paths.parse import FolderLevels

Numbers = int | Collection[int] | None


@dataclass(frozen=True, slots=True)
class StepSelection:
    """None selects all.   graph: an id, or a glob of the net or model name"""

    rank: Numbers = None
    graph: Numbers | str = None
    iteration: Numbers = None

    def takes(self, levels: FolderLevels) -> bool:
        """Whether the folder with these levels is selected."""
        if not (is_selected(levels.rank_id, self.rank) and is_selected(levels.iteration, self.iteration)):
            return False
        if isinstance(self.graph, str):
            return fnmatch.fnmatchcase(levels.model or "", self.graph)
        return is_selected(levels.graph_id, self.graph)


ALL_STEPS = StepSelection()


def is_selected(value: int | None, numbers: Numbers) -> bool:
    """Whether a rank, graph or iteration is among those that were selected; None selects all."""
    return numbers is None or (value == numbers if isinstance(numbers, int) else value in numbers)

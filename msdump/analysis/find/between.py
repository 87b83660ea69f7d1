"""What gradients tell of iterations that a sampled dump has left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msdump.formats.gradients_csv import GradientRow, first_bad
from msdump.formats.selection import StepSelection, is_selected
from msdump.tables.messages import message


@dataclass(frozen=True, slots=True)
class BadGradients:
    """The first step of an optimizer, in an iteration without a dump, that read a NaN or an Inf."""

    rank: int
    row: GradientRow

    def __str__(self) -> str:
        """Where, and of which parameters."""
        row = self.row
        if row.not_finite > 1:
            more = row.not_finite - 1
            return message(
                "gradients of {name} and {more} more, rank {rank}, iteration {iteration}",
                name=row.first, more=more, rank=self.rank, iteration=row.iteration,
            )  # fmt: skip
        return message(
            "gradients of {name}, rank {rank}, iteration {iteration}",
            name=row.first, rank=self.rank, iteration=row.iteration,
        )  # fmt: skip

    @property
    def advice(self) -> str:
        """What to change in the configuration of the next run."""
        return message(
            '"iteration": "{iteration}" without "sampling" dumps the operators that made them',
            iteration=self.row.iteration,
        )


def bad_gradients(
    gradients: Mapping[int, Sequence[GradientRow]], selection: StepSelection, dumped: int | None
) -> BadGradients | None:
    """The earliest of all ranks, where it comes before what the dump itself tells.

    gradients  of a dump, by rank
    dumped  first iteration of the dump that has a NaN or an unexpected Inf; None where there is none
    """
    if selection.graph is not None:
        return None
    found = []
    for rank, rows in gradients.items():
        if is_selected(rank, selection.rank):
            row = first_bad(each for each in rows if is_selected(each.iteration, selection.iteration))
            if row is not None and (dumped is None or row.iteration < dumped):
                found.append(BadGradients(rank, row))
    return min(found, key=lambda each: (each.row.iteration, each.rank), default=None)

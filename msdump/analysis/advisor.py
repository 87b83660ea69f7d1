"""Three findings in the result of a comparison, the first that holds: FP16 overflow, inputs that differ, and where the
differences begin.   Source: CANN, msaccucmp advisor, `advisor_summary.txt`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# Below this cosine an operator counts as inaccurate.
ACCURATE = 0.99
OVERFLOW, INPUT, CONSISTENCY = "FP16 Overflow", "Input Inconsistent", "Global Consistency"


@dataclass(frozen=True, slots=True)
class AdvisorRow:
    """What the advisor needs of one row: its index, operator, cosine (NaN for none) and OverFlow cell."""

    index: int
    op_type: str
    op_name: str
    cosine: float
    overflow: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding; `index` is None where nothing is wrong."""

    kind: str
    index: int | None
    advice: str

    @property
    def text(self) -> str:
        """The lines of `advisor_summary.txt`."""
        index = "NA" if self.index is None else str(self.index)
        return f"Detection Type: {self.kind}\nOperator Index: {index}\nExpert Advice: {self.advice}\n"


def advise(rows: Sequence[AdvisorRow], input_nodes: Collection[str] = ()) -> Advice:
    """The first finding.

    input_nodes   operators whose tensors are the model's inputs; without any, those of type Data
    """
    for row in rows:
        if row.overflow == "YES":
            text = (
                f"{row.op_name} holds float16 values at or past 65504. Look at its inputs, scale them down, or keep "
                "the operator in float32."
            )
            return Advice(OVERFLOW, row.index, text)
    for row in rows:
        is_input = row.op_name in input_nodes if input_nodes else row.op_type == "Data"
        if is_input and row.cosine < ACCURATE:
            text = f"The input {row.op_name} is not the same on both sides. Feed both runs the same preprocessed data."
            return Advice(INPUT, row.index, text)
    measured = [row for row in rows if not math.isnan(row.cosine)]
    first = next((row for row in measured if row.cosine < ACCURATE), None)
    if first is None:
        return Advice(CONSISTENCY, None, "All operators that could be compared are accurate.")
    if measured[-1].cosine < ACCURATE:
        text = f"{first.op_name} is the first inaccurate operator and the output is inaccurate, too: look at it first."
    else:
        text = (
            f"{first.op_name} deviates, but the output is accurate again: the deviation heals and may be left as it is."
        )
    return Advice(CONSISTENCY, first.index, text)

"""The few lines that compute an operator in numpy or torch, as source: run by `msdump replay`, written by
`msdump repro`, so that both do the same."""

from __future__ import annotations

import inspect
import re

from msdump.analysis import numpy_equivalents, torch_equivalents

NUMPY, TORCH = "numpy", "torch"
_ANNOTATION = re.compile(r": (?:Any|int|float)(?=[,)=])| -> (?:Any|tuple\[[a-z, ]+\])(?=:)")
_NOTE = re.compile(r"  # (?:noqa|type: ignore)\S*(?: B905)?$", re.MULTILINE)


def program_source(op_type: str, library: str) -> str | None:
    """Source that defines `run(inputs, attrs) -> list of outputs`; None where the table has no such operator.

    numpy source expects `np`, torch source `torch` and `functional` (torch.nn.functional).
    """
    table = numpy_equivalents if library == NUMPY else torch_equivalents
    expression = table.EXPRESSIONS.get(op_type)
    if expression is not None:
        return f"def run(inputs, attrs):\n    return [{expression}]\n"
    found = table.FUNCTIONS.get(op_type)
    if found is None:
        return None
    function, helpers = found
    parts = [_source_of(helper) for helper in helpers]
    main = re.sub(rf"^def {function.__name__}\(", "def run(", _source_of(function))
    return "\n\n".join([*parts, main])


def _source_of(function: object) -> str:
    """Source without what only type checkers read."""
    return _NOTE.sub("", _ANNOTATION.sub("", inspect.getsource(function)))  # type: ignore[arg-type]

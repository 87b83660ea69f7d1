"""The table of operators says what the tables that it replaces say, of all names that they list."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msdump.analysis.compare import _operator_names, vocabulary
from msdump.analysis.compare.quantised import vocabulary as quantised
from msdump.graph import traits as old
from msdump.operators import codes, kinds
from msdump.operators import traits as new


def _rows(text: str) -> list[tuple[str, list[list[str]]]]:
    lines = (line.partition(":") for line in text.replace("\n    ", " ").split("\n") if line)
    return [(kind, [part.replace("-", "").split() for part in names.split("|")]) for kind, _, names in lines]


def _names() -> list[str]:
    names = {*old.MEMORY_USES, *old._GE_MOVE, *quantised.CODE_FORMS, *quantised.INTEGER_FORMS}
    aten = {*old._MOVES.split()}
    for _, (mindspore, library, onnx) in _rows(_operator_names.COMPUTING + _operator_names.MOVING):
        names |= {*mindspore, *onnx}
        aten |= set(library)
    return sorted({*names, *(f"aten.{name}.default" for name in aten), *(f"aten_{name}_default" for name in aten)})


NAMES = _names()
# Rows of one kind got what some of them had: an answer of the old tables that depended on how a dialect spells a name.
LAYOUT = {"cast", "concat", "copy", "expand", "reshape", "slice", "split", "stack", "transpose", "pad", "embedding",
          "shape", "where", "tril", "triu", "scatter"}  # fmt: skip
UNIFIED = {
    "only_moves": LAYOUT,
    "reads_shape_only": {"shape"},
    "drops_nan": LAYOUT,
    "places_constant": {"where", "embedding_grad", "scatter"},
    "is_test": {"gelu", "gelu_grad", "logical_and", "logical_or", "logical_xor", "logical_not", "sign"},
    "effect_on_inf": {*LAYOUT, "gelu", "gelu_grad", "logical_and", "logical_or", "logical_xor", "logical_not", "sign",
        "atan", "atan2", "adaptive_max_pool", "cross_entropy", "nll_loss", "softmax", "threshold", "bce_with_logits",
        "gt", "ge", "lt", "le", "eq", "ne"},
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["makes_unset", "only_moves", "reads_shape_only", "reads_literal", "overwrites_unread", "is_collective",
     "is_random", "brings_data", "places_constant", "makes_one_value", "drops_nan", "is_test",
     "checks_gradients", "tests_finite"],
)  # fmt: skip
def test_traits(name: str) -> None:
    before, now = getattr(old, name), getattr(new, name)
    differing = {op_type for op_type in NAMES if before(op_type) != now(op_type)}
    assert {kinds.kind_of(op_type) for op_type in differing} <= UNIFIED.get(name, set())


def test_memory_and_infinities() -> None:
    for name in NAMES:
        use, before = new.memory_use(name), old.memory_use(name)
        assert (use.overwrites, use.results, use.views) == tuple(before), name
    for sign in (True, False):
        differing = {name for name in NAMES if old.effect_on_inf(name, sign) != new.effect_on_inf(name, sign)}
        assert {kinds.kind_of(name) for name in differing} <= UNIFIED["effect_on_inf"]


def test_kinds() -> None:
    listed = {
        name
        for _, dialects in _rows(_operator_names.COMPUTING + _operator_names.MOVING)
        for names in dialects
        for name in names
    }
    for name in NAMES:
        if name.removeprefix("aten.").removesuffix(".default") in listed:
            assert kinds.kind_of(name) == vocabulary.kind_of(name), name
            assert kinds.is_mover(name) == vocabulary.is_mover(name), name
            assert kinds.dialects_of(name) >= vocabulary.dialects_of(name), name


@pytest.mark.parametrize(
    "name", ["quantises", "quantises_in_floats", "dequantises", "prepares_weights", "computes_on_codes"]
)
def test_codes(name: str) -> None:
    before: Callable[[str], bool] = getattr(quantised, name)
    assert [one for one in NAMES if before(one) != getattr(codes, name)(one)] == []


def test_forms_of_operators_on_codes() -> None:
    for name, form in quantised.CODE_FORMS.items():
        assert repr(codes.code_form(name)) == repr(form)
    for name, slots in quantised.INTEGER_FORMS.items():
        assert codes.integer_slots(name) == slots

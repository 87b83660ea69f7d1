"""What an operator does to memory, to values that no operator has written, and to infinities, by its type.

Types may be spelt as in names of files (`aten_add__Tensor`).

Memory: operators that overwrite inputs, and results that are the memory of an input.

Unset memory: what `empty` returns is whatever lay there before. NaN and Inf in it mean nothing, and no two runs agree
on it; some operators only move it on. Infinities: an Inf is not a fault as such, as a mask of -Inf before a softmax is
a usual way to leave elements out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msdump.operators.kinds import has
from msdump.operators.table import NAMED, MemoryUse, begins_with, is_called, row_of, rows, words

Key = TypeVar("Key", bound=Hashable)

# -- memory: who overwrites what it reads, and who returns it ----------------------------------------------------------

_NOTHING = MemoryUse()
_FIRST_IN_PLACE = MemoryUse((0,), {0: 0})
# PyTorch writes it in the name: aten.add_.Tensor, which file names of some layouts spell aten_add__Tensor.
_ATEN_IN_PLACE = re.compile(r"aten[._](?!_)\w*[a-z0-9]_[._][A-Za-z]\w*")


@functools.cache
def memory_uses() -> Mapping[str, MemoryUse]:
    """The use of each type that the table names one for.

    The kernels of MindSpore's operators declare the same (`mutates`, `aliases`, `views`), and a test compares them; the
    table answers without loading them. It also has types that the stand-in leaves out: dumps of MindSpore hold them.
    """
    return {
        name: row.memory for row in rows() if row.memory is not None for dialect in NAMED for name in row.names[dialect]
    }


@functools.lru_cache(maxsize=1 << 14)
def memory_use(op_type: str) -> MemoryUse:
    """What operators of a type do to the memory of their inputs.

    Edges: an operator that no rule names does nothing to it.
    """
    use = memory_uses().get(op_type)
    if use is not None:
        return use
    return _FIRST_IN_PLACE if _ATEN_IN_PLACE.fullmatch(op_type) else _NOTHING


# -- unset memory: who gives it away, and who only moves it on ---------------------------------------------------------


@functools.lru_cache(maxsize=1 << 14)
def makes_unset(op_type: str) -> bool:
    """True for an operator that returns memory without writing it."""
    return has(op_type, "unset")


def is_unset(op_type: str, inputs: Iterable[bool]) -> bool:
    """Whether the results of an operator hold unset memory, in part at least.   inputs: whether each of its inputs does

    Edges: an operator that computes with unset memory has results of its own; what is wrong with them is its doing.
    """
    return makes_unset(op_type) or (any(inputs) and only_moves(op_type))


def reads_shape_only(op_type: str) -> bool:
    """True for an operator that looks at the shape and the dtype of its inputs, and at none of their values."""
    return has(op_type, "reads-shape")


def reads_literal(op_type: str) -> bool:
    """True for an operator whose input is what the script wrote down, as PyTorch makes a tensor of a Python number."""
    return has(op_type, "literal")


def only_moves(op_type: str) -> bool:
    """True for an operator that computes nothing: each element of its results is an element of an input.

    It can make no NaN; one that writes a part of an input leaves the rest of it unset.
    """
    return has(op_type, "moves")


def unset_keys(ops: Iterable[tuple[str, Sequence[Key], Sequence[Key]]]) -> frozenset[Key]:
    """Keys of all tensors that hold unset memory.   ops: (type, keys of inputs, keys of outputs) in execution order"""
    unset: set[Key] = set()
    for op_type, inputs, outputs in ops:
        if is_unset(op_type, (key in unset for key in inputs)):
            unset.update(outputs)
    return frozenset(unset)


def unread_inputs(op_type: str, names: Sequence[str]) -> tuple[int, ...]:
    """Slots of inputs that an operator overwrites without reading them: what they hold says nothing about it.

    names  of all its inputs: of the argument, with the index in a list
    """
    unread = overwrites_unread(op_type)
    if not unread:
        return ()
    heads = [name.partition("[")[0] for name in names]
    return tuple(slot for slot, head in enumerate(heads) if head in unread or (unread == FIRST and head == heads[0]))


FIRST = ("",)


@functools.lru_cache(maxsize=4096)
def overwrites_unread(op_type: str) -> tuple[str, ...]:
    """Names of the arguments that operators of a type overwrite without reading them; one of no name is the first."""
    if has(op_type, "overwrites-first"):
        return FIRST
    if has(op_type, "receives"):
        return ("tensors",)
    return ("output", "output_tensor", "output_tensors") if is_collective(op_type) else ()


def brings_data(op_type: str) -> bool:
    """True for an operator that gives a tensor memory from elsewhere, as what a loader's process has sent."""
    return has(op_type, "brings-data") and "source" in op_type


# -- values of other processes, and numbers that are drawn -------------------------------------------------------------


def is_collective(op_type: str) -> bool:
    """True for an operator whose results other processes have a part in."""
    return has(op_type, "collective")


def is_random(op_type: str) -> bool:
    """True for an operator that draws numbers: its results do not follow from its inputs."""
    return has(op_type, "random")


# -- infinities: who puts one into a tensor, and who stops one ---------------------------------------------------------

# What an operator does with an Inf that it reads. NEUTRAL: it looks, and says nothing of whether the Inf was meant.
STOPS, NEUTRAL, PASSES = "stops", "neutral", "passes"
# Scatters that add up, which may overflow, say so in a word of their name.
_REDUCTIONS = frozenset({"add", "sub", "mul", "div", "reduce"})


def places_constant(op_type: str) -> bool:
    """True when an Inf that no input has can only be a constant that the script chose: such an operator copies values
    and computes none."""
    adds_up = begins_with(op_type, "adds-up") or not _REDUCTIONS.isdisjoint(words(op_type))
    return begins_with(op_type, "places") and not adds_up


def makes_one_value(op_type: str) -> bool:
    """True for an operator whose result has one value in all of its elements, as `zeros` and `fill` make it."""
    return is_called(op_type, "one-value")


def effect_on_inf(op_type: str, has_positive: bool) -> str:
    """STOPS, NEUTRAL or PASSES.

    has_positive  the Inf has a plus sign: exp stops a minus alone
    """
    if is_test(op_type):
        return NEUTRAL
    if begins_with(op_type, "stops-inf") or (not has_positive and begins_with(op_type, "stops-negative-inf")):
        return STOPS
    return PASSES


def holds_inf_by_design(op_type: str, output: int, is_negative: bool) -> bool:
    """True for an output beside the result that holds minus Inf where all is well: tables of logarithms, where the
    chance of what cannot be is 0.

    is_negative   it holds minus Inf, and neither plus Inf nor NaN
    """
    return output > 0 and is_negative and has(op_type, "auxiliary-logs")


def drops_nan(op_type: str) -> bool:
    """True for an operator that leaves elements of its inputs out as the script wants it, be they NaN."""
    return begins_with(op_type, "chooses")


def is_test(op_type: str) -> bool:
    """True for an operator that only looks at values, as comparisons do."""
    return begins_with(op_type, "tests")


def checks_gradients(op_type: str) -> tuple[str, ...] | None:
    """Of an operator by which a scaler of the loss finds gradients that are not finite: names of the input that it sets
    then; () where its output says so. None for all others.

    Source: PyTorch, `GradScaler`; MindSpore, `DynamicLossScaleUpdateCell`.
    """
    if has(op_type, "unscales"):
        return ("found_inf",)
    return () if begins_with(op_type, "float-status") else None


def tests_finite(op_type: str) -> bool:
    """True for MindSpore's operator that tells of each element whether it is finite: loss scalers make their flag of it
    where the device has no status.
    """
    return has(op_type, "tests-finite")


# -- operators that hold others ----------------------------------------------------------------------------------------

_SUBGRAPHS = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def subgraph_labels(op_type: str) -> tuple[str, ...]:
    """Names of the attributes in which an operator of ONNX holds what it runs; () for one that runs no others.

    The operators in there have names that begin with its name and one of these.
    """
    return _SUBGRAPHS.get(op_type, ())


def jumps_of(op_type: str) -> tuple[float, ...]:
    """Arguments at which the derivative of an operator's function jumps; () for one that has none."""
    row = row_of(op_type)
    return () if row is None else row.jumps

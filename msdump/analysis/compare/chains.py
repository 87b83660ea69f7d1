"""Operators in a row that are one operator elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from msdump.analysis.steps import Operator
from msdump.operators.kinds import kind_of


@dataclass(frozen=True, slots=True)
class Chain:
    """Kinds that follow each other, each reading what the one before it made, and the kind that they are together.

    has_other_operands   whether one operator reads other numbers in their place: weights that were folded into others
    """

    kind: str
    parts: tuple[str, ...]
    has_other_operands: bool = False


def _attentions() -> tuple[Chain, ...]:
    """Attention in its steps: queries may be scaled before the product or after it, there may be a mask, and what it
    leaves empty may be set to zero.
    """
    begins = (("mul", "matmul"), ("matmul", "mul"), ("matmul", "div"), ("matmul",))
    return tuple(
        # Keys are scaled as well, which no operator of the chain shows.
        Chain("attention", (*begin, *mask, "softmax", *rows, "matmul"), True)
        for begin in begins
        for mask in (("add",), ("where",), ())
        for rows in (("where",), ())
    )


CHAINS = (
    Chain("gelu", ("mul", "div", "erf", "add", "mul")),
    Chain("gelu", ("div", "erf", "add", "mul", "mul")),
    Chain("gelu", ("div", "erf", "add", "mul")),
    Chain("mse_loss", ("sub", "pow", "mean")),
    Chain("mse_loss", ("sub", "pow", "sum")),
    Chain("l1_loss", ("sub", "abs", "mean")),
    Chain("l1_loss", ("sub", "abs", "sum")),
    Chain("cross_entropy", ("log_softmax", "nll_loss")),
    Chain("linear", ("matmul", "bias_add")),
    Chain("linear", ("matmul", "add")),
    Chain("conv", ("conv", "bias_add")),
    Chain("conv", ("conv", "batch_norm"), True),
    Chain("conv", ("conv", "bias_add", "batch_norm"), True),
    Chain("conv_transpose", ("conv_transpose", "bias_add")),
    Chain("leaky_relu", ("mul", "clamp_min")),
    Chain("silu", ("sigmoid", "mul")),
    Chain("softmax", ("amax", "sub", "exp", "sum", "div")),
    Chain("hardswish", ("hardsigmoid", "mul")),
    Chain("mish", ("softplus", "tanh", "mul")),
    Chain("log_softmax", ("softmax", "log")),
    Chain("softsign", ("abs", "add", "div")),
    Chain("rsqrt", ("sqrt", "div")),
    Chain("rsqrt", ("sqrt", "reciprocal")),
    Chain("logsigmoid", ("sigmoid", "log")),
    Chain("rms_norm", ("pow", "mean", "add", "sqrt", "div", "mul")),
    Chain("rms_norm", ("pow", "mean", "add", "rsqrt", "mul", "mul")),
    *_attentions(),
)


def chain_of(operator: Operator) -> Chain | None:
    """The chain that an operator stands for, one without a name for a chain that has none; None for one operator."""
    if not operator.parts:
        return None
    kinds = tuple(kind_of(part.op_type) for part in operator.parts)
    return next((chain for chain in CHAINS if chain.parts == kinds), Chain("+".join(kinds), kinds))


def reads_others(operator: Operator) -> bool:
    """Whether it is a chain in whose place one operator reads other numbers."""
    chain = chain_of(operator)
    return chain is not None and chain.has_other_operands

"""Operators in a row that are one operator elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


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

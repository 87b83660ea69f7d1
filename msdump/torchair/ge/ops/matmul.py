"""Matrix products, and scaled dot product attention as torch fuses it on CPUs.

query, key, value   (batch, heads, sequence, width)
"""

from __future__ import annotations

import math
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor, Operand
from msdump.torchair.ge.ops.elementwise import conj
from msdump.torchair.ge.registry import converter, kernel

_PLAIN = {"transpose_x1": False, "transpose_x2": False}
_PLAIN_BATCH = {"adj_x1": False, "adj_x2": False}

kernel("Dot")(torch.dot)

_aten = torch.ops.aten

# sparse_mode: causal, each position sees those up to its own, counted from the upper left corner.
_FULL, _CAUSAL = 0, 2


@converter("aten.mm.default")
def mm(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("MatMul", {"x1": x, "x2": other, "bias": None}, _PLAIN)


@kernel("MatMul")
def matmul_kernel(
    x1: torch.Tensor,
    x2: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
) -> torch.Tensor:
    x1, x2 = x1.t() if transpose_x1 else x1, x2.t() if transpose_x2 else x2
    return torch.mm(x1, x2) if bias is None else torch.addmm(bias, x1, x2)


@converter("aten.bmm.default")
def bmm(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("BatchMatMul", {"x1": x, "x2": other}, _PLAIN_BATCH)


@kernel("BatchMatMul")
def batch_matmul_kernel(
    x1: torch.Tensor, x2: torch.Tensor, *, adj_x1: bool = False, adj_x2: bool = False
) -> torch.Tensor:
    return torch.bmm(x1.mT if adj_x1 else x1, x2.mT if adj_x2 else x2)


@converter("aten.addmm.default")
def addmm(ge: Builder, bias: GeTensor, x: GeTensor, other: GeTensor, beta: Operand = 1, alpha: Operand = 1) -> GeTensor:
    product = ge.op("MatMulV2", {"x1": x, "x2": other, "bias": None, "offset_w": None}, _PLAIN)
    scaled = _scaled(ge, product, alpha)
    if beta == 0:
        return scaled
    return ge.op("Add", {"x1": scaled, "x2": bias if beta == 1 else _scaled(ge, bias, beta)})


@kernel("MatMulV2")
def matmul_v2_kernel(
    x1: torch.Tensor,
    x2: torch.Tensor,
    bias: torch.Tensor | None,
    offset_w: torch.Tensor | None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
) -> torch.Tensor:
    """offset_w serves quantised weights, which torch's graphs do not have here; it is never fed."""
    return matmul_kernel(x1, x2, bias, transpose_x1=transpose_x1, transpose_x2=transpose_x2)


@converter("aten.baddbmm.default")
def baddbmm(
    ge: Builder, bias: GeTensor, x: GeTensor, other: GeTensor, beta: Operand = 1, alpha: Operand = 1
) -> GeTensor:
    product = _scaled(ge, ge.op("BatchMatMul", {"x1": x, "x2": other}, _PLAIN_BATCH), alpha)
    # NaN of a bias that does not count stays out, as in torch.
    if beta == 0:
        return product
    dtype = ge.result.dtype
    return ge.op("Add", {"x1": ge.cast(product, dtype), "x2": ge.cast(_scaled(ge, bias, beta), dtype)})


@converter("aten.mv.default")
def mv(ge: Builder, x: GeTensor, vector: GeTensor) -> GeTensor:
    column = ge.op("Unsqueeze", {"x": vector}, {"axes": [1]})
    return ge.op("Squeeze", {"x": mm(ge, x, column)}, {"axis": [1]})


@converter("aten.addmv.default")
def addmv(
    ge: Builder, bias: GeTensor, x: GeTensor, vector: GeTensor, beta: Operand = 1, alpha: Operand = 1
) -> GeTensor:
    product = _scaled(ge, mv(ge, x, vector), alpha)
    return product if beta == 0 else ge.op("Add", {"x1": product, "x2": _scaled(ge, bias, beta)})


@converter("aten.dot.default")
def dot(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("Dot", {"input_x": x, "input_y": other}, output="output")


@converter("aten.vdot.default")
def vdot(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return dot(ge, conj(ge, x) if x.dtype.is_complex else x, other)


def _scaled(ge: Builder, x: GeTensor, factor: Operand) -> GeTensor:
    dtype: torch.dtype = x.dtype
    return ge.op("Mul", {"x1": x, "x2": ge.number(factor, dtype)})


@converter("aten._scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    ge: Builder,
    query: GeTensor,
    key: GeTensor,
    value: GeTensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: GeTensor | None = None,
    scale: float | None = None,
) -> tuple[GeTensor | None, ...]:
    """torch keeps the log of the sum of exponentials, GE its two parts."""
    inputs = {
        "query": query,
        "key": key,
        "value": value,
        "real_shift": attn_mask,
        "drop_mask": None,
        "padding_mask": None,
        "atten_mask": None,
    }
    outputs = ("softmax_max", "softmax_sum", "softmax_out", "attention_out")
    attrs = _attrs(query, dropout_p, is_causal, scale)
    softmax_max, softmax_sum, _, out = ge.multi_op("FlashAttentionScore", inputs, outputs, attrs)
    if not ge.is_read(1):
        return out, None
    return out, ge.op("Add", {"x1": softmax_max, "x2": ge.op("Log", {"x": softmax_sum})})


@kernel("FlashAttentionScore")
def flash_attention_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    real_shift: torch.Tensor | None,
    drop_mask: torch.Tensor | None,
    padding_mask: torch.Tensor | None,
    atten_mask: torch.Tensor | None,
    *,
    scale_value: float,
    keep_prob: float,
    head_num: int,
    input_layout: str,
    sparse_mode: int,
) -> tuple[torch.Tensor, ...]:
    """-> softmax_max, softmax_sum, softmax_out, attention_out

    softmax_max + log(softmax_sum) is the log of the sum of exponentials of each row, which is all that the gradient
    needs of the two. torch gives that sum alone, so that the second is one. softmax_out is empty, as on devices.
    """
    attention, log_sum = _aten._scaled_dot_product_flash_attention_for_cpu.default(
        query, key, value, 1.0 - keep_prob, sparse_mode == _CAUSAL, attn_mask=real_shift, scale=scale_value
    )
    return log_sum, torch.ones_like(log_sum), query.new_empty(0), attention


@converter("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    ge: Builder,
    dy: GeTensor,
    query: GeTensor,
    key: GeTensor,
    value: GeTensor,
    out: GeTensor,
    logsumexp: GeTensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: GeTensor | None = None,
    scale: float | None = None,
) -> tuple[GeTensor, ...]:
    """exp(score - logsumexp) / 1 is the softmax, so that logsumexp passes for the maximum, and one for the sum."""
    inputs = {
        "query": query,
        "key": key,
        "value": value,
        "dy": dy,
        "pse_shift": attn_mask,
        "drop_mask": None,
        "padding_mask": None,
        "atten_mask": None,
        "softmax_max": logsumexp,
        "softmax_sum": ge.op("OnesLike", {"x": logsumexp}),
        "softmax_in": None,
        "attention_in": out,
    }
    return ge.multi_op(
        "FlashAttentionScoreGrad", inputs, ("dq", "dk", "dv"), _attrs(query, dropout_p, is_causal, scale)
    )


@kernel("FlashAttentionScoreGrad")
def flash_attention_grad_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dy: torch.Tensor,
    pse_shift: torch.Tensor | None,
    drop_mask: torch.Tensor | None,
    padding_mask: torch.Tensor | None,
    atten_mask: torch.Tensor | None,
    softmax_max: torch.Tensor,
    softmax_sum: torch.Tensor | None,
    softmax_in: torch.Tensor | None,
    attention_in: torch.Tensor,
    *,
    scale_value: float,
    keep_prob: float,
    head_num: int,
    input_layout: str,
    sparse_mode: int,
) -> Any:
    """-> dq, dk, dv"""
    log_sum = softmax_max if softmax_sum is None else softmax_max + torch.log(softmax_sum)
    return _aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
        dy,
        query,
        key,
        value,
        attention_in,
        log_sum,
        1.0 - keep_prob,
        sparse_mode == _CAUSAL,
        attn_mask=pse_shift,
        scale=scale_value,
    )


def _attrs(query: GeTensor, dropout_p: float, is_causal: bool, scale: float | None) -> dict[str, object]:
    return {
        "scale_value": 1.0 / math.sqrt(int(query.shape[-1])) if scale is None else scale,
        "keep_prob": 1.0 - dropout_p,
        "head_num": int(query.shape[1]),
        "input_layout": "BNSD",
        "sparse_mode": _CAUSAL if is_causal else _FULL,
    }

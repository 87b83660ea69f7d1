"""Scaled dot product attention as torch fuses it on CPUs."""

from __future__ import annotations

import math
from typing import Any

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter

# sparse_mode of GE's operators.
_FULL, _CAUSAL = 0, 2


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


def _attrs(query: GeTensor, dropout_p: float, is_causal: bool, scale: float | None) -> dict[str, Any]:
    return {
        "scale_value": 1.0 / math.sqrt(int(query.shape[-1])) if scale is None else scale,
        "keep_prob": 1.0 - dropout_p,
        "head_num": int(query.shape[1]),
        "input_layout": "BNSD",
        "sparse_mode": _CAUSAL if is_causal else _FULL,
    }

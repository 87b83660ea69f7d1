"""GE operators of fused attention, (batch, heads, sequence, width)."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

aten = torch.ops.aten

# sparse_mode: each position sees those up to its own; counted from the upper left corner.
CAUSAL = 2


@kernel("FlashAttentionScore")
def flash_attention(
    query: Any,
    key: Any,
    value: Any,
    real_shift: Any,
    drop_mask: Any,
    padding_mask: Any,
    atten_mask: Any,
    *,
    scale_value: float,
    keep_prob: float,
    head_num: int,
    input_layout: str,
    sparse_mode: int,
) -> Any:
    """-> softmax_max, softmax_sum, softmax_out, attention_out

    softmax_max + log(softmax_sum) is the log of the sum of exponentials of each row, which is all that the gradient
    needs of the two. torch gives that sum alone, so that the second is one. softmax_out is empty, as on devices.
    """
    attention, log_sum = aten._scaled_dot_product_flash_attention_for_cpu.default(
        query, key, value, 1.0 - keep_prob, sparse_mode == CAUSAL, attn_mask=real_shift, scale=scale_value
    )
    return log_sum, torch.ones_like(log_sum), query.new_empty(0), attention


@kernel("FlashAttentionScoreGrad")
def flash_attention_grad(
    query: Any,
    key: Any,
    value: Any,
    dy: Any,
    pse_shift: Any,
    drop_mask: Any,
    padding_mask: Any,
    atten_mask: Any,
    softmax_max: Any,
    softmax_sum: Any,
    softmax_in: Any,
    attention_in: Any,
    *,
    scale_value: float,
    keep_prob: float,
    head_num: int,
    input_layout: str,
    sparse_mode: int,
) -> Any:
    """-> dq, dk, dv"""
    log_sum = softmax_max if softmax_sum is None else softmax_max + torch.log(softmax_sum)
    return aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
        dy,
        query,
        key,
        value,
        attention_in,
        log_sum,
        1.0 - keep_prob,
        sparse_mode == CAUSAL,
        attn_mask=pse_shift,
        scale=scale_value,
    )

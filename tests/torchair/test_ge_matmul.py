"""Matrix products and fused attention as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_calls import check, graph_of  # noqa: E402

aten = torch.ops.aten


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_products(dtype: Any) -> None:
    x, y, bias = ((torch.randn(shape) * 3).to(dtype) for shape in ((3, 4), (4, 5), (5,)))
    check(aten.mm.default, x, y, spelled="MatMul(x1,x2,bias?)")
    check(aten.mm.default, y.t(), x.t(), spelled="MatMul(x1,x2,bias?)")
    check(aten.bmm.default, x.expand(2, 3, 4), y.expand(2, 4, 5), spelled="BatchMatMul(x1,x2)")
    check(aten.addmm.default, bias, x, y, spelled="MatMulV2(x1,x2,bias?,offset_w?) Mul(x1,x2) Add(x1,x2)")
    check(aten.mv.default, x, y[:, 0], spelled="Unsqueeze(x) MatMul(x1,x2,bias?) Squeeze(x)")
    check(aten.addmv.default, x[:, 1], x, y[:, 0], beta=2)
    check(aten.dot.default, x[0], y[:, 0], spelled="Dot(input_x,input_y)")


def test_factors() -> None:
    bias, x, y = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
    product = "MatMulV2(x1,x2,bias?,offset_w?) Mul(x1,x2)"
    check(aten.addmm.default, bias, x, y, beta=0.5, alpha=2, spelled=f"{product} Mul(x1,x2) Add(x1,x2)")
    # What counts nothing may be NaN.
    check(aten.addmm.default, bias * float("nan"), x, y, beta=0, spelled=product)
    x, y, bias = x.expand(2, 3, 4), y.expand(2, 4, 5), torch.randn(2, 3, 5)
    check(aten.baddbmm.default, bias, x, y, spelled="BatchMatMul(x1,x2) Mul(x1,x2) Mul(x1,x2) Add(x1,x2)")
    check(aten.baddbmm.default, bias, x, y, beta=0, alpha=0.1, spelled="BatchMatMul(x1,x2) Mul(x1,x2)")


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": torch.randn(2, 1, 5, 6)}])
def test_attention(options: dict[str, Any]) -> None:
    length = 5 if options.get("is_causal") else 6
    query, key, value = torch.randn(2, 3, 5, 8), torch.randn(2, 3, length, 8), torch.randn(2, 3, length, 8)
    forward = aten._scaled_dot_product_flash_attention_for_cpu.default
    shift = "real_shift" if "attn_mask" in options else "real_shift?"
    masks = "drop_mask?,padding_mask?,atten_mask?"
    spelled = f"FlashAttentionScore(query,key,value,{shift},{masks}) Log(x) Add(x1,x2)"
    check(forward, query, key, value, **options, spelled=spelled)
    out, log_sum = forward(query, key, value, **options)
    is_causal = bool(options.get("is_causal"))
    rest = {name: option for name, option in options.items() if name != "is_causal"}
    spelled = (
        f"OnesLike(x) FlashAttentionScoreGrad(query,key,value,dy,{shift.replace('real', 'pse')},{masks},"
        "softmax_max,softmax_sum,softmax_in?,attention_in)"
    )
    arguments = (torch.randn(out.shape), query, key, value, out, log_sum, 0.0, is_causal)
    check(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, *arguments, **rest, spelled=spelled)


def test_attention_says_its_scale_and_its_mask() -> None:
    query = torch.randn(1, 2, 4, 16)
    graph, _ = graph_of(aten._scaled_dot_product_flash_attention_for_cpu.default, query, query, query, 0.0, True)
    attrs = next(op for op in graph.ops if op.type == "FlashAttentionScore").attrs
    assert attrs == {"scale_value": 0.25, "keep_prob": 1.0, "head_num": 2, "input_layout": "BNSD", "sparse_mode": 2}

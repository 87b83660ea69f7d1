"""A small model in floats and in codes, as frameworks dump it: products of matrices with an activation behind each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.analysis.small_dump import write_dump

Array = np.ndarray[Any, np.dtype[Any]]
Planted = Callable[[Array, Array], tuple[Array, Array]]
Operators = list[tuple[str, dict[tuple[str, int], Any]]]
SIZE, ROWS = 16, 32
SATURATES = "this processor cuts products of uint8 and int8 off at 16 bits"


@dataclass
class Model:
    """Weights and data.

    outlier   layer whose weight has one large value, in channel 5
    narrow    layer whose result has a range that ends at a fifth of its largest value; in forms that round their tokens
              themselves the layer that reads such
    planted   changes codes and scales of columns of the weight of a layer
    """

    layers: int = 4
    outlier: int | None = None
    narrow: int | None = None
    seed: int = 0
    planted: Mapping[int, Planted] = field(default_factory=dict)
    weights: list[Array] = field(init=False)
    data: Array = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.weights = [(rng.uniform(-1, 1, (SIZE, SIZE)) * 0.6).astype(np.float32) for _ in range(self.layers)]
        if self.outlier is not None:
            self.weights[self.outlier][3, 5] = 20
        self.data = rng.uniform(-1, 1, (ROWS, SIZE)).astype(np.float32)

    def activations(self) -> list[Array]:
        """What each layer reads, and the result of the last one."""
        found = [self.data]
        for weight in self.weights:
            found.append(np.maximum(found[-1] @ weight, 0))
        return found

    def column_codes(self, index: int) -> tuple[Array, Array]:
        """Codes of the weight of a layer in int8, and a scale for each column."""
        weight = self.weights[index]
        scale = (np.abs(weight).max(axis=0) / 127).astype(np.float32)
        codes = np.rint(weight / scale).astype(np.int8)
        return self.planted[index](codes, scale) if index in self.planted else (codes, scale)

    def token_codes(self, index: int, x: Array) -> tuple[Array, Array]:
        """Codes in int8 of what a layer reads, and a scale for each row of it: (rows, 1)."""
        scale = (np.abs(x).max(axis=1, keepdims=True) / 127).astype(np.float32)
        scale = scale / np.float32(5) if index == self.narrow else scale
        return np.clip(np.rint(x / np.maximum(scale, 1e-9)), -128, 127).astype(np.int8), scale

    def ranges(self) -> list[tuple[float, int]]:
        """Scale and zero point (uint8) of what `activations` gives."""
        grids = []
        for number, values in enumerate(self.activations()):
            low, high = min(0.0, float(values.min())), float(values.max())
            high = high / 5 if self.narrow is not None and number == self.narrow + 1 else high
            scale = np.float32((high - low) / 255)
            grids.append((float(scale), round(-low / scale)))
        return grids


def quantised(values: Array, scale: float, zero: int, dtype: str = "uint8") -> Array:
    """Codes of numbers."""
    ends = np.iinfo(dtype)
    return np.clip(np.rint(values / np.float32(scale)) + zero, ends.min, ends.max).astype(dtype)


def weight_codes(weight: Array) -> tuple[Array, float]:
    """Symmetric codes in int8, and their scale."""
    scale = float(np.float32(np.abs(weight).max() / 127))
    return quantised(weight, scale, 0, "int8"), scale


def number(value: float) -> Array:
    return np.asarray(value, np.float32)


def in_floats(model: Model) -> Operators:
    """MatMul and Relu, one after the other."""
    found: Operators = [("Default/Data-op0", {("input", 0): model.data, ("output", 0): model.data})]
    x = model.data
    for index, weight in enumerate(model.weights):
        y = x @ weight
        found.append((f"Default/l{index}/MatMul-op{index}", {("input", 0): x, ("input", 1): weight, ("output", 0): y}))
        x = np.maximum(y, 0)
        found.append((f"Default/l{index}/Relu-op{index}", {("input", 0): y, ("output", 0): x}))
    return found


def in_pairs(model: Model) -> Operators:
    """QuantizeLinear and DequantizeLinear around each product; the activation is folded into the range."""
    found: Operators = [("Default/Data-op0", {("input", 0): model.data, ("output", 0): model.data})]
    count = 0

    def rounded(values: Array, scale: float, zero: int) -> Array:
        nonlocal count
        count += 1
        codes, point = quantised(values, scale, zero), np.asarray(zero, np.uint8)
        after = ((codes.astype(np.float32) - zero) * np.float32(scale)).astype(np.float32)
        shared = {("input", 1): number(scale), ("input", 2): point}
        found.append((f"Default/QuantizeLinear-op{count}", {("input", 0): values, **shared, ("output", 0): codes}))
        found.append((f"Default/DequantizeLinear-op{count}", {("input", 0): codes, **shared, ("output", 0): after}))
        return after

    grids = model.ranges()
    x = rounded(model.data, *grids[0])
    for index, weight in enumerate(model.weights):
        codes, scale = weight_codes(weight)
        coarse = (codes.astype(np.float32) * np.float32(scale)).astype(np.float32)
        found.append(
            (
                f"Default/w{index}/DequantizeLinear-op{100 + index}",
                {("input", 0): codes, ("input", 1): number(scale), ("output", 0): coarse},
            )
        )
        y = (x @ coarse).astype(np.float32)
        found.append((f"Default/l{index}/MatMul-op{index}", {("input", 0): x, ("input", 1): coarse, ("output", 0): y}))
        x = rounded(y, *grids[index + 1])
    return found


def in_operators(model: Model) -> Operators:
    """QLinearMatMul: codes in, codes out."""
    grids = model.ranges()
    codes = quantised(model.data, *grids[0])
    scale, zero = number(grids[0][0]), np.asarray(grids[0][1], np.uint8)
    found: Operators = [
        ("Default/Data-op0", {("input", 0): model.data, ("output", 0): model.data}),
        (
            "Default/QuantizeLinear-op0",
            {("input", 0): model.data, ("input", 1): scale, ("input", 2): zero, ("output", 0): codes},
        ),
    ]
    for index, weight in enumerate(model.weights):
        w, w_scale = weight_codes(weight)
        (x_scale, x_zero), (y_scale, y_zero) = grids[index], grids[index + 1]
        y = (codes.astype(np.float64) - x_zero) * x_scale @ (w * w_scale)
        after = quantised(y, y_scale, y_zero)
        inputs = [
            codes, number(x_scale), np.asarray(x_zero, np.uint8), w, number(w_scale), np.asarray(0, np.int8),
            number(y_scale), np.asarray(y_zero, np.uint8),
        ]  # fmt: skip
        tensors: dict[tuple[str, int], Any] = {("input", slot): one for slot, one in enumerate(inputs)}
        found.append((f"Default/l{index}/QLinearMatMul-op{index}", {**tensors, ("output", 0): after}))
        codes = after
    return found


def in_sums(model: Model) -> Operators:
    """Codes made while the model runs, sums of their products, and the operators that scale these."""
    found: Operators = [("Default/Data-op0", {("input", 0): model.data, ("output", 0): model.data})]
    x = model.data
    for index, weight in enumerate(model.weights):
        w, w_scale = weight_codes(weight)
        scale = np.float32((max(0.0, x.max()) - min(0.0, x.min())) / 255)
        zero = int(np.rint(-min(0.0, x.min()) / scale))
        codes, point = quantised(x, scale, zero), np.asarray(zero, np.uint8)
        sums = ((codes.astype(np.int32) - zero) @ w.astype(np.int32)).astype(np.int32)
        factor = np.float32(scale * np.float32(w_scale))
        y = sums.astype(np.float32) * factor
        place = f"Default/l{index}"
        found += [
            (
                f"Default/DynamicQuantizeLinear-op{index}",
                {("input", 0): x, ("output", 0): codes, ("output", 1): scale, ("output", 2): point},
            ),
            (
                f"Default/Mul-op{index}",
                {("input", 0): scale, ("input", 1): number(w_scale), ("output", 0): factor},
            ),
            (
                f"{place}/MatMulInteger-op{index}",
                {("input", 0): codes, ("input", 1): w, ("input", 2): point, ("output", 0): sums},
            ),
            (f"{place}/Cast-op{index}", {("input", 0): sums, ("output", 0): sums.astype(np.float32)}),
            (
                f"{place}/Mul-op{50 + index}",
                {("input", 0): sums.astype(np.float32), ("input", 1): factor, ("output", 0): y},
            ),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", {("input", 0): y, ("output", 0): x}))
    return found


def on_ascend(model: Model) -> Operators:
    """AscendQuant, whose scale is an attribute, a product of int8, and AscendDequant with the bits of a float32."""
    found: Operators = [("Default/Data-op0", {("input", 0): model.data, ("output", 0): model.data})]
    x = model.data
    for index, weight in enumerate(model.weights):
        w, w_scale = weight_codes(weight)
        scale = float(np.float32(np.abs(x).max() / 127))
        codes = quantised(x, scale, 0, "int8")
        sums = (codes.astype(np.int32) @ w.astype(np.int32)).astype(np.int32)
        factor = np.full(SIZE, scale * w_scale, np.float32)
        y = (sums * factor).astype(np.float32)
        place = f"Default/l{index}"
        found += [
            (f"{place}/AscendQuant-op{index}", {("input", 0): x, ("output", 0): codes}),
            (f"{place}/MatMulV2-op{index}", {("input", 0): codes, ("input", 1): w, ("output", 0): sums}),
            (
                f"{place}/AscendDequant-op{index}",
                {("input", 0): sums, ("input", 1): factor.view(np.uint32).astype(np.uint64), ("output", 0): y},
            ),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", {("input", 0): y, ("output", 0): x}))
    return found


def on_tokens(model: Model) -> Operators:
    """Products of int8 as torchao has them: each row of the data has a scale of its own, spread over the row."""
    found: Operators = []
    x = model.data
    for index in range(model.layers):
        w, w_scale = model.column_codes(index)
        codes, scale = model.token_codes(index, x)
        sums = (codes.astype(np.int32) @ w.astype(np.int32)).astype(np.int32)
        spread = np.broadcast_to(scale, sums.shape)
        by_rows = sums.astype(np.float32) * spread
        y = by_rows * w_scale
        place = f"Default/l{index}"
        found += [
            (f"{place}/aten__int_mm_default-op{index}", tensors(codes, w, output=sums)),
            (f"{place}/aten__to_copy_default-op{index}", tensors(sums, output=sums.astype(np.float32))),
            (f"{place}/aten_mul_Tensor-op{index}", tensors(sums.astype(np.float32), spread, output=by_rows)),
            (f"{place}/aten_mul_Tensor-op{50 + index}", tensors(by_rows, w_scale, output=y)),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", tensors(y, output=x)))
    return found


def on_unsigned_tokens(model: Model) -> Operators:
    """Products as torchao has them on a CPU: codes of the data are unsigned there, and what that adds to each sum is
    taken from it, in place.
    """
    return _unsigned_products(model, False)


def with_one_scale(model: Model) -> Operators:
    """The same with one scale for all rows, and one for the weight."""
    return _unsigned_products(model, True)


def _unsigned_products(model: Model, has_one_scale: bool) -> Operators:
    found: Operators = []
    x = model.data
    for index in range(model.layers):
        w, w_scale = model.column_codes(index)
        codes, scale = model.token_codes(index, x.reshape(1, -1) if has_one_scale else x)
        codes = codes.reshape(x.shape)
        if has_one_scale:
            w, one = weight_codes(w * w_scale)
            w_scale = np.full(1, one, np.float32)
        unsigned = (codes.astype(np.int32) + 128).astype(np.uint8)
        sums = (unsigned.astype(np.int32) @ w.astype(np.int32)).astype(np.int32)
        offset = (128 * w.astype(np.int32).sum(axis=0, keepdims=True)).astype(np.int32)
        right = sums - offset
        by_rows = right.astype(np.float32) * scale
        y = by_rows * w_scale
        place = f"Default/l{index}"
        found += [
            (f"{place}/aten__to_copy_default-op{index}", tensors(codes.astype(np.int32) + 128, output=unsigned)),
            (f"{place}/aten__int_mm_default-op{index}", tensors(unsigned, w, output=sums)),
            (f"{place}/aten_sub__Tensor-op{index}", tensors(sums, offset, output=right)),
            (f"{place}/aten__to_copy_default-op{50 + index}", tensors(right, output=right.astype(np.float32))),
            (f"{place}/aten_mul_Tensor-op{index}", tensors(right.astype(np.float32), scale, output=by_rows)),
            (f"{place}/aten_mul_Tensor-op{50 + index}", tensors(by_rows, w_scale, output=y)),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", tensors(y, output=x)))
    return found


def in_whole_products(model: Model) -> Operators:
    """Products of int8 that scale their sums themselves: each row of the data has a scale of its own."""
    found: Operators = []
    x = model.data
    for index, weight in enumerate(model.weights):
        w_scale = (np.abs(weight).max(axis=0) / 127).astype(np.float32)
        w = np.rint(weight / w_scale).astype(np.int8)
        scale = (np.abs(x).max(axis=1) / 127).astype(np.float32)
        codes = np.rint(x / np.maximum(scale, 1e-9)[:, None]).astype(np.int8)
        y = ((codes.astype(np.int32) @ w.astype(np.int32)) * w_scale * scale[:, None]).astype(np.float32)
        place = f"Default/l{index}"
        found += [
            (f"{place}/DynamicQuant-op{index}", {**tensors(x, output=codes), ("output", 1): scale}),
            (f"{place}/QuantBatchMatmulV3-op{index}", tensors(codes, w, w_scale, output=y)),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", tensors(y, output=x)))
    return found


def with_cast_weights(model: Model) -> Operators:
    """Weights alone are in codes: they are cast, and the product is scaled by column."""
    found: Operators = []
    x = model.data
    for index in range(model.layers):
        codes, w_scale = model.column_codes(index)
        cast = codes.astype(np.float32)
        product = x @ cast
        y = product * w_scale
        place = f"Default/l{index}"
        found += [
            (f"{place}/aten__to_copy_default-op{index}", tensors(codes, output=cast)),
            (f"{place}/aten_mm_default-op{index}", tensors(x, cast, output=product)),
            (f"{place}/aten_mul_Tensor-op{index}", tensors(product, w_scale, output=y)),
        ]
        x = np.maximum(y, 0)
        found.append((f"{place}/Relu-op{index}", tensors(y, output=x)))
    return found


def with_fakes(model: Model) -> Operators:
    """Training with quantisation: weights and activations are rounded, and stay floats."""
    found: Operators = []
    x = model.data
    for index, weight in enumerate(model.weights):
        codes, scale = weight_codes(weight)
        coarse = (codes * np.float32(scale)).astype(np.float32)
        step, zero = model.ranges()[index + 1]
        y = x @ coarse
        after = np.maximum(y, 0)
        rounded = ((quantised(after, step, zero).astype(np.float32) - zero) * np.float32(step)).astype(np.float32)
        kind, place = "aten_fake_quantize_per_tensor_affine_default", f"Default/l{index}"
        found += [
            (f"{place}/w/{kind}-op{index}", tensors(weight, output=coarse)),
            (f"{place}/MatMul-op{index}", tensors(x, coarse, output=y)),
            (f"{place}/Relu-op{index}", tensors(y, output=after)),
            (f"{place}/x/{kind}-op{50 + index}", tensors(after, output=rounded)),
        ]
        x = rounded
    return found


def tensors(*inputs: Any, output: Any) -> dict[tuple[str, int], Any]:
    return {**{("input", slot): one for slot, one in enumerate(inputs)}, ("output", 0): output}


FORMS: dict[str, Callable[[Model], Operators]] = {
    "pairs": in_pairs,
    "operators": in_operators,
    "sums": in_sums,
    "ascend": on_ascend,
}
# Forms that need not have 8 bits for each weight, or whose outliers a scale for each channel takes in.
OTHER_FORMS: dict[str, Callable[[Model], Operators]] = {
    "tokens": on_tokens,
    "unsigned": on_unsigned_tokens,
    "one_scale": with_one_scale,
    "whole": in_whole_products,
    "cast": with_cast_weights,
    "fakes": with_fakes,
}


def dumped(root: Path, operators: Operators) -> Path:
    return write_dump(root, operators)


@functools.cache
def saturates() -> bool:
    """Whether onnxruntime's product of uint8 and int8 is cut off at 16 bits, as on processors without VNNI: a model in
    QOperator form computes with large errors there, which are none of its weights.
    """
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    constants = {"xs": np.float32(1), "xz": np.uint8(0), "w": np.full((8, 16, 3, 3), 127, np.int8), "ws": np.float32(1),
                 "wz": np.int8(0), "ys": np.float32(20000), "yz": np.uint8(0)}  # fmt: skip
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"])
    graph = helper.make_graph(
        [node],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 16, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": np.full((1, 16, 3, 3), 255, np.uint8)})
    return int(result.flat[0]) != round(255 * 127 * 16 * 9 / 20000)

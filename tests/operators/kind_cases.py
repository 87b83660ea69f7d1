"""For kinds of the table of operators: operands, and how each framework is asked to compute them.

A row of names is right when all of them give one result for one input; attributes that a name needs stand here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_SHAPE = (2, 3, 4)


@dataclass(frozen=True)
class Case:
    """How one kind is computed.

    operands   what it reads: "any", "positive", "unit" (between -1 and 1), "above" (larger than 1), "bool", "matrix",
               "square", "image", or an array
    aten       gets torch and the tensors
    onnx       per name: attributes, and constants behind the operands
    mindspore  per name: attributes of the operator's class, and arguments behind the operands
    """

    operands: tuple[Any, ...]
    aten: Callable[..., Any]
    onnx: Mapping[str, tuple[Mapping[str, Any], Sequence[Any]]] = field(default_factory=dict)
    mindspore: Mapping[str, tuple[Mapping[str, Any], Sequence[Any]]] = field(default_factory=dict)


def _plain(*names: str) -> dict[str, tuple[dict[str, Any], tuple[Any, ...]]]:
    return {name: ({}, ()) for name in names}


def _same(kind: str, operand: str, mindspore: str, onnx: str = "", count: int = 1, aten: str = "") -> tuple[str, Case]:
    def compute(torch: Any, *tensors: Any) -> Any:
        return getattr(torch.ops.aten, aten or kind)(*tensors)

    return kind, Case((operand,) * count, compute, _plain(*onnx.split()), _plain(*mindspore.split()))


CASES: Mapping[str, Case] = dict(
    [
        _same("abs", "any", "Abs", "Abs"),
        _same("acos", "unit", "ACos", "Acos"),
        _same("acosh", "above", "Acosh", "Acosh"),
        _same("add", "any", "Add", "Add", 2),
        _same("asin", "unit", "Asin", "Asin"),
        _same("asinh", "any", "Asinh", "Asinh"),
        _same("atan", "any", "Atan", "Atan"),
        _same("atan2", "any", "Atan2", "", 2),
        _same("atanh", "unit", "Atanh", "Atanh"),
        _same("ceil", "any", "Ceil", "Ceil"),
        _same("clamp_max", "any", "Minimum", "Min", 2, "minimum"),
        _same("clamp_min", "any", "Maximum", "Max", 2, "maximum"),
        _same("cos", "any", "Cos", "Cos"),
        _same("cosh", "any", "Cosh", "Cosh"),
        _same("div", "above", "Div RealDiv DivNoNan", "Div", 2),
        _same("elu", "any", "Elu", "Elu"),
        _same("eq", "any", "Equal", "Equal", 2),
        _same("erf", "any", "Erf", "Erf"),
        _same("erfc", "any", "Erfc"),
        _same("erfinv", "unit", "Erfinv"),
        _same("exp", "any", "Exp", "Exp"),
        _same("expm1", "any", "Expm1"),
        _same("floor", "any", "Floor", "Floor"),
        _same("floor_div", "above", "FloorDiv", "", 2, "floor_divide"),
        _same("ge", "any", "GreaterEqual", "GreaterOrEqual", 2),
        _same("gt", "any", "Greater", "Greater", 2),
        _same("hardsigmoid", "any", "HSigmoid"),
        _same("hardswish", "any", "HSwish", "HardSwish"),
        _same("isfinite", "any", "IsFinite"),
        _same("isinf", "any", "IsInf", "IsInf"),
        _same("isnan", "any", "IsNan", "IsNaN"),
        _same("le", "any", "LessEqual", "LessOrEqual", 2),
        _same("lgamma", "above", "Lgamma"),
        _same("log", "positive", "Log", "Log"),
        _same("log1p", "positive", "Log1p"),
        _same("logical_and", "bool", "LogicalAnd", "And", 2),
        _same("logical_not", "bool", "LogicalNot", "Not"),
        _same("logical_or", "bool", "LogicalOr", "Or", 2),
        _same("logical_xor", "bool", "LogicalXor", "Xor", 2),
        _same("lt", "any", "Less", "Less", 2),
        _same("mish", "any", "Mish", "Mish"),
        _same("mul", "any", "Mul", "Mul", 2),
        _same("ne", "any", "NotEqual", "", 2),
        _same("neg", "any", "Neg", "Neg"),
        ("pow", Case(("any",), lambda torch, x: torch.ops.aten.pow(x, 2), {"Pow": ({}, (np.float32(2),))},
                     {"Pow": ({}, (2,)), "Square": ({}, ())})),
        _same("reciprocal", "above", "Reciprocal Inv", "Reciprocal"),
        _same("relu", "any", "ReLU", "Relu"),
        _same("relu6", "any", "ReLU6"),
        _same("round", "any", "Rint Round", "Round"),
        _same("rsqrt", "positive", "Rsqrt"),
        _same("selu", "any", "SeLU", "Selu"),
        _same("sigmoid", "any", "Sigmoid", "Sigmoid"),
        _same("sign", "any", "Sign", "Sign"),
        _same("silu", "any", ""),
        _same("sin", "any", "Sin", "Sin"),
        _same("sinh", "any", "Sinh", "Sinh"),
        _same("softplus", "any", "Softplus", "Softplus"),
        _same("sqrt", "positive", "Sqrt", "Sqrt"),
        _same("sub", "any", "Sub", "Sub", 2),
        _same("tan", "unit", "Tan", "Tan"),
        _same("tanh", "any", "Tanh", "Tanh"),
        _same("trunc", "any", "Trunc"),
        ("softsign", Case(("any",), lambda torch, x: torch.nn.functional.softsign(x), _plain("Softsign"),
                          _plain("Softsign"))),
        ("leaky_relu", Case(("any",), lambda torch, x: torch.ops.aten.leaky_relu(x, 0.2),
                            {"LeakyRelu": ({"alpha": 0.2}, ())})),
        ("celu", Case(("any",), lambda torch, x: torch.ops.aten.celu(x, 1.5), {"Celu": ({"alpha": 1.5}, ())},
                      {"CeLU": ({"alpha": 1.5}, ())})),
        ("gelu", Case(("any",), lambda torch, x: torch.ops.aten.gelu(x, approximate="tanh"),
                      {"Gelu": ({"approximate": "tanh"}, ())}, _plain("GeLU"))),
        ("hard_shrink", Case(("any",), lambda torch, x: torch.ops.aten.hardshrink(x, 0.5),
                             {"Shrink": ({"lambd": 0.5}, ())}, {"HShrink": ({"lambd": 0.5}, ())})),
        ("soft_shrink", Case(("any",), lambda torch, x: torch.ops.aten.softshrink(x, 0.5), {},
                             {"SoftShrink": ({"lambd": 0.5}, ())})),
        ("softmax", Case(("any",), lambda torch, x: x.softmax(-1), {"Softmax": ({"axis": -1}, ())},
                         {"Softmax": ({"axis": -1}, ())})),
        ("log_softmax", Case(("any",), lambda torch, x: x.log_softmax(-1), {"LogSoftmax": ({"axis": -1}, ())},
                             {"LogSoftmax": ({"axis": -1}, ())})),
        ("sum", Case(("any",), lambda torch, x: x.sum(1), {"ReduceSum": ({"keepdims": 0}, (np.array([1]),))},
                     {"ReduceSum": ({}, (1,))})),
        ("mean", Case(("any",), lambda torch, x: x.mean(1), {"ReduceMean": ({"keepdims": 0}, (np.array([1]),))},
                      {"ReduceMean": ({}, (1,))})),
        ("prod", Case(("any",), lambda torch, x: x.prod(1), {"ReduceProd": ({"keepdims": 0}, (np.array([1]),))},
                      {"ReduceProd": ({}, (1,))})),
        ("amax", Case(("any",), lambda torch, x: x.amax(1), {"ReduceMax": ({"keepdims": 0}, (np.array([1]),))},
                      {"ReduceMax": ({}, (1,))})),
        ("amin", Case(("any",), lambda torch, x: x.amin(1), {"ReduceMin": ({"keepdims": 0}, (np.array([1]),))},
                      {"ReduceMin": ({}, (1,))})),
        ("logsumexp", Case(("any",), lambda torch, x: x.logsumexp(1),
                           {"ReduceLogSumExp": ({"keepdims": 0}, (np.array([1]),))})),
        ("norm", Case(("any",), lambda torch, x: torch.linalg.vector_norm(x, dim=1),
                      {"ReduceL2": ({"keepdims": 0}, (np.array([1]),))})),
        ("cumsum", Case(("any",), lambda torch, x: x.cumsum(1), {"CumSum": ({}, (np.array(1),))},
                        {"CumSum": ({}, (1,))})),
        ("argmax", Case(("any",), lambda torch, x: x.argmax(1), {"ArgMax": ({"axis": 1, "keepdims": 0}, ())},
                        {"Argmax": ({"axis": 1}, ())})),
        ("argmin", Case(("any",), lambda torch, x: x.argmin(1), {"ArgMin": ({"axis": 1, "keepdims": 0}, ())},
                        {"Argmin": ({"axis": 1}, ())})),
        ("clamp", Case(("any",), lambda torch, x: x.clamp(-0.5, 0.5),
                       {"Clip": ({}, (np.float32(-0.5), np.float32(0.5)))})),
        ("where", Case(("bool", "any", "any"), lambda torch, *operands: torch.where(*operands), _plain("Where"),
                       _plain("Select"))),
        ("matmul", Case(("matrix", "square"), lambda torch, x, y: torch.mm(x, y), _plain("MatMul"),
                        _plain("MatMul"))),
        ("linear", Case((np.arange(4, dtype=np.float32), "matrix", "square"),
                        lambda torch, bias, x, weight: torch.addmm(bias, x, weight))),
        ("batch_matmul", Case(("batch", "batch"), lambda torch, x, y: torch.bmm(x, y), {}, _plain("BatchMatMul"))),
        ("layer_norm", Case(("any", np.ones(4, np.float32), np.zeros(4, np.float32)),
                            lambda torch, x, weight, bias: torch.nn.functional.layer_norm(x, (4,), weight, bias),
                            {"LayerNormalization": ({"axis": -1, "epsilon": 1e-5}, ())},
                            {"LayerNorm": ({"begin_norm_axis": -1, "begin_params_axis": -1, "epsilon": 1e-5}, ())})),
        ("max_pool", Case(("image",), lambda torch, x: torch.max_pool2d(x, 2, 2),
                          {"MaxPool": ({"kernel_shape": [2, 2], "strides": [2, 2]}, ())},
                          {"MaxPool": ({"kernel_size": 2, "strides": 2}, ())})),
        ("avg_pool", Case(("image",), lambda torch, x: torch.nn.functional.avg_pool2d(x, 2, 2),
                          {"AveragePool": ({"kernel_shape": [2, 2], "strides": [2, 2]}, ())},
                          {"AvgPool": ({"kernel_size": 2, "strides": 2}, ())})),
        ("adaptive_avg_pool", Case(("image",), lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, 1),
                                   _plain("GlobalAveragePool"))),
        ("adaptive_max_pool", Case(("image",), lambda torch, x: torch.nn.functional.adaptive_max_pool2d(x, 1),
                                   _plain("GlobalMaxPool"))),
        ("conv", Case(("image", "filters"), lambda torch, x, weight: torch.conv2d(x, weight, padding=1),
                      {"Conv": ({"pads": [1, 1, 1, 1]}, ())},
                      {"Conv2D": ({"out_channel": 2, "kernel_size": 3, "pad_mode": "pad", "pad": 1}, ())})),
        ("embedding", Case(("table", "indices"), lambda torch, table, indices: table[indices],
                           _plain("Gather"), {"Gather": ({}, (0,))})),
        ("triu", Case(("square",), lambda torch, x: x.triu(), {}, _plain("Triu"))),
        ("tril", Case(("square",), lambda torch, x: x.tril(), {"Trilu": ({"upper": 0}, ())}, _plain("Tril"))),
    ]
)  # fmt: skip


def arguments(kind: str) -> list[Array]:
    """Operands of a kind; the same at each call."""
    rng = np.random.default_rng(1)
    return [operand if isinstance(operand, np.ndarray) else _drawn(rng, operand) for operand in CASES[kind].operands]


def _drawn(rng: np.random.Generator, kind: str) -> Array:
    shapes = {"matrix": (3, 4), "square": (4, 4), "batch": (2, 4, 4), "image": (1, 3, 6, 6), "filters": (2, 3, 3, 3),
              "table": (7, 4)}  # fmt: skip
    shape = shapes.get(kind, _SHAPE)
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind == "indices":
        return rng.integers(0, 7, (2, 3))
    numbers = rng.uniform(-2, 2, shape).astype(np.float32)
    bounds = {"positive": (0.1, 3.0), "unit": (-0.9, 0.9), "above": (1.1, 3.0)}
    return rng.uniform(*bounds[kind], shape).astype(np.float32) if kind in bounds else numbers

"""What the functions and layers of `mindspore.mint` are called with, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.tensors.arrays import Array


def signed(*shape: int, seed: int = 0) -> Array:
    """float32 of both signs, no two equal, none near 0."""
    count = int(np.prod(shape, dtype=int))
    values = np.linspace(-0.95, 0.9, count) + 0.011
    return np.random.default_rng(seed).permutation(values).reshape(shape).astype(np.float32)


def positive(*shape: int, seed: int = 1) -> Array:
    return np.abs(signed(*shape, seed=seed)) + np.float32(0.05)


def whole(*shape: int, low: int = -4, high: int = 5, seed: int = 2) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape)


X, Y, P, N = signed(2, 3), signed(2, 3, seed=3), positive(2, 3), whole(2, 3)
B = np.array([[True, False, True], [False, False, True]])
PLACES = np.array([[0, 2, 1], [1, 0, 2]])
CUBE = signed(2, 3, 4)
IMAGE, LINE, VOLUME = signed(2, 4, 6, 6), signed(2, 4, 9), signed(1, 2, 4, 4, 4)
CLASSES = np.array([1, 0, 2, 1])
LOGITS = signed(4, 3)

_OF_AN_AXIS = """
    sum mean amax amin logsumexp nansum argmax argmin any all prod max min median
"""
_OF_AXES = """
    sum mean amax amin var std logsumexp
"""
_ACTIVATIONS = """
    relu relu6 silu elu hardtanh gelu logsigmoid sigmoid tanh leaky_relu selu mish hardswish hardsigmoid
    softplus hardshrink softshrink normalize
"""
_ACTIVATION_LAYERS = """
    ReLU ReLU6 SELU SiLU Sigmoid Tanh Mish GELU ELU Hardshrink Hardsigmoid Hardswish Hardtanh LogSigmoid
    Softshrink PReLU Identity
"""
# Operands -> functions.
OF_OPERANDS: list[tuple[tuple[Any, ...], str]] = [
    ((X,), """abs acosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1
             floor frac isfinite isinf isnan isneginf neg negative ravel reciprocal sigmoid sign sin sinc sinh square t
             tan tanh acos arccos clone round any all sum mean prod max min median argmax argmin amax amin norm var std
             std_mean var_mean nansum sort argsort nonzero count_nonzero trace flatten"""),
    ((P,), "log log10 log1p log2 rsqrt sqrt"),
    ((P + 1,), "acosh arccosh"),
    ((B,), "logical_not bitwise_not sum any all"),
    ((N,), "bitwise_not sum prod any all abs square count_nonzero"),
    ((X, Y), """add sub mul div divide arctan2 atan2 eq fmod greater greater_equal gt le less less_equal logaddexp
               logaddexp2 lt maximum minimum ne not_equal remainder max min isclose floor_divide"""),
    ((N, whole(2, 3, low=1, high=4)), "bitwise_and bitwise_or bitwise_xor gcd remainder floor_divide fmod"),
    ((B, ~B), "logical_and logical_or logical_xor bitwise_and"),
    ((P, Y), "float_power pow"),
    ((P, positive(2, 3, seed=5)), "xlogy polar"),
]  # fmt: skip
# Functions with attributes.
FUNCTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, operands, {}) for operands, names in OF_OPERANDS for name in names.split()],
    ("add", (X, Y), {"alpha": 2}),
    ("sub", (X, Y), {"alpha": 0.5}),
    ("div", (X, Y), {"rounding_mode": "floor"}),
    ("div", (X, Y), {"rounding_mode": "trunc"}),
    ("addcdiv", (X, Y, P), {"value": 2}),
    ("lerp", (X, Y, 0.3), {}),
    ("lerp", (X, Y, P), {}),
    ("clamp", (X, -0.2, 0.3), {}),
    ("clamp", (X,), {"max": 0.3}),
    ("round", (X * 10,), {"decimals": 1}),
    ("nan_to_num", (np.array([np.nan, np.inf, -np.inf, 1], np.float32),), {"nan": 2.0, "posinf": 3.0}),
    ("where", (B, X, Y), {}),
    ("where", (B,), {}),
    ("matmul", (X, Y.T.copy()), {}),
    ("mm", (X, Y.T.copy()), {}),
    ("mv", (X, Y[0]), {}),
    ("dot", (X[0], Y[0]), {}),
    ("outer", (X[0], Y[1]), {}),
    ("bmm", (CUBE, signed(2, 4, 3)), {}),
    ("addmm", (signed(2, 2), X, Y.T.copy()), {"beta": 0.5, "alpha": 2}),
    ("addmv", (X[:, 0].copy(), X, Y[0]), {"beta": 0.5, "alpha": 2}),
    ("addbmm", (signed(3, 3), CUBE, signed(2, 4, 3)), {"beta": 0.5}),
    ("baddbmm", (signed(2, 3, 3), CUBE, signed(2, 4, 3)), {"beta": 0.5, "alpha": 2}),
    ("einsum", ("ij,kj->ik", X, Y), {}),
    ("inverse", (np.array([[2, 1], [1, 3]], np.float32),), {}),
    ("cdist", (X, Y), {}),
    ("cross", (X, Y, 1), {}),
    ("allclose", (X, X), {}),
    ("allclose", (X, Y), {}),
    *[
        (name, (CUBE,), {"dim": dim, "keepdim": keepdim})
        for name in _OF_AN_AXIS.split()
        for dim, keepdim in ((1, False), (-1, True))
    ],
    *[(name, (CUBE,), {"dim": (0, 2), "keepdim": True}) for name in _OF_AXES.split()],
    *[(name, (CUBE,), {"dim": 1, "correction": 0}) for name in ["var", "std", "var_mean", "std_mean"]],
    ("norm", (CUBE, 2, 1), {}),
    ("norm", (CUBE, 1, 2, True), {}),
    ("sum", (X,), {"dtype": "float64"}),
    ("count_nonzero", (N, 1), {}),
    ("kthvalue", (CUBE, 2, 1), {}),
    ("sort", (CUBE,), {"dim": 1, "descending": True}),
    ("argsort", (CUBE, 0, True), {}),
    ("topk", (CUBE, 2, 1), {}),
    ("topk", (CUBE, 2), {"largest": False}),
    ("cummax", (CUBE, 1), {}),
    ("cummin", (CUBE, 2), {}),
    ("cumsum", (CUBE, 1), {}),
    ("cumsum", (N, 1), {}),
    ("cumprod", (CUBE, 2), {}),
    ("softmax", (CUBE, 1), {}),
    ("unique_consecutive", (np.array([1, 1, 2, 3, 3, 1]), True, True), {}),
    ("bincount", (np.array([0, 2, 2, 1]),), {"minlength": 5}),
    ("histc", (X, 4, -1, 1), {}),
    ("searchsorted", (np.sort(X[0]), Y), {"right": True}),
    ("permute", (CUBE, (2, 0, 1)), {}),
    ("transpose", (CUBE, 0, 2), {}),
    ("swapaxes", (CUBE, 0, 1), {}),
    ("reshape", (CUBE, (4, -1)), {}),
    ("broadcast_to", (X, (4, 2, 3)), {}),
    ("tile", (X, (2, 1, 2)), {}),
    ("flip", (X, (0, 1)), {}),
    ("roll", (CUBE, 1, 2), {}),
    ("roll", (CUBE, (1, -1), (0, 1)), {}),
    ("flatten", (CUBE, 1), {}),
    ("flatten", (CUBE, 0, 1), {}),
    ("squeeze", (signed(1, 3, 1), 0), {}),
    ("squeeze", (CUBE, 0), {}),
    ("unsqueeze", (X, -1), {}),
    ("unbind", (CUBE, 1), {}),
    ("chunk", (signed(5, 2), 3), {}),
    ("chunk", (CUBE, 2, -1), {}),
    ("split", (signed(5, 2), 2), {}),
    ("split", (signed(5, 2), [1, 4]), {"dim": 0}),
    ("narrow", (CUBE, 1, 1, 2), {}),
    ("cat", ([X, Y],), {"dim": 1}),
    ("concat", ([X, Y],), {}),
    ("stack", ([X, Y],), {"dim": 2}),
    ("hstack", ([X, Y],), {}),
    ("dstack", ([X, Y],), {}),
    ("meshgrid", (X[0], Y[0]), {"indexing": "ij"}),
    ("meshgrid", (X[0], Y[:, 0].copy()), {"indexing": "xy"}),
    ("gather", (X, 1, PLACES), {}),
    ("scatter", (X, 1, PLACES, Y), {}),
    ("scatter", (X, 1, PLACES[:, :2].copy(), 0.5), {}),
    ("scatter_add", (X, 1, np.array([[0, 0], [1, 1]]), Y), {}),
    ("index_add", (X, 1, np.array([0, 2]), signed(2, 2)), {"alpha": 2}),
    ("index_select", (CUBE, 1, np.array([2, 0])), {}),
    ("select", (CUBE, 1, -1), {}),
    ("take", (CUBE, np.array([[0, 5], [-1, 3]])), {}),
    ("masked_select", (X, B), {}),
    ("nonzero", (B,), {"as_tuple": True}),
    ("diag", (X[0], 1), {}),
    ("diag", (CUBE[0], -1), {}),
    ("tril", (CUBE, 1), {}),
    ("triu", (CUBE, -1), {}),
    ("diff", (CUBE,), {"n": 1, "dim": 1}),
    ("repeat_interleave", (X, 2), {}),
    ("repeat_interleave", (X, 2, 1), {}),
    ("arange", (1, 10, 3), {}),
    ("full", ((2, 3), 7.5), {}),
    ("full_like", (X, 2), {}),
    ("ones_like", (X,), {}),
    ("zeros_like", (N,), {}),
    ("zeros", ((2, 3),), {}),
    ("ones", ((2, 3),), {}),
    ("eye", (3, 2), {}),
]  # fmt: skip
FUNCTIONAL: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, (X,), {}) for name in _ACTIVATIONS.split()],
    ("elu", (X, 0.5), {}),
    ("gelu", (X,), {"approximate": "tanh"}),
    ("hardtanh", (X, -0.2, 0.3), {}),
    ("threshold", (X, 0.1, 2.0), {}),
    ("softplus", (X * 9, 2, 5), {}),
    ("glu", (LINE[..., :8].copy(),), {"dim": 1}),
    ("prelu", (LINE, positive(4)), {}),
    ("log_softmax", (CUBE, 1), {}),
    ("softmax", (CUBE, 2), {}),
    ("linear", (X, signed(4, 3), signed(4)), {}),
    ("normalize", (CUBE, 1.0, 2), {}),
    ("embedding", (PLACES, signed(5, 2)), {}),
    ("one_hot", (np.array([0, 2, 1]),), {"num_classes": 4}),
    ("one_hot", (np.array([0, 2, 1]),), {}),
    ("pad", (LINE, (1, 2)), {}),
    ("pad", (IMAGE, (1, 2, 0, 1)), {"mode": "constant", "value": 3.0}),
    ("pad", (IMAGE, (1, 2, 2, 1)), {"mode": "reflect"}),
    ("pad", (LINE, (1, 2)), {"mode": "replicate"}),
    ("pad", (LINE, (1, 2)), {"mode": "circular"}),
    ("conv1d", (LINE, signed(6, 2, 3), signed(6)), {"stride": 2, "padding": 1, "groups": 2}),
    ("conv2d", (IMAGE, signed(6, 4, 3, 2)), {"padding": (1, 0), "dilation": 2}),
    ("conv2d", (IMAGE, signed(6, 4, 5, 3), signed(6)), {"padding": "same"}),
    ("conv2d", (IMAGE[0], signed(6, 4, 3, 3), signed(6)), {"padding": "valid", "stride": (2, 1)}),
    ("conv3d", (VOLUME, signed(3, 2, 2, 2, 3), signed(3)), {"padding": (1, 0, 1), "stride": 2}),
    ("avg_pool1d", (LINE, 3), {"stride": 2, "padding": 1}),
    ("avg_pool2d", (IMAGE, 2), {}),
    ("avg_pool2d", (IMAGE, (3, 2)), {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}),
    ("avg_pool3d", (VOLUME, 2), {"divisor_override": 3}),
    ("max_pool2d", (IMAGE, 3), {"stride": 2, "padding": 1}),
    ("max_pool2d", (IMAGE, 2), {"return_indices": True}),
    ("adaptive_avg_pool1d", (LINE, 3), {}),
    ("adaptive_avg_pool2d", (IMAGE, (3, 2)), {}),
    ("adaptive_avg_pool3d", (VOLUME, 2), {}),
    ("adaptive_max_pool1d", (LINE, 3), {}),
    ("adaptive_max_pool2d", (IMAGE, 3), {"return_indices": True}),
    ("layer_norm", (CUBE, (3, 4), signed(3, 4), signed(3, 4, seed=1)), {}),
    ("layer_norm", (CUBE, (4,)), {"eps": 1e-3}),
    ("group_norm", (IMAGE, 2, signed(4), signed(4, seed=1)), {}),
    ("fold", (signed(1, 8, 9), (4, 4), (2, 2)), {}),
    ("unfold", (IMAGE, 2), {"stride": 2}),
    ("pixel_shuffle", (IMAGE, 2), {}),
    ("interpolate", (IMAGE,), {"size": (3, 9)}),
    ("interpolate", (IMAGE,), {"scale_factor": 2.0, "mode": "bilinear", "align_corners": True}),
    ("interpolate", (IMAGE, (4, 8)), {"mode": "bicubic", "align_corners": False}),
    ("grid_sample", (IMAGE, np.clip(signed(2, 3, 3, 2), -0.9, 0.9)), {"align_corners": False}),
    ("cross_entropy", (LOGITS, CLASSES), {"label_smoothing": 0.1, "weight": positive(3)}),
    ("cross_entropy", (LOGITS, CLASSES), {"ignore_index": 1, "reduction": "sum"}),
    ("nll_loss", (LOGITS, CLASSES), {"weight": positive(3)}),
    ("binary_cross_entropy", (positive(2, 3) / 2, positive(2, 3, seed=9) / 2), {"weight": P}),
    ("binary_cross_entropy_with_logits", (X, P / 2), {"pos_weight": positive(3)}),
    ("binary_cross_entropy_with_logits", (X, P / 2), {"weight": P, "reduction": "none"}),
    ("kl_div", (np.log(P), positive(2, 3, seed=6)), {"reduction": "batchmean"}),
    ("kl_div", (X, Y), {"log_target": True, "reduction": "sum"}),
    ("kl_div", (X, P), {"reduction": "none"}),
    ("mse_loss", (X, Y), {}),
    ("l1_loss", (X, Y), {"reduction": "sum"}),
    ("smooth_l1_loss", (X, Y), {"beta": 0.5}),
    ("soft_margin_loss", (X, np.sign(Y)), {}),
]  # fmt: skip
# Layer, arguments of the constructor, of the call.
LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    *[(name, (), {}, (X,)) for name in _ACTIVATION_LAYERS.split()],
    *[(name, (2,), {}, (CUBE,)) for name in ["ReflectionPad1d", "ReplicationPad1d", "ZeroPad1d"]],
    *[(name, ((1, 2, 0, 1),), {}, (IMAGE,)) for name in ["ReflectionPad2d", "ReplicationPad2d", "ZeroPad2d"]],
    *[(name, (1,), {}, (VOLUME,)) for name in ["ReflectionPad3d", "ReplicationPad3d", "ZeroPad3d"]],
    ("ConstantPad1d", ((1, 2), 3.5), {}, (LINE,)),
    ("ConstantPad2d", (1, 0.5), {}, (IMAGE,)),
    ("ConstantPad3d", (1,), {"value": 0.5}, (VOLUME,)),
    ("Softmax", (), {"dim": 1}, (CUBE,)),
    ("LogSoftmax", (1,), {}, (CUBE,)),
    ("Threshold", (0.1, 2.0), {}, (X,)),
    ("Flatten", (), {}, (CUBE,)),
    ("Linear", (3, 4), {}, (X,)),
    ("Linear", (4, 2), {"bias": False}, (CUBE,)),
    ("Conv1d", (4, 6, 3), {"padding": 1, "groups": 2}, (LINE,)),
    ("Conv2d", (4, 6, 3), {"padding": "same"}, (IMAGE,)),
    ("Conv2d", (4, 6, (3, 2)), {"padding": (1, 2), "padding_mode": "circular", "bias": False}, (IMAGE,)),
    ("Conv3d", (2, 3, 2), {"stride": 2}, (VOLUME,)),
    ("GroupNorm", (2, 4), {}, (IMAGE,)),
    ("LayerNorm", ((3, 4),), {}, (CUBE,)),
    ("Embedding", (5, 3), {}, (PLACES,)),
    ("AdaptiveAvgPool2d", (3,), {}, (IMAGE,)),
    ("AdaptiveMaxPool1d", (3,), {}, (LINE,)),
    ("AvgPool2d", (2,), {}, (IMAGE,)),
    ("MaxPool2d", (3, 2), {"padding": 1}, (IMAGE,)),
    ("Upsample", (), {"scale_factor": 2.0}, (IMAGE,)),
    ("UpsamplingNearest2d", ((3, 9),), {}, (IMAGE,)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (IMAGE,)),
    ("PixelShuffle", (2,), {}, (IMAGE,)),
    ("Fold", ((4, 4), 2), {}, (signed(1, 8, 9),)),
    ("Unfold", (2,), {"stride": 2}, (IMAGE,)),
    ("BCELoss", (), {}, (P / 2, P / 2)),
    ("BCEWithLogitsLoss", (), {"reduction": "sum"}, (X, P / 2)),
    ("CrossEntropyLoss", (), {}, (LOGITS, CLASSES)),
    ("KLDivLoss", (), {"reduction": "sum"}, (X, P)),
    ("L1Loss", (), {}, (X, Y)),
    ("MSELoss", (), {}, (X, Y)),
    ("SmoothL1Loss", (), {}, (X, Y)),
    ("SoftMarginLoss", (), {}, (X, np.sign(Y))),
]  # fmt: skip

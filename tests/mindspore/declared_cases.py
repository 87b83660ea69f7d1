"""What every declared operator is tried with: operands and attributes, by op type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump import mindspore as ms
from msdump.mindspore.ops.declaration import DECLARATIONS
from msdump.tensors.arrays import Array


@dataclass(frozen=True)
class Parameter:
    """Stands for a new parameter with this value at each call."""

    value: Array


@dataclass(frozen=True)
class Case:
    """Arguments of the function: arrays are operands.

    is_exact  providers give the same values bit for bit (no arithmetic); else as close as their rounding
    has_derivative  False: PyTorch knows none of the first operand, which is an error and not a gradient of zero
    is_smooth  False: no finite differences, at a jump or where single elements of a symmetric operand cannot move
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    is_exact: bool = False
    has_derivative: bool = True
    is_smooth: bool = True


def numbers(*shape: int, low: float = 0.1, high: float = 0.9, seed: int = 0) -> Array:
    """float32, evenly spread over a range in a random order."""
    count = int(np.prod(shape, dtype=int))
    values = np.random.default_rng(seed).permutation(np.linspace(low, high, count))
    return values.reshape(shape).astype(np.float32)


def whole(*shape: int, low: int = 1, high: int = 9, seed: int = 0, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


# Operands of test cases that several operators share.
IMAGE, IMAGES = numbers(1, 2, 4, 4), numbers(1, 8, 2, 2)
WRITES = ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min")
ROWS, SEGMENTS, ROWS_OF_SEGMENTS = (np.array(ids, np.int32) for ids in ((0, 2), (0, 1, 0, -1), (0, 0, 2)))
COORDINATES = np.array([(0, 1), (2, 2), (1, 0)], np.int32)
PICKS = np.array([(0, 1), (1, 2), (3, 0)])
VOLUME = numbers(1, 1, 2, 4, 4)
SORTED = np.array([(0.1, 0.5, 0.5), (0.2, 0.3, 0.9)], np.float32)
SQUARES = numbers(2, 3, 3) + np.eye(3, dtype=np.float32)
DEFINITE = SQUARES[0] @ SQUARES[0].T + np.diag(np.arange(1, 4)).astype(np.float32)
LOWER, REFLECTIONS = np.linalg.cholesky(DEFINITE), np.tril(numbers(4, 3))
PIVOTS = np.array([3, 2, 3], np.int32)
WAVES = (numbers(3, 4) + 1j * numbers(3, 4, seed=1)).astype(np.complex64)
BOXES = np.array([(0, 0, 4, 4, 0.5), (1, 1, 5, 5, 0.9), (6, 6, 9, 8, 0.2)], np.float32)
_WHOLE = ("Gcd", "Lcm", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "Invert")
CASES: dict[str, list[Case]] = {
    "Acosh": [Case((numbers(3, 4, low=1.1, high=3),))],
    "Zeta": [Case((numbers(3, low=1.5, high=3), numbers(3, low=1.1, high=2, seed=1)), has_derivative=False)],
    **{name: [Case((numbers(3), numbers(3, seed=1)), has_derivative=False)] for name in ("Igamma", "Igammac")},
    "Ldexp": [Case((numbers(3, 4), whole(4)))],
    "Real": [Case((numbers(3),)), Case((numbers(3).astype(np.complex64),))],
    "Conj": [Case((numbers(3),)), Case(((numbers(3) * 1j).astype(np.complex64),))],
    "ReverseV2": [Case((numbers(3, 4), (0, 1)), is_exact=True)],
    "Roll": [Case((numbers(3, 4), 1), is_exact=True), Case((numbers(3, 4), (1, -1), (0, 1)), is_exact=True)],
    "ReverseSequence": [Case((numbers(3, 4), whole(3, high=4, dtype=np.int64), 1), is_exact=True)],
    "Meshgrid": [Case(([numbers(3), numbers(2)], indexing), is_exact=True) for indexing in ("xy", "ij")],
    **{name: [Case((numbers(2, 3, 4), offset), is_exact=True) for offset in (0, 1)] for name in ("Tril", "Triu")},
    **{name: [Case((3, 4, -1, ms.int32), is_exact=True)] for name in ("TrilIndices", "TriuIndices")},
    "MatrixBandPart": [Case((numbers(2, 3, 4), 1, 0)), Case((numbers(3, 3), -1, 1))],
    "Diag": [Case((numbers(2, 3),), is_exact=True)],
    "DiagPart": [Case((numbers(2, 3, 2, 3),), is_exact=True)],
    "Diagonal": [Case((numbers(2, 3, 4), 1, 1, 2), is_exact=True)],
    "Trace": [Case((numbers(3, 4),)), Case((whole(3, 3),))],
    "FillDiagonal": [Case((numbers(5, 2), 0.5, True))],
    "CropAndResize": [
        Case((IMAGE.transpose(0, 2, 3, 1).copy(), numbers(2, 4), np.zeros(2, np.int32), (3, 2), how))
        for how in ("bilinear", "nearest", "bilinear_v2")
    ],
    "ROIAlign": [Case((IMAGE, np.array([(0, 0, 0, 3, 3), (0, 1, 1, 2, 3)], np.float32), 2, 2, 1.0))],
    "STFT": [Case((numbers(2, 12), numbers(4, seed=1), 4, 2, 4, False, True, how)) for how in (False, True)],
    "LRN": [Case((IMAGE,))],
    "LARSUpdate": [
        Case((numbers(3), numbers(3, seed=1), *(numbers(seed=k) for k in range(4)), 1e-3, 0.5, clips))
        for clips in (False, True)
    ],
    "MatrixSetDiagV3": [
        Case((numbers(2, 3, 4), numbers(2, 3)), is_exact=True),
        Case((numbers(3, 4), numbers(2, 3), (0, 1))),
    ],
    "PadV3": [
        Case((numbers(3, 4), (1, 2, 0, -1), 0.5)),
        Case((numbers(1, 3, 4), (1, 1), None, "reflect")),
        Case((numbers(3, 4), (1, 2, 3, 0), 0.5, "constant", False)),
    ],
    "MirrorPad": [Case((numbers(3, 4), ((1, 2), (0, 1)), mode), is_exact=True) for mode in ("REFLECT", "SYMMETRIC")],
    "Padding": [Case((numbers(2, 1), 4))],
    "SpaceToDepth": [Case((IMAGE, 2), is_exact=True)],
    "DepthToSpace": [Case((IMAGES, 2), is_exact=True)],
    "ChannelShuffle": [Case((IMAGES, 2), is_exact=True)],
    "Im2Col": [Case((IMAGE, (2, 3), 2, 1, 1))],
    "Col2Im": [Case((numbers(1, 2, 4, 9), (4, 4), 2))],
    **{f"TensorScatter{name}": [Case((numbers(3, 4), COORDINATES, numbers(3)))] for name in WRITES},
    **{f"Scatter{name}": [Case((Parameter(numbers(3, 4)), ROWS, numbers(2, 4)))] for name in WRITES},
    **{f"ScatterNd{name}": [Case((Parameter(numbers(3, 4)), COORDINATES, numbers(3)))] for name in WRITES},
    "ScatterNonAliasingAdd": [Case((Parameter(numbers(3, 4)), COORDINATES, numbers(3)))],
    **{f"Inplace{name}": [Case((numbers(3, 4), numbers(2, 4), (0, 2)))] for name in ("Update", "Add", "Sub")},
    "IndexAdd": [Case((Parameter(numbers(3, 4)), ROWS, numbers(3, 2), 1))],
    "InplaceIndexAdd": [Case((Parameter(numbers(3, 4)), ROWS, numbers(2, 4), 0))],
    "IndexAddExt": [Case((numbers(3, 4), ROWS, numbers(3, 2), 1, 2.0))],
    "ScatterNd": [Case((COORDINATES, numbers(3), (3, 4)))],
    "SparseToDense": [Case((COORDINATES, numbers(3), (3, 4)))],
    "TensorScatterElements": [Case((numbers(3, 4), PICKS, numbers(3, 2), 1, how)) for how in ("none", "add", "max")],
    "ScatterAddWithAxis": [Case((numbers(3, 4), PICKS, numbers(3, 2), 1))],
    "IndexPut": [Case((numbers(3, 4), numbers(2), [ROWS, ROWS])), Case((numbers(3, 4), numbers(4), [ROWS], 1))],
    "IndexFill": [Case((numbers(3, 4), 1, ROWS, numbers()), is_exact=True)],
    **{f"UnsortedSegment{name}": [Case((numbers(4, 3), SEGMENTS, 2))] for name in ("Prod", "Max", "Min")},
    **{f"Segment{name}": [Case((numbers(3, 4), ROWS_OF_SEGMENTS))] for name in ("Sum", "Prod", "Max", "Min", "Mean")},
    "GatherNd": [Case((numbers(3, 4), COORDINATES), is_exact=True)],
    "MaskedSelect": [Case((numbers(3, 4), numbers(3, 4) > 0.5), is_exact=True)],
    "MaskedScatter": [Case((numbers(3, 4), numbers(3, 4) > 0.5, numbers(12)))],
    "NonZero": [Case((whole(3, 4, low=0, high=2),), is_exact=True)],
    "CountNonZero": [Case((whole(3, 4, low=0, high=2), (0,)))],
    "UniqueConsecutive": [Case((np.array([1, 1, 2, 2, 3, 1], np.int32),))],
    "UniqueWithPad": [Case((np.array([3, 1, 3, 2], np.int32), np.array(8, np.int32)))],
    "SearchSorted": [Case((SORTED, numbers(2, 3)))],
    "Bucketize": [Case((numbers(3, 4), (0.2, 0.5)))],
    "LowerBound": [Case((SORTED, numbers(2, 3)))],
    "UpperBound": [Case((SORTED, SORTED))],
    "InTopK": [Case((numbers(3, 4), whole(3, high=4), 2))],
    "ListDiff": [Case((whole(6), whole(2, seed=1)))],
    "Sort": [Case((whole(3, 5, high=4), axis, down), is_exact=True) for axis, down in ((-1, False), (0, True))]
    + [Case((numbers(3, 4),))],
    "TopK": [Case((whole(3, 5, high=4), 3), is_exact=True), Case((numbers(3, 4), 2))],
    "NthElement": [Case((numbers(3, 4), 1))],
    "EmbeddingLookup": [Case((numbers(3, 4), whole(4, low=0, high=6), 1), is_exact=True)],
    "ReduceStd": [Case((numbers(3, 4),)), Case((numbers(3, 4), 1, False, True))],
    "Median": [Case((numbers(3, 5), False, 1)), Case((numbers(3, 5), True))],
    "Quantile": [Case((numbers(3, 5), np.array([0.2, 0.7], np.float32), 1))],
    "LpNorm": [Case((numbers(3, 4), (0, 1), 3))],
    "NuclearNorm": [Case((numbers(3, 4),))],
    "EuclideanNorm": [Case((numbers(3, 4), (1,)))],
    "MatrixNorm": [Case((numbers(3, 4), 2, (0, 1), True))],
    "Renorm": [Case((numbers(3, 4), 1, 0, 0.5))],
    "CumulativeLogsumexp": [Case((numbers(3, 4), 1))],
    **{name: [Case((numbers(3, 4), 1))] for name in ("Cummax", "Cummin")},
    "Histogram": [Case((numbers(3, 4), 4, 0.0, 0.6))],
    "HistogramFixedWidth": [Case((numbers(3, 4), np.array([0.2, 0.8], np.float32), 5))],
    "Bincount": [Case((whole(6), 7, np.zeros(0, np.float32))), Case((whole(6), 7, numbers(6)))],
    "MatrixDeterminant": [Case((SQUARES,))],
    "LogMatrixDeterminant": [Case((SQUARES,))],
    "MatrixInverse": [Case((SQUARES,)), Case((SQUARES, True))],
    "Pinv": [Case((numbers(2, 3),))],
    "MatrixPower": [Case((SQUARES, 3)), Case((SQUARES, -1))],
    "MatrixExp": [Case((SQUARES,))],
    "MatrixLogarithm": [Case((DEFINITE.astype(np.complex64),))],
    "Cholesky": [Case((DEFINITE, is_upper), is_smooth=False) for is_upper in (False, True)],
    "CholeskyInverse": [Case((LOWER,), is_smooth=False)],
    "CholeskySolve": [Case((numbers(3, 2), LOWER), is_smooth=False)],
    "Qr": [Case((numbers(4, 3),))],
    "Svd": [Case((numbers(4, 3),)), Case((numbers(4, 3), False, False))],
    "Eig": [Case((DEFINITE,)), Case((DEFINITE, True))],
    "Geqrf": [Case((numbers(4, 3),), has_derivative=False)],
    "Orgqr": [Case((REFLECTIONS, numbers(3)))],
    "Ormqr": [Case((REFLECTIONS, numbers(3), numbers(4, 2)))],
    "LuUnpack": [Case((numbers(3, 3), PIVOTS))],
    "MatrixSolve": [Case((SQUARES, numbers(2, 3, 2))), Case((DEFINITE, numbers(3, 2), True))],
    "MatrixTriangularSolve": [Case((LOWER, numbers(3, 2))), Case((LOWER, numbers(3, 2), True, True))],
    "MatrixSolveLs": [Case((numbers(4, 3), numbers(4, 2), numbers()))],
    "LuSolve": [Case((numbers(3, 2), DEFINITE, PIVOTS)), Case((numbers(3), DEFINITE, PIVOTS))],
    "Lstsq": [Case((numbers(4, 3), numbers(4, 2))), Case((numbers(4, 3), numbers(4)))],
    "TridiagonalMatMul": [Case((numbers(1, 3), numbers(1, 3, seed=1), numbers(1, 3, seed=2), numbers(3, 2)))],
    "Einsum": [Case(("ij,jk->ik", (numbers(2, 3), numbers(3, 4))))],
    "Cross": [Case((numbers(2, 3), numbers(2, 3, seed=1))), Case((numbers(3, 3), numbers(3, 3, seed=1), 1))],
    "Ger": [Case((numbers(3), numbers(4)))],
    "Cdist": [Case((numbers(2, 3, 4), numbers(2, 2, 4, seed=1), p)) for p in (2.0, 1.0)],
    "Pdist": [Case((numbers(4, 3),))],
    "Imag": [Case((numbers(3),), has_derivative=False), Case(((numbers(3) * 1j).astype(np.complex64),))],
    "ComplexAbs": [Case((WAVES,))],
    "ViewAsReal": [Case((WAVES,))],
    "Sgn": [Case((numbers(3, low=-1),)), Case((WAVES,))],
    "IsReal": [Case((numbers(3),)), Case((WAVES,))],
    "ConjugateTranspose": [Case((WAVES, (1, 0)))],
    **{f"{name}FFT{n}": [Case((numbers(3, 4),))] for name in ("", "R", "I") for n in ("", "2", "N")},
    **{f"IRFFT{n}": [Case((WAVES,))] for n in ("", "2", "N")},
    "HFFT": [Case((WAVES,))],
    "IHFFT": [Case((numbers(3, 4),))],
    "FFTShift": [Case((numbers(3, 4),))],
    "IFFTShift": [Case((numbers(3, 4), 1))],
    "FFTWithSize": [
        Case((numbers(3, 4), 2, False, True)),
        Case((WAVES, 1, True, True, "ortho", True, (4,))),
        Case((WAVES, 1, True, False)),
        Case((numbers(3, 4), 1, False, True, "backward", False)),
    ],
    "CompareAndBitpack": [Case((numbers(2, 16), numbers(low=0.5, high=0.5)), is_exact=True)],
    "RGBToHSV": [Case((numbers(2, 3, 3),)), Case((np.zeros((1, 3), np.float32),), is_smooth=False)],
    "SigmoidCrossEntropyWithLogits": [Case((numbers(3, 4, low=-9, high=9), numbers(3, 4, seed=1)))],
    "IsClose": [Case((numbers(3), numbers(3) + np.float32(1e-6)))],
    "ApproximateEqual": [Case((numbers(3), numbers(3, seed=1), 0.3))],
    "NanToNum": [
        Case((np.array([np.nan, np.inf, -np.inf, 1], np.float32), None, 2.0), is_exact=True),
        Case((numbers(3),)),
    ],
    "DivNoNan": [Case((numbers(3), numbers(3, seed=1))), Case((numbers(3), np.zeros(3, np.float32)), is_smooth=False)],
    "MulNoNan": [
        Case((numbers(3), numbers(3, seed=1))),
        Case((np.array([np.nan, 1], np.float32), np.zeros(2, np.float32)), is_smooth=False),
    ],
    "TruncateDiv": [Case((numbers(3), numbers(3, seed=2)), is_smooth=False)]
    + [Case((whole(6, low=-9), whole(6, seed=1)))],
    "Logit": [Case((numbers(3, 4),)), Case((numbers(3, 4), 0.2))],
    "Mvlgamma": [Case((numbers(3, low=2, high=3), 2))],
    "Polygamma": [Case((1, numbers(3)))],
    "PopulationCount": [Case((whole(5, high=100),))],
    "L2Normalize": [Case((numbers(3, 4), 1, 1e-4)), Case((numbers(3, 4), (0, 1), 1e-4))],
    "ResizeNearestNeighbor": [Case((IMAGE, (6, 3), *how)) for how in ((), (True,), (False, True))],
    "ResizeArea": [Case((IMAGE, (2, 2)))],
    "GridSampler2D": [Case((IMAGE, numbers(1, 2, 3, 2, low=-0.8, seed=1), how)) for how in ("bilinear", "bicubic")],
    "GridSampler3D": [Case((numbers(1, 1, 2, 2, 3), numbers(1, 2, 1, 2, 3, low=-0.8, seed=1)))],
    "AffineGrid": [Case((numbers(1, 2, 3), (1, 1, 2, 3)))],
    "IOU": [Case((BOXES[:2, :4], BOXES[1:, :4], how)) for how in ("iou", "iof")],
    "NMSWithMask": [Case((BOXES, 0.3), is_exact=True)],
    "LinSpace": [Case((numbers(), numbers(seed=1), 5)), Case((numbers(2), numbers(2, low=2, high=3), 3))],
    "LogSpace": [Case((numbers(), numbers(low=2, high=3), 4))],
    "IdentityN": [Case(([numbers(3), numbers(2)],), is_exact=True)],
    "UnravelIndex": [Case((whole(4, high=12), np.array([3, 4], np.int32)), is_exact=True)],
    **{name: [Case((numbers(3, 4, low=-2, high=2), 0.7))] for name in ("CeLU", "Elu", "HShrink", "SoftShrink")},
    "AdaptiveAvgPool3D": [Case((VOLUME, (2, 1, 2)))],
    "AdaptiveMaxPool2D": [Case((IMAGE, (2, 2)))],
    "AdaptiveMaxPool3D": [Case((VOLUME, (2, 1, 2)))],
    "AvgPool3D": [Case((VOLUME, (1, 1, 2, 2, 2), (1, 1, 2, 2, 2)))],
    "MaxPool3D": [Case((VOLUME, (1, 1, 2, 2, 2), (1, 1, 2, 2, 2)))],
    "MaxPool3DWithArgmax": [Case((VOLUME, (2, 2, 2), (2, 2, 2)))],
    "MaxUnpool2D": [Case((numbers(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]]), 2, 0, 0, (1, 1, 4, 4)))],
    "Conv3D": [Case((VOLUME, numbers(2, 1, 2, 2, 2), 2, (2, 2, 2)))],
    "Conv3DTranspose": [Case((VOLUME, numbers(1, 2, 2, 2, 2), 1, 2, (2, 2, 2)))],
    "ClipByNorm": [Case((numbers(3, 4), numbers())), Case((numbers(3, 4), numbers(), 1))],
    "ExtractImagePatches": [Case((IMAGE, (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 1, 1)))],
    "InstanceNorm": [Case((IMAGE, *(numbers(2, seed=seed) for seed in range(4))))],
    "CTCLossV2": [
        Case(
            (np.log(numbers(4, 2, 3)), whole(2, 2, high=3), *(np.array(n, np.int32) for n in ((4, 3), (2, 1)))),
            is_smooth=False,
        )
    ],
    "KLDivLoss": [Case((numbers(3, 4), numbers(3, 4, seed=1), how)) for how in ("mean", "none")],
    "MultilabelMarginLoss": [Case((numbers(2, 3), np.array([[0, 2, -1], [1, -1, 0]], np.int32)))],
    "SmoothL1Loss": [Case((numbers(3, 4), numbers(3, 4, seed=1), 0.3))],
    "SoftMarginLoss": [Case((numbers(3, 4), np.sign(numbers(3, 4, low=-1, seed=1))))],
    "ResizeBicubic": [Case((IMAGE, (6, 3))), Case((IMAGE, (6, 3), False, True))],
    "UpsampleBicubic2D": [Case((IMAGE, (6, 3)))],
    "ResizeBilinear": [Case((IMAGE, (6, 3))), Case((IMAGE, (6, 3), False, True))],
    "ResizeBilinearV2": [Case((IMAGE, (6, 3)))],
    "ResizeLinear1D": [Case((numbers(1, 2, 4), (6,)))],
    "ResizeNearestNeighborV2": [Case((IMAGE, (6, 3)))],
    "UpsampleNearest3D": [Case((VOLUME, (4, 8, 8)))],
    "UpsampleTrilinear3D": [Case((VOLUME, (4, 8, 8)))],
    **{name: [Case((whole(3, 4), whole(4, seed=1))[: 1 if name == "Invert" else 2], is_exact=True)] for name in _WHOLE},
}


def cases_of(op_type: str) -> list[Case]:
    """Those of the table; without attributes else numbers between 0.1 and 0.9 for each operand, which broadcast."""
    if op_type in CASES:
        return CASES[op_type]
    declaration = DECLARATIONS[op_type]
    if declaration.attributes:
        return []
    shapes: list[tuple[int, ...]] = [(3, 4), (4,), (3, 1), ()]
    return [Case(tuple(numbers(*shapes[slot], seed=slot) for slot in range(len(declaration.operand_names))))]

"""Properties of operators, memory and values, by type name (ATen, GE, MindSpore).

Memory: operators that overwrite inputs, and results that are the memory of an input.

Unset memory: what `empty` returns is whatever lay there before. NaN and Inf in it mean nothing, and no two runs agree
on it; some operators only move it on. Infinities: an Inf is not a fault as such, as a mask of -Inf before a softmax is
a usual way to leave elements out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)

# -- memory: who overwrites what it reads, and who returns it ----------------------------------------------------------


class MemoryUse(NamedTuple):
    """What an operator does to the memory of its inputs.

    overwrites  input slots that it writes
    results     output slot -> overwritten input slot that it is
    views       output slot -> input slot whose bytes it shows unchanged under another shape
    """

    overwrites: tuple[int, ...] = ()
    results: Mapping[int, int] = {}
    views: Mapping[int, int] = {}


_NOTHING = MemoryUse()
# The kernels of MindSpore's operators declare the same (`mutates`, `aliases`, `views`), and a test compares them; this
# table answers without loading them. It also has types that the stand-in leaves out: dumps of MindSpore hold them.
_USES = (
    (
        MemoryUse((0,), {0: 0}),
        "ApplyGradientDescent ApplyProximalGradientDescent Assign AssignAdd AssignSub IndexAdd InplaceIndexAdd "
        "ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdDiv ScatterNdMax ScatterNdMin "
        "ScatterNdMul "
        "ScatterNdSub ScatterNdUpdate ScatterNonAliasingAdd ScatterSub ScatterUpdate",
    ),
    (MemoryUse((0, 1), {0: 0}), "ApplyMomentum"),
    (MemoryUse((0, 1)), "AdamNoUpdateParam"),
    (
        MemoryUse((0, 1), {0: 0, 1: 1}),
        "ApplyAdagrad ApplyAdagradV2 ApplyAddSign ApplyKerasMomentum ApplyPowerSign ApplyProximalAdagrad "
        "FusedSparseProximalAdagrad SparseApplyAdagrad SparseApplyAdagradV2 SparseApplyProximalAdagrad",
    ),
    (MemoryUse((0, 1, 2), {0: 0}), "ApplyAdagradDA ApplyFtrl ApplyRMSProp Lamb SparseApplyAdadelta"),
    (
        MemoryUse((0, 1, 2), {0: 0, 1: 1, 2: 2}),
        "Adam AdamWeightDecay ApplyAdaMax ApplyAdadelta FusedSparseAdam FusedSparseFtrl FusedSparseLazyAdam "
        "SparseApplyFtrl SparseApplyFtrlV2 SparseApplyRMSProp",
    ),
    (MemoryUse((0, 1, 2, 3), {0: 0}), "ApplyCenteredRMSProp"),
    (MemoryUse((0, 1, 2, 3), {0: 0, 1: 1, 2: 2, 3: 3}), "ApplyAdamWithAmsgrad ApplyAdamWithAmsgradV2"),
    (MemoryUse((0, 3, 5), {0: 0}), "SGD"),
    (MemoryUse((3, 4)), "BatchNorm"),
    (MemoryUse((7, 8, 9, 10, 11), {0: 7}), "FusedAdaFactor"),
    (MemoryUse(views={0: 0}), "Depend ExpandDims Flatten Reshape Squeeze StopGradient"),
)
MEMORY_USES: Mapping[str, MemoryUse] = {op_type: use for use, types in _USES for op_type in types.split()}
# PyTorch writes it in the name: aten.add_.Tensor, which file names of some layouts spell aten_add__Tensor.
_ATEN_IN_PLACE = re.compile(r"aten[._](?!_)\w*[a-z0-9]_[._][A-Za-z]\w*")
_FIRST_IN_PLACE = MemoryUse((0,), {0: 0})


def memory_use(op_type: str) -> MemoryUse:
    """What operators of a type do to the memory of their inputs; the type may be spelt as in the name of a file.

    Edges: an operator that no rule names does nothing to it.
    """
    use = MEMORY_USES.get(op_type)
    if use is not None:
        return use
    return _FIRST_IN_PLACE if _ATEN_IN_PLACE.fullmatch(op_type) else _NOTHING


# -- unset memory: who gives it away, and who only moves it on ---------------------------------------------------------

# Source: ATen, and GE as TorchAir converts it. Names of files have "_" for ".".
_UNSET = re.compile(r"aten_(new_)?empty(_like|_strided|_permuted|_quantized)?_\w+|fsdp_all_gather_copy_in_\w+|Empty")
# Each element of their results is an element of an input, so they can make no NaN; those that write a part of one
# input leave the rest of it unset.
_MOVES = (
    "_reshape_alias _to_copy _unsafe_view alias as_strided as_strided_copy as_strided_scatter broadcast_to cat chunk "
    "clone constant_pad_nd contiguous detach diagonal diagonal_copy diagonal_scatter expand expand_copy flatten flip "
    "gather index index_copy index_put index_select lift_fresh masked_fill masked_scatter masked_select narrow permute "
    "permute_copy repeat reshape roll scatter select select_copy select_scatter slice slice_copy slice_scatter split "
    "split_with_sizes squeeze squeeze_copy stack t t_copy take to transpose transpose_copy tril triu unbind unfold "
    "unsqueeze unsqueeze_copy view view_as_complex view_as_real view_copy where"
)
_GE_MOVES = (
    "AsStrided Bitcast BroadcastTo Cast ConcatV2 GatherElements GatherV2 Identity IndexByTensor IndexPutV2 MaskedFill "
    "MaskedScatter MaskedSelect MatrixDiagPartV3 MatrixSetDiagV3 Pack PadV3 Reshape ReverseV2 Roll ScatterElements "
    "SelectV2 SplitV Squeeze StridedSliceAssignV2 StridedSliceV2 StridedSliceV2Grad Tile Transpose Tril Triu Unpack "
    "Unsqueeze"
)
_ATEN_MOVE = re.compile(rf"aten_(?:{_MOVES.replace(' ', '|')})_(?!\w+_default$)\w+")
_GE_MOVE = frozenset(_GE_MOVES.split())


@functools.lru_cache(maxsize=4096)
def makes_unset(op_type: str) -> bool:
    """True for an operator that returns memory without writing it; the type may be spelt as in the name of a file."""
    return _UNSET.fullmatch(op_type.replace(".", "_")) is not None


def is_unset(op_type: str, inputs: Iterable[bool]) -> bool:
    """Whether the results of an operator hold unset memory, in part at least.   inputs: whether each of its inputs does

    Edges: an operator that computes with unset memory has results of its own; what is wrong with them is its doing.
    """
    return makes_unset(op_type) or (any(inputs) and only_moves(op_type))


_SHAPE_READERS = re.compile(
    r"aten_(?:empty|full|ones|rand|randint|randn|zeros)_like_\w+|aten_new_(?:empty|full|ones|zeros)_\w+"
    r"|aten_(?:sym_size|sym_stride|sym_numel)_\w+|OnesLike|ZerosLike|Shape|ShapeN|Size|Rank|DynamicShape|TensorShape"
)


@functools.lru_cache(maxsize=4096)
def reads_shape_only(op_type: str) -> bool:
    """True for an operator that looks at the shape and the dtype of its inputs, and at none of their values."""
    return _SHAPE_READERS.fullmatch(op_type.replace(".", "_")) is not None


def reads_literal(op_type: str) -> bool:
    """True for an operator whose input is what the script wrote down, as PyTorch makes a tensor of a Python number."""
    return op_type.replace(".", "_") == "aten_lift_fresh_default"


@functools.lru_cache(maxsize=4096)
def only_moves(op_type: str) -> bool:
    """True for an operator that computes nothing: each element of its results is an element of an input."""
    return op_type in _GE_MOVE or _ATEN_MOVE.fullmatch(op_type.replace(".", "_")) is not None


def unset_keys(ops: Iterable[tuple[str, Sequence[Key], Sequence[Key]]]) -> frozenset[Key]:
    """Keys of all tensors that hold unset memory.   ops: (type, keys of inputs, keys of outputs) in execution order"""
    unset: set[Key] = set()
    for op_type, inputs, outputs in ops:
        if is_unset(op_type, (key in unset for key in inputs)):
            unset.update(outputs)
    return frozenset(unset)


# They overwrite the first thing that they are given without a look at it.
_FILLS = re.compile(
    r"aten_(?:_foreach_)?(?:bernoulli|cauchy|copy|exponential|fill|geometric|log_normal|normal|random|set|uniform|zero)__"
    r"\w+"
)
_RECEIVES = re.compile(r"c10d_recv_\w+")


def unread_inputs(op_type: str, names: Sequence[str]) -> tuple[int, ...]:
    """Slots of inputs that an operator overwrites without reading them: what they hold says nothing about it.

    names  of all its inputs: of the argument, with the index in a list
    """
    unread = overwrites_unread(op_type)
    if not unread:
        return ()
    heads = [name.partition("[")[0] for name in names]
    return tuple(slot for slot, head in enumerate(heads) if head in unread or (unread == _FIRST and head == heads[0]))


_FIRST = ("",)


@functools.lru_cache(maxsize=4096)
def overwrites_unread(op_type: str) -> tuple[str, ...]:
    """Names of the arguments that operators of a type overwrite without reading them; one of no name is the first."""
    spelt = op_type.replace(".", "_")
    if _FILLS.fullmatch(spelt):
        return _FIRST
    if _RECEIVES.fullmatch(spelt):
        return ("tensors",)
    return ("output", "output_tensor", "output_tensors") if is_collective(op_type) else ()


# -- collectives: who brings values of other processes -----------------------------------------------------------------

# Source: MindSpore, GE (with Hcom before the name), c10d and its functional operators.
_COLLECTIVE = re.compile(
    r"_?c10d(_functional(_autograd)?)?_\w+|(Hcom)?(All(Reduce|Gather|toAll)(V|VC)?|Reduce(Scatter)?|Broadcast|Receive)"
    r"|Collective(Gather|Scatter)|NeighborExchange(V2)?|BatchISendIRecv"
)


def is_collective(op_type: str) -> bool:
    """True for an operator whose results other processes have a part in; spelt as for `makes_unset`."""
    return _COLLECTIVE.fullmatch(op_type.replace(".", "_")) is not None


# -- infinities: who puts one into a tensor, and who stops one ---------------------------------------------------------

# What an operator does with an Inf that it reads. NEUTRAL: it looks, and says nothing of whether the Inf was meant.
STOPS, NEUTRAL, PASSES = "stops", "neutral", "passes"

_PLACERS = frozenset(
    {
        "maskedfill", "where", "full", "fulllike", "newfull", "fill", "fills", "filltensor", "scalartensor",
        "constant", "const", "constantofshape", "constantfill", "pad", "constantpad", "maskedscatter", "indexfill",
        "scatter", "slicescatter", "selectscatter", "tensorscatterupdate",
    }
)  # fmt: skip
# Scatters that add up, which may overflow.
_REDUCTIONS = frozenset({"add", "sub", "mul", "div", "reduce"})
_ADDS_UP = frozenset({"scatternd", "scatterelements"})
# Softmax and what contains one; what chooses elements; extremes; functions that end at a finite value.
_STOPPERS = frozenset(
    {
        "softmax", "logsumexp", "reducelogsumexp", "sparsesoftmaxcrossentropywithlogits",
        "softmaxcrossentropywithlogits", "scaleddotproduct", "flashattention", "promptflashattention",
        "incrementalflashattention", "fusedinferattention", "fusedinferattentionscore", "attention",
        "multiheadattention", "scaledmaskedsoftmax", "maskedsoftmax", "where", "select", "maskedselect",
        "maskedfill", "gather", "gathernd", "index", "slice", "stridedslice", "narrow", "nantonum", "nllloss",
        "nllloss2d", "max", "maximum", "amax", "fmax", "reducemax", "cummax", "maxpool", "adaptivemaxpool",
        "min", "minimum", "amin", "fmin", "reducemin", "cummin", "clamp", "clip", "clipbyvalue", "hardtanh",
        "relu", "threshold", "topk", "sigmoid", "hardsigmoid", "hsigmoid", "tanh", "erf", "atan", "softsign",
    }
)  # fmt: skip
_LOOKS = frozenset(
    {
        "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "equal", "notequal", "less",
        "lessequal", "lessorequal", "greater", "greaterequal", "greaterorequal", "logicaland", "logicalor",
        "logicalnot", "logicalxor", "sign", "argmax", "argmin", "argmaxwithvalue", "argminwithvalue",
        "floatstatus", "npuallocfloatstatus", "npugetfloatstatus", "npuclearfloatstatus",
    }
)  # fmt: skip
# They leave elements out, or put others in their place, without a look at what these are.
_CHOICES = frozenset(
    {
        "where", "select", "maskedselect", "maskedfill", "maskedscatter", "gather", "gathernd", "index", "slice",
        "stridedslice", "narrow", "nantonum", "nansum", "nanmean", "nanmedian", "nanquantile", "copy", "fill", "zero",
    }
)  # fmt: skip
# Of minus Inf they make 0.
_STOPS_NEGATIVE = frozenset({"exp", "exp2", "elu", "softplus"})

# All elements that they make are alike, as the script has asked for.
_FILLERS = frozenset(
    {
        "zero", "zeros", "zeroslike", "newzeros", "ones", "oneslike", "newones", "full", "fulllike", "newfull", "fill",
        "fills", "filltensor", "constant", "const", "constantofshape", "constantfill",
    }
)  # fmt: skip
_OVERLOADS = frozenset({"default", "scalar", "tensor", "names", "out"})

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LIBRARY = re.compile(r"^(?:aten|prims|torch|npu)[._]+")
_VERSION = re.compile(r"V[0-9]+$")


def places_constant(op_type: str) -> bool:
    """True when an Inf that no input has can only be a constant that the script chose: such an operator copies values
    and computes none."""
    beginnings = _beginnings(op_type)
    return (
        any(name in _PLACERS for name in beginnings)
        and not any(name in _ADDS_UP for name in beginnings)
        and _REDUCTIONS.isdisjoint(_words(op_type))
    )


def makes_one_value(op_type: str) -> bool:
    """True for an operator whose result has one value in all of its elements, as `zeros` and `fill` make it."""
    words = _words(op_type)
    while words and words[-1] in _OVERLOADS:
        words.pop()
    return "".join(words) in _FILLERS


def effect_on_inf(op_type: str, has_positive: bool) -> str:
    """STOPS, NEUTRAL or PASSES.

    has_positive  the Inf has a plus sign: exp stops a minus alone
    """
    if _matches(op_type, _LOOKS):
        return NEUTRAL
    if _matches(op_type, _STOPPERS) or (not has_positive and _matches(op_type, _STOPS_NEGATIVE)):
        return STOPS
    return PASSES


_SUBGRAPHS = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def subgraph_labels(op_type: str) -> tuple[str, ...]:
    """Names of the attributes in which an operator of ONNX holds what it runs; () for one that runs no others.

    The operators in there have names that begin with its name and one of these.
    """
    return _SUBGRAPHS.get(op_type, ())


def brings_data(op_type: str) -> bool:
    """True for an operator that gives a tensor memory from elsewhere, as what a loader's process has sent."""
    return op_type.replace(".", "_").startswith("aten_set__source")


# Tables of logarithms, where the chance of what cannot be is 0; logarithms of sums over rows that are all masked.
_AUXILIARY_LOGS = re.compile(
    r"aten__(?:use_)?(?:cudnn_)?ctc_loss_\w+|aten__scaled_dot_product_\w*attention\w*|CTCLossV2|npu_fusion_attention\w*"
)


def holds_inf_by_design(op_type: str, output: int, is_negative: bool) -> bool:
    """True for an output beside the result that holds minus Inf where all is well.

    is_negative   it holds minus Inf, and neither plus Inf nor NaN
    """
    return output > 0 and is_negative and _AUXILIARY_LOGS.fullmatch(op_type.replace(".", "_")) is not None


def drops_nan(op_type: str) -> bool:
    """True for an operator that leaves elements of its inputs out as the script wants it, be they NaN."""
    return _matches(op_type, _CHOICES)


def is_test(op_type: str) -> bool:
    """True for an operator that only looks at values, as comparisons do."""
    return _matches(op_type, _LOOKS)


_RANDOM = re.compile(
    r"(?:aten|prims)__?(?:alpha_dropout|bernoulli|binomial|cauchy|dropout|exponential|feature_dropout|geometric"
    r"|log_normal|multinomial|native_dropout|normal|philox_rand|poisson|rand|rand_like|randint|randint_like|randn"
    r"|randn_like|random|randperm|rrelu_with_noise|sample_dirichlet|standard_gamma|uniform)__?\w*"
    r"|(?:Dropout(?:DoMask|GenMask|V[0-9]|2D|3D)?|StatelessDropOutGenMask|Standard(?:Normal|Laplace)|Gamma|Poisson"
    r"|Uniform(?:Int|Real|Candidate\w*)?|Multinomial\w*|Random\w*|Bernoulli|TruncatedNormal|ParameterizedTruncatedNormal"
    r"|LogUniformCandidateSampler)"
)


@functools.lru_cache(maxsize=4096)
def is_random(op_type: str) -> bool:
    """True for an operator that draws numbers: its results do not follow from its inputs."""
    return _RANDOM.fullmatch(op_type.replace(".", "_")) is not None


def checks_gradients(op_type: str) -> tuple[str, ...] | None:
    """Of an operator by which a scaler of the loss finds gradients that are not finite: names of the input that it sets
    then; () where its output says so. None for all others.

    Source: PyTorch, `GradScaler`; MindSpore, `DynamicLossScaleUpdateCell`.
    """
    spelt = op_type.replace(".", "_")
    if spelt.startswith("aten__amp_foreach_non_finite_check_and_unscale_"):
        return ("found_inf",)
    return () if _matches(op_type, _FLOAT_STATUS) else None


def tests_finite(op_type: str) -> bool:
    """True for MindSpore's operator that tells of each element whether it is finite: loss scalers make their flag of it
    where the device has no status.
    """
    return op_type == "IsFinite"


_FLOAT_STATUS = frozenset({"floatstatus", "npugetfloatstatus", "allfinite"})


def _matches(op_type: str, names: frozenset[str]) -> bool:
    """Whether the first words of a type are one of the names: overloads (`aten.max.dim`) and versions follow them."""
    return any(name in names for name in _beginnings(op_type))


@functools.lru_cache(maxsize=4096)
def _beginnings(op_type: str) -> tuple[str, ...]:
    words = _words(op_type)
    return tuple("".join(words[:count]) for count in range(1, len(words) + 1))


def _words(op_type: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_VERSION.sub("", _LIBRARY.sub("", op_type)))]

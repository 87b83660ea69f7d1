"""How operators are written in MINDIR files: which arguments a node has, which attributes its primitive.

Source: files of MindSpore 2.7. Files of 2.0 write arguments of these operators as attributes of the primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# dtype -> MindSpore's number of it.   Source: type ids of MindSpore 2.7.
TYPE_IDS = {
    "bool": 30, "int8": 32, "int16": 33, "int32": 34, "int64": 35, "uint8": 37, "uint16": 38, "uint32": 39,
    "uint64": 40, "float16": 42, "float32": 43, "float64": 44, "bfloat16": 45, "complex64": 51, "complex128": 52,
}  # fmt: skip
_OF_TYPE_ID = {number: name for name, number in TYPE_IDS.items()}
_LAYOUTS, _PAD_MODES = ("NCHW", "NHWC", "NHWC4", "HWKC"), ("PAD", "SAME", "VALID")


@dataclass(frozen=True)
class Like:
    """A number that the file holds as a tensor of the dtype of the first operand."""

    number: Any


def _same(value: Any) -> Any:
    return value


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _axis(value: Any) -> Any:
    """One axis as a number."""
    return value[0] if isinstance(value, tuple | list) and len(value) == 1 else value


def _number_of(names: Sequence[str]) -> Callable[[Any], int]:
    return lambda name: names.index(name.upper()) if isinstance(name, str) else int(name)


def _name_of(names: Sequence[str]) -> Callable[[Any], str]:
    return lambda number: number if isinstance(number, str) else names[number]


def _window(value: Any) -> tuple[int, ...]:
    """Sizes of a window for the axes of images alone."""
    return tuple(value)[-2:]


def _all_axes(value: Any) -> tuple[int, ...]:
    """Sizes of a window for all four axes."""
    return (1, 1, *tuple(value)[-2:])


def dtype_of_id(number: Any) -> Any:
    """The dtype of MindSpore's number of it; a name as it is.   Raises: KeyError for another number."""
    return _OF_TYPE_ID[number] if isinstance(number, int) else number


# Kind of a field -> to the file, from the file.
_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "": (_same, _same),
    "axis": (_tuple, _axis),
    "tuple": (_tuple, _tuple),
    "layout": (_number_of(_LAYOUTS), _name_of(_LAYOUTS)),
    "pad": (_number_of(_PAD_MODES), _name_of(_PAD_MODES)),
    "window": (_window, _all_axes),
    "type": (lambda name: TYPE_IDS[name], dtype_of_id),
    "upper": (str.upper, str.lower),
    "like": (Like, _same),
    "sizes": (_tuple, _tuple),
}


@dataclass(frozen=True)
class Field:
    """An attribute of an operator.

    kind     how the file writes it; "sizes": the operator here has it as its last operand, too
    default  where the graph does not say it
    """

    name: str
    kind: str
    default: Any

    def to_file(self, attrs: Mapping[str, Any]) -> Any:
        """The value for the file.   Raises: KeyError without a value or a default."""
        value = attrs.get(self.name, self.default)
        if value is None:
            raise KeyError(self.name)
        return _KINDS[self.kind][0](value)

    def from_file(self, value: Any) -> Any:
        """The value for the graph."""
        return _KINDS[self.kind][1](value)


@dataclass(frozen=True)
class Form:
    """How a file writes an operator.

    file_type   its type there
    arguments   in their order: None for an operand, a field for an attribute
    attributes  fields of the primitive
    is_packed   its operands are one tuple
    """

    op_type: str
    file_type: str
    arguments: tuple[Field | None, ...]
    attributes: tuple[Field, ...]
    is_packed: bool

    @property
    def operand_count(self) -> int:
        """Operands that the file has."""
        return sum(argument is None for argument in self.arguments)


_PLAIN_1 = """Abs Atan Ceil Cos Erf Erfc Exp Expm1 Flatten Floor GeLU HSigmoid HSwish IsFinite Log Log1p LogicalNot Mish
    Neg OnesLike ReLU ReLU6 Reciprocal Rint Rsqrt SeLU Sigmoid Sign Sin Softplus Sqrt Square Tan Tanh Trunc
    ZerosLike Identity"""
_PLAIN_2 = """Add Atan2 Div Equal FloorDiv FloorMod GatherNd Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr
    Maximum Minimum Mul NotEqual PReLU Pow RealDiv Sub"""

# `Type` or `Type>type in the file`; `%` for an operand, `*` for all of them as a tuple, `name:kind=default` for an
# attribute; behind `|` attributes of the primitive. A default is a number, a word or `()`.
_TABLE = """
    Argmax % axis output_type:type
    Argmin % axis output_type:type
    ArgMaxWithValue % axis keep_dims=False
    ArgMinWithValue % axis keep_dims=False
    AvgPool % kernel_size:window strides:window pad_mode:pad format:layout=NCHW
    BatchMatMul % % transpose_a=False transpose_b=False
    BatchNorm % % % % % is_training=False epsilon=1e-05 momentum=0.1 format:layout=NCHW
    BiasAdd % % format:layout=NCHW
    BroadcastTo % shape
    Cast % dtype:type
    Concat * axis=0
    Conv2D % % | out_channel kernel_size mode=1 pad_mode pad stride dilation group=1 format=NCHW
    Conv2DBackpropInput>Conv2DTranspose % % input_sizes:sizes | \
        out_channel kernel_size mode=1 pad_mode:upper pad stride dilation group=1 format=NCHW
    CumSum % axis exclusive=False reverse=False
    Elu % alpha=1.0
    ExpandDims % axis
    Gather % % axis=0 batch_dims=0
    GatherD % dim %
    LayerNorm % % % begin_norm_axis=1 begin_params_axis=1 epsilon=1e-07
    LogSoftmax % axis=-1
    MaskedFill % % %
    MatMul % % transpose_a=False transpose_b=False
    MaxPool % | kernel_size strides pad_mode format=NCHW
    OneHot % depth % % axis=-1
    PadV3 % paddings constant_value:like=0 | mode=constant paddings_contiguous=True
    ReduceAll % axis:tuple=() keep_dims=False
    ReduceAny % axis:tuple=() keep_dims=False
    ReduceMax % axis:tuple=() keep_dims=False
    ReduceMean % axis:tuple=() keep_dims=False
    ReduceMin % axis:tuple=() keep_dims=False
    ReduceProd % axis:tuple=() keep_dims=False
    ReduceSum % axis:tuple=() keep_dims=False skip_mode=False
    Reshape % shape
    ResizeBilinearV2 % size align_corners=False half_pixel_centers=False
    ResizeNearestNeighborV2 % size align_corners=False half_pixel_centers=False
    ReverseV2 % axis:tuple
    Round % decimals=0
    Select % % %
    Softmax % axis:axis=-1
    Split % axis=0 output_num=1
    Squeeze % axis:tuple=()
    Stack * | axis=0
    StridedSlice % begin end strides begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0
    Tile % multiples
    TopK % k | sorted=True
    Transpose % perm
    Tril % | diagonal=0
    Triu % diagonal=0
    Unstack % | axis=0
"""
# Operators whose results are a tuple even if there is one.
TUPLES = frozenset({"Split", "Unstack"})


def _default(text: str) -> Any:
    words = {"False": False, "True": True, "()": ()}
    if text in words:
        return words[text]
    try:
        return float(text) if "." in text or "e-" in text else int(text)
    except ValueError:
        return text


def _field(word: str) -> Field:
    head, has_default, default = word.partition("=")
    name, _, kind = head.partition(":")
    return Field(name, kind, _default(default) if has_default else None)


def _form(line: str) -> Form:
    before, _, after = line.partition("|")
    head, *words = before.split()
    op_type, _, file_type = head.partition(">")
    arguments = tuple(None if word in "%*" else _field(word) for word in words)
    return Form(op_type, file_type or op_type, arguments, tuple(map(_field, after.split())), "*" in words)


FORMS = {
    form.op_type: form
    for form in map(
        _form,
        [
            *(f"{name} %" for name in _PLAIN_1.split()),
            *(f"{name} % %" for name in _PLAIN_2.split()),
            *_TABLE.strip().splitlines(),
        ],
    )
}
_BY_FILE_TYPE = {form.file_type: form for form in FORMS.values()}


def form_of_file(file_type: str) -> Form | None:
    """The form of a type of a file, None for one that is not in the table."""
    return _BY_FILE_TYPE.get(file_type) or FORMS.get(file_type)

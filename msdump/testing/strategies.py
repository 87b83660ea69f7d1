"""Hypothesis strategies for what flows through a dump: tensors of every dtype and layout, names, records.

    from hypothesis import given
    from msdump.testing import tensors

    @given(tensors(dtypes=["float16", "float32"]))
    def test_my_operator_keeps_nan(array):
        assert np.isnan(my_operator(array)).any() == np.isnan(array).any()

Everything shrinks towards small, plain values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from msdump.tensors import dtypes as dtype_table
from msdump.tensors.arrays import Array
from msdump.tensors.records import DEFAULT_FORMAT, INPUT, OUTPUT, TensorKey, TensorRecord

# Every dtype that an array in memory can have and whose numbers are known.
DTYPES: tuple[str, ...] = tuple(
    row.name for row in dtype_table.TABLE if row.kind != dtype_table.OTHER and row.is_dumped
)

_MAX_ELEMENTS = 256
_LAYOUTS = ("plain", "transposed", "strided", "reversed", "big-endian", "read-only", "broadcast")


def shapes(max_ndim: int = 4, max_side: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes from 0-d to `max_ndim` axes; about one in ten has an axis of size 0."""
    side = st.one_of(*[st.integers(1, max_side)] * 9, st.just(0)) if max_side > 0 else st.just(0)
    return st.lists(side, max_size=max_ndim).map(tuple)


@st.composite
def tensors(
    draw: st.DrawFn,
    dtypes: Sequence[str] | None = None,
    shapes: st.SearchStrategy[tuple[int, ...]] | None = None,
    layouts: Sequence[str] | None = None,
) -> Array:
    """Arrays as hostile as the dtype allows.

    dtypes   names of the dtype table; None: every dtype of `DTYPES`
    shapes   strategy of shapes; None: 0-d and empty included
    layouts  among "plain", "transposed", "strided", "reversed", "big-endian", "read-only", "broadcast"; None: all

    Values: every bit pattern may occur, with NaNs of any payload and sign, +-Inf, -0.0, subnormals, the extremes of
    integers; some arrays are all finite, some hold nothing finite.
    """
    row = dtype_table.dtype(draw(st.sampled_from(list(dtypes) if dtypes is not None else list(DTYPES))))
    shape = draw(_default_shapes() if shapes is None else shapes)
    layout = draw(st.sampled_from(list(layouts) if layouts is not None else list(_LAYOUTS)))
    size = math.prod(shape)
    if layout == "broadcast" and shape and size:
        inner = draw(_values(row, math.prod(shape[1:]))).reshape(shape[1:])
        return np.broadcast_to(inner, shape)
    return _lay_out(draw(_values(row, size)).reshape(shape), layout)


def _default_shapes() -> st.SearchStrategy[tuple[int, ...]]:
    return shapes()


def _lay_out(array: Array, layout: str) -> Array:
    """The same values with other strides, byte order or flags."""
    if layout == "transposed":
        return np.asfortranarray(array)
    if layout == "strided" and array.ndim:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "big-endian" and array.dtype.isbuiltin == 1:
        return array.astype(array.dtype.newbyteorder(">"))
    if layout == "read-only":
        array.flags.writeable = False
    return array


@st.composite
def _values(draw: st.DrawFn, row: dtype_table.Dtype, size: int) -> Array:
    """One axis of `size` elements; at most `_MAX_ELEMENTS` are drawn, the rest repeats them."""
    drawn = min(size, _MAX_ELEMENTS)
    if row.kind == dtype_table.BOOL:
        values = np.array(draw(st.lists(st.booleans(), min_size=drawn, max_size=drawn)), np.bool_)
    elif row.bits < 8:
        top = 1 << row.bits
        codes = draw(st.lists(st.integers(0, top - 1), min_size=drawn, max_size=drawn))
        values = _small_values(row, np.array(codes, np.uint8))
    elif row.kind in (dtype_table.FLOAT, dtype_table.COMPLEX):
        values = draw(_float_values(row, drawn))
    else:
        raw = draw(st.binary(min_size=drawn * row.itemsize, max_size=drawn * row.itemsize))
        values = np.frombuffer(raw, row.numpy).copy()
        if drawn and draw(st.booleans()):
            limits = np.iinfo(row.numpy)
            values[draw(st.integers(0, drawn - 1))] = draw(st.sampled_from([0, limits.min, limits.max]))
    return np.resize(values, size) if size > drawn else values


def _small_values(row: dtype_table.Dtype, codes: Array) -> Array:
    """Elements of a dtype of less than a byte, from their codes."""
    if row.is_float:
        return codes.view(row.numpy)
    if row.kind == dtype_table.INT:
        half = 1 << (row.bits - 1)
        return (codes.astype(np.int8) - half).astype(row.numpy)
    return codes.astype(row.numpy)


# float6 lives in bytes whose upper bits are zero.
_FLOAT6_NAMES = ("float6_e3m2", "float6_e2m3")


@st.composite
def _float_values(draw: st.DrawFn, row: dtype_table.Dtype, size: int) -> Array:
    """Floats, or complex numbers made of two floats each."""
    style = draw(st.sampled_from(["plain", "bits", "special", "not finite"]))
    part = row.numpy if row.kind == dtype_table.FLOAT else np.dtype(f"f{row.itemsize // 2}")
    count = size * (row.itemsize // part.itemsize)
    if style in ("bits", "not finite"):
        raw = draw(st.binary(min_size=count * part.itemsize, max_size=count * part.itemsize))
        codes = np.frombuffer(raw, f"u{part.itemsize}").copy()
        if row.name in _FLOAT6_NAMES:
            codes &= 0x3F
        elif style == "not finite":
            # All exponent bits set: +-Inf, and NaNs of every payload and sign.
            codes |= _codes_of(math.inf, part)
        return codes.view(row.numpy)
    if style == "plain":
        numbers = st.integers(-64, 64).map(lambda number: number / 8)
    else:
        numbers = st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e-40, 65504.0, 1e30])
    drawn = np.array(draw(st.lists(numbers, min_size=count, max_size=count)), np.float64)
    with np.errstate(all="ignore"):
        return drawn.astype(part).view(row.numpy)


def _codes_of(value: float, part: np.dtype[Any]) -> Any:
    """Bits of a value in a float dtype."""
    with np.errstate(all="ignore"):
        return np.array([value]).astype(part).view(f"u{part.itemsize}")[0]


# -- names ---------------------------------------------------------------------------------------------------------

_PLAIN_TYPES = (
    "Conv2D",
    "ReLU",
    "MatMul",
    "BiasAdd",
    "MaxPool",
    "ApplyMomentum",
    "SparseSoftmaxCrossEntropyWithLogits",
)
_HOSTILE_PIECES = (
    "..",
    "/",
    "\\",
    "\0",
    "\n",
    "\r",
    ",",
    '"',
    ".",
    " ",
    "--",
    "\u2028",
    "\ud800",
    "é",
    "网络",
    "%",
    "~",
    "-op1",
)


def _hostile_text() -> st.SearchStrategy[str]:
    """Text that tries to leave its folder, break a csv line or be too long for a file name."""
    return st.one_of(
        st.lists(st.one_of(st.sampled_from(_HOSTILE_PIECES), st.text(max_size=4)), max_size=6).map("".join),
        st.sampled_from(
            ["", ".", "..", "../../etc/passwd", "/etc/passwd", "a/../..", ".hidden", "\0", "x.0.0.1.output.0.Y"]
        ),
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=3).map(lambda text: text * 150),
    )


def op_types(is_hostile: bool = True) -> st.SearchStrategy[str]:
    """Operator types: MindSpore's own, and with `is_hostile` any text."""
    plain = st.sampled_from(_PLAIN_TYPES)
    return st.one_of(plain, plain, _hostile_text()) if is_hostile else plain


@st.composite
def op_names(draw: st.DrawFn, is_hostile: bool = True) -> str:
    """Full operator names with scope, such as "Default/conv1-Conv2d/Conv2D-op12", and with `is_hostile` any text."""
    if is_hostile and draw(st.integers(0, 2)) == 0:
        return draw(_hostile_text())
    scope = draw(
        st.lists(st.sampled_from(["network-WithLossCell", "_backbone-AlexNet", "conv1-Conv2d", "0-Dense"]), max_size=3)
    )
    start = draw(st.sampled_from(["Default", "Gradients/Default"]))
    return "/".join([start, *scope, f"{draw(st.sampled_from(_PLAIN_TYPES))}-op{draw(st.integers(0, 999))}"])


@st.composite
def parameter_names(draw: st.DrawFn, is_hostile: bool = True) -> str:
    """Parameter names, such as "moments.conv1.weight", and with `is_hostile` any text."""
    if is_hostile and draw(st.integers(0, 2)) == 0:
        return draw(_hostile_text())
    piece = st.sampled_from(["conv1", "fc3", "weight", "bias", "moments", "layer1", "0", "gamma", "learning_rate"])
    return ".".join(draw(st.lists(piece, min_size=1, max_size=4)))


# -- records -------------------------------------------------------------------------------------------------------


@st.composite
def records(
    draw: st.DrawFn,
    dtypes: Sequence[str] | None = None,
    is_hostile: bool = True,
    max_size: int = 6,
    iteration: int = 0,
    graph_id: int = 0,
    first_timestamp_us: int = 1_700_000_000_000_000,
) -> list[TensorRecord]:
    """Records of one iteration, as a dumper hands them to a writer.

    Time stamps strictly increase. Records with equal keys hold the same bytes: some tensors come again under other
    names. dtypes: None for every dtype that MindSpore dumps.
    """
    allowed = list(dtypes) if dtypes is not None else sorted(dtype_table.MINDSPORE_DUMPED)
    count = draw(st.integers(0, max_size))
    results: list[TensorRecord] = []
    for index in range(count):
        is_parameter: bool = draw(st.booleans())
        is_shared: bool = bool(results) and draw(st.booleans())
        again = draw(st.sampled_from(results)) if is_shared else None
        key: TensorKey | None
        if again is not None and again.key is not None:
            data, dtype, key = again.data, again.dtype, again.key
        else:
            dtype = draw(st.sampled_from(allowed))
            data = draw(tensors(dtypes=[dtype]))
            key = TensorKey(index, draw(st.integers(0, 2))) if draw(st.booleans()) else None
        name = draw(parameter_names(is_hostile)) if is_parameter else draw(op_names(is_hostile))
        results.append(
            TensorRecord(
                "Parameter" if is_parameter else draw(op_types(is_hostile)),
                name,
                draw(st.integers(0, 9)),
                draw(st.integers(0, 3)),
                first_timestamp_us + index,
                OUTPUT if is_parameter else draw(st.sampled_from([INPUT, OUTPUT])),
                draw(st.integers(0, 4)),
                dtype,
                data,
                DEFAULT_FORMAT,
                iteration,
                graph_id,
                key,
                is_parameter,
            )
        )
    return results


def assert_same_array(actual: Array, expected: Array) -> None:
    """Same shape, dtype up to byte order, and values bit for bit; any NaN equals any NaN.   Raises: AssertionError."""
    assert actual.shape == expected.shape, f"shape: expected {expected.shape}, got {actual.shape}"
    native = expected.dtype.newbyteorder("=")
    assert actual.dtype.newbyteorder("=") == native, f"dtype: expected {native}, got {actual.dtype}"
    if not expected.size:
        return
    left, right = (np.ascontiguousarray(array).astype(native).reshape(-1) for array in (actual, expected))
    with np.errstate(all="ignore"):
        both_nan = (left != left) & (right != right)
    left_bytes, right_bytes = (array.view(np.uint8).reshape(left.size, -1) for array in (left, right))
    differs = (left_bytes != right_bytes).any(axis=1) & ~both_nan
    if differs.any():
        index = np.unravel_index(int(np.flatnonzero(differs)[0]), expected.shape)
        place = tuple(int(part) for part in index)
        raise AssertionError(f"element {place}: expected {expected[place]!r}, got {actual[place]!r}")


# -- operands like those of another call -------------------------------------------------------------------------------

# Dtypes that stand for each other, the first of them most often.
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int32", "int64", "uint8", "int8", "int16")
_COMPLEX = ("complex64", "complex128")
_SPECIAL = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e30, -1e-30)
_SHAPES = ("plain", "plain", "resized", "leading axis", "leading axis of one")


@st.composite
def operands_like(
    draw: st.DrawFn,
    arrays: Sequence[Array],
    dtypes: Sequence[str] | None = None,
    is_special: bool = False,
    has_other_shapes: bool = True,
) -> list[Array]:
    """Operands of a call that may be good when one with `arrays` is: an operator takes them or refuses them.

    dtypes            names of the dtypes that the first operand may have; None: those of its kind. Operands that have
                      its dtype change with it.
    is_special        among floats are also NaN, infinities, both zeros, and numbers that are no float16
    has_other_shapes  False: the shapes stay

    Shapes: all axes of one size get another one, which may be 0; or one operand or all of them get one more axis.
    Values: those of `arrays`, in another order and repeated or left out where the size changes, so that a valid index
    stays one. It shrinks to `arrays`.
    """
    drawn = [np.array(array) for array in arrays]
    if has_other_shapes and drawn:
        drawn = _reshaped(draw, drawn)
    if drawn:
        drawn = _in_dtype(draw, drawn, dtypes)
    seed = draw(st.integers(0, 99))
    if seed:
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(array.reshape(-1)).reshape(array.shape) for array in drawn]
    return [_with_special(draw, array) for array in drawn] if is_special else drawn


def _reshaped(draw: st.DrawFn, arrays: list[Array]) -> list[Array]:
    how = draw(st.sampled_from(_SHAPES))
    if how == "resized":
        sizes = sorted({size for array in arrays for size in array.shape})
        if sizes:
            old, new = draw(st.sampled_from(sizes)), draw(st.sampled_from([0, 1, 2, 3, 5]))
            return [_resized(array, old, new) for array in arrays]
    elif how != "plain":
        size = draw(st.sampled_from([0, 1, 2, 3]))
        chosen = range(len(arrays)) if how == "leading axis" else [draw(st.integers(0, len(arrays) - 1))]
        return [np.stack([array] * size) if slot in chosen and size else
                np.zeros((0, *array.shape), array.dtype) if slot in chosen else array
                for slot, array in enumerate(arrays)]  # fmt: skip
    return arrays


def _resized(array: Array, old: int, new: int) -> Array:
    for axis, size in enumerate(array.shape):
        if size == old and size:
            array = np.take(array, np.arange(new) % size, axis=axis)
        elif size == old:
            array = np.zeros((*array.shape[:axis], new, *array.shape[axis + 1 :]), array.dtype)
    return array


def _in_dtype(draw: st.DrawFn, arrays: list[Array], names: Sequence[str] | None) -> list[Array]:
    own = arrays[0].dtype
    if names is None:
        name = dtype_table.dtype_from_numpy(own).name
        groups = [group for group in (_FLOATS, _INTEGERS, _COMPLEX) if name in group]
        names = (name, *groups[0]) if groups else (name,)
    new = dtype_table.dtype(draw(st.sampled_from(list(names)))).numpy
    with np.errstate(all="ignore"):
        return [array.astype(new) if array.dtype == own else array for array in arrays]


def _with_special(draw: st.DrawFn, array: Array) -> Array:
    if array.size and dtype_table.dtype_from_numpy(array.dtype).is_float:
        value = draw(st.sampled_from((None, *_SPECIAL)))
        if value is not None:
            with np.errstate(all="ignore"):
                array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return array

"""One-pass statistics of floats as LLVM's vector instructions: extremes, counts and both sums of a block in one loop.

It depends on the compiler which loops become vectors and which of their instructions it can do without, and numba knows
no 16-bit floats; so the loop over whole vectors is built here, and LLVM splits the vectors where registers are shorter.

Import this module only where `has_compiler()` is true.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from msdump.tensors.float_bits import FloatBits
from msdump.tensors.vector_code import DOUBLE, FLOAT, HALF, I16, I32, I64, indices, load, splat, spread

if TYPE_CHECKING:
    from numba.core.types import IntegerLiteral, Type
    from numba.core.typing.context import BaseContext
    from numba.core.typing.templates import Signature

    from msdump.tensors.arrays import Array
    from msdump.tensors.vector_code import CallTypes, Emit, Lowering

BLOCK = 8192  # elements whose finiteness is looked at together; they stay in the first-level cache
PIECE = 512  # the same where one of them is not finite
STEP = 32  # elements that the loop over vectors takes at a time

_VECTOR_BITS, _DOUBLES = 512, 8

# Parts of numba without types.
_types: Any = types
_cgutils: Any = cgutils
_config: Any = numba.config

_FUSED = ("contract",)


def compilable_float_rows(form: FloatBits) -> Callable[..., None]:
    """Vectors first: they tell whether all is finite. What is not, and ends of rows, go through loops that look at each
    element.

    A row is that of the elements from one of `starts` to the next. `floats` is the tensor itself or, for 16-bit floats,
    a PIECE of scratch that is filled through `wide`. Two arguments are for LLVM alone: `again` is `bits` once more, as
    it takes vectors apart that are faster loaded twice where it knows that they are the same; `unit` is 1, as it adds
    masks through another register where it knows what is added.
    """
    key: Any = form.key
    one, largest, smallest = key(1), key(np.iinfo(key).max), key(np.iinfo(key).min)
    shift = key(8 * np.dtype(key).itemsize - 1)
    infinity, minus_infinity, minus_one, none = key(form.infinity), key(~form.infinity), key(-1), key(0)
    half_shift, is_half, scale = form.shift, bool(form.shift), form.scale

    def fill_rows(
        bits: Array,
        again: Array,
        unit: int,
        floats: Array,
        wide: Array,
        starts: Array,
        extremes: Array,
        sums: Array,
        counts: Array,
    ) -> None:
        for row in range(extremes.shape[0]):
            position, end, size = starts[row], starts[row + 1], BLOCK
            top, low = smallest, largest
            total = squares = np.float64(0.0)
            negative, zero, nan, negative_inf, positive_inf = 0, 0, 0, 0, 0
            while position < end:
                stop = min(end, position + size)
                whole = position + (stop - position) // STEP * STEP
                if whole > position:
                    part = _measure_vectors(bits.ctypes, again.ctypes, unit, position, whole, half_shift)
                    if part[0] < infinity and part[1] > minus_infinity:
                        top, low = max(top, part[0]), min(low, part[1])
                        negative, zero = negative + part[2], zero + part[3]
                        total, squares = total + part[4], squares + part[5]
                        position, size = whole, min(2 * size, BLOCK)
                        continue
                    if size > PIECE:
                        size = PIECE
                        continue
                # Slices, because the compiler must see that no index is negative to vectorise.
                block = bits[position:stop]
                first = 0 if is_half else position
                values = floats[first : first + block.shape[0]]
                position = stop
                if is_half:
                    for i in range(block.shape[0]):
                        half = np.uint32(block[i])
                        magnitude_bits = np.uint32(np.uint32(half & np.uint32(0x7FFF)) << np.uint32(half_shift))
                        wide[i] = magnitude_bits | np.uint32(np.uint32(half & np.uint32(0x8000)) << np.uint32(16))
                block_top, block_low, below, zeros = smallest, largest, none, none
                nans, at_minus_inf, at_inf = none, none, none
                for i in range(block.shape[0]):
                    k = key(block[i] ^ key(key(block[i] >> shift) & largest))
                    magnitude = key(block[i] & largest)
                    block_top = max(block_top, k if magnitude < infinity else smallest)
                    block_low = min(block_low, k if magnitude < infinity else largest)
                    below = key(below + (one if k < minus_one and magnitude < infinity else none))
                    zeros = key(zeros + key(magnitude == none))
                    nans = key(nans + key(magnitude > infinity))
                    at_minus_inf = key(at_minus_inf + key(k == minus_infinity))
                    at_inf = key(at_inf + key(k == infinity))
                block_sum = block_squares = np.float64(0.0)
                for i in range(block.shape[0]):
                    value = np.float64(values[i]) if key(block[i] & largest) < infinity else np.float64(0.0)
                    block_sum += value
                    block_squares += value * value
                negative, zero, nan = negative + below, zero + zeros, nan + nans
                negative_inf, positive_inf = negative_inf + at_minus_inf, positive_inf + at_inf
                top, low = max(top, block_top), min(low, block_low)
                total, squares = total + block_sum * scale, squares + block_squares * scale * scale
            extremes[row, 0], extremes[row, 1] = top, low
            sums[row, 0], sums[row, 1] = total, squares
            counts[row, 0], counts[row, 1], counts[row, 2] = negative, zero, nan
            counts[row, 3], counts[row, 4] = negative_inf, positive_inf

    return fill_rows


# -- instructions --------------------------------------------------------------------------------------------------


def _vectors(
    typing_context: BaseContext,
    bits: Any,
    again: Type,
    unit: Type,
    start: Type,
    stop: Type,
    half_shift: IntegerLiteral,
) -> tuple[Signature, Emit]:
    """(largest key, smallest key, number below zero, zeros, sum, sum of squares) of elements from `start` to `stop`.

    `stop - start` is a positive multiple of STEP, of at most BLOCK. All is right when both keys are those of finite
    numbers.
    """
    key = bits.dtype
    results = _types.Tuple((key, key, _types.int64, _types.int64, _types.float64, _types.float64))
    form = functools.partial(_emit_vectors, key.bitwidth, half_shift.literal_value)
    return results(_types.CPointer(key), _types.CPointer(key), key, _types.int64, _types.int64, half_shift), form


# What compiled code calls. The shift tells float16 from bfloat16, whose keys are alike.
_measure_vectors: Callable[..., tuple[int, int, int, int, float, float]] = intrinsic(prefer_literal=True)(_vectors)


def _emit_vectors(
    bits: int,
    half_shift: int,
    context: Lowering,
    builder: ir.IRBuilder,
    signature: CallTypes,
    arguments: Sequence[ir.Value],
) -> ir.Value:
    pointer, again, unit, start, stop, _ = arguments
    scalar, lanes = ir.IntType(bits), _VECTOR_BITS // bits
    doubles_type, count = ir.VectorType(DOUBLE, _DOUBLES), STEP // _DOUBLES
    initial = [splat(scalar, lanes, number) for number in (-1 << (bits - 1), 0, -1, 0, 0)]
    initial += [ir.Constant(doubles_type, [0.0] * _DOUBLES)] * (2 * count)
    units = spread(builder, unit, lanes)
    before, loop, after = builder.block, builder.append_basic_block("vectors"), builder.append_basic_block("done")
    builder.branch(loop)

    builder.position_at_end(loop)
    index, *state = [builder.phi(I64), *(builder.phi(value.type) for value in initial)]
    counted = _emit_counts(builder, builder.gep(pointer, [index]), scalar, lanes, state[:5], units)
    doubles, scale = _emit_doubles(builder, builder.gep(again, [index]), bits, half_shift)
    totals = [builder.fadd(total, value) for total, value in zip(state[5 : 5 + count], doubles, strict=True)]
    squares = [
        builder.fadd(builder.fmul(value, value, flags=_FUSED), total, flags=_FUSED)
        for total, value in zip(state[5 + count :], doubles, strict=True)
    ]
    advanced = [builder.add(index, I64(STEP)), *counted, *totals, *squares]
    for phi, first, later in zip([index, *state], [start, *initial], advanced, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", advanced[0], stop), loop, after)

    builder.position_at_end(after)
    *extremes, negatives, zeros = counted
    wide = ir.VectorType(I64, lanes)
    results = [
        *_emit_keys(builder, scalar, *(_reduced(builder, [e], o) for e, o in zip(extremes, _EXTREMES, strict=True))),
        *(_reduced(builder, [builder.zext(n, wide) if bits < 64 else n], ir.IRBuilder.add) for n in (negatives, zeros)),
        builder.fmul(_reduced(builder, totals, ir.IRBuilder.fadd), DOUBLE(scale)),
        builder.fmul(_reduced(builder, squares, ir.IRBuilder.fadd), DOUBLE(scale * scale)),
    ]
    return context.make_tuple(builder, signature.return_type, results)


def _largest(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def _largest_unsigned(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_unsigned(">", a, b), a, b)


def _smallest_unsigned(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


# Of bits read as integers: the largest float if one is without sign; the smallest one if one has a sign; and of floats
# that are all with or all without sign, the one next to zero. That is less work than a key for each element.
_EXTREMES = (_largest, _largest_unsigned, _smallest_unsigned)


def _emit_counts(
    builder: ir.IRBuilder, element: ir.Value, scalar: ir.IntType, lanes: int, state: Sequence[ir.Value], units: ir.Value
) -> list[ir.Value]:
    """The three extremes, the numbers of elements below zero and of zeros, after the next STEP elements."""
    *extremes, negatives, zeros = state
    for part in range(0, STEP, lanes):
        vector = load(builder, builder.gep(element, [I64(part)]), scalar, lanes)
        extremes = [operation(builder, vector, extreme) for extreme, operation in zip(extremes, _EXTREMES, strict=True)]
        is_negative = builder.icmp_unsigned(">", vector, splat(scalar, lanes, 1 << (scalar.width - 1)))
        negatives = builder.select(is_negative, builder.add(negatives, units), negatives)
        magnitude = builder.and_(vector, splat(scalar, lanes, (1 << (scalar.width - 1)) - 1))
        is_zero = builder.icmp_signed("==", magnitude, splat(scalar, lanes, 0))
        zeros = builder.select(is_zero, builder.add(zeros, units), zeros)
    return [*extremes, negatives, zeros]


def _emit_keys(
    builder: ir.IRBuilder,
    scalar: ir.IntType,
    largest: ir.Value,
    largest_unsigned: ir.Value,
    smallest_unsigned: ir.Value,
) -> list[ir.Value]:
    """Keys of the largest and the smallest element."""
    none, magnitude = scalar(0), scalar((1 << (scalar.width - 1)) - 1)
    top = builder.select(builder.icmp_signed(">=", largest, none), largest, smallest_unsigned)
    low = builder.select(builder.icmp_signed("<", largest_unsigned, none), largest_unsigned, smallest_unsigned)
    signs = [builder.ashr(end, scalar(scalar.width - 1)) for end in (top, low)]
    return [builder.xor(end, builder.and_(sign, magnitude)) for end, sign in zip((top, low), signs, strict=True)]


def _emit_doubles(builder: ir.IRBuilder, element: ir.Value, bits: int, half_shift: int) -> tuple[list[ir.Value], float]:
    """The next STEP elements in float64, in any order, and what they must be multiplied by."""
    single, double = ir.VectorType(FLOAT, _DOUBLES), ir.VectorType(DOUBLE, _DOUBLES)
    addresses = [builder.gep(element, [I64(part)]) for part in range(0, STEP, _DOUBLES)]
    if bits == 64:
        return [load(builder, address, DOUBLE, _DOUBLES) for address in addresses], 1.0
    scale = 1.0
    if bits == 32:
        singles = [load(builder, address, FLOAT, _DOUBLES) for address in addresses]
    elif half_shift == 16:
        # A bfloat16 is the upper half of a float32: of two neighbours one is shifted there, the other is there.
        pairs = [load(builder, address, I32, _DOUBLES, align=2) for address in addresses[::2]]
        shifted = [builder.shl(pair, splat(I32, _DOUBLES, 16)) for pair in pairs]
        masked = [builder.and_(pair, splat(I32, _DOUBLES, 0xFFFF0000)) for pair in pairs]
        singles = [builder.bitcast(word, single) for word in (*shifted, *masked)]
    elif _has_half_instructions():
        singles = [builder.fpext(load(builder, address, HALF, _DOUBLES), single) for address in addresses]
    else:
        scale = 2.0**112
        words = [
            builder.zext(load(builder, address, I16, _DOUBLES), ir.VectorType(I32, _DOUBLES)) for address in addresses
        ]
        singles = [builder.bitcast(_widened(builder, word, half_shift), single) for word in words]
    return [builder.fpext(value, double) for value in singles], scale


def _widened(builder: ir.IRBuilder, word: ir.Value, half_shift: int) -> ir.Value:
    magnitude = builder.and_(word, splat(I32, _DOUBLES, 0x7FFF))
    sign = builder.and_(word, splat(I32, _DOUBLES, 0x8000))
    amount, to_sign = splat(I32, _DOUBLES, half_shift), splat(I32, _DOUBLES, 16)
    return builder.or_(builder.shl(magnitude, amount), builder.shl(sign, to_sign))


def _has_half_instructions() -> bool:
    """Whether the processor converts float16; False where numba compiles for another processor."""
    if _config.CPU_NAME or _config.CPU_FEATURES:
        return False
    return bool(llvm.get_host_cpu_features().get("f16c")) or platform.machine() in ("aarch64", "arm64")


def _reduced(
    builder: ir.IRBuilder,
    vectors: Sequence[ir.Value],
    operation: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """One number of all lanes: the vectors in turn, then halves of the vector."""
    value = functools.reduce(functools.partial(operation, builder), vectors)
    lanes = value.type.count
    while lanes > 1:
        lanes //= 2
        lower, upper = (
            builder.shuffle_vector(value, value, indices(range(start, start + lanes))) for start in (0, lanes)
        )
        value = operation(builder, lower, upper)
    return builder.extract_element(value, I32(0))

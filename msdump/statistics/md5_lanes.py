"""MD5 of many messages at once: each lane of a vector holds the state of one message.

MD5 is one chain of additions that wait for each other, so that a single message leaves most of a processor idle. Here a
chain works on a vector of 16 or 8 messages. It is built as LLVM's vector instructions, because it depends on the
compiler whether loops become vectors; LLVM splits the vectors where registers are shorter.

Import this module only where `has_compiler()` is true, on little-endian processors.   Source: RFC 1321.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from msdump.tensors.compiling import array_type, compiled
from msdump.tensors.vector_code import I8, I32, I64, load, splat, spread, transposed

if TYPE_CHECKING:
    from numba.core.types import Type
    from numba.core.typing.context import BaseContext
    from numba.core.typing.templates import Signature

    from msdump.tensors.arrays import Array
    from msdump.tensors.vector_code import CallTypes, Emit, Lowering

WIDE, NARROW = 16, 8  # lanes; up to NARROW messages are faster in the shorter vectors
BLOCK_BYTES = 64
_WORDS, _STATE_WORDS = BLOCK_BYTES // 4, 4
_LENGTH_BYTES = 8

_INITIAL = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint32)
_SINES = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], np.uint32)
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
# The word of step i in each of the four rounds: (factor * i + offset) modulo 16.
_WORD_ORDER = ((1, 0), (5, 1), (3, 5), (7, 0))

# Parts of numba without types.
_types: Any = types
_cgutils: Any = cgutils

# Fills `digests` (n, 4) from (addresses, sizes in bytes).
LaneKernel: TypeAlias = "Callable[[Array, Array, Array], None]"


@functools.cache
def lane_kernel() -> LaneKernel:
    """Machine code, from the cache on disk if there is one; it runs without the GIL.

    Messages begin in the order of `addresses`: with the largest first, fewest lanes are idle at the end.
    """
    inputs = [array_type("int64"), array_type("int64"), array_type("uint32"), array_type("uint32")]
    digest_all = compiled(_digest_all, _types.void(*inputs, array_type("uint32", readonly=False, ndim=2)))

    def kernel(addresses: Array, sizes: Array, digests: Array) -> None:
        digest_all(addresses, sizes, _SINES, _INITIAL, digests)

    return kernel


# -- lanes and their messages --------------------------------------------------------------------------------------


def _digest_all(addresses: Array, sizes: Array, sines: Array, initial: Array, digests: Array) -> None:
    state = np.empty((_STATE_WORDS, WIDE), np.uint32)
    position = np.empty(WIDE, np.int64)  # address of the next block
    remaining = np.empty(WIDE, np.int64)  # blocks of the message, then of its tail
    message = np.empty(WIDE, np.int64)
    is_tail = np.empty(WIDE, np.bool_)
    tails = np.empty((WIDE, 2 * BLOCK_BYTES), np.uint8)
    following = active = min(WIDE, addresses.shape[0])
    for lane in range(active):
        _begin(lane, lane, addresses, sizes, initial, state, position, remaining, message, is_tail)
    while True:
        lane = 0
        while lane < active:
            if remaining[lane] > 0:
                lane += 1
            elif not is_tail[lane]:
                remaining[lane] = _fill_tail(tails[lane], position[lane], sizes[message[lane]])
                position[lane], is_tail[lane] = tails[lane].ctypes.data, True
            else:
                for word in range(_STATE_WORDS):
                    digests[message[lane], word] = state[word, lane]
                if following < addresses.shape[0]:
                    _begin(lane, following, addresses, sizes, initial, state, position, remaining, message, is_tail)
                    following += 1
                else:
                    # The last active lane takes the place; its tail, if it has begun, stays where it is.
                    active -= 1
                    for word in range(_STATE_WORDS):
                        state[word, lane] = state[word, active]
                    position[lane], remaining[lane] = position[active], remaining[active]
                    message[lane], is_tail[lane] = message[active], is_tail[active]
        if active == 0:
            return
        count = remaining[0]
        for lane in range(1, active):
            count = min(count, remaining[lane])
        for lane in range(active, WIDE):
            position[lane] = position[0]  # idle lanes need memory to read as well
        if active > NARROW:
            _run_wide(state.ctypes, position.ctypes, sines.ctypes, count)
        else:
            _run_narrow(state.ctypes, position.ctypes, sines.ctypes, count)
        for lane in range(active):
            remaining[lane] -= count


def _begin_message(
    lane: int,
    number: int,
    addresses: Array,
    sizes: Array,
    initial: Array,
    state: Array,
    position: Array,
    remaining: Array,
    message: Array,
    is_tail: Array,
) -> None:
    """Message `number` takes a lane."""
    for word in range(_STATE_WORDS):
        state[word, lane] = initial[word]
    position[lane], remaining[lane] = addresses[number], sizes[number] // BLOCK_BYTES
    message[lane], is_tail[lane] = number, False


def _write_tail(tail: Array, address: int, size: int) -> int:
    """The end of a message of `size` bytes, whose last bytes are at `address`, with its padding; the blocks of it."""
    rest = size % BLOCK_BYTES
    blocks = 1 if rest < BLOCK_BYTES - _LENGTH_BYTES else 2
    for index in range(tail.shape[0]):
        tail[index] = 0
    _copy(tail.ctypes, address, rest)
    tail[rest] = 0x80
    for index in range(_LENGTH_BYTES):
        tail[blocks * BLOCK_BYTES - _LENGTH_BYTES + index] = np.uint8((size * 8) >> (8 * index) & 0xFF)
    return blocks


# -- instructions --------------------------------------------------------------------------------------------------

_RUN = _types.void(
    _types.CPointer(_types.uint32), _types.CPointer(_types.int64), _types.CPointer(_types.uint32), _types.int64
)


def _run_wide_lanes(
    typing_context: BaseContext, state: Type, positions: Type, sines: Type, count: Type
) -> tuple[Signature, Emit]:
    """`count` blocks of each of the 16 lanes: advances their states and positions."""
    return _RUN, functools.partial(_emit_run, WIDE)


def _run_narrow_lanes(
    typing_context: BaseContext, state: Type, positions: Type, sines: Type, count: Type
) -> tuple[Signature, Emit]:
    """The same of the first 8 lanes alone."""
    return _RUN, functools.partial(_emit_run, NARROW)


def _copy_bytes(typing_context: BaseContext, target: Type, address: Type, size: Type) -> tuple[Signature, Emit]:
    return _types.void(_types.CPointer(_types.uint8), _types.int64, _types.int64), _emit_copy


# What compiled code calls.
_run_wide: Callable[..., None] = intrinsic(_run_wide_lanes)
_run_narrow: Callable[..., None] = intrinsic(_run_narrow_lanes)
_copy: Callable[..., None] = intrinsic(_copy_bytes)
_begin = register_jitable(_begin_message)
_fill_tail = register_jitable(_write_tail)


def _emit_copy(
    context: Lowering, builder: ir.IRBuilder, signature: CallTypes, arguments: Sequence[ir.Value]
) -> ir.Value:
    target, address, size = arguments
    _cgutils.raw_memcpy(builder, target, builder.inttoptr(address, I8.as_pointer()), size, 1)
    return context.get_dummy_value()


def _emit_run(
    lanes: int, context: Lowering, builder: ir.IRBuilder, signature: CallTypes, arguments: Sequence[ir.Value]
) -> ir.Value:
    states, positions, sines, count = arguments
    vector = ir.VectorType(I32, lanes)
    rows = [
        builder.bitcast(builder.gep(states, [I64(WIDE * word)]), vector.as_pointer()) for word in range(_STATE_WORDS)
    ]
    slots = [builder.gep(positions, [I64(lane)]) for lane in range(lanes)]
    initial, bases = [builder.load(row, align=4) for row in rows], [builder.load(slot) for slot in slots]
    size = builder.mul(count, I64(BLOCK_BYTES))
    before, loop, after = builder.block, builder.append_basic_block("blocks"), builder.append_basic_block("done")
    builder.branch(loop)

    builder.position_at_end(loop)
    offset, state = builder.phi(I64), [builder.phi(vector) for _ in rows]
    words = _emit_words(builder, lanes, [builder.add(base, offset) for base in bases])
    advanced = _emit_rounds(builder, state, words, sines)
    following = builder.add(offset, I64(BLOCK_BYTES))
    for value, first, later in zip([offset, *state], [I64(0), *initial], [following, *advanced], strict=True):
        value.add_incoming(first, before)
        value.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", following, size), loop, after)

    builder.position_at_end(after)
    for row, value in zip(rows, advanced, strict=True):
        builder.store(value, row, align=4)
    for slot, base in zip(slots, bases, strict=True):
        builder.store(builder.add(base, size), slot)
    return context.get_dummy_value()


def _emit_words(builder: ir.IRBuilder, lanes: int, addresses: Sequence[ir.Value]) -> list[ir.Value]:
    """The 16 words of the blocks at these addresses, each a vector over the lanes."""
    words: list[ir.Value] = []
    for start in range(0, BLOCK_BYTES, 4 * lanes):
        parts = [builder.add(address, I64(start)) for address in addresses]
        words += transposed(builder, [load(builder, part, I32, lanes, align=1) for part in parts])
    return words


def _emit_rounds(
    builder: ir.IRBuilder, state: Sequence[ir.Value], words: Sequence[ir.Value], sines: ir.Value
) -> list[ir.Value]:
    """The 64 steps of a block.

    The sines are loaded, although they are constants: LLVM adds constants last, where the next step waits for them.
    """
    lanes = state[0].type.count
    a, b, c, d = state
    for step in range(64):
        function, turn = divmod(step, _WORDS)
        factor, offset = _WORD_ORDER[function]
        sine = spread(builder, builder.load(builder.gep(sines, [I64(step)])), lanes)
        early = builder.add(builder.add(a, sine), words[(factor * step + offset) % _WORDS])
        total = builder.add(early, _emit_function(builder, function, b, c, d))
        shift = _SHIFTS[function][turn % 4]
        left, right = splat(I32, lanes, shift), splat(I32, lanes, 32 - shift)
        rotated = builder.or_(builder.shl(total, left), builder.lshr(total, right))
        a, b, c, d = d, builder.add(b, rotated), b, c
    return [builder.add(old, new) for old, new in zip(state, (a, b, c, d), strict=True)]


def _emit_function(builder: ir.IRBuilder, number: int, b: ir.Value, c: ir.Value, d: ir.Value) -> ir.Value:
    """F, G, H and I of the RFC, in the forms with fewest instructions."""
    if number == 0:
        return builder.xor(d, builder.and_(b, builder.xor(c, d)))
    if number == 1:
        return builder.xor(c, builder.and_(d, builder.xor(b, c)))
    if number == 2:
        return builder.xor(b, builder.xor(c, d))
    return builder.xor(c, builder.or_(b, builder.not_(d)))

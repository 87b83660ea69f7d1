"""How much noise codes bring: of a weight, by channel; of an activation, with the share that its range clips."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from msdump.tensors.arrays import Array

# Values that are so many times as large as the largest ones of the other channels take the codes from all of them.
_OUTLIER = 4.0
_SAMPLE = 1 << 20
# Codes of as many bits have so many dB at best, and so many less where nothing else tells what is poor.
_DB_PER_BIT, _POOR_DB = 6.02, 20.0
_USUAL_BITS = 8
# An output channel is lost whose weight is poor, and less than three bits are left of it and of its result, ...
_LOST = 0.125
# ... the result so many times as far as what the operator reads, ...
_CAME_IN = 3.0
# ... and which is not so many times smaller than the others: then it counts for little.
_WEAK = 5.0
# Rounding moves a number by half a step at most; float32 has a little to add.
_HALF_STEP = 0.51


@dataclass(frozen=True, slots=True)
class WeightNoise:
    """Noise of a weight in codes against the weight in floats.

    sqnr_db   signal to quantisation noise; Inf for equal weights
    bits      of a code; None where it is not known
    channel   of the largest value, where that is many times as large as those of the other channels; else None
    factor    how many times
    outliers  how many values of that channel are at least half as large as its largest one
    """

    sqnr_db: float
    bits: int | None
    channel: int | None = None
    factor: float = 1.0
    outliers: int = 0


@dataclass(frozen=True, slots=True)
class LostChannel:
    """The output channel that the codes of a weight spoil most.

    error       relative error of its result
    weight_db   signal to noise of its weight
    count       how many channels are lost, and channels: of how many
    """

    channel: int
    error: float
    weight_db: float
    count: int
    channels: int


@dataclass(frozen=True, slots=True)
class ActivationNoise:
    """Noise of an activation in codes against the numbers that were rounded.

    clipped   share of the values that lie outside of the range of the codes
    limit     end of the range that clips most of them, and reach: the value furthest outside of it; 0 without any
    used      how many of the codes lie between the smallest and the largest one that occurs; None where it is not known
    """

    sqnr_db: float
    bits: int | None
    clipped: float = 0.0
    limit: float = 0.0
    reach: float = 0.0
    used: int | None = None


def relative_error(mine: Array, golden: Array) -> float:
    """|mine - golden| / |golden| as Euclidean norms, of what is finite; Inf where sizes differ or only golden is 0."""
    x, y = _flat(mine), _flat(golden)
    if x.size != y.size:
        return math.inf
    both = np.isfinite(x) & np.isfinite(y)
    distance, size = float(np.linalg.norm((x - y)[both])), float(np.linalg.norm(y[both]))
    if distance == 0:
        return 0.0
    return distance / size if size else math.inf


def sqnr_db(signal: Array, numbers: Array) -> float:
    """20 log10(|signal| / |signal - numbers|); Inf for equal ones, -Inf for noise without a signal."""
    error = relative_error(numbers, signal)
    return math.inf if error == 0 else -math.inf if math.isinf(error) else -20 * math.log10(error)


def poor_db(bits: int | None) -> float:
    """Signal to noise below which codes of as many bits are poor, where there are no others."""
    return _DB_PER_BIT * (bits or _USUAL_BITS) - _POOR_DB


def weight_noise(golden: Array, mine: Array, bits: int | None, channel_axis: int) -> WeightNoise:
    """Noise of a weight of the same shape as the one in floats."""
    if golden.size == 0 or golden.shape != mine.shape:
        return WeightNoise(sqnr_db(golden, mine), bits)
    axis = channel_axis % golden.ndim if golden.ndim else 0
    signal, numbers = _by_channel(golden, axis), _by_channel(mine, axis)
    peaks = np.abs(signal).max(axis=1)
    noise = sqnr_db(signal, numbers)
    if peaks.size < 2:
        return WeightNoise(noise, bits)
    channel = int(peaks.argmax())
    usual = float(np.median(np.delete(peaks, channel)))
    factor = float(peaks[channel]) / usual if usual else math.inf
    if not factor >= _OUTLIER or not math.isfinite(factor):
        return WeightNoise(noise, bits)
    outliers = int(np.count_nonzero(np.abs(signal[channel]) >= peaks[channel] / 2))
    return WeightNoise(noise, bits, channel, factor, outliers)


def lost_channel(
    weights: tuple[Array, Array],
    results: tuple[Array, Array],
    bits: int | None,
    channel_axis: int,
    came_in: float,
) -> LostChannel | None:
    """The channel that the codes of a weight spoil most; None where they spoil none.

    weights, results   in floats, and as codes have it; channel_axis: of the weights
    came_in            relative error of what the operator reads
    """
    signal, numbers = (_by_channel(one, channel_axis % one.ndim) for one in weights)
    golden, made = (_result_by_channel(one, len(signal)) for one in results)
    if golden.shape != made.shape or signal.shape != numbers.shape or len(golden) != len(signal):
        return None
    least = max(_LOST, 10 ** (-poor_db(bits) / 20))
    with np.errstate(all="ignore"):
        errors, sizes = _row_errors(made, golden), np.linalg.norm(golden, axis=1)
        is_lost = (_row_errors(numbers, signal) > least) & (errors > max(_LOST, _CAME_IN * came_in))
    is_lost &= np.isfinite(errors) & (sizes * _WEAK >= np.median(sizes))
    if not is_lost.any():
        return None
    worst = int(np.where(is_lost, errors, -1.0).argmax())
    db = sqnr_db(signal[worst], numbers[worst])
    return LostChannel(worst, float(errors[worst]), db, int(is_lost.sum()), len(signal))


def activation_noise(
    before: Array,
    after: Array,
    codes: Array | None,
    levels: tuple[int, int] | None,
    cut: tuple[float, float],
    *,
    is_same_run: bool = True,
    has_row_scales: bool = False,
) -> ActivationNoise:
    """Noise of an activation that was rounded.

    codes, levels   the codes, and the smallest and largest that there could be; None where they are not known
    cut             values outside of it were meant to be cut off: a folded activation does so
    is_same_run     `before` is what was rounded; False: those of the model in floats, which differ by what came before,
                    and noise is what the step of the codes and their range make
    has_row_scales  each row along the last axis has a scale of its own
    """
    bits = None if levels is None else (levels[1] - levels[0]).bit_length()
    x, y = np.clip(_flat(before), *cut), _flat(after)
    if x.size != y.size or x.size == 0:
        return ActivationNoise(math.nan, bits)
    if codes is not None and levels is not None:
        flat = _flat(codes)
        top, bottom = flat >= levels[1], flat <= levels[0]
    else:
        top, bottom = y >= y.max(), y <= y.min()
    step = _row_steps(after, codes) if has_row_scales and codes is not None else np.asarray(_step(y))
    outside = np.where(top, x - y, np.where(bottom, y - x, 0.0))
    clipped = (outside > _HALF_STEP * step) & (step > 0)
    expected = np.sqrt(step**2 / 12 + np.where(clipped, np.square(outside), 0.0))
    noise = sqnr_db(x, y) if is_same_run else sqnr_db(x, x + expected)
    used = None if codes is None else int(np.ptp(_flat(codes))) + 1
    if not clipped.any():
        return ActivationNoise(noise, bits, used=used)
    furthest = int(outside.argmax())
    return ActivationNoise(noise, bits, float(clipped.mean()), float(y[furthest]), float(x[furthest]), used)


def folded_cut(reference: Array, is_folded: bool) -> tuple[float, float]:
    """The values between which a folded activation leaves numbers as they are, as those that it made tell: several of
    them at an end are what was cut off."""
    flat = _flat(reference)
    if not is_folded or flat.size == 0:
        return -math.inf, math.inf
    low, high = float(flat.min()), float(flat.max())
    return (
        low if np.count_nonzero(flat == low) > 1 else -math.inf,
        high if np.count_nonzero(flat == high) > 1 else math.inf,
    )


def _flat(array: Array) -> Array:
    return np.asarray(array, np.float64).reshape(-1)


def _by_channel(array: Array, axis: int) -> Array:
    """float64 [channels, elements of a channel]"""
    moved = np.moveaxis(np.asarray(array, np.float64), axis, 0) if array.ndim else np.asarray(array, np.float64)
    return moved.reshape(moved.shape[0] if moved.ndim else 1, -1)


def _result_by_channel(array: Array, channels: int) -> Array:
    """float64 [channels, elements of a channel] of what a product or a convolution makes."""
    axis = 1 if array.ndim > 2 and array.shape[1] == channels else array.ndim - 1
    return _by_channel(array, axis)


def _row_errors(mine: Array, golden: Array) -> Array:
    """Relative error of each channel."""
    return np.asarray(np.linalg.norm(mine - golden, axis=1) / np.linalg.norm(golden, axis=1))


def _row_steps(numbers: Array, codes: Array) -> Array:
    """float64 [elements]: the distance of two numbers on the grid of each row."""
    rows, own = (np.asarray(one, np.float64).reshape(-1, one.shape[-1]) for one in (numbers, codes))
    return np.repeat(np.ptp(rows, axis=1) / np.maximum(np.ptp(own, axis=1), 1), rows.shape[1])


def _step(numbers: Array) -> float:
    """The smallest distance of two numbers on a grid; 0 where there are less than two."""
    # A part of many numbers has each gap as well.
    some = numbers[:: max(1, numbers.size // _SAMPLE)]
    gaps = np.diff(np.unique(some[np.isfinite(some)]))
    if gaps.size == 0:
        return 0.0
    # Products of codes and a scale are rounded to float32: gaps that are nothing but that do not count.
    gaps = gaps[gaps > np.nanmax(np.abs(some)) * 2.0**-20]
    return float(gaps.min()) if gaps.size else 0.0

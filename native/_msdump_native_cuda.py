"""Kernels that measure tensors on CUDA devices: their source, compiled by NVRTC, which comes with PyTorch.

A row of numbers follows from a tensor and nothing else: how the elements are shared out follows from their number, and
partial results are added in a fixed order.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os

import torch

# One block takes up to PIECE elements. A larger tensor has more of them; the one that ends last adds up their rows.
SOURCE = r"""
typedef long long int64;
typedef unsigned long long uint64;
typedef unsigned int uint32;

#define THREADS 256
#define WARPS (THREADS / 32)
#define MAX_AXES 16

struct Row {
  double top, low, sum, squares;             // of finite values
  double scaled_sum, large_squares, small_squares;  // of float64: by 2^-64, and by 2^-600 and 2^600 before the square
  int64 integer_top, integer_low;
  int64 negative, zero, nan, negative_inf, positive_inf;
};

// Elements that do not lie one behind the other: sizes and strides in bytes, innermost first.
struct Axes {
  int count;
  int64 sizes[MAX_AXES], strides[MAX_AXES];
};

__device__ void clear(Row& row) {
  row.top = -__longlong_as_double(0x7FF0000000000000ll), row.low = -row.top;
  row.sum = row.squares = row.scaled_sum = row.large_squares = row.small_squares = 0.0;
  row.integer_top = (int64)1 << 63, row.integer_low = ~row.integer_top;
  row.negative = row.zero = row.nan = row.negative_inf = row.positive_inf = 0;
}

__device__ void merge(Row& row, const Row& other) {
  row.top = fmax(row.top, other.top), row.low = fmin(row.low, other.low);
  row.sum += other.sum, row.squares += other.squares, row.scaled_sum += other.scaled_sum;
  row.large_squares += other.large_squares, row.small_squares += other.small_squares;
  row.integer_top = other.integer_top > row.integer_top ? other.integer_top : row.integer_top;
  row.integer_low = other.integer_low < row.integer_low ? other.integer_low : row.integer_low;
  row.negative += other.negative, row.zero += other.zero, row.nan += other.nan;
  row.negative_inf += other.negative_inf, row.positive_inf += other.positive_inf;
}

__device__ Row from_lane(const Row& row, int distance) {
  Row other;
  const int* from = reinterpret_cast<const int*>(&row);
  int* to = reinterpret_cast<int*>(&other);
#pragma unroll 1
  for (int word = 0; word < (int)(sizeof(Row) / 4); ++word) {
    to[word] = __shfl_down_sync(0xFFFFFFFFu, from[word], distance);
  }
  return other;
}

// Of all threads of the block, in the first one.
__device__ __noinline__ void merge_block(Row& row) {
  __shared__ Row rows[WARPS];
#pragma unroll 1
  for (int distance = 16; distance; distance >>= 1) {
    const Row other = from_lane(row, distance);
    if ((threadIdx.x & 31) + distance < 32) merge(row, other);
  }
  if ((threadIdx.x & 31) == 0) rows[threadIdx.x >> 5] = row;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < WARPS; ++warp) merge(row, rows[warp]);
  }
}

// -- dtypes ---------------------------------------------------------------------------------------------------------

struct Float64 {
  typedef uint64 Bits;
  static const bool is_float = true, is_double = true;
  static __device__ double value(Bits bits) { return __longlong_as_double((int64)bits); }
};
struct Float32 {
  typedef uint32 Bits;
  static const bool is_float = true, is_double = false;
  static __device__ float value(Bits bits) { return __uint_as_float(bits); }
};
struct Float16 {
  typedef unsigned short Bits;
  static const bool is_float = true, is_double = false;
  static __device__ float value(Bits bits) {
    float result;
    asm("{cvt.f32.f16 %0, %1;}" : "=f"(result) : "h"(bits));
    return result;
  }
};
struct BFloat16 {
  typedef unsigned short Bits;
  static const bool is_float = true, is_double = false;
  static __device__ float value(Bits bits) { return __uint_as_float((uint32)bits << 16); }
};
// Floats of a byte: with Inf, or without, where the largest code of either sign is NaN.
template <int mantissa, int bias, bool has_inf>
struct Float8 {
  typedef unsigned char Bits;
  static const bool is_float = true, is_double = false;
  static __device__ float value(Bits bits) {
    const uint32 magnitude = bits & 0x7F, fraction = magnitude & ((1 << mantissa) - 1);
    const int exponent = magnitude >> mantissa, largest = (1 << (7 - mantissa)) - 1;
    const float nan = __uint_as_float(0x7FC00000u);
    if (!has_inf && magnitude == 0x7F) return nan;
    float result;
    if (has_inf && exponent == largest) result = fraction ? nan : __uint_as_float(0x7F800000u);
    else if (exponent) result = ldexpf((float)((1 << mantissa) + fraction), exponent - bias - mantissa);
    else result = ldexpf((float)fraction, 1 - bias - mantissa);
    return bits & 0x80 ? -result : result;
  }
};
struct Exponent8 {
  typedef unsigned char Bits;
  static const bool is_float = true, is_double = false;
  static __device__ float value(Bits bits) {
    return bits == 0xFF ? __uint_as_float(0x7FC00000u) : ldexpf(1.0f, (int)bits - 127);
  }
};
template <class T>
struct Integer {
  typedef T Bits;
  static const bool is_float = false, is_double = false;
  static __device__ int64 value(Bits bits) { return bits; }
};
struct Bool {
  typedef unsigned char Bits;
  static const bool is_float = false, is_double = false;
  static __device__ int64 value(Bits bits) { return bits != 0; }
};

// -- what a thread finds --------------------------------------------------------------------------------------------

template <class Form, bool is_float>
struct Found;

template <class Form>
struct Found<Form, true> {
  Row row;
  float top, low;
  int negative, zero;  // fewer than 2^31 in a thread: more elements have more blocks
  __device__ Found() : negative(0), zero(0) {
    clear(row);
    low = __uint_as_float(0x7F800000u), top = -low;
  }
  __device__ void add(typename Form::Bits bits) {
    const auto value = Form::value(bits);
    if (!(fabs((double)value) <= 1.7976931348623157e308)) {
      row.nan += value != value, row.positive_inf += value > 0, row.negative_inf += value < 0;
      return;
    }
    negative += value < 0, zero += value == 0;
    const double wide = value;
    row.sum += wide;
    if (Form::is_double) {
      row.top = fmax(row.top, wide), row.low = fmin(row.low, wide);
      row.scaled_sum += wide * 0x1p-64;
      const double size = fabs(wide);
      if (size > 0x1p500) row.large_squares += (wide * 0x1p-600) * (wide * 0x1p-600);
      else if (size < 0x1p-500) row.small_squares += (wide * 0x1p600) * (wide * 0x1p600);
      else row.squares += wide * wide;
    } else {
      top = fmaxf(top, (float)value), low = fminf(low, (float)value);
      row.squares += wide * wide;
    }
  }
  __device__ void finish() {
    row.negative = negative, row.zero = zero;
    if (!Form::is_double) row.top = top, row.low = low;
  }
};

template <class Form>
struct Found<Form, false> {
  Row row;
  __device__ Found() { clear(row); }
  __device__ void add(typename Form::Bits bits) {
    const int64 value = Form::value(bits);
    row.integer_top = value > row.integer_top ? value : row.integer_top;
    row.integer_low = value < row.integer_low ? value : row.integer_low;
    row.negative += value < 0, row.zero += value == 0;
    const double wide = (double)value;
    row.sum += wide, row.squares += wide * wide;
  }
  __device__ void finish() {}
};

// Of all threads of all blocks, into `result`: by the block that ends last, from the rows of all in their order.
__device__ __noinline__ void finish_block(Row& row, Row* partial, uint32* ended, Row* result) {
  merge_block(row);
  if (gridDim.x == 1) {
    if (threadIdx.x == 0) *result = row;
    return;
  }
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = row;
    __threadfence();
    is_last = atomicAdd(ended, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  clear(row);
  for (int block = threadIdx.x; block < gridDim.x; block += THREADS) merge(row, partial[block]);
  __syncthreads();
  merge_block(row);
  if (threadIdx.x == 0) {
    *result = row;
    *ended = 0;
  }
}

// -- the pass -------------------------------------------------------------------------------------------------------

template <class Form>
__device__ void measure(const char* data, int64 count, const Axes& axes, Row* partial, uint32* ended, Row* result) {
  typedef typename Form::Bits Bits;
  const int64 first = (int64)blockIdx.x * THREADS + threadIdx.x, step = (int64)gridDim.x * THREADS;
  Found<Form, Form::is_float> found;
  if (axes.count == 0) {
    // Sixteen bytes at a time, from the first of such an address on.
    const int lanes = 16 / sizeof(Bits);
    const Bits* values = reinterpret_cast<const Bits*>(data);
    int64 head = (16 - (uint64)data % 16) % 16 / sizeof(Bits);
    head = head < count ? head : count;
    const int64 wholes = (count - head) / lanes;
    const uint4* vectors = reinterpret_cast<const uint4*>(values + head);
    for (int64 index = first; index < wholes; index += step) {
      const uint4 vector = vectors[index];
      const Bits* own = reinterpret_cast<const Bits*>(&vector);
#pragma unroll 4
      for (int lane = 0; lane < lanes; ++lane) found.add(own[lane]);
    }
    const int64 rest = count - wholes * lanes;
    for (int64 index = first; index < rest; index += step) {
      found.add(values[index < head ? index : index + wholes * lanes]);
    }
  } else {
    for (int64 index = first; index < count; index += step) {
      int64 left = index, offset = 0;
#pragma unroll 1
      for (int axis = 0; axis < axes.count; ++axis) {
        const int64 size = axes.sizes[axis];
        const int64 next = (uint64)left >> 32 || (uint64)size >> 32 ? left / size : (uint32)left / (uint32)size;
        offset += (left - next * size) * axes.strides[axis];
        left = next;
      }
      found.add(*reinterpret_cast<const Bits*>(data + offset));
    }
  }
  found.finish();
  Row row = found.row;  // what the loops above add to stays in registers
  finish_block(row, partial, ended, result);
}

#define KERNEL(NAME, FORM)                                                                                         \
  extern "C" __global__ void __launch_bounds__(THREADS) NAME(                                                      \
      const char* data, int64 count, const Axes axes, Row* partial, uint32* ended, Row* result) {                  \
    measure<FORM>(data, count, axes, partial, ended, result);                                                      \
  }

KERNEL(measure_7, Float64)
KERNEL(measure_6, Float32)
KERNEL(measure_5, Float16)
KERNEL(measure_15, BFloat16)
KERNEL(measure_1, Integer<signed char>)
KERNEL(measure_2, Integer<short>)
KERNEL(measure_3, Integer<int>)
KERNEL(measure_4, Integer<int64>)
KERNEL(measure_0, Integer<unsigned char>)
KERNEL(measure_27, Integer<unsigned short>)
KERNEL(measure_28, Integer<uint32>)
KERNEL(measure_11, Bool)
#define COMMA ,
KERNEL(measure_23, Float8<2 COMMA 15 COMMA true>)
KERNEL(measure_24, Float8<3 COMMA 7 COMMA false>)
KERNEL(measure_44, Exponent8)
"""


def compiled(capability: tuple[int, int], nvrtc: ctypes.CDLL) -> bytes:
    """Code for devices of a capability.   Raises: RuntimeError with what NVRTC says."""
    program = ctypes.c_void_p()

    def call(name: str, *arguments: object) -> None:
        code = getattr(nvrtc, name)(*arguments)
        if code:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {nvrtc.nvrtcGetErrorString(code).decode()} {log()}".rstrip())

    def log() -> str:
        size = ctypes.c_size_t()
        if not program or nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)):
            return ""
        text = ctypes.create_string_buffer(size.value + 1)
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.value.decode(errors="replace")

    call("nvrtcCreateProgram", ctypes.byref(program), SOURCE.encode(), b"msdump.cu", 0, None, None)
    try:
        options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}".encode(), b"--fmad=false", b"--std=c++17"]
        call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        call("nvrtcGetCUBINSize", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call("nvrtcGetCUBIN", program, code)
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def nvrtc() -> ctypes.CDLL:
    """Raises: OSError where there is none."""
    major = str(torch.version.cuda).split(".")[0]
    name = f"libnvrtc.so.{major}"
    near = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib")
    folders = [
        near,
        *(os.path.join(os.environ[each], "lib64") for each in ("CUDA_HOME", "CUDA_PATH") if each in os.environ),
    ]
    for path in (name, *(found for folder in folders for found in sorted(glob.glob(os.path.join(folder, name))))):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise OSError(
        f"expected {name}, which comes with PyTorch or CUDA, found none. Put its folder into LD_LIBRARY_PATH."
    )

// Passes over elements that lie one behind the other: extremes and counts, and sums in float64 in a fixed order.
//
// Vectors of 64 bytes are written as such, in the form that GCC and Clang have for all processors; they are split where
// registers are shorter. All of it is inlined into functions that are compiled once for each set of instructions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#define MSDUMP_INLINE inline __attribute__((always_inline))

namespace msdump {

constexpr int64_t kChunk = 1 << 16;  // elements of a row of partial results
constexpr int64_t kBlock = 8192;     // elements that are looked at together
constexpr int64_t kStep = 32;        // elements that the sums take at a time

// Partial results of elements. `top` and `low` are keys: of floats, signed integers that sort as the floats do.
struct Row {
  int64_t top = std::numeric_limits<int64_t>::min();
  int64_t low = std::numeric_limits<int64_t>::max();
  double sum = 0.0;
  double squares = 0.0;
  int64_t negative = 0;
  int64_t zero = 0;
  int64_t nan = 0;
  int64_t negative_inf = 0;
  int64_t positive_inf = 0;
};

// The dtypes. `Key` is what the bits are compared as; `infinity` the key of +Inf of a float.
struct Float64 {
  using Key = int64_t;
  static constexpr bool is_float = true;
  static constexpr int64_t infinity = int64_t{0x7FF} << 52;
  static constexpr double scale = 1.0;
};
struct Float32 {
  using Key = int32_t;
  static constexpr bool is_float = true;
  static constexpr int64_t infinity = 0x7F800000;
  static constexpr double scale = 1.0;
};
struct Float16 {
  using Key = int16_t;
  static constexpr bool is_float = true;
  static constexpr int64_t infinity = 0x7C00;
  static constexpr double scale = 0x1p112;  // its exponent is that of float32 but for this
};
struct BFloat16 {
  using Key = int16_t;
  static constexpr bool is_float = true;
  static constexpr int64_t infinity = 0x7F80;
  static constexpr double scale = 1.0;
};
template <class T>
struct Integer {
  using Key = T;
  static constexpr bool is_float = false;
  static constexpr int64_t infinity = 0;
  static constexpr double scale = 1.0;
};

template <class T, int kLanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * kLanes)));
};
template <class T, int kLanes>
using Vector = typename VectorOf<T, kLanes>::type;

template <class V>
MSDUMP_INLINE V load(const void* address) {
  V vector;
  std::memcpy(&vector, address, sizeof(V));
  return vector;
}

// -- extremes and counts ----------------------------------------------------------------------------------------------

// Of a float's bits, read as integers: the largest if one is without sign; the smallest if one has a sign; and where all
// or none have one, that next to zero. That is less work than a key for each element.
template <class Key>
struct Ends {
  using Unsigned = typename std::make_unsigned<Key>::type;
  Key largest = std::numeric_limits<Key>::min();
  Unsigned largest_unsigned = 0, smallest_unsigned = std::numeric_limits<Unsigned>::max();

  MSDUMP_INLINE void take(Key bits) {
    largest = bits > largest ? bits : largest;
    largest_unsigned = Unsigned(bits) > largest_unsigned ? Unsigned(bits) : largest_unsigned;
    smallest_unsigned = Unsigned(bits) < smallest_unsigned ? Unsigned(bits) : smallest_unsigned;
  }
  static int64_t key_of(Key bits) { return bits >= 0 ? bits : Key(bits ^ std::numeric_limits<Key>::max()); }
  int64_t top() const { return key_of(largest >= 0 ? largest : Key(smallest_unsigned)); }
  int64_t low() const { return key_of(Key(largest_unsigned) < 0 ? Key(largest_unsigned) : Key(smallest_unsigned)); }
};

// Takes nothing: `look` alone.
template <class Form>
struct NoSums {
  static constexpr int64_t step = 64 / sizeof(typename Form::Key);
  MSDUMP_INLINE void take(const typename Form::Key*) {}
};

// Of `count` elements, into `row`. Returns false, with `row` as it was, where a float is not finite. `sums` takes `step`
// elements at a time, a whole number of vectors, as long as there are as many.
template <class Form, class Taker>
MSDUMP_INLINE bool look(const typename Form::Key* values, int64_t count, Row& row, Taker& sums) {
  using Key = typename Form::Key;
  using Unsigned = typename std::make_unsigned<Key>::type;
  constexpr int64_t kLanes = 64 / sizeof(Key);
  using V = Vector<Key, kLanes>;
  using U = Vector<Unsigned, kLanes>;
  constexpr Key kLargest = std::numeric_limits<Key>::max(), kSmallest = std::numeric_limits<Key>::min();
  constexpr Unsigned kSign = Unsigned(1) << (8 * sizeof(Key) - 1);
  Ends<Key> ends;  // of floats
  Key top = kSmallest, low = kLargest;
  int64_t negative = 0, zero = 0, index = 0;
  if (count >= Taker::step) {
    V tops = V{} + kSmallest, lows = V{} + kLargest;
    U tops_unsigned = U{}, lows_unsigned = ~U{};
    while (index + Taker::step <= count) {
      // A lane counts its vectors, as many as its kind of number can.
      V negatives = {}, zeros = {};
      int64_t stop = index + (sizeof(Key) == 1 ? 127 : 32767) * kLanes;
      stop = stop < count ? stop : count;
      for (; index + Taker::step <= stop; index += Taker::step) {
        for (int64_t part = 0; part < Taker::step; part += kLanes) {
          const V bits = load<V>(values + index + part);
          tops = bits > tops ? bits : tops;
          if constexpr (Form::is_float) {
            const U own = (U)bits;
            tops_unsigned = own > tops_unsigned ? own : tops_unsigned;
            lows_unsigned = own < lows_unsigned ? own : lows_unsigned;
            negatives -= V(own > kSign);  // above that of -0.0
            zeros -= V((bits & kLargest) == Key(0));
          } else {
            lows = bits < lows ? bits : lows;
            if constexpr (std::is_signed<Key>::value) negatives -= V(bits < Key(0));
            zeros -= V(bits == Key(0));
          }
        }
        sums.take(values + index);
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        negative += negatives[lane];
        zero += zeros[lane];
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      if constexpr (Form::is_float) {
        ends.take(tops[lane]);
        ends.take(Key(tops_unsigned[lane]));
        ends.take(Key(lows_unsigned[lane]));
      } else {
        top = tops[lane] > top ? tops[lane] : top;
        low = lows[lane] < low ? lows[lane] : low;
      }
    }
  }
  for (; index < count; ++index) {
    const Key bits = values[index];
    if constexpr (Form::is_float) {
      ends.take(bits);
      negative += Unsigned(bits) > kSign;
      zero += Key(bits & kLargest) == 0;
    } else {
      top = bits > top ? bits : top;
      low = bits < low ? bits : low;
      negative += bits < 0;
      zero += bits == 0;
    }
  }
  if (!count) return true;
  const int64_t highest = Form::is_float ? ends.top() : int64_t(top);
  const int64_t lowest = Form::is_float ? ends.low() : int64_t(low);
  if (Form::is_float && (highest >= Form::infinity || lowest <= ~Form::infinity)) return false;
  row.top = highest > row.top ? highest : row.top;
  row.low = lowest < row.low ? lowest : row.low;
  row.negative += negative;
  row.zero += zero;
  return true;
}

// As `look`, where some may not be finite. Those that are go to `finite`. Returns their number.
template <class Form>
MSDUMP_INLINE int64_t look_at_each(
    const typename Form::Key* values, int64_t count, Row& row, typename Form::Key* finite) {
  using Key = typename Form::Key;
  constexpr Key kLargest = std::numeric_limits<Key>::max();
  int64_t kept = 0;
  for (int64_t index = 0; index < count; ++index) {
    const Key bits = values[index];
    const int64_t magnitude = bits & kLargest;
    const bool is_negative = bits < 0;
    if (magnitude < Form::infinity) {
      const int64_t key = is_negative ? ~magnitude : magnitude;
      row.top = key > row.top ? key : row.top;
      row.low = key < row.low ? key : row.low;
      row.negative += key < -1;
      row.zero += magnitude == 0;
      finite[kept++] = bits;
    } else if (magnitude > Form::infinity) {
      ++row.nan;
    } else if (is_negative) {
      ++row.negative_inf;
    } else {
      ++row.positive_inf;
    }
  }
  return kept;
}

// -- elements in float64, without `Form::scale` -------------------------------------------------------------------------

constexpr int kQuad = 4;
using Doubles = Vector<double, kQuad>;
using Singles = Vector<float, kQuad>;
using Words = Vector<uint32_t, kQuad>;

template <class Form>
MSDUMP_INLINE double wide(typename Form::Key bits) {
  if constexpr (std::is_same<Form, Float64>::value) {
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
  } else if constexpr (Form::is_float) {
    uint32_t word;
    if constexpr (std::is_same<Form, Float32>::value) word = uint32_t(bits);
    else if constexpr (std::is_same<Form, BFloat16>::value) word = uint32_t(uint16_t(bits)) << 16;
    else word = (uint32_t(bits & 0x7FFF) << 13) | (uint32_t(uint16_t(bits) & 0x8000) << 16);
    float value;
    std::memcpy(&value, &word, 4);
    return double(value);
  } else {
    return double(bits);
  }
}

// GCC makes of `__builtin_convertvector` two conversions of halves, which it puts together.
template <bool has_avx>
MSDUMP_INLINE Doubles doubles_of(Singles values) {
#if defined(__x86_64__)
  if constexpr (has_avx) {
    Doubles result;
    asm("vcvtps2pd %1, %0" : "=x"(result) : "x"(values));
    return result;
  }
#endif
  return __builtin_convertvector(values, Doubles);
}

template <class Form, bool has_avx>
MSDUMP_INLINE Doubles wide4(const typename Form::Key* values) {
  if constexpr (std::is_same<Form, Float64>::value) {
    return load<Doubles>(values);
  } else if constexpr (std::is_same<Form, Float32>::value) {
    return doubles_of<has_avx>(load<Singles>(values));
  } else if constexpr (Form::is_float) {
    // The sign is in all bits above the 16; of those that are not shifted out, the first stays.
    Words word = (Words)__builtin_convertvector(load<Vector<int16_t, kQuad>>(values), Vector<int32_t, kQuad>);
    if constexpr (std::is_same<Form, BFloat16>::value) word = word << 16;
    else word = (word << 13) & 0x8FFFE000u;
    return doubles_of<has_avx>((Singles)word);
  } else if constexpr (sizeof(typename Form::Key) < 4) {
    // By 32 bits: there is no instruction from bytes to float64.
    return __builtin_convertvector(
        __builtin_convertvector(load<Vector<typename Form::Key, kQuad>>(values), Vector<int32_t, kQuad>), Doubles);
  } else {
    return __builtin_convertvector(load<Vector<typename Form::Key, kQuad>>(values), Doubles);
  }
}

// -- sums, as numpy adds up -----------------------------------------------------------------------------------------------

struct Sums {
  double sum, squares;
};

MSDUMP_INLINE double in_pairs(Doubles v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Halves of halves, down to 128 elements, in which eight lanes add up. No product is fused with a sum.
// Source: numpy, `pairwise_sum` of loops_utils.h.src.
template <class Form, bool has_avx>
MSDUMP_INLINE Sums pairwise_leaf(const typename Form::Key* values, int64_t count) {
  if (count < 8) {
    Sums result{-0.0, -0.0};
    for (int64_t index = 0; index < count; ++index) {
      const double value = wide<Form>(values[index]);
      result.sum += value;
      result.squares += value * value;
    }
    return result;
  }
  Doubles sums[2], squares[2];
  for (int part = 0; part < 2; ++part) {
    sums[part] = wide4<Form, has_avx>(values + kQuad * part);
    squares[part] = sums[part] * sums[part];
  }
  int64_t index = 8;
  for (; index + 8 <= count; index += 8) {
    for (int part = 0; part < 2; ++part) {
      const Doubles value = wide4<Form, has_avx>(values + index + kQuad * part);
      sums[part] += value;
      squares[part] += value * value;
    }
  }
  Sums result{in_pairs(sums[0]) + in_pairs(sums[1]), in_pairs(squares[0]) + in_pairs(squares[1])};
  for (; index < count; ++index) {
    const double value = wide<Form>(values[index]);
    result.sum += value;
    result.squares += value * value;
  }
  return result;
}

// Sums of bytes and of their squares are exact: their order is no matter.
template <class Byte>
MSDUMP_INLINE Sums of_bytes(const Byte* values, int64_t count) {
  int64_t sum = 0, squares = 0;
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t stop = start + kBlock < count ? start + kBlock : count;
    int32_t part = 0, part_squares = 0;
    for (int64_t index = start; index < stop; ++index) {
      part += values[index];
      part_squares += int32_t(values[index]) * values[index];
    }
    sum += part, squares += part_squares;
  }
  return {double(sum), double(squares)};
}

// `pairwise_leaf` of halves, without recursion, which would keep it from being inlined: a stack of what is still to come.
template <class Form, bool has_avx>
MSDUMP_INLINE Sums pairwise(const typename Form::Key* values, int64_t count) {
  if constexpr (sizeof(typename Form::Key) == 1) return of_bytes(values, count);
  if (count <= 128) return pairwise_leaf<Form, has_avx>(values, count);
  struct Part {
    int64_t count;   // elements; 0: both halves lie on the stack of results
  };
  Part parts[64];
  Sums results[64];
  int part = 0, result = 0;
  parts[part++] = {count};
  while (part) {
    const int64_t size = parts[--part].count;
    if (!size) {
      --result;
      results[result - 1].sum += results[result].sum;
      results[result - 1].squares += results[result].squares;
    } else if (size <= 128) {
      results[result++] = pairwise_leaf<Form, has_avx>(values, size);
      values += size;
    } else {
      int64_t half = size / 2;
      half -= half % 8;
      parts[part++] = {0};
      parts[part++] = {size - half};
      parts[part++] = {half};
    }
  }
  return results[0];
}

// -- sums of large tensors -----------------------------------------------------------------------------

// Of eight lanes, which two vectors hold.
MSDUMP_INLINE double across(Doubles low, Doubles high) {
  const Doubles v = low + high;
  return (v[0] + v[2]) + (v[1] + v[3]);
}

// Of a block: 32 lanes, then what is left one by one. The same on all processors: no product is fused with a sum.
template <class Form, bool has_avx>
struct LaneSums {
  static constexpr int64_t step = kStep;
  static constexpr int kParts = kStep / kQuad;
  Doubles sums[kParts] = {}, squares[kParts] = {};

  MSDUMP_INLINE void take(const typename Form::Key* values) {
    Doubles value[kParts];
    for (int part = 0; part < kParts; ++part) value[part] = wide4<Form, has_avx>(values + kQuad * part);
    for (int part = 0; part < kParts; ++part) {
      sums[part] += value[part];
      squares[part] += value[part] * value[part];
    }
  }

  static MSDUMP_INLINE double total_of(const Doubles (&each)[kParts]) {
    return across(((each[0] + each[2]) + each[4]) + each[6], ((each[1] + each[3]) + each[5]) + each[7]);
  }

  // With the elements behind those that were taken.
  MSDUMP_INLINE Sums total(const typename Form::Key* values, int64_t count) {
    Sums result{total_of(sums), total_of(squares)};
    if (count) {
      Sums rest{0.0, 0.0};
      for (int64_t index = 0; index < count; ++index) {
        const double value = wide<Form>(values[index]);
        rest.sum += value;
        rest.squares += value * value;
      }
      result.sum += rest.sum;
      result.squares += rest.squares;
    }
    return result;
  }
};

template <class Form, bool has_avx>
MSDUMP_INLINE Sums in_lanes(const typename Form::Key* values, int64_t count) {
  if constexpr (sizeof(typename Form::Key) == 1) return of_bytes(values, count);
  LaneSums<Form, has_avx> sums;
  int64_t index = 0;
  for (; index + kStep <= count; index += kStep) sums.take(values + index);
  return sums.total(values + index, count - index);
}

// -- what is compiled for each set of instructions --------------------------------------------------------------------------

// Adds elements to `row`. `scratch` has room for as many. In both, what is not finite has no part in the sums.
template <class Form, bool has_avx>
MSDUMP_INLINE void small_row(const void* data, int64_t count, void* scratch, Row& row) {
  using Key = typename Form::Key;
  const Key* values = static_cast<const Key*>(data);
  NoSums<Form> none;
  if (!look<Form>(values, count, row, none)) {
    count = look_at_each<Form>(values, count, row, static_cast<Key*>(scratch));
    values = static_cast<const Key*>(scratch);
  }
  const Sums sums = pairwise<Form, has_avx>(values, count);
  row.sum = 0.0 + sums.sum * Form::scale;
  row.squares = 0.0 + sums.squares * Form::scale * Form::scale;
}

template <class Form, bool has_avx, bool is_wide>
MSDUMP_INLINE void block(const void* data, int64_t count, void* scratch, Row& row) {
  using Key = typename Form::Key;
  const Key* values = static_cast<const Key*>(data);
  Sums sums;
  if constexpr (is_wide && sizeof(Key) > 1) {
    // Where there are registers enough, in one pass.
    LaneSums<Form, has_avx> lanes;
    if (look<Form>(values, count, row, lanes)) {
      const int64_t taken = count / kStep * kStep;
      sums = lanes.total(values + taken, count - taken);
    } else {
      count = look_at_each<Form>(values, count, row, static_cast<Key*>(scratch));
      sums = in_lanes<Form, has_avx>(static_cast<const Key*>(scratch), count);
    }
  } else {
    NoSums<Form> none;
    if (!look<Form>(values, count, row, none)) {
      count = look_at_each<Form>(values, count, row, static_cast<Key*>(scratch));
      values = static_cast<const Key*>(scratch);
    }
    sums = in_lanes<Form, has_avx>(values, count);
  }
  row.sum += sums.sum * Form::scale;
  row.squares += sums.squares * (Form::scale * Form::scale);
}

MSDUMP_INLINE int64_t ones_of(const uint8_t* values, int64_t count) {
  int64_t ones = 0;
  for (int64_t index = 0; index < count; ++index) ones += values[index] != 0;
  return ones;
}

}  // namespace msdump

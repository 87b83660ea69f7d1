#include "statistics.h"

#include "threads.h"

#include <cmath>
#include <limits>

#include "elements.h"
#include "kernels.h"

namespace msdump {
namespace {

constexpr int64_t kSmallBytes = 64 << 10;    // up to here msdump adds up by numpy
constexpr double kLeastSquares = 1e-280;     // a smaller sum of squares of float64 has lost digits
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Room of each thread: for elements that do not lie together, and for those that are finite.
struct Rooms {
  alignas(64) char elements[kSmallBytes];
  alignas(64) char finite[kSmallBytes];
};

Rooms& rooms() {
  static thread_local std::unique_ptr<Rooms> own(new Rooms);
  return *own;
}

Row totals(Elements elements, const Kernels& kernels, int64_t item_size) {
  Rooms& room = rooms();
  Row all;
  const int64_t count = elements.count();
  if (count * item_size <= kSmallBytes) {
    kernels.small(elements.next(count, room.elements), count, room.finite, all);
    return all;
  }
  std::vector<Row> rows((count + kChunk - 1) / kChunk);
  if (elements.whole()) {
    const char* start = static_cast<const char*>(elements.whole());
    each_in_threads(int64_t(rows.size()), [&](int64_t place) {
      const int64_t first = place * kChunk;
      kernels.large(start + first * item_size, std::min(kChunk, count - first), rooms().finite, rows[place]);
    });
  }
  for (int64_t start = 0; start < count; start += kChunk) {
    const int64_t size = std::min(kChunk, count - start);
    Row& row = rows[start / kChunk];
    if (!elements.whole()) {
      for (int64_t first = 0; first < size; first += kBlock) {
        const int64_t part = std::min(kBlock, size - first);
        kernels.block(elements.next(part, room.elements), part, room.finite, row);
      }
    }
    all.top = std::max(all.top, row.top);
    all.low = std::min(all.low, row.low);
    all.sum += row.sum, all.squares += row.squares;
    all.negative += row.negative, all.zero += row.zero, all.nan += row.nan;
    all.negative_inf += row.negative_inf, all.positive_inf += row.positive_inf;
  }
  return all;
}

// The float that sorts as this key; 0 for both zeros.
double value_of(int64_t key, c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double: {
      const int64_t bits = key >= 0 ? key : key ^ std::numeric_limits<int64_t>::max();
      double value;
      std::memcpy(&value, &bits, 8);
      return value + 0.0;
    }
    case c10::ScalarType::Float: {
      const int32_t bits = int32_t(key >= 0 ? key : key ^ 0x7FFFFFFF);
      float value;
      std::memcpy(&value, &bits, 4);
      return double(value) + 0.0;
    }
    default: {
      const uint16_t bits = uint16_t(key >= 0 ? key : key ^ 0x7FFF);
      if (dtype == c10::ScalarType::BFloat16) return double(c10::BFloat16(bits, c10::BFloat16::from_bits())) + 0.0;
      return double(float(c10::Half(bits, c10::Half::from_bits()))) + 0.0;
    }
  }
}

// Sums of float64 values and of their squares after division by the largest, as numpy adds up a whole array.
Sums scaled_sums(Elements& elements, int64_t count, double largest) {
  if (count > 128) {
    int64_t half = count / 2;
    half -= half % 8;
    const Sums first = scaled_sums(elements, half, largest), second = scaled_sums(elements, count - half, largest);
    return {first.sum + second.sum, first.squares + second.squares};
  }
  int64_t room[128];
  double scaled[128];
  std::memcpy(scaled, elements.next(count, room), count * sizeof(double));
  for (int64_t index = 0; index < count; ++index) {
    scaled[index] = (std::isfinite(scaled[index]) ? scaled[index] : 0.0) / largest;
  }
  std::memcpy(room, scaled, count * sizeof(double));
  return pairwise_leaf<Float64, false>(room, count);
}

void finish(Statistics& found, const Row& row, const Elements& elements, c10::ScalarType dtype) {
  const int64_t finite = found.count - row.nan - row.negative_inf - row.positive_inf;
  found.sum = row.sum, found.squares = row.squares;
  found.negative = row.negative, found.zero = row.zero, found.positive = finite - row.negative - row.zero;
  found.nan = row.nan, found.negative_inf = row.negative_inf, found.positive_inf = row.positive_inf;
  double average = kNan, norm = 0.0;
  if (finite) {
    if (c10::isFloatingType(dtype)) found.maximum = value_of(row.top, dtype), found.minimum = value_of(row.low, dtype);
    else found.integer_maximum = row.top, found.integer_minimum = row.low;
    average = row.sum / double(finite) + 0.0;
    norm = std::sqrt(row.squares);
    const double largest = std::max(std::abs(found.maximum), std::abs(found.minimum));
    if (dtype == c10::ScalarType::Double && largest != 0.0 &&
        !(std::isfinite(row.squares) && row.squares > kLeastSquares)) {
      Elements again = elements;
      const Sums sums = scaled_sums(again, found.count, largest);
      average = (0.0 + sums.sum) / double(finite) * largest + 0.0;
      norm = std::sqrt(0.0 + sums.squares) * largest;
    }
  }
  set_average_and_norm(found, average, norm);
}

}  // namespace

void set_average_and_norm(Statistics& found, double average, double norm) {
  found.average = average, found.norm = norm;
  if (found.nan) found.norm = kNan;
  else if (found.negative_inf || found.positive_inf) found.norm = std::numeric_limits<double>::infinity();
}

Statistics without_values(int64_t count, int64_t item_size) {
  Statistics found{};
  found.maximum = found.minimum = found.average = kNan;
  found.count = count;
  found.size_bytes = count * item_size;
  return found;
}

bool has_statistics(c10::ScalarType dtype) { return dtype == c10::ScalarType::Bool || kernels_of(dtype) != nullptr; }

Statistics measure(const void* data, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const int64_t item_size = int64_t(c10::elementSize(dtype));
  Elements elements(data, sizes, strides, item_size);
  Statistics found = without_values(elements.count(), item_size);
  Row row;
  if (!found.count) return found;
  if (dtype == c10::ScalarType::Bool) {
    Elements rest = elements;
    int64_t times = 0;
    for (int64_t start = 0; start < found.count; start += kBlock) {
      const int64_t size = std::min(kBlock, found.count - start);
      times += ones(static_cast<const uint8_t*>(rest.next(size, rooms().elements)), size);
    }
    row.top = times > 0, row.low = times == found.count;
    row.sum = row.squares = double(times), row.zero = found.count - times;
  } else {
    row = totals(elements, *kernels_of(dtype), item_size);
  }
  finish(found, row, elements, dtype);
  return found;
}

}  // namespace msdump

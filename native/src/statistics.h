// What is known about the values of one tensor: what `msdump.statistics.stats.statistics` says of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace msdump {

// A record of numpy's; see msdump_native.pyi.
struct Statistics {
  double maximum, minimum;                  // of floats; NaN where no value is finite
  int64_t integer_maximum, integer_minimum;  // of integers and bools
  double sum, squares;                      // over finite values
  double average, norm;
  int64_t count, negative, positive, zero, nan, negative_inf, positive_inf;
  int64_t size_bytes;
};

bool has_statistics(c10::ScalarType dtype);

// What is known before the values are: the count, and numbers of no finite value.
Statistics without_values(int64_t count, int64_t item_size);

// Average and norm of finite values, once the counts are known.
void set_average_and_norm(Statistics& found, double average, double norm);

// `data` is that of the first element, in memory of this process.
Statistics measure(const void* data, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides);

}  // namespace msdump

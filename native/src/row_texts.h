// Lines of statistics as text, as `%g` and `%d` of Python's print their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "statistics.h"

namespace msdump {

enum class Column : uint8_t {
  kMaximum, kMinimum, kAverage, kNorm, kCount, kNegative, kPositive, kZero, kNan, kNegativeInf, kPositiveInf,
  kSizeBytes
};
// As `msdump.statistics.stats.Statistics` calls them.
constexpr const char* kColumns[] = {
    "max", "min", "avg", "l2norm", "count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf",
    "size_bytes"};

// Appends the columns, with commas between; extremes and averages of a tensor without finite values are `null`.
void append_columns(std::string& text, const Statistics& numbers, bool is_integer, const std::vector<Column>& columns);

}  // namespace msdump

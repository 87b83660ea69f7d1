#include "row_texts.h"

#include <charconv>
#include <cmath>

namespace msdump {
namespace {

void append_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "nan";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  text.append(digits, end.ptr);
}

void append_count(std::string& text, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end.ptr);
}

}  // namespace

void append_columns(std::string& text, const Statistics& numbers, bool is_integer, const std::vector<Column>& columns) {
  const bool has_finite = numbers.count > numbers.nan + numbers.negative_inf + numbers.positive_inf;
  const auto append = [&](double value) {
    if (has_finite) {
      append_number(text, value);
    } else {
      text += "null";
    }
  };
  bool is_first = true;
  for (const Column column : columns) {
    if (!is_first) text += ',';
    is_first = false;
    switch (column) {
      case Column::kMaximum: append(is_integer ? double(numbers.integer_maximum) : numbers.maximum); break;
      case Column::kMinimum: append(is_integer ? double(numbers.integer_minimum) : numbers.minimum); break;
      case Column::kAverage: append(numbers.average); break;
      case Column::kNorm: append_number(text, numbers.norm); break;
      case Column::kCount: append_count(text, numbers.count); break;
      case Column::kNegative: append_count(text, numbers.negative); break;
      case Column::kPositive: append_count(text, numbers.positive); break;
      case Column::kZero: append_count(text, numbers.zero); break;
      case Column::kNan: append_count(text, numbers.nan); break;
      case Column::kNegativeInf: append_count(text, numbers.negative_inf); break;
      case Column::kPositiveInf: append_count(text, numbers.positive_inf); break;
      default: append_count(text, numbers.size_bytes);
    }
  }
}

}  // namespace msdump

// Elements of a tensor of any strides, piece by piece, in the order in which they lie in memory, or in C order.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace msdump {

class Elements {
 public:
  // `data` is that of the first element. Sizes and strides count elements. `is_sorted`: not in C order, but as they lie in
  // memory.
  Elements(const void* data, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t item_size, bool is_sorted = true);

  int64_t count() const { return count_; }

  // The next `count` elements, aligned: where they are, or copied into `room`.
  const void* next(int64_t count, void* room);

  // Calls `visit` with the size of each axis and its stride in bytes, innermost first; once for elements that lie one
  // behind the other.
  template <class Visit>
  void for_each_axis(Visit visit) const {
    if (is_plain_) visit(count_, item_size_);
    for (const Axis& axis : axes_) visit(axis.size, axis.stride);
  }

  // All elements at once; null where they must be copied.
  const void* whole() const { return is_plain_ ? data_ : nullptr; }

 private:
  struct Axis {
    int64_t size, stride;  // in bytes
    int64_t index = 0;
  };
  template <class T>
  void gather(int64_t count, T* room);

  const char* data_;
  int64_t item_size_, count_;
  bool is_plain_ = false;
  c10::SmallVector<Axis, 8> axes_;  // innermost first
};

}  // namespace msdump

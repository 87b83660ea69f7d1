#include "elements.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace msdump {

// The order of axes is that of numpy's `ravel(order="K")`: insertion sort by stride, in which an axis that is stepped
// over (stride 0) says nothing.   Source: numpy, `npyiter_find_best_axis_ordering`.
Elements::Elements(
    const void* data, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t item_size, bool is_sorted)
    : data_(static_cast<const char*>(data)), item_size_(item_size), count_(1) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % item_size == 0;
  int64_t expected = 1;
  bool is_in_c_order = true;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    count_ *= sizes[axis];
    if (sizes[axis] == 1) continue;
    is_in_c_order &= strides[axis] == expected;
    expected *= sizes[axis];
  }
  if (is_in_c_order || count_ <= 1) {
    if (is_aligned) {
      is_plain_ = true;
      return;
    }
    axes_.push_back({count_, item_size, 0});
    return;
  }
  for (size_t axis = sizes.size(); axis-- > 0;) {
    if (sizes[axis] == 1) continue;
    const int64_t stride = strides[axis] * item_size;
    size_t place = axes_.size();
    for (size_t other = is_sorted ? axes_.size() : 0; other-- > 0;) {
      if (stride == 0 || axes_[other].stride == 0) continue;
      if (std::abs(axes_[other].stride) <= std::abs(stride)) break;
      place = other;
    }
    axes_.insert(axes_.begin() + place, Axis{sizes[axis], stride, 0});
  }
  // Axes that lie as one become one.
  size_t last = 0;
  for (size_t axis = 1; axis < axes_.size(); ++axis) {
    if (axes_[axis].stride == axes_[last].stride * axes_[last].size) axes_[last].size *= axes_[axis].size;
    else axes_[++last] = axes_[axis];
  }
  axes_.resize(last + 1);
  is_plain_ = axes_.size() == 1 && axes_[0].stride == item_size && is_aligned;
}

template <class T>
void Elements::gather(int64_t count, T* room) {
  Axis& inner = axes_[0];
  while (count) {
    const int64_t run = std::min(count, inner.size - inner.index);
    if (inner.stride == int64_t(sizeof(T))) {
      std::memcpy(room, data_, run * sizeof(T));
    } else {
      const char* from = data_;
      for (int64_t index = 0; index < run; ++index, from += inner.stride) std::memcpy(room + index, from, sizeof(T));
    }
    room += run, count -= run;
    inner.index += run, data_ += run * inner.stride;
    for (size_t axis = 0; axis + 1 < axes_.size() && axes_[axis].index == axes_[axis].size; ++axis) {
      data_ += axes_[axis + 1].stride - axes_[axis].size * axes_[axis].stride;
      axes_[axis].index = 0;
      ++axes_[axis + 1].index;
    }
  }
}

const void* Elements::next(int64_t count, void* room) {
  if (is_plain_) {
    const void* start = data_;
    data_ += count * item_size_;
    return start;
  }
  switch (item_size_) {
    case 1: gather(count, static_cast<uint8_t*>(room)); break;
    case 2: gather(count, static_cast<uint16_t*>(room)); break;
    case 4: gather(count, static_cast<uint32_t*>(room)); break;
    case 8: gather(count, static_cast<uint64_t*>(room)); break;
    default: gather(count, static_cast<std::array<uint64_t, 2>*>(room)); break;
  }
  return room;
}

}  // namespace msdump

// Which tensors of an iteration are the same bytes, and their statistics.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "index_map.h"
#include "records.h"
#include "statistics.h"

namespace msdump {

class Tensors {
 public:
  // Place of the record of a tensor as it is now; kNone where it is skipped. Measures what is new, if wanted.
  uint32_t add(const at::Tensor& tensor, bool measures, uint8_t& reason);

  // A call has written, or may have written, to this tensor.
  void note_write(const at::Tensor& tensor);

  // An iteration begins: all records and memories are forgotten.
  void clear();

  // New since `taken` was called last; `first_*` are their places in the iteration.
  struct New {
    uint32_t first_tensor, first_measurement, first_dimension;
    std::vector<TensorRecord> tensors;
    std::vector<Statistics> measurements;
    std::vector<int64_t> dimensions;
  };
  New taken();

  std::array<int64_t, kReasonCount> skipped{};
  int64_t measure_ns = 0;
  size_t memory_count() const { return memories_.size(); }

 private:
  struct Memory {
    // As long as a storage is referred to, be it weakly, no other one gets its address.
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const c10::StorageImpl* address;
    uint32_t version;
  };
  struct Key {
    uint32_t memory, version;
    int64_t offset, count;
    int8_t dtype;
  };

  uint32_t memory_of(const at::TensorImpl& tensor);
  uint32_t measured(const at::TensorImpl& tensor, const Key& key);

  std::vector<Memory> memories_;
  IndexMap memory_places_, tensor_places_, measurement_places_;
  std::vector<TensorRecord> tensors_;
  std::vector<uint8_t> is_unmeasurable_;
  std::vector<uint32_t> memory_of_tensor_;
  std::vector<int64_t> dimensions_;
  std::vector<Statistics> measurements_;
  std::vector<Key> measurement_keys_;
  size_t taken_tensors_ = 0, taken_measurements_ = 0, taken_dimensions_ = 0;
};

}  // namespace msdump

// Which tensors of an iteration are the same bytes, and their statistics.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_statistics.h"
#include "index_map.h"
#include "records.h"
#include "statistics.h"

namespace msdump {

// Numbers of the tensors of one iteration, by place. Python holds it longer than the iteration lasts.
struct Measurements {
  std::mutex mutex;  // of both; what holds it waits for nothing
  std::vector<Statistics> numbers;
  std::vector<uint8_t> are_integers;  // whether extremes are those of integers
};

class Tensors {
 public:
  // Place of the record of a tensor as it is now; kNone where it is skipped. Measures what is new, if wanted. `reason`
  // says why it was skipped, or has no statistics.
  uint32_t add(const at::Tensor& tensor, bool measures, uint8_t& reason);

  // A call has written, or may have written, to this tensor.
  void note_write(const at::Tensor& tensor);

  // An iteration begins: all records and memories are forgotten.
  void clear();

  // A copy of elements, in the place of statistics: of one axis, in the order in which they lie in memory, where a tensor
  // shows all of a piece of memory; otherwise as the tensor, in C order.
  struct Kept {
    uint32_t measurement;
    at::Tensor elements;
    bool is_negative;  // their negatives are the values
  };

  // Whether all that would be measured is copied instead.
  bool keeps = false;

  // Waits for devices that measure.
  void settle();

  std::shared_ptr<Measurements> measurements() const { return measurements_; }

  // Appends what names and rows follow from of the tensors that were met since `mark`, or of one: all but addresses.
  void append_new(std::string& text) const;
  void append_one(std::string& text, uint32_t place) const;
  bool is_new(uint32_t place) const { return place >= marked_; }
  void mark() { marked_ = tensors_.size(); }

  // Whether a tensor lies in the storage that the tensor at a place lay in.
  bool lies_at(const at::Tensor& tensor, uint32_t place) const;

  // New since `taken` was called last, settled; `first_*` are their places in the iteration.
  struct New {
    uint32_t first_tensor, first_measurement, first_dimension;
    std::vector<TensorRecord> tensors;
    std::vector<Statistics> measurements;
    std::vector<int64_t> dimensions;
    std::vector<Kept> kept;
  };
  New taken();

  std::array<int64_t, kReasonCount> skipped{};
  int64_t measure_ns = 0;
  size_t memory_count() const { return memories_.size(); }
  bool has_kept() const { return !kept_.empty(); }

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
    bool is_negative;
  };

  uint32_t memory_of(const at::TensorImpl& tensor);
  // `has_own_memory`: the values lie where the tensor of the key does.
  uint32_t measured(const at::TensorImpl& tensor, const Key& key, bool has_own_memory, Reason& reason);

  std::vector<Memory> memories_;
  IndexMap memory_places_, tensor_places_, measurement_places_;
  std::vector<TensorRecord> tensors_;
  std::vector<Reason> unmeasured_;  // by tensor: why it cannot be measured
  std::vector<uint32_t> memory_of_tensor_;
  std::vector<int64_t> dimensions_;
  std::shared_ptr<Measurements> measurements_ = std::make_shared<Measurements>();
  std::vector<Key> measurement_keys_;
  std::vector<Kept> kept_;
  DeviceStatistics on_devices_;
  size_t taken_tensors_ = 0, taken_measurements_ = 0, taken_dimensions_ = 0, marked_ = 0;
};

}  // namespace msdump

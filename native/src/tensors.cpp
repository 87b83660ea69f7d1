#include "tensors.h"

#include <algorithm>
#include <chrono>

namespace msdump {
namespace {

using c10::DispatchKey;

// Why there is no record at all.
Reason why_skipped(const at::TensorImpl& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(DispatchKey::Python)) {
    // Whatever device it says it is on: its memory is on none.
    const bool has_memory = tensor.has_storage() && tensor.unsafe_storage();
    return has_memory && tensor.unsafe_storage().device_type() == c10::kMeta ? kFake : kSubclass;
  }
  if (keys.has_any(c10::DispatchKeySet({DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
                                        DispatchKey::BatchedNestedTensor, DispatchKey::Functionalize,
                                        DispatchKey::ZeroTensor}))) {
    return kWrapper;
  }
  if (keys.has(DispatchKey::Quantized)) return kQuantized;
  if (keys.has(DispatchKey::NestedTensor)) return kNested;
  if (tensor.layout() != c10::kStrided) return kLayout;
  if (tensor.device_type() == c10::kMeta) return kMeta;
  return tensor.has_storage() && tensor.unsafe_storage() ? kRead : kNoMemory;
}

// Why there are no statistics.
Reason why_unmeasured(const at::TensorImpl& tensor) {
  if (tensor.device_type() != c10::kCPU) return kDevice;
  const c10::ScalarType dtype = c10::typeMetaToScalarType(tensor.dtype());
  if (c10::isComplexType(dtype)) return kComplex;
  if (!has_statistics(dtype)) return kDtype;
  if (tensor.key_set().has_any(c10::DispatchKeySet({DispatchKey::Negative, DispatchKey::Conjugate}))) return kNegative;
  // A storage may have given its memory back, and a tensor may show more than there is.
  const c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  int64_t last = tensor.storage_offset();
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (!sizes[axis]) return kRead;
    last += (sizes[axis] - 1) * strides[axis];
  }
  const c10::StorageImpl& storage = *tensor.unsafe_storage().unsafeGetStorageImpl();
  const size_t bytes = storage.sym_nbytes().is_heap_allocated() ? 0 : storage.nbytes();
  return storage.data() && size_t(last + 1) * c10::elementSize(dtype) <= bytes ? kRead : kNoMemory;
}

}  // namespace

uint32_t Tensors::memory_of(const at::TensorImpl& tensor) {
  const c10::Storage& storage = tensor.unsafe_storage();
  const c10::StorageImpl* address = storage.unsafeGetStorageImpl();
  const uint32_t next = uint32_t(memories_.size());
  const uint32_t place = memory_places_.find_or_add(
      mixed(0, reinterpret_cast<uintptr_t>(address)), next,
      [&](uint32_t index) { return memories_[index].address == address; });
  if (place == next) memories_.push_back({storage.getWeakStorageImpl(), address, 0});
  return place;
}

uint32_t Tensors::add(const at::Tensor& tensor, bool measures, uint8_t& reason) {
  const at::TensorImpl& own = *tensor.unsafeGetTensorImpl();
  reason = why_skipped(own);
  if (reason) {
    ++skipped[reason];
    return kNone;
  }
  const uint32_t memory = memory_of(own);
  const c10::IntArrayRef sizes = own.sizes(), strides = own.strides();
  const int8_t dtype = int8_t(c10::typeMetaToScalarType(own.dtype()));
  const uint32_t version = memories_[memory].version;
  const int64_t offset = own.storage_offset();
  const size_t rank = sizes.size();
  const bool is_negative = own.key_set().has_any(
      c10::DispatchKeySet({DispatchKey::Negative, DispatchKey::Conjugate}));
  uint64_t hash = mixed(mixed(memory, version), uint64_t(offset) ^ (uint64_t(uint8_t(dtype)) << 56) ^ is_negative);
  for (size_t axis = 0; axis < rank; ++axis) hash = mixed(mixed(hash, sizes[axis]), strides[axis]);

  const uint32_t next = uint32_t(tensors_.size());
  const uint32_t place = tensor_places_.find_or_add(hash, next, [&](uint32_t index) {
    const TensorRecord& other = tensors_[index];
    const int64_t* dimensions = dimensions_.data() + other.first_dimension;
    // Where the other one was not to be measured, this one stands beside it.
    if (measures && other.measurement == kNone && !is_unmeasurable_[index]) return false;
    return memory_of_tensor_[index] == memory && other.version == version && other.offset == offset &&
        other.dtype == dtype && other.dimension_count == rank && std::equal(sizes.begin(), sizes.end(), dimensions) &&
        std::equal(strides.begin(), strides.end(), dimensions + rank);
  });
  if (place != next) return place;
  const uint64_t address = reinterpret_cast<uintptr_t>(memories_[memory].address);
  tensors_.push_back({address, offset, version, uint32_t(dimensions_.size()), kNone, memory, uint8_t(rank), dtype});
  memory_of_tensor_.push_back(memory);
  dimensions_.insert(dimensions_.end(), sizes.begin(), sizes.end());
  dimensions_.insert(dimensions_.end(), strides.begin(), strides.end());
  const Reason unmeasured = why_unmeasured(own);
  is_unmeasurable_.push_back(unmeasured != kRead);
  skipped[unmeasured] += unmeasured != kRead;
  if (measures && !unmeasured) {
    tensors_.back().measurement = measured(own, {memory, version, offset, own.numel(), dtype});
  }
  return place;
}

// Views that show all elements of one piece of memory, in whatever order, have the same statistics.
uint32_t Tensors::measured(const at::TensorImpl& tensor, const Key& key) {
  const uint32_t next = uint32_t(measurements_.size());
  if (tensor.is_non_overlapping_and_dense()) {
    uint64_t hash = mixed(mixed(mixed(key.memory, key.version), key.offset), key.count);
    hash = mixed(hash, uint8_t(key.dtype));
    const uint32_t place = measurement_places_.find_or_add(hash, next, [&](uint32_t index) {
      const Key& other = measurement_keys_[index];
      return other.memory == key.memory && other.version == key.version && other.offset == key.offset &&
          other.count == key.count && other.dtype == key.dtype;
    });
    if (place != next) return place;
  }
  const c10::ScalarType dtype = c10::ScalarType(key.dtype);
  const char* start = static_cast<const char*>(tensor.unsafe_storage().data());
  const auto before = std::chrono::steady_clock::now();
  measurements_.push_back(
      measure(start + key.offset * int64_t(c10::elementSize(dtype)), dtype, tensor.sizes(), tensor.strides()));
  measure_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  measurement_keys_.push_back(key);
  return next;
}

void Tensors::note_write(const at::Tensor& tensor) {
  const at::TensorImpl& own = *tensor.unsafeGetTensorImpl();
  if (why_skipped(own)) return;
  ++memories_[memory_of(own)].version;
}

void Tensors::clear() {
  memories_.clear();
  memory_places_.clear(), tensor_places_.clear(), measurement_places_.clear();
  tensors_.clear(), memory_of_tensor_.clear(), is_unmeasurable_.clear(), dimensions_.clear(), measurements_.clear(), measurement_keys_.clear();
  taken_tensors_ = taken_measurements_ = taken_dimensions_ = 0;
}

Tensors::New Tensors::taken() {
  New result{uint32_t(taken_tensors_), uint32_t(taken_measurements_), uint32_t(taken_dimensions_), {}, {}, {}};
  result.tensors.assign(tensors_.begin() + taken_tensors_, tensors_.end());
  result.measurements.assign(measurements_.begin() + taken_measurements_, measurements_.end());
  result.dimensions.assign(dimensions_.begin() + taken_dimensions_, dimensions_.end());
  taken_tensors_ = tensors_.size(), taken_measurements_ = measurements_.size(), taken_dimensions_ = dimensions_.size();
  return result;
}

}  // namespace msdump

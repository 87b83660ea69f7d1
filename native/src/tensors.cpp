#include "tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>

#include "elements.h"

namespace msdump {
namespace {

using c10::DispatchKey;

bool is_quantized(const at::TensorImpl& tensor) { return tensor.key_set().has(DispatchKey::Quantized); }

// The numbers that codes mean, by PyTorch's own operator, which nobody sees run.
at::Tensor values_of_codes(const at::Tensor& tensor) {
  const at::RecordFunctionGuard unrecorded(false);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_recorders(
      c10::DispatchKeySet({DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::Tracer}));
  return tensor.dequantize();
}

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
  if (keys.has(DispatchKey::NestedTensor)) return kNested;
  if (tensor.layout() != c10::kStrided) return kLayout;
  if (tensor.device_type() == c10::kMeta) return kMeta;
  if (is_quantized(tensor) && tensor.device_type() != c10::kCPU) return kQuantized;
  return tensor.has_storage() && tensor.unsafe_storage() ? kRead : kNoMemory;
}

bool is_negative_view(const at::TensorImpl& tensor) { return tensor.key_set().has(DispatchKey::Negative); }

// Dtypes that are rare, or have values that no int64 has: Python measures copies.
bool is_for_python(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kFloat8_e4m3fn: case c10::kFloat8_e5m2: case c10::kFloat8_e8m0fnu:
    case c10::kUInt16: case c10::kUInt32: case c10::kUInt64: return true;
    default: return false;
  }
}

// Why there are no statistics, or no copies.
Reason why_unmeasured(const at::TensorImpl& tensor, bool keeps) {
  const c10::ScalarType dtype = c10::typeMetaToScalarType(tensor.dtype());
  if (is_quantized(tensor)) return kRead;
  if (keeps) {
    if (tensor.device_type() != c10::kCPU) return kDevice;
  } else if (c10::isComplexType(dtype)) {
    return kComplex;
  } else if (tensor.device_type() == c10::kCPU) {
    if (!has_statistics(dtype) && !is_for_python(dtype)) return kDtype;
  } else {
    if (!DeviceStatistics::serves(tensor.device())) return kDevice;
    if (!DeviceStatistics::serves(dtype) || is_negative_view(tensor)) return kDtype;
  }
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
  const bool has_codes = is_quantized(own);
  const int8_t dtype = int8_t(has_codes ? c10::kFloat : c10::typeMetaToScalarType(own.dtype()));
  const uint32_t version = memories_[memory].version;
  const int64_t offset = own.storage_offset();
  const size_t rank = sizes.size();
  const uint8_t is_conjugate = own.key_set().has(DispatchKey::Conjugate), is_negative = is_negative_view(own);
  const uint64_t kind = uint64_t(uint8_t(dtype)) << 56 ^ uint64_t(is_negative) << 55 ^ uint64_t(is_conjugate) << 54;
  uint64_t hash = mixed(mixed(memory, version), uint64_t(offset) ^ kind);
  for (size_t axis = 0; axis < rank; ++axis) hash = mixed(mixed(hash, sizes[axis]), strides[axis]);

  const uint32_t next = uint32_t(tensors_.size());
  const uint32_t place = tensor_places_.find_or_add(hash, next, [&](uint32_t index) {
    const TensorRecord& other = tensors_[index];
    const int64_t* dimensions = dimensions_.data() + other.first_dimension;
    // Where the other one was not to be measured, this one stands beside it.
    if (measures && other.measurement == kNone && !unmeasured_[index]) return false;
    return memory_of_tensor_[index] == memory && other.version == version && other.offset == offset &&
        other.dtype == dtype && other.is_negative == is_negative && other.is_conjugate == is_conjugate &&
        other.dimension_count == rank && std::equal(sizes.begin(), sizes.end(), dimensions) &&
        std::equal(strides.begin(), strides.end(), dimensions + rank);
  });
  if (place != next) {
    if (measures) reason = unmeasured_[place];
    return place;
  }
  const uint64_t address = reinterpret_cast<uintptr_t>(memories_[memory].address);
  tensors_.push_back({address, offset, version, uint32_t(dimensions_.size()), kNone, memory, uint8_t(rank), dtype,
                      is_conjugate, is_negative});
  memory_of_tensor_.push_back(memory);
  dimensions_.insert(dimensions_.end(), sizes.begin(), sizes.end());
  dimensions_.insert(dimensions_.end(), strides.begin(), strides.end());
  Reason unmeasured = why_unmeasured(own, keeps);
  if (measures && !unmeasured) {
    const Key key{memory, version, offset, own.numel(), dtype, bool(is_negative)};
    const at::Tensor values = has_codes ? values_of_codes(tensor) : at::Tensor();
    const uint32_t found = measured(has_codes ? *values.unsafeGetTensorImpl() : own, key, !has_codes, unmeasured);
    tensors_.back().measurement = found;
  }
  unmeasured_.push_back(unmeasured);
  skipped[unmeasured] += unmeasured != kRead;
  if (measures) reason = unmeasured;
  return place;
}

// Views that show all elements of one piece of memory, in whatever order, have the same statistics.
uint32_t Tensors::measured(const at::TensorImpl& tensor, const Key& key, bool has_own_memory, Reason& reason) {
  std::vector<Statistics>& numbers = measurements_->numbers;
  const uint32_t next = uint32_t(numbers.size());
  const auto add = [&](const Statistics& own, bool is_integer) {
    const std::lock_guard<std::mutex> lock(measurements_->mutex);
    numbers.push_back(own);
    measurements_->are_integers.push_back(is_integer);
  };
  const bool is_dense = has_own_memory && tensor.is_non_overlapping_and_dense();
  if (is_dense) {
    uint64_t hash = mixed(mixed(mixed(key.memory, key.version), key.offset), key.count);
    hash = mixed(hash, uint8_t(key.dtype) + 256 * key.is_negative);
    const uint32_t place = measurement_places_.find_or_add(hash, next, [&](uint32_t index) {
      const Key& other = measurement_keys_[index];
      return other.memory == key.memory && other.version == key.version && other.offset == key.offset &&
          other.count == key.count && other.dtype == key.dtype && other.is_negative == key.is_negative;
    });
    if (place != next) return place;
  }
  const c10::ScalarType dtype = c10::ScalarType(key.dtype);
  const int64_t item_size = int64_t(c10::elementSize(dtype));
  const char* start = static_cast<const char*>(tensor.unsafe_storage().data()) + tensor.storage_offset() * item_size;
  const auto before = std::chrono::steady_clock::now();
  if (tensor.device_type() != c10::kCPU) {
    // The device fills it in.
    add(without_values(key.count, item_size), c10::isIntegralType(dtype, true));
    if (key.count) reason = on_devices_.queue(tensor, start, next);
  } else if (keeps || is_for_python(dtype) || key.is_negative) {
    add(without_values(key.count, item_size), false);
    if (key.count) {
      const bool is_flat = is_dense || !keeps;
      Elements elements(start, tensor.sizes(), tensor.strides(), item_size, is_flat);
      const c10::IntArrayRef flat(key.count);
      at::Tensor copy = at::detail::empty_cpu(is_flat ? flat : tensor.sizes(), dtype);
      const void* from = elements.next(key.count, copy.mutable_data_ptr());
      if (from != copy.const_data_ptr()) std::memcpy(copy.mutable_data_ptr(), from, key.count * item_size);
      kept_.push_back({next, std::move(copy), key.is_negative});
    }
  } else {
    add(measure(start, dtype, tensor.sizes(), tensor.strides()), c10::isIntegralType(dtype, true));
  }
  measure_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  measurement_keys_.push_back(key);
  if (reason) measurement_keys_.back().count = -1;  // like none
  return reason ? kNone : next;
}

void Tensors::note_write(const at::Tensor& tensor) {
  const at::TensorImpl& own = *tensor.unsafeGetTensorImpl();
  if (why_skipped(own)) return;
  ++memories_[memory_of(own)].version;
}

void Tensors::clear() {
  memories_.clear();
  memory_places_.clear(), tensor_places_.clear(), measurement_places_.clear();
  tensors_.clear(), memory_of_tensor_.clear(), unmeasured_.clear(), dimensions_.clear();
  measurement_keys_.clear(), kept_.clear(), on_devices_.clear();
  if (measurements_.use_count() > 1) measurements_ = std::make_shared<Measurements>();
  else measurements_->numbers.clear(), measurements_->are_integers.clear();
  taken_tensors_ = taken_measurements_ = taken_dimensions_ = marked_ = 0;
}

void Tensors::settle() {
  const std::lock_guard<std::mutex> lock(measurements_->mutex);
  on_devices_.fill(measurements_->numbers);
}

void Tensors::append_one(std::string& text, uint32_t place) const {
  const TensorRecord& own = tensors_[place];
  const auto append = [&](const auto& value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(own.offset), append(own.version), append(own.measurement), append(own.memory), append(own.dimension_count);
  append(own.dtype), append(own.is_conjugate), append(own.is_negative);
  const int64_t* dimensions = dimensions_.data() + own.first_dimension;
  text.append(reinterpret_cast<const char*>(dimensions), 2 * own.dimension_count * sizeof *dimensions);
}

void Tensors::append_new(std::string& text) const {
  for (size_t place = marked_; place < tensors_.size(); ++place) append_one(text, uint32_t(place));
}

bool Tensors::lies_at(const at::Tensor& tensor, uint32_t place) const {
  if (place >= tensors_.size() || !tensor.has_storage()) return false;
  const auto address = reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  return tensors_[place].storage == address;
}

Tensors::New Tensors::taken() {
  New result{uint32_t(taken_tensors_), uint32_t(taken_measurements_), uint32_t(taken_dimensions_), {}, {}, {}, {}};
  settle();
  result.kept.swap(kept_);
  result.tensors.assign(tensors_.begin() + taken_tensors_, tensors_.end());
  const std::vector<Statistics>& numbers = measurements_->numbers;
  result.measurements.assign(numbers.begin() + taken_measurements_, numbers.end());
  result.dimensions.assign(dimensions_.begin() + taken_dimensions_, dimensions_.end());
  taken_tensors_ = tensors_.size(), taken_measurements_ = numbers.size(), taken_dimensions_ = dimensions_.size();
  mark();
  return result;
}

}  // namespace msdump

#include "device_statistics.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include "elements.h"

namespace msdump {
namespace {

constexpr int kThreads = 256, kMaxAxes = 16;
constexpr int64_t kPiece = 1 << 14;    // elements of a block, of tensors that need less than kMaxBlocks
constexpr int64_t kMaxBlocks = 1024;
constexpr size_t kRowsOfPage = 4096;

// As in the source of the kernels.
struct DeviceRow {
  double top, low, sum, squares;
  double scaled_sum, large_squares, small_squares;
  int64_t integer_top, integer_low;
  int64_t negative, zero, nan, negative_inf, positive_inf;
};
struct Axes {
  int count = 0;
  int64_t sizes[kMaxAxes], strides[kMaxAxes];
};

// -- CUDA's driver ---------------------------------------------------------------------------------------------------------

using Address = unsigned long long;
using Handle = void*;

// Source: cuda.h. Names with a version are those that it stands for there.
struct Driver {
  int (*context)(Handle*);
  int (*set_context)(Handle);
  int (*error_string)(int, const char**);
  int (*load)(Handle* module, const void* image);
  int (*function)(Handle* function, Handle module, const char* name);
  int (*launch)(Handle function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle stream,
                void** arguments, void** extra);
  int (*allocate)(Address*, size_t);
  int (*free)(Address);
  int (*clear)(Address, unsigned value, size_t count);
  int (*copy)(void* host, Address device, size_t, Handle stream);
  int (*make_stream)(Handle*, unsigned flags);
  int (*synchronize)(Handle stream);
  int (*is_capturing)(Handle stream, int* status);
  int (*exchange_mode)(int* mode);
  std::string missing;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
      missing = "libcuda.so.1";
      return;
    }
    find(library, "cuCtxGetCurrent", context);
    find(library, "cuCtxSetCurrent", set_context);
    find(library, "cuGetErrorString", error_string);
    find(library, "cuModuleLoadData", load);
    find(library, "cuModuleGetFunction", function);
    find(library, "cuLaunchKernel", launch);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuMemFree_v2", free);
    find(library, "cuMemsetD32_v2", clear);
    find(library, "cuMemcpyDtoHAsync_v2", copy);
    find(library, "cuStreamCreate", make_stream);
    find(library, "cuStreamSynchronize", synchronize);
    find(library, "cuStreamIsCapturing", is_capturing);
    find(library, "cuThreadExchangeStreamCaptureMode", exchange_mode);
  }

  template <class Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && missing.empty()) missing = name;
  }
};

const Driver& driver() {
  static const Driver own;
  return own;
}

void check(int code, const char* what) {
  if (!code) return;
  const char* text = nullptr;
  driver().error_string(code, &text);
  throw std::runtime_error(
      std::string("statistics on a CUDA device: ") + what + ": " + (text ? text : "unknown error"));
}

// While a graph is being captured, what waits or takes memory elsewhere is allowed to this thread.
class Relaxed {
 public:
  Relaxed() { driver().exchange_mode(&mode_); }
  ~Relaxed() { driver().exchange_mode(&mode_); }

 private:
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

// -- kernels -----------------------------------------------------------------------------------------------------------

constexpr int kDtypes = 64;
// Codes of c10::ScalarType.
constexpr int kMeasured[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 15, 23, 24, 27, 28, 44};

struct Kernels {
  Handle context = nullptr;
  std::array<Handle, kDtypes> of{};
};

std::map<int, Kernels>& loaded() {
  static auto* own = new std::map<int, Kernels>;
  return *own;
}
// Of the highest device that has kernels; looked at without a lock.
std::atomic<uint64_t> devices{0};

// The context of a device's kernels, as long as this lives: a thread that has called nothing of CUDA's has none, and
// PyTorch gives it one no earlier than it must.
class InContext {
 public:
  explicit InContext(const c10::Device& device) : guard_(device) {
    Handle current = nullptr;
    driver().context(&current);
    const Handle wanted = loaded().at(device.index()).context;
    if (current != wanted) check(driver().set_context(wanted), "the context of a device");
  }

 private:
  c10::DeviceGuard guard_;
};

Handle stream_of(const c10::Device& device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStreamNativeHandle(guard.getStream(device));
}

bool is_captured(Handle stream) {
  int status = 0;
  check(driver().is_capturing(stream, &status), "whether a stream is captured");
  return status != 0;
}

void finish(Statistics& found, const DeviceRow& row, c10::ScalarType dtype) {
  found.negative = row.negative, found.zero = row.zero, found.nan = row.nan;
  found.negative_inf = row.negative_inf, found.positive_inf = row.positive_inf;
  const int64_t finite = found.count - row.nan - row.negative_inf - row.positive_inf;
  found.positive = finite - row.negative - row.zero;
  found.sum = row.sum, found.squares = row.squares;
  double average = std::numeric_limits<double>::quiet_NaN(), norm = 0.0;
  if (finite) {
    if (c10::isFloatingType(dtype)) found.maximum = row.top + 0.0, found.minimum = row.low + 0.0;
    else found.integer_maximum = row.integer_top, found.integer_minimum = row.integer_low;
    average = row.sum / double(finite) + 0.0;
    norm = std::sqrt(row.squares);
    if (dtype == c10::kDouble) {
      if (!std::isfinite(row.sum)) average = row.scaled_sum / double(finite) * 0x1p64;
      if (row.large_squares > 0.0) norm = std::sqrt(row.large_squares + row.squares * 0x1p-600 * 0x1p-600) * 0x1p600;
      else if (row.small_squares > 0.0 && row.squares < 1e-280) {
        norm = std::sqrt(row.small_squares + row.squares * 0x1p600 * 0x1p600) * 0x1p-600;
      }
    }
  }
  set_average_and_norm(found, average, norm);
}

}  // namespace

// -- rows ----------------------------------------------------------------------------------------------------------------

// Of one device.
struct DeviceStatistics::Rows {
  struct Place {
    uint32_t measurement;
    c10::ScalarType dtype;
  };
  c10::Device device;
  std::vector<Address> pages;
  std::vector<Place> places;
  Handle own_stream = nullptr;
  // By stream: room for rows of blocks, and behind them how many blocks have ended. What a stream does comes in its order.
  std::map<Handle, Address> rooms;

  explicit Rows(c10::Device device) : device(device) {}
  ~Rows() {
    // The process may be ending, and its device with it: errors are no matter.
    Handle before = nullptr;
    driver().context(&before);
    driver().set_context(loaded().at(device.index()).context);
    for (Address each : pages) driver().free(each);
    for (const auto& each : rooms) driver().free(each.second);
    driver().set_context(before);
  }

  Address room_of(Handle stream) {
    Address& room = rooms[stream];
    if (!room) {
      const Relaxed relaxed;
      const size_t size = kMaxBlocks * sizeof(DeviceRow) + 8;
      check(driver().allocate(&room, size), "memory for partial results");
      check(driver().clear(room, 0, size / 4), "clear memory");
      check(driver().synchronize(nullptr), "clear memory");
    }
    return room;
  }

  Address next_row() {
    const size_t place = places.size();
    if (place / kRowsOfPage == pages.size()) {
      const Relaxed relaxed;
      Address page = 0;
      check(driver().allocate(&page, kRowsOfPage * sizeof(DeviceRow)), "memory for statistics");
      pages.push_back(page);
    }
    return pages[place / kRowsOfPage] + place % kRowsOfPage * sizeof(DeviceRow);
  }

  void wait() {
    const Relaxed relaxed;
    for (const auto& each : rooms) {
      // What it did before it was captured is done: a capture begins with that.
      if (!is_captured(each.first)) check(driver().synchronize(each.first), "wait for the device");
    }
  }

  void fill(std::vector<Statistics>& measurements) {
    if (places.empty()) return;
    const InContext context(device);
    wait();
    const Relaxed relaxed;
    if (!own_stream) check(driver().make_stream(&own_stream, 1), "make a stream");
    std::vector<DeviceRow> rows(places.size());
    for (size_t first = 0; first < rows.size(); first += kRowsOfPage) {
      const size_t count = std::min(kRowsOfPage, rows.size() - first);
      check(driver().copy(&rows[first], pages[first / kRowsOfPage], count * sizeof(DeviceRow), own_stream), "copy");
    }
    check(driver().synchronize(own_stream), "copy");
    for (size_t each = 0; each < rows.size(); ++each) {
      finish(measurements[places[each].measurement], rows[each], places[each].dtype);
    }
    places.clear();
  }
};

DeviceStatistics::DeviceStatistics() = default;
DeviceStatistics::~DeviceStatistics() = default;

void DeviceStatistics::load(int device, const std::string& binary) {
  if (!driver().missing.empty()) {
    throw std::runtime_error("statistics on a CUDA device: expected CUDA's driver, found no " + driver().missing);
  }
  if (device < 0 || device >= 64) throw std::runtime_error("statistics on a CUDA device: expected a device below 64");
  const c10::Device place(c10::kCUDA, c10::DeviceIndex(device));
  const c10::DeviceGuard guard(place);
  (void)stream_of(place);  // raises where this PyTorch does not tell
  Handle module = nullptr;
  check(driver().load(&module, binary.data()), "load kernels");
  Kernels kernels;
  check(driver().context(&kernels.context), "the context of a device");
  for (int code : kMeasured) {
    const std::string name = "measure_" + std::to_string(code);
    check(driver().function(&kernels.of[code], module, name.c_str()), name.c_str());
  }
  loaded()[device] = kernels;
  devices |= uint64_t{1} << device;
}

bool DeviceStatistics::serves(c10::Device device) {
  return device.is_cuda() && device.index() >= 0 && devices.load() >> device.index() & 1;
}

bool DeviceStatistics::serves(c10::ScalarType dtype) {
  return std::find(std::begin(kMeasured), std::end(kMeasured), int(dtype)) != std::end(kMeasured);
}

Reason DeviceStatistics::queue(const at::TensorImpl& tensor, const void* data, uint32_t measurement) {
  const c10::Device device = tensor.device();
  const c10::ScalarType dtype = c10::typeMetaToScalarType(tensor.dtype());
  const Elements elements(data, tensor.sizes(), tensor.strides(), int64_t(c10::elementSize(dtype)));
  Axes axes;
  bool is_whole = elements.whole() != nullptr;
  if (!is_whole) {
    bool fits = true;
    elements.for_each_axis([&](int64_t size, int64_t stride) {
      if (axes.count == kMaxAxes) fits = false;
      else axes.sizes[axes.count] = size, axes.strides[axes.count++] = stride;
    });
    if (!fits) return kLayout;
  }
  const InContext context(device);
  Handle stream = stream_of(device);
  if (is_captured(stream)) return kCaptured;
  if (rows_.size() <= size_t(device.index())) rows_.resize(device.index() + 1);
  std::unique_ptr<Rows>& rows = rows_[device.index()];
  if (!rows) rows = std::make_unique<Rows>(device);
  Address start = reinterpret_cast<uintptr_t>(data), room = rows->room_of(stream), row = rows->next_row();
  Address ended = room + kMaxBlocks * sizeof(DeviceRow);
  int64_t count = elements.count();
  const unsigned blocks = unsigned(std::min(kMaxBlocks, (count + kPiece - 1) / kPiece));
  void* arguments[] = {&start, &count, &axes, &room, &ended, &row};
  Handle kernel = loaded().at(device.index()).of[int(dtype)];
  check(driver().launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr), "launch");
  rows->places.push_back({measurement, dtype});
  return kRead;
}

void DeviceStatistics::fill(std::vector<Statistics>& measurements) {
  for (const std::unique_ptr<Rows>& each : rows_) {
    if (each) each->fill(measurements);
  }
}

void DeviceStatistics::clear() {
  for (const std::unique_ptr<Rows>& each : rows_) {
    if (!each || each->places.empty()) continue;
    const InContext context(each->device);
    each->wait();  // their rows are used again
    each->places.clear();
  }
}

}  // namespace msdump

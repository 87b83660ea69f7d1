// Statistics of tensors on CUDA devices: a kernel behind what has computed a tensor, and one copy of all numbers when
// they are wanted. Nothing waits before.
//
// CUDA's driver is found where the process has it. What is built here needs none of CUDA's headers or libraries, and
// serves a PyTorch without it as well.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "records.h"
#include "statistics.h"

namespace msdump {

class DeviceStatistics {
 public:
  DeviceStatistics();
  ~DeviceStatistics();

  // Load the kernels, compiled for a device. Raises std::runtime_error.
  static void load(int device, const std::string& binary);

  // Whether it has kernels for a device, and for a dtype.
  static bool serves(c10::Device device);
  static bool serves(c10::ScalarType dtype);

  // Measure a tensor with elements, as it is when what the current stream does now is done, for place `measurement` of
  // `fill`. Returns why not; kRead where it is queued.
  Reason queue(const at::TensorImpl& tensor, const void* data, uint32_t measurement);

  // Wait for the devices, and set what was queued since.
  void fill(std::vector<Statistics>& measurements);

  // What is queued is not wanted.
  void clear();

 private:
  struct Rows;
  std::vector<std::unique_ptr<Rows>> rows_;  // by device
};

}  // namespace msdump

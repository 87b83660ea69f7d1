// Work that several threads share.
#pragma once

#include <cstdint>
#include <functional>

namespace msdump {

// Calls `work` with each number below `count`, in this thread and, where there are enough, in others: as many as PyTorch
// may use inside of an operator. Returns when all are done. What `work` raises ends the process: it must not.
void each_in_threads(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace msdump

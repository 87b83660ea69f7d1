#include "threads.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace msdump {
namespace {

constexpr int64_t kFewest = 4;  // for which another thread is worth being woken
constexpr int64_t kMostThreads = 8;

struct Shared {
  const std::function<void(int64_t)>* work;
  int64_t count;
  std::atomic<int64_t> next{0}, done{0};

  // A thread that comes late finds no number, and touches nothing of the caller's.
  void take_part() {
    for (int64_t place = next++; place < count; place = next++) {
      (*work)(place);
      ++done;
    }
  }
};

// Threads of our own: PyTorch's pools cannot be sized by a script any longer once they are used.
class Pool {
 public:
  void help(const std::shared_ptr<Shared>& shared, int64_t helpers) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (; thread_count_ < helpers; ++thread_count_) std::thread([this] { run(); }).detach();
    for (int64_t each = 0; each < helpers; ++each) waiting_.push_back(shared);
    helpers == 1 ? ready_.notify_one() : ready_.notify_all();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      ready_.wait(lock, [this] { return !waiting_.empty(); });
      const std::shared_ptr<Shared> shared = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      shared->take_part();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<Shared>> waiting_;
  int64_t thread_count_ = 0;
};

Pool& pool() {
  // Never destroyed: its threads wait until the process ends. A child process has none of them.
  static Pool* own = [] {
    pthread_atfork(nullptr, nullptr, [] { own = new Pool; });
    return new Pool;
  }();
  return *own;
}

}  // namespace

void each_in_threads(int64_t count, const std::function<void(int64_t)>& work) {
  const int64_t threads = std::min({int64_t(at::get_num_threads()), count / 2, kMostThreads});
  if (count < kFewest || threads < 2) {
    for (int64_t place = 0; place < count; ++place) work(place);
    return;
  }
  const auto shared = std::make_shared<Shared>();
  shared->work = &work;
  shared->count = count;
  pool().help(shared, threads - 1);
  shared->take_part();
  // Whoever has taken a number is at work on it: the wait is short.
  while (shared->done < count) std::this_thread::yield();
}

}  // namespace msdump

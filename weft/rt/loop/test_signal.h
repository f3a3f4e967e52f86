// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace weft::rt::test {

// Signal: a token that one thread gives and another takes. Not a std::counting_semaphore: that of libstdc++ 12 can
// sleep through a release() in try_acquire_for().
class Signal {
 public:
  void give(int count = 1) {
    const std::lock_guard lock(mutex_);
    count_ += count;
    given_.notify_all();  // under the lock: the taker may destroy this
  }
  [[nodiscard]] bool take() {
    std::unique_lock lock(mutex_);
    if (!given_.wait_for(lock, std::chrono::seconds(60), [this] { return count_ > 0; })) {
      return false;
    }
    --count_;
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  int count_ = 0;
};

}  // namespace weft::rt::test

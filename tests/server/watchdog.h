// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace weft::test {

// Watchdog: ends the program, with the name of the present case, when the case lasts longer than its patience. A case
// that hangs holds threads that no test can end.
// Owner: the test. Affinity: one thread.
class Watchdog {
 public:
  static constexpr std::chrono::seconds kPatience{60};  // never passes on a busy machine

  explicit Watchdog(std::chrono::seconds patience = kPatience) : patience_(patience), thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void begin(std::string name) {
    const std::lock_guard lock(mutex_);
    name_ = std::move(name);
    begun_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (Clock::now() - begun_ > patience_) {
        std::fprintf(stderr, "HANGS: %s\n", name_.c_str());
        std::_Exit(1);
      }
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }

  const std::chrono::seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;  // guarded by mutex_, as all that follow
  Clock::time_point begun_ = Clock::now();
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace weft::test

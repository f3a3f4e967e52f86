// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "weft/base/time.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/message/options.h"
#include "weft/sync/lock.h"

namespace weft::msg {

// CurrentOptions: the options of a socket as the application has set them, and the copy that its binds and connects
// share until the next change.
// Owner: the socket. Affinity: any thread.
// Invariant: a change happens with the socket's receive and send lock, and under the lock of this object. So a thread
// with one of the socket's locks may read(), and any other thread may get().
class CurrentOptions {
 public:
  [[nodiscard]] const Options& read() const noexcept { return options_; }  // receive or send lock
  template <typename Member>
  [[nodiscard]] Member get(Member Options::* member) const {
    const sync::LockGuard lock(mutex_);
    return options_.*member;
  }
  [[nodiscard]] Options copy() const {
    const sync::LockGuard lock(mutex_);
    return options_;
  }
  [[nodiscard]] FrozenOptions freeze() {  // throws std::bad_alloc
    const sync::LockGuard lock(mutex_);
    if (frozen_ == nullptr) {
      frozen_ = std::make_shared<const Options>(options_);
    }
    return frozen_;
  }

  // `change` throws nothing.
  template <typename Change>
  void change(Change change) noexcept {
    const sync::LockGuard lock(mutex_);
    change(options_);
    frozen_.reset();
  }
  void replace(Options options) noexcept {
    change([&options](Options& current) {
      current.wipe_secrets();
      current = std::move(options);
    });
    receive_timeout_.store(options_.receive_timeout.count(), std::memory_order_relaxed);
  }

  // Option receive_timeout, without a lock. Negative: for ever.
  [[nodiscard]] Duration receive_timeout() const noexcept {
    return Duration(receive_timeout_.load(std::memory_order_relaxed));
  }

 private:
  mutable sync::StdMutex mutex_;
  Options options_;
  FrozenOptions frozen_ WEFT_GUARDED_BY(mutex_);  // a copy of options_; null: none since they changed
  std::atomic<Duration::rep> receive_timeout_{options_.receive_timeout.count()};
};

}  // namespace weft::msg

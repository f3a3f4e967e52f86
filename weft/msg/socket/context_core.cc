// SPDX-License-Identifier: MIT
#include "weft/msg/socket/context_core.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "weft/base/assert.h"
#include "weft/sys/call.h"

namespace weft::msg {

namespace {
constexpr Duration kSilent = std::chrono::seconds(1);  // a shorter end needs no reason
}

ContextCore::~ContextCore() {
  if (inherited()) {
    (void)io_.release();  // a forked child has no thread to stop
  }
}

Result<std::shared_ptr<SocketCore>> ContextCore::make_socket(SocketType type) {
  return set_up([&] { return open_socket(type); });
}

Result<std::shared_ptr<SocketCore>> ContextCore::open_socket(SocketType type) {
  const PatternRow* row = find_pattern(type);
  if (row == nullptr) {
    return Error(Errc::not_supported, "this socket type is not implemented");
  }
  const sync::LockGuard lock(mutex_);
  if (shut_down_) {
    return Error(Errc::terminated, "the context was shut down");
  }
  if (open_.size() >= sockets_max_) {
    return Error(Errc::too_many_sockets, "the context's limit of open sockets is reached");
  }
  auto core = std::make_shared<SocketCore>(*this, *row);
  open_.insert(core.get());
  return core;
}

std::shared_ptr<SocketCore> ContextCore::make_own_socket(SocketType type) {
  const PatternRow* row = find_pattern(type);
  WEFT_ASSERT(row != nullptr);
  return std::make_shared<SocketCore>(*this, *row);
}

Result<void> ContextCore::start_io() {
  const sync::LockGuard lock(mutex_);
  if (shut_down_) {
    return Error(Errc::terminated, "the context was shut down");
  }
  if (io_ == nullptr) {
    io_ = WEFT_TRY(IoService::make(io_thread_));
  }
  ++connections_;
  return {};
}

void ContextCore::shut_down() {
  if (inherited()) {
    return;
  }
  const sync::LockGuard lock(mutex_);
  shut_down_ = true;
  for (SocketCore* core : open_) {
    core->terminate();
  }
}

void ContextCore::close() {
  if (inherited()) {
    return;
  }
  shut_down();
  for (std::shared_ptr<SocketCore> core = next_open(nullptr); core != nullptr; core = next_open(core.get())) {
    core->close();
  }
  const sys::CancellationOff off;  // a destructor calls this
  while (!wait_until_quiet()) {    // a signal came: wait again
  }
}

// In the order of the addresses; null after the last.
std::shared_ptr<SocketCore> ContextCore::next_open(SocketCore* after) {
  const sync::LockGuard lock(mutex_);
  const auto next = open_.upper_bound(after);
  return next == open_.end() ? nullptr : (*next)->shared_from_this();
}

void ContextCore::set_sockets_max(std::size_t count) {
  const sync::LockGuard lock(mutex_);
  sockets_max_ = count;
}

void ContextCore::set_io_thread(const ThreadOptions& options) {
  const sync::LockGuard lock(mutex_);
  io_thread_ = options;
}

Result<void> ContextCore::wait_until_quiet() {
  if (inherited()) {
    return {};
  }
  flush_this_threads_batches();
  if (ends_since_.load(std::memory_order_relaxed) == kNever) {
    ends_since_.store(sys::now(), std::memory_order_relaxed);
  }
  for (;;) {
    const auto ticket = quiet_.announce_futex(false);
    {
      const sync::LockGuard lock(mutex_);
      if (open_.empty() && connections_ == 0) {
        break;
      }
    }
    if (quiet_.sleep_cancellably(ticket, Duration(-1)) == sys::FutexResult::interrupted) {
      return Error(Errc::interrupted, "a signal came while the context waited for its sockets");
    }
  }
  io_.reset();
  const sync::LockGuard inproc_lock(inproc_mutex_);
  while (!pending_.empty()) {
    (void)extract_pending(pending_.begin());
  }
  return {};
}

void ContextCore::connection_started() noexcept {
  const sync::LockGuard lock(mutex_);
  ++connections_;
}

void ContextCore::connection_ended() noexcept {
  const sync::LockGuard lock(mutex_);
  WEFT_ASSERT(connections_ > 0);
  --connections_;
  quiet_.wake_with_fence();
}

void ContextCore::connection_lingers(const std::string& endpoint, bool connected, Instant until) noexcept {
  const Instant now = sys::now();
  const Instant since = ends_since_.load(std::memory_order_relaxed);
  if (said_why_ || since == kNever || now - since < kSilent) {
    return;
  }
  said_why_ = true;
  std::array<char, 32> left{"without a limit"};
  if (until != kNever) {
    const auto tenths = std::max<std::int64_t>((until - now) / std::chrono::milliseconds(100), 0);
    (void)std::snprintf(left.data(), left.size(), "for %lld.%d s more", static_cast<long long>(tenths / 10),
                        static_cast<int>(tenths % 10));
  }
  std::fprintf(stderr,
               "weft: the context's end waits %s (option linger): a closed socket has messages for %s, and %s\n",
               left.data(), endpoint.c_str(), connected ? "its peer does not read them" : "nobody is connected there");
}

void ContextCore::forget(SocketCore& core) noexcept {
  const sync::LockGuard lock(mutex_);
  open_.erase(&core);
  quiet_.wake_with_fence();
}

}  // namespace weft::msg

// SPDX-License-Identifier: MIT
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

#include "bench/stage.h"

namespace bench {

// Ring: a bounded queue of cells between two threads, with no other features: the limit for inproc. A cell is the
// size and the bytes, in whole 128-byte units. Small messages have 256 cells, because a small ring stays in the
// caches. Owner: its maker. Affinity: one sender and one receiver. Cost: a copy in and a copy out, no allocation.
class Ring {
 public:
  // `sleeping`: the receiver of an empty ring sleeps at once, and each message wakes it.
  Ring(std::size_t message_size, bool sleeping)
      : stride_((message_size + sizeof(std::uint64_t) + 127) / 128 * 128),
        cells_(std::bit_floor(std::clamp<std::size_t>((std::size_t{1} << 20U) / stride_, 4, 256))),
        sleeping_(sleeping),
        memory_(static_cast<unsigned char*>(::operator new(stride_ * cells_, std::align_val_t{128}))) {
    std::memset(memory_, 0, stride_ * cells_);  // no page faults later
  }
  ~Ring() { ::operator delete(memory_, std::align_val_t{128}); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void send(const void* data, std::size_t size) {
    if (written_ - seen_read_ == cells_) {
      yield_until(
          [&] {
            seen_read_ = read_.load(std::memory_order_acquire);  // partner: the store in receive()
            return written_ - seen_read_ != cells_;
          },
          64);
    }
    unsigned char* const cell = memory_ + written_ % cells_ * stride_;
    const std::uint64_t length = size;
    std::memcpy(cell, &length, sizeof length);
    std::memcpy(cell + sizeof length, data, size);
    ++written_;
    published_.store(written_, std::memory_order_release);  // partner: the load in wait_for_message()
    if (sleeping_) {
      syscall(SYS_futex, &published_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

  std::size_t receive(void* target) {
    if (taken_ == seen_written_) {
      wait_for_message();
    }
    const unsigned char* const cell = memory_ + taken_ % cells_ * stride_;
    std::uint64_t length = 0;
    std::memcpy(&length, cell, sizeof length);
    std::memcpy(target, cell + sizeof length, length);
    ++taken_;
    // Published once every quarter of the ring, because each store costs the sender a cache miss. Partner:
    // the load in send().
    if (taken_ % (cells_ / 4) == 0 || taken_ == seen_written_) {
      read_.store(taken_, std::memory_order_release);
    }
    return length;
  }

 private:
  void wait_for_message() {
    const auto look = [&] {
      seen_written_ = published_.load(std::memory_order_acquire);  // partner: the store in send()
      return taken_ != seen_written_;
    };
    if (!sleeping_) {
      pause_until(look);  // with pauses, so that the sender can write several messages
      return;
    }
    while (!look()) {
      syscall(SYS_futex, &published_, FUTEX_WAIT_PRIVATE, seen_written_, nullptr, nullptr, 0);
    }
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  template <typename Look>
  static void pause_until(Look look) {
    const auto look_and_pause = [&] {
      const bool good = look();
      for (int i = 0; i < 4 && !good; ++i) {
        pause();
      }
      return good;
    };
    yield_until(look_and_pause, 4);
  }

  const std::size_t stride_;
  const std::size_t cells_;
  const bool sleeping_;
  unsigned char* const memory_;
  alignas(128) std::atomic<std::uint32_t> published_{0};
  alignas(128) std::uint32_t written_ = 0;  // the sender's own
  std::uint32_t seen_read_ = 0;
  alignas(128) std::atomic<std::uint32_t> read_{0};
  alignas(128) std::uint32_t taken_ = 0;  // the receiver's own
  std::uint32_t seen_written_ = 0;
};

}  // namespace bench

// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/msg/newest.h"
#include "weft/msg/part.h"
#include "weft/sync/spsc_queue.h"

namespace weft::msg {

// Channel: one direction of a pipe: a ring of cells with a high-water mark.
// Owner: the pipe or the inproc link. Affinity: one producer, one consumer (each side's lock or baton hands over).
// Cost: a push is a copy of the cell and one release store; credits come back once per low-water mark.
// Invariants:
//   (1) written - credited <= mark + one message, where `written` counts whole messages and `credited` those that the
//       consumer has reported. The consumer reports every low_water(mark) messages, so a full producer may go on as
//       soon as that many were read.
//   (2) Only whole messages are visible to the consumer.
//   (3) Without a mark the same holds in bytes: written - credited <= kUnmarkedBytesMax + one message.
//   (4) A channel that conflates has room for one message, of one part, and always takes the next in its place.
class Channel {
 public:
  Channel() = default;
  ~Channel() {
    while (Cell* cell = queue_.front()) {
      cell->release();
      queue_.pop();
    }
  }

  static constexpr std::uint64_t kUnmarkedBytesMax = std::uint64_t{1} << 30;

  // What a part costs while it is queued, in bytes.
  [[nodiscard]] static std::size_t footprint(const Cell& cell) noexcept {
    return sizeof(Cell) + (cell.is_large() ? cell.body.large.size : 0);
  }

  static constexpr std::int64_t low_water(std::int64_t mark) noexcept {
    return mark == 0 ? kUnmarkedReport : (mark + 1) / 2;
  }

  // Before anything is sent.
  void conflate() { newest_ = std::make_unique<Newest>(); }
  [[nodiscard]] bool conflates() const noexcept { return newest_ != nullptr; }
  // Consumer. The front becomes the newest message if that is not in front already.
  void refresh() noexcept { newest_->refresh(); }

  // Any thread. 0: no mark.
  void set_mark(std::int64_t mark) noexcept { mark_.store(mark, std::memory_order_relaxed); }

  // Producer.
  [[nodiscard]] bool has_credit() noexcept {
    const auto mark = static_cast<std::uint64_t>(mark_.load(std::memory_order_relaxed));
    if (within(mark)) [[likely]] {
      return true;
    }
    // Acquire pairs with the release in pop(); the counts alone matter.
    credited_seen_ = credited_.load(std::memory_order_acquire);
    credited_bytes_seen_ = credited_bytes_.load(std::memory_order_relaxed);
    return within(mark) || conflates();
  }
  // Producer. The next cell to fill, or null when memory ran out; then push_claimed(it).
  [[nodiscard]] Cell* claim() noexcept { return conflates() ? newest_->claim() : queue_.claim(); }
  void push_claimed(const Cell& cell) noexcept {
    if (conflates()) [[unlikely]] {
      newest_->put(cell);
      count(written_);
      return;
    }
    written_bytes_ += footprint(cell);
    queue_.stage();
    queue_.publish();
    count(written_);
  }
  // Producer. A whole message; takes over the references. False, with nothing taken, when memory ran out midway: what
  // was already staged stays invisible until the next message, so the caller must treat the pipe as failed.
  [[nodiscard]] bool push(std::span<const Cell> parts) noexcept {
    if (conflates()) [[unlikely]] {
      for (const Cell& part : parts) {
        newest_->put(part);
      }
      count(written_);
      return true;
    }
    for (const Cell& part : parts) {
      Cell* cell = queue_.claim();
      if (cell == nullptr) {
        return false;
      }
      part.copy_to(*cell);
      written_bytes_ += footprint(part);
      queue_.stage();
    }
    queue_.publish();
    count(written_);
    return true;
  }

  // Producer. A message of one part; takes over its buffer. False, with nothing changed, when memory ran out.
  [[nodiscard]] bool push(Outbound& part) noexcept {
    Cell* cell = claim();
    if (cell == nullptr || !make_cell(*cell, part)) {
      return false;
    }
    push_claimed(*cell);
    return true;
  }

  // Whole messages so far: put in (producer), taken out (consumer).
  [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return read_.load(std::memory_order_relaxed); }
  // Any thread: whole messages that were in it a moment ago.
  [[nodiscard]] std::uint64_t queued() const noexcept {
    const std::uint64_t taken = read();
    const std::uint64_t put = written();
    return put > taken ? put - taken : 0;
  }

  // Consumer.
  [[nodiscard]] Cell* front() noexcept { return conflates() ? newest_->front() : queue_.front(); }
  [[nodiscard]] bool empty() noexcept { return conflates() ? newest_->empty() : queue_.empty(); }
  // Consumer. Releases nothing: the cell's reference is the caller's business. True when credit was reported, so that a
  // producer that waits for it must be woken.
  [[nodiscard]] bool pop(bool ends_message, std::size_t bytes) noexcept {
    if (conflates()) [[unlikely]] {
      newest_->pop();
      count(read_);
      return false;
    }
    queue_.pop();
    read_bytes_ += bytes;
    if (!ends_message) {
      return false;
    }
    count(read_);
    if (static_cast<std::int64_t>(read() - credited_own_) >= low_water(mark_.load(std::memory_order_relaxed)) ||
        read_bytes_ - credited_bytes_own_ >= kUnmarkedBytesMax / 2) [[unlikely]] {
      credited_own_ = read();
      credited_bytes_own_ = read_bytes_;
      credited_bytes_.store(read_bytes_, std::memory_order_relaxed);  // ordered by the release below
      credited_.store(read(), std::memory_order_release);             // pairs with has_credit()
      return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t kUnmarkedReport = 1024;

  // One side counts; relaxed, as the counts order nothing: others only look at them (queued()).
  static void count(std::atomic<std::uint64_t>& messages) noexcept {
    messages.store(messages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool within(std::uint64_t mark) const noexcept {
    return mark != 0 ? written() - credited_seen_ < mark : written_bytes_ - credited_bytes_seen_ < kUnmarkedBytesMax;
  }

  std::unique_ptr<Newest> newest_;  // instead of the queue, if it conflates
  sync::SpscQueue<Cell> queue_;
  alignas(sync::kLineSize) std::atomic<std::uint64_t> written_{0};
  std::uint64_t credited_seen_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t credited_bytes_seen_ = 0;
  alignas(sync::kLineSize) std::atomic<std::uint64_t> read_{0};
  std::uint64_t credited_own_ = 0;
  std::uint64_t read_bytes_ = 0;
  std::uint64_t credited_bytes_own_ = 0;
  alignas(sync::kLineSize) std::atomic<std::uint64_t> credited_{0};
  std::atomic<std::uint64_t> credited_bytes_{0};
  std::atomic<std::int64_t> mark_{1000};
};

}  // namespace weft::msg

// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/msg/message/part.h"
#include "weft/msg/queue/newest.h"
#include "weft/sync/spsc_queue.h"

namespace weft::msg {

// Channel: one direction of a pipe: a ring of cells with a high-water mark.
// Owner: the connection's send side or receive side, or the inproc link.
// Affinity: one producer and one consumer; the lock or baton of a side hands that side from thread to thread.
// Cost: a push is a copy of the cell and one release store. The consumer reports credit once per low-water mark.
// Invariants:
// 1. written - credited <= mark + one message. `written` counts whole messages, `credited` those that the consumer has
//    reported. The consumer reports every low_water(mark) messages, and its count of popped messages if it cannot
//    continue; then a full producer has room again.
// 2. Only whole messages are visible to the consumer.
// 3. Without a mark the same holds in bytes: written - credited <= kUnmarkedBytesMax + one message.
// 4. A channel that conflates has room for one message, of one part. The next message always replaces that one.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() {
    const std::unique_ptr<Newest> newest(sending().newest);
    while (Cell* cell = queue_.front()) {
      cell->release();
      queue_.pop();
    }
  }

  static constexpr std::uint64_t kUnmarkedBytesMax = std::uint64_t{1} << 30;

  // The bytes that a queued part takes.
  [[nodiscard]] static std::size_t footprint(const Cell& cell) noexcept {
    return sizeof(Cell) + (cell.is_large() ? cell.body.large.size : 0);
  }

  static constexpr std::int64_t low_water(std::int64_t mark) noexcept {
    return mark == 0 ? kUnmarkedReport : (mark + 1) / 2;
  }

  // A mark below the default asks for fresh messages, so it bounds the bytes beside the channel, too: those of a batch,
  // of one read from the kernel, and those that the kernel holds and has not sent. A message counts as 256 bytes there;
  // 64 KB are the least, so that large messages move at full speed. SIZE_MAX: no bound.
  [[nodiscard]] static constexpr std::size_t bytes_beside(std::int64_t mark) noexcept {
    constexpr std::size_t kEach = 256;
    constexpr std::size_t kLeast = 64 * 1024;
    return mark == 0 || mark >= kMark ? SIZE_MAX : std::max(static_cast<std::size_t>(mark) * kEach, kLeast);
  }
  // Any thread.
  [[nodiscard]] std::size_t bytes_beside() const noexcept {
    return bytes_beside(sending().mark.load(std::memory_order_relaxed));
  }

  // Call it before the first message is sent.
  void conflate() { sending().newest = receiving().newest = new Newest; }
  // Consumer, and a producer that has not begun to send.
  [[nodiscard]] bool conflates() const noexcept { return receiving().newest != nullptr; }
  // Consumer. Puts the newest message in front, unless it is there already. Requires conflates().
  void refresh() noexcept { receiving().newest->refresh(); }

  // Any thread. 0: no mark.
  void set_mark(std::int64_t mark) noexcept {
    sending().mark.store(mark, std::memory_order_relaxed);
    receiving().mark.store(mark, std::memory_order_relaxed);
  }

  // Producer.
  [[nodiscard]] bool has_credit() noexcept {
    const auto mark = static_cast<std::uint64_t>(sending().mark.load(std::memory_order_relaxed));
    if (within(mark)) [[likely]] {
      return true;
    }
    // Acquire pairs with the release in pop(), which publishes only the counts.
    sending().credited_seen = queue_.beside_returned().messages.load(std::memory_order_acquire);
    sending().credited_bytes_seen = queue_.beside_returned().bytes.load(std::memory_order_relaxed);
    return within(mark) || sending().newest != nullptr;
  }
  // Producer. Returns the next cell to fill, or null if there is no memory. The caller fills it and calls
  // push_claimed().
  [[nodiscard]] Cell* claim() noexcept {
    return sending().newest != nullptr ? sending().newest->claim() : queue_.claim();
  }
  void push_claimed(const Cell& cell) noexcept {
    WEFT_DCHECK(cell.is_message());
    if (Newest* newest = sending().newest; newest != nullptr) [[unlikely]] {
      newest->put(cell);
      count(sending().written);
      return;
    }
    publish_claimed(cell);
    count(sending().written);
  }
  // Producer. The same for a subscription: it counts as bytes, and not as a message. Not for a channel that conflates.
  void push_claimed_subscription(const Cell& cell) noexcept {
    WEFT_DCHECK(sending().newest == nullptr && !cell.is_message());
    publish_claimed(cell);
  }
  // Producer. Pushes a whole message; takes over the references. Returns false, and changes nothing, if there is no
  // memory.
  [[nodiscard]] bool push(std::span<const Cell> parts) noexcept {
    if (Newest* newest = sending().newest; newest != nullptr) [[unlikely]] {
      for (Cell part : parts.first(parts.size() - 1)) {  // of a longer message only the last part remains
        part.release();
      }
      newest->put(parts.back());
      count(sending().written);
      return true;
    }
    const auto mark = queue_.mark();
    const std::uint64_t bytes_before = written_bytes();
    for (const Cell& part : parts) {
      Cell* cell = queue_.claim();
      if (cell == nullptr) {
        queue_.rewind(mark);
        sending().written_bytes.store(bytes_before, std::memory_order_relaxed);
        return false;
      }
      part.copy_to(*cell);
      add(sending().written_bytes, footprint(part));
      queue_.stage();
    }
    queue_.publish();
    count(sending().written);
    return true;
  }

  // Producer. Pushes a one-part message; takes over its buffer. Returns false, and changes nothing, if there is no
  // memory.
  [[nodiscard]] bool push(Outbound& part) noexcept {
    Cell* cell = claim();
    if (cell == nullptr || !make_cell(*cell, part)) {
      return false;
    }
    push_claimed(*cell);
    return true;
  }

  // Whole messages so far: pushed by the producer, popped by the consumer.
  [[nodiscard]] std::uint64_t written() const noexcept { return sending().written.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return receiving().read.load(std::memory_order_relaxed); }
  // Any thread: the recent number of whole messages in the channel.
  [[nodiscard]] std::uint64_t queued() const noexcept {
    const std::uint64_t gone = read() + replaced() + outdated();
    const std::uint64_t put = written();
    return put > gone ? put - gone : 0;
  }
  // Any thread, for a channel that conflates: messages that a newer one replaced, after the front and in front.
  [[nodiscard]] std::uint64_t replaced() const noexcept {
    return sending().newest != nullptr ? sending().newest->replaced() : 0;
  }
  [[nodiscard]] std::uint64_t outdated() const noexcept {
    return sending().newest != nullptr ? sending().newest->outdated() : 0;
  }

  // The bytes of all queued messages. Either side, and exact while the other side rests. 0 for a channel that
  // conflates.
  [[nodiscard]] std::uint64_t unread_bytes() const noexcept {
    const std::uint64_t gone = read_bytes();  // first, so that the difference is never negative for the producer
    const std::uint64_t put = written_bytes();
    return conflates() || put < gone ? 0 : put - gone;
  }

  // Consumer.
  [[nodiscard]] Cell* front() noexcept { return conflates() ? receiving().newest->front() : queue_.front(); }
  [[nodiscard]] bool empty() noexcept { return conflates() ? receiving().newest->empty() : queue_.empty(); }
  // Consumer. Releases nothing: the caller releases the cell's reference. `ends_message`: the cell is the last part of
  // a message, and not a subscription. Returns true if it reported credit: then the caller must wake a producer that
  // waits.
  [[nodiscard]] bool pop(bool ends_message, std::size_t bytes) noexcept {
    Receiving& own = receiving();
    if (own.newest != nullptr) [[unlikely]] {
      own.newest->pop();
      count(own.read);
      return false;
    }
    queue_.pop();
    add(own.read_bytes, bytes);
    if (!ends_message) {
      return false;
    }
    count(own.read);
    if (static_cast<std::int64_t>(read() - own.credited) >= low_water(own.mark.load(std::memory_order_relaxed)) ||
        read_bytes() - own.credited_bytes >= kUnmarkedBytesMax / 2) [[unlikely]] {
      return report();
    }
    return false;
  }
  // For a consumer that cannot continue now: reports all popped messages, so that a full producer uses the room.
  // Returns true like pop().
  [[nodiscard]] bool report() noexcept {
    Receiving& own = receiving();
    if (own.newest != nullptr || own.credited == read()) {
      return false;
    }
    own.credited = read();
    own.credited_bytes = read_bytes();
    queue_.beside_returned().bytes.store(own.credited_bytes,
                                         std::memory_order_relaxed);             // ordered by the release below
    queue_.beside_returned().messages.store(read(), std::memory_order_release);  // pairs with has_credit()
    return true;
  }

 private:
  void publish_claimed(const Cell& cell) noexcept {
    add(sending().written_bytes, footprint(cell));
    queue_.stage();
    queue_.publish();
  }

  static constexpr std::int64_t kUnmarkedReport = 1024;
  static constexpr std::int64_t kMark = 1000;  // the default

  // Only one side writes each count. Relaxed, because the counts order nothing: queued() of other threads reads them.
  static void add(std::atomic<std::uint64_t>& count, std::uint64_t more) noexcept {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  static void count(std::atomic<std::uint64_t>& messages) noexcept { add(messages, 1); }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept {
    return sending().written_bytes.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t read_bytes() const noexcept {
    return receiving().read_bytes.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool within(std::uint64_t mark) const noexcept {
    const Sending& own = sending();
    return mark != 0 ? written() - own.credited_seen < mark
                     : written_bytes() - own.credited_bytes_seen < kUnmarkedBytesMax;
  }

  // Each side keeps the members that it uses for every message in cache lines of its own, also its copy of the mark.
  // That costs 512 bytes of each connection.
  struct Sending {
    std::atomic<std::uint64_t> written{0};
    std::uint64_t credited_seen = 0;
    std::atomic<std::uint64_t> written_bytes{0};
    std::uint64_t credited_bytes_seen = 0;
    std::atomic<std::int64_t> mark{kMark};
    Newest* newest = nullptr;  // instead of the queue, if it conflates; owned
  };
  struct Receiving {
    std::atomic<std::uint64_t> read{0};
    std::uint64_t credited = 0;
    std::atomic<std::uint64_t> read_bytes{0};
    std::uint64_t credited_bytes = 0;
    std::atomic<std::int64_t> mark{kMark};
    Newest* newest = nullptr;
  };
  struct Credit {
    std::atomic<std::uint64_t> messages{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  struct Beside {
    using Producer = Sending;
    using Consumer = Receiving;
    using Returned = Credit;
  };

  [[nodiscard]] Sending& sending() noexcept { return queue_.beside_producer(); }
  [[nodiscard]] const Sending& sending() const noexcept { return queue_.beside_producer(); }
  [[nodiscard]] Receiving& receiving() noexcept { return queue_.beside_consumer(); }
  [[nodiscard]] const Receiving& receiving() const noexcept { return queue_.beside_consumer(); }

  sync::SpscQueue<Cell, 4, 256, Beside> queue_;
};

}  // namespace weft::msg

// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/logging/line.h"
#include "weft/logging/log_counts.h"
#include "weft/logging/repeats.h"
#include "weft/sync/atomic.h"
#include "weft/sync/lock.h"

namespace weft::logging {

// LineQueue: finished lines that wait for the writer, in chunks of memory. Each thread writes into one of a few
// stripes, so that two cores do not share a lock or a line of a cache.
// Owner: the State of a Log. Affinity: add(): any thread; the rest: the writer's thread.
// Cost: add(): a lock that two threads rarely want at once, and the bytes of the line. A chunk is allocated once.
// Invariants:
//   1. The chunks have at most `bytes_max` bytes, those that the writer holds included.
//   2. A line is taken by the writer, or counted with the reason of its drop, once.
//   3. Lines of one thread keep their order. take() merges the stripes by time.
class LineQueue {
 public:
  static constexpr std::size_t kStripes = 16;
  static constexpr std::size_t kChunkSize = 64 * 1024;
  static constexpr std::size_t kBytesMin = kStripes * kChunkSize;

  // How the lines of now are written.
  struct Manner {
    Format format = Format::text;
    bool with_priority = false;
    std::uint32_t repeats_max = 0;
  };
  // The fate of a line, for the caller.
  enum class Outcome : std::uint8_t {
    taken,     // or suppressed: the writer has work
    pressing,  // the same, and half of the chunks are full
    refused,   // dropped and counted
  };
  // Suppressed: the lines that Repeats suppressed.
  struct Suppressed {
    const void* component;
    const char* event;  // null: of several events
    std::uint64_t lines;
  };

  explicit LineQueue(std::size_t bytes_max) noexcept : chunks_max_(bytes_max / kChunkSize) {}
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  ~LineQueue();

  // `component`: the key of repeats. `event` is `parts.event` as a pointer that is never freed.
  Outcome add(const LineParts& parts, const void* component, const char* event, const Manner& manner) noexcept;

  // Whether there is a line, or a count of suppressed ones.
  [[nodiscard]] bool has_work() noexcept;
  // Calls use(line) for each line, in the order of time, and gives the chunks back. Lines that come meanwhile stay.
  template <typename Use>
  void take(const Use& use) {
    Taken taken = take_chunks();
    for (std::string_view line; next_line(taken, line);) {
      use(line);
    }
    give_back(taken);
  }
  // The counts of suppressed lines that are due: of earlier seconds, or all. Throws std::bad_alloc.
  [[nodiscard]] std::vector<Suppressed> take_suppressed(std::int64_t second, bool all);
  // From now on add() refuses, with `dropped_stopped`. The lines before are still taken.
  void close() noexcept;

  // Any thread.
  void add_counts(LogCounts& sum) const noexcept;
  void count_forked() noexcept;

 private:
  struct Head {  // before each line of a chunk
    std::int64_t time_ns;
    std::uint32_t size;
  };
  static constexpr std::size_t kHeadSize = sizeof(std::int64_t) + sizeof(std::uint32_t);

  struct Chunk {
    Chunk* next = nullptr;
    std::size_t used = 0;
    std::array<char, kChunkSize> bytes;
  };
  struct alignas(sync::kLineSize) Stripe : StripeNumbers<std::atomic<std::uint64_t>> {
    sync::StdMutex mutex;
    Chunk* first WEFT_GUARDED_BY(mutex) = nullptr;
    Chunk* last WEFT_GUARDED_BY(mutex) = nullptr;
    std::int64_t newest_ns WEFT_GUARDED_BY(mutex) = 0;  // time never goes back inside of a stripe
    TimeText time WEFT_GUARDED_BY(mutex){};
    Repeats repeats WEFT_GUARDED_BY(mutex){};
    bool closed WEFT_GUARDED_BY(mutex) = false;
  };
  struct Lane {  // the chunks of one stripe, while they are read
    Chunk* chunk = nullptr;
    std::size_t at = 0;
    Head head{};  // of the next line
  };
  struct Taken {
    std::array<Chunk*, kStripes> first{};
    std::array<Lane, kStripes> lanes{};
    std::size_t used = 0;
  };

  [[nodiscard]] Stripe& own_stripe() noexcept;
  [[nodiscard]] Chunk* make_chunk(Stripe& stripe) noexcept WEFT_REQUIRES(stripe.mutex);
  [[nodiscard]] Taken take_chunks() noexcept;
  static void read_head(Lane& lane) noexcept;
  [[nodiscard]] static bool next_line(Taken& taken, std::string_view& line) noexcept;
  void give_back(Taken& taken) noexcept;

  const std::size_t chunks_max_;
  std::array<Stripe, kStripes> stripes_{};
  alignas(sync::kLineSize) std::atomic<std::size_t> chunks_{0};  // in use; relaxed: a number stands alone
  sync::StdMutex spare_mutex_;
  Chunk* spare_ WEFT_GUARDED_BY(spare_mutex_) = nullptr;  // at most kSpare chunks without lines
  std::size_t spares_ WEFT_GUARDED_BY(spare_mutex_) = 0;
};

}  // namespace weft::logging

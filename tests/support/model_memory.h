// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/model.h"

namespace weft::model {

inline constexpr std::size_t kThreadsMax = 4;  // the scenario itself is thread 0
inline constexpr std::size_t kLocationsMax = 24;

// Knowledge: the view of a thread, or of a store that hands the view on: for each atomic the oldest store that may
// still be read, and for each thread how far its operations happened before.
struct Knowledge {
  std::array<std::uint16_t, kLocationsMax> view{};
  std::array<std::uint16_t, kThreadsMax> clock{};

  void join_view(const std::array<std::uint16_t, kLocationsMax>& other) noexcept;
  void join(const Knowledge& other) noexcept;
};

// Memory: the state of the modelled memory in one execution. The explorer, not the memory, decides which store a load
// returns. Every function that checks returns a description of the failure, or null.
class Memory {
 public:
  void reset();

  void fork(int parent, int child);
  void join(int parent, int child);

  [[nodiscard]] LocationId make_location(int thread, std::uint64_t initial);
  [[nodiscard]] const char* end_location(int thread, LocationId location);
  [[nodiscard]] const char* check_access(int thread, LocationId location);

  // How many stores a load may return; `age` 0 is the latest.
  [[nodiscard]] int visible(int thread, LocationId location, std::memory_order order) const;
  [[nodiscard]] std::uint64_t peek(LocationId location, int age) const;
  std::uint64_t load(int thread, LocationId location, int age, std::memory_order order);
  void store(int thread, LocationId location, std::uint64_t value, std::memory_order order);
  std::uint64_t begin_update(int thread, LocationId location, std::memory_order order);
  void end_update(int thread, LocationId location, std::uint64_t value, std::memory_order order);

  void fence(int thread, std::memory_order order);
  void light_fence(int thread);
  void heavy_fence(int thread);

  [[nodiscard]] const char* plain_read(int thread, const void* address);
  [[nodiscard]] const char* plain_write(int thread, const void* address);
  // The block is freed: every access to it must have happened before.
  [[nodiscard]] const char* end_range(int thread, const void* begin, std::size_t size);

 private:
  using Clock = std::array<std::uint16_t, kThreadsMax>;
  struct ThreadMemory {
    Knowledge now;
    Knowledge seen;      // views of the stores read so far: an acquire fence takes them over
    Knowledge released;  // the view at the last release fence: later relaxed stores hand it on
  };
  struct Stored {
    std::uint64_t value = 0;
    Knowledge handed_on;
  };
  struct Location {
    std::vector<Stored> history;
    Clock born{};
    Clock touched{};
    bool ended = false;
  };
  struct Shadow {
    const void* address = nullptr;
    Clock reads{};
    Clock writes{};
  };

  [[nodiscard]] bool happened_before(const Clock& earlier, int thread) const noexcept;
  void append(int thread, LocationId location, std::uint64_t value, std::memory_order order, const Knowledge* chain);
  void tick(int thread) noexcept { ++threads_[thread].now.clock[thread]; }
  Shadow& shadow_of(const void* address);

  std::array<ThreadMemory, kThreadsMax> threads_;
  std::array<Location, kLocationsMax> locations_;
  std::size_t location_count_ = 0;
  Knowledge sequential_;  // the view of all sequentially consistent fences
  Knowledge light_;       // the view that light fences and heavy fences share
  Knowledge heavy_;
  std::vector<Shadow> shadows_;
};

}  // namespace weft::model

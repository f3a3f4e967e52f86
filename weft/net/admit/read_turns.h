// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/base/list.h"
#include "weft/base/time.h"
#include "weft/sys/clock.h"

namespace weft::net {

// ReadTurns: shares the reads in a turn of a loop among its connections. A connection with more bytes than its share
// waits in a line. New events are handled beside the line, so a connection with few bytes does not wait for those that
// flood.
// Owner: beside a loop. Affinity: the loop's thread.
// Cost: a comparison for the first read of a turn, a counter of ticks for each other one. No allocation.
// Invariants:
//   1. The reads after the events of a turn, and the reads of its line, each take kLongest at most, and the read that
//      is under way then. At least one of each is made.
//   2. The line is served in order. A connection that joins it while it is served waits for the next turn.
//   3. While at most kFew connections wait, each has a whole share. Beyond that they divide kFew shares, down to a
//      kSmallest-th of a share each.
template <typename Connection>
class ReadTurns {
 public:
  static constexpr Duration kLongest = std::chrono::milliseconds(1);
  static constexpr std::size_t kFew = 16;
  static constexpr std::size_t kSmallest = 16;

  // Place: of a connection in the line. Leaves it before its destruction.
  struct Place : ListHook {
    explicit Place(Connection& owner) noexcept : connection(owner) {}
    Connection& connection;
  };

  // Returns true if the connection reads now. Otherwise it is in the line. `turn`: the loop's now().
  [[nodiscard]] bool admits(Place& place, Instant turn, std::uint64_t ticks) noexcept {
    if (place.hooked() && crowded()) {
      return false;
    }
    if (!is_over(turn, ticks)) [[likely]] {
      return true;
    }
    wait(place);
    return false;
  }
  void wait(Place& place) noexcept {
    if (!place.hooked()) {
      line_.push_back(place);
      ++size_;
    }
  }
  void leave(Place& place) noexcept {
    if (place.hooked()) {
      place.unhook();
      --size_;
    }
  }

  // Calls serve(connection) for those in the line: once in each turn. A connection may leave, end and wait again.
  // `ticks()`: sys::ticks(), or a test's.
  template <typename Serve, typename Ticks = std::uint64_t (*)() noexcept>
  void serve(Instant turn, Serve serve, Ticks ticks = &sys::ticks) {
    crowd_ = size_;
    List<Place> now;
    now.splice_back(line_);
    for (bool first = true; !now.empty() && (!is_over(turn, ticks()) || first); first = false) {
      Place& place = now.front();
      leave(place);
      serve(place.connection);
    }
    now.splice_back(line_);  // those that joined
    line_.splice_back(now);
  }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // More connections waited in the last turn than have whole shares.
  [[nodiscard]] bool crowded() const noexcept { return crowd_ > kFew; }
  [[nodiscard]] std::size_t share_of(std::size_t whole) const noexcept {
    return crowded() ? std::max(whole * kFew / crowd_, whole / kSmallest) : whole;
  }

 private:
  // The time of the reads began with the first one.
  [[nodiscard]] bool is_over(Instant turn, std::uint64_t ticks) noexcept {
    if (std::exchange(turn_, turn) != turn) {
      began_ = ticks;
    }
    return ticks - began_ > longest_;
  }

  List<Place> line_;
  std::size_t size_ = 0;
  std::size_t crowd_ = 0;
  Instant turn_{};  // of the last read
  std::uint64_t began_ = 0;
  const std::uint64_t longest_ = sys::ticks_per_us() * static_cast<std::uint64_t>(kLongest.count() / 1000);
};

}  // namespace weft::net

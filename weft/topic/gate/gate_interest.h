// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/interest/filter_index.h"

namespace weft::topic {

// GateInterest: the filters of all handles of a process, widened to exact topics and tokens, each once.
// An engine sends a message once for each of its subscriptions that match. The gate passes on the copy of the oldest
// one: a server that has the newer one has the older one, too. A filter that ends while an overlapping one stays can
// let one message in twice: its own copy was passed on before, and the other copy comes after.
// Owner: a gate. Affinity: the gate's core. Cost: a map's entry and an index's entry for each filter; is_first() is a
// comparison for the topic of the last message, otherwise FilterIndex' match().
class GateInterest {
 public:
  GateInterest() = default;
  GateInterest(const GateInterest&) = delete;
  GateInterest& operator=(const GateInterest&) = delete;
  ~GateInterest();

  // Returns the number of a filter that is new, or 0: a handle has it already. `filter` is exact, or has tokens.
  // Errors: resource_exhausted. Throws std::bad_alloc.
  [[nodiscard]] Result<std::uint64_t> want(const Filter& filter);
  // Returns the number of the filter that no handle has any longer, or 0.
  [[nodiscard]] std::uint64_t unwant(const Filter& filter) noexcept;
  // The number of a filter that a handle has, or 0.
  [[nodiscard]] std::uint64_t number_of(const Filter& filter) const noexcept;
  // Whether no older filter matches the topic. Throws std::bad_alloc.
  [[nodiscard]] bool is_first(std::uint64_t number, std::string_view topic);
  [[nodiscard]] std::size_t size() const noexcept { return wanted_.size(); }

 private:
  struct Wanted : msg::FilterIndex::Peer {
    const Filter* filter = nullptr;  // the key
    std::uint64_t number = 0;
    std::size_t handles = 0;
  };

  std::map<Filter, Wanted> wanted_;
  msg::FilterIndex index_;
  std::uint64_t next_number_ = 1;
  std::uint64_t marks_ = 0;
  // The last message.
  std::string topic_;
  std::uint64_t first_ = 0;  // 0: unknown
};

}  // namespace weft::topic

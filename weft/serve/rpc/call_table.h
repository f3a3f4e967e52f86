// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::serve::rpc {

class Incoming;

// CallTable: the calls in flight of one connection whose handlers are coroutines, by their id.
// Owner: the service, for the session. Affinity: the session's core.
// Cost: O(1) for ids that are numbered one after the other; at most O(calls) for others. The buckets grow to the peak.
// Invariant: an id is in the table once.
class CallTable {
 public:
  CallTable() noexcept = default;
  CallTable(const CallTable&) = delete;
  CallTable& operator=(const CallTable&) = delete;
  ~CallTable() = default;  // requires an empty table

  [[nodiscard]] Incoming* find(std::uint64_t id) const noexcept;  // null: there is none
  // Requires that the id is not in the table. Returns false if there is no memory.
  [[nodiscard]] bool add(Incoming& call) noexcept;
  void remove(Incoming& call) noexcept;  // requires that it is in this table
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t kBucketsMin = 16;

  [[nodiscard]] Incoming*& bucket_of(std::uint64_t id) noexcept { return buckets_[id & (buckets_.size() - 1)]; }
  void grow() noexcept;

  std::vector<Incoming*> buckets_;  // a power of two of them, or none yet
  std::size_t size_ = 0;
};

}  // namespace weft::serve::rpc

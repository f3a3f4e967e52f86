// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::topic {

// Lease: a name that one member holds: the name of a present node, or a topic with an owner.
struct Lease {
  std::string holder;       // the member's routing id
  std::uint64_t epoch = 0;  // larger than that of every holder before
  Instant until = kNever;   // kNever: for as long as the connection lasts
  std::string data;
};

// LeaseTable: the leases of a hub.
// Owner: the hub. Affinity: one thread. Cost: a map entry; O(log n) a call, and kEndsPerCall leases that end.
// Invariants:
// 1. At most kLeasesMax leases, and kDataMax bytes of data each.
// 2. A name has one holder. Epochs of one name only grow, also across a change of the hub: they begin at
//    Store::incarnation().
// 3. A lease whose time or connection has ended does not keep its name from others, also before expire() removes it.
class LeaseTable {
 public:
  static constexpr std::size_t kLeasesMax = 65'536;
  static constexpr std::size_t kEndsPerCall = 256;
  static constexpr std::size_t kNameMax = 255;
  static constexpr std::size_t kDataMax = 4096;

  // `epoch`: the first one to give. Until `quiet`, only the former holder of a lease may take it: it lost its hub, and
  // is about to return.
  LeaseTable(std::uint64_t epoch, Instant quiet) noexcept : next_epoch_(epoch), quiet_(quiet) {}

  // Called with each name whose lease was taken, changed or ended.
  void set_observer(std::function<void(const std::string& name)> observer) { observer_ = std::move(observer); }

  // Takes a name (epoch 0), or renews the lease of that epoch. Returns the epoch. Errors: conflict (another member
  // holds it); would_block (try again after the time of quiet); invalid_argument; message_too_large;
  // resource_exhausted.
  Result<std::uint64_t> take(std::string_view name, std::string_view holder, std::uint64_t epoch, Duration time,
                             std::string_view data, Instant now);
  bool release(std::string_view name, std::string_view holder);  // returns false if the member does not hold it
  void drop_holder(std::string_view holder);                     // its connection ended: leases without a time end
  // Removes leases that have ended, at most kEndsPerCall. The others are due at once, see next_expiry().
  void expire(Instant now);
  [[nodiscard]] Instant next_expiry() const noexcept {
    return !gone_.empty() ? Instant() : by_time_.empty() ? kNever : by_time_.begin()->first;
  }

  [[nodiscard]] const Lease* find(std::string_view name) const;
  // Names after `after` that begin with `prefix`, in byte order.
  [[nodiscard]] std::optional<std::string> next_name(std::string_view prefix, std::string_view after, bool first) const;
  [[nodiscard]] std::size_t size() const noexcept { return leases_.size(); }

 private:
  using Table = std::map<std::string, Lease, std::less<>>;
  [[nodiscard]] bool has_ended(const Lease& lease, Instant now) const;
  [[nodiscard]] bool end_one_of(std::string_view holder);  // returns false if there is none
  void erase(Table::iterator at);
  void set_until(Table::iterator at, Instant until);

  std::uint64_t next_epoch_;
  Instant quiet_;
  Table leases_;
  std::set<std::pair<Instant, std::string>> by_time_;
  std::set<std::pair<std::string, std::string>> by_holder_;  // holder, name: those of a connection
  std::set<std::string, std::less<>> gone_;                  // holders that had more leases than a call ends
  std::function<void(const std::string& name)> observer_;
};

}  // namespace weft::topic

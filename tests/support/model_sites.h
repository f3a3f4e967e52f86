// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/model.h"

namespace weft::model {

// Audit: whether a header needs all of its memory orders. weaken_every_order() weakens every operation of the header
// that the scenarios reach, one at a time and one step at a time (acq_rel to acquire and to release, acquire and
// release to relaxed, a fence to nothing). Some scenario must fail each time.

struct Scenario {
  const char* name;
  void (*run)();
  Options options{};
};

// A weakening that no scenario can notice, and why that is so.
struct Harmless {
  std::string_view mutation;  // "front load acquire -> relaxed"; a second load there is "front load#2 ..."
  std::string_view reason;
};

struct Audit {
  std::vector<std::string> complaints;  // needed orders that nothing noticed, and Harmless ones that something did
  std::vector<std::string> noticed;     // "mutation: failure"
  std::size_t sites = 0;                // operations in the header that were reached
};

// `header`: the end of its path. The scenarios themselves must pass.
[[nodiscard]] Audit weaken_every_order(std::string_view header, std::span<const Scenario> scenarios,
                                       std::span<const Harmless> harmless);

namespace detail {

struct Effective {
  std::memory_order order;
  bool removed;
};
// The order that the operation has in this run; notes the site.
Effective effective(const char* name, std::memory_order order, const Where& where);

}  // namespace detail
}  // namespace weft::model

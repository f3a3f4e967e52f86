// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/topic/fleet/fleet.h"
#include "weft/topic/fleet/local_directory.h"

namespace weft::topic {

// FleetEndpoints: where the handles of a fleet listen: each one within its process; for other processes those of a
// local fleet in its directory, those of a tcp fleet at endpoints of its scheme, and those of another fleet nowhere.
// Owner: a handle. Affinity: any thread, after open(). Cost: that of LocalDirectory.
class FleetEndpoints {
 public:
  struct Listener {
    std::uint64_t instance = 0;
    std::string endpoint;
  };

  FleetEndpoints(Fleet fleet, std::uint64_t own);

  [[nodiscard]] const Fleet& fleet() const noexcept { return fleet_; }
  [[nodiscard]] const std::string& inproc() const noexcept { return inproc_; }  // of the handle itself
  // The same of a handle's socket for inside topics.
  [[nodiscard]] static std::string inner_of(const std::string& inproc) { return inproc + ".inside"; }
  // Of a local fleet, once, before find_others(). Returns the endpoint of the handle. Errors: those of
  // LocalDirectory::open().
  [[nodiscard]] Result<std::string> open(const std::string& runtime_directory);
  // The other handles of a local fleet that listen now. Errors: those of LocalDirectory::listening().
  [[nodiscard]] Result<std::vector<Listener>> find_others() const;
  // Checks an endpoint that a peer sends for itself or for another one: a handle of this fleet may listen there.
  [[nodiscard]] bool is_possible(std::uint64_t instance, const std::string& endpoint) const;
  // A handle of a local fleet that does not listen any more; false where that is not known.
  [[nodiscard]] bool has_ended(std::uint64_t instance) const;

 private:
  const Fleet fleet_;
  const std::uint64_t own_;
  const std::string inproc_;
  std::optional<LocalDirectory> directory_;  // of a local fleet, from open() on
};

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/topic/networks.h"

namespace weft::topic {

// TwoNetworks: two network namespaces with a pair of veth between them, and a cut of either direction by a route that
// drops. The calling thread is in the near one; a thread, a process or a socket stays in the one in which it began.
// Owner: one thread, which stays in the near namespace afterwards. A process of its own has the namespaces.
class TwoNetworks {
 public:
  static constexpr const char* kNear = "10.77.0.1";
  static constexpr const char* kFar = "10.77.0.2";

  TwoNetworks() { missing_ = set_up(); }
  TwoNetworks(const TwoNetworks&) = delete;
  TwoNetworks& operator=(const TwoNetworks&) = delete;
  ~TwoNetworks() {
    for (const int fd : {near_, far_}) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  // Why there are none; empty: there are.
  [[nodiscard]] const std::string& missing() const { return missing_; }

  // Runs the function in the far namespace.
  template <typename Function>
  auto in_far(const Function& function) const {
    return in_network(far_, function);
  }

  // No packet leaves the near namespace, or the far one, until heal().
  [[nodiscard]] bool cut_to_far() const { return ip({"route", "add", "blackhole", kFar}); }
  [[nodiscard]] bool cut_to_near() const {
    return in_far([] { return ip({"route", "add", "blackhole", kNear}); });
  }
  [[nodiscard]] bool heal_to_far() const { return ip({"route", "del", "blackhole", kFar}); }
  [[nodiscard]] bool heal_to_near() const {
    return in_far([] { return ip({"route", "del", "blackhole", kNear}); });
  }

 private:
  std::string set_up() {
    if (!enter_new_network()) {
      return std::string("not here: no network namespace: ") + std::strerror(errno);
    }
    near_ = this_network();
    if (::unshare(CLONE_NEWNET) != 0) {
      return std::string("not here: no second network namespace: ") + std::strerror(errno);
    }
    far_ = this_network();
    const bool linked =
        ip({"link", "set", "lo", "up"}) &&
        ip({"link", "add", "far", "type", "veth", "peer", "name", "near", "netns", file_of_network(near_)}) &&
        ip({"addr", "add", std::string(kFar) + "/30", "dev", "far"}) && ip({"link", "set", "far", "up"});
    (void)::setns(near_, CLONE_NEWNET);
    if (!linked || !ip({"link", "set", "lo", "up"}) ||
        !ip({"addr", "add", std::string(kNear) + "/30", "dev", "near"}) || !ip({"link", "set", "near", "up"})) {
      return "not here: no pair of veth";
    }
    return {};
  }

  int near_ = -1;
  int far_ = -1;
  std::string missing_;
};

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/admit/ip_prefix.h"

namespace weft::net {

// AcceptFilter: decides which peers' connections a listener accepts. Without entries of a kind, it accepts every peer
// of that kind.
// Affinity: immutable. Cost: one or two system calls for each accepted connection; none without entries.
class AcceptFilter {
 public:
  AcceptFilter() = default;
  // `networks`: "10.0.0.0/8,192.168.1.7,::1"; `processes`: "uid:1000,gid:100,pid:1". Empty: every peer.
  // Error: invalid_argument.
  [[nodiscard]] static Result<AcceptFilter> parse(std::string_view networks, std::string_view processes);

  [[nodiscard]] bool admits(int fd) const noexcept;
  // Whether it has entries for peers over TCP, or for those of a unix socket.
  [[nodiscard]] bool names_peers(bool of_unix) const noexcept {
    return of_unix ? !processes_.empty() : !networks_.empty();
  }

 private:
  struct Process {
    char kind;  // p, u, g
    std::int64_t number;
  };

  [[nodiscard]] static Result<Process> parse_process(std::string_view text);

  std::vector<IpPrefix> networks_;
  std::vector<Process> processes_;
};

}  // namespace weft::net

// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/link.h"

// pub, sub, push, pull, req, rep, dealer, router: messages by hand.
namespace weft::cli {

enum class Role : std::uint8_t { pub, sub, push, pull, req, rep, dealer, router };
[[nodiscard]] std::string_view role_name(Role role) noexcept;
[[nodiscard]] constexpr bool role_sends(Role role) noexcept { return role != Role::sub && role != Role::pull; }
[[nodiscard]] constexpr bool role_receives(Role role) noexcept { return role != Role::pub && role != Role::push; }
[[nodiscard]] constexpr bool role_replies(Role role) noexcept { return role == Role::rep || role == Role::router; }

struct TalkOptions {
  LinkOptions link;
  Parts parts;                      // of one message; of none: lines
  std::vector<std::string> files;   // whose lines are messages; none: standard input
  std::vector<std::string> topics;  // sub: prefixes or globs; pub: one, the first part of every message
  std::uint64_t count = 0;          // 0: no end for lines and receivers, 1 for a message of the command line
  double rate = 0;                  // messages a second; 0: as fast as peers take them
  double interval = 0;              // seconds between two
  std::uint64_t wait = 1;           // pub: subscribers; others: peers to wait for
  bool hex = false;
  bool raw = false;
  bool glob = false;
  bool echo = false;     // rep, router: the reply is the request
  bool receive = false;  // dealer: sends nothing
};

int talk(Console& console, Role role, const TalkOptions& options);

}  // namespace weft::cli

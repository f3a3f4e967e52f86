// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/link.h"
#include "tools/weft/source.h"

// pub, sub, push, pull, req, rep, dealer, router: messages by hand.
namespace weft::cli {

enum class Role : std::uint8_t { pub, sub, push, pull, req, rep, dealer, router };
[[nodiscard]] std::string_view role_name(Role role) noexcept;
[[nodiscard]] constexpr bool role_sends(Role role) noexcept { return role != Role::sub && role != Role::pull; }
[[nodiscard]] constexpr bool role_receives(Role role) noexcept { return role != Role::pub && role != Role::push; }
[[nodiscard]] constexpr bool role_replies(Role role) noexcept { return role == Role::rep || role == Role::router; }

struct TalkOptions {
  LinkOptions link;
  SourceOptions source{};           // its count and `hex` are also those of receivers
  std::vector<std::string> topics;  // sub: prefixes or globs; pub: one, the first part of every message
  std::uint64_t wait = 1;           // pub: subscriptions; push: peers to wait for
  bool raw = false;
  bool glob = false;
  bool echo = false;     // rep, router: the reply is the request
  bool receive = false;  // dealer: sends nothing
};

// The end of `weft pub` and `weft topic pub`: an object of JSON, or a note.
void report_published(Console& console, std::uint64_t sent, std::uint64_t subscriptions);

int talk(Console& console, Role role, const TalkOptions& options);

}  // namespace weft::cli

// SPDX-License-Identifier: MIT
#include "weft/zmtp/wire_type.h"

#include <array>
#include <cstddef>

#include "weft/base/assert.h"

namespace weft::zmtp {
namespace {

constexpr std::uint32_t bit(WireType type) { return 1U << static_cast<unsigned>(type); }

struct Row {
  std::string_view name;
  std::uint32_t partners;
};

using enum WireType;
constexpr std::array<Row, kSocketTypeCount> kRows = {{
    {"PAIR", bit(pair)},
    {"PUB", bit(sub) | bit(xsub)},
    {"SUB", bit(pub) | bit(xpub)},
    {"REQ", bit(rep) | bit(router)},
    {"REP", bit(req) | bit(dealer)},
    {"DEALER", bit(rep) | bit(dealer) | bit(router)},
    {"ROUTER", bit(req) | bit(dealer) | bit(router)},
    {"PULL", bit(push)},
    {"PUSH", bit(pull)},
    {"XPUB", bit(sub) | bit(xsub)},
    {"XSUB", bit(pub) | bit(xpub)},
    {"STREAM", 0},
    {"SERVER", bit(client)},
    {"CLIENT", bit(server)},
    {"RADIO", bit(dish)},
    {"DISH", bit(radio)},
    {"GATHER", bit(scatter)},
    {"SCATTER", bit(gather)},
    {"DGRAM", 0},
    {"PEER", bit(peer)},
    {"CHANNEL", bit(channel)},
}};

const Row& row(WireType type) {
  const auto index = static_cast<std::size_t>(type);
  WEFT_ASSERT(index < kRows.size());
  return kRows[index];
}

}  // namespace

std::string_view socket_type_name(WireType type) noexcept { return row(type).name; }

std::optional<WireType> parse_socket_type(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) {
      return static_cast<WireType>(i);
    }
  }
  return std::nullopt;
}

bool compatible(WireType ours, WireType theirs) noexcept { return (row(ours).partners & bit(theirs)) != 0; }

bool sends_identity(WireType type) noexcept { return type == req || type == dealer || type == router; }

}  // namespace weft::zmtp

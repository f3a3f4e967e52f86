// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/fleet.h"

#include <algorithm>

#include "weft/nats/protocol/server_list.h"
#include "weft/net/stream/endpoint.h"

namespace weft::topic {

namespace {

bool is_fleet_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= Fleet::kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

// A server without a scheme has that of the first one.
Result<Fleet> parse_nats(std::string_view text) {
  Fleet fleet;
  fleet.kind = Fleet::Kind::nats;
  const std::string_view scheme = text.substr(0, text.find("//") + 2);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view server = text.substr(0, comma);
    fleet.servers += fleet.servers.empty() ? "" : ",";
    fleet.servers += server.find("://") == std::string_view::npos ? scheme : "";
    fleet.servers += server;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  WEFT_TRY(nats::ServerList::make(fleet.servers, 0));
  return fleet;
}

}  // namespace

Result<Fleet> Fleet::parse(std::string_view text) {
  constexpr Error kName(Errc::invalid_argument, "a fleet's name has 1 to 32 letters, digits, '-' and '_'");
  Fleet fleet;
  if (text.starts_with("nats://") || text.starts_with("tls://")) {
    return parse_nats(text);
  }
  if (text.starts_with("inproc:")) {
    fleet.kind = Kind::inproc;
    fleet.name = text.substr(7);
    return is_fleet_name(fleet.name) ? Result<Fleet>(fleet) : kName;
  }
  if (text == "local" || text.starts_with("local:")) {
    fleet.kind = Kind::local;
    fleet.name = text == "local" ? "default" : text.substr(6);
    return is_fleet_name(fleet.name) ? Result<Fleet>(fleet) : kName;
  }
  fleet.kind = Kind::tcp;
  fleet.tls = text.starts_with("tls+tcp://");
  if (!text.starts_with(fleet.scheme())) {
    return Error(Errc::invalid_argument,
                 "a fleet is inproc:NAME, local, local:NAME, tcp://HOST:PORT,..., tls+tcp://HOST:PORT,... or "
                 "nats://HOST:PORT,...");
  }
  text.remove_prefix(fleet.scheme().size());
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string endpoint = std::string(fleet.scheme()).append(text.substr(0, comma));
    WEFT_TRY(net::parse_endpoint(endpoint, false));
    fleet.peers.push_back(std::move(endpoint));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return fleet;
}

}  // namespace weft::topic

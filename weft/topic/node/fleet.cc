// SPDX-License-Identifier: MIT
#include "weft/topic/node/fleet.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "weft/nats/protocol/server_list.h"
#include "weft/net/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include "weft/topic/node/node.h"

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

ProcessFleets& ProcessFleets::instance() {
  static ProcessFleets* const fleets = new ProcessFleets();  // never destroyed: handles may outlive main()
  return *fleets;
}

Result<void> ProcessFleets::join(Node& node, const msg::ContextCore* context, const std::string& fleet) {
  const sync::LockGuard lock(mutex_);
  std::vector<Node*>& nodes = nodes_[{context, fleet}];
  nodes.push_back(&node);
  // Both have the connection before one of them sends a message. Otherwise its roster, which has another way to it,
  // would make the other one take that way, too.
  const std::span<Node* const> others(nodes.data(), nodes.size() - 1);
  for (Node* const other : others) {
    WEFT_TRY(node.link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner()));
  }
  for (Node* const other : others) {
    WEFT_TRY(other->handle_peer_opened(node.instance(), node.inproc_endpoint(), node.has_inner()));
  }
  if (!others.empty()) {
    node.exchange_soon(0, true);
  }
  return {};
}

Result<void> ProcessFleets::link_all(Node& node) {
  const sync::LockGuard lock(mutex_);
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& each) {
    return std::find(each.second.begin(), each.second.end(), &node) != each.second.end();
  });
  if (found == nodes_.end()) {
    return {};
  }
  for (Node* const other : found->second) {
    if (other != &node) {
      WEFT_TRY(node.link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner()));
    }
  }
  return {};
}

void ProcessFleets::leave(Node& node, const msg::ContextCore* context, const std::string& fleet) noexcept {
  const sync::LockGuard lock(mutex_);
  const auto found = nodes_.find({context, fleet});
  if (found == nodes_.end() || std::erase(found->second, &node) == 0) {
    return;
  }
  for (Node* const other : found->second) {
    other->handle_peer_closed(node.instance(), node.inproc_endpoint());
  }
  if (found->second.empty()) {
    nodes_.erase(found);
  }
}

namespace {
constexpr std::string_view kSuffix = ".sock";
}

Result<LocalDirectory> LocalDirectory::open(const std::string& runtime_directory, const std::string& fleet) {
  LocalDirectory directory;
  directory.path_ = runtime_directory.empty() ? sys::runtime_directory() : runtime_directory;
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  directory.path_ += "/topics";
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  directory.path_ += "/" + fleet;
  WEFT_TRY(sys::make_owned_directory(directory.path_));
  if (directory.path_.size() + 1 + 16 + kSuffix.size() > net::kMaxIpcPath) {
    return Error(Errc::invalid_argument, "the runtime directory's path is too long for a socket");
  }
  return directory;
}

std::string LocalDirectory::endpoint(std::uint64_t instance) const {
  return "ipc://" + path_ + "/" + instance_text(instance) + std::string(kSuffix);
}

std::uint64_t LocalDirectory::instance_at(std::string_view endpoint) const noexcept {
  constexpr std::string_view kScheme = "ipc://";
  if (!endpoint.starts_with(kScheme) || !endpoint.ends_with(kSuffix)) {
    return 0;
  }
  endpoint.remove_prefix(kScheme.size());
  endpoint.remove_suffix(kSuffix.size());
  if (endpoint.size() != path_.size() + 17 || !endpoint.starts_with(path_) || endpoint[path_.size()] != '/') {
    return 0;
  }
  return parse_instance(endpoint.substr(path_.size() + 1));
}

Result<std::vector<std::uint64_t>> LocalDirectory::listening() const {
  const std::vector<std::string> names = WEFT_TRY(sys::list_directory(path_, 64 * Fleet::kLocalHandlesMax));
  std::vector<std::uint64_t> instances;
  for (std::string_view name : names) {
    if (!name.ends_with(kSuffix)) {
      continue;
    }
    name.remove_suffix(kSuffix.size());
    const std::uint64_t instance = parse_instance(name);
    if (instance != 0 && is_listening(instance)) {
      instances.push_back(instance);
    }
  }
  return instances;
}

bool LocalDirectory::is_listening(std::uint64_t instance) const {
  const std::string file = endpoint(instance).substr(6);
  const auto address = sys::SocketAddress::from_path(file);
  if (!address) {
    return false;
  }
  // A name has one life: an instance's number is never used again. So a socket that nothing is bound to is left over,
  // or its handle is between its bind and now; the lock keeps that handle out.
  const sys::Fd lock = sys::lock_parent_directory(file);
  if (sys::is_unix_stream_bound(*address)) {
    return true;
  }
  const auto probe = sys::open_unix_connection(*address, {});
  if (probe || probe.error().os_errno() != ECONNREFUSED) {
    return probe.has_value();  // or, without descriptors, nothing is known
  }
  if (lock.valid()) {
    (void)sys::remove_file(file);
  }
  return false;
}

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#include "weft/msg/socket/endpoints.h"

#include <algorithm>
#include <iterator>

namespace weft::msg {

bool Endpoints::knows(const std::string& name) const noexcept {
  const auto [first, last] = names_.equal_range(name);
  return bound_.contains(name) || std::any_of(first, last, [](const auto& entry) { return entry.second != nullptr; });
}

bool Endpoints::is_connected() const noexcept {
  return std::any_of(names_.begin(), names_.end(), [](const auto& entry) { return entry.second != nullptr; });
}

Endpoints::Bound Endpoints::take_bound(const std::string& name) noexcept {
  const auto found = bound_.find(name);
  if (found == bound_.end()) {
    return {};
  }
  Bound bound = std::move(found->second);
  bound_.erase(found);
  return bound;
}

void Endpoints::add_tls_server(const std::shared_ptr<net::TlsServer>& server) {
  std::erase_if(tls_servers_, [](const auto& known) { return known.expired(); });
  tls_servers_.push_back(server);
}

std::vector<std::shared_ptr<net::TlsServer>> Endpoints::tls_servers() const {
  std::vector<std::shared_ptr<net::TlsServer>> servers;
  for (const auto& known : tls_servers_) {
    if (auto server = known.lock(); server != nullptr) {
      servers.push_back(std::move(server));
    }
  }
  return servers;
}

void Endpoints::add_name(ConnectedPipe& connected, ConnectedNames& entry) noexcept {
  connected.name = entry.begin();  // stays valid
  names_.merge(entry);
}

void Endpoints::forget_name(ConnectedPipe& connected) noexcept {
  if (connected.name) {
    names_.erase(*connected.name);
    connected.name.reset();
  }
}

void Endpoints::give_up(ConnectedPipe& connected) noexcept {
  if (connected.name) {
    (*connected.name)->second = nullptr;
    connected.name.reset();
  }
}

Pipe& Endpoints::add_inproc(std::unique_ptr<Pipe>& pipe, const std::string& name) {
  LinkNames entry;
  if (!name.empty()) {
    entry.emplace(name, pipe->link());
  }
  InprocPipe& owned = inproc_pipes_[pipe.get()];
  if (!entry.empty()) {
    owned.name = entry.begin();  // stays valid
    link_names_.merge(entry);
  }
  owned.pipe = std::move(pipe);
  owned.pipe->link()->pipe[owned.pipe->link_end()] = owned.pipe.get();
  inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
  return *owned.pipe;
}

void Endpoints::erase_inproc(const Pipe& pipe) noexcept {
  pipe.link()->pipe[pipe.link_end()] = nullptr;
  inproc_pipes_.erase(&pipe);
  inproc_count_.store(inproc_pipes_.size(), std::memory_order_relaxed);
}

std::unique_ptr<Pipe> Endpoints::take_inproc(Pipe* pipe) noexcept {
  const auto found = inproc_pipes_.find(pipe);
  if (found == inproc_pipes_.end()) {
    return nullptr;
  }
  std::unique_ptr<Pipe> taken = std::move(found->second.pipe);
  if (found->second.name) {
    link_names_.erase(*found->second.name);
  }
  erase_inproc(*taken);
  return taken;
}

bool Endpoints::disconnect(const std::string& name, Disconnected& into) {
  const auto [first, last] = names_.equal_range(name);
  const auto [first_link, last_link] = link_names_.equal_range(name);
  const bool any = first != last || first_link != last_link;
  into.connections.reserve(static_cast<std::size_t>(std::distance(first, last)));
  into.links.reserve(static_cast<std::size_t>(std::distance(first_link, last_link)));
  for (auto it = first; it != last; ++it) {
    if (it->second != nullptr) {
      at(it->second.get()).name.reset();
      into.connections.push_back(std::move(it->second));
    }
  }
  for (auto it = first_link; it != last_link; ++it) {
    if (const auto owned = inproc_pipes_.find(it->second->pipe[0]); owned != inproc_pipes_.end()) {
      owned->second.name.reset();
    }
    into.links.push_back(std::move(it->second));
  }
  names_.erase(first, last);
  link_names_.erase(first_link, last_link);
  return any;
}

Endpoints::InprocPipes Endpoints::close() noexcept {
  closed_ = true;
  for (auto& [connection, connected] : connections_) {
    connected.name.reset();
  }
  for (auto& [pipe, owned] : inproc_pipes_) {
    pipe->link()->pipe[pipe->link_end()] = nullptr;
    owned.name.reset();
  }
  names_.clear();
  link_names_.clear();
  inproc_count_.store(0, std::memory_order_relaxed);
  return std::exchange(inproc_pipes_, {});
}

}  // namespace weft::msg

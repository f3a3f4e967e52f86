// SPDX-License-Identifier: MIT
#include "weft/msg/message/peer_properties.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft::msg {

namespace {

struct Known {
  std::mutex mutex;
  PeerId last = 0;
  std::unordered_map<PeerId, zmtp::Metadata> peers;  // a value keeps its address until it is erased
  std::deque<PeerId> gone;
};

Known& known() {
  static auto* const all = new Known;  // messages may outlive static destructors
  return *all;
}

}  // namespace

PeerId remember_peer(zmtp::Metadata properties) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  do {
    ++all.last;
  } while (all.last == 0 || all.peers.contains(all.last));
  all.peers.emplace(all.last, std::move(properties));
  return all.last;
}

void peer_gone(PeerId peer) noexcept {
  if (peer == 0) {
    return;
  }
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.gone.push_back(peer);
  if (all.gone.size() > kGonePeersMax) {
    all.peers.erase(all.gone.front());
    all.gone.pop_front();
  }
}

const char* peer_property(PeerId peer, std::string_view name) noexcept {
  if (peer == 0) {
    return nullptr;
  }
  if (name == "Routing-Id") {
    name = "Identity";  // the name of the property in ZMTP
  }
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  const auto found = all.peers.find(peer);
  if (found == all.peers.end()) {
    return nullptr;
  }
  for (const auto& [key, value] : found->second) {
    if (key == name) {
      return value.c_str();
    }
  }
  return nullptr;
}

}  // namespace weft::msg

// SPDX-License-Identifier: MIT
#include "weft/msg/message/peer_properties.h"

#include <cstring>
#include <new>
#include <unordered_map>

#include "weft/base/list.h"
#include "weft/sync/lock.h"

namespace weft::msg {

namespace {

// A property in a buffer: this head, the name, the value, a zero byte. A head with an empty name ends the list.
struct PropertyHead {
  std::uint32_t name_size;
  std::uint32_t value_size;
};

struct Entry : ListHook {  // on the list of those that are gone
  explicit Entry(PeerId number) noexcept : id(number) {}
  // The memory of this peer; the constant is for the entry and its place in the table.
  [[nodiscard]] std::size_t bytes() const noexcept { return properties->capacity() + sizeof(mem::Buffer) + 128; }

  const PeerId id;
  PeerProperties properties;
};

struct Known {
  sync::StdMutex mutex;
  PeerId last WEFT_GUARDED_BY(mutex) = 0;
  std::unordered_map<PeerId, Entry> peers WEFT_GUARDED_BY(mutex);
  List<Entry> gone WEFT_GUARDED_BY(mutex);  // the longest gone first
  std::size_t gone_bytes WEFT_GUARDED_BY(mutex) = 0;
};

Known& known() {
  static auto* const all = new Known;  // messages may outlive static destructors
  return *all;
}

// Null when memory ran out.
PeerProperties pack(const zmtp::Metadata& properties) noexcept {
  std::size_t size = sizeof(PropertyHead);
  for (const auto& [name, value] : properties) {
    size += name.empty() ? 0 : sizeof(PropertyHead) + name.size() + value.size() + 1;
  }
  auto packed = PeerProperties::adopt(mem::Buffer::make(size));
  if (packed == nullptr) {
    return packed;
  }
  std::uint8_t* at = packed->data();
  const auto put = [&at](const void* bytes, std::size_t count) {
    std::memcpy(at, bytes, count);
    at += count;
  };
  for (const auto& [name, value] : properties) {
    if (!name.empty()) {
      const PropertyHead head{static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())};
      put(&head, sizeof head);
      put(name.data(), name.size());
      put(value.c_str(), value.size() + 1);
    }
  }
  const PropertyHead end{};
  put(&end, sizeof end);
  return packed;
}

}  // namespace

std::shared_ptr<const KnownPeer> KnownPeer::remember(const zmtp::Metadata& properties) noexcept {
  PeerProperties packed = pack(properties);
  if (packed == nullptr) {
    return nullptr;
  }
  Known& all = known();
  try {
    const auto peer = std::make_shared<KnownPeer>(PeerId(0));
    const sync::LockGuard lock(all.mutex);
    do {
      ++all.last;
    } while (all.last == 0 || all.peers.contains(all.last));
    all.peers.try_emplace(all.last, all.last).first->second.properties = std::move(packed);
    peer->id_ = all.last;
    return peer;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

KnownPeer::~KnownPeer() {
  if (id_ == 0) {
    return;
  }
  Known& all = known();
  const sync::LockGuard lock(all.mutex);
  Entry& entry = all.peers.find(id_)->second;
  all.gone.push_back(entry);
  all.gone_bytes += entry.bytes();
  while (all.gone_bytes > kGonePeerBytesMax) {
    Entry& first = *all.gone.pop_front();
    all.gone_bytes -= first.bytes();
    all.peers.erase(first.id);
  }
}

bool is_known(PeerId peer) noexcept {
  Known& all = known();
  const sync::LockGuard lock(all.mutex);
  const auto found = all.peers.find(peer);
  return found != all.peers.end() && !found->second.hooked();
}

PeerProperties properties_of(PeerId peer) noexcept {
  if (peer == 0) {
    return {};
  }
  Known& all = known();
  const sync::LockGuard lock(all.mutex);
  const auto found = all.peers.find(peer);
  return found == all.peers.end() ? PeerProperties() : found->second.properties;
}

const char* find_property(mem::Buffer& properties, std::string_view name) noexcept {
  if (name == "Routing-Id") {
    name = "Identity";  // the name of the property in ZMTP
  }
  const std::uint8_t* at = properties.data();
  for (;;) {
    PropertyHead head{};
    std::memcpy(&head, at, sizeof head);
    if (head.name_size == 0) {
      return nullptr;
    }
    const char* const text = reinterpret_cast<const char*>(at + sizeof head);
    if (std::string_view(text, head.name_size) == name) {
      return text + head.name_size;
    }
    at += sizeof head + head.name_size + head.value_size + 1;
  }
}

}  // namespace weft::msg

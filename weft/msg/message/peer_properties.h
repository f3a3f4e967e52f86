// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weft/base/intrusive_ptr.h"
#include "weft/mem/buffer.h"
#include "weft/zmtp/local_end.h"

namespace weft::msg {

// The properties of the peer of each connection, by number. A message carries the number, four bytes, and no reference.
// A message that was asked for a property holds a reference from then on.
// Owner: the process. Affinity: any thread.
// Cost: a lock and two allocations for each connection; a lock and an allocation for the first question to a message;
// nothing for a message that is not asked.
// Invariants:
// 1. The table keeps the properties of a peer while a KnownPeer exists: as long as the connection, and as long as its
//    socket holds messages that came over it.
// 2. Of peers that are gone, the table keeps the latest, at most kGonePeerBytesMax bytes.
// 3. Properties are immutable. They end when neither the table nor a message refers to them.
using PeerId = std::uint32_t;  // 0: no peer; a number is not used again for four thousand million connections
using PeerProperties = IntrusivePtr<mem::Buffer>;
inline constexpr std::size_t kGonePeerBytesMax = 4 * 1024 * 1024;

// KnownPeer: a peer whose properties the table keeps.
class KnownPeer {
 public:
  // Null when memory ran out.
  [[nodiscard]] static std::shared_ptr<const KnownPeer> remember(const zmtp::Metadata& properties) noexcept;
  explicit KnownPeer(PeerId id) noexcept : id_(id) {}  // for remember()
  KnownPeer(const KnownPeer&) = delete;
  KnownPeer& operator=(const KnownPeer&) = delete;
  ~KnownPeer();

  [[nodiscard]] PeerId id() const noexcept { return id_; }

 private:
  PeerId id_;
};

// Returns null if the table does not know the peer, or no longer.
[[nodiscard]] PeerProperties properties_of(PeerId peer) noexcept;
// Whether a KnownPeer of that number exists: its connection stands, or its socket holds messages that came over it.
[[nodiscard]] bool is_known(PeerId peer) noexcept;
// Zero-terminated; null when there is no such property. Valid as long as `properties`.
[[nodiscard]] const char* find_property(mem::Buffer& properties, std::string_view name) noexcept;

}  // namespace weft::msg

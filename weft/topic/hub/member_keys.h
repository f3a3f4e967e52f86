// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/context.h"
#include "weft/msg/socket.h"
#include "weft/sync/lock.h"

namespace weft::topic {

// KeyList: the public keys of a hub's members. Affinity: any thread.
class KeyList {
 public:
  static constexpr std::size_t kKeysMax = 65'536;
  static constexpr std::size_t kKeySize = 32;

  // The keys of every handshake from now on. After a failure the keys before stay. Errors: invalid_argument (no key, or
  // one that has not 32 bytes); resource_exhausted (kKeysMax, no memory).
  [[nodiscard]] Result<void> replace(const std::vector<std::string>& keys);
  [[nodiscard]] bool contains(std::string_view key) const;

 private:
  mutable sync::StdMutex mutex_;
  std::set<std::string, std::less<>> keys_ WEFT_GUARDED_BY(mutex_);
};

// MemberKeys: the authenticator (RFC 27) of a hub that listens with CURVE. It admits the members whose public keys it
// has, and refuses every other client of its context.
// Owner: the hub. Affinity: the hub's thread. Cost: a socket, and 32 bytes a key.
class MemberKeys {
 public:
  static constexpr std::string_view kDomain = "weft hub";

  // Errors: address_in_use (the context has an authenticator); those of a socket.
  [[nodiscard]] static Result<MemberKeys> make(Context& context, std::shared_ptr<const KeyList> keys);

  [[nodiscard]] Socket& socket() noexcept { return socket_; }  // readable: a question waits
  void answer();                                               // the questions that wait, at most a turn's

 private:
  MemberKeys(Socket socket, std::shared_ptr<const KeyList> keys) noexcept;
  [[nodiscard]] bool admits(const std::vector<Message>& question) const;

  Socket socket_;  // a REP
  std::shared_ptr<const KeyList> keys_;
};

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/context.h"
#include "weft/msg/socket.h"

namespace weft::topic {

// MemberKeys: the authenticator (RFC 27) of a hub that listens with CURVE. It admits the members whose public keys it
// has, and refuses every other client of its context.
// Owner: the hub. Affinity: the hub's thread. Cost: a socket, and 32 bytes a key.
class MemberKeys {
 public:
  static constexpr std::size_t kKeysMax = 65'536;
  static constexpr std::size_t kKeySize = 32;
  static constexpr std::string_view kDomain = "weft hub";

  // Errors: invalid_argument (no key, or one that has not 32 bytes); resource_exhausted (kKeysMax); address_in_use (the
  // context has an authenticator); those of a socket.
  [[nodiscard]] static Result<MemberKeys> make(Context& context, const std::vector<std::string>& keys);

  [[nodiscard]] Socket& socket() noexcept { return socket_; }  // readable: a question waits
  void answer();                                               // the questions that wait, at most a turn's

 private:
  MemberKeys(Socket socket, std::set<std::string, std::less<>> keys) noexcept;
  [[nodiscard]] bool admits(const std::vector<Message>& question) const;

  Socket socket_;  // a REP
  std::set<std::string, std::less<>> keys_;
};

}  // namespace weft::topic

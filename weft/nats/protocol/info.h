// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/mem/secret.h"
#include "weft/nats/protocol/limits.h"

namespace weft::nats {

// ServerInfo: the fields of INFO that a client uses. A value.
struct ServerInfo {
  std::string server_id{};
  std::string server_name{};
  std::string version{};
  std::int64_t proto = 0;
  std::uint64_t max_payload = kMessageMaxDefault;  // at most kMessageMax
  std::uint64_t client_id = 0;
  bool headers = false;
  bool auth_required = false;
  bool tls_required = false;
  bool tls_available = false;
  bool lame_duck = false;
  bool jetstream = false;
  std::string nonce{};                      // at most kNonceMax bytes
  std::vector<std::string> connect_urls{};  // at most kServersMax, each of at most kServerTextMax bytes
};

inline constexpr unsigned kInfoDepthMax = 64;

// Reads the JSON of INFO. Unknown fields are skipped; a known one of another type is an error. Never recurses.
// Errors: protocol_error (not JSON, not an object, a value beyond its bound, more than kInfoDepthMax deep);
// resource_exhausted (no memory); not_supported (this build has no nlohmann/json).
[[nodiscard]] Result<ServerInfo> read_info(std::string_view json);

// ConnectFields: the fields of CONNECT. The texts are views that live during write_connect().
struct ConnectFields {
  std::string_view name{};
  bool echo = true;
  bool tls = false;
  bool headers = true;  // with them the server answers a request without a responder by status 503
  std::string_view user{};
  std::string_view password{};
  std::string_view token{};
  std::string_view jwt{};
  std::string_view nkey{};       // the public key
  std::string_view signature{};  // of the nonce, in base64
};

// The JSON of CONNECT, one line. The names and texts are escaped; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] Secret write_connect(const ConnectFields& fields);

}  // namespace weft::nats

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/error.h"

namespace weft::net::ws {

inline constexpr std::size_t kUpgradeHeadMax = 8 * 1024;  // bytes of a request's or an answer's head
inline constexpr std::size_t kUpgradeHeadersMax = 64;     // header lines in it

// Upgrade: one end of the HTTP/1.1 exchange that turns a stream of bytes into a WebSocket (RFC 6455 section 4), without
// I/O: bytes in, bytes out. The head is read by net/http.
// Owner: a stream, until done(). Affinity: one thread at a time. Cost: the bytes of the head; each is scanned once.
// Invariants:
// 1. The outcome depends on the bytes, never on how they were cut. It takes no byte after the head.
// 2. The first fault stays. The output offered with it reports it to the peer: flush it, then close.
class Upgrade {
 public:
  // The server's end takes the first of the client's sub-protocols that is one of `protocols`. The path and the host
  // that the client asks for may be any.
  static Upgrade as_server(std::vector<std::string> protocols);
  // The client's end offers its request. `key`: of accept_key.h, fresh for each connection.
  static Upgrade as_client(std::string_view host, std::string_view path, std::vector<std::string> protocols,
                           std::string key);
  Upgrade(Upgrade&&) noexcept;
  Upgrade& operator=(Upgrade&&) noexcept;
  ~Upgrade();

  [[nodiscard]] std::size_t handle_input(Bytes input);  // the number of bytes taken
  [[nodiscard]] std::string take_output();

  [[nodiscard]] bool done() const noexcept;
  [[nodiscard]] const std::optional<Error>& fault() const noexcept;  // connection_failed if the server refused, for now
  [[nodiscard]] const std::string& protocol() const noexcept;        // the one that both speak; once done()

 private:
  class Parser;
  explicit Upgrade(std::unique_ptr<Parser> parser) noexcept;

  std::unique_ptr<Parser> parser_;
};

}  // namespace weft::net::ws

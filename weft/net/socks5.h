// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/mem/secret.h"
#include "weft/net/stream/endpoint.h"

namespace weft::net {

// A SOCKS5 proxy, and the login that the dialer presents to it. A value.
struct Socks5Proxy {
  Endpoint endpoint;     // tcp
  std::string username;  // up to 255 bytes; empty: without a login
  Secret password;       // up to 255 bytes
};
// `address`: "host:port", "[::1]:port", or with an address of this host before that, "source:port;host:port".
// malformed_endpoint with a text that says which rule was broken.
[[nodiscard]] Result<Socks5Proxy> parse_socks5_proxy(std::string_view address, std::string username,
                                                     std::string password);

// Socks5: the client's side of requesting a connection from a proxy (RFC 1928, RFC 1929), without I/O: bytes
// in, bytes out.
// Owner: the Dialer. Affinity: one thread at a time. Cost: some hundred bytes.
// Invariants:
// 1. It never takes a byte beyond the proxy's last reply: the later bytes come from the endpoint itself.
// 2. The outcome depends on the bytes, never on how they were cut. The first wrong byte is a fault at once.
// 3. The first fault stays until start().
// 4. The password is overwritten once it was sent, or is not needed.
class Socks5 {
 public:
  Socks5() = default;
  Socks5(const Socks5&) = delete;
  Socks5& operator=(const Socks5&) = delete;
  ~Socks5() { wipe(output_); }

  // `host`: an address, or a name for the proxy to look up; up to 253 bytes.
  void start(const Socks5Proxy& proxy, std::string_view host, std::uint16_t port);

  [[nodiscard]] Bytes pending_output() const noexcept { return Bytes(output_).subspan(output_sent_); }
  void consume_output(std::size_t size) noexcept;
  [[nodiscard]] std::size_t wanted() const noexcept;  // missing bytes of the current reply; 0 at the end
  void handle_input(Bytes input);                     // at most wanted()

  [[nodiscard]] bool done() const noexcept { return step_ == Step::done; }  // the stream now reaches the endpoint
  [[nodiscard]] const std::optional<Error>& fault() const noexcept { return fault_; }

 private:
  enum class Step : std::uint8_t { method, login, reply, done };

  void handle_reply();
  void choose_method(std::uint8_t method);
  void ask();

  std::string username_;
  Secret password_;  // until it is in the output
  std::vector<std::uint8_t> request_;
  std::vector<std::uint8_t> output_;
  std::size_t output_sent_ = 0;
  std::vector<std::uint8_t> input_;  // of the current reply
  Step step_ = Step::done;
  std::optional<Error> fault_;
};

}  // namespace weft::net

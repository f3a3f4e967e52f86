// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/mem/secret.h"

namespace weft::nats {

// ServerUrl: where a server is, and how it is entered. A value.
struct ServerUrl {
  std::string host{};
  std::uint16_t port = 4222;
  bool tls = false;    // tls://: TLS even if the server does not require it
  std::string user{};  // of "user:password@"; a user alone is a token
  Secret password{};
  bool given = true;  // by the program; otherwise by connect_urls of a server

  [[nodiscard]] std::string text() const;      // "nats://host:port", without the password
  [[nodiscard]] std::string endpoint() const;  // "tcp://host:port"
};

// "host", "host:port", "nats://user:password@host:port", "tls://[::1]:4222". `%XX` in the user and the password is the
// byte. Errors: invalid_argument, whose text has the broken rule; not_supported (another scheme).
[[nodiscard]] Result<ServerUrl> parse_server_url(std::string_view text);

// ServerList: the servers that a client may connect to, and the next one of them.
// Owner: a client. Affinity: a value. Cost: at most kServersMax servers.
// Invariants:
//   1. Servers that the program gave are never removed. A server of connect_urls is removed when a server's newer list
//      lacks it.
//   2. next() returns each server once before it returns one again, always in the same order: a client that leaves a
//      server tries all others before it returns to it.
class ServerList {
 public:
  // A comma stands between two URLs. Errors: those of parse_server_url(); invalid_argument (no URL, or too many).
  [[nodiscard]] static Result<ServerList> make(std::string_view urls, std::uint64_t seed, bool shuffle = true);

  // Takes the list of a server's INFO in the place of the one before. Texts that are not URLs are skipped. New servers
  // are tls:// if the server that sent the list was entered by TLS.
  void learn(const std::vector<std::string>& connect_urls, bool tls);
  // The next server to try. Valid until the next call of next() or learn().
  [[nodiscard]] const ServerUrl& next() noexcept;
  // Whether each server was returned since the last full turn: a wait comes before the next one.
  [[nodiscard]] bool turn_is_over() const noexcept { return next_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }

 private:
  ServerList(std::uint64_t seed, bool shuffle) noexcept : random_(seed), shuffle_(shuffle) {}
  void shuffle(std::size_t from) noexcept;
  [[nodiscard]] bool has(const ServerUrl& url) const noexcept;

  std::vector<ServerUrl> servers_;
  std::size_t next_ = 0;
  Random random_;
  bool shuffle_;
};

}  // namespace weft::nats

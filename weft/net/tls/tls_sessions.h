// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/time.h"
#include "weft/sync/lock.h"
#include "weft/sys/clock.h"

struct ssl_ctx_st;  // OpenSSL's
struct ssl_st;
struct ssl_session_st;

namespace weft::net {

struct FreeTlsSession {
  void operator()(ssl_session_st* session) const noexcept;
};
using TlsSession = std::unique_ptr<ssl_session_st, FreeTlsSession>;

// TlsSessions: the tickets of a client's earlier connections. With one, a later connection to the same name resumes:
// without a certificate and a signature of the server. A resumption verifies no certificate, so a session is used only
// as long as the server's certificate is valid, for kAgeMax at most, and once (RFC 8446, C.4).
// Owner: the TlsContext of a TlsClient. Affinity: any thread. Cost: a lock, and a walk through the names.
// Invariant: at most kNamesMax names, with kSessionsMax sessions of at most kBytesMax each.
class TlsSessions {
 public:
  using WallTime = std::chrono::sys_time<Duration>;
  static constexpr std::size_t kNamesMax = 64;
  static constexpr std::size_t kSessionsMax = 2;
  static constexpr std::size_t kBytesMax = 16 * 1024;  // of a ticket and the server's certificates
  static constexpr Duration kAgeMax = std::chrono::hours(1);

  TlsSessions() = default;
  TlsSessions(const TlsSessions&) = delete;
  TlsSessions& operator=(const TlsSessions&) = delete;
  ~TlsSessions() = default;

  // Keeps the sessions of the connections of this SSL_CTX from now on. The object outlives it.
  void serve(ssl_ctx_st* ssl_ctx) noexcept;
  // Before the handshake of a connection whose server has this name: resumes a session of the name, if there is one,
  // and keeps its tickets for the name. Returns false if there is no memory.
  [[nodiscard]] bool attach(ssl_st* ssl, const std::string& name, WallTime now = sys::wall_now());
  [[nodiscard]] std::size_t size() const;

 private:
  struct Name {
    std::string text;
    std::vector<TlsSession> sessions;  // the oldest first
  };
  static int take_session(ssl_st* ssl, ssl_session_st* session) noexcept;
  void keep(std::string_view name, TlsSession session);
  [[nodiscard]] TlsSession take(std::string_view name, WallTime now);
  [[nodiscard]] std::list<Name>::iterator find(std::string_view name) WEFT_REQUIRES(mutex_);

  mutable sync::StdMutex mutex_;
  std::list<Name> names_ WEFT_GUARDED_BY(mutex_);  // the one that was used last is the first
};

}  // namespace weft::net

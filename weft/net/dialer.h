// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/endpoint.h"
#include "weft/net/resolver.h"
#include "weft/net/socks5.h"
#include "weft/net/stream.h"
#include "weft/sys/poller.h"
#include "weft/sys/socket.h"

namespace weft::net {

struct TransportRow;

enum class Progress : std::uint8_t {
  connected,  // take_stream()
  pending,    // watch fd() until it is ready for interest() or failed, then finish()
  resolving,  // on_resolved will be called; then finish()
};

// Dialer: attempts to connect to one endpoint, one attempt at a time; when to try again is the owner's (Backoff).
// Owner: the connecting socket. Affinity: one thread at a time; on_resolved runs on a resolver thread.
// Invariants: 1. no call waits: names are looked up by the Resolver, at every attempt anew. 2. an attempt tries every
// address in turn before it fails. 3. finish(), begin() and cancel() may close fd(): take it out of the poller before,
// and put fd() in after each `pending`. 4. after an error, cancel() or take_stream() the dialer is idle. 5. with a
// proxy, its addresses are tried, and nothing is read that comes from behind it; the endpoint's name is the proxy's to
// look up.
class Dialer {
 public:
  Dialer(Endpoint endpoint, const sys::SocketOptions& options, Resolver* resolver = nullptr);  // null: shared()
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer() { cancel(); }

  // Called once per begin() that answered `resolving`, from another thread, possibly before begin() returns: hand over
  // to the owner's thread and call finish() there. After cancel() returned it is not called. Set before begin().
  void on_resolved(std::function<void()> callback) { on_resolved_ = std::move(callback); }

  // Before begin(). For tcp.
  void set_proxy(Socks5Proxy proxy) { proxy_ = std::move(proxy); }

  [[nodiscard]] Result<Progress> begin();               // cancels an attempt under way
  [[nodiscard]] Result<Progress> finish();              // goes on; too early, it answers what it still waits for
  [[nodiscard]] std::unique_ptr<Stream> take_stream();  // null unless connected
  void cancel();                                        // idempotent

  [[nodiscard]] int fd() const noexcept {  // -1 while resolving or idle
    return stream_ != nullptr ? stream_->fd() : connecting_.fd.fd();
  }
  [[nodiscard]] sys::Interest interest() const noexcept;
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  enum class State : std::uint8_t { idle, resolving, connecting, asking_proxy, connected };
  struct LookupResult;

  Result<Progress> begin_lookup();
  Result<Progress> finish_lookup();
  Result<Progress> try_next_address();
  Result<Progress> try_address(const sys::SocketAddress& address);
  Result<Progress> finish_connect();
  Result<Progress> ask_proxy();
  [[nodiscard]] const Endpoint& hop() const noexcept { return proxy_ ? proxy_->endpoint : endpoint_; }
  Error fail(Error error);

  Endpoint endpoint_;
  sys::SocketOptions options_;
  const TransportRow& row_;
  Resolver* resolver_;
  std::function<void()> on_resolved_;
  std::optional<Socks5Proxy> proxy_;

  State state_ = State::idle;
  Resolver::RequestId request_ = 0;
  std::shared_ptr<LookupResult> lookup_;  // shared with the callback under way
  std::vector<sys::SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  Error last_error_;
  sys::Connecting connecting_;
  std::unique_ptr<Stream> stream_;  // from the moment it is connected
  Socks5 socks_;
};

}  // namespace weft::net

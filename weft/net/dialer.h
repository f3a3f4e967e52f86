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
  connected,  // call take_stream()
  pending,    // watch fd() until it is ready for interest() or failed, then call finish()
  resolving,  // the resolver will call on_resolved; then call finish()
};

// Dialer: attempts to connect to one endpoint, one attempt at a time. The owner decides when to try again
// (Backoff).
// Owner: the connecting socket. Affinity: one thread at a time; on_resolved runs on a resolver thread.
// Invariants:
// 1. No call waits: the Resolver looks names up, anew for every attempt.
// 2. An attempt tries every address in turn before it fails.
// 3. finish(), begin() and cancel() may close fd(): remove it from the poller before the call, and add fd()
//    after each `pending`.
// 4. After an error, cancel() or take_stream() the dialer is idle.
// 5. With a proxy, the dialer tries the proxy's addresses and reads no byte from behind the proxy. The proxy
//    looks up the endpoint's name.
class Dialer {
 public:
  Dialer(Endpoint endpoint, const sys::SocketOptions& options, Resolver* resolver = nullptr);  // null: shared()
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer() { cancel(); }

  // Called once per begin() that returned `resolving`, on another thread, possibly before begin() returns.
  // The callback hands over to the owner's thread, which calls finish(). No call comes after cancel()
  // returned. Set it before begin().
  void on_resolved(std::function<void()> callback) { on_resolved_ = std::move(callback); }

  // Set it before begin(). For tcp.
  void set_proxy(Socks5Proxy proxy) { proxy_ = std::move(proxy); }

  [[nodiscard]] Result<Progress> begin();   // cancels an attempt under way
  [[nodiscard]] Result<Progress> finish();  // continues; when called too early, returns the state it still waits for
  [[nodiscard]] std::unique_ptr<Stream> take_stream();  // null unless connected
  void cancel();                                        // idempotent

  [[nodiscard]] int fd() const noexcept {  // -1 while resolving or idle
    return stream_ != nullptr ? stream_->fd() : connecting_.fd.fd();
  }
  [[nodiscard]] bool resolving() const noexcept { return state_ == State::resolving; }
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
  std::unique_ptr<Stream> stream_;  // set once it is connected
  Socks5 socks_;
};

}  // namespace weft::net

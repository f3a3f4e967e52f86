// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/resolver.h"
#include "weft/net/socks5.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/address.h"
#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/fd.h"
#include "weft/sys/poller.h"
#include "weft/sys/socket.h"

namespace weft::net {

struct TransportRow;

enum class Progress : std::uint8_t {
  connected,  // call take_stream()
  pending,    // watch fd() until it is ready for interest() or failed, then call finish()
  resolving,  // the resolver will call on_resolved; then call finish()
};

// Dialer: attempts to connect to one endpoint, one attempt at a time. The owner decides the time of the next attempt
// (Backoff).
// Owner: the connecting socket. Affinity: one thread at a time; on_resolved runs on a resolver thread.
// Cost: a descriptor; for a name with several addresses one for each that is under way, and two more.
// Invariants:
// 1. No call waits: the Resolver looks names up, once more for every attempt.
// 2. An attempt tries every address before it fails, IPv6 and IPv4 in turns (RFC 8305): the next one begins when one
//    has failed, or attempt_delay after the one before. Up to kAtOnceMax are under way. The first one that is connected
//    counts.
// 3. finish(), begin() and cancel() may close fd(): remove it from the poller before the call, and add fd()
//    after each `pending`.
// 4. After an error, cancel() or take_stream() the dialer is idle.
// 5. With a proxy, the dialer tries the proxy's addresses and reads no byte that follows the proxy's reply. The proxy
//    looks up the endpoint's name.
// 6. Without descriptors for more than one address at a time, the next one begins when the one before has failed.
class Dialer {
 public:
  static constexpr Duration kAttemptDelay = std::chrono::milliseconds(250);  // RFC 8305 section 5
  static constexpr std::size_t kAtOnceMax = 8;

  Dialer(Endpoint endpoint, const sys::SocketOptions& options, Resolver* resolver = nullptr);  // null: shared()
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer() { cancel(); }

  // Called once for each begin() that returned `resolving`, on another thread, possibly before begin() returns. The
  // callback notifies the owner's thread, which calls finish(). After cancel() has returned, the callback is not
  // called. Set it before begin().
  void on_resolved(std::function<void()> callback) { on_resolved_ = std::move(callback); }

  // Set it before begin(). For tcp.
  void set_proxy(Socks5Proxy proxy) { proxy_ = std::move(proxy); }

  // Set it before begin().
  void set_attempt_delay(Duration delay) noexcept { attempt_delay_ = delay; }

  [[nodiscard]] Result<Progress> begin();  // cancels an attempt under way
  [[nodiscard]] Result<Progress>
  finish();  // continues; if called too early, returns the state for which it still waits
  [[nodiscard]] std::unique_ptr<ByteStream> take_stream();  // null unless connected
  void cancel();                                            // idempotent

  // The descriptor to watch; -1 while resolving or idle.
  [[nodiscard]] int fd() const noexcept;
  [[nodiscard]] bool resolving() const noexcept { return state_ == State::resolving; }
  [[nodiscard]] sys::Interest interest() const noexcept;
  // The number of addresses that the attempt has tried so far, and the last of them, which stays after an error. Empty
  // if no name was looked up, or if the name is a proxy's.
  [[nodiscard]] std::size_t tried() const noexcept { return next_address_; }
  [[nodiscard]] const std::optional<sys::SocketAddress>& tried_address() const noexcept { return tried_address_; }
  [[nodiscard]] int tried_fd() const noexcept;  // -1: none under way
  // The time between the begin of the first address of the attempt and the begin of the last.
  [[nodiscard]] Duration time_to_last_address() const noexcept {
    return attempt_delay_ * (addresses_.empty() ? 0 : static_cast<int>(addresses_.size()) - 1);
  }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  enum class State : std::uint8_t { idle, resolving, connecting, asking_proxy, connected };
  struct LookupResult;
  struct Try {
    sys::Fd fd;
    sys::SocketAddress to;
    bool waited_for = false;  // `waiting_` waits for it
  };
  // One descriptor for all that are under way, and the time of the next one.
  struct Waiting {
    sys::EpollSet set;
    sys::TimerFd next;
  };

  Result<Progress> begin_lookup();
  Result<Progress> finish_lookup();
  Result<Progress> try_addresses();
  [[nodiscard]] bool begin_try();
  void end_try(std::size_t which) noexcept;
  [[nodiscard]] Result<void> await_tries();
  Result<Progress> win(std::size_t which);
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
  std::optional<sys::SocketAddress> tried_address_;
  bool looked_up_ = false;  // the addresses are those of a name
  Duration attempt_delay_ = kAttemptDelay;
  Instant next_at_ = kNever;
  Error last_error_;
  std::vector<Try> tries_;              // under way, the first that began in front
  std::optional<Waiting> waiting_;      // for more than one; none: the tries are made one after the other
  std::unique_ptr<ByteStream> stream_;  // set once it is connected
  Socks5 socks_;
};

}  // namespace weft::net

// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::net {

// What a stream that is more than a socket has in hand. The defaults are a socket's.
struct StreamState {
  bool established = true;  // its handshake is over: write() takes something
  bool ended = false;       // behind what read() gave lies an end or a failure, which no event announces
  bool unsent = false;  // it holds bytes that the socket did not take: write() again, if need be nothing, when it can
  Error failure{};      // after `failed`: why, unless the socket itself failed
};

// Stream: the seam between a session and its byte transport: a reliable, ordered, two-way stream of bytes.
// Owner: the session; destruction closes. Called once per batch, never per message.
// Affinity: one reader thread and one writer thread at a time, which may differ; the rest any thread.
// Invariants: 1. no call waits. 2. after end_of_stream every read gives end_of_stream; after `failed` the stream is
// only good for destruction. 3. fd() stays the same and can be polled until destruction.
class Stream {
 public:
  virtual ~Stream() = default;

  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual sys::IoResult read(std::span<MutableBytes> into) = 0;  // the first 4 are used
  [[nodiscard]] virtual sys::IoResult write(std::span<const Bytes> from) = 0;  // the first 64 are used
  virtual void shutdown_write() = 0;                                           // the peer reads end_of_stream
  [[nodiscard]] virtual std::string peer_address() const = 0;  // "192.0.2.1:4711", "/path", "@name"; empty if unknown
  [[nodiscard]] virtual StreamState state() const noexcept { return {}; }
};

// The Stream of a connected socket of any family.
[[nodiscard]] std::unique_ptr<Stream> make_socket_stream(sys::Fd fd);

}  // namespace weft::net

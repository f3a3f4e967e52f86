// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::net {

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
};

// The Stream of a connected socket of any family.
[[nodiscard]] std::unique_ptr<Stream> make_socket_stream(sys::Fd fd);

}  // namespace weft::net

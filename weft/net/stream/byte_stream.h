// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/sys/fd.h"
#include "weft/sys/socket.h"

namespace weft::net {

// Bytes of a peer that the layers of a stream hold together until admit(), besides OpenSSL's memory for a connection.
inline constexpr std::size_t kUnadmittedMax = 16 * 1024;

// The state of a stream that is more than a socket. The defaults are a socket's.
struct StreamState {
  bool established = true;  // the handshake is over: write() takes bytes
  bool ended = false;       // after the bytes of read() is an end or a failure that no event announces
  bool unsent = false;  // it holds bytes that the socket did not take: write() again when writable, even with no bytes
  Error failure{};      // after `failed`: the reason, unless the socket itself failed
  bool datagrams = false;      // no peer and no end: read() and write() have whole frames, and there is no handshake
  bool failed_in_tls = false;  // `failure` is of TLS: the next attempt may meet other certificates
};

// ByteStream: the seam between a connection and its byte transport: a reliable, ordered, two-way stream of bytes.
// Owner: the connection; destruction closes, and TLS announces its end. Called once per batch, never per message.
// Affinity: one reader thread and one writer thread at a time, which may differ; other calls any thread.
// Invariants:
// 1. No call waits.
// 2. After end_of_stream every read returns end_of_stream. After `failed` the only allowed use is destruction.
// 3. fd() stays the same and can be polled until destruction.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  [[nodiscard]] virtual int fd() const = 0;
  // The stream uses the first 4. `cut`: the stream stopped early to give others a turn, and no event announces the
  // rest.
  [[nodiscard]] virtual sys::IoResult read(std::span<MutableBytes> into) = 0;
  [[nodiscard]] virtual sys::IoResult write(std::span<const Bytes> from) = 0;  // the stream uses the first 64
  virtual void shutdown_write() = 0;                                           // the peer reads end_of_stream
  // Destruction then resets the connection without an end in order, so that the peer does not take the bytes that it
  // has for all. After it write() and shutdown_write() are not called. The peer of a unix socket reads end_of_stream
  // nevertheless.
  virtual void break_off() noexcept {}
  // The handshake of the protocol above is over. Until then kUnadmittedMax bounds the layers: bytes beyond it stay in
  // the kernel, and a read() after them, which needs them, fails.
  virtual void admit() noexcept {}
  [[nodiscard]] virtual std::string peer_address() const = 0;  // "192.0.2.1:4711", "/path", "@name"; empty if unknown
  // For a socket whose peer is a proxy, before any layer is put on it: peer_address() returns this from now on.
  virtual void name_peer(const std::string& /*address*/) {}
  [[nodiscard]] virtual StreamState state() const noexcept { return {}; }
  // Requests a sign of life from the peer by a means of the stream's own; read() receives it. Returns false if the
  // stream has no such means.
  [[nodiscard]] virtual bool ping() noexcept { return false; }
  [[nodiscard]] virtual const ByteStream* below() const noexcept { return nullptr; }  // of a layer: the stream under it
};

// The ByteStream of a connected socket of any family.
[[nodiscard]] std::unique_ptr<ByteStream> make_socket_stream(sys::Fd fd);

}  // namespace weft::net

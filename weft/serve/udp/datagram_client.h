// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/backoff.h"
#include "weft/serve/udp/datagram_wire.h"
#include "weft/sys/address.h"
#include "weft/sys/fd.h"

namespace weft::serve {

struct DatagramClientOptions {
  std::uint32_t datagram_max = 1200;  // bytes, with the header; a longer one is dropped
  std::uint32_t received_max = 256;   // datagrams in the queue of received ones; the oldest makes room for a new one
  Duration repeat_first = std::chrono::milliseconds(200);  // hello and open are repeated after 1 to 2 times this, ...
  Duration repeat_max = std::chrono::seconds(5);           // ... the next waits double up to this
  Duration keep_alive = std::chrono::seconds(10);       // an `open` so often keeps the session, and asks for an answer
  Duration silence_timeout = std::chrono::seconds(30);  // without any datagram from the server the session is lost
  bool reconnect = true;                                // false: the first end of a session closes the client
};

struct DatagramClientCounts {
  std::uint64_t opened = 0;      // sessions that began
  std::uint64_t lost = 0;        // sessions that the server ended, or that were silent
  std::uint64_t in = 0;          // datagrams received, of all kinds
  std::uint64_t out = 0;         // taken by the kernel
  std::uint64_t ignored = 0;     // received: of another sender, malformed, too long, or without this session's cookie
  std::uint64_t overflowed = 0;  // received ones that made room for newer ones
  std::uint64_t unsent = 0;      // not taken by the kernel
};

// DatagramClient: a session with a DatagramServer, for a program with a loop of its own, such as a game's. It opens the
// session with the cookie of the server, keeps it alive, and opens another one when the server has ended it or has
// restarted.
// Owner: the program. Affinity: one thread at a time.
// Cost: a socket, and received_max datagrams of memory. No allocation after connect().
// Invariants:
//   1. A datagram that is not from the server's address, or has another cookie, changes nothing.
//   2. At most kBatches * 32 datagrams are read in an update().
class DatagramClient {
 public:
  // "udp://127.0.0.1:7000". Does not wait for the server, but may wait for a name service. Errors: those of
  // parse_endpoint() and net::open_udp(); invalid_argument (another transport, a multicast group, or options out of
  // range); resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<DatagramClient>> connect(std::string_view endpoint,
                                                                       const DatagramClientOptions& options = {});
  DatagramClient(const DatagramClient&) = delete;
  DatagramClient& operator=(const DatagramClient&) = delete;
  ~DatagramClient() { close(); }

  // Reads the received datagrams and sends those of the session that are due. Never waits. Returns the time of the next
  // call, which may come earlier: when fd() is readable, or once a frame of a game.
  Instant update(Instant now) noexcept;
  Instant update() noexcept;

  // Errors: message_too_large (more than datagram_max with the header); unreachable (the session is not open);
  // would_block (the kernel has no room); connection_failed (the kernel refuses it); closed. A refused datagram is not
  // sent later.
  Result<void> send(Bytes payload) noexcept;
  // The oldest received datagram, after an update(). The bytes are valid until the next call of the client.
  [[nodiscard]] std::optional<Bytes> try_receive() noexcept;

  // Wait in the calling thread, and update meanwhile. Errors: timed_out; closed.
  Result<void> open_until(Instant deadline);
  [[nodiscard]] Result<Bytes> receive_until(Instant deadline);

  // The server gets `close`. Idempotent. Received datagrams stay.
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool is_closed() const noexcept { return state_ == State::closed; }
  [[nodiscard]] int fd() const noexcept { return fd_.fd(); }  // to wait until it is readable
  [[nodiscard]] const DatagramClientCounts& counts() const noexcept { return counts_; }

 private:
  enum class State : std::uint8_t { asking, opening, open, closed };
  static constexpr int kBatches = 4;
  static constexpr int kOpensMax = 5;  // of one cookie, then the client asks for another one

  DatagramClient(const DatagramClientOptions& options, sys::Fd fd, const sys::SocketAddress& server);
  void read(Instant now) noexcept;
  void handle(const ParsedDatagram& datagram, Instant now) noexcept;
  void keep(Bytes payload) noexcept;
  void handle_due(Instant now) noexcept;
  void begin_session(Instant now) noexcept;
  void end_session(Instant now) noexcept;
  void repeat(DatagramKind kind, Instant now) noexcept;
  int send_now(DatagramKind kind, Bytes payload) noexcept;  // the errno; 0: sent
  [[nodiscard]] Result<void> wait(Instant deadline);

  const DatagramClientOptions options_;
  const sys::Fd fd_;
  const sys::SocketAddress server_;
  State state_ = State::asking;
  std::uint64_t cookie_ = 0;
  int opens_ = 0;  // sent with `cookie_`, until the session is open
  Instant due_{};  // of the next hello, open, or keep-alive
  Instant heard_{};
  net::Backoff backoff_;
  DatagramClientCounts counts_;

  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> kept_;  // a ring of received_max payloads
  std::vector<std::uint32_t> sizes_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace weft::serve

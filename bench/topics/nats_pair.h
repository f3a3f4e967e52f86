// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "weft/base/bytes.h"

namespace bench {

// NatsPair: two clients of one server, with a subscription of the messages and a service at the second one.
// Owner: a run. Affinity: one thread; `Arrived` is called on the thread that the library receives on.
class NatsPair {
 public:
  using Arrived = std::function<void(weft::Bytes)>;

  NatsPair() = default;
  NatsPair(const NatsPair&) = delete;
  NatsPair& operator=(const NatsPair&) = delete;
  virtual ~NatsPair() = default;

  virtual void publish(weft::Bytes body) = 0;
  virtual std::size_t request(weft::Bytes body) = 0;  // returns the size of the reply
  [[nodiscard]] virtual std::string version() const { return "weft::topics"; }
};

// NatsStream: acknowledged publishes to a stream of a server, which keeps it in a file, one copy.
// Owner: a run. Affinity: one thread.
class NatsStream {
 public:
  static constexpr std::size_t kInFlight = 1'000;           // publishes without an answer, at most
  static constexpr std::uint64_t kBytesMax = 256ULL << 20;  // of the stream, which drops its oldest messages
  static constexpr const char* kName = "bench";

  NatsStream() = default;
  NatsStream(const NatsStream&) = delete;
  NatsStream& operator=(const NatsStream&) = delete;
  virtual ~NatsStream() = default;

  virtual void publish(weft::Bytes body) = 0;  // waits for a place, not for the answer
  virtual void wait_answers() = 0;             // returns when each message was acknowledged
  virtual std::uint64_t last() = 0;            // sequence of the newest message that the server keeps
  [[nodiscard]] virtual std::string version() const { return "weft::Stream"; }
};

}  // namespace bench

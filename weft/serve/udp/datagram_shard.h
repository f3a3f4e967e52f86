// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weft/base/list.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/rt/core/core.h"
#include "weft/serve/udp/datagram_cookie.h"
#include "weft/serve/udp/datagram_counters.h"
#include "weft/serve/udp/datagram_service.h"
#include "weft/serve/udp/datagram_wire.h"
#include "weft/sys/datagram.h"
#include "weft/sys/fd.h"

namespace weft::serve {

struct UdpOptions {
  std::uint32_t sessions_max = 65536;          // of a core
  std::uint32_t datagram_max = 1200;           // bytes, with the header; a longer one is dropped
  std::uint32_t datagrams_per_second = 1000;   // of a session; more are dropped; 0: no bound
  std::uint32_t answers_per_second = 100'000;  // of a core, to addresses without a session; 0: no bound
  Duration idle_timeout = std::chrono::seconds(30);
  Duration cookie_time = std::chrono::seconds(10);  // a cookie is valid for one to two of these
  // Sessions of an address, and of a prefix, over all cores. Counts sessions as connections.
  net::AdmissionOptions admission{.address_connections_max = 64};
  int receive_buffer = -1;  // bytes of a core's socket; -1: the system's choice
  int send_buffer = -1;
};

// DatagramCommon: the data that the cores of a server share.
struct DatagramCommon {
  UdpOptions options;
  CookieMaker cookies;
  SipKey table_key;
  std::unique_ptr<net::Admission> admission;
  std::unique_ptr<DatagramCounts[]> counts;  // of each core
};

// DatagramShard: one core's socket and the sessions whose datagrams the kernel gives to it.
// Owner: the server and the messages to the core. Affinity: the core's thread.
// Cost: at most kBatches receive calls an event. Sent datagrams leave 32 in a call, at the end of the turn at the
// latest. No allocation but for a new session.
// Invariants:
//   1. `sessions_` and `by_silence_` have the same sessions, the longest silent one first.
//   2. A session that ended lives until the turn's end, so that a service's call may close its own session.
class DatagramShard final : public rt::Watcher {
 public:
  DatagramShard(rt::Core& core, std::shared_ptr<DatagramCommon> common, sys::Fd fd, DatagramCalls calls);
  DatagramShard(const DatagramShard&) = delete;
  DatagramShard& operator=(const DatagramShard&) = delete;
  ~DatagramShard();

  Result<void> start();
  // Ends every session; idempotent.
  void stop() noexcept;

  Result<void> send(DatagramSession& session, Bytes payload);
  void end(DatagramSession& session, DatagramEnd why) noexcept;

 private:
  static constexpr int kBatches = 4;

  struct Hash {
    SipKey key;
    std::size_t operator()(const sys::SocketAddress& address) const noexcept {
      return sip_hash(key, Bytes(static_cast<const std::uint8_t*>(address.raw()), address.raw_size()));
    }
  };
  struct TurnEnd : rt::TurnJob {
    explicit TurnEnd(DatagramShard& shard, Run* function) noexcept : TurnJob(function), owner(shard) {}
    DatagramShard& owner;
  };

  void handle_event(const sys::PollEvent& event) override;
  void handle(const sys::SocketAddress& from, const ParsedDatagram& datagram);
  void handle_open(const sys::SocketAddress& from, std::uint64_t cookie);
  void handle_data(const sys::SocketAddress& from, const ParsedDatagram& datagram);
  void note_heard(DatagramSession& session, Instant now) noexcept;
  [[nodiscard]] DatagramSession* find(const sys::SocketAddress& from) noexcept;
  // Counts an answer to an address without a session; false: there are too many.
  [[nodiscard]] bool may_answer() noexcept;
  void queue(const sys::SocketAddress& to, DatagramKind kind, std::uint64_t cookie, Bytes payload) noexcept;
  void flush() noexcept;
  void arm(Instant at) noexcept;
  void end_idle() noexcept;

  rt::Core& core_;
  const std::shared_ptr<DatagramCommon> common_;
  const UdpOptions& options_;
  const net::RateLimit session_rate_;
  const net::RateLimit answer_rate_;
  DatagramCounts& counts_;
  sys::Fd fd_;
  DatagramCalls calls_;
  rt::Loop::WatchId watch_ = 0;
  rt::TimerId timer_{};
  std::unordered_map<sys::SocketAddress, std::unique_ptr<DatagramSession>, Hash> sessions_;
  List<DatagramSession> by_silence_;
  std::vector<std::unique_ptr<DatagramSession>> ended_;
  std::uint64_t next_id_ = 1;
  std::uint32_t overflow_ = 0;
  net::TokenBucket answers_;

  std::vector<std::uint8_t> in_;   // room for kMaxDatagrams
  std::vector<std::uint8_t> out_;  // likewise
  std::array<sys::SocketAddress, sys::kMaxDatagrams> to_{};
  std::array<std::size_t, sys::kMaxDatagrams> sizes_{};
  std::size_t queued_ = 0;
  TurnEnd turn_end_;
  TurnEnd core_end_;
};

}  // namespace weft::serve

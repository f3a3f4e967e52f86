// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "bench/server/abuse_bytes.h"

namespace bench {

// BadPeers: bad peers of one kind, from an address of their own (127.0.0.2). Owner: the caller of tick(), which
// calls it often. Affinity: that thread. Never waits.
class BadPeers {
 public:
  BadPeers(Abuse kind, std::uint16_t port);
  ~BadPeers();
  BadPeers(const BadPeers&) = delete;
  BadPeers& operator=(const BadPeers&) = delete;

  void tick(std::uint64_t now);

  // Whether as many peers are there as by now should be; idle ones are there when their upgrade is answered.
  [[nodiscard]] bool all_are_there(std::uint64_t now) const {
    return (kind_ == Abuse::idle_upgrade ? answered_ : started_) >= wanted(now);
  }
  [[nodiscard]] std::uint64_t started() const { return started_; }
  [[nodiscard]] std::uint64_t limited() const { return limited_; }  // closed or refused by the server
  // The longest time from connecting until the server closed the peer.
  [[nodiscard]] double slowest_s() const { return static_cast<double>(slowest_ns_) / 1e9; }

 private:
  struct Peer {
    int fd;
    std::uint64_t since;
    std::uint32_t bytes;  // sent
    std::uint64_t next;   // when the next byte is due
    bool answered;
  };

  void start(std::uint64_t now);
  [[nodiscard]] bool talk(Peer& peer, std::uint64_t now);
  [[nodiscard]] std::uint64_t wanted(std::uint64_t now) const;

  const Abuse kind_;
  const AbuseBytes bytes_;
  const std::uint16_t port_;
  std::uint64_t begun_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t limited_ = 0;
  std::uint64_t slowest_ns_ = 0;
  int epoll_;
  std::vector<Peer> peers_;
};

}  // namespace bench

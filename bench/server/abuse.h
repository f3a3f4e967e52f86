// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// What bad peers do to a server. Each kind takes so little of the machine that good clients need not notice:
enum class Abuse {
  none,
  wrong_version,  // 500 connections a second, whose first frame has version 9
  oversized,      // 500 connections a second, whose first header announces a body of 4 GiB
  half_open,      // 256 connections with half a header and then nothing
  slow_loris,     // 256 connections that send a byte of a frame five times a second
  flood,          // 2,000 connections a second from one address, which are held
  fd_exhaustion,  // 512 connections that are held: more than the server may have files
};

Abuse parse_abuse(const std::string& name);  // throws LoadError for a name that is none

// Bad peers of one kind, from an address of their own (127.0.0.2). Owner: whoever calls tick(), often. Affinity: that
// thread. Never waits.
class BadPeers {
 public:
  BadPeers(Abuse kind, std::uint16_t port);
  ~BadPeers();
  BadPeers(const BadPeers&) = delete;
  BadPeers& operator=(const BadPeers&) = delete;

  void tick(std::uint64_t now);

  [[nodiscard]] std::uint64_t started() const { return started_; }
  [[nodiscard]] std::uint64_t limited() const { return limited_; }  // closed or refused by the server
  // How long the slowest waited for that, of those that the server closed.
  [[nodiscard]] double slowest_s() const { return static_cast<double>(slowest_ns_) / 1e9; }

 private:
  struct Peer {
    int fd;
    std::uint64_t since;
    std::uint32_t bytes;  // sent
    std::uint64_t next;   // when the next one is due
  };

  void start(std::uint64_t now);
  [[nodiscard]] bool talk(Peer& peer, std::uint64_t now);
  [[nodiscard]] std::uint64_t wanted(std::uint64_t now) const;

  const Abuse kind_;
  const std::uint16_t port_;
  std::uint64_t begun_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t limited_ = 0;
  std::uint64_t slowest_ns_ = 0;
  int epoll_;
  std::vector<Peer> peers_;
};

}  // namespace bench

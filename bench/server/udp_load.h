// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/server/load.h"
#include "bench/server/udp_wire.h"

namespace bench {

struct UdpLoadOptions {
  std::uint16_t port = 0;
  std::uint32_t clients = 1;
  std::uint32_t size = 64;        // of a body: kBodyMin to kUdpBodyMax bytes
  std::uint32_t depth = 1;        // unanswered datagrams of a client
  unsigned patience_ms = 20'000;  // without any progress
};

// UdpLoad: clients of a server of datagrams, all in the calling thread and on one epoll; each has a socket of its own,
// and opens its session with the server's cookie. Like Load: the thread polls while there is work.
// Owner: main. Affinity: one thread.
// Invariant: every answer is checked, and comes in order: a datagram that is lost on the way through one host makes the
// measurement worthless. The first bad one throws LoadError.
class UdpLoad {
 public:
  explicit UdpLoad(const UdpLoadOptions& options);
  ~UdpLoad();
  UdpLoad(const UdpLoad&) = delete;
  UdpLoad& operator=(const UdpLoad&) = delete;

  void open(LoadResult& result);                       // one client after another
  void echo(std::uint64_t count, LoadResult& result);  // a closed loop of `count` datagrams in all
  void finish();

  // Sets the function that is called now and then between events, with the time in ns.
  void on_turn(std::function<void(std::uint64_t)> turn) { turn_ = std::move(turn); }

 private:
  struct Client {
    int fd = -1;
    UdpCookie cookie{};
    std::uint64_t sent = 0;      // number of the next datagram
    std::uint64_t allowed = 0;   // datagrams below this number may be sent
    std::uint64_t answered = 0;  // number of the next answer
  };

  UdpCookie ask(std::size_t number, std::uint8_t kind, std::uint8_t answer) const;
  void allow(std::size_t number, std::uint64_t now);
  void pump(std::size_t number);
  void read(std::size_t number, LoadResult& result);
  void take(std::size_t number, Bytes datagram, std::uint64_t now, LoadResult& result);
  [[noreturn]] static void complain(std::size_t number, const std::string& what);

  const UdpLoadOptions options_;
  const std::size_t datagram_;  // bytes
  const int epoll_;
  std::vector<Client> clients_;
  std::vector<std::uint64_t> due_;  // `depth` times per client: when its unanswered datagrams were sent
  std::vector<std::uint8_t> input_, output_;
  std::uint64_t filling_ = 0;  // hash of the filling that all bodies share
  std::uint64_t tickets_ = 0, done_ = 0;
  std::function<void(std::uint64_t)> turn_;
  std::uint64_t turned_ns_ = 0;
};

// UdpFlood: datagrams of an address without a session (127.0.0.2): hello, and data with a wrong cookie, in turn. At
// most kWindow of them wait for their answers, so that a server that does not run loses none of the clients' datagrams.
// Owner: the caller of tick(), which calls it often. Never waits.
class UdpFlood {
 public:
  static constexpr std::uint64_t kPerSecond = 20'000;
  static constexpr std::uint64_t kWindow = 64;

  explicit UdpFlood(std::uint16_t port);
  ~UdpFlood();
  UdpFlood(const UdpFlood&) = delete;
  UdpFlood& operator=(const UdpFlood&) = delete;

  void tick(std::uint64_t now);
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  const int fd_;
  std::uint64_t begun_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
};

}  // namespace bench

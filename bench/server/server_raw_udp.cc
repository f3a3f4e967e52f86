// SPDX-License-Identifier: MIT
// The ceiling for datagrams: recvmmsg and sendmmsg by hand, without a framework and without sessions. A thread has its
// own socket and epoll. It reads up to 32 datagrams, and sends their answers at once.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

#include "bench/server/host.h"
#include "bench/server/udp_wire.h"

namespace bench {
namespace {

constexpr std::size_t kRoom = kUdpHeader + kUdpBodyMax;

// The answer is as long as its question. Returns false for a question without an answer.
bool turn_into_answer(std::uint8_t* datagram, std::size_t size) {
  if (size < kUdpHeader) {
    return false;
  }
  switch (datagram[0]) {
    case kUdpHello: datagram[0] = kUdpChallenge; return true;
    case kUdpOpen: datagram[0] = kUdpOpened; return true;
    case kUdpData: return true;
    default: return false;
  }
}

[[noreturn]] void run(int fd, Tally& tally) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  std::vector<std::uint8_t> rooms(kUdpBatch * kRoom);
  std::array<sockaddr_in, kUdpBatch> addresses{};
  std::array<iovec, kUdpBatch> parts{};
  std::array<mmsghdr, kUdpBatch> messages{};
  for (;;) {
    if (epoll_wait(epoll, &event, 1, -1) < 1) {
      continue;
    }
    for (std::size_t i = 0; i < kUdpBatch; ++i) {
      parts[i] = {rooms.data() + i * kRoom, kRoom};
      messages[i].msg_hdr = {&addresses[i], sizeof addresses[i], &parts[i], 1, nullptr, 0, 0};
    }
    const int got = recvmmsg(fd, messages.data(), kUdpBatch, MSG_DONTWAIT, nullptr);
    unsigned answers = 0;
    for (int i = 0; i < got; ++i) {
      const auto at = static_cast<std::size_t>(i);
      auto* const datagram = static_cast<std::uint8_t*>(parts[at].iov_base);
      if (turn_into_answer(datagram, messages[at].msg_len)) {
        tally.add(Tally::messages, datagram[0] == kUdpData ? 1 : 0);
        parts[at].iov_len = messages[at].msg_len;
        messages[answers++] = messages[at];
      }
    }
    for (unsigned sent = 0; sent < answers;) {
      const int more = sendmmsg(fd, messages.data() + sent, answers - sent, 0);
      if (more <= 0) {
        give_up("sendmmsg");
      }
      sent += static_cast<unsigned>(more);
    }
  }
}

int bind_udp(std::uint16_t& port, bool shared) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (fd < 0 || (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)) {
    give_up("socket");
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    give_up("bind");
  }
  port = ntohs(address.sin_port);
  return fd;
}

HostedServer start_udp(const HostOptions& options, std::vector<Tally>& tallies) {
  HostedServer server{"recvmmsg and sendmmsg", 0, {}};
  for (Tally& tally : tallies) {
    const int fd = bind_udp(server.port, options.threads > 1);
    std::thread([fd, &tally] { run(fd, tally); }).detach();
  }
  return server;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start_udp); }

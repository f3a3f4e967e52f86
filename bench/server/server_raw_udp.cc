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

HostedServer start_udp(const HostOptions& options, std::vector<Tally>& tallies) {
  HostedServer server{"recvmmsg and sendmmsg", 0, {}};
  for (Tally& tally : tallies) {
    const int fd = bind_on(SOCK_DGRAM, server.port, options.threads > 1);
    std::thread([fd, &tally] { run(fd, tally); }).detach();
  }
  return server;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start_udp); }

// SPDX-License-Identifier: MIT
#include "bench/server/abuse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>

#include "bench/server/load.h"
#include "bench/server/wire.h"

namespace bench {
namespace {

constexpr std::size_t kAtOnce = 4'096;  // connections that are held open at most
constexpr std::uint64_t kByteNs = 200'000'000;

void close_at_once(int fd) {
  const linger reset{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
}

// The first bytes that such a peer sends.
std::array<std::uint8_t, kHeaderSize> opening_of(Abuse kind) {
  std::array<std::uint8_t, kHeaderSize> bytes{};
  encode_header({kind == Abuse::wrong_version ? std::uint8_t{9} : kVersion, kEcho,
                 kind == Abuse::oversized ? ~std::uint32_t{0} : 64U},
                bytes.data());
  return bytes;
}

}  // namespace

Abuse parse_abuse(const std::string& name) {
  static const std::map<std::string, Abuse> kNames{{"wrong_version", Abuse::wrong_version},
                                                   {"oversized", Abuse::oversized},
                                                   {"half_open", Abuse::half_open},
                                                   {"slow_loris", Abuse::slow_loris},
                                                   {"flood", Abuse::flood},
                                                   {"fd_exhaustion", Abuse::fd_exhaustion}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) {
    throw LoadError("no bad peer '" + name + "'");
  }
  return found->second;
}

BadPeers::BadPeers(Abuse kind, std::uint16_t port) : kind_(kind), port_(port), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

BadPeers::~BadPeers() {
  for (const Peer& peer : peers_) {
    if (peer.fd >= 0) {
      close_at_once(peer.fd);
    }
  }
  close(epoll_);
}

// The number of peers that should have been started by now.
std::uint64_t BadPeers::wanted(std::uint64_t now) const {
  const std::uint64_t ms = (now - begun_) / 1'000'000;
  switch (kind_) {
    case Abuse::wrong_version:
    case Abuse::oversized: return ms / 2 + 1;
    case Abuse::flood: return ms * 2 + 1;
    case Abuse::half_open:
    case Abuse::slow_loris: return 256;
    case Abuse::fd_exhaustion: return 512;
    case Abuse::none: return 0;
  }
  return 0;
}

void BadPeers::tick(std::uint64_t now) {
  begun_ = begun_ == 0 ? now : begun_;
  // Starts at most eight at a time, so that a measurement in the same thread is not delayed.
  for (int i = 0; i < 8 && started_ < wanted(now) && started_ - limited_ < kAtOnce; ++i) {
    start(now);
  }
  std::array<epoll_event, 32> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    Peer& peer = peers_[events[static_cast<std::size_t>(i)].data.u64];
    if (!talk(peer, now)) {
      close_at_once(peer.fd);
      peer.fd = -1;
      ++limited_;
      slowest_ns_ = std::max(slowest_ns_, now - peer.since);
    }
  }
  if (kind_ == Abuse::slow_loris) {
    const auto bytes = opening_of(kind_);
    for (Peer& peer : peers_) {
      if (peer.fd >= 0 && peer.bytes < bytes.size() - 1 && now >= peer.next) {
        peer.next = now + kByteNs;
        peer.bytes += send(peer.fd, bytes.data() + peer.bytes, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 1 : 0;
      }
    }
  }
}

void BadPeers::start(std::uint64_t now) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return;  // the limit of open files of this process
  }
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(0x7f00'0002);
  bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from);
  sockaddr_in to = from;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port_);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
    close(fd);
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.u64 = peers_.size();
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  peers_.push_back({fd, now, 0, now});
  ++started_;
}

// Called when the peer can write, or the server has sent or closed. Returns false if the server has ended the
// connection.
bool BadPeers::talk(Peer& peer, std::uint64_t now) {
  if (peer.bytes == 0 && kind_ != Abuse::slow_loris && kind_ != Abuse::flood && kind_ != Abuse::fd_exhaustion) {
    const auto bytes = opening_of(kind_);
    const std::size_t size = kind_ == Abuse::half_open ? bytes.size() / 2 : bytes.size();
    const ssize_t sent = send(peer.fd, bytes.data(), size, MSG_NOSIGNAL);
    peer.bytes = sent > 0 ? static_cast<std::uint32_t>(sent) : 0;
    peer.since = now;
    if (sent < 0 && errno != EAGAIN) {
      return false;
    }
  }
  std::array<std::uint8_t, 256> answer{};
  for (;;) {
    const ssize_t got = recv(peer.fd, answer.data(), answer.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      return false;
    }
    if (got < 0) {
      return true;
    }
  }
}

}  // namespace bench

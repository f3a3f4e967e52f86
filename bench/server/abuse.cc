// SPDX-License-Identifier: MIT
#include "bench/server/abuse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace bench {
namespace {

constexpr std::size_t kAtOnce = 4'096;  // connections that are held open at most
constexpr std::uint64_t kByteNs = 200'000'000;

void close_at_once(int fd) {
  const linger reset{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
}

}  // namespace

BadPeers::BadPeers(Abuse kind, std::uint16_t port)
    : kind_(kind), bytes_(bytes_of(kind)), port_(port), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

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
    case Abuse::oversized:
    case Abuse::malformed:
    case Abuse::bad_upgrade: return ms / 2 + 1;
    case Abuse::bomb: return ms / 10 + 1;
    case Abuse::flood: return ms * 2 + 1;
    case Abuse::half_open:
    case Abuse::slow_loris:
    case Abuse::slow_head:
    case Abuse::slow_body:
    case Abuse::slow_frame: return 256;
    case Abuse::fd_exhaustion: return 512;
    case Abuse::idle_upgrade: return 10'000;
    case Abuse::none: return 0;
  }
  return 0;
}

void BadPeers::tick(std::uint64_t now) {
  begun_ = begun_ == 0 ? now : begun_;
  const std::uint64_t most = kind_ == Abuse::idle_upgrade ? wanted(now) : kAtOnce;
  // Starts at most eight at a time, so that a measurement in the same thread is not delayed.
  for (int i = 0; i < 8 && started_ < wanted(now) && started_ - limited_ < most; ++i) {
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
  const std::size_t all = bytes_.opening.size() + bytes_.dribble.size();
  for (std::size_t i = 0; !bytes_.dribble.empty() && i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.fd >= 0 && peer.bytes >= bytes_.opening.size() && peer.bytes < all && now >= peer.next) {
      const char* const byte = bytes_.dribble.data() + (peer.bytes - bytes_.opening.size());
      peer.next = now + kByteNs;
      peer.bytes += send(peer.fd, byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 1 : 0;
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
  peers_.push_back({fd, now, 0, now, false});
  ++started_;
}

// Called when the peer can write, or the server has sent or closed. Returns false if the server has ended the
// connection.
bool BadPeers::talk(Peer& peer, std::uint64_t now) {
  if (peer.bytes < bytes_.opening.size()) {
    const ssize_t sent =
        send(peer.fd, bytes_.opening.data() + peer.bytes, bytes_.opening.size() - peer.bytes, MSG_NOSIGNAL);
    peer.bytes += sent > 0 ? static_cast<std::uint32_t>(sent) : 0;
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
    answered_ += peer.answered ? 0 : 1;
    peer.answered = true;
  }
}

}  // namespace bench

// SPDX-License-Identifier: MIT
#include "bench/server/udp_load.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

namespace bench {
namespace {

constexpr std::uint64_t kAwakeNs = 1'000'000;  // without an event, the thread polls for so long before it sleeps
constexpr std::uint64_t kTurnNs = 200'000;
constexpr int kRepeatMs = 100;  // an unanswered datagram of the handshake
constexpr std::size_t kRoom = kUdpHeader + kUdpBodyMax + 1;

std::string reason(int error) { return std::generic_category().message(error); }

// A socket that is connected to the port of 127.0.0.1.
int connected_socket(std::uint32_t from, std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(from);
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (!bound || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw LoadError("udp: " + reason(errno));
  }
  return fd;
}

}  // namespace

UdpLoad::UdpLoad(const UdpLoadOptions& options)
    : options_(options),
      datagram_(kUdpHeader + options.size),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      clients_(options.clients),
      due_(std::size_t{options.clients} * options.depth),
      input_(kUdpBatch * kRoom),
      output_(kUdpBatch * datagram_) {
  if (epoll_ < 0) {
    throw LoadError("epoll: " + reason(errno));
  }
  std::mt19937_64 random(options.size);
  std::vector<std::uint8_t> body(options.size);
  for (std::uint8_t& byte : body) {
    byte = static_cast<std::uint8_t>(random());
  }
  filling_ = hash_of(Bytes(body).subspan(kBodyMin));
  for (std::size_t i = 0; i < kUdpBatch; ++i) {
    output_[i * datagram_] = kUdpData;
    std::copy(body.begin(), body.end(), output_.data() + i * datagram_ + kUdpHeader);
  }
}

UdpLoad::~UdpLoad() {
  for (const Client& client : clients_) {
    if (client.fd >= 0) {
      close(client.fd);
    }
  }
  close(epoll_);
}

void UdpLoad::complain(std::size_t number, const std::string& what) {
  throw LoadError("client " + std::to_string(number) + ": " + what);
}

void UdpLoad::open(LoadResult& result) {
  const std::uint64_t start = now_ns();
  result.trips.clear();
  for (std::size_t number = 0; number < clients_.size(); ++number) {
    Client& client = clients_[number];
    client.fd = connected_socket(INADDR_LOOPBACK, options_.port);
    client.cookie = ask(number, kUdpHello, kUdpChallenge);
    (void)ask(number, kUdpOpen, kUdpOpened);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, client.fd, &event);
  }
  result.messages = clients_.size();
  result.seconds = static_cast<double>(now_ns() - start) / 1e9;
}

// Sends a datagram of the handshake until its answer comes. Returns the cookie of the answer.
UdpCookie UdpLoad::ask(std::size_t number, std::uint8_t kind, std::uint8_t answer) const {
  const Client& client = clients_[number];
  std::array<std::uint8_t, kUdpHeader> datagram{kind};
  std::ranges::copy(client.cookie, datagram.begin() + 1);
  for (unsigned waited = 0; waited <= options_.patience_ms; waited += kRepeatMs) {
    if (send(client.fd, datagram.data(), datagram.size(), 0) < 0) {
      complain(number, "send: " + reason(errno));
    }
    pollfd ready{client.fd, POLLIN, 0};
    if (poll(&ready, 1, kRepeatMs) <= 0) {
      continue;
    }
    std::array<std::uint8_t, kRoom> got{};
    const ssize_t size = recv(client.fd, got.data(), got.size(), 0);
    if (size < 0) {
      complain(number, "recv: " + reason(errno));
    }
    if (static_cast<std::size_t>(size) != kUdpHeader || got[0] != answer) {
      complain(number, "a wrong answer in the handshake");
    }
    UdpCookie cookie;
    std::copy_n(got.begin() + 1, cookie.size(), cookie.begin());
    return cookie;
  }
  complain(number, "no answer in the handshake");
}

void UdpLoad::allow(std::size_t number, std::uint64_t now) {
  Client& client = clients_[number];
  due_[number * options_.depth + client.allowed % options_.depth] = now;
  ++client.allowed;
}

void UdpLoad::echo(std::uint64_t count, LoadResult& result) {
  result.trips.clear();
  done_ = 0;
  tickets_ = count;
  const std::uint64_t start = now_ns();
  for (std::uint32_t i = 0; i < options_.depth && tickets_ > 0; ++i) {
    for (std::size_t number = 0; number < clients_.size() && tickets_ > 0; ++number, --tickets_) {
      allow(number, start);
    }
  }
  for (std::size_t number = 0; number < clients_.size(); ++number) {
    pump(number);
  }
  std::array<epoll_event, 64> events{};
  std::uint64_t busy = start;
  while (done_ < count) {
    const std::uint64_t now = now_ns();
    if (turn_ && now - turned_ns_ > kTurnNs) {
      turned_ns_ = now;
      turn_(now);
    }
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), now - busy < kAwakeNs ? 0 : 1);
    for (int i = 0; i < ready; ++i) {
      const std::size_t number = events[static_cast<std::size_t>(i)].data.u64;
      read(number, result);
      pump(number);
    }
    if (ready > 0) {
      busy = now;
    } else if (now - busy > std::uint64_t{options_.patience_ms} * 1'000'000) {
      throw LoadError("no progress for " + std::to_string(options_.patience_ms) + " ms, " +
                      std::to_string(count - done_) + " of " + std::to_string(count) + " answers are missing");
    }
  }
  result.messages = count;
  result.seconds = static_cast<double>(now_ns() - start) / 1e9;
}

void UdpLoad::pump(std::size_t number) {
  Client& client = clients_[number];
  while (client.sent < client.allowed) {
    const auto count = static_cast<unsigned>(std::min<std::uint64_t>(client.allowed - client.sent, kUdpBatch));
    std::array<mmsghdr, kUdpBatch> messages{};
    std::array<iovec, kUdpBatch> parts{};
    for (unsigned i = 0; i < count; ++i) {
      std::uint8_t* const to = output_.data() + i * datagram_;
      const std::uint64_t tag = make_tag(number, client.sent + i);
      const std::uint64_t checksum = checksum_of(tag, filling_);
      std::ranges::copy(client.cookie, to + 1);
      std::memcpy(to + kUdpHeader, &tag, sizeof tag);
      std::memcpy(to + kUdpHeader + 8, &checksum, sizeof checksum);
      parts[i] = {to, datagram_};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = sendmmsg(client.fd, messages.data(), count, 0);
    if (sent <= 0) {
      complain(number, "send: " + reason(errno));
    }
    client.sent += static_cast<unsigned>(sent);
  }
}

void UdpLoad::read(std::size_t number, LoadResult& result) {
  std::array<mmsghdr, kUdpBatch> messages{};
  std::array<iovec, kUdpBatch> parts{};
  const auto most = std::min<std::size_t>(kUdpBatch, options_.depth + 1);
  for (std::size_t i = 0; i < most; ++i) {
    parts[i] = {input_.data() + i * kRoom, kRoom};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int got = recvmmsg(clients_[number].fd, messages.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
  if (got < 0) {
    if (errno == EAGAIN) {
      return;
    }
    complain(number, "recv: " + reason(errno));
  }
  const std::uint64_t now = now_ns();
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    take(number, Bytes(input_).subspan(i * kRoom, messages[i].msg_len), now, result);
  }
}

void UdpLoad::take(std::size_t number, Bytes datagram, std::uint64_t now, LoadResult& result) {
  Client& client = clients_[number];
  if (datagram.size() != datagram_ || datagram[0] != kUdpData ||
      !std::ranges::equal(datagram.subspan(1, client.cookie.size()), client.cookie)) {
    complain(number, "an answer has a wrong header");
  }
  const Bytes body = datagram.subspan(kUdpHeader);
  if (!intact(body)) {
    complain(number, "an answer is damaged");
  }
  const std::uint64_t tag = tag_of(body);
  const std::uint64_t expected = make_tag(number, client.answered);
  const bool unasked = client.answered == client.sent;
  if (tag != expected || unasked) {
    complain(number, tag >> 44U != number ? "an answer to another client"
                     : tag < expected     ? "an answer came twice or late"
                     : unasked            ? "an answer to nothing"
                                          : "an answer was lost or overtaken");
  }
  result.trips.add(now - due_[number * options_.depth + client.answered % options_.depth]);
  ++client.answered;
  ++done_;
  if (tickets_ > 0) {
    --tickets_;
    allow(number, now);
  }
}

void UdpLoad::finish() {
  for (Client& client : clients_) {
    std::array<std::uint8_t, kUdpHeader> datagram{kUdpClose};
    std::ranges::copy(client.cookie, datagram.begin() + 1);
    (void)send(client.fd, datagram.data(), datagram.size(), 0);
  }
}

UdpFlood::UdpFlood(std::uint16_t port) : fd_(connected_socket(INADDR_LOOPBACK + 1, port)) {}

UdpFlood::~UdpFlood() { close(fd_); }

void UdpFlood::tick(std::uint64_t now) {
  begun_ = begun_ == 0 ? now : begun_;
  std::array<std::uint8_t, kUdpHeader> answer{};
  while (recv(fd_, answer.data(), answer.size(), MSG_DONTWAIT) > 0) {
    ++answered_;
  }
  const std::uint64_t due = std::min((now - begun_) * kPerSecond / 1'000'000'000, answered_ + kWindow);
  const auto count = static_cast<unsigned>(std::min<std::uint64_t>(due - std::min(due, sent_), kUdpBatch));
  constexpr std::uint8_t kKinds[] = {kUdpHello, kUdpData};
  std::array<std::array<std::uint8_t, kUdpHeader>, kUdpBatch> datagrams{};
  std::array<mmsghdr, kUdpBatch> messages{};
  std::array<iovec, kUdpBatch> parts{};
  for (unsigned i = 0; i < count; ++i) {
    datagrams[i].fill(0xff);
    datagrams[i][0] = kKinds[(sent_ + i) % 2];
    parts[i] = {datagrams[i].data(), datagrams[i].size()};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int sent = count == 0 ? 0 : sendmmsg(fd_, messages.data(), count, MSG_DONTWAIT);
  sent_ += static_cast<unsigned>(std::max(sent, 0));
}

}  // namespace bench

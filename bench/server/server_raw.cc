// SPDX-License-Identifier: MIT
// The ceiling: hand-written code on the system calls, without a framework. A thread has its own epoll and listener.
// It reads once per event into one block, decodes each frame, and writes the answers of an event at once.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "bench/server/host.h"
#include "bench/server/web_wire.h"

namespace bench {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr int kEvents = 256;
constexpr std::size_t kHeadMax = 4096;
constexpr int kPauseMs = 100;  // after the process has run out of files

struct Connection {
  int fd;
  StreamCheck stream;
  std::vector<std::uint8_t> part;  // the beginning of an incomplete frame
  // Answers that the socket did not take; the thread reads nothing until they are written.
  std::vector<std::uint8_t> pending;
  bool upgraded = false;  // to WebSocket
};

class Worker {
 public:
  Worker(int listener, std::string_view variant, Tally& tally)
      : listener_(listener),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        edge_(variant == "edge"),
        websocket_(variant == "websocket"),
        tally_(tally) {
    grow(kBlock);
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (epoll_event events[kEvents];;) {
      const int count = epoll_wait(epoll_, events, kEvents, paused_ ? kPauseMs : -1);
      if (paused_ && (count == 0 || closed_)) {
        paused_ = closed_ = false;
        watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
      }
      for (int i = 0; i < count; ++i) {
        auto* const connection = static_cast<Connection*>(events[i].data.ptr);
        if (connection == nullptr) {
          accept_all();
        } else if ((events[i].events & EPOLLOUT) != 0U ? !flush(*connection) : !read(*connection)) {
          close(connection->fd);
          delete connection;
          closed_ = true;
          tally_.add(Tally::closed);
        }
      }
    }
  }

 private:
  // Enlarges the input block and the block of answers; an answer is as long as its question.
  void grow(std::size_t size) {
    if (size > block_size_) {
      block_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
      answers_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
      block_size_ = size;
    }
  }

  void watch(int operation, int fd, std::uint32_t events, Connection* connection) const {
    epoll_event event{};
    event.events = events | (edge_ && connection != nullptr ? static_cast<std::uint32_t>(EPOLLET) : 0U);
    event.data.ptr = connection;
    epoll_ctl(epoll_, operation, fd, &event);
  }

  void accept_all() {
    for (int i = 0; i < 64; ++i) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) {
          paused_ = true;
          closed_ = false;
          epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
        }
        return;
      }
      const int yes = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      tally_.add(Tally::accepted);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN, new Connection{fd, {}, {}, {}, false});
    }
  }

  // Returns false if the caller must close the connection.
  bool read(Connection& connection) {
    for (;;) {
      const std::size_t before = connection.part.size();
      std::memcpy(block_.get(), connection.part.data(), before);
      const ssize_t got = recv(connection.fd, block_.get() + before, block_size_ - before, 0);
      if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
      }
      const std::size_t size = before + static_cast<std::size_t>(got);
      const bool whole = size < block_size_;
      const Bytes bytes(block_.get(), size);
      if (!(websocket_ ? answer_websocket(connection, bytes) : answer(connection, bytes)) ||
          !send_answers(connection)) {
        return false;
      }
      if (!edge_ || whole || !connection.pending.empty()) {
        return true;
      }
    }
  }

  bool answer(Connection& connection, Bytes bytes) {
    answered_ = 0;
    std::uint64_t messages = 0;
    std::size_t wanted = 0;
    while (bytes.size() >= kHeaderSize) {
      const Header header = decode_header(bytes.data());
      if (header.version != kVersion || header.body_size > kBodyMax) {
        return false;
      }
      const std::size_t size = kHeaderSize + header.body_size;
      if (bytes.size() < size) {
        wanted = size + kBlock;
        break;
      }
      take(connection, header, bytes.subspan(kHeaderSize, header.body_size));
      bytes = bytes.subspan(size);
      ++messages;
    }
    tally_.add(Tally::messages, messages);
    connection.part.assign(bytes.begin(), bytes.end());
    larger_ = std::max(larger_, wanted);
    return true;
  }

  // Each message comes back in one frame without a mask; nothing but whole messages and a close is taken.
  bool answer_websocket(Connection& connection, Bytes bytes) {
    answered_ = 0;
    if (!connection.upgraded && !upgrade(connection, bytes)) {
      return false;
    }
    std::uint64_t messages = 0;
    std::size_t wanted = 0;
    while (connection.upgraded && bytes.size() >= 2) {
      const std::uint8_t first = bytes[0];
      const std::size_t head = (bytes[1] & 0x7fU) < 126 ? 2 : (bytes[1] & 0x7fU) == 126 ? 4 : 10;
      if ((first != 0x81 && first != 0x82 && first != 0x88) || bytes[1] < 0x80) {
        return false;
      }
      if (bytes.size() < head + 4) {
        break;
      }
      const std::uint64_t size = head == 2   ? bytes[1] & 0x7fU
                                 : head == 4 ? load_big<std::uint16_t>(bytes.data() + 2)
                                             : load_big<std::uint64_t>(bytes.data() + 2);
      if (size > kBodyMax) {
        return false;
      }
      if (bytes.size() < head + 4 + size) {
        wanted = head + 4 + size + kBlock;
        break;
      }
      send_back(bytes.data(), head, size);
      bytes = bytes.subspan(head + 4 + size);
      messages += first == 0x88 ? 0 : 1;
    }
    tally_.add(Tally::messages, messages);
    connection.part.assign(bytes.begin(), bytes.end());
    larger_ = std::max(larger_, wanted);
    return true;
  }

  void send_back(const std::uint8_t* from, std::size_t head, std::size_t size) {
    std::uint8_t* to = answers_.get() + answered_;
    answered_ += head + size;
    std::memcpy(to, from, head);
    to[1] &= 0x7f;
    to += head;
    const auto mask = load_word<std::uint32_t>(from + head);
    const std::uint64_t twice = std::uint64_t{mask} << 32U | mask;
    from += head + 4;
    std::size_t i = 0;
    for (; i + 8 <= size; i += 8) {
      const std::uint64_t word = load_word<std::uint64_t>(from + i) ^ twice;
      std::memcpy(to + i, &word, sizeof word);
    }
    for (; i < size; ++i) {
      to[i] = static_cast<std::uint8_t>(from[i] ^ (mask >> 8U * (i % 4)));
    }
  }

  // Answers the handshake of the generator, whose key is always the same. Returns false for another one.
  bool upgrade(Connection& connection, Bytes& bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) {
      return text.size() < kHeadMax;
    }
    const std::string answer =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
        std::string(kWebSocketAccept) + "\r\n\r\n";
    if (text.substr(0, end).find(kWebSocketKey) == std::string_view::npos || end + 4 < answer.size()) {
      return false;
    }
    std::memcpy(answers_.get(), answer.data(), answer.size());
    answered_ = answer.size();
    connection.upgraded = true;
    bytes = bytes.subspan(end + 4);
    return true;
  }

  void take(Connection& connection, const Header& header, Bytes body) {
    if (header.id == kCount) {
      connection.stream.take(body);
      return;
    }
    std::uint8_t* const to = answers_.get() + answered_;
    answered_ += kHeaderSize + body.size();
    encode_header(header, to);
    if (header.id == kSync) {
      connection.stream.answer(body, to + kHeaderSize);
    } else {
      std::memcpy(to + kHeaderSize, body.data(), body.size());
    }
  }

  bool send_answers(Connection& connection) {
    const ssize_t sent = answered_ == 0 ? 0 : send(connection.fd, answers_.get(), answered_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      return false;
    }
    const auto done = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    if (done < answered_) {
      connection.pending.assign(answers_.get() + done, answers_.get() + answered_);
      watch(EPOLL_CTL_MOD, connection.fd, EPOLLOUT, &connection);
    }
    grow(larger_);
    return true;
  }

  bool flush(Connection& connection) {
    std::vector<std::uint8_t>& pending = connection.pending;
    const ssize_t sent = send(connection.fd, pending.data(), pending.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN;
    }
    pending.erase(pending.begin(), pending.begin() + sent);
    if (pending.empty()) {
      pending.shrink_to_fit();
      watch(EPOLL_CTL_MOD, connection.fd, EPOLLIN, &connection);
    }
    return true;
  }

  const int listener_;
  const int epoll_;
  const bool edge_;
  const bool websocket_;
  bool paused_ = false;
  bool closed_ = false;
  Tally& tally_;
  std::unique_ptr<std::uint8_t[]> block_;
  std::unique_ptr<std::uint8_t[]> answers_;
  std::size_t block_size_ = 0;
  std::size_t answered_ = 0;
  std::size_t larger_ = 0;  // size of the block that the largest frame so far needs
};

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  HostedServer server{"raw epoll", 0, {}};
  for (Tally& tally : tallies) {
    const int listener = listen_on(server.port, options.threads > 1);
    std::thread([listener, &options, &tally] { Worker(listener, options.variant, tally).run(); }).detach();
  }
  return server;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "level, edge, websocket", bench::start); }

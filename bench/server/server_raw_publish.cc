// SPDX-License-Identifier: MIT
// The ceiling of a group: epoll and writev by hand. The frames of one read for all connections are gathered, and each
// connection gets them in one writev, from where they lie. One thread has all connections.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "bench/server/host.h"

namespace bench {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr int kEvents = 256;
constexpr std::size_t kPartsMax = 512;  // of one writev

struct Connection {
  int fd;
  std::size_t place;                  // among all
  std::vector<std::uint8_t> part;     // the beginning of an incomplete frame
  std::vector<std::uint8_t> pending;  // bytes that the socket did not take
};

class Worker {
 public:
  Worker(int listener, Tally& tally)
      : listener_(listener),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        tally_(tally),
        block_(std::make_unique_for_overwrite<std::uint8_t[]>(kBlock + kHeaderSize + kBodyMax)) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (epoll_event events[kEvents];;) {
      const int count = epoll_wait(epoll_, events, kEvents, -1);
      for (int i = 0; i < count; ++i) {
        auto* const connection = static_cast<Connection*>(events[i].data.ptr);
        if (connection == nullptr) {
          accept_all();
        } else if ((events[i].events & EPOLLOUT) != 0U ? !flush(*connection) : !read(*connection)) {
          end(connection);
        }
      }
    }
  }

 private:
  void watch(int operation, int fd, std::uint32_t events, Connection* connection) const {
    epoll_event event{};
    event.events = events;
    event.data.ptr = connection;
    epoll_ctl(epoll_, operation, fd, &event);
  }

  void accept_all() {
    for (int fd = 0; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      const int yes = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      tally_.add(Tally::accepted);
      all_.push_back(new Connection{fd, all_.size(), {}, {}});
      watch(EPOLL_CTL_ADD, fd, EPOLLIN, all_.back());
    }
  }

  void end(Connection* connection) {
    all_[connection->place] = all_.back();
    all_[connection->place]->place = connection->place;
    all_.pop_back();
    close(connection->fd);
    delete connection;
    tally_.add(Tally::closed);
  }

  // Returns false if the caller must close the connection.
  bool read(Connection& connection) {
    const std::size_t before = connection.part.size();
    std::copy(connection.part.begin(), connection.part.end(), block_.get());
    const ssize_t got = recv(connection.fd, block_.get() + before, kBlock, 0);
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    Bytes bytes(block_.get(), before + static_cast<std::size_t>(got));
    while (bytes.size() >= kHeaderSize) {
      const Header header = decode_header(bytes.data());
      if (header.version != kVersion || header.body_size > kBodyMax) {
        return false;
      }
      const std::size_t size = kHeaderSize + header.body_size;
      if (bytes.size() < size) {
        break;
      }
      tally_.add(Tally::messages);
      if (header.id == kPublish) {
        gather(bytes.first(size));
      } else {
        const iovec frame{const_cast<std::uint8_t*>(bytes.data()), size};
        write_to(connection, {&frame, 1});
      }
      bytes = bytes.subspan(size);
    }
    publish();
    connection.part.assign(bytes.begin(), bytes.end());
    return true;
  }

  // Adds a frame for all connections. One that lies after the last one is part of it.
  void gather(Bytes frame) {
    auto* const at = const_cast<std::uint8_t*>(frame.data());
    if (!gathered_.empty() && static_cast<std::uint8_t*>(gathered_.back().iov_base) + gathered_.back().iov_len == at) {
      gathered_.back().iov_len += frame.size();
      return;
    }
    if (gathered_.size() == kPartsMax) {
      publish();
    }
    gathered_.push_back({at, frame.size()});
  }

  void publish() {
    if (!gathered_.empty()) {
      for (Connection* const connection : all_) {
        write_to(*connection, gathered_);
      }
      gathered_.clear();
    }
  }

  // Keeps the bytes that the socket does not take. An error shows when the connection is read.
  void write_to(Connection& connection, std::span<const iovec> parts) {
    std::size_t done = 0;
    if (connection.pending.empty()) {
      const ssize_t sent = writev(connection.fd, parts.data(), static_cast<int>(parts.size()));
      if (sent < 0 && errno != EAGAIN) {
        return;
      }
      done = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    }
    const bool waited = !connection.pending.empty();
    for (const iovec& part : parts) {
      const std::size_t skipped = std::min(done, part.iov_len);
      const auto* const from = static_cast<const std::uint8_t*>(part.iov_base);
      connection.pending.insert(connection.pending.end(), from + skipped, from + part.iov_len);
      done -= skipped;
    }
    if (!waited && !connection.pending.empty()) {
      watch(EPOLL_CTL_MOD, connection.fd, EPOLLIN | EPOLLOUT, &connection);
    }
  }

  bool flush(Connection& connection) {
    std::vector<std::uint8_t>& pending = connection.pending;
    const ssize_t sent = send(connection.fd, pending.data(), pending.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN;
    }
    pending.erase(pending.begin(), pending.begin() + sent);
    if (pending.empty()) {
      watch(EPOLL_CTL_MOD, connection.fd, EPOLLIN, &connection);
    }
    return true;
  }

  const int listener_;
  const int epoll_;
  Tally& tally_;
  const std::unique_ptr<std::uint8_t[]> block_;
  std::vector<Connection*> all_;
  std::vector<iovec> gathered_;  // frames for all connections
};

// A group is of one thread: with more of them, this server has one.
HostedServer start(const HostOptions&, std::vector<Tally>& tallies) {
  HostedServer server{"raw writev", 0, {}};
  const int listener = listen_on(server.port, false);
  std::thread([listener, &tally = tallies[0]] { Worker(listener, tally).run(); }).detach();
  return server;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start); }

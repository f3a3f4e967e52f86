// SPDX-License-Identifier: MIT
// Very many connections to one endpoint of loopback, from as many source addresses as their ports need. The bytes are
// made here, without Weft, so that all the work that scale_test.py measures is that of the other side.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kPortsOfAnAddress = 10'000;  // with more the kernel searches long for a free one
constexpr int kAtOnce = 256;               // connections under way: fewer than the backlog

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Protocol: the bytes of a peer's handshake and of its message.
struct Protocol {
  std::string hello;
  std::string message;
  bool zmtp;
};

Protocol make_protocol(std::string_view socket_type) {
  if (socket_type.empty()) {
    return {"x\n", "y\n", false};  // the server echoes lines
  }
  std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
  greeting.resize(64);
  std::string ready("\5READY\xbSocket-Type\0\0\0", 21);
  ready += static_cast<char>(socket_type.size());
  ready += socket_type;
  const std::string frame = std::string("\4", 1) + static_cast<char>(ready.size()) + ready;
  return {greeting + frame, std::string("\0\1y", 3), true};
}

void read_exactly(int fd, std::size_t size, std::uint8_t* into) {
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = ::recv(fd, into + have, size - have, 0);
    if (got <= 0) {
      fail("the other side ended a connection");
    }
    have += static_cast<std::size_t>(got);
  }
}

class Peers {
 public:
  Peers(Protocol protocol, std::uint16_t port) : protocol_(std::move(protocol)), port_(port) {}

  // Connections that stop in the middle of their longest handshake.
  void open_half(int count) {
    const std::size_t first = fds_.size();
    open(count, false);
    // All but the last byte of a READY of 16 KiB with one property.
    std::string half = protocol_.hello.substr(0, 64) + std::string("\6\0\0\0\0\0\0\x40\0", 9);
    half += std::string("\5READY\1X\0\0\x3f\xf4", 12) + std::string(0x3ff4 - 1, 'x');
    for (std::size_t i = first; i < fds_.size(); ++i) {
      send_all(fds_[i], half);
    }
  }
  void open(int count, bool shakes_hands) {
    ++generation_;  // new source addresses: the ports of the old ones rest for a minute
    for (int i = 0; i < count; i += kAtOnce) {
      const std::size_t first = fds_.size();
      for (int j = i; j < std::min(count, i + kAtOnce); ++j) {
        fds_.push_back(connect_one(j / kPortsOfAnAddress));
        if (shakes_hands) {
          send_all(fds_.back(), protocol_.hello);
        }
      }
      for (std::size_t j = first; shakes_hands && j < fds_.size(); ++j) {
        finish_handshake(fds_[j]);
      }
    }
  }
  void send_each() {
    for (const int fd : fds_) {
      send_all(fd, protocol_.message);
    }
  }
  // Messages of one connection, each a millisecond after the one before.
  void pace(int count) {
    for (int i = 0; i < count; ++i) {
      send_all(fds_.front(), protocol_.message);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void close(std::string_view order) {
    if (order == "reverse") {
      std::reverse(fds_.begin(), fds_.end());
    } else if (order == "random") {
      std::shuffle(fds_.begin(), fds_.end(), std::mt19937(1));
    }
    for (const int fd : fds_) {
      ::close(fd);
    }
    fds_.clear();
  }

 private:
  int connect_one(int address) const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      fail("socket");
    }
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr =
        htonl(0x7f000000U | static_cast<std::uint32_t>(generation_ << 8U) | static_cast<std::uint32_t>(address + 1));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&source), sizeof source) != 0) {
      fail("bind");
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      fail("connect");
    }
    return fd;
  }
  static void send_all(int fd, std::string_view bytes) {
    if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
      fail("send");
    }
  }
  void finish_handshake(int fd) const {
    std::uint8_t bytes[256];
    if (!protocol_.zmtp) {
      return read_exactly(fd, protocol_.hello.size(), bytes);
    }
    read_exactly(fd, 64 + 2, bytes);
    read_exactly(fd, bytes[65], bytes);
  }

  const Protocol protocol_;
  const std::uint16_t port_;
  unsigned generation_ = 0;
  std::vector<int> fds_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::puts(
        "usage: scale_peers PORT DEALER|PUSH|lines: answers lines of input with \"done\":\n"
        "  open N, silent N, half N: connects, with a handshake, without, with half of one\n"
        "  each 0: every connection sends a message; pace N: one sends N, a millisecond apart\n"
        "  in_order|reverse|random 0: closes all connections");
    return 2;
  }
  const std::string type = argv[2];
  Peers peers(make_protocol(type == "lines" ? "" : type), static_cast<std::uint16_t>(std::stoi(argv[1])));
  std::string what;
  int number = 0;
  while (std::cin >> what >> number) {
    if (what == "open" || what == "silent") {
      peers.open(number, what == "open");
    } else if (what == "half") {
      peers.open_half(number);
    } else if (what == "each") {
      peers.send_each();
    } else if (what == "pace") {
      peers.pace(number);
    } else {
      peers.close(what);
    }
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}

// SPDX-License-Identifier: MIT
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

inline std::string greeting(const std::string& mechanism) {
  return "\xFF"s + std::string(8, '\0') + "\x7F\x03\x01" + mechanism + std::string(20 - mechanism.size(), '\0') +
         std::string(32, '\0');
}
inline std::string frame(char flags, const std::string& body) {
  return std::string{flags, static_cast<char>(body.size())} + body;
}
inline std::string command(const std::string& name, const std::string& data = "") {
  return frame(4, static_cast<char>(name.size()) + name + data);
}
inline std::string property(const std::string& name, const std::string& value) {
  return static_cast<char>(name.size()) + name + "\0\0\0"s + static_cast<char>(value.size()) + value;
}

// Plain: a TCP socket without ZeroMQ.
class Plain {
 public:
  Plain() = default;
  explicit Plain(int fd) : fd_(fd) {}
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() { ::close(fd_); }

  int connect(int port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = loopback(port);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  void begin_connect(int port) const {  // of a descriptor that does not wait
    const sockaddr_in at = loopback(port);
    (void)::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  }
  int listen(int backlog = 8) {  // the port
    const int port = bind();
    return ::listen(fd_, backlog) == 0 ? port : -1;
  }
  int bind() {  // a port that refuses connections, and that no other program gets
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    const bool done = ::bind(fd_, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0;
    return done ? ntohs(at.sin_port) : -1;
  }
  [[nodiscard]] int accept() const { return comes() ? ::accept(fd_, nullptr, nullptr) : -1; }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string receive() const {  // empty: the end, or nothing came for long, which fails the test
    char bytes[4096];
    const ssize_t count = comes() ? ::recv(fd_, bytes, sizeof bytes, 0) : 0;
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  // Returns the bytes up to and with `what`. The end of the stream before that fails the test.
  [[nodiscard]] std::string receive_until(const std::string& what) const {
    constexpr std::size_t kMuch = 10'000;
    std::string all;
    for (std::string more; all.find(what) == std::string::npos; all += more) {
      more = receive();
      if (more.empty() || all.size() > kMuch) {
        ADD_FAILURE() << "it did not come, but " << testing::PrintToString(all);
        break;
      }
    }
    return all;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  [[nodiscard]] bool comes() const {
    pollfd ready{fd_, POLLIN, 0};
    const bool came = ::poll(&ready, 1, kLong) == 1;
    EXPECT_TRUE(came) << "nothing comes";
    return came;
  }
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  int fd_ = -1;
};

struct Event {
  int number = 0;
  int value = 0;
};

// A socket and the events of its connections.
class Watched {
 public:
  Watched(void* context, int type) : socket_(zmq_socket(context, type)) {
    static int count = 0;
    const std::string name = "inproc://events " + std::to_string(++count);  // a socket that lingers keeps its name
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, kLong);
    set(ZMQ_SNDTIMEO, kLong);
    set(ZMQ_RECONNECT_IVL, 1);
    constexpr int kBoring = ZMQ_EVENT_CONNECT_DELAYED | ZMQ_EVENT_LISTENING;
    EXPECT_EQ(zmq_socket_monitor(socket_, name.c_str(), ZMQ_EVENT_ALL & ~kBoring), 0);
    events_ = zmq_socket(context, ZMQ_PAIR);
    EXPECT_EQ(zmq_setsockopt(events_, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
    EXPECT_EQ(zmq_connect(events_, name.c_str()), 0);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    zmq_close(socket_);
    zmq_close(events_);
  }

  [[nodiscard]] void* get() const { return socket_; }
  void set(int option, int value) const { EXPECT_EQ(zmq_setsockopt(socket_, option, &value, sizeof value), 0); }
  void set(int option, const std::string& value) const {
    EXPECT_EQ(zmq_setsockopt(socket_, option, value.data(), value.size()), 0);
  }
  int bind() const {  // the port
    EXPECT_EQ(zmq_bind(socket_, "tcp://127.0.0.1:*"), 0);
    char endpoint[64];
    std::size_t size = sizeof endpoint;
    EXPECT_EQ(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    return std::atoi(std::strrchr(endpoint, ':') + 1);
  }
  void connect(int port) const {
    EXPECT_EQ(zmq_connect(socket_, ("tcp://127.0.0.1:" + std::to_string(port)).c_str()), 0);
  }
  [[nodiscard]] Event next() const {
    std::uint8_t head[6];
    char endpoint[64];
    Event event;
    if (zmq_recv(events_, head, sizeof head, 0) != sizeof head || zmq_recv(events_, endpoint, sizeof endpoint, 0) < 0) {
      ADD_FAILURE() << "no event";
      return event;
    }
    std::uint16_t number = 0;
    std::memcpy(&number, head, sizeof number);
    std::memcpy(&event.value, head + sizeof number, sizeof event.value);
    event.number = number;
    return event;
  }
  void expect(int number) const { EXPECT_EQ(next().number, number); }
  void expect(int number, int value) const {
    const Event event = next();
    EXPECT_EQ(event.number, number);
    EXPECT_EQ(event.value, value);
  }
  // Expects that the I/O thread is idle and has raised no event since the last one read.
  void expect_silence() const {
    const int port = bind();
    EXPECT_EQ(zmq_unbind(socket_, ("tcp://127.0.0.1:" + std::to_string(port)).c_str()), 0);
    expect(ZMQ_EVENT_CLOSED);
  }

 private:
  void* socket_;
  void* events_;
};

}  // namespace weft::capi

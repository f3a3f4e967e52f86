// SPDX-License-Identifier: MIT
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/nats_server.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/sys/socket.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {

// Asks a server of NATS, without a client: returns the line after the head of the answer. Empty: it did not answer.
[[nodiscard]] inline std::string ask_server(const nats::test::NatsServer& server, const std::string& subject,
                                            const std::string& body = {}) {
  const sys::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval most{2, 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(server.port())));
  if (::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  const std::string request = "CONNECT {\"verbose\":false}\r\nSUB answer 1\r\nPUB " + subject + " answer " +
                              std::to_string(body.size()) + "\r\n" + body + "\r\nPING\r\n";
  (void)!::send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string got;
  char bytes[16384];
  for (;;) {
    const std::size_t head = got.find("MSG answer");
    const std::size_t begin = head == std::string::npos ? head : got.find("\r\n", head);
    const std::size_t end = begin == std::string::npos ? begin : got.find("\r\n", begin + 2);
    if (end != std::string::npos) {
      return got.substr(begin + 2, end - begin - 2);
    }
    const ssize_t size = ::recv(socket.fd(), bytes, sizeof bytes, 0);
    if (size <= 0) {
      return {};
    }
    got.append(bytes, static_cast<std::size_t>(size));
  }
}

// The number of the server, "s0" and so on, that leads the stream, or its consumer. Negative: this one reports none.
[[nodiscard]] inline int leader_known_to(const nats::test::NatsServer& server, const std::string& stream,
                                         const std::string& consumer = {}) {
  const std::string of = consumer.empty() ? "STREAM.INFO." + stream : "CONSUMER.INFO." + stream + "." + consumer;
  const std::string info = ask_server(server, "$JS.API." + of);
  const std::string before = "\"leader\":\"s";
  const std::size_t at = info.find(before);
  return at == std::string::npos ? -1 : info.at(at + before.size()) - '0';
}

// Declares a stream on new servers, which may not have a leader yet, or not know each other.
[[nodiscard]] inline Result<void> declare_in_cluster(const TopicsOptions& options, const StreamOptions& stream) {
  Context context;
  Topics topics = WEFT_TRY(Topics::open(context, options));
  const Instant end = sys::now() + std::chrono::seconds(60);
  for (;;) {
    const auto made = topics.stream(stream);
    if (made) {
      return {};
    }
    if (sys::now() >= end) {
      return made.error();
    }
  }
}

// NatsCluster: three servers with JetStream, which hold three copies.
class NatsCluster {
 public:
  static constexpr int kServers = 3;

  explicit NatsCluster(std::string program, int started = kServers) : program_(std::move(program)) {
    // A server of a cluster with JetStream has the others in its configuration before they start.
    for (sys::Fd& each : reserved_) {
      each = *sys::reserve_tcp_port();
      ports_.push_back(std::to_string(sys::local_address(each.fd())->port()));
    }
    while (static_cast<int>(servers_.size()) < started) {
      start_next();
    }
  }
  NatsCluster(const NatsCluster&) = delete;
  NatsCluster& operator=(const NatsCluster&) = delete;
  ~NatsCluster() {
    servers_.clear();
    for (const std::string& each : directories_) {
      std::filesystem::remove_all(each);
    }
  }

  void start_next() {
    directories_.push_back(*sys::make_private_directory());
    const std::string settings = config(static_cast<int>(servers_.size()));
    servers_.push_back(std::make_unique<nats::test::NatsServer>(settings, std::vector<std::string>(), program_));
  }
  [[nodiscard]] nats::test::NatsServer& server(int number) { return *servers_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] std::string urls() const {
    std::string all;
    for (const auto& each : servers_) {
      all += (all.empty() ? "" : ",") + each->url();
    }
    return all;
  }
  // The number of the server that leads the stream, or its consumer. Negative: no running server reports one.
  [[nodiscard]] int leader_of(const std::string& stream, const std::string& consumer = {}) const {
    for (const auto& each : servers_) {
      const int leader = each->pid() > 0 ? leader_known_to(*each, stream, consumer) : -1;
      if (leader >= 0) {
        return leader;
      }
    }
    return -1;
  }

 private:
  [[nodiscard]] std::string config(int number) const {
    const auto at = static_cast<std::size_t>(number);
    std::string routes;
    for (const std::string& port : ports_) {
      routes += (routes.empty() ? "" : ", ") + ("\"nats://127.0.0.1:" + port + "\"");
    }
    return "server_name: s" + std::to_string(number) + "\njetstream { store_dir: \"" + directories_[at] +
           "\" }\ncluster { name: t, listen: \"127.0.0.1:" + ports_[at] + "\", routes: [" + routes + "] }\n";
  }

  const std::string program_;
  std::array<sys::Fd, kServers> reserved_;
  std::vector<std::string> ports_;
  std::vector<std::string> directories_;
  std::vector<std::unique_ptr<nats::test::NatsServer>> servers_;
};

}  // namespace weft::topic

// SPDX-License-Identifier: MIT
// Kept topics of a fleet on three servers of NATS, with three copies, when servers are lost.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/nats_server.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using nats::test::NatsServer;

// Three servers of a cluster, which hold three copies.
class KeptNatsCluster : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    program_ = GetParam() == "nats" ? WEFT_NATS_SERVER : nats::test::current_server();
    if (program_.empty()) {
      GTEST_SKIP() << (GetParam() == "nats" ? "there is no nats-server"
                                            : "there is no current nats-server: deps/setup.sh tests builds it with Go");
    }
    ports_ = free_ports();
    for (int i = 0; i < kServers; ++i) {
      directories_.push_back(*sys::make_private_directory());
      servers_.push_back(std::make_unique<NatsServer>(config(i), std::vector<std::string>(), program_));
    }
  }
  void TearDown() override {
    servers_.clear();
    for (const std::string& each : directories_) {
      std::filesystem::remove_all(each);
    }
  }
  [[nodiscard]] std::string config(int number) const {
    std::string routes;
    for (int i = 0; i < kServers; ++i) {
      routes += (routes.empty() ? "" : ", ") + ("\"nats://127.0.0.1:" + ports_[static_cast<std::size_t>(i)] + "\"");
    }
    return "server_name: s" + std::to_string(number) + "\njetstream { store_dir: \"" +
           directories_[static_cast<std::size_t>(number)] +
           "\" }\ncluster { name: t, listen: \"127.0.0.1:" + ports_[static_cast<std::size_t>(number)] +
           "\", routes: [" + routes + "] }\n";
  }
  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    for (const auto& each : servers_) {
      options.fleet += (options.fleet == "local" ? "" : ",") + each->url();
    }
    options.fleet = options.fleet.substr(options.fleet.find("nats"));
    return options;
  }

  // A server of a cluster with JetStream has the others in its configuration before they start.
  [[nodiscard]] static std::vector<std::string> free_ports() {
    std::vector<std::string> ports;
    std::vector<sys::Fd> held;
    for (int i = 0; i < kServers; ++i) {
      held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof address;
      EXPECT_EQ(::bind(held.back().fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
      EXPECT_EQ(::getsockname(held.back().fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
      ports.push_back(std::to_string(ntohs(address.sin_port)));
    }
    return ports;
  }

  static constexpr int kServers = 3;
  std::string program_;
  std::vector<std::string> ports_;
  std::vector<std::string> directories_;
  std::vector<std::unique_ptr<NatsServer>> servers_;
  Context context_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNatsCluster, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptNatsCluster, ThreeCopiesSurviveTheLossOfEachServerInTurn) {
  Topics topics = *Topics::open(context_, options());
  Result<Stream> stream = Errc::would_block;  // the cluster may not have a leader yet, or not know all its servers
  for (const Instant end = sys::now() + 60s; !stream && sys::now() < end;) {
    stream = topics.stream({.name = "s", .topics = {"s.>"}, .survives = Survives::machine});
  }
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ(stream->survives(), Survives::machine);
  Reader reader = *stream->read();
  constexpr int kCount = 3000;
  std::vector<PendingPublish> pending;
  for (int i = 0; i < kCount; ++i) {
    if (i % (kCount / 3) == kCount / 6) {
      const int lost = i / (kCount / 3);
      servers_[static_cast<std::size_t>(lost)]->restart_with(config(lost));
    }
    auto sent = stream->publish_later("s.a", std::to_string(i));
    ASSERT_TRUE(sent) << sent.error().message();
    pending.push_back(*std::move(sent));
    if (i % (kCount / 6) == 0) {
      const auto published = pending.back().wait();
      ASSERT_TRUE(published) << i << ": " << published.error().message();
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const auto published = pending[static_cast<std::size_t>(i)].wait();
    ASSERT_TRUE(published) << i << ": " << published.error().message();
  }
  std::set<std::string> seen;
  while (seen.size() < kCount) {
    const auto message = reader.next_until(sys::now() + 60s);
    ASSERT_TRUE(message) << seen.size() << ": " << message.error().message();
    EXPECT_TRUE(seen.insert(std::string(message->text())).second) << "stored twice: " << message->text();
  }
}

}  // namespace
}  // namespace weft::topic

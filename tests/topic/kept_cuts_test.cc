// SPDX-License-Identifier: MIT
// Kept topics of a fleet on three servers of NATS, while a network carries no packets, or those of one direction only.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/topic/kept_load.h"
#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "tests/topic/star_networks.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// SeparateCluster: three servers with JetStream, each in a network of its own.
class SeparateCluster {
 public:
  static constexpr int kServers = StarNetworks::kServers;

  SeparateCluster(const StarNetworks& networks, const std::string& program) : networks_(networks) {
    for (int i = 0; i < kServers; ++i) {
      directories_.push_back(*sys::make_private_directory());
      networks_.in_server(i, [&] {
        servers_.push_back(
            std::make_unique<nats::test::NatsServer>(config(i), std::vector<std::string>{"-a", "0.0.0.0"}, program));
      });
    }
  }
  SeparateCluster(const SeparateCluster&) = delete;
  SeparateCluster& operator=(const SeparateCluster&) = delete;
  ~SeparateCluster() {
    servers_.clear();
    for (const std::string& each : directories_) {
      std::filesystem::remove_all(each);
    }
  }

  [[nodiscard]] std::string url(int number) const {
    return "nats://" + StarNetworks::address_of(number) + ":" + servers_[static_cast<std::size_t>(number)]->port();
  }
  [[nodiscard]] std::string urls() const { return url(0) + "," + url(1) + "," + url(2); }
  // The number of the server that leads the stream, as one of them reports it. Negative: none does.
  [[nodiscard]] int leader_of(const std::string& stream) const {
    int found = -1;
    for (const Instant end = sys::now() + 60s; found < 0 && sys::now() < end;) {
      for (int i = 0; i < kServers && found < 0; ++i) {
        found = networks_.in_server(i, [&] { return leader_known_to(*servers_[static_cast<std::size_t>(i)], stream); });
      }
    }
    return found;
  }

 private:
  [[nodiscard]] std::string config(int number) const {
    std::string routes;
    for (int i = 0; i < kServers; ++i) {
      routes += (i == 0 ? "" : ", ") + ("\"nats://" + StarNetworks::address_of(i)) + ":6222\"";
    }
    return "server_name: s" + std::to_string(number) + "\njetstream { store_dir: \"" +
           directories_[static_cast<std::size_t>(number)] +
           "\" }\ncluster { name: t, listen: \"0.0.0.0:6222\", routes: [" + routes + "] }\n";
  }

  const StarNetworks& networks_;
  std::vector<std::string> directories_;
  std::vector<std::unique_ptr<nats::test::NatsServer>> servers_;
};

// The parameter: the age of the servers.
class KeptCuts : public OnEachServer {
 protected:
  using Cuts = std::vector<std::pair<int, int>>;  // from, to

  void SetUp() override {
    OnEachServer::SetUp();
    if (IsSkipped()) {
      return;
    }
    networks_.emplace();
    if (!networks_->missing().empty()) {
      GTEST_SKIP() << networks_->missing();
    }
    cluster_.emplace(*networks_, program_);
  }
  static Cuts to_others(int leader) {
    return {{leader, (leader + 1) % SeparateCluster::kServers}, {leader, (leader + 2) % SeparateCluster::kServers}};
  }
  static Cuts from_others(int leader) {
    Cuts cuts;
    for (const auto& [from, to] : to_others(leader)) {
      cuts.emplace_back(to, from);
    }
    return cuts;
  }
  static Cuts both(Cuts one, const Cuts& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  }

  // The instance "Many" runs in the nightly effort.
  static int messages() {
    const std::string suite = testing::UnitTest::GetInstance()->current_test_suite()->name();
    return suite.starts_with("Many/") ? many_messages() : kMessages;
  }

  // The handles connect to the leader first. A half of the messages is under way when the cut begins, the other half is
  // published during it.
  template <typename Choose>
  void cut_network(const char* fault, const Choose& choose) {
    TopicsOptions options;
    options.fleet = cluster_->urls();
    const auto declared =
        declare_in_cluster(options, {.name = "jobs", .topics = {"jobs.>"}, .survives = Survives::machine});
    ASSERT_TRUE(declared) << declared.error().message();
    const int leader = cluster_->leader_of("jobs");
    ASSERT_GE(leader, 0);
    options.fleet = cluster_->url(leader);
    options.ping_every = 2s;
    const int all = messages();
    Load load(options, Survives::machine, all);
    load.release(all / 2);
    ASSERT_TRUE(load.acknowledged(all / 4));
    const Cuts cuts = choose(leader);
    for (const auto& [from, to] : cuts) {
      ASSERT_TRUE(networks_->cut(from, to));
    }
    const int before = load.acknowledged();
    load.release(all);
    load.pass(sys::now() + kCut);
    const int during = load.acknowledged() - before;
    const bool of_servers = cuts.front().first != StarNetworks::kMiddle && cuts.front().second != StarNetworks::kMiddle;
    if (of_servers) {
      EXPECT_LT(before + during, all) << "the server of the program is cut off";
    }
    for (const auto& [from, to] : cuts) {
      ASSERT_TRUE(networks_->heal(from, to));
    }
    load.finish(fault, of_servers ? Load::servers_of(GetParam()) : Load::Servers::whole);
    std::printf("[ INFO ] %s: %d acknowledged during the cut\n", fault, during);
  }

  static constexpr Duration kCut = 12s;  // the other servers choose a leader within 9 s

  std::optional<StarNetworks> networks_;
  std::optional<SeparateCluster> cluster_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptCuts, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });
INSTANTIATE_TEST_SUITE_P(Many, KeptCuts, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptCuts, TheLeaderIsCutFromTheOtherServers) {
  cut_network("the leader is cut from the others",
              [](int leader) { return both(to_others(leader), from_others(leader)); });
}
TEST_P(KeptCuts, TheOtherServersGetNothingFromTheLeader) {
  cut_network("the others get nothing from the leader", [](int leader) { return to_others(leader); });
}
TEST_P(KeptCuts, TheLeaderGetsNothingFromTheOtherServers) {
  cut_network("the leader gets nothing from the others", [](int leader) { return from_others(leader); });
}
TEST_P(KeptCuts, TheClientIsCutFromTheLeader) {
  cut_network("the client is cut from the leader",
              [](int leader) { return Cuts{{StarNetworks::kMiddle, leader}, {leader, StarNetworks::kMiddle}}; });
}
TEST_P(KeptCuts, TheClientGetsNothingFromTheLeader) {
  cut_network("the client gets nothing from the leader",
              [](int leader) { return Cuts{{leader, StarNetworks::kMiddle}}; });
}
TEST_P(KeptCuts, TheLeaderGetsNothingFromTheClient) {
  cut_network("the leader gets nothing from the client",
              [](int leader) { return Cuts{{StarNetworks::kMiddle, leader}}; });
}

// DatagramEnd: a socket of the network of the calling thread.
class DatagramEnd {
 public:
  DatagramEnd() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const timeval most{20, 0};
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    EXPECT_EQ(::bind(socket_.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    socklen_t size = sizeof any;
    EXPECT_EQ(::getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    port_ = any.sin_port;
  }
  void send(const DatagramEnd& to, const std::string& address, const std::string& text) const {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = to.port_;
    EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &place.sin_addr), 1);
    (void)!::sendto(socket_.fd(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&place), sizeof place);
  }
  [[nodiscard]] std::string receive() const {
    char bytes[64];
    const ssize_t size = ::recv(socket_.fd(), bytes, sizeof bytes, 0);
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  sys::Fd socket_;
  in_port_t port_ = 0;
};

// A cut that drops nothing would make the cases above pass.
TEST(StarNetworksTest, ACutDropsThePacketsOfOneDirection) {
  StarNetworks networks;
  if (!networks.missing().empty()) {
    GTEST_SKIP() << networks.missing();
  }
  const DatagramEnd middle;
  const auto first = networks.in_server(0, [] { return std::make_unique<DatagramEnd>(); });
  const auto second = networks.in_server(1, [] { return std::make_unique<DatagramEnd>(); });
  const auto end_of = [&](int place) -> const DatagramEnd& {
    return place == StarNetworks::kMiddle ? middle : place == 0 ? *first : *second;
  };
  const auto send = [&](int from, int to, const std::string& text) {
    const std::string address =
        to == StarNetworks::kMiddle ? StarNetworks::middle_of(from) : StarNetworks::address_of(to);
    end_of(from).send(end_of(to), address, text);
  };
  for (const auto& [from, to] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {0, StarNetworks::kMiddle}, {StarNetworks::kMiddle, 0}}) {
    send(from, to, "before");
    EXPECT_EQ(end_of(to).receive(), "before") << from << " " << to;
    ASSERT_TRUE(networks.cut(from, to));
    send(from, to, "cut");
    send(to, from, "back");
    EXPECT_EQ(end_of(from).receive(), "back") << from << " " << to;
    ASSERT_TRUE(networks.heal(from, to));
    send(from, to, "after");
    EXPECT_EQ(end_of(to).receive(), "after") << from << " " << to;
  }
}

}  // namespace
}  // namespace weft::topic

// SPDX-License-Identifier: MIT
#include "weft/msg/socket/endpoints.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/msg/connection/io_service.h"
#include "weft/msg/socket/test_support.h"
#include "weft/net/acceptor.h"
#include "weft/net/listener.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using test::Owner;

class EndpointsTest : public testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<Connection> make_connection() {
    return std::make_shared<Connection>(owner_.core().shared_from_this(), *io_, std::make_shared<const Options>(),
                                        Accepted{std::make_unique<test::FakeStream>()}, "tcp://here", nullptr);
  }
  // Without a name: an accepted connection.
  std::shared_ptr<Connection> connect(const std::string& name = {}) {
    auto connection = make_connection();
    Endpoints::ConnectedPipe& connected = endpoints_.add(owner_.core(), connection);
    if (!name.empty()) {
      Endpoints::ConnectedNames entry{{name, connection}};
      endpoints_.add_name(connected, entry);
    }
    return connection;
  }
  std::shared_ptr<InprocLink> join(const std::string& name, int end) {
    auto link = std::make_shared<InprocLink>();
    auto pipe = std::make_unique<Pipe>(owner_.core(), link, end);
    (void)endpoints_.add_inproc(pipe, name);
    EXPECT_EQ(pipe, nullptr);
    return link;
  }
  void bind(const std::string& name) {
    auto listener = net::Listener::open(net::parse_endpoint("tcp://127.0.0.1:*", true).value(), {}).value();
    Endpoints::BoundNames entry;
    entry[name].acceptor = net::Acceptor::make(io_->loop(), std::move(listener), {});
    endpoints_.add_bound(entry);
    EXPECT_TRUE(entry.empty());
  }
  [[nodiscard]] Endpoints::Disconnected disconnected(const std::string& name) {
    Endpoints::Disconnected found;
    const bool any = endpoints_.disconnect(name, found);
    EXPECT_EQ(any, !found.connections.empty() || !found.links.empty());
    return found;
  }

  Owner owner_;
  std::unique_ptr<IoService> io_ = IoService::make({}).value();
  std::atomic<std::size_t> inproc_count_{0};
  Endpoints endpoints_{inproc_count_};
};

using Connections = std::vector<std::shared_ptr<Connection>>;
using Links = std::vector<std::shared_ptr<InprocLink>>;

TEST_F(EndpointsTest, ANameFindsEachOfItsConnectionsOnce) {
  EXPECT_TRUE(endpoints_.empty());
  auto a = connect("tcp://a");
  auto b = connect("tcp://a");
  auto c = connect("tcp://c");
  EXPECT_FALSE(endpoints_.empty());
  EXPECT_EQ(endpoints_.pipe_count(), 3U);
  EXPECT_TRUE(endpoints_.knows("tcp://a"));
  EXPECT_FALSE(endpoints_.knows("tcp://b"));
  const Connections found = disconnected("tcp://a").connections;
  EXPECT_TRUE(std::is_permutation(found.begin(), found.end(), std::begin({a, b})));
  EXPECT_EQ(disconnected("tcp://a").connections, Connections());
  EXPECT_FALSE(endpoints_.knows("tcp://a"));
  EXPECT_EQ(endpoints_.pipe_count(), 3U);  // a connection that lingers is still there
  endpoints_.erase(a.get());
  endpoints_.erase(a.get());
  EXPECT_EQ(endpoints_.pipe_count(), 2U);
}

TEST_F(EndpointsTest, TheNameOfAConnectionThatGaveUpIsTakenWithoutIt) {
  const auto a = connect("tcp://a");
  EXPECT_TRUE(endpoints_.is_connected());
  endpoints_.give_up(endpoints_.at(a.get()));
  endpoints_.give_up(endpoints_.at(a.get()));
  endpoints_.erase(a.get());
  EXPECT_FALSE(endpoints_.knows("tcp://a"));
  EXPECT_FALSE(endpoints_.is_connected());
  Endpoints::Disconnected found;
  EXPECT_TRUE(endpoints_.disconnect("tcp://a", found));
  EXPECT_TRUE(found.connections.empty());
  EXPECT_FALSE(endpoints_.disconnect("tcp://a", found));
}

TEST_F(EndpointsTest, AForgottenNameFindsNothing) {
  const auto a = connect("tcp://a");
  const auto b = connect("tcp://a");
  endpoints_.forget_name(endpoints_.at(a.get()));
  EXPECT_TRUE(endpoints_.knows("tcp://a"));
  EXPECT_EQ(disconnected("tcp://a").connections, Connections{b});
  endpoints_.forget_name(endpoints_.at(b.get()));  // which has none any more
}

TEST_F(EndpointsTest, AnAcceptedConnectionHasNoName) {
  const auto a = connect();
  EXPECT_FALSE(endpoints_.is_connected());
  EXPECT_FALSE(endpoints_.knows(a->endpoint()));
  endpoints_.forget_name(endpoints_.at(a.get()));
  endpoints_.give_up(endpoints_.at(a.get()));
  EXPECT_EQ(endpoints_.at(a.get()).connection, a);
}

TEST_F(EndpointsTest, ALinkKnowsItsPipeWhileTheSocketHasIt) {
  const auto connected = join("inproc://a", 0);
  const auto bound = join({}, 1);
  EXPECT_EQ(inproc_count_.load(), 2U);
  ASSERT_NE(connected->pipe[0], nullptr);
  ASSERT_NE(bound->pipe[1], nullptr);
  const Pipe* const pipe = bound->pipe[1];
  EXPECT_EQ(endpoints_.take_inproc(bound->pipe[1]).get(), pipe);
  EXPECT_EQ(bound->pipe[1], nullptr);
  EXPECT_EQ(endpoints_.take_inproc(nullptr), nullptr);
  EXPECT_EQ(inproc_count_.load(), 1U);
  EXPECT_EQ(disconnected("inproc://a").links, Links{connected});
  EXPECT_EQ(inproc_count_.load(), 1U);  // disconnect() takes the name only
  EXPECT_NE(endpoints_.take_inproc(connected->pipe[0]), nullptr);
  EXPECT_EQ(connected->pipe[0], nullptr);
  EXPECT_TRUE(endpoints_.empty());
}

TEST_F(EndpointsTest, ATakenPipeLeavesNoNameAndAnErasedOneDoes) {
  const auto taken = join("inproc://a", 0);
  const auto erased = join("inproc://a", 0);
  EXPECT_NE(endpoints_.take_inproc(taken->pipe[0]), nullptr);
  endpoints_.erase_inproc(*erased->pipe[0]);
  EXPECT_EQ(erased->pipe[0], nullptr);
  EXPECT_EQ(inproc_count_.load(), 0U);
  EXPECT_EQ(disconnected("inproc://a").links, Links{erased});
}

TEST_F(EndpointsTest, ABoundNameIsTakenOnce) {
  bind("tcp://one");
  bind("tcp://two");
  EXPECT_TRUE(endpoints_.knows("tcp://one"));
  EXPECT_FALSE(endpoints_.empty());
  EXPECT_NE(endpoints_.take_bound("tcp://one").acceptor, nullptr);
  EXPECT_EQ(endpoints_.take_bound("tcp://one").acceptor, nullptr);
  EXPECT_FALSE(endpoints_.knows("tcp://one"));
  EXPECT_EQ(endpoints_.take_all_bound().size(), 1U);
  EXPECT_TRUE(endpoints_.empty());
}

TEST_F(EndpointsTest, AClosedSocketKeepsOnlyItsConnections) {
  const auto a = connect("tcp://a");
  const auto link = join("inproc://b", 0);
  EXPECT_FALSE(endpoints_.is_quiet());
  const Endpoints::InprocPipes pipes = endpoints_.close();
  EXPECT_EQ(pipes.size(), 1U);
  EXPECT_EQ(link->pipe[0], nullptr);
  EXPECT_EQ(inproc_count_.load(), 0U);
  EXPECT_FALSE(endpoints_.knows("tcp://a"));
  Endpoints::Disconnected found;
  EXPECT_FALSE(endpoints_.disconnect("inproc://b", found));
  EXPECT_FALSE(endpoints_.is_quiet());
  endpoints_.give_up(endpoints_.at(a.get()));  // its name has gone
  endpoints_.erase(a.get());
  EXPECT_TRUE(endpoints_.is_quiet());
}

}  // namespace
}  // namespace weft::msg

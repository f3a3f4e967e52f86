// SPDX-License-Identifier: MIT
// Topics without memory: each allocation fails once, alone and with all later ones.

#include "weft/topic/topics.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/exhaustion/walk.h"
#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/node/interest.h"
#include "weft/topic/node/node.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::FailingMemory;
using test::made;
using test::walk;

TEST(TopicsExhaustion, TheInterestHasTheFiltersThatItTook) {
  const std::vector<Filter> filters = {*Filter::parse("a.b"), *Filter::parse("a.*"), *Filter::parse("a.>"),
                                       *Filter::glob("a*b"),  *Filter::prefix("a."), *Filter::prefix("a.long.one")};
  walk([&](FailingMemory& memory) {
    memory.end();
    topic::InterestTable interest;
    const auto s = make_intrusive<topic::SubscriptionCore>(Full::drop_oldest, 4, 1000);
    std::vector<IntrusivePtr<const topic::OwnFilter>> own;
    for (const Filter& filter : filters) {
      own.push_back(make_intrusive<const topic::OwnFilter>("", filter));
    }
    memory.resume();
    std::size_t patterns = 0;
    bool has[6] = {};
    for (std::size_t i = 0; i < filters.size(); ++i) {
      has[i] = made(interest.add(*s, own[i]));
      patterns += has[i] && i != 0 ? 1 : 0;
    }
    memory.end();
    EXPECT_EQ(interest.patterns(), patterns);
    for (std::size_t i = 0; i < filters.size(); ++i) {
      EXPECT_EQ(interest.remove(*s, filters[i]), has[i]) << i;
    }
    EXPECT_EQ(interest.count("a.b"), 0u);
  });
}

// A handle that served before, and the directory of its fleet.
class HandleExhaustion : public testing::TestWithParam<std::string> {
 protected:
  HandleExhaustion() {
    options_.fleet = GetParam();
    options_.runtime_directory = directory_;
  }
  ~HandleExhaustion() override { std::filesystem::remove_all(directory_); }

  static Instant soon() { return sys::now() + 20s; }
  // The handles are whole: each of their calls works.
  void expect_whole(Topics& one, Topics& other) {
    Subscription s = *other.subscribe("whole.*");
    Publisher p = *one.publisher("whole.a");
    const auto ready = p.wait_subscribers(1, soon());
    ASSERT_TRUE(ready) << ready.error().message();
    ASSERT_TRUE(p.publish("text"));
    const auto got = s.next_until(soon());
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->text(), "text");
    const auto reply = one.request("echo", "text", soon());
    ASSERT_TRUE(reply) << reply.error().message();
    EXPECT_EQ(reply->text(), "text");
  }
  static std::uint64_t losses(Topics& of) {
    const TopicsStatistics all = of.statistics();
    return all.dropped() + all.dropped_full + all.dropped_lost + all.dropped_for_memory + all.control_lost +
           all.control_unsent;
  }
  Service echo(Topics& of) {
    return *of.serve("echo", {}, [](const TopicMessage& m) { return Result<Message>(Message::copy_of(m.body())); });
  }

  const std::string directory_ = *sys::make_private_directory();
  TopicsOptions options_;
  Context context_;
  Context second_;
  Context& other_context() { return GetParam() == "local" ? second_ : context_; }
};
INSTANTIATE_TEST_SUITE_P(Fleets, HandleExhaustion, testing::Values("inproc:walk", "local"),
                         [](const auto& kind) { return kind.param.substr(0, kind.param.find(':')); });

// Regression: a handle of the same process refused the connection, or did not have a subscription, without a report.
TEST_P(HandleExhaustion, AHandleThatOpenedIsWhole) {
  Topics stays = *Topics::open(other_context(), options_);
  const Service echoes = echo(stays);
  walk([&](FailingMemory& memory) {
    auto topics = Topics::open(context_, options_);
    if (!made(topics)) {
      return;
    }
    memory.end();
    expect_whole(*topics, stays);
    expect_whole(stays, *topics);
  });
}

// Each call of a handle is refused, or works; none leaves a half behind that disturbs the next one.
TEST_P(HandleExhaustion, ACallIsRefusedOrWhole) {
  Topics stays = *Topics::open(other_context(), options_);
  const Service echoes = echo(stays);
  Topics topics = *Topics::open(context_, options_);
  Publisher p = *topics.publisher("p");
  Subscription all = *stays.subscribe("p");
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  std::size_t count = 0;
  walk([&](FailingMemory& memory) {
    if (made(p.publish("text"))) {
      memory.end();
      const auto got = all.next_until(soon());
      ASSERT_TRUE(got) << got.error().message();
    }
  });
  walk([&](FailingMemory& memory) {
    auto s = topics.subscribe({"px.*", "news", "a.>"});
    const bool is_made = made(s);
    memory.end();
    Publisher own = *stays.publisher("px.a");
    const auto ready = own.wait_subscribers(is_made ? 1 : 0, soon());
    EXPECT_TRUE(ready) << is_made << ready.error().message();
  });
  walk([&](FailingMemory& memory) {
    const auto ready = p.wait_subscribers(1, soon());
    memory.end();
    (void)made(ready);
    (void)topics.publisher("another." + std::to_string(++count));
  });
  walk([&](FailingMemory& memory) {
    const std::uint64_t before = losses(topics) + losses(stays);
    const std::uint64_t late_before = topics.statistics().late_replies;
    const auto reply = topics.request("echo", "text", sys::now() + 200ms);
    memory.end();
    // Lost with its connection, or for lack of memory; or late.
    const auto explained = [&] {
      return losses(topics) + losses(stays) != before || topics.statistics().late_replies != late_before;
    };
    const bool timed_out = reply.error() == Errc::timed_out;
    for (const Instant end = soon(); timed_out && !explained() && sys::now() < end;) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(reply || reply.error() == Errc::resource_exhausted || reply.error() == Errc::connection_closed ||
                (timed_out && explained()))
        << reply.error().message();
    ASSERT_TRUE(topics.sync(soon()));  // the connection stands again
  });
  walk([&](FailingMemory& memory) {
    const auto service = topics.serve("mine", {}, [](const TopicMessage&) { return Result<Message>(Message()); });
    const bool is_made = made(service);
    memory.end();
    const auto reply = topics.request("mine", "text", soon());
    EXPECT_EQ(reply.has_value(), is_made) << reply.error().message();
  });
  walk([&](FailingMemory& memory) {
    const auto owned = topics.create("world", soon());
    const bool is_made = made(owned);
    memory.end();
    EXPECT_EQ(topics.exists("world"), is_made);
    if (is_made) {
      EXPECT_EQ(topics.list("world")->size(), 1u);
    } else {
      EXPECT_TRUE(topics.create("world", soon()));
    }
  });
  walk([&](FailingMemory& memory) {
    const auto nodes = topics.watch_nodes({}, sys::now());
    memory.end();
    EXPECT_TRUE(nodes.error() == Errc::timed_out || nodes.error() == Errc::resource_exhausted);
  });
  walk([&](FailingMemory& memory) {
    const auto others = topics.sync(soon());
    memory.end();
    EXPECT_TRUE(others ? others->size() == 1 : others.error() == Errc::resource_exhausted);
  });
  expect_whole(topics, stays);
  expect_whole(stays, topics);
}

// The threads of the handles: a handle receives its peers' words, and sends its own.
TEST_P(HandleExhaustion, HandlesMeetThoughTheirThreadsLackMemory) {
  Topics stays = *Topics::open(other_context(), options_);
  const Service echoes = echo(stays);
  const std::size_t step = GetParam() == "local" ? 7 : 1;  // connections that fail are made again after 50 ms
  for (std::size_t spared = 0;; spared += step) {
    SCOPED_TRACE(spared);
    ASSERT_LT(spared, 20'000u);
    test::OthersFailingMemory memory(spared);
    auto topics = Topics::open(context_, options_);
    if (topics) {
      const auto met = topics->sync(soon());
      EXPECT_TRUE(met) << met.error().message();
      memory.end();
      EXPECT_TRUE(!met || met->size() == 1) << met->size();
      expect_whole(*topics, stays);
    }
    memory.end();
    (void)made(topics);
    if (!memory.failed() || testing::Test::HasFailure()) {
      break;
    }
  }
}

// The number of links in each state, whatever their names, and of peers.
std::string end_state(const topic::MeshState& mesh) {
  std::multiset<std::string> links;
  for (const auto& [endpoint, link] : mesh.links().all()) {
    links.insert(std::string(link.connected ? "connected" : "") + (link.up ? " up" : "") +
                 (link.plain ? " plain" : "") + (link.other_name ? " other name of " : " to ") +
                 topic::instance_text(link.instance));
  }
  std::string text;
  for (const std::string& link : links) {
    text += link + ';';
  }
  for (const auto& [instance, peer] : mesh.peers().all()) {
    text += ' ' + topic::instance_text(instance) + (peer.answered ? " answered" : "");
  }
  return text;
}

// Each allocation of a pass fails once, alone and with all later ones. The pass begins scouts for two names of a peer.
TEST(TopicsExhaustion, APassThatLackedMemoryIsRepeatedToTheSameEnd) {
  Context context;
  Context second;
  TopicsOptions options;
  options.fleet = "tcp://";
  options.listen = "tcp://127.0.0.1:0";
  const auto peer = *topic::Node::open(second, options, nullptr);
  const std::vector<std::string> names = {peer->endpoint(), "tcp://localhost" + peer->endpoint().substr(15)};
  const auto node = *topic::Node::open(context, options, nullptr);
  for (const std::string& name : names) {
    ASSERT_TRUE(node->add_peer(name));
  }
  const auto rests = [](const topic::MeshState& mesh) {
    const auto& links = mesh.links().all();
    return mesh.links().unconnected().empty() && mesh.peers().all().size() == 1 &&
           mesh.peers().all().begin()->second.answered &&
           std::any_of(links.begin(), links.end(), [](const auto& each) { return each.second.up; });
  };
  ASSERT_TRUE(node->wait_mesh(sys::now() + 20s, rests));
  const std::string expected = node->with_mesh(end_state);
  for (const auto length : {FailingMemory::Length::one, FailingMemory::Length::all}) {
    bool failed = true;
    for (std::size_t spared = 0; failed && !testing::Test::HasFailure(); ++spared) {
      SCOPED_TRACE(spared);
      ASSERT_LT(spared, 20'000u);
      std::promise<bool> done;
      node->loop().post([&] {
        for (const std::string& name : names) {
          EXPECT_TRUE(node->remove_peer(name));
          EXPECT_TRUE(node->add_peer(name));
        }
        FailingMemory memory(spared, length);
        const Result<void> first = or_no_memory([&] { return node->reconcile(); });
        memory.end();
        EXPECT_TRUE(made(first) || node->reconcile());
        done.set_value(memory.failed());
      });
      failed = done.get_future().get();
      ASSERT_TRUE(node->wait_mesh(sys::now() + 20s, rests)) << node->with_mesh(end_state);
      EXPECT_EQ(node->with_mesh(end_state), expected);
    }
  }
}

// Regression: a link whose second connection failed passed for whole, and a word of the process never arrived.
TEST(TopicsExhaustion, ALinkWithoutItsInnerConnectionGetsItWithTheNextCall) {
  Context context;
  TopicsOptions options;
  options.fleet = "inproc:one";
  const auto one = *topic::Node::open(context, options, nullptr);
  const auto s = *one->subscribe(std::vector<Filter>{*Filter::parse("in.a")}, {});
  options.fleet = "inproc:other";
  options.inside = {"in.>"};
  walk([&](FailingMemory& memory) {
    memory.end();
    const auto other = *topic::Node::open(context, options, nullptr);
    memory.resume();
    if (!made(or_no_memory([&] {
          return one->links().link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner());
        }))) {
      memory.end();
      ASSERT_TRUE(one->links().link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner()));
    }
    memory.end();
    const auto p = *other->make_publisher("in.a");
    const Instant end = sys::now() + 20s;
    Result<TopicMessage> got = Errc::would_block;
    while (!got && sys::now() < end) {
      ASSERT_TRUE(other->publish(*p, as_bytes("text"), {}, false));
      got = one->next_until(*s, sys::now() + 1ms);
    }
    ASSERT_TRUE(got) << got.error().message();
    while (one->try_next(*s)) {
    }
    one->links().unlink_inproc(other->instance(), other->inproc_endpoint());
  });
}

}  // namespace
}  // namespace weft

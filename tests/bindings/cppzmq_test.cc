// SPDX-License-Identifier: MIT
// cppzmq, unmodified, on our zmq.h and libzmq.so.5.
#define ZMQ_BUILD_DRAFT_API  // for its pollers

#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <zmq_addon.hpp>

#include <gtest/gtest.h>
#include <zmq.hpp>

namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

class Cppzmq : public testing::Test {
 protected:
  Cppzmq() {
    int major = 0;
    int minor = 0;
    int patch = 0;
    weft_version(&major, &minor, &patch);  // neither compiles nor links with another zmq.h or library
  }

  zmq::socket_t make(zmq::socket_type type) {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 20'000);
    socket.set(zmq::sockopt::sndtimeo, 20'000);
    return socket;
  }
  // Connects a pair of sockets over tcp; the first is bound.
  std::pair<zmq::socket_t, zmq::socket_t> pair(zmq::socket_type bound, zmq::socket_type connected) {
    std::pair<zmq::socket_t, zmq::socket_t> both(make(bound), make(connected));
    both.first.bind("tcp://127.0.0.1:*");
    both.second.connect(both.first.get(zmq::sockopt::last_endpoint));
    return both;
  }

  zmq::context_t context_;
};

TEST_F(Cppzmq, VersionsAreThoseOf435) {
  EXPECT_EQ(zmq::version(), std::make_tuple(4, 3, 5));
  static_assert(ZMQ_VERSION == ZMQ_MAKE_VERSION(4, 3, 5));
}

TEST_F(Cppzmq, AContextHasOptionsAndMoves) {
  context_.set(zmq::ctxopt::io_threads, 2);
  context_.set(zmq::ctxopt::max_sockets, 100);
  EXPECT_EQ(context_.get(zmq::ctxopt::io_threads), 2);
  EXPECT_EQ(context_.get(zmq::ctxopt::max_sockets), 100);
  EXPECT_GE(context_.get(zmq::ctxopt::socket_limit), 100);
  zmq::context_t moved = std::move(context_);
  context_ = std::move(moved);
  EXPECT_NE(context_.handle(), nullptr);
  context_.shutdown();
  EXPECT_THROW(zmq::socket_t(context_, zmq::socket_type::pair), zmq::error_t);
}

TEST_F(Cppzmq, AMessageIsCopiedMovedCompared) {
  const std::string text(1000, 'x');
  zmq::message_t message(text.begin(), text.end());
  EXPECT_EQ(message.to_string_view(), text);
  zmq::message_t copy;
  copy.copy(message);
  EXPECT_EQ(copy, message);
  zmq::message_t moved(std::move(copy));
  EXPECT_EQ(moved.size(), text.size());
  EXPECT_TRUE(copy.empty());
  moved.rebuild("other", 5);
  EXPECT_NE(moved, message);
  EXPECT_FALSE(moved.more());
  EXPECT_FALSE(moved.str().empty());
}

TEST_F(Cppzmq, MemoryOfTheCallerIsGivenBackOnce) {
  auto [server, client] = pair(zmq::socket_type::pull, zmq::socket_type::push);
  static int freed = 0;
  static char block[100'000] = "zero copy";
  zmq::message_t out(block, sizeof block, [](void*, void* hint) { ++*static_cast<int*>(hint); }, &freed);
  ASSERT_TRUE(client.send(std::move(out), zmq::send_flags::none));
  zmq::message_t in;
  ASSERT_TRUE(server.recv(in));
  EXPECT_EQ(in.size(), sizeof block);
  EXPECT_STREQ(static_cast<const char*>(in.data()), "zero copy");
  client.close();
  server.close();
  context_.close();
  EXPECT_EQ(freed, 1);
}

TEST_F(Cppzmq, RequestsAreAnsweredInBuffers) {
  auto [server, client] = pair(zmq::socket_type::rep, zmq::socket_type::req);
  ASSERT_TRUE(client.send(zmq::str_buffer("hello")));
  std::array<char, 3> small;
  const auto got = server.recv(zmq::buffer(small));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->truncated());
  EXPECT_EQ(got->untruncated_size, 5U);
  ASSERT_TRUE(server.send(zmq::buffer(std::string("world"))));
  zmq::message_t reply;
  ASSERT_EQ(client.recv(reply), 5U);
  EXPECT_EQ(reply.to_string(), "world");
  EXPECT_EQ(std::string(reply.gets("Socket-Type")), "REP");
  EXPECT_THROW((void)client.recv(reply), zmq::error_t) << "EFSM";
}

TEST_F(Cppzmq, NothingToReceiveIsNoError) {
  auto [server, client] = pair(zmq::socket_type::pull, zmq::socket_type::push);
  zmq::message_t message;
  EXPECT_FALSE(server.recv(message, zmq::recv_flags::dontwait));
  server.set(zmq::sockopt::rcvtimeo, 1);
  EXPECT_FALSE(server.recv(message));
}

TEST_F(Cppzmq, OptionsOfEveryKindAreWrittenAndRead) {
  zmq::socket_t socket = make(zmq::socket_type::dealer);
  socket.set(zmq::sockopt::routing_id, "a name");
  EXPECT_EQ(socket.get(zmq::sockopt::routing_id), "a name");
  socket.set(zmq::sockopt::sndhwm, 7);
  EXPECT_EQ(socket.get(zmq::sockopt::sndhwm), 7);
  socket.set(zmq::sockopt::maxmsgsize, int64_t{1} << 40);
  EXPECT_EQ(socket.get(zmq::sockopt::maxmsgsize), int64_t{1} << 40);
  socket.set(zmq::sockopt::immediate, true);
  EXPECT_EQ(socket.get(zmq::sockopt::immediate), true);
  EXPECT_EQ(socket.get(zmq::sockopt::socket_type), zmq::socket_type::dealer);
  EXPECT_FALSE(socket.get(zmq::sockopt::rcvmore));
  EXPECT_THROW(socket.set(zmq::sockopt::subscribe, "x"), zmq::error_t) << "not a SUB";
  EXPECT_THROW(socket.bind("nonsense"), zmq::error_t);
}

TEST_F(Cppzmq, SubscribersGetTheirTopics) {
  zmq::socket_t publisher = make(zmq::socket_type::xpub);
  publisher.bind("tcp://127.0.0.1:*");
  zmq::socket_t subscriber = make(zmq::socket_type::sub);
  subscriber.set(zmq::sockopt::subscribe, "b");
  subscriber.connect(publisher.get(zmq::sockopt::last_endpoint));
  zmq::message_t subscription;
  ASSERT_TRUE(publisher.recv(subscription));
  EXPECT_EQ(subscription.to_string(), "\1b");
  for (const std::string topic : {"a", "b"}) {
    ASSERT_EQ(zmq::send_multipart(publisher, std::array{zmq::buffer(topic), zmq::str_buffer("news")}), 2U);
  }
  std::vector<zmq::message_t> parts;
  ASSERT_EQ(zmq::recv_multipart(subscriber, std::back_inserter(parts)), 2U);
  EXPECT_EQ(parts[0].to_string(), "b");
}

TEST_F(Cppzmq, MultipartMessagesAreBuiltSentAndTakenApart) {
  auto [server, client] = pair(zmq::socket_type::router, zmq::socket_type::dealer);
  client.set(zmq::sockopt::routing_id, "ignored: it is connected");
  zmq::multipart_t request;
  request.addstr("text");
  request.addtyp<uint32_t>(42);
  request.add(zmq::message_t());
  request.pushstr("first");
  ASSERT_TRUE(request.send(client));
  zmq::multipart_t received(server);
  ASSERT_EQ(received.size(), 5U);  // and the name of the peer
  zmq::message_t peer = received.pop();
  EXPECT_EQ(received.popstr(), "first");
  EXPECT_EQ(received.popstr(), "text");
  EXPECT_EQ(received.poptyp<uint32_t>(), 42U);
  EXPECT_TRUE(received.pop().empty());
  zmq::multipart_t reply(std::string("reply"));
  reply.push(std::move(peer));
  ASSERT_TRUE(reply.send(server));
  zmq::multipart_t answer;
  ASSERT_TRUE(answer.recv(client));
  EXPECT_EQ(answer.popstr(), "reply");
  EXPECT_EQ(zmq::multipart_t::decode(zmq::multipart_t(std::string("x")).encode()).popstr(), "x");
}

TEST_F(Cppzmq, PollTellsWhichSocketHasInput) {
  auto [server, client] = pair(zmq::socket_type::pair, zmq::socket_type::pair);
  std::vector<zmq::pollitem_t> items{{server.handle(), 0, ZMQ_POLLIN, 0}, {client.handle(), 0, ZMQ_POLLIN, 0}};
  EXPECT_EQ(zmq::poll(items, 0ms), 0);
  ASSERT_TRUE(client.send(zmq::str_buffer("x")));
  ASSERT_EQ(zmq::poll(items, kPatience), 1);
  EXPECT_EQ(items[0].revents, ZMQ_POLLIN);
  EXPECT_EQ(items[1].revents, 0);
}

TEST_F(Cppzmq, APollerGivesBackWhatItWasGiven) {
  auto [server, client] = pair(zmq::socket_type::pair, zmq::socket_type::pair);
  int mark = 7;
  zmq::poller_t<int> poller;
  poller.add(server, zmq::event_flags::pollin, &mark);
  EXPECT_EQ(poller.size(), 1U);
  EXPECT_THROW(poller.add(server, zmq::event_flags::pollin, &mark), zmq::error_t);
  std::vector<zmq::poller_event<int>> events(2);
  EXPECT_EQ(poller.wait_all(events, 0ms), 0U);
  ASSERT_TRUE(client.send(zmq::str_buffer("x")));
  ASSERT_EQ(poller.wait_all(events, kPatience), 1U);
  EXPECT_EQ(events[0].socket, server);
  EXPECT_EQ(events[0].user_data, &mark);
  EXPECT_EQ(events[0].events, zmq::event_flags::pollin);
  poller.modify(server, zmq::event_flags::none);
  EXPECT_EQ(poller.wait_all(events, 0ms), 0U);
  poller.remove(server);
  EXPECT_THROW(poller.remove(server), zmq::error_t);
}

TEST_F(Cppzmq, AnActivePollerCallsTheHandlers) {
  auto [server, client] = pair(zmq::socket_type::pair, zmq::socket_type::pair);
  zmq::active_poller_t poller;
  int served = 0;
  poller.add(server, zmq::event_flags::pollin, [&, &from = server](zmq::event_flags) {
    zmq::message_t message;
    served += from.recv(message, zmq::recv_flags::dontwait) ? 1 : 0;
  });
  poller.add(client, zmq::event_flags::pollin, [](zmq::event_flags) { FAIL() << "nobody sends to it"; });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(zmq::str_buffer("x")));
  }
  while (served < 3) {
    ASSERT_EQ(poller.wait(kPatience), 1U);
  }
  poller.remove(client);
  EXPECT_EQ(poller.size(), 1U);
  EXPECT_EQ(poller.wait(0ms), 0U);
}

// Remembers the names of the events, in their order.
class Record : public zmq::monitor_t {
 public:
  [[nodiscard]] bool has(const std::string& name) const { return names_.find(name + ",") != std::string::npos; }
  [[nodiscard]] const std::string& names() const { return names_; }

  void on_event_listening(const zmq_event_t&, const char*) override { names_ += "listening,"; }
  void on_event_accepted(const zmq_event_t&, const char*) override { names_ += "accepted,"; }
  void on_event_handshake_succeeded(const zmq_event_t&, const char*) override { names_ += "handshaken,"; }
  void on_event_disconnected(const zmq_event_t&, const char*) override { names_ += "disconnected,"; }
  void on_event_unknown(const zmq_event_t& event, const char*) override {
    names_ += std::to_string(event.event) + "?,";
  }

 private:
  std::string names_;
};

TEST_F(Cppzmq, AMonitorTellsTheLifeOfAConnection) {
  zmq::socket_t server = make(zmq::socket_type::pull);
  Record record;
  record.init(server, "inproc://events");
  server.bind("tcp://127.0.0.1:*");
  {
    zmq::socket_t client = make(zmq::socket_type::push);
    client.connect(server.get(zmq::sockopt::last_endpoint));
    while (!record.has("handshaken")) {
      ASSERT_TRUE(record.check_event(20'000)) << record.names();
    }
  }
  while (!record.has("disconnected")) {
    ASSERT_TRUE(record.check_event(20'000)) << record.names();
  }
  EXPECT_EQ(record.names(), "listening,accepted,handshaken,disconnected,");
  record.abort();
}

TEST_F(Cppzmq, ASteeredProxyPassesMessagesOn) {
  zmq::socket_t front = make(zmq::socket_type::router);
  zmq::socket_t back = make(zmq::socket_type::dealer);
  zmq::socket_t control = make(zmq::socket_type::pair);
  front.bind("inproc://front");
  back.bind("inproc://back");
  control.bind("inproc://control");
  std::thread proxy([&] { zmq::proxy_steerable(front, back, zmq::socket_ref(), control); });
  {
    zmq::socket_t client = make(zmq::socket_type::req);
    zmq::socket_t server = make(zmq::socket_type::rep);
    client.connect("inproc://front");
    server.connect("inproc://back");
    EXPECT_TRUE(client.send(zmq::str_buffer("hello")));
    zmq::message_t message;
    EXPECT_TRUE(server.recv(message));
    EXPECT_TRUE(server.send(message, zmq::send_flags::none));
    EXPECT_EQ(client.recv(message), 5U);
  }
  zmq::socket_t commander = make(zmq::socket_type::pair);
  commander.connect("inproc://control");
  EXPECT_TRUE(commander.send(zmq::str_buffer("TERMINATE")));
  proxy.join();
}

TEST_F(Cppzmq, KeysOfCurveAreTaken) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  std::array<char, 41> server_public;
  std::array<char, 41> server_secret;
  std::array<char, 41> client_public;
  std::array<char, 41> client_secret;
  ASSERT_EQ(zmq_curve_keypair(server_public.data(), server_secret.data()), 0);
  ASSERT_EQ(zmq_curve_keypair(client_public.data(), client_secret.data()), 0);
  zmq::socket_t server = make(zmq::socket_type::rep);
  server.set(zmq::sockopt::curve_server, true);
  server.set(zmq::sockopt::curve_secretkey, server_secret.data());
  server.bind("tcp://127.0.0.1:*");
  zmq::socket_t client = make(zmq::socket_type::req);
  client.set(zmq::sockopt::curve_serverkey, server_public.data());
  client.set(zmq::sockopt::curve_publickey, client_public.data());
  client.set(zmq::sockopt::curve_secretkey, client_secret.data());
  EXPECT_EQ(client.get(zmq::sockopt::curve_publickey), client_public.data());
  client.connect(server.get(zmq::sockopt::last_endpoint));
  ASSERT_TRUE(client.send(zmq::str_buffer("secret")));
  zmq::message_t message;
  ASSERT_TRUE(server.recv(message));
  EXPECT_EQ(message.to_string(), "secret");
}

}  // namespace

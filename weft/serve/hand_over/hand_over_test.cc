// SPDX-License-Identifier: MIT
#include "weft/serve/hand_over/hand_over.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/serve/hand_over/hand_over_wire.h"
#include "weft/serve/hand_over/taken_listeners.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::echo;
using test::kLong;
using test::Signal;

// One process: a runtime, a server, and its hand-over.
struct Generation {
  std::unique_ptr<rt::Runtime> runtime;
  std::unique_ptr<Server> server;
  std::unique_ptr<HandOver> hand_over;
  Signal taken;
};

class HandOverTest : public testing::Test {
 protected:
  HandOverTest() { script_.on_frame = echo; }
  ~HandOverTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  [[nodiscard]] Instant soon() const { return sys::now() + kLong; }
  std::unique_ptr<Generation> begin(unsigned cores = 2) {
    auto one = std::make_unique<Generation>();
    rt::RuntimeOptions options;
    options.cores = cores;
    options.wait_mode = sync::WaitMode::eco;
    one->runtime = std::move(rt::Runtime::start(options)).value();
    one->server = std::move(Server::make(*one->runtime)).value();
    return one;
  }
  Result<std::string> listen(Generation& one, const std::string& endpoint, const ListenerOptions& options = {}) {
    return one.server->listen<HeaderCodec>(endpoint, options, [this] { return test::ScriptService{&script_}; });
  }
  void offer(Generation& one) {
    HandOverOptions options;
    options.on_taken = [&one] { one.taken.give(); };
    auto opened = HandOver::open(*one.server, path_, options);
    ASSERT_TRUE(opened) << opened.error().message();
    one.hand_over = std::move(*opened);
  }
  // The next process, with all listeners of the one before.
  std::unique_ptr<Generation> take_over(std::size_t sockets, unsigned cores = 2) {
    auto taken = TakenListeners::take(path_, soon());
    EXPECT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(taken->sockets().size(), sockets);
    auto next = begin(cores);
    for (const TakenListener& one : taken->listeners()) {
      ListenerOptions options;
      options.adopt_fds = one.descriptors;
      options.name = one.name;
      EXPECT_TRUE(listen(*next, "tcp://*:*", options));
    }
    EXPECT_TRUE(taken->confirm(soon()));
    offer(*next);
    return next;
  }
  static bool serves(const std::string& endpoint) {
    Client client(endpoint);
    client.send(1, "there");
    return client.receive() == "there";
  }
  // Connects until each core has a session, at most so often that a kernel that chooses among two sockets by chance
  // fails once in 2^63. Returns whether each has one.
  static bool reaches_all_cores(const Generation& one, const std::string& endpoint, std::vector<Client>& clients) {
    const auto reached = [&one] {
      bool all = true;
      for (unsigned core = 0; core < one.runtime->size(); ++core) {
        all = all && one.server->counters(core).opened != 0;
      }
      return all;
    };
    while (clients.size() < 64 && !reached()) {
      clients.emplace_back(endpoint);
      clients.back().send(1, "there");
      EXPECT_EQ(clients.back().receive(), "there");
    }
    return reached();
  }
  // Messages from one core to another.
  static std::uint64_t passed(const Generation& one) {
    std::uint64_t messages = 0;
    for (unsigned core = 0; core < one.runtime->size(); ++core) {
      messages += one.runtime->core(core).counts().posted;
    }
    return messages;
  }
  static void end(std::unique_ptr<Generation> one) {
    one->hand_over = nullptr;
    EXPECT_TRUE(one->server->stop(sys::now() + kLong));
    one->server = nullptr;
  }

  test::Script script_;
  const std::string directory_ = *sys::make_private_directory();
  const std::string path_ = directory_ + "/hand_over";
};

TEST_F(HandOverTest, TheNextServerHasTheListenersAndTheOldOneItsSessions) {
  auto old = begin();
  ListenerOptions options;
  options.accept = AcceptMode::reuse_port;
  options.name = "shop";
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0", options).value();
  offer(*old);
  Client stays(endpoint);
  stays.send(1, "old");
  EXPECT_EQ(stays.receive(), "old");
  auto next = take_over(2);  // a socket on each core
  ASSERT_TRUE(old->taken.take());
  EXPECT_TRUE(old->hand_over->taken());
  EXPECT_EQ(old->server->ready().error(), Errc::terminated);
  EXPECT_TRUE(serves(endpoint));
  EXPECT_EQ(next->server->counters().opened, 1u);
  stays.send(1, "still there");
  EXPECT_EQ(stays.receive(), "still there");
  end(std::move(old));
  EXPECT_EQ(stays.read_to_end(), "");
  EXPECT_TRUE(serves(endpoint)) << "the old server did not end the sockets of the next one";
  end(std::move(next));
}

TEST_F(HandOverTest, EachCoreOfTheNextServerAcceptsItsConnections) {
  auto old = begin();
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  for (int generation = 0; generation < 2; ++generation) {
    auto next = take_over(2);
    ASSERT_TRUE(old->taken.take());
    end(std::exchange(old, std::move(next)));
    const std::uint64_t before = passed(*old);
    std::vector<Client> clients;
    EXPECT_TRUE(reaches_all_cores(*old, endpoint, clients));
    EXPECT_EQ(passed(*old), before) << "a core accepted for another one";
  }
  end(std::move(old));
}

TEST_F(HandOverTest, CoresWithoutASocketGetTheirConnectionsFromTheOthers) {
  auto old = begin(2);
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  auto next = take_over(2, 3);
  ASSERT_TRUE(old->taken.take());
  end(std::move(old));
  std::vector<Client> clients;
  EXPECT_TRUE(reaches_all_cores(*next, endpoint, clients));
  {
    const rt::test::Blocked blocked(*next->runtime, 0);  // others stand in for its acceptor
    const auto turn = next->runtime->core(0).loop().activity();
    while (!turn->busy_since(sys::now() - std::chrono::milliseconds(20))) {  // from then on it gets no connection
      std::this_thread::yield();
    }
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(serves(endpoint));
    }
  }
  end(std::move(next));
}

TEST_F(HandOverTest, FewerCoresHaveSeveralSocketsEach) {
  auto old = begin(3);
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  auto next = take_over(3, 2);
  ASSERT_TRUE(old->taken.take());
  end(std::move(old));
  std::vector<Client> clients;
  EXPECT_TRUE(reaches_all_cores(*next, endpoint, clients));
  for (int i = 0; i < 64; ++i) {  // each of the three sockets has some of them
    EXPECT_TRUE(serves(endpoint));
  }
  auto last = take_over(3, 1);
  ASSERT_TRUE(next->taken.take());
  end(std::move(next));
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(serves(endpoint));
  }
  end(std::move(last));
}

TEST_F(HandOverTest, SocketsAreGroupedByTheirListener) {
  auto old = begin();
  ListenerOptions options;
  options.name = "shop";
  const std::string shop = listen(*old, "tcp://127.0.0.1:0", options).value();
  const std::string again = listen(*old, "tcp://127.0.0.1:0", options).value();  // the same name
  options.name = "ops";
  options.accept = AcceptMode::hand_off;
  const std::string ops = listen(*old, "tcp://127.0.0.1:0", options).value();
  offer(*old);
  auto taken = TakenListeners::take(path_, soon());
  ASSERT_TRUE(taken);
  const auto listeners = taken->listeners();
  ASSERT_EQ(listeners.size(), 3u);
  EXPECT_EQ(listeners[0].name, "ops");
  EXPECT_EQ(listeners[0].descriptors.size(), 1u);
  for (const std::size_t one : {1U, 2U}) {
    EXPECT_EQ(listeners[one].name, "shop");
    ASSERT_EQ(listeners[one].descriptors.size(), 2u);
    EXPECT_EQ(sys::local_address(listeners[one].descriptors[0])->to_text(),
              sys::local_address(listeners[one].descriptors[1])->to_text());
  }
  auto next = begin();
  for (const TakenListener& one : listeners) {
    ListenerOptions adopted;
    adopted.adopt_fds = one.descriptors;
    EXPECT_TRUE(listen(*next, "tcp://*:*", adopted));
  }
  EXPECT_TRUE(taken->confirm(soon()));
  end(std::move(old));
  for (const std::string& endpoint : {shop, again, ops}) {
    EXPECT_TRUE(serves(endpoint));
  }
  end(std::move(next));
}

TEST_F(HandOverTest, SocketsOfDifferentAddressesAreNotOneListener) {
  auto one = begin();
  const auto socket = [] {
    return sys::open_tcp_listener(*sys::SocketAddress::parse_numeric("127.0.0.1", 0), {}).value().release();
  };
  ListenerOptions options;
  options.adopt_fds = {socket(), socket()};
  EXPECT_EQ(listen(*one, "tcp://*:*", options).error(), Errc::invalid_argument);
  EXPECT_FALSE(sys::local_address(options.adopt_fds[0])) << "closed";
  EXPECT_FALSE(sys::local_address(options.adopt_fds[1])) << "closed";
  const int fd = socket();
  options.adopt_fds = {fd, fd};
  EXPECT_EQ(listen(*one, "tcp://*:*", options).error(), Errc::invalid_argument);
  options.adopt_fds = {fd};
  options.socket.adopt_fd = fd;
  EXPECT_EQ(listen(*one, "tcp://*:*", options).error(), Errc::invalid_argument);
  EXPECT_TRUE(sys::local_address(fd)) << "open";
  options.socket.adopt_fd = -1;
  EXPECT_TRUE(listen(*one, "tcp://*:*", options));
  ASSERT_TRUE(one->server->stop(soon()));
  EXPECT_EQ(one->server->restart().error(), Errc::not_supported);
}

TEST_F(HandOverTest, NoAttemptAndNoRequestFailsBesideManyHandOvers) {
  constexpr int kHandOvers = 10;
  auto now = begin();
  const std::string endpoint = listen(*now, "tcp://127.0.0.1:0").value();
  offer(*now);
  std::atomic<bool> ends{false};
  std::atomic<int> asked{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!ends) {
        EXPECT_TRUE(serves(endpoint));
        ++asked;
      }
    });
  }
  std::size_t sockets = now->runtime->size();
  for (int i = 0; i < kHandOvers; ++i) {
    const int before = asked;
    auto next = take_over(sockets);
    ASSERT_TRUE(now->taken.take());
    while (now->server->sessions() != 0) {  // its clients leave in their own time
      std::this_thread::yield();
    }
    end(std::exchange(now, std::move(next)));
    while (asked < before + 4) {
      std::this_thread::yield();
    }
  }
  ends = true;
  for (std::thread& client : clients) {
    client.join();
  }
  end(std::move(now));
}

TEST_F(HandOverTest, ANewProcessThatDoesNotConfirmChangesNothing) {
  auto old = begin();
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  {
    auto taken = TakenListeners::take(path_, soon());
    ASSERT_TRUE(taken);
    for (const sys::PassedSocket& socket : taken->sockets()) {
      sys::Fd(socket.fd).close();
    }
  }  // as if it were killed
  EXPECT_TRUE(serves(endpoint));
  auto next = take_over(2);
  ASSERT_TRUE(old->taken.take());
  end(std::move(old));
  EXPECT_TRUE(serves(endpoint));
  end(std::move(next));
}

TEST_F(HandOverTest, AnOldProcessThatEndsAfterItsDescriptorsLeavesTheNewOneServing) {
  auto old = begin();
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  auto taken = TakenListeners::take(path_, soon());
  ASSERT_TRUE(taken);
  old->hand_over = nullptr;  // the connection closes, as it would by a kill; the sockets stay with the new one
  auto next = begin();
  for (const sys::PassedSocket& socket : taken->sockets()) {
    ListenerOptions options;
    options.socket.adopt_fd = socket.fd;
    EXPECT_TRUE(listen(*next, "tcp://*:*", options));
  }
  EXPECT_TRUE(taken->confirm(soon()));
  EXPECT_TRUE(serves(endpoint));
  EXPECT_TRUE(old->server->release_listeners(soon()));
  end(std::move(old));
  EXPECT_TRUE(serves(endpoint));
  end(std::move(next));
}

TEST_F(HandOverTest, WithoutAnOlderProcessThereAreNone) {
  auto taken = TakenListeners::take(path_, soon());
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_TRUE(taken->sockets().empty());
  EXPECT_TRUE(taken->confirm(soon()));
}

TEST_F(HandOverTest, AUnixListenerKeepsItsFile) {
  auto old = begin();
  const std::string endpoint = listen(*old, "ipc://" + directory_ + "/shop").value();
  offer(*old);
  auto taken = TakenListeners::take(path_, soon());
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->sockets().size(), 1u);
  auto next = begin();
  ListenerOptions options;
  options.socket.adopt_fd = taken->sockets()[0].fd;
  EXPECT_TRUE(listen(*next, "ipc://*", options));
  EXPECT_TRUE(taken->confirm(soon()));
  ASSERT_TRUE(old->taken.take());
  end(std::move(old));
  EXPECT_TRUE(serves(endpoint));
  end(std::move(next));
}

TEST_F(HandOverTest, AStrangeAnswerChangesNothing) {
  auto old = begin();
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  for (const std::string_view answer : {"\x09\0\0", "\x03\xff\xff", "\x01\0\0", "\x04\0\0"}) {
    auto connecting = sys::open_unix_connection(*sys::SocketAddress::from_path(path_), {}).value();
    while (receive_message(connecting.fd.fd(), soon()).value().kind != HandOverKind::all) {
    }
    ASSERT_TRUE(
        sys::send_with_descriptor(connecting.fd.fd(), as_bytes(std::string_view(answer.data(), 3)), -1, soon()));
    EXPECT_EQ(receive_message(connecting.fd.fd(), soon()).error(), Errc::connection_closed);
    EXPECT_FALSE(old->hand_over->taken());
    EXPECT_TRUE(serves(endpoint));
  }
  end(std::move(old));
}

TEST_F(HandOverTest, ADescriptorThatIsNotExpectedIsClosed) {
  auto old = begin();
  const std::string endpoint = listen(*old, "tcp://127.0.0.1:0").value();
  offer(*old);
  auto connecting = sys::open_unix_connection(*sys::SocketAddress::from_path(path_), {}).value();
  while (receive_message(connecting.fd.fd(), soon()).value().kind != HandOverKind::all) {
  }
  ASSERT_TRUE(send_message(connecting.fd.fd(), HandOverKind::confirmed, {}, connecting.fd.fd(), soon()));
  EXPECT_EQ(receive_message(connecting.fd.fd(), soon()).error(), Errc::connection_closed);
  EXPECT_TRUE(serves(endpoint));
  end(std::move(old));
}

TEST_F(HandOverTest, AServerWhoseListenersAreReleasedDoesNotRestart) {
  auto one = begin();
  ASSERT_TRUE(listen(*one, "tcp://127.0.0.1:0"));
  ASSERT_TRUE(one->server->release_listeners(soon()));
  ASSERT_TRUE(one->server->stop(soon()));
  EXPECT_EQ(one->server->restart().error(), Errc::not_supported);
  EXPECT_EQ(one->server->listeners(soon()).error(), Errc::closed);
}

}  // namespace
}  // namespace weft::serve

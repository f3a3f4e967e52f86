// SPDX-License-Identifier: MIT
// The promises of a proxy, over every transport.
#include <cstring>
#include <optional>

#include "tests/conformance/conformance.h"

namespace weft::conformance {
namespace {

class Proxying : public Conformance {
 protected:
  // Its destructor stops the proxy, before the sockets that were made earlier are closed.
  struct Running {
    explicit Running(Proxying& suite) : suite_(suite) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { suite_.stop(); }
    Proxying& suite_;
  };

  // Runs a proxy until stop(), or until it ends by itself.
  [[nodiscard]] Running start(Socket& frontend, Socket& backend, Socket* capture = nullptr, Socket* control = nullptr) {
    thread_ = std::thread([&frontend, &backend, capture, control, this] {
      result_ = control == nullptr ? proxy(frontend, backend, capture) : proxy(frontend, backend, capture, *control);
    });
    return Running(*this);
  }
  void join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  void stop() {
    if (thread_.joinable()) {
      context_->shut_down();
      join();
      EXPECT_EQ(result_.error(), Errc::terminated);
    }
  }

  // Sends an order over the PAIR that controls the proxy.
  void order(std::string_view text) { send(*orders_, text); }
  Socket make_control() {
    Socket control = make(SocketType::pair);
    orders_.emplace(make(SocketType::pair));
    connect(*orders_, bind(control));
    return control;
  }
  std::vector<std::uint64_t> statistics() {
    order("STATISTICS");
    std::vector<std::uint64_t> numbers;
    for (const std::string& part : recv(*orders_)) {
      EXPECT_EQ(part.size(), sizeof(std::uint64_t));
      numbers.push_back(0);
      std::memcpy(&numbers.back(), part.data(), std::min(part.size(), sizeof(std::uint64_t)));
    }
    return numbers;
  }

  std::optional<Socket> orders_;
  std::thread thread_;
  Result<void> result_;
};
WEFT_EVERY_TRANSPORT(Proxying);

TEST_P(Proxying, CarriesRequestsToWorkersAndRepliesBack) {
  Socket frontend = make(SocketType::router);
  Socket backend = make(SocketType::dealer);
  const std::string front = bind(frontend);
  const std::string back = bind(backend);
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) {
    Socket worker = make(SocketType::rep);
    connect(worker, back);
    workers.emplace_back([worker = std::move(worker)]() mutable {  // may start only after the test has ended
      for (;;) {
        auto request = worker.recv_all();
        if (!request) {
          EXPECT_EQ(request.error(), Errc::terminated);
          return;
        }
        EXPECT_TRUE(worker.send_all(*request));
      }
    });
  }
  const Running running = start(frontend, backend);
  std::vector<std::thread> clients;
  for (int client = 0; client < 3; ++client) {
    clients.emplace_back([&, client] {
      Socket asker = make(SocketType::req);
      connect(asker, front);
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(client) + "-" + std::to_string(i);
        send(asker, {text, std::string(i * 300, 'x'), ""});
        EXPECT_EQ(recv(asker), (Texts{text, std::string(i * 300, 'x'), ""}));
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  stop();
  for (std::thread& worker : workers) {
    worker.join();
  }
}

// A receiver takes some parts more than a sender may send, for the envelopes of those between.
TEST_P(Proxying, PassesOnAMessageOfMorePartsThanItsBackendMaySend) {
  Socket frontend = make(SocketType::router);
  Socket backend = make(SocketType::dealer);
  ASSERT_TRUE(frontend.set(option::message_parts_max, 3));
  ASSERT_TRUE(backend.set(option::message_parts_max, 3));
  Socket asker = make(SocketType::dealer);
  Socket worker = make(SocketType::dealer);
  connect(asker, bind(frontend));
  connect(worker, bind(backend));
  const Running running = start(frontend, backend);
  for (const Texts& message : {Texts{"1", "2", "3", "4", "5"}, Texts{"next", "end"}}) {
    for (const std::string& part : message) {
      ASSERT_TRUE(asker.send(part, &part != &message.back() ? More::yes : More::no));
    }
    Texts came = recv(worker);
    came.erase(came.begin());  // the asker's identity
    EXPECT_EQ(came, message);
  }
}

TEST_P(Proxying, ASocketThatIsItsOwnOtherEndAnswersWhatItGets) {
  Socket rep = make(SocketType::rep);
  Socket req = make(SocketType::req);
  connect(req, bind(rep));
  const Running running = start(rep, rep);
  for (int i = 0; i < 3; ++i) {
    send(req, std::to_string(i));
    EXPECT_EQ(recv_text(req), std::to_string(i));
  }
}

TEST_P(Proxying, LosesNothingWhenTheReaderIsSlow) {
  Socket frontend = make(SocketType::pull);
  Socket backend = make(SocketType::push);
  Socket source = make(SocketType::push);
  Socket target = make(SocketType::pull);
  for (Socket* socket : {&frontend, &backend, &source, &target}) {
    ASSERT_TRUE(socket->set(option::send_high_water_mark, 3));
    ASSERT_TRUE(socket->set(option::receive_high_water_mark, 3));
  }
  connect(source, bind(frontend));
  connect(target, bind(backend));
  const Running running = start(frontend, backend);
  constexpr int kCount = 3000;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      send(source, {std::to_string(i), "second part"});
    }
  });
  for (int i = 0; i < kCount && !HasFailure(); ++i) {
    EXPECT_EQ(recv(target), (Texts{std::to_string(i), "second part"}));
  }
  sender.join();
}

TEST_P(Proxying, SubscriptionsGoUpstreamAndMessagesDown) {
  Socket frontend = make(SocketType::xsub);
  Socket backend = make(SocketType::xpub);
  Socket publisher = make(SocketType::pub);
  Socket subscriber = make(SocketType::sub);
  connect(publisher, bind(frontend));
  connect(subscriber, bind(backend));
  const Running running = start(frontend, backend);
  ASSERT_TRUE(subscriber.subscribe("a"));
  synchronize(publisher, subscriber);
  send(publisher, "b is not asked for");
  send(publisher, "a is");
  EXPECT_EQ(recv_text(subscriber), "a is");
}

TEST_P(Proxying, CaptureGetsWhatGoesEitherWayAndHoldsItUpWhenFull) {
  Socket frontend = make(SocketType::pair);
  Socket backend = make(SocketType::pair);
  Socket capture = make(SocketType::push);
  Socket left = make(SocketType::pair);
  Socket right = make(SocketType::pair);
  Socket copies = make(SocketType::pull);
  connect(left, bind(frontend));
  connect(right, bind(backend));
  const Running running = start(frontend, backend, &capture);
  send(left, {"there", std::string(10'000, 'x')});
  EXPECT_EQ(right.recv_until(sys::now() + 20ms).error(), Errc::timed_out);  // the capture socket has no peer yet
  connect(copies, bind(capture));
  EXPECT_EQ(recv(copies), (Texts{"there", std::string(10'000, 'x')}));
  EXPECT_EQ(recv(right), (Texts{"there", std::string(10'000, 'x')}));
  send(right, "back");
  EXPECT_EQ(recv_text(left), "back");
  EXPECT_EQ(recv_text(copies), "back");
}

TEST_P(Proxying, OneSocketAloneGetsItsMessagesBack) {
  Socket socket = make(SocketType::router);
  Socket peer = make(SocketType::dealer);
  connect(peer, bind(socket));
  const Running running = start(socket, socket);
  for (int i = 0; i < 100; ++i) {
    send(peer, {std::to_string(i), "more"});
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(recv(peer), (Texts{std::to_string(i), "more"}));
  }
}

TEST_P(Proxying, OneBusyDirectionLeavesTheOtherItsTurn) {
  Socket frontend = make(SocketType::dealer);
  Socket backend = make(SocketType::dealer);
  Socket left = make(SocketType::dealer);
  Socket right = make(SocketType::dealer);
  connect(left, bind(frontend));
  connect(right, bind(backend));
  const Running running = start(frontend, backend);
  std::atomic<bool> done{false};
  std::thread flood([&] {
    while (!done.load()) {
      send(left, "flood");
    }
    send(left, "end");
  });
  std::thread drain([&] {
    while (recv_text(right) != "end") {
    }
  });
  for (int i = 0; i < 20; ++i) {
    send(right, std::to_string(i));
    EXPECT_EQ(recv_text(left), std::to_string(i));
  }
  done.store(true);
  flood.join();
  drain.join();
}

TEST_P(Proxying, ObeysOrdersAndCounts) {
  Socket frontend = make(SocketType::pair);
  Socket backend = make(SocketType::pair);
  Socket left = make(SocketType::pair);
  Socket right = make(SocketType::pair);
  Socket control = make_control();
  connect(left, bind(frontend));
  connect(right, bind(backend));
  const Running running = start(frontend, backend, nullptr, &control);
  EXPECT_EQ(statistics(), (std::vector<std::uint64_t>(8, 0)));
  send(left, {"abc", "de"});
  EXPECT_EQ(recv(right), (Texts{"abc", "de"}));
  send(right, "f");
  EXPECT_EQ(recv_text(left), "f");
  EXPECT_EQ(statistics(), (std::vector<std::uint64_t>{2, 5, 1, 1, 1, 1, 2, 5}));
  order("PAUSE");
  order("dance");
  EXPECT_EQ(statistics().size(), 8u);  // the reply proves that the proxy executed all earlier orders
  send(left, "waits");
  EXPECT_EQ(right.recv_until(sys::now() + 20ms).error(), Errc::timed_out);
  order("RESUME");
  EXPECT_EQ(recv_text(right), "waits");
  order("TERMINATE");
  join();
  EXPECT_TRUE(result_);
  EXPECT_TRUE(frontend.set(option::linger, 0ms)) << "the sockets stay open";
}

TEST_P(Proxying, AnswersEveryOrderOfARequester) {
  Socket frontend = make(SocketType::pull);
  Socket backend = make(SocketType::push);
  Socket control = make(SocketType::rep);
  Socket orders = make(SocketType::req);
  connect(orders, bind(control));
  const Running running = start(frontend, backend, nullptr, &control);
  for (const std::string_view text : {"PAUSE", "RESUME", "dance"}) {
    send(orders, text);
    EXPECT_EQ(recv(orders), Texts{""});
  }
  send(orders, "STATISTICS");
  EXPECT_EQ(recv(orders).size(), 8u);
  send(orders, "TERMINATE");
  EXPECT_EQ(recv(orders), Texts{""});
  join();
  EXPECT_TRUE(result_);
}

TEST_P(Proxying, EndsWithTheContextAlsoWhenPaused) {
  Socket frontend = make(SocketType::router);
  Socket backend = make(SocketType::dealer);
  Socket control = make_control();
  const Running running = start(frontend, backend, nullptr, &control);
  order("PAUSE");
  EXPECT_EQ(statistics().size(), 8u);
  stop();
}

TEST_P(Proxying, AMessageForAPeerThatIsGoneStopsNothing) {
  Socket frontend = make(SocketType::router);
  Socket backend = make(SocketType::dealer);
  ASSERT_TRUE(frontend.set(option::router_mandatory, true));
  Socket client = make(SocketType::dealer);
  Socket worker = make(SocketType::router);
  connect(client, bind(frontend));
  connect(worker, bind(backend));
  const Running running = start(frontend, backend);
  send(client, "question");
  Texts envelope = recv(worker);
  ASSERT_EQ(envelope.size(), 3u);
  send(worker, {envelope[0], "nobody", "has this name"});
  send(worker, {envelope[0], envelope[1], "answer"});
  EXPECT_EQ(recv_text(client), "answer");
}

TEST_P(Proxying, AClosedSocketIsRefused) {
  Socket open = make(SocketType::dealer);
  Socket closed = make(SocketType::dealer);
  closed.close();
  Socket never;
  EXPECT_EQ(proxy(open, closed).error(), Errc::closed);
  EXPECT_EQ(proxy(open, never).error(), Errc::closed);
  EXPECT_EQ(proxy(closed, open).error(), Errc::closed);
}

}  // namespace
}  // namespace weft::conformance

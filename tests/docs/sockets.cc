// SPDX-License-Identifier: MIT
// The C++ blocks of docs/sockets.md. The test docs.sockets compares them, docs.guides runs them.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "guides.h"
#include "weft/msg/async_socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/weft.h"

namespace guides {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

weft::Result<void> publish_and_subscribe() {
  weft::Context context;
  weft::Socket publisher = WEFT_TRY(context.socket(weft::SocketType::xpub));
  const std::string endpoint = WEFT_TRY(publisher.bind("tcp://127.0.0.1:*"));
  WEFT_TRY(publisher.send({"px.EURUSD", "1.0841"}));  // without a subscriber it goes nowhere

  weft::Socket subscriber = WEFT_TRY(context.socket(weft::SocketType::sub));
  WEFT_TRY(subscriber.subscribe("px."));
  WEFT_TRY(subscriber.connect(endpoint));

  const weft::Message joined = WEFT_TRY(publisher.recv(5s));  // a byte 1, then the prefix
  WEFT_TRY(publisher.send({"px.EURUSD", "1.0842"}));
  const std::vector<weft::Message> price = WEFT_TRY(subscriber.recv_all());
  WEFT_TRY(expect(price[1].text(), "1.0842"));
  return expect(joined.text(), "\1px.");
}

weft::Result<void> ask_and_answer() {
  weft::Context context;
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::router));
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::dealer));
  const std::string endpoint = WEFT_TRY(server.bind("tcp://127.0.0.1:*"));
  WEFT_TRY(client.connect(endpoint));

  WEFT_TRY(client.send({"17", "what time is it?"}));  // 17: a number of the client's, to find the answer's question
  WEFT_TRY(client.send({"18", "and the date?"}));     // not in lock-step

  std::vector<weft::Message> question = WEFT_TRY(server.recv_all());  // the peer's name, "17", "what time …"
  question.back() = WEFT_TRY(weft::Message::copy_of("noon"));
  WEFT_TRY(server.send_all(question));  // its first part names the receiver
  const std::vector<weft::Message> answer = WEFT_TRY(client.recv_all());
  WEFT_TRY(expect(answer[0].text(), "17"));
  return expect(answer[1].text(), "noon");
}

weft::Result<void> send_to_nobody() {
  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::push));
  WEFT_TRY(expect(socket.try_send("a job").error().message(), "would block"));
  WEFT_TRY(socket.set(weft::option::send_timeout, 1ms));
  WEFT_TRY(expect(socket.send("a job").error().message(), "timed out"));
  return {};
}

weft::Result<void> read_slowly() {
  weft::Context context;
  weft::Socket publisher = WEFT_TRY(context.socket(weft::SocketType::pub));
  weft::Socket subscriber = WEFT_TRY(context.socket(weft::SocketType::sub));
  WEFT_TRY(publisher.set(weft::option::send_high_water_mark, 2));
  WEFT_TRY(subscriber.set(weft::option::receive_high_water_mark, 2));
  const std::string endpoint = WEFT_TRY(publisher.bind("inproc://prices"));
  WEFT_TRY(subscriber.subscribe(""));
  WEFT_TRY(subscriber.connect(endpoint));

  for (int i = 0; i < 10; ++i) {
    WEFT_TRY(publisher.send("a price"));  // never waits
  }
  const weft::Statistics sent = WEFT_TRY(publisher.statistics());
  if (sent.sent + sent.dropped_full != 10 || sent.dropped_full == 0) {
    return weft::Error(weft::Errc::other, "a message vanished uncounted");
  }
  return expect(std::to_string(sent.dropped_full), "6");
}

weft::Result<void> keep_the_newest() {
  weft::Context context;
  weft::Socket publisher = WEFT_TRY(context.socket(weft::SocketType::pub));
  weft::Socket subscriber = WEFT_TRY(context.socket(weft::SocketType::sub));
  const std::string endpoint = WEFT_TRY(publisher.bind("inproc://prices"));
  WEFT_TRY(subscriber.set(weft::option::conflate, true));  // before the connect
  WEFT_TRY(subscriber.subscribe("EURUSD "));
  WEFT_TRY(subscriber.connect(endpoint));

  for (const auto* price : {"EURUSD 1.0841", "EURUSD 1.0842", "EURUSD 1.0843"}) {
    WEFT_TRY(publisher.send(price));  // of one part
  }
  const weft::Message newest = WEFT_TRY(subscriber.recv());
  return expect(newest.text(), "EURUSD 1.0843");
}

weft::Result<void> end_at_once() {
  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::push));
  WEFT_TRY(socket.connect("ipc://@nobody-listens-here"));
  WEFT_TRY(socket.send("queued until somebody does"));
  WEFT_TRY(socket.set(weft::option::linger, 0ms));  // at once, also for queued messages
  return {};
}

weft::Result<void> see_connections() {
  weft::Context context;
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::pull));
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::push));
  WEFT_TRY(client.watch_events());
  const std::string endpoint = WEFT_TRY(server.bind("tcp://127.0.0.1:*"));
  WEFT_TRY(client.connect(endpoint));

  for (;;) {
    const weft::MonitorEvent event = WEFT_TRY(client.next_event(5s));
    if (event.kind == weft::EventKind::handshake_succeeded) {
      return {};
    }
  }
}

weft::rt::Task<weft::Result<void>> answer(weft::Socket server) {
  WEFT_CO_TRY(auto socket, weft::AsyncSocket::make(*weft::rt::Loop::current(), std::move(server)));
  for (;;) {
    WEFT_CO_TRY(auto request, co_await socket.recv());
    WEFT_CO_TRY(co_await socket.send("re: " + request.to_string()));
  }
}

weft::rt::Task<weft::Result<std::string>> ask(weft::Socket client) {
  WEFT_CO_TRY(auto socket, weft::AsyncSocket::make(*weft::rt::Loop::current(), std::move(client)));
  WEFT_CO_TRY(co_await socket.send("hello"));
  auto reply = co_await weft::rt::with_timeout(socket.recv(), 5s);
  if (!reply) {
    co_return reply.error();  // timed_out: no message was taken
  }
  co_return reply->to_string();
}

weft::Result<void> await() {
  weft::Context context;
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::rep));
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::req));
  const std::string endpoint = WEFT_TRY(server.bind("inproc://questions"));
  WEFT_TRY(client.connect(endpoint));

  const auto loop = WEFT_TRY(weft::rt::Loop::make("io"));
  WEFT_TRY(loop->start(nullptr));  // a thread of its own
  auto serving = weft::rt::spawn(*loop, answer(std::move(server)));
  auto asking = weft::rt::spawn(*loop, ask(std::move(client)));
  const std::string reply = WEFT_TRY(asking.get());
  loop->stop();  // cancels answer() and waits for its end
  WEFT_TRY(expect(serving.get().error().message(), "cancelled: the task was cancelled"));
  return expect(reply, "re: hello");
}

weft::rt::Task<weft::Result<void>> start_together(weft::AsyncSocket* publisher) {
  WEFT_CO_TRY(co_await publisher->wait_subscribers(2));
  co_return co_await publisher->send("begin");
}

weft::rt::Task<weft::Result<void>> publish_to_two(weft::Socket socket) {
  WEFT_CO_TRY(auto publisher, weft::AsyncSocket::make(*weft::rt::Loop::current(), std::move(socket)));
  co_return co_await start_together(&publisher);
}

weft::Result<void> wait_for_subscribers() {
  weft::Context context;
  weft::Socket publisher = WEFT_TRY(context.socket(weft::SocketType::pub));
  const std::string endpoint = WEFT_TRY(publisher.bind("inproc://signals"));
  const auto loop = WEFT_TRY(weft::rt::Loop::make("io"));
  WEFT_TRY(loop->start(nullptr));
  auto published = weft::rt::spawn(*loop, publish_to_two(std::move(publisher)));
  weft::Socket subscribers[2];
  for (weft::Socket& subscriber : subscribers) {
    subscriber = WEFT_TRY(context.socket(weft::SocketType::sub));
    WEFT_TRY(subscriber.subscribe(""));
    WEFT_TRY(subscriber.connect(endpoint));
  }
  WEFT_TRY(published.get());
  for (weft::Socket& subscriber : subscribers) {
    const weft::Message message = WEFT_TRY(subscriber.recv(5s));
    WEFT_TRY(expect(message.text(), "begin"));
  }
  return {};
}

}  // namespace

weft::Result<void> sockets() {
  for (const auto block : {publish_and_subscribe, ask_and_answer, send_to_nobody, read_slowly, keep_the_newest,
                           end_at_once, see_connections, await, wait_for_subscribers}) {
    WEFT_TRY(block());
  }
  return {};
}

}  // namespace guides

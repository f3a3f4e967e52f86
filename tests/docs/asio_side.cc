// SPDX-License-Identifier: MIT
// The C++ blocks of docs/migrate-from-asio.md: Boost.Asio's, where it is installed, and Weft's. The test
// docs.migrate_asio compares them, docs.guides runs them.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "guides.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/strand.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/weft.h"
// ThreadSanitizer does not see how libstdc++ shares exceptions between threads, as use_future does.
#if __has_include(<boost/asio.hpp>) && !defined(__SANITIZE_THREAD__)
#define WEFT_HAS_ASIO
#include <boost/asio.hpp>
#endif

namespace guides {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// A line to a server that echoes lines, over a plain tcp connection.
weft::Result<void> echoes(const std::string& endpoint) {
  weft::Context context;
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::stream));
  WEFT_TRY(client.connect(endpoint));
  std::vector<weft::Message> line = WEFT_TRY(client.recv_all());  // the connection's name, and nothing: it stands
  line.back() = WEFT_TRY(weft::Message::copy_of("hello\n"));
  WEFT_TRY(client.send_all(line));
  const std::vector<weft::Message> back = WEFT_TRY(client.recv_all());
  return expect(back.back().text(), "hello\n");
}

#ifdef WEFT_HAS_ASIO

namespace asio = boost::asio;
using asio::ip::tcp;

asio::awaitable<void> echo(tcp::socket socket) {
  try {
    for (std::array<char, 4096> bytes;;) {
      const std::size_t size = co_await socket.async_read_some(asio::buffer(bytes), asio::use_awaitable);
      co_await asio::async_write(socket, asio::buffer(bytes, size), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    // The peer has gone, or the socket was closed.
  }
}

asio::awaitable<void> accept_all(tcp::acceptor acceptor) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
  }
}

asio::awaitable<int> tick_with_asio() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  int ticks = 0;
  while (ticks < 3) {
    timer.expires_after(1ms);
    co_await timer.async_wait(asio::use_awaitable);
    ++ticks;
  }
  co_return ticks;
}

asio::awaitable<void> wait_with_asio() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(1h);
  co_await timer.async_wait(asio::use_awaitable);
}

weft::Result<void> use_asio() {
  asio::io_context context;
  tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  asio::co_spawn(context, accept_all(std::move(acceptor)), asio::detached);
  auto ticking = asio::co_spawn(context, tick_with_asio(), asio::use_future);
  std::thread thread([&context] { context.run(); });

  const auto echoed = echoes(endpoint);
  const int ticks = ticking.get();
  asio::cancellation_signal stop;
  auto waiting = asio::co_spawn(context, wait_with_asio(), asio::bind_cancellation_slot(stop.slot(), asio::use_future));
  asio::post(context, [&stop] { stop.emit(asio::cancellation_type::terminal); });  // in the context's thread
  bool aborted = false;
  try {
    waiting.get();
  } catch (const boost::system::system_error& error) {
    aborted = error.code() == asio::error::operation_aborted;
  }
  context.stop();
  thread.join();
  WEFT_TRY(echoed);
  return expect(std::to_string(ticks) + (aborted ? " aborted" : ""), "3 aborted");
}

weft::Result<void> use_strands_of_asio() {
  asio::thread_pool pool(2);
  int orders = 0;
  auto strand = asio::make_strand(pool);
  for (int i = 0; i < 100; ++i) {
    asio::post(strand, [&orders] { ++orders; });
  }
  pool.join();
  return expect(std::to_string(orders), "100");
}

#endif  // WEFT_HAS_ASIO

struct EchoLines {
  void on_frame(weft::serve::SessionOf<weft::serve::DelimiterCodec>& session, const weft::serve::BodyFrame& line) {
    (void)session.send({}, line.body);
  }
};

weft::Result<void> use_server() {
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(weft::serve::Server::make(*runtime));
  const std::string endpoint =
      WEFT_TRY(server->listen<weft::serve::DelimiterCodec>("tcp://127.0.0.1:0", {}, [] { return EchoLines(); }));
  WEFT_TRY(echoes(endpoint));
  return server->stop(weft::sys::now() + 5s);
}

weft::rt::Task<weft::Result<int>> tick() {
  int ticks = 0;
  while (ticks < 3) {
    WEFT_CO_TRY(co_await weft::rt::sleep(1ms));
    ++ticks;
  }
  co_return ticks;
}

weft::rt::Task<weft::Result<void>> wait_long() { co_return co_await weft::rt::sleep(1h); }

weft::rt::Task<weft::Result<void>> bound_waits() {
  const auto slow = co_await weft::rt::with_timeout(wait_long(), 1ms);
  WEFT_CO_TRY(expect(slow.error().message(), "timed out"));
  auto [first, second] = co_await weft::rt::when_all(tick(), tick());  // asio: tick() && tick()
  const auto one = co_await weft::rt::when_any(tick(), wait_long());   // asio: tick() || wait_long()
  if (!first || !second || one.index() != 0) {
    co_return weft::Error(weft::Errc::other, "a tick failed");
  }
  co_return weft::Result<void>();
}

weft::Result<void> use_tasks() {
  const auto loop = WEFT_TRY(weft::rt::Loop::make("io"));
  WEFT_TRY(loop->start(nullptr));  // a thread of its own
  auto ticking = weft::rt::spawn(*loop, tick());
  std::stop_source stop;
  auto waiting = weft::rt::spawn(*loop, wait_long(), stop.get_token());
  stop.request_stop();  // in any thread
  const int ticks = WEFT_TRY(ticking.get());
  WEFT_TRY(expect(waiting.get().error().message(), "cancelled: the task was cancelled"));
  auto bounded = weft::rt::spawn(*loop, bound_waits());
  WEFT_TRY(bounded.get());
  loop->stop();  // cancels all running tasks, and waits for their end
  return expect(std::to_string(ticks), "3");
}

weft::Result<void> use_strands() {
  const auto pool = WEFT_TRY(weft::rt::ThreadPool::make_fixed(2));
  int orders = 0;
  weft::rt::Strand strand(*pool);
  for (int i = 0; i < 100; ++i) {
    WEFT_TRY(strand.execute([&orders] { ++orders; }));
  }
  WEFT_TRY(strand.stop(weft::rt::StopMode::drain, weft::sys::now() + 5s));
  return expect(std::to_string(orders), "100");
}

}  // namespace

weft::Result<void> beside_asio() {
#ifdef WEFT_HAS_ASIO
  WEFT_TRY(use_asio());
  WEFT_TRY(use_strands_of_asio());
#endif
  WEFT_TRY(use_server());
  WEFT_TRY(use_tasks());
  return use_strands();
}

}  // namespace guides

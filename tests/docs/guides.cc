// SPDX-License-Identifier: MIT
// The C++ blocks of docs/threads-and-lifetimes.md and docs/errors.md. The tests docs.threads and docs.errors compare
// them, docs.guides runs them, and those of the pages of guides.h.
#include "guides.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "weft/msg/async_socket.h"
#include "weft/rt/core/core_task.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/weft.h"

weft::Result<void> guides::expect(std::string_view got, std::string_view wanted) {
  if (got == wanted) {
    return {};
  }
  (void)std::fprintf(stderr, "\"%.*s\", and not \"%.*s\"\n", static_cast<int>(got.size()), got.data(),
                     static_cast<int>(wanted.size()), wanted.data());
  return weft::Error(weft::Errc::invalid_state, "a block of the page gave another result");
}

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using guides::expect;

weft::rt::Task<weft::Result<weft::AsyncSocket>> open_socket(weft::Context* context) {
  weft::Result<weft::Socket> socket = context->socket(weft::SocketType::pull);
  if (!socket) {
    co_return socket.error();
  }
  co_return weft::AsyncSocket::make(*weft::rt::Loop::current(), *std::move(socket));
}

weft::rt::Task<weft::Result<weft::Message>> receive(weft::AsyncSocket* socket) {
  weft::Result<weft::Message> message = co_await socket->recv();
  co_return message;
}

weft::Result<void> use_on_another_core() {
  weft::Context context;
  weft::rt::RuntimeOptions options;
  options.cores = 2;
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start(options));
  auto opened = WEFT_TRY(weft::rt::spawn(runtime->core(0), open_socket(&context)));
  weft::AsyncSocket socket = WEFT_TRY(opened.get());

  auto received = WEFT_TRY(weft::rt::spawn(runtime->core(1), receive(&socket)));  // made on core 0
  WEFT_TRY(expect(received.get().error().message(), "not allowed in this state: socket of core 0 used on core 1"));
  return runtime->stop(weft::sys::now() + 5s);  // before `socket` ends here, on a thread that is not a core
}

weft::Result<void> close_while_another_thread_waits() {
  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::pull));

  std::thread other([&] { socket.close(); });  // the handle `socket` stays until both threads are done with it
  const weft::Result<weft::Message> message = socket.recv();
  other.join();
  return expect(message.error().message(), "closed: the socket is closed");
}

weft::Result<void> end_in_order() {
  weft::Context context;                                              // ends last
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start());          // before the context
  const auto server = WEFT_TRY(weft::serve::Server::make(*runtime));  // ends first
  return server->stop(weft::sys::now() + 5s);
}

weft::Result<void> end_in_the_wrong_order() {
  auto runtime = WEFT_TRY(weft::rt::Runtime::start());
  const auto server = WEFT_TRY(weft::serve::Server::make(*runtime));

  runtime.reset();
  return expect(server->ready().error().message(),
                "closed: the runtime ended before its server: destroy the server first");
}

weft::Result<void> read_errors() {
  constexpr weft::ErrorDomain kGame("game");
  const weft::Error no_room(kGame, 7, "no such room");
  WEFT_TRY(expect(no_room.message(), "error of another domain (7): no such room"));

  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::pull));
  const weft::Result<weft::Message> none = socket.recv(1ms);
  if (none.error() == weft::Errc::timed_out) {  // the code, whatever the text
    return expect(socket.bind("tcp//host").error().message(), "malformed endpoint: an endpoint is transport://address");
  }
  return none.error();
}

}  // namespace

int main() {
  for (const auto block : {use_on_another_core, close_while_another_thread_waits, end_in_order, end_in_the_wrong_order,
                           read_errors, guides::sockets, guides::foundations, guides::beside_asio, guides::clients,
                           guides::calls, guides::operations, guides::web_servers, guides::web_clients}) {
    if (const auto done = block(); !done) {
      (void)std::fprintf(stderr, "%s\n", done.error().message().c_str());
      return 1;
    }
  }
}

// SPDX-License-Identifier: MIT
// Services and handlers that would never be called, or whose result would never be read.
#include <string>

#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/length_codec.h"
#include "weft/serve/server/server.h"

using namespace weft;
using Codec = serve::HeaderCodec;
using Session = serve::SessionOf<Codec>;
using Frame = Codec::Frame;

template <typename Service>
Result<std::string> listen(serve::Server& server) {
  return server.listen<Codec>("tcp://127.0.0.1:0", {}, [] { return Service(); });
}
struct Whole {
  void on_open(Session&) {}
  template <typename AnyFrame>
  rt::Task<> on_frame(Session&, const AnyFrame&) {
    co_return;
  }
  void on_end(Session&) {}
  void on_close(Session&, const Error&) {}
};
struct Final final {
  void on_frame(Session&, const Frame&) {}
};
template Result<std::string> listen<Whole>(serve::Server&);
template Result<std::string> listen<Final>(serve::Server&);

// MISTAKE a function in camel case: weft: the service's function is on_frame()
struct Service {
  void on_open(Session&) {}
  void onFrame(Session&, const Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a frame that is not const: weft: the service's on_frame() cannot be called
struct Service {
  void on_frame(Session&, Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE the frame of another codec: weft: the service's on_frame() cannot be called
struct Service {
  void on_frame(Session&, const serve::LengthCodec<std::uint32_t>::Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a private function: weft: the service's on_frame() cannot be called
class Service {
  void on_frame(Session&, const Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a final service's function: weft: the service's on_frame() cannot be called
struct Service final {
  void on_frame(Session&, Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a result that is not read: weft: the service's on_frame() returns void or rt::Task<>
struct Service {
  Result<void> on_frame(Session&, const Frame&) { return {}; }
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a task of a result: weft: the service's on_frame() returns void or rt::Task<>
struct Service {
  rt::Task<Result<void>> on_frame(Session&, const Frame&) { co_return Result<void>(); }
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a task that does not run: weft: the service's on_open() returns void
struct Service {
  rt::Task<> on_open(Session&) { co_return; }
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE an end without its reason: weft: the service's on_close() cannot be called
struct Service {
  void on_frame(Session&, const Frame&) {}
  void on_close(Session&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a service without a function: weft: the service has none of on_open(), on_frame(), on_end() and on_close()
struct Service {
  void handle(Session&, const Frame&) {}
};
template Result<std::string> listen<Service>(serve::Server&);

// MISTAKE a handler of a frame that is not const: weft: the handler cannot be called with (Caller&
void add(serve::Dispatcher<Session>& dispatcher) {
  (void)dispatcher.on(1, [](Session&, Frame&) {});
}

// MISTAKE a method of a frame that is not const: weft: the method cannot be called with (Caller&
struct Service {
  void greet(Session&, Frame&) {}
};
void add(serve::Dispatcher<Session>& dispatcher, Service& service) { (void)dispatcher.on(1, &Service::greet, service); }

// MISTAKE a handler that returns a number: weft: a handler returns void, a Result, rt::Task<> or rt::Task<Result<>>
void add(serve::Dispatcher<Session>& dispatcher) {
  (void)dispatcher.on(1, [](Session&, const Frame&) { return 1; });
}

// MISTAKE a handler that returns a task of a number: weft: a handler that is a coroutine returns rt::Task<> or
void add(serve::Dispatcher<Session>& dispatcher) {
  (void)dispatcher.on(1, [](Session&, const Frame&) -> rt::Task<int> { co_return 1; });
}

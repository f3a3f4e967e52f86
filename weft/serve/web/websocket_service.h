// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/rt/core/core.h"
#include "weft/serve/session/service.h"
#include "weft/serve/session/session_task.h"
#include "weft/serve/web/web_counts.h"
#include "weft/serve/web/websocket.h"

namespace weft::serve::web {

class Router;

// The parts of a site that a WebSocket route needs on one core.
struct WebSocketSite {
  const Router& router;
  rt::Core& core;
  WebCounters& counts;
};

// WebSocketBase: the part of a WebSocket route on one core that does not depend on its handler: control frames, the
// fragments of messages, the requests of connections that begin.
// Owner: a WebService. Affinity: its core.
// Cost: a message in one frame is copied once, which takes off its mask; one in fragments twice. A compressed message
// is expanded once; a session that made the core expand much waits for its next turn.
// Invariants: (1) Data that waits here for a session counts as memory of the server, and ends with the session.
class WebSocketBase {
 public:
  WebSocketBase(const WebSocketBase&) = delete;
  WebSocketBase& operator=(const WebSocketBase&) = delete;
  virtual ~WebSocketBase();

  // The slot of its sessions, for Session::switch_to(). `layered`: of the session that switches.
  [[nodiscard]] const ServiceSlot& slot(bool layered) noexcept {
    slot_.layered = layered;  // the same for all sessions of a listener
    return slot_;
  }
  // The connection will begin here: keeps the head of its request. Returns the value of Sec-WebSocket-Extensions for
  // the answer to the client's `offers`; empty if there is none. Returns no value if the memory of the server is spent.
  [[nodiscard]] std::optional<std::string> expect(Session& session, std::string_view head, std::string_view protocol,
                                                  std::string_view offers);
  void forget(Session& session) noexcept;
  virtual void drain() = 0;  // stop() was called

 protected:
  // The body of a message: clear, or with a mask on it.
  struct Content {
    Opcode kind;
    Bytes bytes;
    std::optional<net::ws::MaskKey> mask;

    void copy_to(std::uint8_t* to) const noexcept;
  };

  WebSocketBase(const WebSocketSite& site, const WebSocketOptions& options, const SessionOps& ops);

  void set_service(void* service) noexcept { slot_.service = service; }
  // Calls the function with the request of a session that begins.
  void open(WebSocketSession& session, const std::function<void(const Request&)>& opened);
  // Of a client's connection, before it begins: the terms of permessage-deflate, in which "server" means this end.
  // Returns false if the memory of the host is spent.
  [[nodiscard]] bool compress(Session& session, const net::ws::DeflateTerms& terms);
  [[nodiscard]] PeerDeflate* deflate_of(Session& session) noexcept;  // null: nothing is compressed
  // Takes a frame. The content of a message that becomes complete is valid until release().
  [[nodiscard]] std::optional<Content> take(WebSocketSession& session, const WebSocketFrame& frame);
  void release(Session& session) noexcept;
  [[nodiscard]] Bytes clear(const Content& content);  // until the next call
  void end(WebSocketSession& session) noexcept;
  // Closes with 1011, after all queued bytes.
  static void fail(WebSocketSession& session, const Error& why) noexcept;
  static void fail_after_throw(WebSocketSession& session) noexcept;  // inside a catch block

 private:
  struct Opening {
    std::string head;
    std::string_view protocol;
  };
  struct Fragments {
    WebSocketBase* service;
    WebSocketSession* session;
    rt::TimerId timer{};               // of message_timeout
    std::vector<std::uint8_t> body{};  // clear
  };

  void handle_control(WebSocketSession& session, const WebSocketFrame& frame);
  [[nodiscard]] bool join(WebSocketSession& session, const WebSocketFrame& frame);
  [[nodiscard]] bool begin(Fragments& message) noexcept;
  [[nodiscard]] std::string agree(Session& session, std::string_view offers);
  void drop_deflate(Session& session) noexcept;
  [[nodiscard]] bool expand(WebSocketSession& session, Content& content);
  void end_late(WebSocketSession& session) noexcept;

  static constexpr std::size_t kClearKept = 64 * 1024;  // bytes of room that stay for the next message

  const WebSocketSite site_;
  const Duration message_timeout_;
  const Duration ping_every_;
  const WebSocketCodec codec_;
  ServiceSlot slot_;
  std::unordered_map<std::uint64_t, Opening> openings_;     // by session
  std::unordered_map<std::uint64_t, Fragments> fragments_;  // the same
  std::vector<std::uint8_t> clear_;
  std::optional<RouteDeflate> deflate_;                   // of the route; empty: it compresses nothing
  std::unordered_map<std::uint64_t, PeerDeflate> peers_;  // those that agreed on it, by session
};

// WebSocketService: the service of a WebSocket route on one core, around the program's handler. A handler is a type
// with on_message(), and with any of the others:
//   void on_open(WebSocketSession&)                  or with (WebSocketSession&, const Request&): the request of the
//                                                    upgrade, with its path and fields
//   void on_message(WebSocketSession&, const Message&)
//   rt::Task<> on_message(WebSocketSession&, const Message&)   instead a coroutine (session.h)
//   void on_drain(), void on_drain(WebSocketSession&)          as a service's
//   void on_close(WebSocketSession&, const Error& why)         the last call; session.codec().peer_status()
// An exception from on_open() or on_message(), or an error of a coroutine, closes the connection with 1011.
template <typename Handler>
class WebSocketService final : public WebSocketBase {
 public:
  template <typename MakeHandler>
  WebSocketService(MakeHandler& make, const WebSocketSite& site, const WebSocketOptions& options)
      : WebSocketBase(site, options, kOps), handler_(make_handler(make, site.core)) {
    set_service(this);
  }

  static_assert(
      !requires { &Handler::on_open; } ||
          requires(Handler handler, WebSocketSession& session, const Request& request) {
            requires requires { handler.on_open(session); } || requires { handler.on_open(session, request); };
          },
      "weft: on_open() of a WebSocket's handler cannot be called: it takes (web::WebSocketSession&), or also "
      "a const web::Request&");
  static_assert(
      !requires { &Handler::on_close; } ||
          requires(Handler handler, WebSocketSession& session, const Error& why) { handler.on_close(session, why); },
      "weft: on_close() of a WebSocket's handler cannot be called: it takes (web::WebSocketSession&, const "
      "Error&)");

  void on_open(WebSocketSession& session) {
    open(session, [this, &session](const Request& request) { greet(session, request); });
  }
  void on_frame(WebSocketSession& session, const WebSocketFrame& frame) {
    static_assert(
        requires(const Message& message) { handler_.on_message(session, message); },
        "weft: the handler of a WebSocket has on_message(web::WebSocketSession&, const web::Message&)");
    const auto content = take(session, frame);
    if (!content) {
      return;
    }
    using Outcome = decltype(handler_.on_message(session, std::declval<const Message&>()));
    if constexpr (HandlerTask<Outcome>::kIs) {
      start<typename HandlerTask<Outcome>::Value>(session, *content);
    } else {
      static_assert(std::is_void_v<Outcome>, "weft: on_message() returns void, rt::Task<> or rt::Task<Result<>>");
      try {
        handler_.on_message(session, Message{content->kind, clear(*content)});
      } catch (...) {
        fail_after_throw(session);
      }
    }
    if (!frame_is_whole(frame)) {
      release(session);
    }
  }
  void on_drain(WebSocketSession& session)
    requires requires(Handler handler) { handler.on_drain(session); }
  {
    handler_.on_drain(session);
  }
  void on_close(WebSocketSession& session, const Error& why) {
    end(session);
    release(session);
    if constexpr (requires { handler_.on_close(session, why); }) {
      handler_.on_close(session, why);
    }
  }
  void drain() override {
    if constexpr (requires { handler_.on_drain(); }) {
      handler_.on_drain();
    }
  }

 private:
  static const SessionOps kOps;

  struct Kept {
    Message message;
    WebSocketSession* session;
    void handle_end(const Error& outcome, bool /*cancelled*/) const noexcept {
      if (!(outcome == Errc::ok)) {
        fail(*session, outcome);
      }
    }
  };

  void greet([[maybe_unused]] WebSocketSession& session, [[maybe_unused]] const Request& request) {
    try {
      if constexpr (requires { handler_.on_open(session, request); }) {
        handler_.on_open(session, request);
      } else if constexpr (requires { handler_.on_open(session); }) {
        handler_.on_open(session);
      }
    } catch (...) {
      fail_after_throw(session);
    }
  }
  template <typename MakeHandler>
  static Handler make_handler(MakeHandler& make, rt::Core& core) {
    if constexpr (std::is_invocable_v<MakeHandler&, rt::Core&>) {
      return make(core);
    } else {
      return make();
    }
  }
  [[nodiscard]] static bool frame_is_whole(const WebSocketFrame& frame) noexcept {
    return frame.header.opcode != Opcode::continuation;
  }
  template <typename Value>
  void start(WebSocketSession& session, const Content& content) {
    using Block = SessionTaskOf<Value, Kept>;
    auto block = Block::make(Kept{{content.kind, {}}, &session}, content.bytes.size());
    Result<void> started = Error(Errc::resource_exhausted, "no memory for the handler");
    if (block != nullptr) {
      content.copy_to(block->room());
      Kept& kept = block->kept();
      kept.message.body = Bytes(block->room(), content.bytes.size());
      auto task = handler_.on_message(session, std::as_const(kept.message));
      started = start_made<Block>(session, std::move(block), std::move(task));
    }
    if (!started) {
      session.abort(CloseReason::out_of_memory, started.error());
    }
  }

  Handler handler_;
};

template <typename Handler>
const SessionOps WebSocketService<Handler>::kOps = ServiceCalls<WebSocketCodec, WebSocketService<Handler>>::ops();

// A function in place of a handler.
template <typename Function>
struct WebSocketFunction {
  Function function;
  auto on_message(WebSocketSession& session, const Message& message) { return function(session, message); }
};

// A route that leads to a WebSocket. Immutable; the cores of a server share it.
struct WebSocketRoute {
  using Make = std::function<std::unique_ptr<WebSocketBase>(const WebSocketSite&, const WebSocketOptions&)>;

  WebSocketOptions options;
  Make make;
  std::size_t index = 0;  // among those of its router

  // `make`: a copy of it makes the handler of a core, or it is a function (WebSocketSession&, const Message&).
  template <typename MakeHandler>
  [[nodiscard]] static Make maker(MakeHandler make) {
    if constexpr (std::is_invocable_v<MakeHandler&, WebSocketSession&, const Message&>) {
      return maker([make] { return WebSocketFunction<MakeHandler>{make}; });
    } else {
      return [make](const WebSocketSite& site, const WebSocketOptions& options) {
        MakeHandler own = make;  // the cores call at the same time
        return made(own, site, options);
      };
    }
  }

 private:
  template <typename MakeHandler>
  static std::unique_ptr<WebSocketBase> made(MakeHandler& make, const WebSocketSite& site,
                                             const WebSocketOptions& options) {
    if constexpr (std::is_invocable_v<MakeHandler&, rt::Core&>) {
      using Handler = std::invoke_result_t<MakeHandler&, rt::Core&>;
      return std::make_unique<WebSocketService<Handler>>(make, site, options);
    } else {
      static_assert(std::is_invocable_v<MakeHandler&>,
                    "weft: a WebSocket route has a function that makes its handler, without arguments or of "
                    "(rt::Core&), or a function of (web::WebSocketSession&, const web::Message&)");
      using Handler = std::invoke_result_t<MakeHandler&>;
      return std::make_unique<WebSocketService<Handler>>(make, site, options);
    }
  }
};

}  // namespace weft::serve::web

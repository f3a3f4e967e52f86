// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/serve/web/request.h"
#include "weft/serve/web/response.h"
#include "weft/serve/web/websocket_service.h"

namespace weft::serve::web {

// The methods that routes have. The route of GET answers HEAD.
enum class Method : std::uint8_t { get, post, put, patch, del, options };
inline constexpr std::size_t kMethods = 6;

class BodyReader;

// A function for requests. Exactly one of the four is set. An error becomes a status, see status_of(Error).
struct Handler {
  std::function<Result<Response>(const Request&)> call{};
  std::function<rt::Task<Result<Response>>(const Request&)> start{};  // a coroutine
  std::function<rt::Task<Result<Response>>(const Request&, BodyReader&)>
      receive{};                                      // one that takes the body as it comes
  std::shared_ptr<const WebSocketRoute> websocket{};  // of GET
};

// A function around a handler: it takes that of a route, and returns the one that is called instead (middleware.h).
using Middleware = std::function<Handler(Handler)>;

// Router: methods and paths to handlers.
//   router.get("/users/{id}", [](const web::Request& request) { return web::Response(request.param("id")); });
// A pattern is a path of segments; "{name}" is any segment that is not empty, and "{name...}" at its end is the rest of
// the path, which may be empty. A literal segment matches before a "{name}", and that before a "{name...}".
// A handler takes (const Request&) or no arguments. It returns a Response, a value that converts to one (a string), a
// Result<Response>, or a Task of one of these. A coroutine's captures live as long as the router. A coroutine of
// (const Request&, BodyReader&) starts before the body has arrived, and takes it as it arrives (body_stream.h).
// Owner: the program, then a Site. Affinity: one thread fills it; then any thread uses it. The cores of a server call
// its handlers at the same time: handlers guard the data that they share.
// Cost: a request visits each node of the tree at most once; it allocates nothing.
class Router {
 public:
  static constexpr std::size_t kSegmentsMax = 32;

  // Errors: invalid_argument (not a pattern, or kParamsMax or kSegmentsMax is exceeded); conflict (there is such a
  // route).
  template <typename Function>
  Result<void> get(std::string_view pattern, Function handler) {
    return route(Method::get, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> post(std::string_view pattern, Function handler) {
    return route(Method::post, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> put(std::string_view pattern, Function handler) {
    return route(Method::put, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> patch(std::string_view pattern, Function handler) {
    return route(Method::patch, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> del(std::string_view pattern, Function handler) {  // DELETE
    return route(Method::del, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> options(std::string_view pattern, Function handler) {
    return route(Method::options, pattern, std::move(handler));
  }
  template <typename Function>
  Result<void> route(Method method, std::string_view pattern, Function handler) {
    return add(method, pattern, handler_of(std::move(handler)));
  }
  // A route of GET whose requests begin a WebSocket. `make` makes the handler of a core (websocket_service.h), without
  // arguments or with the rt::Core&; or it is the function for messages.
  //   router.websocket("/echo", [](web::WebSocketSession& session, const web::Message& message) { … });
  template <typename MakeHandler>
  Result<void> websocket(std::string_view pattern, MakeHandler make, WebSocketOptions options = {}) {
    return add_websocket(pattern, {std::move(options), WebSocketRoute::maker(std::move(make))});
  }
  Result<void> add(Method method, std::string_view pattern, Handler handler);
  // Puts the function around the handlers of all routes that are added from now on, except WebSockets. The first one is
  // outermost.
  void use(Middleware middleware) { middlewares_.push_back(std::move(middleware)); }
  Result<void> add_websocket(std::string_view pattern, WebSocketRoute route);
  [[nodiscard]] const std::vector<std::shared_ptr<const WebSocketRoute>>& websockets() const noexcept {
    return websockets_;
  }

  // Whether a handler takes the bodies of its requests as they come.
  [[nodiscard]] bool receives() const noexcept { return receives_; }

  // The method and the pattern of each route, by its number.
  struct RouteName {
    std::string_view method;  // "GET"
    std::string_view pattern;
    bool websocket;
  };
  [[nodiscard]] std::vector<RouteName> routes() const;

  // The way of a request.
  struct Match {
    const Handler* handler = nullptr;  // null: `status` is the answer
    unsigned status = 404;             // 404 no such path; 405 not with this method; 501 unknown method
    std::uint8_t methods = 0;          // that the path has, as bits by Method
    std::uint32_t route = 0;           // with a handler: its number, in the order of adding
    PathParams params{};               // views into the path and into this router
  };
  [[nodiscard]] Match find(std::string_view method, std::string_view path) const;
  // "GET, HEAD, POST", for the field Allow.
  [[nodiscard]] static std::string allow_of(std::uint8_t methods);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Route {
    Handler handler;
    std::vector<std::string> names;
    std::string pattern;
    Method method;
  };
  struct Node {
    std::string literal;  // the segment that leads here; empty below a "{name}"
    std::vector<std::uint32_t> literals;
    std::uint32_t any = kNone;
    std::uint32_t rest = kNone;
    std::array<std::uint32_t, kMethods> routes = filled();

    static constexpr std::array<std::uint32_t, kMethods> filled() noexcept {
      std::array<std::uint32_t, kMethods> none;
      none.fill(kNone);
      return none;
    }
  };

  template <typename Function, typename... Args>
  static Handler handler_of_call(Function function) {
    using Outcome = std::invoke_result_t<const Function&, Args...>;
    Handler handler;
    if constexpr (requires(Outcome task) { task.handle(); }) {
      handler.start = [function = std::move(function)](const Request& request) {
        return answer<Function, Args...>(function, request);
      };
    } else {
      handler.call = [function = std::move(function)](const Request& request) -> Result<Response> {
        return invoke<Function, Args...>(function, request);
      };
    }
    return handler;
  }
  template <typename Function>
  static Handler handler_of(Function function) {
    if constexpr (std::is_invocable_v<const Function&, const Request&, BodyReader&>) {
      Handler handler;
      handler.receive = [function = std::move(function)](const Request& request, BodyReader& body) {
        return receive(function, request, body);
      };
      return handler;
    } else if constexpr (std::is_invocable_v<const Function&, const Request&>) {
      return handler_of_call<Function, const Request&>(std::move(function));
    } else {
      static_assert(std::is_invocable_v<const Function&>,
                    "weft: the handler of a route cannot be called with (const web::Request&), or with nothing; it is "
                    "const, and so is the request");
      return handler_of_call<Function>(std::move(function));
    }
  }
  template <typename Function, typename... Args>
  static decltype(auto) invoke(const Function& function, const Request& request) {
    if constexpr (sizeof...(Args) == 1) {
      return function(request);
    } else {
      return function();
    }
  }
  template <typename Function, typename... Args>
  static rt::Task<Result<Response>> answer(const Function& function, const Request& request) {
    auto outcome = co_await invoke<Function, Args...>(function, request);
    co_return Result<Response>(std::move(outcome));
  }

  template <typename Function>
  static rt::Task<Result<Response>> receive(const Function& function, const Request& request, BodyReader& body) {
    static_assert(
        requires { function(request, body).handle(); },
        "weft: the handler of a route that takes a web::BodyReader& is a coroutine");
    auto outcome = co_await function(request, body);
    co_return Result<Response>(std::move(outcome));
  }

  enum class Kind : std::uint8_t { literal, any, rest };  // of a segment
  [[nodiscard]] static Kind kind_of(std::string_view segment) noexcept;
  [[nodiscard]] std::uint32_t child_of(std::uint32_t node, std::string_view segment, Kind kind);
  [[nodiscard]] std::uint32_t find_rest(std::uint32_t node, std::string_view rest, PathParams& values) const;
  [[nodiscard]] std::uint32_t find_node(std::uint32_t node, std::string_view rest, PathParams& values) const;

  std::vector<Node> nodes_{Node{}};
  std::vector<Route> routes_;
  std::vector<std::shared_ptr<const WebSocketRoute>> websockets_;
  std::vector<Middleware> middlewares_;
  bool receives_ = false;
};

}  // namespace weft::serve::web

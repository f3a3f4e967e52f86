// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/list.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/rt/task/async_event.h"
#include "weft/serve/client/session_end.h"
#include "weft/serve/session/service.h"
#include "weft/serve/web_client/answer_codec.h"

namespace weft::serve::web {

class HttpExchange;
class HttpPool;
struct HttpOrigin;

using AnswerSession = SessionOf<AnswerCodec>;

// HttpLink: a connection of a pool to an origin, from the attempt to make it to its end.
// Owner: its origin, and the coroutine that makes it; an exchange may outlive both. Affinity: the pool's core.
struct HttpLink {
  HttpLink(HttpPool& of, HttpOrigin& to) noexcept : pool(of), origin(to) {}

  [[nodiscard]] AnswerSession* answers() const noexcept { return static_cast<AnswerSession*>(session); }
  [[nodiscard]] bool is_open() const noexcept { return session != nullptr && session->is_open(); }

  HttpPool& pool;
  HttpOrigin& origin;
  Session* session = nullptr;  // null: not yet, or not any more
  SessionEnd* end_wait = nullptr;
  HttpExchange* exchange = nullptr;  // the request under way
  Error why;                         // why there is no connection; ok: there is one, or the attempt has not ended
  std::uint64_t served = 0;          // answers that came whole
  rt::TimerId idle_timer;
  bool begun = false;        // HttpPool::run() has begun
  bool taken = false;        // a request has it, or waits for it
  rt::AsyncEvent connected;  // pulsed when the attempt has ended
};

// HttpCaller: a request that waits for a link. Owner: the frame of its coroutine.
struct HttpCaller : ListHook {
  explicit HttpCaller(bool wants_fresh) noexcept : fresh(wants_fresh) {}

  const bool fresh;                // only a new connection will do
  std::shared_ptr<HttpLink> link;  // that it got
  rt::AsyncEvent come;
};

// HttpOrigin: the connections to one scheme, host and port, and the requests that wait for one of them.
// Owner: the pool, while there is a connection or a request. Affinity: the pool's core.
struct HttpOrigin {
  std::string name;        // "https://host:443"
  net::Endpoint endpoint;  // of tcp
  bool secure = false;
  std::vector<std::shared_ptr<HttpLink>> links{};  // at most connections_max
  std::vector<HttpLink*> idle{};                   // of `links`; the one that was used last is last
  List<HttpCaller> line{};
  std::size_t waiting = 0;  // in `line`
};

}  // namespace weft::serve::web

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/net/ws/handshake.h"
#include "weft/rt/core/core.h"
#include "weft/rt/task/task.h"
#include "weft/serve/metrics/handler_times.h"
#include "weft/serve/web/answer.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/date.h"
#include "weft/serve/web/http_codec.h"
#include "weft/serve/web/router.h"
#include "weft/serve/web/web_counts.h"
#include "weft/sync/lock.h"

namespace weft::serve::web {

// SiteState: the data that the services of all cores share. Affinity: any thread.
class SiteState {
 public:
  explicit SiteState(Router router) : router_(std::move(router)) {}

  [[nodiscard]] const Router& router() const noexcept { return router_; }
  // It does not outlive this, which its sessions' service owns.
  [[nodiscard]] HttpCodec codec(const HttpLimits& limits) const noexcept;
  [[nodiscard]] WebCounters& add_counters();  // of a further service; they live as long as this
  [[nodiscard]] WebCounts counts() const;
  [[nodiscard]] HandlerTimes& add_times();  // the same, for the durations of its handlers
  void read_times(std::string_view name, sync::DurationReadings& into) const;

 private:
  const Router router_;
  mutable sync::StdMutex mutex_;
  std::vector<std::unique_ptr<WebCounters>> counters_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<HandlerTimes>> times_ WEFT_GUARDED_BY(mutex_);
};

// WebService: the service of a Site on one core: requests to the handlers of a router, answers to peers.
// Owner: a server's run. Affinity: its core.
// Cost: a request to a plain function is not copied, but for a body in chunks. One to a coroutine is copied once, and
// counts as memory of the server until the coroutine has ended.
// Invariants:
//   (1) Answers leave in the order of the requests: while a coroutine runs, its session decodes no further request.
//   (2) Whatever a handler does, its request gets one answer, or its connection ends. Each failure is counted.
//   (3) A head that waits for its body counts as memory of the server.
//   (4) A body that its handler takes as it arrives is read no faster than it is taken. Its handler's answer ends the
//       connection if the body has not ended.
//   (5) While the server drains, the answer to the last received request announces the end of the connection.
class WebService {
 public:
  WebService(std::shared_ptr<SiteState> site, rt::Core& core);

  void on_frame(HttpSession& session, const HttpFrame& frame);
  void on_drain();
  void on_close(HttpSession& session, const Error& why);

 private:
  struct Incoming {
    net::http::RequestHead head;
    std::string_view text;  // of the head
    Bytes body;             // as it came
    std::size_t content_size;
    bool chunked;
    Answer answer;
  };
  struct Kept;    // for a coroutine
  struct Stream;  // for the body of a response

  [[nodiscard]] Router::Match find_route(HttpSession& session, const net::http::RequestHead& head) const;
  void take_head(HttpSession& session, const HttpRequest& request);
  [[nodiscard]] std::string drop_head(HttpSession& session);
  void serve(HttpSession& session, const Incoming& incoming);
  void upgrade(HttpSession& session, const Incoming& incoming, const Router::Match& match);
  [[nodiscard]] bool refuse_upgrade(HttpSession& session, const Incoming& incoming, const Router::Match& match);
  void begin_websocket(HttpSession& session, const Incoming& incoming, const WebSocketRoute& route,
                       const net::ws::HandshakeFields& fields);
  void start(HttpSession& session, const Incoming& incoming, const Router::Match& to, bool comes = false);
  static rt::Task<> run(Kept& kept);
  void begin_body(HttpSession& session, const HttpRequest& request);
  void take_piece(HttpSession& session, const HttpFrame& frame);
  [[nodiscard]] bool refuse_piece(HttpSession& session, net::http::HttpRefusal refusal);
  void start_stream(HttpSession& session, const Answer& answer, const Response& response);
  rt::Task<> stream(HttpSession& session, Answer answer, const Response& response);
  void answer_unrouted(HttpSession& session, const Incoming& incoming, const Router::Match& match);
  void finish(HttpSession& session, const Answer& answer, const Result<Response>& outcome);
  void fail(HttpSession& session, const Answer& answer);  // inside a catch block
  void send(HttpSession& session, const Answer& of, const Response& response);
  [[nodiscard]] bool send_at_once(HttpSession& session, const Answer& of, const Response& response);

  std::shared_ptr<SiteState> site_;
  WebCounters& counts_;
  std::vector<sync::DurationCounts*> times_;  // by the number of a route; null for a WebSocket
  rt::Core& core_;
  DateClock date_;
  std::string chunked_body_;                              // the content of a body, while its handler runs
  std::unordered_map<std::uint64_t, std::string> heads_;  // that wait for their bodies, by session
  BodyReader::Readers readers_;
  std::vector<std::unique_ptr<WebSocketBase>> websockets_;  // by the index of their route
  bool draining_ = false;
};

}  // namespace weft::serve::web

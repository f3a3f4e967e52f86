// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/accept_filter.h"
#include "weft/net/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/server/server_options.h"
#include "weft/serve/session/service.h"

namespace weft::serve {

class ServerRun;

// Server: listeners, and the sessions that came through them, on the cores of a runtime.
// Owner: whoever made it; the runtime outlives it. Destruction is stop() with a deadline in the past.
// Affinity: make(), listen(), stop() and restart() one foreign thread at a time; post_to(), send_to(), broadcast(),
// publish(), begin_stop(), counters() and sessions() any thread, callbacks too.
// Cost: an accepted connection stays on one core, which reads it, handles its frames and writes. A message to a session
// costs one post to its core, a message to a group one to each core, whatever the number of its members there.
// Invariants:
//   (1) A socket is read and written by its session's core, and by no other thread, however it was accepted.
//   (2) An id finds its session or nothing: not one of another server, an earlier start, or a later use of its slot.
//   (3) stop() delivers what the sessions have to say until the deadline, and leaves no session, no socket, no service.
class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> make(rt::Runtime& runtime, const ServerOptions& options = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Accepts connections from now on; gives the endpoint as it is bound ("tcp://127.0.0.1:4711" for "…:0").
  // `make_service` is called once on each core, with nothing or with the rt::Core&, and gives that core's service (see
  // service.h). Errors: those of net::Listener::open; invalid_state: stopped, or called by a core; system: it threw.
  template <FrameCodec Codec, typename MakeService>
  Result<std::string> listen(std::string_view endpoint, const ListenerOptions& options, MakeService make_service,
                             const Codec& codec = Codec()) {
    return listen_with(endpoint, options, ServiceKind::of<Codec>(std::move(make_service), codec));
  }

  // function(Session&) on the session's core, if it is still there then; else nothing happens, and it is counted.
  // resource_exhausted: the lane to that core is full; unreachable: an id of another start; closed.
  template <typename Function>
    requires std::invocable<Function&, Session&>
  Result<void> post_to(SessionId id, Function&& function);
  // The frame to one session; errors as post_to(), and those of Session::send_shared() when it is on this core.
  Result<void> send_to(SessionId id, const SharedFrame& frame);
  // The frame to every member of the group, on all cores. resource_exhausted: not to all, a lane was full.
  Result<void> publish(GroupId group, const SharedFrame& frame);
  // The frame to every session that speaks its codec.
  Result<void> broadcast(const SharedFrame& frame);

  // Closes the listeners; each session answers what it has received, delivers what is queued and closes; those that
  // have not by the deadline are aborted. Waits for that. timed_out: some were aborted. On a core it does not wait: as
  // begin_stop(). Idempotent.
  Result<void> stop(Instant deadline);
  void begin_stop(Instant deadline);
  // After stop(): the same listeners at the same endpoints, with services made anew and ids of a new epoch. What
  // listen() says; on an error the server is stopped.
  Result<void> restart();

  // Whether it takes connections. invalid_state: there is no listener yet; terminated: it drains; closed: it is
  // stopped; resource_exhausted: it has as many sessions as it may have. Any thread.
  [[nodiscard]] Result<void> ready() const noexcept;
  [[nodiscard]] CounterValues counters() const noexcept;               // of all cores, since it was made
  [[nodiscard]] CounterValues counters(unsigned core) const noexcept;  // of one
  [[nodiscard]] std::size_t sessions() const noexcept;
  [[nodiscard]] std::uint16_t epoch() const noexcept;
  [[nodiscard]] rt::Runtime& runtime() noexcept { return runtime_; }

 private:
  struct Spec {
    net::Endpoint endpoint;
    ListenerOptions options;
    ServiceKind kind;
  };

  Server(rt::Runtime& runtime, const ServerOptions& options);
  Result<std::string> listen_with(std::string_view endpoint, const ListenerOptions& options, ServiceKind kind);
  Result<void> start();
  [[nodiscard]] std::shared_ptr<ServerRun> run() const noexcept;
  // The session of that run, on its own core; null: it has ended.
  [[nodiscard]] static Session* find(ServerRun& run, SessionId id) noexcept;
  // function(Shard&) on every core.
  template <typename Function>
  Result<void> on_shards(const Function& function);
  Result<void> route(SessionId id, const std::shared_ptr<ServerRun>& run) const noexcept;

  rt::Runtime& runtime_;
  ServerOptions options_;
  std::unique_ptr<CoreCounters[]> counters_;
  std::vector<Spec> specs_;
  mutable std::mutex mutex_;
  std::shared_ptr<ServerRun> run_;  // guarded by mutex_
};

template <typename Function>
  requires std::invocable<Function&, Session&>
Result<void> Server::post_to(SessionId id, Function&& function) {
  const std::shared_ptr<ServerRun> run = this->run();
  WEFT_TRY(route(id, run));
  return runtime_.post(id.core(), [run, id, target = std::forward<Function>(function)]() mutable {
    if (Session* const session = find(*run, id)) {
      target(*session);
    }
  });
}

}  // namespace weft::serve

// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
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
#include "weft/net/admit/accept_filter.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/server/server_options.h"
#include "weft/serve/session/service.h"
#include "weft/sync/lock.h"

namespace weft::serve {

class GroupPresence;
class ServerRun;
class Shard;
class StallWatch;

// PublishOutcome: the sessions that took a frame for a group, and those that did not.
struct PublishOutcome {
  std::size_t taken = 0;      // sessions whose queue has the frame, or had it
  std::size_t missed = 0;     // sessions that did not take it: full until the deadline, ended, or without memory
  unsigned cores_missed = 0;  // cores with members that the frame did not reach, or whose answer did not come in time
  Error why;                  // of the last one that missed it
  [[nodiscard]] bool complete() const noexcept { return missed == 0 && cores_missed == 0; }
};

// Server: listeners and their sessions, on the cores of a runtime.
// Owner: the program. The destructor is stop() with a deadline in the past. It then waits for handlers and coroutines
// that have not ended, because they may refer to objects that the program destroys next. A core that ends, ends its
// sessions. Destroy the runtime after its server. If the runtime is destroyed first, stop() ends at once, and the calls
// that need the runtime fail with `closed` and a text with this reason; a call that runs during its destruction is not
// safe.
// Affinity: make(), listen() and restart(): one foreign thread at a time. The others: any thread, callbacks included.
// Cost: an accepted connection stays on one core, which reads it, handles its frames and writes. A message
// to a session costs one post to its core. A message to a group costs one post to each core with members, whatever
// their number. Neither locks, nor counts references.
// Invariants:
//   1. Only the core of its session reads and writes a socket, however the socket was accepted.
//   2. An id finds its session or nothing: never a session of another server, an earlier start, or a later use
//      of its slot.
//   3. stop() delivers the queued frames of the sessions until the deadline, and leaves no session, no
//      socket, no service.
class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> make(rt::Runtime& runtime, const ServerOptions& options = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Accepts connections from now on. Returns the bound endpoint ("tcp://127.0.0.1:4711" for "…:0"). Calls
  // a copy of `make_service` on each core, without arguments or with the rt::Core&; it returns that core's service (see
  // service.h). Errors: those of net::Listener::open; closed (stopped, or stopping); invalid_state (called by a core);
  // system (`make_service` threw); invalid_argument (limits.handlers_max is above 1 for a codec without request
  // numbers, request_number.h, whose clients could not match answers to requests).
  template <FrameCodec Codec, typename MakeService>
  Result<std::string> listen(std::string_view endpoint, const ListenerOptions& options, MakeService make_service,
                             const Codec& codec = Codec()) {
    return listen_with(endpoint, options, ServiceKind::of<Codec>(std::move(make_service), codec));
  }

  // Runs function(Session&) on the session's core if the session still exists. Otherwise the server counts a miss.
  // Errors: resource_exhausted (the lane to that core is full); unreachable (an id of another start); closed.
  template <typename Function>
    requires std::invocable<Function&, Session&>
  Result<void> post_to(SessionId id, Function&& function);
  // The same with function(SessionOf<Codec>&), which has send(). A session of another codec counts as a miss.
  template <FrameCodec Codec, typename Function>
    requires std::invocable<Function&, SessionOf<Codec>&>
  Result<void> post_to(SessionId id, Function&& function);
  // Sends the frame to one session. Errors: those of post_to(), and those of Session::send_shared() if the session is
  // on this core.
  Result<void> send_to(SessionId id, const SharedFrame& frame);
  // Sends the frame to every member of the group, on all cores: to each session whose join() happened before. The frame
  // may miss a session whose join() was only posted. Errors: resource_exhausted (a lane was full, so some cores did not
  // get the frame).
  Result<void> publish(GroupId group, const SharedFrame& frame);
  // Sends the frame to every session of the frame's codec.
  Result<void> broadcast(const SharedFrame& frame);
  // For a task on a core of the runtime: as send_to() and publish(), but the frame waits for room in full lanes and
  // queues, whatever the policy for slow readers. The members with room get the frame at once; it waits for the others
  // beside each other, and the result counts them. Errors: closed (stopped); unreachable (send_wait(): the session has
  // ended, or is of another start); timed_out; kCancelled; invalid_state (the caller is not on a core); those of
  // Session::send_shared_wait().
  // Cost: a coroutine for each core with members, and for each member without room.
  [[nodiscard]] rt::Task<Result<void>> send_wait(SessionId id, SharedFrame frame, Instant deadline = kNever);
  [[nodiscard]] rt::Task<Result<PublishOutcome>> publish_wait(GroupId group, SharedFrame frame,
                                                              Instant deadline = kNever);

  // Closes the listeners. Each session answers the frames that it received. When all have done so and no message
  // between cores is under way, or after settle_timeout, each session delivers its queue and closes.
  // At the deadline the server aborts the remaining sessions. The call waits for the end of all sessions, at most until
  // 0.1 s after the deadline. Errors: timed_out (sessions were aborted; or a handler or coroutine has not ended, and
  // the text names its core). In the second case the server is not stopped: ready() is `terminated`, and another stop()
  // waits for the rest.
  // On a core, stop() does not wait, like begin_stop(). Of several stops, the earliest deadline holds for the sessions.
  Result<void> stop(Instant deadline);
  void begin_stop(Instant deadline);
  // A stop follows soon: ready() is `terminated` from now on, and nothing else changes. Load balancers may ask for a
  // while until they send no more connections. restart() takes it back. Idempotent; any thread.
  void announce_stop() noexcept { leaving_.store(true, std::memory_order_relaxed); }
  // For the next process of the program (HandOver). listeners(): a descriptor for each listening socket; a tcp listener
  // on several cores has several. release_listeners(): the next process accepts; the sockets close in this process, and
  // its sessions go on; ready() is `terminated`, and restart() refuses from now on. Errors: timed_out (a core is busy);
  // closed (stopped); invalid_state (called by a core); resource_exhausted.
  Result<std::vector<OpenListener>> listeners(Instant deadline);
  Result<void> release_listeners(Instant deadline);
  // After stop(): opens the same listeners at the same endpoints, with new services and ids of a new epoch.
  // Errors: those of listen(); not_supported (a listener had adopted its descriptor, or they were released). After an
  // error the server is stopped.
  Result<void> restart();

  // Replaces sessions_max and memory_max, also for the starts after this one. A bound below its present use ends no
  // session: the server refuses until sessions have ended, or have delivered their queues. Any thread.
  void set_bounds(std::size_t sessions_max, std::size_t memory_max) noexcept;
  // Whether the server takes connections. Errors: invalid_state (the server has no listener yet); terminated (it
  // drains, or announce_stop() was called); closed (it is stopped); resource_exhausted (it has sessions_max sessions,
  // or a listener pauses because descriptors or memory ran out). Any thread.
  [[nodiscard]] Result<void> ready() const noexcept;
  [[nodiscard]] CounterValues counters() const noexcept;               // of all cores, since make()
  [[nodiscard]] CounterValues counters(unsigned core) const noexcept;  // of one core
  [[nodiscard]] std::size_t sessions() const noexcept;
  // Both are for a page of metrics. The server outlives the source.
  [[nodiscard]] CounterSource counter_source() const;
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_.load(std::memory_order_relaxed); }  // 0 if stopped
  [[nodiscard]] rt::Runtime& runtime() const noexcept { return runtime_; }

 private:
  struct Spec {
    net::Endpoint endpoint;
    std::string bound;  // the same as text
    ListenerOptions options;
    ServiceKind kind;
  };

  Server(rt::Runtime& runtime, const ServerOptions& options);
  Result<std::string> listen_with(std::string_view endpoint, const ListenerOptions& options, ServiceKind kind);
  void start();
  [[nodiscard]] std::shared_ptr<ServerRun> run() const noexcept;
  // On the session's core. Returns null, and counts a miss, if the session has ended.
  [[nodiscard]] static Session* find(SessionId id) noexcept;
  [[nodiscard]] static Session* find(SessionId id, const void* codec_tag) noexcept;
  // Runs function(Shard&) on that core.
  template <typename Function>
  Result<void> on_shard(unsigned core, std::uint16_t epoch, const Function& function);
  Result<void> route(SessionId id) const noexcept;
  [[nodiscard]] Error not_on_core() const noexcept;  // of a task that would wait

  void add_listener_info(std::string_view name, CounterReadings& into) const;

  [[nodiscard]] bool runtime_gone() const noexcept { return runtime_gone_->load(std::memory_order_relaxed); }

  rt::Runtime& runtime_;
  const unsigned cores_;
  const std::shared_ptr<const std::atomic<bool>> runtime_gone_;
  std::shared_ptr<CoreCounters[]> counters_;  // each run, which may outlive the server, shares them
  std::shared_ptr<GroupPresence> presence_;   // likewise
  std::atomic<bool> released_{false};         // release_listeners(). Relaxed: restart() comes later in any case
  std::atomic<bool> leaving_{false};          // announce_stop(). Relaxed: a hint for others
  std::atomic<std::uint16_t> epoch_{0};       // of run_. Relaxed: a message finds its shard by it, or none
  mutable sync::StdMutex mutex_;
  ServerOptions options_ WEFT_GUARDED_BY(mutex_);
  std::vector<Spec> specs_ WEFT_GUARDED_BY(mutex_);
  std::shared_ptr<ServerRun> run_ WEFT_GUARDED_BY(mutex_);
  std::unique_ptr<StallWatch> stall_watch_;
};

template <typename Function>
  requires std::invocable<Function&, Session&>
Result<void> Server::post_to(SessionId id, Function&& function) {
  WEFT_TRY(route(id));
  return runtime_.post(id.core(), [id, target = std::forward<Function>(function)]() mutable {
    if (Session* const session = find(id)) {
      target(*session);
    }
  });
}

template <FrameCodec Codec, typename Function>
  requires std::invocable<Function&, SessionOf<Codec>&>
Result<void> Server::post_to(SessionId id, Function&& function) {
  WEFT_TRY(route(id));
  return runtime_.post(id.core(), [id, target = std::forward<Function>(function)]() mutable {
    if (Session* const session = find(id, codec_tag<Codec>())) {
      target(static_cast<SessionOf<Codec>&>(*session));
    }
  });
}

}  // namespace weft::serve

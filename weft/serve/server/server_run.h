// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/net/acceptor.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/admission/proxy_waits.h"
#include "weft/serve/server/drain.h"
#include "weft/serve/server/server_options.h"
#include "weft/serve/server/stand_in.h"
#include "weft/serve/session/shard.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"

namespace weft::serve {

// ServerRun: a server from one start to its stop: a shard on each core, and its listeners.
// Owner: the server, each part until it is down, and connections under way to another core. A message that arrives
// after the stop finds no session.
// Affinity: add_listener(): foreign threads, one at a time; the others: any thread.
// Invariants:
//   1. The core's own thread uses and destroys the objects of that core, at the latest at its end.
//   2. Of all deadlines that the stops name, the earliest counts.
//   3. begin_stop() waits for nothing. Once every part is down, the run does not touch the runtime.
class ServerRun final : public std::enable_shared_from_this<ServerRun>, private SessionMover {
 public:
  enum class Phase : std::uint8_t { starting, serving, draining };
  static constexpr Duration kStopGrace = std::chrono::milliseconds(80);

  // start() follows.
  ServerRun(rt::Runtime& runtime, const ServerOptions& options, std::shared_ptr<CoreCounters[]> counters,
            std::shared_ptr<GroupPresence> presence);
  ServerRun(const ServerRun&) = delete;
  ServerRun& operator=(const ServerRun&) = delete;
  ~ServerRun() = default;

  void start();
  Result<std::string> add_listener(const net::Endpoint& endpoint, const ListenerOptions& options,
                                   const ServiceKind& kind);
  // A descriptor for each listening socket. Errors: timed_out; resource_exhausted.
  Result<std::vector<OpenListener>> listeners(Instant deadline);
  Result<void> release_listeners(Instant deadline);  // they close here, and sessions() has all of their
  // connections. Errors: timed_out
  void begin_stop(Instant deadline);
  // A core stalls: if it is the one that passes connections on, every other core accepts for it until it returns.
  void stand_in() noexcept;
  // begin_stop(), and waits for the end until kStopGrace after the deadline, but not on a core.
  Result<void> stop(Instant deadline);
  [[nodiscard]] bool down() noexcept;  // nothing is left
  void set_bounds(std::size_t sessions_max, std::size_t memory_max) noexcept {
    count_.set_limit(sessions_max);
    budget_.set_limit(memory_max);
  }
  [[nodiscard]] bool full() const noexcept { return count_.value() >= count_.limit(); }
  [[nodiscard]] bool accepts() const noexcept;  // false: for lack of descriptors or memory, just now

  [[nodiscard]] Phase phase() noexcept;
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::size_t sessions() const noexcept { return count_.value(); }
  [[nodiscard]] rt::Runtime& runtime() noexcept { return runtime_; }

 private:
  class Move;
  struct Port {  // a listener's part on one core
    std::shared_ptr<const ListenerOptions> options;
    std::shared_ptr<const void> codec;
    std::shared_ptr<void> service;
    SessionOps ops;
    std::vector<std::unique_ptr<ServiceSlot>> slots;  // the last one for new sessions; the others have older limits
    std::uint64_t limits_version = 0;                 // of LiveLimits
    // Without one, the acceptors of other cores pass connections to this one.
    std::vector<std::shared_ptr<net::Acceptor>> acceptors;
    std::vector<std::unique_ptr<StandIn>> stand_ins;  // for acceptors of other cores that pass connections

    void start();           // the acceptors
    void close() noexcept;  // the acceptors and the stand-ins
  };
  // PartJob: a job of one core's part. Job: rt::CoreJob or rt::TurnJob.
  template <typename Job, void (ServerRun::*kDo)(unsigned core) noexcept>
  struct PartJob final : Job {
    PartJob(ServerRun& of, unsigned on) noexcept
        : Job([](Job& job) noexcept {
            auto& self = static_cast<PartJob&>(job);
            (self.run_->*kDo)(self.core_);
          }),
          run_(&of),
          core_(on) {}

   private:
    ServerRun* run_;
    unsigned core_;
  };
  [[nodiscard]] Result<SessionMove*> begin_move(SessionId session, std::size_t port, unsigned core) noexcept override;
  void attend(unsigned core) noexcept;
  void tear_down(unsigned core) noexcept;
  struct Part {  // one core's part; only that core touches it
    Part(ServerRun& of, unsigned on) noexcept
        : run(of), core(on), attend(of, on), drained(of, on), core_ended(of, on) {}

    ServerRun& run;
    const unsigned core;
    std::unique_ptr<Shard> shard;
    std::vector<std::unique_ptr<Port>> ports;
    std::unique_ptr<ProxyWaits> proxy_waits;  // null: no port has the option
    rt::TimerId timer;                        // for the next of these
    Instant settled_by = kNever;              // drained sessions close then, though others are not drained
    Instant deadline = kNever;                // of the stop
    bool stopping = false;
    bool closing = false;             // drained sessions close
    std::shared_ptr<ServerRun> keep;  // from the first attend() until the part is down
    PartJob<rt::CoreJob, &ServerRun::attend> attend;
    PartJob<rt::TurnJob, &ServerRun::tear_down> drained;     // in the turn after the last session's end
    PartJob<rt::TurnJob, &ServerRun::tear_down> core_ended;  // if that comes first
  };
  struct PartState {                 // of a core's part, for all threads
    bool down = false;               // nothing of the part is left
    bool attended = false;           // tear_down() follows at the core's end
    bool stands_in = false;          // the next attend() looks for connections
    bool met_deadline = false;       // the core ended the sessions that the deadline found
    std::shared_ptr<ServerRun> due;  // `attend` was given and has not run; keeps the run
  };
  using Listeners = std::vector<std::vector<std::unique_ptr<net::Listener>>>;  // by core

  Result<Listeners> open_listeners(const net::Endpoint& endpoint, const ListenerOptions& options, std::string& bound);
  Result<Listeners> adopt_listeners(const net::Endpoint& endpoint, const ListenerOptions& options, std::string& bound);
  // Stand-ins on `core` for the listeners of the other cores. Call it before those have moved to their acceptors.
  struct ToStandIn {
    unsigned acceptor;  // its core
    std::unique_ptr<net::Listener> listener;
  };
  [[nodiscard]] static Result<std::vector<ToStandIn>> share_for(unsigned core, const Listeners& listeners);
  // Runs the function on each core, and waits for all. Returns false if one returned false or threw. Not on a core.
  bool on_each_core(const std::function<bool(unsigned core)>& function);
  bool add_port(unsigned core, const std::shared_ptr<const ListenerOptions>& options, const ServiceKind& kind);
  [[nodiscard]] Result<void> add_stand_in(unsigned core, std::size_t port, ToStandIn shared);
  void add_acceptor(unsigned core, std::size_t port, std::unique_ptr<net::Listener> listener, bool everywhere);
  void accept(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream, bool everywhere) noexcept;
  [[nodiscard]] unsigned next_core() noexcept;  // for hand_off
  void deal(std::size_t port, std::unique_ptr<net::ByteStream> stream);
  void place(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream) noexcept;
  void try_place(Part& part, std::size_t port, std::unique_ptr<net::ByteStream> stream);
  [[nodiscard]] std::unique_ptr<ProxyWaits> make_proxy_waits(unsigned core);
  void place_client(unsigned core, std::size_t port, std::unique_ptr<net::ByteStream> stream,
                    const sys::SocketAddress& client, Instant accepted) noexcept;
  void admit(Part& part, Port& into, std::unique_ptr<net::ByteStream> stream, const sys::SocketAddress& client,
             Instant accepted);
  static const ServiceSlot& slot_of(Port& port);
  void reject(unsigned core, Rejection why, const Error& error, std::string_view peer = {}) noexcept;
  void call(unsigned core);  // lets attend() run there, soon
  void stop_by(unsigned core, Instant deadline) noexcept;
  void tell_services(Part& part) noexcept;
  void close_sessions(Part& part) noexcept;
  void end_sessions(Part& part) noexcept;
  void arm(Part& part) noexcept;
  void handle_time(Part& part) noexcept;
  [[nodiscard]] bool wait_down(Instant deadline);
  [[nodiscard]] Error left_behind();

  rt::Runtime& runtime_;
  const std::uint16_t epoch_;
  ByteBudget budget_;
  SessionCount count_;
  const Duration settle_timeout_;
  const LogSink log_;
  const std::shared_ptr<CoreCounters[]> counters_;
  const std::shared_ptr<GroupPresence> presence_;
  std::vector<std::unique_ptr<Part>> parts_;
  Drain drain_;
  std::size_t ports_ = 0;                      // belongs to the thread that adds listeners
  std::atomic<unsigned> next_core_{0};         // for hand_off. Relaxed: a number
  std::atomic<Instant> paused_at_{Instant()};  // the last time that a listener paused. Relaxed: a moment, no more

  sync::StdMutex mutex_;
  sync::Condition changed_;
  std::vector<PartState> part_states_ WEFT_GUARDED_BY(mutex_);  // by core
  unsigned down_ WEFT_GUARDED_BY(mutex_) = 0;                   // parts that are down
  bool begun_ WEFT_GUARDED_BY(mutex_) = false;
  bool drained_ WEFT_GUARDED_BY(mutex_) = false;            // all cores are
  Instant stop_deadline_ WEFT_GUARDED_BY(mutex_) = kNever;  // the earliest
  bool listens_ WEFT_GUARDED_BY(mutex_) = false;            // a listener was added
  bool aborted_ WEFT_GUARDED_BY(mutex_) = false;            // sessions were left at the deadline
};

}  // namespace weft::serve

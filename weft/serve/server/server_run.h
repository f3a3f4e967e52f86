// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weft/net/acceptor.h"
#include "weft/net/endpoint.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/server_options.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

// ServerRun: a server from one start to its stop: a shard on each core, and its listeners.
// Owner: the server, and messages under way. A message that arrives after the stop finds no session.
// Affinity: add_listener() and stop(): foreign threads, one at a time; the others: any thread.
// Invariant: the core's own thread makes, uses and destroys the objects of that core. Only after the runtime
// has ended its threads does stop() destroy them.
class ServerRun : public std::enable_shared_from_this<ServerRun> {
 public:
  enum class Phase : std::uint8_t { starting, serving, draining };

  ServerRun(rt::Runtime& runtime, const ServerOptions& options, CoreCounters* counters,
            std::shared_ptr<GroupPresence> presence);
  ServerRun(const ServerRun&) = delete;
  ServerRun& operator=(const ServerRun&) = delete;
  ~ServerRun() = default;

  Result<std::string> add_listener(const net::Endpoint& endpoint, const ListenerOptions& options,
                                   const ServiceKind& kind);
  void begin_stop(Instant deadline);
  Result<void> stop(Instant deadline);  // begin_stop(), and waits for the end

  [[nodiscard]] Phase phase() noexcept;
  [[nodiscard]] std::uint16_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::size_t sessions() const noexcept { return count_.value(); }
  [[nodiscard]] rt::Runtime& runtime() noexcept { return runtime_; }

 private:
  struct Port {  // a listener's part on one core
    std::shared_ptr<const ListenerOptions> options;
    std::shared_ptr<const void> codec;
    std::shared_ptr<void> service;
    SessionOps ops;
    ServiceSlot slot;
    std::shared_ptr<net::Acceptor> acceptor;  // null: another core's acceptor passes connections to this one
  };
  struct Part {  // one core's part; only that core touches it
    std::unique_ptr<Shard> shard;
    std::vector<std::unique_ptr<Port>> ports;
    rt::TimerId deadline_timer;
    bool stopping = false;
  };
  using Listeners = std::vector<std::unique_ptr<net::Listener>>;  // by core; null: none on that core

  Result<Listeners> open_listeners(const net::Endpoint& endpoint, const ListenerOptions& options, std::string& bound);
  // Runs the function on each core, and waits for all. Must not be called on a core.
  void on_each_core(const std::function<void(unsigned core)>& function);
  void add_port(unsigned core, const std::shared_ptr<const ListenerOptions>& options, const ServiceKind& kind);
  void deal(std::size_t port, std::unique_ptr<net::Stream> stream);
  void place(unsigned core, std::size_t port, std::unique_ptr<net::Stream> stream);
  void begin_stop_here(unsigned core, Instant deadline);
  void tear_down(unsigned core);

  rt::Runtime& runtime_;
  const std::uint16_t epoch_;
  ByteBudget budget_;
  SessionCount count_;
  const LogSink log_;
  CoreCounters* counters_;
  const std::shared_ptr<GroupPresence> presence_;
  std::vector<Part> parts_;
  std::size_t ports_ = 0;   // belongs to the thread that adds listeners
  unsigned next_core_ = 0;  // for hand_off; belongs to the accepting core

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned down_ = 0;     // guarded by mutex_: cores whose part is destroyed
  bool begun_ = false;    // guarded by mutex_
  bool listens_ = false;  // guarded by mutex_: a listener was added
  bool aborted_ = false;  // guarded by mutex_: sessions were left at the deadline
};

}  // namespace weft::serve

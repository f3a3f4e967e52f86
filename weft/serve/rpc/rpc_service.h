// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/rt/core/core.h"
#include "weft/serve/metrics/handler_times.h"
#include "weft/serve/rpc/call.h"
#include "weft/serve/rpc/call_table.h"
#include "weft/serve/rpc/methods.h"
#include "weft/serve/rpc/rpc_codec.h"
#include "weft/serve/rpc/rpc_counts.h"
#include "weft/serve/server/server.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/duration_counts.h"
#include "weft/sync/lock.h"

namespace weft::serve::rpc {

// The bounds hold besides those of the service's sessions (SessionLimits) and of the server's memory.
struct ServiceOptions {
  std::size_t body_max = kRequestMax;  // bytes of a request's body, and of a response's
  std::uint32_t calls_max = 256;       // calls of one connection whose coroutines run; further ones are answered `busy`
  bool time_handlers = false;          // a page of metrics shows a histogram of the durations of each method's handler
};

// ServiceState: the data that the services of all cores share. Affinity: any thread.
class ServiceState {
 public:
  using MakeMethods = std::function<Methods(rt::Core&)>;

  ServiceState(Methods methods, const ServiceOptions& options);
  ServiceState(MakeMethods make, const ServiceOptions& options);
  ServiceState(const ServiceState&) = delete;
  ServiceState& operator=(const ServiceState&) = delete;
  ~ServiceState() = default;

  // Those of a core: all cores share them, unless each has its own.
  [[nodiscard]] std::shared_ptr<const Methods> methods(rt::Core& core) const;
  [[nodiscard]] const ServiceOptions& options() const noexcept { return options_; }
  [[nodiscard]] RpcCounters& add_counters();  // of a further core; they live as long as this
  [[nodiscard]] RpcCounts counts() const;
  [[nodiscard]] HandlerTimes& add_times();  // the same, for the durations of its handlers
  void read_times(std::string_view name, sync::DurationReadings& into) const;

 private:
  std::shared_ptr<const Methods> methods_;
  const MakeMethods make_;  // null: all cores have methods_
  const ServiceOptions options_;
  mutable sync::StdMutex mutex_;
  std::vector<std::unique_ptr<RpcCounters>> counters_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<HandlerTimes>> times_ WEFT_GUARDED_BY(mutex_);
};

// CoreService: a Service on one core: requests to handlers, cancels to their coroutines, answers to callers.
// Owner: a server's run. Affinity: its core.
// Cost: a call to a plain handler copies nothing. One to a coroutine is copied once, into the block of its coroutine,
// and counts as memory of the server until the coroutine has ended. A connection has a table from its first coroutine
// on.
// Invariants:
//   (1) A request has one outcome, which is counted once, and at most one answer. Answers leave in any order.
//   (2) A connection has at most calls_max coroutines. It reads on beside them, so that a cancel arrives.
//   (3) A frame that no client of this protocol sends ends its connection, after the answers that are owed, and is
//       counted.
class CoreService {
 public:
  CoreService(std::shared_ptr<ServiceState> state, rt::Core& core);

  void on_frame(Session& session, const Codec::Frame& frame);
  void on_close(Session& session, const Error& why);

 private:
  struct Kept;  // for a coroutine

  void begin(Session& session, const Codec::Frame& frame);
  void start(Session& session, const Codec::Frame& frame, const Methods::Entry& entry, Instant deadline);
  [[nodiscard]] bool try_start(Session& session, const Codec::Frame& frame, const Methods::Entry& entry,
                               Instant deadline);
  void cancel(Session& session, std::uint64_t id);
  void handle_stream(Session& session, const Codec::Frame& frame);
  // The histogram of a method's handler; null: it is not measured.
  [[nodiscard]] sync::DurationCounts* times_of(const Methods::Entry& entry) const noexcept {
    return entry.index < times_.size() ? times_[entry.index] : nullptr;
  }
  [[nodiscard]] static CallTable* table_of(const Session& session) noexcept {
    return static_cast<CallTable*>(session.context());
  }

  std::shared_ptr<ServiceState> state_;
  std::shared_ptr<const Methods> methods_;
  RpcCounters& counts_;
  std::vector<sync::DurationCounts*> times_;  // by the index of a method; empty without time_handlers
};

// Service: methods as the service of a listener, with bounds and counters.
//   rpc::Service service(std::move(methods));
//   rpc::listen(*server, "tcp://*:7000", service);
// Several listeners may have the same service. Each service also has the method "weft.methods" (method_list.h).
// A value; its copies are the same service. Affinity: any thread.
class Service {
 public:
  explicit Service(Methods methods, const ServiceOptions& options = {})
      : state_(std::make_shared<ServiceState>(std::move(methods), options)) {}
  // A service whose cores have their own methods: make(core) runs on each core when it begins to listen. Its handlers
  // may use objects of that core, such as clients. An exception from it is the error `system` of listen().
  [[nodiscard]] static Service of_cores(std::function<Methods(rt::Core&)> make, const ServiceOptions& options = {}) {
    return Service(std::make_shared<ServiceState>(std::move(make), options));
  }

  // For Server::listen(): the service of a core, and the codec. The listener's limits.handlers_max must be twice
  // calls_max; rpc::listen() sets it.
  [[nodiscard]] auto services() const {
    return [state = state_](rt::Core& core) { return CoreService(state, core); };
  }
  [[nodiscard]] Codec codec() const noexcept { return Codec(state_->options().body_max); }
  [[nodiscard]] const ServiceOptions& options() const noexcept { return state_->options(); }

  [[nodiscard]] RpcCounts counts() const { return state_->counts(); }
  // The same for a page of metrics: admin->add("calc", service).
  [[nodiscard]] CounterSource counter_source() const {
    return [state = state_](std::string_view name, CounterReadings& into) {
      into.push_back({&kRpcTable, {{"rpc", std::string(name)}}, sync::read_counters(state->counts())});
    };
  }
  [[nodiscard]] sync::DurationSource duration_source() const {
    return [state = state_](std::string_view name, sync::DurationReadings& into) { state->read_times(name, into); };
  }

 private:
  explicit Service(std::shared_ptr<ServiceState> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<ServiceState> state_;
};

// Listens for calls of the service. Errors: those of Server::listen().
[[nodiscard]] Result<std::string> listen(Server& server, std::string_view endpoint, const Service& service,
                                         ListenerOptions options = {});

}  // namespace weft::serve::rpc

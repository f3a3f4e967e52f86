// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/rt/core/core.h"
#include "weft/rt/core/core_job.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/admission/session_count.h"
#include "weft/serve/metrics/counters.h"
#include "weft/serve/session/log.h"
#include "weft/serve/session/session_id.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

struct ClientHostOptions {
  std::size_t connections_max = 10'000;
  std::size_t memory_max = std::size_t{1} << 28;  // bytes queued and half received, of all connections
  LogSink log{};                                  // receives one record at each connection's end; null: no log
  HandlerExceptionSink on_exception{};            // receives each exception of a function of on_push()
};

// ClientHost: the shared part of the clients of one core. Their connections are sessions of this shard: they
// read into one block, share one memory budget and are counted together.
// Owner: shared_ptrs, held by the program and by each client. Affinity: its core's thread, except counters(). Any
// thread may destroy it after its clients are destroyed.
// Cost: one for each core; 64 KB from the first read on.
class ClientHost {
 public:
  explicit ClientHost(rt::Core& core, const ClientHostOptions& options = {})
      : log_(options.log),
        budget_(options.memory_max),
        counted_(std::make_shared<Counted>(options.connections_max)),
        shard_(core, next_epoch(), budget_, options.memory_max, counted_->sessions, counted_->counters, log_,
               options.on_exception) {}
  ClientHost(const ClientHost&) = delete;
  ClientHost& operator=(const ClientHost&) = delete;
  ~ClientHost() = default;

  [[nodiscard]] rt::Core& core() noexcept { return shard_.core(); }
  [[nodiscard]] Shard& shard() noexcept { return shard_; }
  [[nodiscard]] const CoreCounters& counters() const noexcept { return counted_->counters; }
  [[nodiscard]] std::size_t connections() const noexcept { return counted_->sessions.value(); }
  // Both for a page of metrics, as long as the host exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const {
    return [weak = std::weak_ptr<const Counted>(counted_)](std::string_view name, CounterReadings& into) {
      if (const auto counted = weak.lock()) {
        ServerReading reading{counted->sessions.value(), {}};
        reading.counted.add(counted->counters);
        into.push_back({&kClientHostTable, {{"client_host", std::string(name)}}, sync::read_counters(reading)});
      }
    };
  }

 private:
  struct Counted {
    explicit Counted(std::size_t connections_max) noexcept : sessions(connections_max) {}

    CoreCounters counters;
    SessionCount sessions;
  };

  const LogSink log_;
  ByteBudget budget_;
  const std::shared_ptr<Counted> counted_;
  Shard shard_;
};

// Farewell: lets a core drop the last reference to an object of its own, from any thread.
// Owner: the object, which has shut_down(). Affinity: begin() any thread, once. Cost: no allocation, no wait.
template <typename Object>
class Farewell final : private rt::CoreJob {
 public:
  Farewell() noexcept : CoreJob([](rt::CoreJob& job) noexcept { static_cast<Farewell&>(job).finish(); }) {}

  void begin(rt::Core& core, std::shared_ptr<Object> object) noexcept {
    object_ = std::move(object);
    if (rt::Core::current() == &core) {
      finish();
    } else {
      core.give(*this);
    }
  }

 private:
  void finish() noexcept {
    const auto last = std::move(object_);  // owns this
    last->shut_down();
  }

  std::shared_ptr<Object> object_;
};

}  // namespace weft::serve
